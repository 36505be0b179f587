//! Modelled executors: a line of tasks that were sent, bodies that run, reports on their way.

use std::collections::VecDeque;
use std::sync::Arc;

use sched::{Event, ExecutorId, Kind, NodeId, Outcome, State, Tuning};

use crate::checkers::Fault;
use crate::faults::{Death, Delay};
use crate::hash::mix_all;
use crate::values::{returned, Body};
use crate::world::{Happening, World};
use crate::Canary;

/// What a task fails of that no layer is left for.
pub(crate) const UNPLACED: &[u8] = b"unplaced";

/// What an executor tells the driver.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Ended { task: usize, outcome: Outcome, ran: u64, body: Body },
    Released { task: usize, output: u32, value: u64 },
    Paused { task: usize },
    Stalled { task: usize, wants_after: u64 },
    Recalled { task: usize },
    Refused { task: usize },
    Unplaced { task: usize, ran: u64, down: bool },
}

/// A body on an executor.
#[derive(Clone, Debug)]
struct Running {
    task: usize,
    serial: u64,
    began: u64,
    raises: bool,
    /// Its layer fails it (`true`: and everybody).
    unplaced: Option<bool>,
    /// It gave its processor back.
    paused: bool,
    /// What is left of it after it stalled, and when it wants that.
    stalls: Option<(u64, u64)>,
    death: Option<Death>,
    body: Body,
}

/// One executor. Its identifier is its position.
#[derive(Debug)]
pub(crate) struct Executor {
    kind: Kind,
    node: NodeId,
    slots: u32,
    /// More of them, for tasks that the bandwidth limits.
    extra: u32,
    up: bool,
    alive: bool,
    replaced: bool,
    /// Tasks that were sent and have not begun, with the time at which they get here.
    line: VecDeque<(usize, u64)>,
    running: Vec<Running>,
    pub(crate) outbox: VecDeque<Message>,
    /// Tasks that began and whose end the driver has not heard of.
    pub(crate) unreported: Vec<usize>,
    last_report_at: u64,
    /// When the last thing that it was sent gets here: in the order in which they were sent.
    last_sent_at: u64,
}

impl<'a> World<'a> {
    pub(crate) fn start_machine(&mut self) {
        let machine = &self.program.machine;
        for (node, count) in machine.compute.iter().enumerate() {
            for _ in 0..*count {
                self.start(Kind::Compute, NodeId(node as u32), 1);
            }
            for slots in &machine.io[node] {
                self.start(Kind::Io, NodeId(node as u32), *slots);
            }
            self.start(Kind::Engine, NodeId(node as u32), machine.engines[node]);
        }
    }

    fn start(&mut self, kind: Kind, node: NodeId, slots: u32) {
        let number = self.executors.len() as u32;
        self.executors.push(Executor {
            kind,
            node,
            slots,
            extra: if kind == Kind::Io { slots % 3 } else { 0 },
            up: false,
            alive: true,
            replaced: false,
            line: VecDeque::new(),
            running: Vec::new(),
            outbox: VecDeque::new(),
            unreported: Vec::new(),
            last_report_at: 0,
            last_sent_at: 0,
        });
        let delay = self.faults.delay(Delay::Start, u64::from(number));
        self.later(delay, Happening::Up(number));
    }

    /// Starts another one in the place of an executor, once.
    pub(crate) fn replace(&mut self, number: u32) {
        let executor = &mut self.executors[number as usize];
        if !std::mem::replace(&mut executor.replaced, true) {
            let (kind, node, slots) = (executor.kind, executor.node, executor.slots);
            self.start(kind, node, slots);
        }
    }

    pub(crate) fn executor_up(&mut self, number: u32) -> Result<(), Fault> {
        let executor = &mut self.executors[number as usize];
        executor.up = true;
        let (kind, node, slots, extra) =
            (executor.kind, executor.node, executor.slots, executor.extra);
        self.checks.grants.up(ExecutorId(number), kind, node, (slots, extra));
        if let Some(after) = self.faults.idle_death(number) {
            self.later(after, Happening::Die(number));
        }
        self.drive(Event::ExecutorUp { executor: ExecutorId(number), kind, node, slots, extra })
    }

