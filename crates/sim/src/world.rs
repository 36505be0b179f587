//! The world around the scheduler: a virtual clock, what is to happen, and the driver that
//! feeds the scheduler and does what it says.
//!
//! One thread, no real time. What happens is a heap of (time, order of arrival, happening); the
//! driver hands every event to the scheduler and carries out the instructions at once, as the
//! real drivers do. Executors are in `executor.rs`, the program's main thread in `main_thread.rs`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use graph::{DatumId, TaskId, VersionId};
use sched::{
    Cause, Event, ExecutorId, Failure, FunctionId, Instruction, Layer, LayerId, Outcome,
    PolicyKind, Sched, Tuning, Watermarks,
};

use crate::checkers::{
    dead, files, grants, liveness, memory, order, results, state, streams, tuning, Fault,
};
use crate::executor::{Executor, Message};
use crate::faults::{Delay, Faults};
use crate::hash::{Fold, Map};
use crate::program::{Program, TaskPlan, FUNCTIONS};
use crate::streams::{Credit, Stream};
use crate::values::{Body, Store, Used, EMPTY};
use crate::Canary;
use crate::Report;

/// What is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Happening {
    /// The main thread goes on.
    Program,
    /// An executor is ready.
    Up(u32),
    /// An executor looks at its line.
    Look(u32),
    /// The body with this serial reaches the point where it hands an output over.
    Release(u32, u64, usize),
    /// The body with this serial has the next value of its stream.
    Yield(u32, u64),
    /// An executor hears how far the stream of a task may go.
    Granted(u32, usize, Credit),
    /// A body gives its processor back.
    Pause(u32, u64),
    /// The body with this serial ends.
    End(u32, u64),
    /// What the run of a task wrote is safe.
    Settle(usize),
    /// An executor dies.
    Die(u32),
    /// The oldest report of an executor reaches the driver.
    Report(u32),
    /// The driver hears of an executor's death.
    Lost(u32),
    /// A move of the file of a datum ends.
    Moved(usize, u64),
    /// The file of a datum is gone.
    Gone(usize),
    /// Something happens to a layer.
    Trouble(u32),
}

/// A task that was taken.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    pub(crate) plan: &'a TaskPlan,
    pub(crate) id: TaskId,
    pub(crate) used: Vec<Used>,
    pub(crate) outputs: Vec<VersionId>,
    pub(crate) reads: Vec<VersionId>,
    /// How often its body began.
    pub(crate) begins: u32,
    /// How many of its runs failed, as the driver saw it.
    pub(crate) failed_runs: u32,
    /// The attempt of the last `Run`, and when that was.
    pub(crate) attempt: u32,
    pub(crate) sent_at: u64,
    /// Where its files go.
    pub(crate) placed: Option<LayerId>,
    /// What was said of its stream then.
    pub(crate) credit: Credit,
    pub(crate) cancel_asked: bool,
    /// The layers that failed it.
    pub(crate) failed_on: Vec<LayerId>,
    /// What the run that was its end made of what it read.
    pub(crate) digest: Option<u64>,
    /// `Some` when it is over.
    pub(crate) end: Option<Option<Arc<Failure>>>,
}

/// Everything that the checkers keep.
pub(crate) struct Checks<'a> {
    pub(crate) grants: grants::Grants,
    pub(crate) tuning: tuning::Tuned,
    pub(crate) dead: dead::Dead,
    pub(crate) files: files::Files,
    pub(crate) memory: memory::Memory,
    pub(crate) order: order::Order<'a>,
    pub(crate) binding: results::Binding,
    pub(crate) streams: streams::Streams,
    pub(crate) live: usize,
}

impl Checks<'_> {
    /// A task came back from its executor.
    pub(crate) fn back(&mut self, task: usize, now: u64) {
        self.grants.back(task);
        self.dead.back(task);
        self.tuning.back(task, now);
    }
}

