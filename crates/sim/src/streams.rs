//! Streams: the driver's account of producers and of what the program took, kept as the real
//! driver keeps it, and the bodies that yield, stall and go on.

use std::collections::VecDeque;

use graph::VersionId;
use sched::{Event, ExecutorId, Feed, State, StreamAccount};

use crate::checkers::Fault;
use crate::executor::Message;
use crate::faults::Delay;
use crate::hash::mix_all;
use crate::program::StreamPlan;
use crate::values::handed;
use crate::world::{Happening, Task, World};
use crate::Canary;

/// What the driver keeps of a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    plan: StreamPlan,
    account: StreamAccount,
    /// The version that the program waits for; `None`: it is through with the stream.
    awaited: Option<VersionId>,
    /// The versions after that one, each named once.
    ahead: VecDeque<VersionId>,
}

/// What an executor is told of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Credit {
    /// Values that were handed over in earlier runs.
    pub(crate) made: u32,
    /// What all values cost that were handed over.
    pub(crate) spent: u64,
    /// What they may cost.
    pub(crate) granted: u64,
    /// Nobody wants more.
    pub(crate) closed: bool,
}

impl Credit {
    fn add(&mut self, later: Credit) {
        self.granted = self.granted.max(later.granted);
        self.closed |= later.closed;
    }
}

impl Stream {
    /// Its producer is told how far it may go.
    fn grant(&mut self) -> Credit {
        let granted = self.account.grant();
        let (made, spent) = (self.account.made() as u32, self.account.spent());
        Credit { made, spent, granted, closed: self.account.is_closed() }
    }
}

/// A body that yields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Yielding {
    pub(crate) plan: StreamPlan,
    pub(crate) credit: Credit,
    /// The value that is next.
    pub(crate) number: u32,
    /// The value in place of which it ends.
    pub(crate) last: u32,
    /// How long each takes.
    pub(crate) interval: u64,
    /// It waits to be granted more.
    pub(crate) waits: bool,
}

