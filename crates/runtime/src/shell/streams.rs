//! Streams: tasks that hand their values over one by one, in a number that nobody knew.
//!
//! The output of such a task is the version of its next value. When that comes, the output becomes
//! another version, so the program always has a future to wait for: of the next value, or of the
//! end. A value is *used up* when the program has taken it and come back for the next one, and no
//! task is left to read it, or when nobody can name it any more. The producer may be ahead by
//! `buffer` values that are not used up. Then it stalls: its worker, or its slot and its grant, go
//! to others, so that a session with one worker does not wait for itself.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use exec::wire::{Credit, ToWorker};
use sched::{Event, ExecutorId, TaskId, VersionId};

use super::state::{Standing, State, Version};
use super::workers::Worker;
use super::{SessionError, Shared};
use crate::futures::Handle;
use crate::store::Value;

/// What is kept of a stream until the program lets go of it and its producer is over.
#[derive(Debug)]
pub(crate) struct Producer {
    buffer: u64,
    /// Values that were handed over.
    made: u64,
    /// Those among them that the program took.
    taken: u64,
    /// Whether the program may still be about to use the last one that it took.
    in_hand: bool,
    /// The versions after the one that the program waits for, each named once.
    ahead: VecDeque<VersionId>,
    /// Values that are not used up, with their numbers.
    kept: VecDeque<(u64, VersionId)>,
    /// How far the producer was told that it may go.
    granted: u64,
    stalled: bool,
    /// The scheduler was asked to let it go on.
    asked: bool,
    /// The program wants no more of it.
    closed: bool,
    /// The task is over.
    over: bool,
}

impl Producer {
    fn new(buffer: u32) -> Producer {
        Producer {
            buffer: buffer.into(),
            made: 0,
            taken: 0,
            in_hand: false,
            ahead: VecDeque::new(),
            kept: VecDeque::new(),
            granted: buffer.into(),
            stalled: false,
            asked: false,
            closed: false,
            over: false,
        }
    }

    /// How far it may go, as far as is known.
    fn may(&self) -> u64 {
        self.made - self.kept.len() as u64 + self.buffer
    }

    /// Whether it should be told soon that it may go further.
    fn is_hungry(&self) -> bool {
        !self.over && !self.closed && (self.granted - self.made) * 2 <= self.buffer
    }

    /// Whether it has made all that it was told that it may.
    fn is_out(&self) -> bool {
        self.granted == self.made
    }

    /// Drops values that are used up, given how many tasks are still to read a version (`None`:
    /// nobody can name it). Mostly they are used up in order, and a look at all of them after
    /// each event would cost as much as the buffer is long: those behind one that is not used up
    /// count once the producer can make no more.
    fn drop_used_up(&mut self, readers: impl Fn(VersionId) -> Option<u32>) {
        let (taken, left) = (self.taken, self.taken - u64::from(self.in_hand));
        let is_used_up = |(number, version): &(u64, VersionId)| match readers(*version) {
            None => *number < taken,
            Some(readers) => *number < left && readers == 0,
        };
        while self.kept.front().is_some_and(is_used_up) {
            self.kept.pop_front();
        }
        if self.is_out() {
            self.kept.retain(|value| !is_used_up(value));
        }
    }
}

impl State {
    /// The output of a new task is a stream.
    pub(super) fn open_stream(&mut self, id: TaskId, buffer: u32) {
        self.streams.insert(id.to_bits(), Producer::new(buffer));
    }

    /// What a worker is told of the stream of a task that it is to run.
    pub(super) fn credit_for(&self, id: TaskId) -> Option<Credit> {
        let stream = self.streams.get(&id.to_bits())?;
        Some(Credit { made: stream.made, granted: stream.may(), closed: stream.closed })
    }

    /// A run of the producer begins.
    pub(super) fn stream_begins(&mut self, id: TaskId) {
        if let Some(stream) = self.streams.get_mut(&id.to_bits()) {
            (stream.granted, stream.stalled, stream.asked) = (stream.may(), false, false);
            self.look_at_stream(id);
        }
    }

    /// Notes whether the consumers of a stream have to be watched.
    fn look_at_stream(&mut self, id: TaskId) {
        let bits = id.to_bits();
        if self.streams.get(&bits).is_some_and(Producer::is_hungry) {
            self.hungry.insert(bits);
        } else {
            self.hungry.remove(&bits);
        }
    }

