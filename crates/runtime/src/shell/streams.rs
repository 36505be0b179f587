//! Streams: tasks that hand their values over one by one, in a number that nobody knew.
//!
//! The output of such a task is the version of its next value. When that comes, the output becomes
//! another version, so the program always has a future to wait for: of the next value, or of the
//! end. How far the producer may go is the scheduler's account ([`StreamAccount`]).

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use exec::wire::{Credit, Price, ToWorker};
use sched::{Event, ExecutorId, Feed, StreamAccount, TaskId, VersionId};

use super::mapping::Mapping;
use super::state::{Standing, State, Version};
use super::workers::Worker;
use super::{SessionError, Shared};
use crate::futures::Handle;
use crate::store::Value;

/// What the producer of a stream may be ahead of its consumers by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamBuffer {
    /// So many values.
    Values(u32),
    /// 16 values, and more of them while they are small: 1,024 of at most 16 KiB.
    Automatic,
}

const AUTOMATIC_BYTES: u64 = 16 << 20;
const AUTOMATIC_PRICE: Price = Price { least: AUTOMATIC_BYTES / 1024, most: AUTOMATIC_BYTES / 16 };

impl StreamBuffer {
    /// What all values that are not used up may cost, and what one costs.
    fn budget(self) -> (u64, Price) {
        match self {
            StreamBuffer::Values(values) => (values.into(), Price { least: 1, most: 1 }),
            StreamBuffer::Automatic => (AUTOMATIC_BYTES, AUTOMATIC_PRICE),
        }
    }
}

/// What is kept of a stream until the program lets go of it and its producer is over.
#[derive(Debug)]
pub(crate) struct Producer {
    pub(super) account: StreamAccount,
    price: Price,
    /// The versions after the one that the program waits for, each named once.
    pub(super) ahead: VecDeque<VersionId>,
    /// The calls that are made for its values without the program.
    pub(super) mapping: Option<Mapping>,
}

impl Producer {
    fn new(buffer: StreamBuffer) -> Producer {
        let (budget, price) = buffer.budget();
        let account = StreamAccount::new(budget);
        Producer { account, price, ahead: VecDeque::new(), mapping: None }
    }

    fn credit(&self) -> Credit {
        Credit {
            made: self.account.made(),
            spent: self.account.spent(),
            granted: self.account.may_spend(),
            closed: self.account.is_closed(),
            price: self.price,
        }
    }
}

impl State {
    /// The output of a new task is a stream.
    pub(super) fn open_stream(&mut self, id: TaskId, buffer: StreamBuffer) {
        self.streams.insert(id.to_bits(), Producer::new(buffer));
    }

    /// What a worker is told of the stream of a task that it is to run.
    pub(super) fn credit_for(&self, id: TaskId) -> Option<Credit> {
        self.streams.get(&id.to_bits()).map(Producer::credit)
    }

    /// A run of the producer begins.
    pub(super) fn stream_begins(&mut self, id: TaskId) {
        if let Some(stream) = self.streams.get_mut(&id.to_bits()) {
            stream.account.grant();
            self.look_at_stream(id);
        }
    }

    /// Notes whether the consumers of a stream have to be watched.
    fn look_at_stream(&mut self, id: TaskId) {
        let bits = id.to_bits();
        if self.streams.get(&bits).is_some_and(|stream| stream.account.is_hungry()) {
            self.hungry.insert(bits);
        } else {
            self.hungry.remove(&bits);
        }
    }