/// The driver's side.
impl World<'_> {
    pub(crate) fn open_stream(&mut self, task: usize, plan: StreamPlan, first: VersionId) {
        let extra = u64::from(self.canary == Some(Canary::GrantAhead)) * plan.dearest;
        self.checks.streams.opened(task, plan);
        let account = StreamAccount::new(plan.buffer + extra);
        let stream = Stream { plan, account, awaited: Some(first), ahead: VecDeque::new() };
        self.streams.insert(task, stream);
    }

    /// A run of a task is sent: what its executor is told of its stream.
    pub(crate) fn credit_for(&mut self, task: usize) -> Credit {
        let Some(stream) = self.streams.get_mut(&task) else { return Credit::default() };
        stream.grant()
    }

    /// A producer handed over its next value.
    pub(crate) fn yielded(&mut self, task: usize, number: u32, value: u64) -> Result<(), Fault> {
        let (id, version) = (self.task(task).id, self.task(task).outputs[0]);
        if self.sched.state(id) == Some(State::Abandoned) {
            return Ok(());
        }
        self.store.values.entry(version).or_insert(value);
        self.drive(Event::Yielded { task: id, size: 8 })?;
        let next = self.sched.outputs(id).first().copied();
        let there = self.checks.memory.settled(version) == Some(true);
        let next = self.checks.streams.yields(task, number, (version, there), next)?;
        self.checks.memory.named(next)?;
        self.checks.binding.returns(next);
        self.task_mut(task).outputs[0] = next;
        self.report.yielded += 1;
        let stream = self.streams.get_mut(&task).expect("it yields");
        stream.account.yielded(version, stream.plan.cost(number));
        if stream.account.is_closed() {
            self.checks.memory.unnamed(next);
            return self.drive(Event::Forget { version: next });
        }
        stream.ahead.push_back(next);
        self.feed_streams()
    }

    /// A producer waits, having made as much as it knew that it may.
    pub(crate) fn stalled(
        &mut self,
        task: usize,
        executor: ExecutorId,
        granted: u64,
    ) -> Result<(), Fault> {
        let stream = self.streams.get_mut(&task).expect("it yields");
        if !stream.account.stalls(granted) {
            return Ok(()); // it was told meanwhile, and goes on
        }
        self.checks.grants.stalled(task);
        self.checks.tuning.back(task, self.now);
        self.drive(Event::Stalled { task: self.task(task).id, executor })
    }

    /// After each event: producers go on whose consumers have used values up.
    pub(crate) fn feed_streams(&mut self) -> Result<(), Fault> {
        self.checks.streams.look(&self.checks.memory);
        let hungry = self.streams.iter().filter(|(_, stream)| stream.account.is_hungry());
        for task in hungry.map(|(task, _)| *task).collect::<Vec<usize>>() {
            self.feed(task)?;
        }
        Ok(())
    }

    fn feed(&mut self, task: usize) -> Result<(), Fault> {
        let stream = self.streams.get_mut(&task).expect("listed");
        let idle = self.sched.has_idle();
        match stream.account.feed(idle, |version| self.sched.readers(version)) {
            Feed::Wait => {}
            Feed::Resume => return self.drive(Event::Resume { task: self.task(task).id }),
            Feed::Grant => self.grant_more(task),
        }
        Ok(())
    }

    /// A producer that had stalled has a processor again.
    pub(crate) fn resume(&mut self, task: usize, executor: ExecutorId) -> Result<(), Fault> {
        let plan = self.task(task).plan;
        self.checks.grants.resumed(plan, executor)?;
        let stream = self.streams.get_mut(&task).expect("it stalled");
        stream.account.drop_used_up(|version| self.sched.readers(version));
        self.grant_more(task);
        Ok(())
    }

    fn grant_more(&mut self, task: usize) {
        let Some(executor) = self.checks.dead.sent_to(task) else { return };
        let stream = self.streams.get_mut(&task).expect("the caller has it");
        let credit = stream.grant();
        let name = mix_all(&[task as u64, u64::from(executor.0), credit.granted]);
        let delay = self.faults.delay(Delay::Send, name);
        let at = &mut self.executors[executor.0 as usize];
        at.last_sent_at = at.last_sent_at.max(self.now + delay);
        let arrives = at.last_sent_at;
        self.at(arrives, Happening::Granted(executor.0, task, credit));
    }

    /// The program comes for the next value of a stream, and takes it if it is there. `Some`: it
    /// has to wait for this version.
    pub(crate) fn take_next(
        &mut self,
        task: usize,
        handle: usize,
    ) -> Result<Option<VersionId>, Fault> {
        let Some(stream) = self.streams.get_mut(&task) else { return Ok(None) };
        let Some(version) = stream.awaited else { return Ok(None) };
        stream.account.come();
        self.checks.streams.comes(task);
        let settled = self.checks.memory.settled(version);
        let stream = self.streams.get_mut(&task).expect("looked up above");
        match settled {
            Some(true) if stream.account.take() => {
                stream.awaited = stream.ahead.pop_front();
                self.checks.streams.takes(task, version)?;
                self.handles[handle] = Some(version);
            }
            // The end, or what the producer failed of.
            Some(_) => self.let_go(task)?,
            None => {}
        }
        self.feed_streams()?;
        Ok(settled.is_none().then_some(version))
    }

    /// The program names the version that it would wait for next.
    pub(crate) fn awaited(&self, task: usize) -> Option<VersionId> {
        self.streams.get(&task).and_then(|stream| stream.awaited)
    }

    /// The program has no use for the version that comes next.
    fn let_go(&mut self, task: usize) -> Result<(), Fault> {
        let stream = self.streams.get_mut(&task).expect("the caller has it");
        let Some(version) = stream.awaited.take() else { return Ok(()) };
        self.checks.memory.unnamed(version);
        self.drive(Event::Forget { version })
    }

    /// The program wants no more of a stream: its producer ends at its next value.
    pub(crate) fn close_stream(&mut self, task: usize) -> Result<(), Fault> {
        let Some(stream) = self.streams.get_mut(&task) else { return Ok(()) };
        if !stream.account.close() {
            return Ok(());
        }
        let over = stream.account.is_over();
        for version in std::mem::take(&mut stream.ahead) {
            self.checks.memory.unnamed(version);
            self.drive(Event::Forget { version })?;
        }
        self.checks.streams.closed(task);
        if !over {
            self.cancel(task)?;
            // What runs is asked to end: it is not cancelled, and what it made is good.
            self.grant_more(task);
        }
        self.let_go(task)
    }

    /// No producer goes on whose values nobody will take.
    pub(crate) fn close_streams(&mut self) -> Result<(), Fault> {
        let open: Vec<usize> = self.streams.keys().copied().collect();
        open.into_iter().try_for_each(|task| self.close_stream(task))
    }

    /// Nothing is left to happen: the program gives up a stream whose producer waits for it with
    /// reason. `false`: there is none.
    pub(crate) fn give_up_stream(&mut self) -> Result<bool, Fault> {
        let waits = |task: &usize, stream: &Stream| {
            let account = &stream.account;
            let waits = account.is_stalled() && !account.is_closed() && !account.is_over();
            waits && self.checks.streams.is_full(*task)
        };
        let first = self.streams.iter().find(|(task, stream)| waits(task, stream));
        let Some(task) = first.map(|(task, _)| *task) else { return Ok(false) };
        let ready = |other: &&Task<'_>| self.sched.state(other.id) == Some(State::Ready);
        if let Some(waits) = self.tasks.iter().flatten().find(ready) {
            let message = format!("nothing will happen while task {task} stalls, but it is ready");
            return Err(Fault::of_task("liveness", waits.plan.task, message));
        }
        self.tell(|| format!("the program gives up the stream of task {task}"));
        self.close_stream(task)?;
        Ok(true)
    }

    /// A task is over.
    pub(crate) fn stream_is_over(&mut self, task: usize, well: bool) -> Result<(), Fault> {
        match self.streams.get_mut(&task) {
            Some(stream) => {
                stream.account.end();
                self.checks.streams.over(task, well)
            }
            None => Ok(()),
        }
    }
}

