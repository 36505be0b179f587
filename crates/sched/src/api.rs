//! The words between a driver and the scheduler: specifications, events, instructions.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use graph::{Access, DatumId, TaskId, VersionId};

use crate::tuner::Tuning;

/// Nanoseconds since a moment of the driver's choice. Never goes back.
pub type Time = u64;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);
    };
}

index! {
    /// What tasks have in common: their means and names are kept by function.
    FunctionId
}
index! {
    /// Runs task bodies. Given by the driver, never reused for a replacement.
    ExecutorId
}
index! {
    /// A place with processors and memory; executors on it see the same data at no cost.
    NodeId
}
index! {
    /// One storage device or file system: position in [`Config::layers`] as it was given.
    LayerId
}

/// What an executor runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Takes processors.
    Compute,
    /// Takes no processor: an I/O executor slot, and a grant on a layer.
    Io,
    /// As `Io`, with a slot of the driver's engine, which does the whole task by itself.
    Engine,
}

impl Kind {
    /// Whether it takes a grant on a layer, and no processor.
    pub fn is_io(self) -> bool {
        self != Kind::Compute
    }
}

/// Which way the bytes of an I/O task go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum Way {
    /// From the layer.
    Read,
    /// To the layer.
    Write,
    /// Either, or not known: it counts as both.
    #[default]
    Both,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 3] = [Way::Read, Way::Write, Way::Both];

    /// Whether bytes that go this way take from what there is for the other.
    pub(crate) fn meets(self, other: Way) -> bool {
        self == other || self == Way::Both || other == Way::Both
    }
}

/// One storage layer as the scheduler sees it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Layer {
    /// Its name, for messages.
    pub name: String,
    /// Bytes a second that may be granted at once, both ways together; `None` is without limit.
    pub bandwidth: Option<u64>,
    /// Likewise, of those that are read.
    pub read_bandwidth: Option<u64>,
    /// Likewise, of those that are written.
    pub write_bandwidth: Option<u64>,
    /// Bytes that may be granted at once; `None` is without limit.
    pub capacity: Option<u64>,
    /// The node that it is attached to; `None` when every node reaches it.
    pub node: Option<NodeId>,
    /// When files leave it although I/O goes on; `None`: never.
    pub watermarks: Option<Watermarks>,
    /// What it was measured to take in all from so many tasks at once, in bytes a second; empty:
    /// nobody did.
    pub measured: Vec<(u32, u64)>,
}

/// How full of files a layer gets before they move down without waiting for a pause, in thousandths
/// of what can be used of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// Above this, files that nobody will use begin to leave, and nothing is prefetched to it.
    pub high: u32,
    /// At this, they stay again. Not more than `high`.
    pub low: u32,
}

impl Layer {
    /// Bytes a second that one task may be granted, whose bytes go that way.
    pub fn limit(&self, way: Way) -> Option<u64> {
        let read = self.read_bandwidth.filter(|_| way != Way::Write);
        let write = self.write_bandwidth.filter(|_| way != Way::Read);
        [self.bandwidth, read, write].into_iter().flatten().min()
    }
}

/// In which order ready I/O tasks get grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PolicyKind {
    /// Arrival; where the head does not fit, the next is tried.
    #[default]
    Fcfs,
    /// Bandwidth, descending; where the head does not fit, or is better off waiting for a higher
    /// layer, the others wait with it.
    Priority,
    /// Bandwidth, descending; while the head waits, those begin that end before it can.
    Backfilling,
}

/// What a scheduler is made for.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The layers, in any order; [`LayerId`] is the position here.
    pub layers: Vec<Layer>,
    /// The order of grants.
    pub policy: PolicyKind,
    /// Processors of each node ([`NodeId`] is the position).
    pub processors: Vec<u32>,
    /// Whether an executor with nothing to do takes tasks that wait at another.
    pub stealing: bool,
    /// How many tasks may be sent to a compute executor ahead of time (1: none ahead).
    pub pipeline_tasks_max: u32,
    /// How much mean run time may be sent ahead, in nanoseconds.
    pub pipeline_ns_max: u64,
    /// Whether files that nobody will read move down while no I/O goes on.
    pub flush: bool,
    /// Whether files that tasks about to run will read are copied up while no I/O goes on.
    pub prefetch: bool,
    /// Whether the driver names no version of data in place, and is told of none.
    pub quiet_places: bool,
}

/// What a failure does to the rest of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// The dependents are cancelled, and leaving the session raises.
    #[default]
    Fail,
    /// The outputs stand as empty values, and the dependents run.
    Ignore,
    /// The dependents are cancelled; the rest of the program is undisturbed.
    CancelDependents,
}