/// The world of one simulation.
pub(crate) struct World<'a> {
    pub(crate) program: &'a Program,
    pub(crate) faults: &'a Faults,
    pub(crate) canary: Option<Canary>,
    pub(crate) validated: bool,
    pub(crate) sched: Sched,
    pub(crate) now: u64,
    heap: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    pub(crate) serial: u64,
    pub(crate) functions: Vec<FunctionId>,
    pub(crate) tasks: Vec<Option<Task<'a>>>,
    by_id: Map<TaskId, usize>,
    pub(crate) order: Vec<usize>,
    pub(crate) handles: Vec<Option<VersionId>>,
    pub(crate) data: Vec<Option<DatumId>>,
    pub(crate) dropped: Vec<bool>,
    pub(crate) store: Store,
    pub(crate) initial: Map<VersionId, u64>,
    pub(crate) resolved: Map<VersionId, u64>,
    /// Versions that came before the end of their task.
    pub(crate) released: Map<VersionId, ()>,
    /// By task.
    pub(crate) streams: BTreeMap<usize, Stream>,
    /// Tasks whose runs are over and whose ends are not told yet.
    pub(crate) settling: BTreeMap<usize, Body>,
    pub(crate) executors: Vec<Executor>,
    pub(crate) step: usize,
    pub(crate) blocked_on: Option<VersionId>,
    pub(crate) checks: Checks<'a>,
    pub(crate) report: Report,
    log: Fold,
    pub(crate) trace: Option<Vec<String>>,
    pub(crate) canary_done: bool,
    /// Moves that came to their end while they were held.
    pub(crate) held_moves: Vec<(usize, u64)>,
}

/// What a canary tells the scheduler of a layer.
fn spoil_layer(layer: &mut Layer, canary: Option<Canary>) {
    match canary {
        Some(Canary::GrantTooMuch) => layer.bandwidth = layer.bandwidth.map(|it| it * 2),
        Some(Canary::ForgetWays) => (layer.read_bandwidth, layer.write_bandwidth) = (None, None),
        Some(Canary::RaiseWatermarks) => {
            let raised = |Watermarks { high, low }| Watermarks { high: high + 100, low };
            layer.watermarks = layer.watermarks.map(raised);
        }
        _ => {}
    }
}

