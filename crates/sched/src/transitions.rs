//! The life of a task as one table; the diagram in the docs is drawn from it.

/// Where a task is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Not yet taken.
    New,
    /// Waits for versions, for earlier users of data in place, or for a lock.
    Waiting,
    /// Waits for an executor and, for I/O, for a grant.
    Ready,
    /// At an executor, begun or next in its line.
    Sent,
    /// At an executor without a processor: its body gave it back and is not over.
    Paused,
    /// Its body is over, and no executor has it: what it wrote is not safe yet.
    Settling,
    /// Ran out of time; its executor is being ended.
    Abandoned,
    /// Over, well.
    Done,
    /// Over: its own failure.
    Failed,
    /// Over: the program's wish, or the failure of another.
    Cancelled,
}

/// What moves a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Input {
    /// The program called it.
    Submit,
    /// The last thing that it waited for came.
    Unblock,
    /// It got an executor (and a grant).
    Dispatch,
    /// It came back unbegun.
    GiveBack,
    /// Its body gave its processor back.
    Pause,
    /// It has a processor (or a slot) again.
    Resume,
    /// Its body is over, and its end will be told.
    Settle,
    /// Its body ended well, or its failure is to be ignored.
    Finish,
    /// It failed and may run again.
    Retry,
    /// Its layer failed it, and another may take it.
    Displace,
    /// It failed for good, or no layer can take it any more.
    Fail,
    /// Its time was up.
    TimeOut,
    /// The program cancelled it, or a version that it needs failed.
    Cancel,
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// From where.
    pub from: State,
    /// Moved by what.
    pub input: Input,
    /// To where.
    pub to: State,
}

const fn line(from: State, input: Input, to: State) -> Transition {
    Transition { from, input, to }
}

/// Every move that there is. Anything else is a fault of the scheduler and stops it.
pub const TRANSITIONS: &[Transition] = &[
    line(State::New, Input::Submit, State::Waiting),
    line(State::Waiting, Input::Unblock, State::Ready),
    line(State::Waiting, Input::Cancel, State::Cancelled),
    line(State::Ready, Input::Dispatch, State::Sent),
    line(State::Ready, Input::Cancel, State::Cancelled),
    line(State::Ready, Input::Finish, State::Done),
    line(State::Ready, Input::Fail, State::Failed),
    line(State::Sent, Input::GiveBack, State::Ready),
    line(State::Sent, Input::Finish, State::Done),
    line(State::Sent, Input::Retry, State::Ready),
    line(State::Sent, Input::Displace, State::Ready),
    line(State::Sent, Input::Fail, State::Failed),
    line(State::Sent, Input::TimeOut, State::Abandoned),
    line(State::Sent, Input::Settle, State::Settling),
    line(State::Sent, Input::Pause, State::Paused),
    line(State::Paused, Input::Resume, State::Sent),
    line(State::Paused, Input::Finish, State::Done),
    line(State::Paused, Input::Retry, State::Ready),
    line(State::Paused, Input::Fail, State::Failed),
    line(State::Paused, Input::TimeOut, State::Abandoned),
    line(State::Settling, Input::Finish, State::Done),
    line(State::Settling, Input::Retry, State::Ready),
    line(State::Settling, Input::Fail, State::Failed),
    line(State::Abandoned, Input::Retry, State::Ready),
    line(State::Abandoned, Input::Fail, State::Failed),
    line(State::Abandoned, Input::Finish, State::Done),
];

/// Where an input leads from a state, if it may come there.
pub fn next(from: State, input: Input) -> Option<State> {
    NEXT[from as usize][input as usize]
}

/// The table by state and input, made from the lines when this is compiled.
const NEXT: [[Option<State>; INPUTS]; STATES] = {
    let mut next = [[None; INPUTS]; STATES];
    let mut at = 0;
    while at < TRANSITIONS.len() {
        let line = &TRANSITIONS[at];
        next[line.from as usize][line.input as usize] = Some(line.to);
        at += 1;
    }
    next
};

/// How many states there are.
pub(crate) const STATES: usize = State::Cancelled as usize + 1;
const INPUTS: usize = Input::Cancel as usize + 1;

impl core::fmt::Display for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(self, f)
    }
}

impl core::fmt::Display for Input {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(self, f)
    }
}