/// The executors' side.
impl World<'_> {
    /// A body that yields goes as far as it may: to its next value, its end, or a halt.
    pub(crate) fn body_advances(&mut self, number: u32, serial: u64) -> Result<(), Fault> {
        let executor = &mut self.executors[number as usize];
        let Some(body) = executor.running.iter_mut().find(|body| body.serial == serial) else {
            return Ok(());
        };
        let yielding = body.yielding.as_mut().expect("it yields");
        if yielding.credit.closed {
            return self.body_is_closed(number, serial);
        }
        let credit = yielding.credit;
        if yielding.number < credit.made || credit.spent < credit.granted {
            let interval = yielding.interval;
            self.later(interval, Happening::Yield(number, serial));
            return Ok(());
        }
        (yielding.waits, body.paused) = (true, true);
        let (task, granted) = (body.task, credit.granted);
        self.tell(|| format!("  body of task {task} stalls on e{number}"));
        self.checks.grants.body_over(task);
        self.write_report(number, Message::Stalled { task, granted });
        self.look_at_line(number)
    }

    /// It has its next value, or finds that there is none.
    pub(crate) fn body_yields(&mut self, number: u32, serial: u64) -> Result<(), Fault> {
        let executor = &mut self.executors[number as usize];
        let Some(body) = executor.running.iter_mut().find(|body| body.serial == serial) else {
            return Ok(());
        };
        let yielding = body.yielding.as_mut().expect("it yields");
        if yielding.number == yielding.last {
            return self.body_ends(number, serial);
        }
        let at = yielding.number;
        yielding.number += 1;
        let (task, value) = (body.task, handed(body.body.digest, at));
        if at >= yielding.credit.made {
            yielding.credit.spent += yielding.plan.cost(at);
            self.write_report(number, Message::Yielded { task, number: at, value });
        }
        self.body_advances(number, serial)
    }

    /// A run that is ended early leaves nothing behind that looks finished.
    fn body_is_closed(&mut self, number: u32, serial: u64) -> Result<(), Fault> {
        let executor = &mut self.executors[number as usize];
        let body = executor.running.iter_mut().find(|body| body.serial == serial);
        let body = body.expect("the caller has it");
        let task = self.tasks[body.task].as_ref().expect("it runs");
        body.raises |= task.used.iter().any(|used| used.direction.writes());
        self.body_ends(number, serial)
    }

    /// An executor hears how far a stream may go: one that waits goes on before others begin.
    pub(crate) fn granted(
        &mut self,
        number: u32,
        task: usize,
        credit: Credit,
    ) -> Result<(), Fault> {
        let executor = &mut self.executors[number as usize];
        let Some(body) = executor.running.iter_mut().find(|body| body.task == task) else {
            // It may not have begun here: it does so knowing this.
            if executor.has_in_line(task) {
                self.task_mut(task).credit.add(credit);
            }
            return Ok(());
        };
        let yielding = body.yielding.as_mut().expect("it yields");
        yielding.credit.add(credit);
        if std::mem::take(&mut yielding.waits) {
            executor.going_on.push_back(body.serial);
        }
        self.look_at_line(number)
    }

    /// A body that stalled goes on. To end it needs no processor.
    pub(crate) fn body_goes_on(&mut self, number: u32, serial: u64) -> Result<(), Fault> {
        let executor = &mut self.executors[number as usize];
        let Some(body) = executor.running.iter_mut().find(|body| body.serial == serial) else {
            return Ok(());
        };
        body.paused = false;
        let (task, yielding) = (body.task, body.yielding.expect("it yields"));
        self.tell(|| format!("  body of task {task} goes on on e{number}"));
        if !yielding.credit.closed {
            self.checks.grants.body(self.task(task).plan, ExecutorId(number))?;
        }
        self.body_advances(number, serial)
    }
}