    /// A producer handed over its next value.
    pub(super) fn yielded(
        &mut self,
        shared: &Arc<Shared>,
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
        if number != stream.account.made() || stream.account.is_out() {
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
        stream.account.yielded(version, stream.price.of(size));
        if stream.account.is_closed() {
            let forget = Event::Forget { version: next };
            self.sched.handle(exec::now_ns(), forget, &mut self.out);
        } else {
            stream.ahead.push_back(next);
            self.call_for_values(shared, id);
        }
        self.look_at_stream(id);
        Ok(())
    }

    /// A producer waits since `at_ns`, having made as much as it knew that it may.
    pub(super) fn stalled(
        &mut self,
        worker: &mut Worker,
        id: TaskId,
        attempt: u32,
        granted: u64,
        at_ns: u64,
    ) {
        if !self.is_at(worker.executor, id, attempt) {
            return;
        }
        let Some(stream) = self.streams.get_mut(&id.to_bits()) else { return };
        if !stream.account.stalls(granted) {
            return; // it was told meanwhile, and goes on
        }
        worker.pauses(at_ns);
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
    pub(super) fn feed(&mut self, id: TaskId) {
        let Some(stream) = self.streams.get_mut(&id.to_bits()) else { return };
        let idle = self.sched.has_idle();
        match stream.account.feed(idle, |version| self.sched.readers(version)) {
            Feed::Wait => {}
            Feed::Resume => {
                self.sched.handle(exec::now_ns(), Event::Resume { task: id }, &mut self.out);
            }
            Feed::Grant => self.grant_more(id),
        }
    }

    /// A producer that had stalled has a processor again.
    pub(super) fn resume(&mut self, id: TaskId, executor: ExecutorId) {
        if self.tasks.get(id).and_then(|task| task.sent.as_ref()).map(|at| at.executor)
            == Some(executor)
        {
            if let Some(stream) = self.streams.get_mut(&id.to_bits()) {
                stream.account.drop_used_up(|version| self.sched.readers(version));
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
        if stream.account.is_stalled() {
            worker.goes_on(exec::now_ns());
        }
        let (granted, closed) = (stream.account.grant(), stream.account.is_closed());
        worker.tell(&ToWorker::Granted { claim: claim.0, granted, closed });
        self.look_at_stream(id);
    }

    /// The program takes the value that it waited for, which is there: gives the future of what
    /// comes after it. `None`: that was the end.
    fn take_from(&mut self, shared: &Arc<Shared>, id: TaskId) -> Option<Handle> {
        let stream = self.streams.get_mut(&id.to_bits())?;
        if !stream.account.take() {
            return None;
        }
        let next = stream.ahead.pop_front().expect("there is always a version to come");
        self.feed(id);
        Some(self.handle_of(shared, next))
    }

    /// Whether a stream ended before its values did.
    fn is_stream_closed(&self, id: TaskId) -> bool {
        self.streams.get(&id.to_bits()).is_none_or(|stream| stream.account.is_closed())
    }

    /// The program comes for the next value: it will not use the last one any more, except by the
    /// tasks that it has called.
    pub(super) fn come_to(&mut self, id: TaskId) {
        if let Some(stream) = self.streams.get_mut(&id.to_bits()) {
            stream.account.come();
            self.feed(id);
        }
    }

    /// The program wants no more of a stream: its producer ends at its next value.
    pub(super) fn close_stream(&mut self, shared: &Arc<Shared>, id: TaskId) {
        let bits = id.to_bits();
        let Some(stream) = self.streams.get_mut(&bits) else { return };
        if !stream.account.close() {
            return;
        }
        let now = exec::now_ns();
        let mapped = stream.mapping.take().into_iter().flat_map(Mapping::into_names);
        for version in std::mem::take(&mut stream.ahead).into_iter().chain(mapped) {
            self.sched.handle(now, Event::Forget { version }, &mut self.out);
        }
        if stream.account.is_over() {
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
        let open = self.streams.iter().filter(|(_, stream)| !stream.account.is_over());
        for bits in open.map(|(bits, _)| *bits).collect::<Vec<u64>>() {
            self.close_stream(shared, TaskId::from_bits(bits));
        }
    }

    /// A task is over.
    pub(super) fn stream_is_over(&mut self, id: TaskId) {
        let bits = id.to_bits();
        let Some(stream) = self.streams.get_mut(&bits) else { return };
        stream.account.end();
        if stream.account.is_closed() {
            self.streams.remove(&bits);
        }
        self.hungry.remove(&bits);
    }
}

/// The stream of a task, as the program has it. Dropping it ends the producer.
pub struct Stream {
    pub(super) task: TaskId,
    pub(super) shared: Arc<Shared>,
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
    /// comes after it; `None`: there was no value, that was the end ([`Stream::is_closed`]: not
    /// that of the values).
    ///
    /// # Errors
    /// The session ended.
    pub fn take(&self) -> Result<Option<Handle>, SessionError> {
        self.shared.with(|state| state.take_from(&self.shared, self.task))
    }

    /// Whether somebody closed it, or its session's block was left, before its values ended.
    pub fn is_closed(&self) -> bool {
        self.shared.with(|state| state.is_stream_closed(self.task)).unwrap_or(true)
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