    /// The driver sends a task.
    pub(crate) fn send(
        &mut self,
        task: usize,
        executor: ExecutorId,
        attempt: u32,
    ) -> Result<(), Fault> {
        let name = mix_all(&[task as u64, u64::from(attempt), u64::from(executor.0)]);
        let delay = self.faults.delay(Delay::Send, name);
        let now = self.now;
        let entry = self.task_mut(task);
        if attempt != entry.attempt + 1 {
            let message = format!("attempt {attempt} comes after attempt {}", entry.attempt);
            return Err(Fault::of_task("dead", task, message));
        }
        entry.attempt = attempt;
        entry.sent_at = now;
        let at = &mut self.executors[executor.0 as usize];
        let arrives = at.last_sent_at.max(now + delay);
        at.last_sent_at = arrives;
        at.line.push_back((task, arrives));
        self.at(arrives, Happening::Look(executor.0));
        Ok(())
    }

    /// The driver takes a task back, if it has not begun.
    pub(crate) fn recall(&mut self, task: usize, executor: ExecutorId) {
        let line = &mut self.executors[executor.0 as usize].line;
        let Some(at) = line.iter().position(|entry| entry.0 == task) else { return };
        if self.canary != Some(Canary::RunRecalled) {
            line.remove(at);
        }
        self.write_report(executor.0, Message::Recalled { task });
    }

    /// An executor writes a report; reports arrive in the order in which they were written.
    fn write_report(&mut self, number: u32, message: Message) {
        self.serial += 1;
        let delay = self.faults.delay(Delay::Report, self.serial);
        let now = self.now;
        let executor = &mut self.executors[number as usize];
        executor.outbox.push_back(message);
        let arrives = executor.last_report_at.max(now + delay);
        executor.last_report_at = arrives;
        self.at(arrives, Happening::Report(number));
    }

    /// An executor with a free slot begins what is first in its line.
    pub(crate) fn look_at_line(&mut self, number: u32) -> Result<(), Fault> {
        loop {
            let executor = &mut self.executors[number as usize];
            let running = executor.running.iter().filter(|body| !body.paused).count();
            let free = running < (executor.slots + executor.extra) as usize;
            if !executor.alive || !free {
                return Ok(());
            }
            match executor.line.front() {
                Some((_, arrives)) if *arrives <= self.now => {}
                _ => return Ok(()),
            }
            let kind = executor.kind;
            let (task, _) = executor.line.pop_front().expect("looked");
            if kind == Kind::Engine && self.faults.refuses(task) {
                self.write_report(number, Message::Refused { task });
            } else {
                self.body_begins(number, task)?;
            }
        }
    }

    fn body_begins(&mut self, number: u32, task: usize) -> Result<(), Fault> {
        let alive = self.executors[number as usize].alive;
        self.tell(|| format!("  body of task {task} begins on e{number}"));
        self.checks.dead.begins(task, ExecutorId(number), alive)?;
        let entry = self.tasks[task].as_mut().expect("sent, so taken");
        let plan = entry.plan;
        entry.begins += 1;
        let fate = self.faults.fate(task, entry.begins);
        let unplaced = self.faults.unplaced(task, entry.begins);
        self.checks.grants.body(plan, ExecutorId(number))?;
        self.report.bodies += 1;
        let used = std::mem::take(&mut self.task_mut(task).used);
        let begun = self.store.begin(task, &used);
        self.task_mut(task).used = used;
        let body = begun.map_err(|message| Fault::of_task("results", task, message))?;
        self.serial += 1;
        let serial = self.serial;
        let began = self.now;
        let executor = &mut self.executors[number as usize];
        executor.unreported.push(task);
        let unplaced = unplaced.filter(|_| plan.kind.is_io());
        let (raises, death) = (fate.raises || unplaced.is_some(), fate.death);
        executor.running.push(Running {
            task,
            serial,
            began,
            raises,
            unplaced,
            paused: false,
            stalls: None,
            death,
            body,
        });
        let lasts = self.lasts(number, plan.duration) * fate.slower;
        match death {
            Some(Death::OnTaking) => return self.dies_now(number),
            Some(Death::Midway(at)) => self.later(lasts * at / 1000, Happening::Die(number)),
            _ => {}
        }
        for (release, (_, at)) in plan.releases.iter().enumerate() {
            self.later(lasts * at / 1000, Happening::Release(number, serial, release));
        }
        let may_stall = unplaced.is_none() && self.may_stall(task);
        if let Some((at, wants_after)) = fate.stalls.filter(|_| may_stall) {
            let executor = &mut self.executors[number as usize];
            let running = executor.running.last_mut().expect("pushed above");
            running.stalls = Some((lasts - lasts * at / 1000, wants_after));
            self.later(lasts * at / 1000, Happening::Stall(number, serial));
            return Ok(());
        }
        if let Some(at) = fate.pauses.filter(|_| plan.kind == Kind::Compute) {
            self.later(lasts * at / 1000, Happening::Pause(number, serial));
        }
        self.later(lasts, Happening::End(number, serial));
        Ok(())
    }