/// How much of a layer a task asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Constraint {
    /// Bytes a second.
    pub bandwidth: u64,
    /// Bytes.
    pub size: u64,
    /// Of which bandwidth of the layer.
    pub way: Way,
}

/// One call, as the scheduler needs to know it.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// Which function.
    pub function: FunctionId,
    /// Its name, for messages.
    pub name: Arc<str>,
    /// Compute, I/O, or I/O by the engine.
    pub kind: Kind,
    /// Processors that a compute task takes (at least 1); 0 for I/O.
    pub cpus: u32,
    /// Higher runs first.
    pub priority: i32,
    /// How often it may be run again after a failure.
    pub retries: u32,
    /// Nanoseconds from its start to the moment it is given up.
    pub timeout: Option<u64>,
    /// What its failure means.
    pub on_failure: OnFailure,
    /// What an I/O task asks of a layer.
    pub constraint: Constraint,
    /// How an I/O task's bandwidth is chosen; not `Static`: that of the constraint is not used.
    pub tuning: Tuning,
    /// How many values it returns, each a version of its own.
    pub returns: u32,
    /// What it uses, apart from its returns.
    pub accesses: Vec<Access>,
    /// Bytes that it is expected to produce (spreads producers over nodes); 0 if unknown.
    pub produces: u64,
    /// Only this layer will do (the file is there already); `None`: any.
    pub layer: Option<LayerId>,
}

/// Why a submission was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// More processors than any node has.
    TooManyProcessors {
        /// What was asked for.
        asked: u32,
        /// What the largest node has.
        most: u32,
    },
    /// No layer could ever satisfy the constraint, even when idle.
    NoLayer {
        /// What was asked for.
        asked: Constraint,
        /// The name of the layer that comes nearest and why it does not do.
        nearest: String,
    },
    /// One task uses overlapping regions of a datum twice with a write among them.
    SelfConflict {
        /// Positions of the two accesses in [`TaskSpec::accesses`].
        accesses: (usize, usize),
    },
    /// Dimensions of a region differ from those of earlier regions of the datum, or a span
    /// is empty or reversed.
    BadRegion {
        /// Position of the access in [`TaskSpec::accesses`].
        access: usize,
    },
    /// The version or datum is not there (any more).
    Stale {
        /// Position of the access in [`TaskSpec::accesses`].
        access: usize,
    },
    /// A write to a version by name, or a grouped direction where it makes no sense.
    BadDirection {
        /// Position of the access in [`TaskSpec::accesses`].
        access: usize,
    },
}

/// Why a task did not produce its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The body raised; the payload is the driver's (a pickled exception).
    Raised(Arc<[u8]>),
    /// It ran longer than its timeout, in nanoseconds.
    TimedOut(u64),
    /// The executor was lost; the text says how (a signal, an exit code).
    ExecutorLost(Arc<str>),
    /// The program cancelled it.
    Cancelled,
    /// No storage layer can take it any more; the text says which are down or full.
    NoLayer(Arc<str>),
}

/// A failure with the way it came: the root first in `cause`, names from the root to here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What happened at the root, once.
    pub cause: Cause,
    /// The name of this task.
    pub name: Arc<str>,
    /// The failure of the task before this one on the way from the root; `None`: the root.
    pub from: Option<Arc<Failure>>,
    /// What the root's failure means to the session.
    pub on_failure: OnFailure,
}

impl Drop for Failure {
    /// A chain may be as long as the program: taken apart link by link, not by recursion.
    fn drop(&mut self) {
        let mut next = self.from.take();
        while let Some(link) = next {
            next = Arc::into_inner(link).and_then(|mut failure| failure.from.take());
        }
    }
}

/// How one run of a task body ended, as the executor tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its outputs are there; bytes of each: the returns, then each access that writes a
    /// value, in order. Missing entries count as 0.
    Done(Box<[u64]>),
    /// The body raised.
    Raised(Arc<[u8]>),
}

