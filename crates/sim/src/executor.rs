//! Modelled executors: a line of tasks that were sent, bodies that run, reports on their way.

use std::collections::VecDeque;
use std::sync::Arc;

use sched::{Event, ExecutorId, Kind, NodeId, Outcome, State};

use crate::checkers::Fault;
use crate::faults::{Death, Delay};
use crate::hash::mix_all;
use crate::streams::Yielding;
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
    Yielded { task: usize, number: u32, value: u64 },
    Stalled { task: usize, granted: u64 },
    Recalled { task: usize },
    Refused { task: usize },
    Unplaced { task: usize, ran: u64, down: bool },
}

/// A body on an executor.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) task: usize,
    pub(crate) serial: u64,
    began: u64,
    pub(crate) raises: bool,
    /// Its layer fails it (`true`: and everybody).
    unplaced: Option<bool>,
    /// It gave its processor back.
    pub(crate) paused: bool,
    /// How it yields, if it does.
    pub(crate) yielding: Option<Yielding>,
    death: Option<Death>,
    pub(crate) body: Body,
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
    pub(crate) running: Vec<Running>,
    /// Those of them, by serial, that stalled and go on before anything in the line begins.
    pub(crate) going_on: VecDeque<u64>,
    pub(crate) outbox: VecDeque<Message>,
    /// Tasks that began and whose end the driver has not heard of.
    pub(crate) unreported: Vec<usize>,
    last_report_at: u64,
    /// When the last thing that it was sent gets here: in the order in which they were sent.
    pub(crate) last_sent_at: u64,
}

impl Executor {
    /// Whether a task was sent here and has not begun.
    pub(crate) fn has_in_line(&self, task: usize) -> bool {
        self.line.iter().any(|(other, _)| *other == task)
    }
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
            going_on: VecDeque::new(),
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
        let credit = self.credit_for(task);
        let entry = self.task_mut(task);
        if attempt != entry.attempt + 1 {
            let message = format!("attempt {attempt} comes after attempt {}", entry.attempt);
            return Err(Fault::of_task("dead", task, message));
        }
        entry.attempt = attempt;
        (entry.sent_at, entry.credit) = (now, credit);
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
    pub(crate) fn write_report(&mut self, number: u32, message: Message) {
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
            if let Some(serial) = executor.going_on.pop_front() {
                self.body_goes_on(number, serial)?;
                continue;
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
            yielding: None,
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
        if let Some(stream) = plan.stream {
            let last = if fate.raises { fate.yields(stream.values) } else { stream.values };
            let interval = lasts / u64::from(stream.values + 1);
            let credit = self.task(task).credit;
            let executor = &mut self.executors[number as usize];
            let running = executor.running.last_mut().expect("pushed above");
            running.yielding =
                Some(Yielding { plan: stream, credit, number: 0, last, interval, waits: false });
            return self.body_advances(number, serial);
        }
        if let Some(at) = fate.pauses.filter(|_| plan.kind == Kind::Compute) {
            self.later(lasts * at / 1000, Happening::Pause(number, serial));
        }
        self.later(lasts, Happening::End(number, serial));
        Ok(())
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