    /// Whether a task can be the producer of a stream: not of the engine; and where sizes of files
    /// or of constraints follow from grants, those that stall would need one at their end.
    fn may_stall(&self, task: usize) -> bool {
        let plan = self.task(task).plan;
        match plan.kind {
            Kind::Compute => true,
            Kind::Engine => false,
            Kind::Io => plan.tuning == Tuning::Static && self.files_written(task).is_empty(),
        }
    }

    /// I/O executors share what their storage gives: the more bodies, the longer each.
    fn lasts(&self, number: u32, usual: u64) -> u64 {
        let executor = &self.executors[number as usize];
        match executor.kind {
            Kind::Compute => usual,
            Kind::Io | Kind::Engine => usual * executor.running.len() as u64,
        }
    }

    fn dies_now(&mut self, number: u32) -> Result<(), Fault> {
        self.executor_dies(number);
        Ok(())
    }

    pub(crate) fn body_stalls(&mut self, number: u32, serial: u64) -> Result<(), Fault> {
        let executor = &mut self.executors[number as usize];
        let Some(body) = executor.running.iter_mut().find(|body| body.serial == serial) else {
            return Ok(());
        };
        body.paused = true;
        let (task, (_, wants_after)) = (body.task, body.stalls.expect("it stalls"));
        self.tell(|| format!("  body of task {task} stalls on e{number}"));
        self.checks.grants.body_over(task);
        self.write_report(number, Message::Stalled { task, wants_after });
        self.look_at_line(number)
    }

    /// The driver lets a body go on that stalled.
    pub(crate) fn resume(&mut self, task: usize, executor: ExecutorId) -> Result<(), Fault> {
        let plan = self.task(task).plan;
        self.checks.grants.resumed(plan, executor)?;
        let name = mix_all(&[task as u64, u64::from(executor.0)]);
        let delay = self.faults.delay(Delay::Send, name);
        let now = self.now;
        let at = &mut self.executors[executor.0 as usize];
        let body = at.running.iter_mut().find(|body| body.task == task);
        let Some(body) = body else { return Ok(()) };
        body.paused = false; // nothing that was sent after this begins before it
        let (serial, arrives) = (body.serial, at.last_sent_at.max(now + delay));
        at.last_sent_at = arrives;
        self.at(arrives, Happening::GoOn(executor.0, serial));
        Ok(())
    }

    pub(crate) fn body_goes_on(&mut self, number: u32, serial: u64) -> Result<(), Fault> {
        let executor = &self.executors[number as usize];
        let Some(body) = executor.running.iter().find(|body| body.serial == serial) else {
            return Ok(());
        };
        let (task, (left, _)) = (body.task, body.stalls.expect("it stalled"));
        self.tell(|| format!("  body of task {task} goes on on e{number}"));
        self.checks.grants.body(self.task(task).plan, ExecutorId(number))?;
        self.later(left, Happening::End(number, serial));
        Ok(())
    }

    pub(crate) fn body_releases(&mut self, number: u32, serial: u64, release: usize) {
        let executor = &self.executors[number as usize];
        let Some(running) = executor.running.iter().find(|body| body.serial == serial) else {
            return;
        };
        let (task, digest) = (running.task, running.body.digest);
        let (output, _) = self.task(task).plan.releases[release];
        let value = returned(digest, output as usize);
        self.write_report(number, Message::Released { task, output, value });
    }