/// What the driver reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An executor is ready to take tasks.
    ExecutorUp {
        /// Its identifier, new.
        executor: ExecutorId,
        /// What it runs.
        kind: Kind,
        /// Where it is.
        node: NodeId,
        /// How many tasks it runs at once (compute: 1).
        slots: u32,
        /// How many more it runs at once if the bandwidth of their layers limits them: tasks with
        /// a static bandwidth, and adaptive ones (only I/O executors).
        extra: u32,
    },
    /// An executor is gone, with everything that it was doing. Its reports that had come
    /// before have been handled.
    ExecutorLost {
        /// Which.
        executor: ExecutorId,
        /// The tasks whose bodies had begun. The others that were sent to it had not.
        started: Vec<TaskId>,
        /// How it ended, for messages.
        reason: Arc<str>,
    },
    /// A run of a body ended.
    Ended {
        /// Which task.
        task: TaskId,
        /// Where.
        executor: ExecutorId,
        /// How.
        outcome: Outcome,
        /// How long the body ran, in nanoseconds.
        ran: u64,
    },
    /// A run of a body is over, and its [`Event::Settled`] will come: whatever becomes of its
    /// executor, and however long that takes. What it held there is free.
    Settling {
        /// Which task.
        task: TaskId,
        /// Where it was.
        executor: ExecutorId,
        /// How long the body ran, in nanoseconds, if it ended well.
        ran: Option<u64>,
    },
    /// What a run came to that was over before.
    Settled {
        /// Which task.
        task: TaskId,
        /// How it ended.
        outcome: Outcome,
    },
    /// How many bytes a run of an I/O task moved, where the driver knows: comes before its `Ended`
    /// or `Settling`. Otherwise its declared size counts.
    Moved {
        /// Which task.
        task: TaskId,
        /// Where.
        executor: ExecutorId,
        /// Read and written.
        bytes: u64,
    },
    /// A body gave its processor back and is not over: it paused, or it returned and something
    /// outside has still to come. Its executor continues it between other tasks, by itself; `Ended`
    /// follows. Only of compute tasks (I/O tasks have no processor to give back).
    Paused {
        /// Which task.
        task: TaskId,
        /// Where.
        executor: ExecutorId,
    },
    /// A body that gave its processor back goes on, and has the processor of its executor again:
    /// what was sent there meanwhile is behind it. Nobody has to tell that of one that will soon
    /// pause again, and nothing is held up by.
    WentOn {
        /// Which task.
        task: TaskId,
        /// Where.
        executor: ExecutorId,
    },
    /// A task handed over one of its outputs before its end.
    Released {
        /// Which task.
        task: TaskId,
        /// Which of its outputs, counted as in [`Outcome::Done`].
        output: u32,
        /// Its bytes.
        size: u64,
    },
    /// A task is done with data in place that it writes: those who read them can begin. It does
    /// not run again if it fails.
    ReleasedInPlace {
        /// Which task.
        task: TaskId,
        /// Position of the access in [`TaskSpec::accesses`].
        access: u32,
    },
    /// A task handed over the next value of the stream that is its first output: that is another
    /// version now ([`Sched::outputs`](crate::Sched::outputs)), still to come.
    Yielded {
        /// Which task.
        task: TaskId,
        /// The bytes of the value.
        size: u64,
    },
    /// A body waits for the consumers of its stream: it gives its processor back, or its slot and
    /// its grant, and goes on after `Resume`.
    Stalled {
        /// Which task.
        task: TaskId,
        /// Where.
        executor: ExecutorId,
    },
    /// A body that stalled can go on, as soon as its executor takes it.
    Resume {
        /// Which task.
        task: TaskId,
    },
    /// The executor gave a task back that it had not begun (answer to `Recall`).
    Recalled {
        /// Which task.
        task: TaskId,
        /// From where.
        executor: ExecutorId,
    },
    /// The engine cannot do a task after all, and has not begun it: from now on it is one for I/O
    /// executors ([`Kind::Io`]).
    Refused {
        /// Which task.
        task: TaskId,
        /// Where.
        executor: ExecutorId,
    },
    /// The program cancels a task. No effect on one whose body may have begun.
    Cancel {
        /// Which task.
        task: TaskId,
    },
    /// The program can no longer name a version.
    Forget {
        /// Which version.
        version: VersionId,
    },
    /// Where the only complete and current copy of a file is. Comes right before the `Ended` of the
    /// task that wrote it, and after a move that the driver made of its own accord. Whatever was
    /// known of the file before, and of a second copy of it, is replaced by this.
    FileAt {
        /// Which file: a datum in place.
        datum: DatumId,
        /// The layer that its bytes take up room of; `None`: outside all layers.
        layer: Option<LayerId>,
        /// How many.
        bytes: u64,
        /// The layer of its own path; `None`: outside all layers, or not known.
        home: Option<LayerId>,
        /// Whether it goes with the session: nobody asked for it at its own path.
        scratch: bool,
    },
    /// A file that no task wrote is at its own path, where it takes up no room of the session's. It
    /// can be copied up for those who read it. Nothing new is learned of one that is known.
    FileFound {
        /// Which file: a datum in place.
        datum: DatumId,
        /// The layer of its own path.
        layer: LayerId,
        /// Its bytes.
        bytes: u64,
    },
    /// A file was deleted, or is no business of the session any more.
    FileGone {
        /// Which file.
        datum: DatumId,
    },
    /// What a `Move` asked for is done.
    MoveDone {
        /// Which file.
        datum: DatumId,
        /// Its bytes.
        bytes: u64,
    },
    /// A `Move` could not be done, or not to its end: everything is as it was before.
    MoveFailed {
        /// Which file.
        datum: DatumId,
        /// Because there was no room where it was to go.
        no_room: bool,
    },
    /// Others use the device of a layer too: what the session can use of it is another now.
    LayerCapacity {
        /// Which layer.
        layer: LayerId,
        /// Bytes that the session may take up there, its own included; `None`: without limit.
        bytes: Option<u64>,
    },
    /// A layer takes nothing (it fails, or hangs, or is not there).
    LayerDown {
        /// Which layer.
        layer: LayerId,
    },
    /// A layer that was down works again.
    LayerUp {
        /// Which layer.
        layer: LayerId,
    },
    /// A run of an I/O task failed because of its layer (full, read-only, broken): comes instead of
    /// its `Ended`. It may run again on another layer, and that is no retry.
    Unplaced {
        /// Which task.
        task: TaskId,
        /// Where.
        executor: ExecutorId,
        /// How long the body ran, in nanoseconds.
        ran: u64,
        /// What the task fails of if no other layer could ever take it: as [`Cause::Raised`].
        failure: Arc<[u8]>,
    },
    /// Nothing but time has passed.
    Tick,
}

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Send a task to an executor.
    Run {
        /// Which task.
        task: TaskId,
        /// Where to.
        executor: ExecutorId,
        /// 1 for the first time that it is sent, then 2 ... (also where it came back unbegun).
        attempt: u32,
        /// The layer of the grant, for I/O tasks.
        layer: Option<LayerId>,
    },
    /// Try to take a task back that its executor has not begun; `Recalled` if it could be,
    /// nothing if not.
    Recall {
        /// Which task.
        task: TaskId,
        /// From where.
        executor: ExecutorId,
    },
    /// Let a body that stalled go on.
    Resume {
        /// Which task.
        task: TaskId,
        /// Where.
        executor: ExecutorId,
    },
    /// End an executor at once. `ExecutorLost` follows; replace it.
    Kill {
        /// Which.
        executor: ExecutorId,
    },
    /// An executor takes no new tasks; start a replacement now, it will be killed later.
    Retire {
        /// Which.
        executor: ExecutorId,
    },
    /// A version has come, or never will: fill its future.
    Resolve {
        /// Which version.
        version: VersionId,
        /// The failure, or `None`: it is there.
        failure: Option<Arc<Failure>>,
    },
    /// Nobody will read this version again: give its memory back. Its identifier is dead.
    Discard {
        /// Which version.
        version: VersionId,
    },
    /// Copy a file to another layer. `MoveDone` or `MoveFailed` follows, and until then no task
    /// that writes the file is sent. Tasks that read it are: the old copy stays until the new one
    /// is complete, and then until those that had it open have ended.
    Move {
        /// Which file.
        datum: DatumId,
        /// The layer that it is on.
        from: LayerId,
        /// The layer that it goes to; `None`: to its own path, outside all layers.
        to: Option<LayerId>,
        /// Whether the original stays: the file has two copies from then on, and the upper one is
        /// to be read.
        keep: bool,
    },
    /// The upper copy of a file that has two is needed no more, or its room is: remove it. Where a
    /// writer is about to use another region of the file, tasks that were sent to read this one may
    /// still run: then it has to stay until they have ended. Else nobody uses it.
    DropCopy {
        /// Which file.
        datum: DatumId,
        /// The layer of the upper copy.
        layer: LayerId,
    },
    /// Nobody can read this scratch file any more: remove it. `FileGone` follows. Not sent where
    /// there is one layer without a limit, and neither flush nor prefetch.
    Remove {
        /// Which file.
        datum: DatumId,
    },
    /// I/O goes on: pause all moves after the chunk that is under way. Or no more: continue.
    HoldMoves {
        /// Whether to pause.
        hold: bool,
    },
    /// The task is over for good, and forgotten. Comes after its last `Resolve`.
    Forgotten {
        /// Which task.
        task: TaskId,
        /// How it ended: `None` is well.
        failure: Option<Arc<Failure>>,
    },
}