impl<'a> World<'a> {
    /// A world in which nothing has happened.
    pub(crate) fn new(program: &'a Program, faults: &'a Faults, canary: Option<Canary>) -> Self {
        let machine = &program.machine;
        let mut config = machine.config.clone();
        config.layers.iter_mut().for_each(|layer| spoil_layer(layer, canary));
        let ahead_max = config.pipeline_tasks_max;
        let mut sched = Sched::new(config);
        let functions = (0..FUNCTIONS)
            .map(|index| sched.add_function(Arc::from(format!("f{index}"))))
            .collect();
        let nodes = machine.config.processors.len();
        World {
            program,
            faults,
            canary,
            validated: true,
            sched,
            now: 0,
            heap: BinaryHeap::new(),
            serial: 0,
            functions,
            tasks: (0..program.tasks).map(|_| None).collect(),
            by_id: Map::default(),
            order: Vec::new(),
            handles: vec![None; program.handles],
            data: vec![None; program.data.len()],
            dropped: vec![false; program.data.len()],
            store: Store::new(vec![None; program.data.len()]),
            initial: Map::default(),
            resolved: Map::default(),
            released: Map::default(),
            streams: BTreeMap::new(),
            settling: BTreeMap::new(),
            executors: Vec::new(),
            step: 0,
            blocked_on: None,
            checks: Checks {
                grants: grants::Grants::new(
                    program.layers(),
                    &machine.config.processors,
                    ahead_max,
                ),
                tuning: tuning::Tuned::new(program.layers()),
                dead: dead::Dead::new(program.tasks),
                files: files::Files::new(program.layers(), machine.config.flush),
                memory: memory::Memory::default(),
                order: order::Order::new(nodes, machine.config.policy == PolicyKind::Fcfs),
                binding: results::Binding::new(program.data.len()),
                streams: streams::Streams::default(),
                live: 0,
            },
            report: Report::default(),
            log: Fold::default(),
            trace: None,
            canary_done: false,
            held_moves: Vec::new(),
        }
    }

    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{now:>10} {}", line()));
        }
    }

    pub(crate) fn later(&mut self, delay: u64, happening: Happening) {
        self.at(self.now + delay, happening);
    }

    pub(crate) fn at(&mut self, time: u64, happening: Happening) {
        self.serial += 1;
        self.heap.push(Reverse((time, self.serial, happening)));
    }

    /// Runs until nothing is left to happen, then looks at everything once more.
    pub(crate) fn run(&mut self) -> Result<(), Fault> {
        self.start_machine();
        self.at(0, Happening::Program);
        for (number, when) in self.faults.troubles() {
            self.at(when, Happening::Trouble(number));
        }
        while self.happen()? || self.give_up_stream()? {
            liveness::count(self.report.events)?;
        }
        let tasks = self.tasks.iter().flatten();
        let waiting: Vec<usize> =
            tasks.filter(|task| task.end.is_none()).map(|task| task.plan.task).collect();
        liveness::check(&waiting, self.blocked_on)?;
        self.forget_all()?;
        // Files move and go when nobody can name them.
        while self.happen()? {
            liveness::count(self.report.events)?;
        }
        let config = &self.program.machine.config;
        let limited = config.layers.iter().any(|layer| layer.capacity.is_some());
        if config.flush || config.prefetch || config.layers.len() > 1 || limited {
            self.checks.files.end()?;
        }
        self.checks.memory.end()?;
        state::check_empty(&self.sched, self.program.layers().len())?;
        results::check(self)?;
        (self.report.epochs, self.report.abandoned, self.report.adaptive) =
            self.checks.tuning.end(&self.sched)?;
        self.report.log = self.log.finish();
        self.report.ns = self.now;
        Ok(())
    }

    /// The next thing happens. `false`: nothing is left.
    fn happen(&mut self) -> Result<bool, Fault> {
        let next = self.heap.peek().map(|Reverse((time, ..))| *time);
        if let Some(deadline) = self.sched.next_deadline() {
            let late = self.faults.delay(Delay::Tick, deadline);
            let tick = deadline.max(self.now) + late;
            if next.is_none_or(|next| tick < next) {
                self.now = tick;
                self.drive(Event::Tick)?;
                return Ok(true);
            }
        }
        let Some(Reverse((time, _, happening))) = self.heap.pop() else { return Ok(false) };
        assert!(time >= self.now, "time never goes back");
        self.now = time;
        match happening {
            Happening::Program => self.program_goes_on()?,
            Happening::Up(executor) => self.executor_up(executor)?,
            Happening::Look(executor) => self.look_at_line(executor)?,
            Happening::Pause(executor, serial) => self.body_pauses(executor, serial)?,
            Happening::Release(executor, serial, at) => self.body_releases(executor, serial, at),
            Happening::Yield(executor, serial) => self.body_yields(executor, serial)?,
            Happening::Granted(executor, task, credit) => self.granted(executor, task, credit)?,
            Happening::End(executor, serial) => self.body_ends(executor, serial)?,
            Happening::Die(executor) => self.executor_dies(executor),
            Happening::Report(executor) => self.report_arrives(executor)?,
            Happening::Lost(executor) => self.executor_is_lost(executor)?,
            Happening::Settle(task) => self.is_settled(task)?,
            Happening::Moved(datum, serial) => self.move_ends(datum, serial)?,
            Happening::Gone(datum) => self.file_gone(datum)?,
            Happening::Trouble(number) => self.trouble(number)?,
        }
        Ok(true)
    }

    /// Hands an event to the scheduler and does what it says.
    pub(crate) fn drive(&mut self, event: Event) -> Result<(), Fault> {
        let mut out = Vec::new();
        self.tell(|| format!("event {}", describe_event(&event)));
        self.sched.handle(self.now, event, &mut out);
        self.carry_out(out)
    }

    /// As `drive`, for the end of a run: the values are kept if the scheduler took it.
    pub(crate) fn drive_done(
        &mut self,
        event: Event,
        task: usize,
        body: &Body,
    ) -> Result<(), Fault> {
        let id = self.task(task).id;
        let mut out = Vec::new();
        self.tell(|| format!("event {}", describe_event(&event)));
        self.sched.handle(self.now, event, &mut out);
        let taken = out.iter().any(|instruction| match instruction {
            Instruction::Forgotten { task, failure } => *task == id && failure.is_none(),
            _ => false,
        });
        let entry = self.tasks[task].as_mut().expect("taken");
        if taken {
            let outputs = body.outputs(entry.plan.returned(), &entry.used);
            self.store.keep(&entry.outputs, &entry.used, &outputs);
            entry.digest = Some(body.digest);
        } else {
            // Its time was up before its report came: whatever it did counts as not done.
            entry.failed_runs += 1;
            self.store.ruin(task, &entry.used, body);
        }
        self.carry_out(out)
    }

    pub(crate) fn carry_out(&mut self, out: Vec<Instruction>) -> Result<(), Fault> {
        self.report.events += 1;
        self.checks.files.handled(&self.sched);
        self.checks.tuning.look(&self.sched)?;
        for task in self.checks.tuning.tasks() {
            if let Some((_, held)) = self.sched.grant_of(self.task(task).id) {
                self.checks.grants.holds(task, held)?;
            }
        }
        for instruction in &out {
            if let Instruction::Forgotten { task, .. } = instruction {
                let task = self.number(*task)?;
                for version in std::mem::take(&mut self.task_mut(task).reads) {
                    self.checks.memory.read(version);
                }
            }
        }
        for instruction in out {
            self.note(&instruction);
            self.checks.memory.instruction(&instruction)?;
            self.obey(instruction)?;
        }
        if self.validated {
            let seen = state::Seen { tasks: self.checks.live };
            state::check(&self.sched, seen)?;
            self.check_files()?;
        }
        self.feed_streams()
    }

    fn obey(&mut self, instruction: Instruction) -> Result<(), Fault> {
        match instruction {
            Instruction::Run { task, executor, attempt, layer } => {
                let id = task;
                let task = self.number(task)?;
                let plan = self.task(task).plan;
                self.checks.dead.run(task, executor)?;
                let granted = self.sched.grant_of(id).map(|(_, granted)| granted);
                let granted = granted.unwrap_or_default();
                self.checks.grants.run(plan, executor, layer, granted)?;
                self.writer_sent(task)?;
                self.task_mut(task).placed = layer;
                if let Some(layer) = layer {
                    self.file_task_sent(task, layer)?;
                    let sent = (id, self.now);
                    self.checks.tuning.run(&self.sched, plan, sent, layer, granted)?;
                }
                let ahead = self.checks.grants.sent_to(executor) > 1 && plan.cpus > 0;
                self.report.ahead += u64::from(ahead);
                self.checks.order.run(plan, ahead, self.report.events)?;
                self.send(task, executor, attempt)
            }
            Instruction::Recall { task, executor } => {
                let task = self.number(task)?;
                self.recall(task, executor);
                Ok(())
            }
            Instruction::Resume { task, executor } => {
                let task = self.number(task)?;
                self.report.resumed += 1;
                self.resume(task, executor)
            }
            Instruction::Kill { executor } => {
                self.checks.grants.close(executor);
                let delay = self.faults.delay(Delay::Kill, u64::from(executor.0));
                self.later(delay, Happening::Die(executor.0));
                Ok(())
            }
            Instruction::Retire { executor } => {
                self.report.given_up += 1;
                self.somebody_is_late(executor)?;
                self.checks.grants.close(executor);
                self.replace(executor.0);
                Ok(())
            }
            Instruction::Resolve { version, failure } => self.resolve(version, failure),
            Instruction::Discard { version } => {
                self.store.values.remove(&version);
                Ok(())
            }
            Instruction::Forgotten { task, failure } => self.forgotten(task, failure),
            instruction @ (Instruction::Move { .. }
            | Instruction::DropCopy { .. }
            | Instruction::Remove { .. }
            | Instruction::HoldMoves { .. }) => self.obey_mover(&instruction),
        }
    }

    /// An executor is retired only for a task whose time is up.
    fn somebody_is_late(&self, executor: ExecutorId) -> Result<(), Fault> {
        let late = self.checks.grants.tasks_at(executor).any(|task| {
            let Task { plan, sent_at, .. } = self.task(task);
            plan.timeout.is_some_and(|after| sent_at + after <= self.now)
        });
        match late {
            true => Ok(()),
            false => Err(Fault::new("dead", format!("{executor:?} is retired, nobody is late"))),
        }
    }

    fn resolve(&mut self, version: VersionId, failure: Option<Arc<Failure>>) -> Result<(), Fault> {
        if failure.is_none() {
            let value = match self.store.bases.contains_key(&version) {
                true => self.store.value(version),
                false => Ok(self.store.values.get(&version).copied().unwrap_or(EMPTY)),
            };
            let value = value.map_err(|message| Fault::new("memory", message))?;
            self.store.values.insert(version, value);
            self.resolved.insert(version, value);
            self.checks.order.came(version, self.report.events);
        }
        if self.blocked_on == Some(version) {
            self.blocked_on = None;
            self.later(0, Happening::Program);
        }
        Ok(())
    }

    fn forgotten(&mut self, id: TaskId, failure: Option<Arc<Failure>>) -> Result<(), Fault> {
        let task = self.number(id)?;
        self.checks.dead.over(task, failure.as_deref())?;
        self.checks.back(task, self.now);
        self.checks.order.gone(task);
        if self.canary == Some(Canary::MissForgotten) && !self.canary_done {
            self.canary_done = true;
        } else {
            self.checks.live -= 1;
        }
        match failure.as_deref() {
            None => {}
            Some(Failure { from: None, cause, .. }) if *cause != Cause::Cancelled => {
                self.report.failed += 1;
            }
            Some(_) => self.report.cancelled += 1,
        }
        let well = failure.is_none();
        self.task_mut(task).end = Some(failure);
        self.stream_is_over(task, well)
    }

    fn report_arrives(&mut self, number: u32) -> Result<(), Fault> {
        let report = self.executors[number as usize].outbox.pop_front().expect("was sent");
        let executor = ExecutorId(number);
        match &report {
            Message::Ended { task, outcome, ran, body } => {
                let (task, ran) = (*task, *ran);
                self.executors[number as usize].unreported.retain(|other| *other != task);
                let id = self.task(task).id;
                self.tuned_task_ends(task, executor, ran, outcome)?;
                if matches!(outcome, Outcome::Done(_)) {
                    self.wrote(task, executor)?;
                    if let Some(lasts) = self.settles(task) {
                        return self.is_settling(task, executor, ran, body, lasts);
                    }
                }
                self.checks.back(task, self.now);
                let ran = ran + u64::from(self.misreports(task));
                let event = Event::Ended { task: id, executor, outcome: outcome.clone(), ran };
                match outcome {
                    Outcome::Done(_) => self.drive_done(event, task, body),
                    Outcome::Raised(_) => {
                        self.task_mut(task).failed_runs += 1;
                        self.drive(event)
                    }
                }
            }
            Message::Released { task, output, value } => self.output_comes(*task, *output, *value),
            Message::Paused { task } => {
                let task = *task;
                self.report.paused += 1;
                self.checks.grants.paused(task);
                let id = self.task(task).id;
                self.drive(Event::Paused { task: id, executor })
            }
            Message::Yielded { task, number, value } => self.yielded(*task, *number, *value),
            Message::Stalled { task, granted } => self.stalled(*task, executor, *granted),
            Message::Recalled { task } => {
                let task = *task;
                self.report.recalled += 1;
                self.checks.back(task, self.now);
                let id = self.task(task).id;
                self.drive(Event::Recalled { task: id, executor })
            }
            Message::Unplaced { task, ran, down } => {
                match self.sched.grant_of(self.task(*task).id) {
                    Some((layer, _)) => self.run_is_unplaced(*task, executor, *ran, layer, *down),
                    // It stalled, so no layer is to blame.
                    None => self.run_fails(*task, executor, *ran),
                }
            }
            Message::Refused { task } => {
                let task = *task;
                self.report.refused_by_engines += 1;
                self.checks.grants.refused(task);
                self.checks.back(task, self.now);
                let id = self.task(task).id;
                self.drive(Event::Refused { task: id, executor })
            }
        }
    }

    /// A run comes back that its layer failed.
    fn run_is_unplaced(
        &mut self,
        task: usize,
        executor: ExecutorId,
        ran: u64,
        layer: LayerId,
        down: bool,
    ) -> Result<(), Fault> {
        let unreported = &mut self.executors[executor.0 as usize].unreported;
        unreported.retain(|other| *other != task);
        self.report.unplaced += 1;
        let id = self.task(task).id;
        self.task_mut(task).failed_on.push(layer);
        // One whose time is up counts as a run that failed.
        let late = self.sched.state(id) == Some(sched::State::Abandoned);
        self.task_mut(task).failed_runs += u32::from(late);
        self.checks.back(task, self.now);
        let failure = Arc::from(crate::executor::UNPLACED);
        self.drive(Event::Unplaced { task: id, executor, ran, failure })?;
        if down {
            self.checks.files.set_down(layer, true);
            self.drive(Event::LayerDown { layer })?;
        }
        Ok(())
    }

    fn run_fails(&mut self, task: usize, executor: ExecutorId, ran: u64) -> Result<(), Fault> {
        let unreported = &mut self.executors[executor.0 as usize].unreported;
        unreported.retain(|other| *other != task);
        self.task_mut(task).failed_runs += 1;
        self.checks.back(task, self.now);
        let outcome = Outcome::Raised(Arc::from(format!("task {task}").as_bytes()));
        self.drive(Event::Ended { task: self.task(task).id, executor, outcome, ran })
    }

    /// A report of a run comes: what the body moved is told first, where it is known.
    fn tuned_task_ends(
        &mut self,
        task: usize,
        executor: ExecutorId,
        ran: u64,
        outcome: &Outcome,
    ) -> Result<(), Fault> {
        let plan = self.task(task).plan;
        if plan.tuning == Tuning::Static {
            return Ok(());
        }
        let id = self.task(task).id;
        self.drive(Event::Moved { task: id, executor, bytes: plan.produces })?;
        let well = matches!(outcome, Outcome::Done(_));
        self.checks.tuning.ends(&self.sched, plan, (id, self.now), well.then_some(ran));
        Ok(())
    }

    pub(crate) fn misreports(&self, task: usize) -> bool {
        let tuned = self.task(task).plan.tuning != Tuning::Static;
        self.canary == Some(Canary::MisreportTime) && tuned
    }

    /// A body handed an output over.
    fn output_comes(&mut self, task: usize, output: u32, value: u64) -> Result<(), Fault> {
        let entry = self.tasks[task].as_ref().expect("taken");
        let (id, version) = (entry.id, entry.outputs[output as usize]);
        if entry.end.is_none() {
            self.store.values.entry(version).or_insert(value);
        }
        let settled = self.checks.memory.settled(version);
        self.drive(Event::Released { task: id, output, size: 8 })?;
        if settled.is_none() && self.checks.memory.settled(version) == Some(true) {
            self.report.released += 1;
            self.released.insert(version, ());
        }
        Ok(())
    }

    /// Takes a task in whose identifier the scheduler gave.
    pub(crate) fn taken(&mut self, task: Task<'a>) {
        let number = task.plan.task;
        self.checks.live += 1;
        self.checks.dead.submitted(number, task.id);
        self.report.tasks += 1;
        self.by_id.insert(task.id, number);
        self.order.push(number);
        self.tasks[number] = Some(task);
    }

    pub(crate) fn task(&self, number: usize) -> &Task<'a> {
        self.tasks[number].as_ref().expect("only tasks that were taken are spoken of")
    }

    pub(crate) fn task_mut(&mut self, number: usize) -> &mut Task<'a> {
        self.tasks[number].as_mut().expect("only tasks that were taken are spoken of")
    }

    fn number(&self, id: TaskId) -> Result<usize, Fault> {
        let number = self.by_id.get(&id).copied();
        number.ok_or_else(|| Fault::new("dead", format!("{id:?} was never taken")))
    }

    fn note(&mut self, instruction: &Instruction) {
        self.tell(|| format!("     {}", describe(instruction)));
        self.now.hash(&mut self.log);
        std::mem::discriminant(instruction).hash(&mut self.log);
        match instruction {
            Instruction::Run { task, executor, attempt, layer } => {
                (task, executor, attempt, layer).hash(&mut self.log);
            }
            Instruction::Recall { task, executor } | Instruction::Resume { task, executor } => {
                (task, executor).hash(&mut self.log);
            }
            Instruction::Kill { executor } | Instruction::Retire { executor } => {
                executor.hash(&mut self.log);
            }
            Instruction::Resolve { version, failure } => {
                version.hash(&mut self.log);
                failure.as_ref().map(|failure| &failure.name).hash(&mut self.log);
            }
            Instruction::Discard { version } => version.hash(&mut self.log),
            Instruction::Forgotten { task, failure } => {
                task.hash(&mut self.log);
                failure.as_ref().map(|failure| &failure.name).hash(&mut self.log);
            }
            Instruction::Move { datum, from, to, keep } => {
                (datum, from, to, keep).hash(&mut self.log);
            }
            Instruction::DropCopy { datum, layer } => (datum, layer).hash(&mut self.log),
            Instruction::Remove { datum } => datum.hash(&mut self.log),
            Instruction::HoldMoves { hold } => hold.hash(&mut self.log),
        }
    }
}

fn describe(instruction: &Instruction) -> String {
    let because = |failure: &Option<Arc<Failure>>| match failure {
        None => "well".to_string(),
        Some(failure) => format!("failed: {}", results::chain(failure)),
    };
    match instruction {
        Instruction::Resolve { version, failure } => {
            format!("Resolve {version:?} {}", because(failure))
        }
        Instruction::Forgotten { task, failure } => {
            format!("Forgotten {task:?} {}", because(failure))
        }
        other => format!("{other:?}"),
    }
}

fn describe_event(event: &Event) -> String {
    match event {
        Event::Ended { task, executor, outcome: Outcome::Raised(_), ran } => {
            format!("Ended {task:?} on {executor:?}: raised after {ran} ns")
        }
        other => format!("{other:?}"),
    }
}