    pub(crate) fn body_pauses(&mut self, number: u32, serial: u64) -> Result<(), Fault> {
        let executor = &mut self.executors[number as usize];
        let Some(body) = executor.running.iter_mut().find(|body| body.serial == serial) else {
            return Ok(());
        };
        body.paused = true;
        let task = body.task;
        self.tell(|| format!("  body of task {task} pauses on e{number}"));
        self.checks.grants.body_over(task);
        self.write_report(number, Message::Paused { task });
        self.look_at_line(number)
    }

    pub(crate) fn body_ends(&mut self, number: u32, serial: u64) -> Result<(), Fault> {
        let executor = &mut self.executors[number as usize];
        let Some(at) = executor.running.iter().position(|body| body.serial == serial) else {
            return Ok(());
        };
        let Running { task, began, raises, unplaced, death, mut body, .. } =
            executor.running.remove(at);
        self.tell(|| format!("  body of task {task} ends on e{number}"));
        let abandoned = self.sched.state(self.task(task).id) == Some(State::Abandoned);
        let used = std::mem::take(&mut self.task_mut(task).used);
        let finished = match raises {
            true => {
                self.store.ruin(task, &used, &body);
                Ok(())
            }
            false => self.store.finish(task, &used, &mut body, abandoned),
        };
        finished.map_err(|message| Fault::of_task("results", task, message))?;
        if death == Some(Death::BeforeReport) {
            if !raises {
                self.store.ruin(task, &used, &body);
            }
            self.task_mut(task).used = used;
            self.body_is_over(task);
            return self.dies_now(number);
        }
        self.task_mut(task).used = used;
        self.body_is_over(task);
        let outcome = match raises {
            true => Outcome::Raised(Arc::from(format!("task {task}").as_bytes())),
            false => Outcome::Done([].into()),
        };
        let ran = self.now - began;
        if let Some(down) = unplaced {
            self.write_report(number, Message::Unplaced { task, ran, down });
        } else if self.canary != Some(Canary::LoseReport) || self.canary_done {
            self.write_report(number, Message::Ended { task, outcome, ran, body });
        }
        self.canary_done |= self.canary == Some(Canary::LoseReport);
        if death == Some(Death::AfterReport) {
            return self.dies_now(number);
        }
        self.later(0, Happening::Look(number));
        Ok(())
    }

    fn body_is_over(&mut self, task: usize) {
        self.checks.dead.ends(task);
        self.checks.grants.body_over(task);
    }

    pub(crate) fn executor_dies(&mut self, number: u32) {
        let executor = &mut self.executors[number as usize];
        if !std::mem::replace(&mut executor.alive, false) {
            return;
        }
        self.report.deaths += 1;
        self.tell(|| format!("  e{number} dies"));
        let executor = &mut self.executors[number as usize];
        for running in std::mem::take(&mut executor.running) {
            let used = &self.tasks[running.task].as_ref().expect("it ran").used;
            self.store.ruin(running.task, used, &running.body);
            self.body_is_over(running.task);
        }
        let delay = self.faults.delay(Delay::Notice, u64::from(number));
        let executor = &mut self.executors[number as usize];
        let at = executor.last_report_at.max(self.now + delay);
        self.at(at, Happening::Lost(number));
    }

    /// The driver hears of a death; all reports from before have come.
    pub(crate) fn executor_is_lost(&mut self, number: u32) -> Result<(), Fault> {
        let executor = &mut self.executors[number as usize];
        if !executor.outbox.is_empty() {
            // A recall was answered from the claims in the meantime: that comes first.
            let at = executor.last_report_at;
            self.at(at, Happening::Lost(number));
            return Ok(());
        }
        let begun = std::mem::take(&mut executor.unreported);
        let line: Vec<_> = executor.line.drain(..).map(|entry| entry.0).collect();
        self.checks.grants.close(ExecutorId(number));
        begun.iter().for_each(|task| self.task_mut(*task).failed_runs += 1);
        for task in line.iter().chain(&begun) {
            self.checks.back(*task, self.now);
        }
        self.replace(number);
        let started = begun.iter().map(|task| self.task(*task).id).collect();
        let reason = Arc::from("killed by signal 9 (simulated)");
        self.drive(Event::ExecutorLost { executor: ExecutorId(number), started, reason })
    }
}