    /// A producer handed over its next value.
    pub(super) fn yielded(
        &mut self,
        worker: &Worker,
        id: TaskId,
        attempt: u32,
        number: u64,
        value: Value,
    ) -> Result<(), &'static str> {
        let given_up = self.sched.state(id) == Some(sched::State::Abandoned);
        if given_up || !self.is_at(worker.executor, id, attempt) {
            return Ok(());
        }
        let bits = id.to_bits();
        let stream = self.streams.get(&bits).ok_or("it handed over a value of no stream")?;
        if number != stream.made || number >= stream.granted {
            return Err("it handed over a value that was not the next one");
        }
        let version = self.sched.outputs(id)[0];
        let size = value.len() as u64;
        if let Some(made) = self.versions.get_mut(version) {
            (made.standing, made.value) = (Standing::There, Some(value));
        }
        let event = Event::Yielded { task: id, size };
        self.sched.handle(exec::now_ns(), event, &mut self.out);
        let next = self.sched.outputs(id)[0];
        self.versions.insert(next, Version::pending(id));
        let stream = self.streams.get_mut(&bits).expect("looked up above");
        stream.made += 1;
        if stream.closed {
            let forget = Event::Forget { version: next };
            self.sched.handle(exec::now_ns(), forget, &mut self.out);
        } else {
            stream.ahead.push_back(next);
            stream.kept.push_back((number, version));
        }
        self.look_at_stream(id);
        Ok(())
    }

    /// A producer waits, having made as much as it knew that it may.
    pub(super) fn stalled(&mut self, worker: &Worker, id: TaskId, attempt: u32, made: u64) {
        if !self.is_at(worker.executor, id, attempt) {
            return;
        }
        let Some(stream) = self.streams.get_mut(&id.to_bits()) else { return };
        if stream.closed || stream.granted > made {
            return; // it was told meanwhile, and goes on
        }
        stream.stalled = true;
        self.leave_layer(id);
        let stalled = Event::Stalled { task: id, executor: worker.executor };
        self.sched.handle(exec::now_ns(), stalled, &mut self.out);
        self.look_at_stream(id);
        self.feed(id);
    }

    /// Lets producers go on whose consumers have used values up.
    pub(super) fn feed_streams(&mut self) {
        for bits in self.hungry.iter().copied().collect::<Vec<u64>>() {
            self.feed(TaskId::from_bits(bits));
        }
    }

    /// Lets the producer of a stream go on if its consumers have used values up.
    fn feed(&mut self, id: TaskId) {
        let Some(stream) = self.streams.get_mut(&id.to_bits()) else { return };
        if stream.asked || !stream.is_hungry() {
            return;
        }
        stream.drop_used_up(|version| self.sched.readers(version));
        let may = stream.may();
        if may <= stream.granted {
            return;
        }
        if stream.stalled {
            stream.asked = true;
            self.sched.handle(exec::now_ns(), Event::Resume { task: id }, &mut self.out);
        } else if stream.is_out() || (may - stream.granted) * 2 >= stream.buffer {
            self.grant_more(id);
        }
    }

    /// A producer that had stalled has a processor again.
    pub(super) fn resume(&mut self, id: TaskId, executor: ExecutorId) {
        if self.tasks.get(id).and_then(|task| task.sent.as_ref()).map(|at| at.executor)
            == Some(executor)
        {
            if let Some(stream) = self.streams.get_mut(&id.to_bits()) {
                stream.drop_used_up(|version| self.sched.readers(version));
            }
            self.grant_more(id);
        }
    }

    fn grant_more(&mut self, id: TaskId) {
        let Some(stream) = self.streams.get_mut(&id.to_bits()) else { return };
        let Some(sent) = self.tasks.get(id).and_then(|task| task.sent.as_ref()) else { return };
        let (Some(worker), Some(claim)) = (self.workers.all.get_mut(&sent.executor.0), sent.claim)
        else {
            return;
        };
        (stream.granted, stream.stalled, stream.asked) = (stream.may(), false, false);
        let (granted, closed) = (stream.granted, stream.closed);
        worker.tell(&ToWorker::Granted { claim: claim.0, granted, closed });
        self.look_at_stream(id);
    }

    /// The program takes the value that it waited for, which is there: gives the future of what
    /// comes after it. `None`: that was the end.
    fn take_from(&mut self, shared: &Arc<Shared>, id: TaskId) -> Option<Handle> {
        let stream = self.streams.get_mut(&id.to_bits())?;
        if stream.closed || stream.taken == stream.made {
            return None;
        }
        stream.taken += 1;
        stream.in_hand = true;
        let next = stream.ahead.pop_front().expect("there is always a version to come");
        self.feed(id);
        Some(self.handle_of(shared, next))
    }

    /// The program comes for the next value: it will not use the last one any more, except by the
    /// tasks that it has called.
    fn come_to(&mut self, id: TaskId) {
        if let Some(stream) = self.streams.get_mut(&id.to_bits()) {
            stream.in_hand = false;
            self.feed(id);
        }
    }

    /// The program wants no more of a stream: its producer ends at its next value.
    pub(super) fn close_stream(&mut self, shared: &Arc<Shared>, id: TaskId) {
        let bits = id.to_bits();
        let Some(stream) = self.streams.get_mut(&bits) else { return };
        if std::mem::replace(&mut stream.closed, true) {
            return;
        }
        stream.kept.clear();
        let now = exec::now_ns();
        for version in std::mem::take(&mut stream.ahead) {
            self.sched.handle(now, Event::Forget { version }, &mut self.out);
        }
        if stream.over {
            self.streams.remove(&bits);
            return;
        }
        self.hungry.remove(&bits);
        self.sched.handle(now, Event::Cancel { task: id }, &mut self.out);
        self.carry_out(shared);
        // What runs is asked to end: it is not cancelled, and what it made is good.
        self.grant_more(id);
    }

    /// No producer goes on whose values nobody will take.
    pub(crate) fn close_streams(&mut self, shared: &Arc<Shared>) {
        let open = self.streams.iter().filter(|(_, stream)| !stream.over);
        for bits in open.map(|(bits, _)| *bits).collect::<Vec<u64>>() {
            self.close_stream(shared, TaskId::from_bits(bits));
        }
    }

    /// A task is over.
    pub(super) fn stream_is_over(&mut self, id: TaskId) {
        let bits = id.to_bits();
        let Some(stream) = self.streams.get_mut(&bits) else { return };
        stream.over = true;
        if stream.closed {
            self.streams.remove(&bits);
        }
        self.hungry.remove(&bits);
    }
}

/// The stream of a task, as the program has it. Dropping it ends the producer.
pub struct Stream {
    task: TaskId,
    shared: Arc<Shared>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({:?})", self.task)
    }
}

impl Stream {
    pub(super) fn new(task: TaskId, shared: &Arc<Shared>) -> Stream {
        Stream { task, shared: Arc::clone(shared) }
    }

    /// The program comes for the next value, and is done with the last one but for the tasks that
    /// it has called.
    ///
    /// # Errors
    /// The session ended.
    pub fn come(&self) -> Result<(), SessionError> {
        self.shared.with(|state| state.come_to(self.task))
    }

    /// Takes the value whose future the caller has and that is there. Gives the future of what
    /// comes after it; `None`: there was no value, that was the end.
    ///
    /// # Errors
    /// The session ended.
    pub fn take(&self) -> Result<Option<Handle>, SessionError> {
        self.shared.with(|state| state.take_from(&self.shared, self.task))
    }

    /// Wants no more: the producer ends at its next value, or does not begin.
    pub fn close(&self) {
        // A session that ended has closed it.
        let _ = self.shared.with(|state| state.close_stream(&self.shared, self.task));
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(number: u64) -> VersionId {
        VersionId::from_bits(number)
    }

    proptest! {
        // `readers`: of each value that was made, in order; `None`: nobody can name it.
        #[test]
        fn values_are_dropped_when_they_are_used_up_and_all_of_them_before_the_producer_waits(
            readers in proptest::collection::vec(proptest::option::of(0..2u32), 1..12),
            taken in 0..12u64,
            in_hand in any::<bool>(),
            ahead in 0..2u64,
        ) {
            let made = readers.len() as u64;
            let taken = taken.min(made);
            let mut stream = Producer::new(made as u32 + 1);
            (stream.made, stream.granted, stream.taken) = (made, made + ahead, taken);
            stream.in_hand = in_hand && taken > 0;
            stream.kept = (0..made).map(|number| (number, version(number))).collect();
            stream.drop_used_up(|version| readers[version.to_bits() as usize]);

            let is_in_hand = |number| stream.in_hand && number + 1 == taken;
            let is_used_up = |number: &u64| match readers[*number as usize] {
                None => *number < taken,
                Some(readers) => *number < taken && !is_in_hand(*number) && readers == 0,
            };
            let left: Vec<u64> = stream.kept.iter().map(|(number, _)| *number).collect();
            let (gone, stays): (Vec<u64>, Vec<u64>) = (0..made).partition(is_used_up);
            if ahead == 0 {
                prop_assert_eq!(&left, &stays, "the producer can make no more");
            }
            prop_assert!(stays.iter().all(|number| left.contains(number)));
            prop_assert!(left.first().is_none_or(|number| !gone.contains(number)));
            prop_assert_eq!(stream.may(), made - left.len() as u64 + stream.buffer);
        }
    }
}
