//! Everything behind the one lock: the scheduler, the data, the tasks. What is done for tasks with
//! files is in `files`.

mod files;

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use graph::{Region, Target, TaskId};
use smallvec::SmallVec;

use sched::{
    Config, Constraint, Event, ExecutorId, Failure, FunctionId, Instruction, Kind, LayerId,
    Learned, NodeId, OnFailure, Outcome, Refusal, Sched, Submitted, TaskSpec, Tuning,
};

use super::data::{Data, Table};
use super::inbox::Inbox;
use super::io_task::{IoTask, Wants};
use super::layers::Layers;
use super::options::Options;
use super::placed::{Placed, Uses};
use super::queue::Queue;
use super::task::{Access, Body, Report, Spawn, Task, TaskRef, Undone};
use super::timers::{Due, Timers};
use super::worker::Worker;
use crate::files::way;
use crate::storage::{amount, LayerSpec, Storage};
use crate::tuning::{Ask, TunedStatistics};

/// Tasks that may be sent to a worker ahead of time.
const AHEAD_TASKS_MAX: u32 = 64;
/// And how much of their time, in nanoseconds: about what it costs to wake a worker.
const AHEAD_NS_MAX: u64 = 50_000;

/// The state of the native driver.
pub(super) struct Core {
    sched: Sched,
    data: Data,
    /// By the index of the scheduler's identifier. One that is over leaves its memory to the next.
    tasks: Vec<Option<Box<Task>>>,
    functions: Table<usize, FunctionId>,
    /// What is submitted next: one value, so that its memory is there already.
    spec: TaskSpec,
    out: Vec<Instruction>,
    reports: Vec<Report>,
    /// The scheduler's time: what tasks ran, until there are I/O tasks; then the clock goes on
    /// from there.
    now: u64,
    /// What the clock is ahead of `now`, once there was an I/O task.
    clock_ahead_ns: Option<u64>,
    io: IoExecutor,
    placed: Placed,
    /// A task failed, and what it was to write cannot be read until the program was told.
    failed: bool,
    /// Tasks that are not over.
    pub(super) live: usize,
}

/// The executor that all workers together are for I/O tasks. It comes up with the first of them.
struct IoExecutor {
    id: ExecutorId,
    slots: u32,
    /// More, for tasks that the bandwidth of their layer limits.
    extra: u32,
    ways: Ways,
    /// What tasks with a fixed bandwidth have in common.
    function: FunctionId,
    /// What tuned tasks of one name have.
    named: HashMap<Box<str>, FunctionId>,
    /// A tick is on its way.
    ticks: bool,
}

/// What the core shares with the workers, for I/O tasks.
#[derive(Debug)]
pub(super) struct Ways {
    /// Tasks that have their grants.
    pub(super) queue: Arc<Queue<TaskRef>>,
    pub(super) layers: Arc<Layers>,
    pub(super) timers: Arc<Timers>,
}

/// What is asked of the scheduler for an I/O task.
struct Asked {
    function: FunctionId,
    constraint: Constraint,
    tuning: Tuning,
    layer: Option<LayerId>,
    files: Uses,
}

/// What a lock's holder has to do after it let go.
#[derive(Debug, Default)]
pub(super) struct After {
    /// Tasks that are over.
    pub(super) over: usize,
    /// Workers that got something, each once.
    pub(super) woken: SmallVec<[usize; 8]>,
    /// Where there is more than tasks that came and ended.
    pub(super) rest: Option<Box<Rest>>,
}

/// What the holder has to do for few tasks.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// Tasks whose last child ended and that have a `drop`, which is the program's code: it is
    /// called before their end is reported, and not under the lock.
    pub(super) to_drop: Vec<TaskRef>,
    /// Tasks with files whose end the program is told now, and then the scheduler.
    pub(super) settled: Vec<TaskRef>,
    /// What is left of tasks that were given up.
    pub(super) undone: Vec<Undone>,
}

impl After {
    /// The lists of what is rare.
    #[cold]
    pub(super) fn rest(&mut self) -> &mut Rest {
        self.rest.get_or_insert_default()
    }
}

impl Core {
    pub(super) fn new(
        options: &Options,
        storage: &Storage,
        known: Vec<Learned>,
        ways: Ways,
    ) -> Core {
        let workers = options.workers as u32;
        let config = Config {
            layers: storage.layers.iter().map(LayerSpec::layer).collect(),
            policy: options.policy,
            flush: options.flush,
            prefetch: options.prefetch,
            quiet_places: true,
            processors: vec![workers],
            stealing: true,
            pipeline_tasks_max: AHEAD_TASKS_MAX,
            pipeline_ns_max: AHEAD_NS_MAX,
        };
        let mut sched = Sched::new(config);
        let name: Arc<str> = Arc::from("task");
        let function = sched.add_function(name.clone());
        sched.load(known);
        let io = IoExecutor {
            id: ExecutorId(workers),
            slots: options.io_executors as u32,
            extra: options.io_executors_extra as u32,
            ways,
            function: sched.add_function(name.clone()),
            named: HashMap::new(),
            ticks: false,
        };
        let mut core = Core {
            sched,
            data: Data::default(),
            tasks: Vec::new(),
            functions: Table::default(),
            spec: blank(function, name),
            out: Vec::new(),
            reports: Vec::new(),
            now: 0,
            clock_ahead_ns: None,
            io,
            placed: Placed::new(&storage.layers, options.prefetch),
            failed: false,
            live: 0,
        };
        for worker in 0..workers {
            let executor = ExecutorId(worker);
            let up = Event::ExecutorUp {
                executor,
                kind: Kind::Compute,
                node: NodeId(0),
                slots: 1,
                extra: 0,
            };
            core.sched.handle(0, up, &mut core.out);
        }
        core
    }

    /// Takes a task in. On refusal nothing was changed. What its body takes, as far as that is
    /// known, in nanoseconds.
    pub(super) fn spawn(
        &mut self,
        spawn: Spawn,
        wants: Option<&Wants>,
        accesses: impl Iterator<Item = Result<Access, String>>,
        parent: Option<TaskRef>,
    ) -> Result<Option<u64>, String> {
        let asked = match wants {
            None => None,
            Some(wants) => Some(self.asked(wants, &spawn, parent)?),
        };
        self.describe((spawn.body, spawn.priority), parent, accesses)?;
        let taken = match &asked {
            None => self.sched.submit(self.now, &self.spec, &mut self.out),
            Some(asked) => self.submit_io(asked),
        };
        let id = taken.map_err(|refusal| words(&refusal))?.task;
        let io = asked.map(|asked| self.io_part(id, asked));
        self.keep(id, Task::new(spawn, Some(id), parent, io));
        self.one_more(parent);
        Ok(self.sched.mean_ns(self.spec.function))
    }

    /// What is to be submitted: body and priority, and what it uses.
    #[inline(always)]
    fn describe(
        &mut self,
        (body, priority): (Body, i32),
        parent: Option<TaskRef>,
        accesses: impl Iterator<Item = Result<Access, String>>,
    ) -> Result<(), String> {
        self.spec.function = self.function(body);
        self.spec.priority = priority;
        self.spec.accesses.clear();
        let domain = parent.map(|parent| parent.get().id());
        for access in accesses {
            let access = self.bind(domain, access?);
            self.spec.accesses.push(access);
        }
        Ok(())
    }

    fn one_more(&mut self, parent: Option<TaskRef>) {
        if let Some(parent) = parent {
            parent.get().one_child_more();
        }
        self.live += 1;
    }

    /// Takes in a task that a worker runs already, with its body and priority. Nobody else uses
    /// what it does, and nothing is wrong with its accesses.
    #[cold]
    pub(super) fn adopt(
        &mut self,
        task: Box<Task>,
        runs: (Body, i32),
        accesses: impl Iterator<Item = Result<Access, String>>,
        worker: usize,
    ) {
        let (parent, executor) = (task.parent, ExecutorId(worker as u32));
        let described = self.describe(runs, parent, accesses);
        described.expect("the accesses were looked at before");
        let taken = self.sched.submit_begun(self.now, &self.spec, executor, &mut self.out);
        let id = taken.expect("whatever was used before, this is right").task;
        task.adopt(id, executor.0);
        *self.memory(id) = Some(task);
        self.one_more(parent);
    }

    // What follows for I/O tasks is cold: it must not cost the others the inlining of theirs.

    /// What an I/O task asks of the scheduler. `Err` says why it cannot be.
    #[cold]
    fn asked(
        &mut self,
        wants: &Wants,
        spawn: &Spawn,
        parent: Option<TaskRef>,
    ) -> Result<Asked, String> {
        let ancestors = std::iter::successors(parent, |task| task.get().parent);
        if ancestors.into_iter().any(|task| task.get().io().is_some()) {
            return Err("an I/O task in an I/O task could wait for ever for what the outer one \
                        holds; spawn it elsewhere, or do both in one task"
                .into());
        }
        let mut asked = Asked {
            function: self.io.function,
            constraint: Constraint {
                bandwidth: 0,
                size: wants.size,
                way: way(wants.files.iter().map(|file| file.direction)),
            },
            tuning: Tuning::Static,
            layer: wants.layer,
            files: Uses::default(),
        };
        if !wants.files.is_empty() {
            if parent.is_some() {
                return Err("a task in a task cannot use files, as nothing orders it against the \
                            tasks outside that use them; spawn it from outside of tasks"
                    .into());
            }
            let (files, told) = self.placed.bind(&mut self.sched, &wants.files)?;
            asked.files = files;
            told.into_iter().for_each(|told| self.sched.handle(self.now, told, &mut self.out));
            let tied = || self.placed.layer_for(&asked.files);
            asked.layer = wants.layer.or_else(|| tied().filter(|_| !wants.anywhere));
        }
        match wants.bandwidth {
            None => {}
            Some(Ask::Bandwidth(bandwidth)) => asked.constraint.bandwidth = bandwidth,
            Some(Ask::Found(tuning)) => {
                let name = spawn.name().ok_or(
                    "its bandwidth is to be found, and it has no name; what is found is kept by \
                     name, so give the same one to all tasks of a kind",
                )?;
                asked.tuning = tuning;
                asked.function = self.io.named(&mut self.sched, &name.to_string_lossy());
            }
        }
        Ok(asked)
    }

    #[cold]
    fn submit_io(&mut self, asked: &Asked) -> Result<Submitted, Refusal> {
        if self.clock_ahead_ns.is_none() {
            self.clock_ahead_ns = Some(exec::now_ns().wrapping_sub(self.now));
            let IoExecutor { id: executor, slots, extra, .. } = self.io;
            let (kind, node) = (Kind::Io, NodeId(0));
            let up = Event::ExecutorUp { executor, kind, node, slots, extra };
            self.sched.handle(self.now, up, &mut self.out);
        }
        self.advance(0);
        let spec = &mut self.spec;
        spec.accesses.extend(Placed::accesses(&asked.files));
        (spec.kind, spec.cpus, spec.function) = (Kind::Io, 0, asked.function);
        (spec.constraint, spec.tuning, spec.layer) = (asked.constraint, asked.tuning, asked.layer);
        let taken = self.sched.submit(self.now, spec, &mut self.out);
        (spec.kind, spec.cpus) = (Kind::Compute, 1);
        (spec.constraint, spec.tuning, spec.layer) = (Constraint::default(), Tuning::Static, None);
        self.note_deadline();
        taken
    }

    /// What only an I/O task that was taken has.
    #[cold]
    fn io_part(&mut self, id: TaskId, asked: Asked) -> IoTask {
        let has_files = !asked.files.is_empty();
        if has_files {
            self.placed.keep(id, asked.files);
        }
        IoTask::new(has_files)
    }

    /// The scheduler's time goes on: by what a task ran, or to where the clock is.
    fn advance(&mut self, ran: u64) {
        self.now = match self.clock_ahead_ns {
            None => self.now + ran,
            Some(ahead) => exec::now_ns().wrapping_sub(ahead),
        };
    }

    /// Where the clock is that tells how long I/O tasks take.
    fn clock(&self) -> u64 {
        self.now.wrapping_add(self.clock_ahead_ns.unwrap_or(0))
    }

    /// The scheduler may have to look at the clock when nothing happens.
    fn note_deadline(&mut self) {
        if self.io.ticks {
            return;
        }
        if let Some(at) = self.sched.next_deadline() {
            self.io.ticks = true;
            let ahead = self.clock_ahead_ns.unwrap_or(0);
            self.io.ways.timers.add(at.wrapping_add(ahead), Due::Tick);
        }
    }

    /// What tuning does, for each function and layer that it has met.
    pub(super) fn tuned(&self) -> Vec<TunedStatistics> {
        TunedStatistics::all(&self.sched)
    }

    /// What the layer takes that nobody described, in bytes a second.
    pub(super) fn set_bandwidth(&mut self, bandwidth: u64) {
        self.sched.set_bandwidth(LayerId(0), bandwidth);
    }

    /// What was learned, for later runs.
    pub(super) fn learned(&self) -> Vec<Learned> {
        self.sched.learned()
    }

    fn keep(&mut self, id: TaskId, task: Task) {
        match self.memory(id) {
            Some(memory) => **memory = task,
            none => *none = Some(Box::new(task)),
        }
    }

    /// Where the task of this identifier is kept.
    fn memory(&mut self, id: TaskId) -> &mut Option<Box<Task>> {
        let index = id.0.index as usize;
        if index >= self.tasks.len() {
            self.tasks.resize_with(index + 1, || None);
        }
        &mut self.tasks[index]
    }

    fn function(&mut self, body: Body) -> FunctionId {
        let (bits, sched) = (body as usize, &mut self.sched);
        let name = &self.spec.name;
        *self.functions.entry(bits).or_insert_with(|| sched.add_function(name.clone()))
    }

    #[inline(always)]
    fn bind(&mut self, domain: Option<TaskId>, access: Access) -> graph::Access {
        let is_whole = access.is_whole();
        let Access { base, direction, region } = access;
        let region = if is_whole { Region::Whole } else { region };
        let datum = self.data.of(&mut self.sched, domain, base, &region);
        graph::Access { target: Target::Datum(datum), region, direction }
    }

    /// The task of a number, if it is not over.
    pub(super) fn find(&self, number: u64) -> Option<TaskRef> {
        let id = TaskId::from_bits(number.checked_sub(1)?);
        let task = self.tasks.get(id.0.index as usize)?.as_deref()?;
        (task.id() == id).then(|| TaskRef::of(task))
    }

    /// Hands all reports to the scheduler and does what it says, until there is nothing more.
    pub(super) fn settle(&mut self, inbox: &Inbox<Report>, workers: &[Worker], after: &mut After) {
        loop {
            self.carry_out(workers, after);
            if self.reports.is_empty() {
                inbox.take(&mut self.reports);
            }
            if self.reports.is_empty() {
                return;
            }
            let mut reports = std::mem::take(&mut self.reports);
            reports.drain(..).for_each(|report| self.handle(report, workers, after));
            self.reports = reports;
        }
    }

    /// Whether a task writes the data of its access of this position.
    pub(super) fn writes(&self, task: TaskId, access: u32) -> bool {
        self.sched.bound(task).get(access as usize).is_some_and(|bound| bound.write.is_some())
    }

    fn handle(&mut self, report: Report, workers: &[Worker], after: &mut After) {
        let event = match report {
            Report::Ended(ended) => {
                let task = ended.get();
                if let Some(io) = task.io() {
                    return match io.files() {
                        None => self.io_ended(task.id(), io, Outcome::Done(Box::default())),
                        Some(_) => self.over_with_files(ended, after),
                    };
                }
                let ran = task.ran_ns();
                self.advance(ran);
                let outcome = Outcome::Done(Box::default());
                Event::Ended { task: task.id(), executor: executor(task), outcome, ran }
            }
            Report::Paused(task) => {
                let task = task.get();
                Event::Paused { task: task.id(), executor: executor(task) }
            }
            Report::Settled(task) => return self.settled(task),
            Report::Announced(task) => return self.announced(workers, task, after),
            Report::Undone => return self.one_less(after),
            Report::Released(task, access) => {
                Event::ReleasedInPlace { task: task.get().id(), access }
            }
            Report::Tick => {
                self.io.ticks = false;
                self.advance(0);
                self.sched.handle(self.now, Event::Tick, &mut self.out);
                return self.note_deadline();
            }
        };
        self.sched.handle(self.now, event, &mut self.out);
    }

    /// An I/O task is over: the scheduler is told how long it took, from its beginning, and what it
    /// moved.
    #[cold]
    fn io_ended(&mut self, task: TaskId, io: &IoTask, outcome: Outcome) {
        let executor = self.io.id;
        self.advance(0);
        let (bytes, ran) = (io.moved(), io.ran_ns(self.clock()));
        if bytes > 0 && self.sched.is_tuned(task) {
            let moved = Event::Moved { task, executor, bytes };
            self.sched.handle(self.now, moved, &mut self.out);
        }
        let ended = Event::Ended { task, executor, outcome, ran };
        self.sched.handle(self.now, ended, &mut self.out);
        self.note_deadline();
    }

    fn carry_out(&mut self, workers: &[Worker], after: &mut After) {
        while !self.out.is_empty() {
            let mut out = std::mem::take(&mut self.out);
            for instruction in out.drain(..) {
                match instruction {
                    Instruction::Run { task, executor, layer, .. } => match layer {
                        None => self.send(workers, task, executor, after),
                        Some(layer) => self.send_io(workers, task, layer, after),
                    },
                    Instruction::Recall { task, executor } => self.recall(workers, task, executor),
                    Instruction::Forgotten { task, failure } => {
                        self.forget(workers, task, failure.as_deref(), after);
                    }
                    Instruction::Resolve { .. } | Instruction::Discard { .. } => {
                        unreachable!("data are in place, and nobody names their versions")
                    }
                    Instruction::Kill { .. } | Instruction::Retire { .. } => {
                        unreachable!("native tasks have no timeouts")
                    }
                    Instruction::Resume { .. } => unreachable!("native tasks make no streams"),
                    Instruction::Move { datum, to, keep, .. } => self.begin_move(datum, to, keep),
                    Instruction::DropCopy { datum, .. } => self.placed.drop_copy(datum),
                    Instruction::Remove { datum } => {
                        let gone = self.placed.remove(datum);
                        self.sched.handle(self.now, gone, &mut self.out);
                    }
                    Instruction::HoldMoves { hold } => self.placed.hold_moves(hold),
                }
            }
            if self.out.is_empty() {
                self.out = out;
            }
        }
    }

    fn send(&mut self, workers: &[Worker], id: TaskId, executor: ExecutorId, after: &mut After) {
        let task = self.tasks[id.0.index as usize].as_deref().expect("the scheduler knows it");
        let number = executor.0 as usize;
        task.executor.store(executor.0, Ordering::Relaxed);
        if workers[number].give(TaskRef::of(task)) && !after.woken.contains(&number) {
            after.woken.push(number);
        }
        if workers[number].holds_up_what_comes() && another_sleeps(workers, number) {
            self.went_on(workers, number);
        }
    }

    /// An I/O task has its grant: it goes where every worker looks, and one that sleeps is woken.
    #[cold]
    fn send_io(&mut self, workers: &[Worker], id: TaskId, layer: LayerId, after: &mut After) {
        let task = self.tasks[id.0.index as usize].as_deref().expect("the scheduler knows it");
        task.executor.store(self.io.id.0, Ordering::Relaxed);
        let io = task.io().expect("only I/O tasks have grants");
        io.grant(layer, self.io.ways.layers.writer(layer));
        let task = TaskRef::of(task);
        match io.files() {
            None => self.queue_io(workers, task, after),
            Some(_) => self.send_with_files(workers, task, after),
        }
    }

    /// An I/O task may begin.
    #[cold]
    fn queue_io(&self, workers: &[Worker], task: TaskRef, after: &mut After) {
        self.io.ways.queue.push(task);
        let mut sleepers = (0..workers.len()).filter(|worker| workers[*worker].sleeps());
        if let Some(worker) = sleepers.find(|worker| !after.woken.contains(worker)) {
            after.woken.push(worker);
        }
    }

    /// The scheduler learns that a task goes on that it takes for paused, and that a worker runs:
    /// what is behind it may go elsewhere. Its next pause is told again.
    pub(super) fn went_on(&mut self, workers: &[Worker], number: usize) {
        let worker = &workers[number];
        let Some(task) = worker.running_unknown() else { return };
        // In this order: one that leaves is seen to have left, or sees that it has to tell.
        task.get().told_paused.store(false, Ordering::SeqCst);
        if worker.running_unknown() != Some(task) {
            task.get().told_paused.store(true, Ordering::SeqCst);
            return;
        }
        let event = Event::WentOn { task: task.get().id(), executor: executor(task.get()) };
        self.sched.handle(self.now, event, &mut self.out);
    }

    fn recall(&mut self, workers: &[Worker], id: TaskId, executor: ExecutorId) {
        let task = self.tasks[id.0.index as usize].as_deref().expect("the scheduler knows it");
        if workers[executor.0 as usize].take_back(TaskRef::of(task)) {
            let event = Event::Recalled { task: id, executor };
            self.sched.handle(self.now, event, &mut self.out);
        }
    }

    fn forget(
        &mut self,
        workers: &[Worker],
        id: TaskId,
        failure: Option<&Failure>,
        after: &mut After,
    ) {
        let task = self.tasks[id.0.index as usize].as_deref_mut().expect("the scheduler knew it");
        let parent = task.parent;
        let has_files = task.files().is_some();
        let given_up = failure.filter(|_| !task.files().is_some_and(|files| files.is_settled()));
        if let Some(failure) = given_up {
            self.give_up(id, failure, after);
        }
        self.failed |= failure.is_some();
        if has_files {
            let told = self.placed.forget(id);
            told.into_iter().for_each(|told| self.sched.handle(self.now, told, &mut self.out));
        }
        self.tasks[id.0.index as usize].as_deref_mut().expect("as above").end();
        self.data.forget_children(&mut self.sched, id, &mut self.out);
        if let Some(parent) = parent {
            if super::worker::child_is_over(workers, parent) {
                match parent.get().has_drop() {
                    true => after.rest().to_drop.push(parent),
                    false => self.reports.push(Report::Ended(parent)),
                }
            }
        }
        if given_up.is_none() {
            self.one_less(after);
        }
    }

    /// A task is over, and the program knows it.
    fn one_less(&mut self, after: &mut After) {
        self.live -= 1;
        after.over += 1;
        if self.live == 0 {
            self.data.all_is_over(&mut self.sched, false, &mut self.out);
        }
    }
}

impl IoExecutor {
    /// What tuned tasks of this name have in common.
    fn named(&mut self, sched: &mut Sched, name: &str) -> FunctionId {
        if let Some(function) = self.named.get(name) {
            return *function;
        }
        let function = sched.add_function(Arc::from(name));
        self.named.insert(name.into(), function);
        function
    }
}

/// A task with nothing filled in.
fn blank(function: FunctionId, name: Arc<str>) -> TaskSpec {
    TaskSpec {
        function,
        name,
        kind: Kind::Compute,
        cpus: 1,
        priority: 0,
        retries: 0,
        timeout: None,
        on_failure: OnFailure::Fail,
        constraint: Constraint::default(),
        tuning: Tuning::Static,
        returns: 0,
        accesses: Vec::new(),
        produces: 0,
        layer: None,
    }
}

/// Whether a worker sleeps, other than this one.
pub(super) fn another_sleeps(workers: &[Worker], number: usize) -> bool {
    workers.iter().enumerate().any(|(other, worker)| other != number && worker.sleeps())
}

fn executor(task: &Task) -> ExecutorId {
    ExecutorId(task.executor.load(Ordering::Relaxed))
}

fn words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::SelfConflict { accesses: (one, other) } => format!(
            "accesses {one} and {other} overlap, and one of them writes: a task cannot wait for \
             itself; use one access for both"
        ),
        Refusal::BadRegion { access } => format!(
            "access {access}: its region is empty or reversed, or has another number of dimensions \
             than earlier regions of the same datum"
        ),
        Refusal::NoLayer { asked: Constraint { bandwidth, size, .. }, nearest } => {
            let bandwidth = (*bandwidth > 0).then(|| format!("{}/s", amount(*bandwidth)));
            let size = (*size > 0).then(|| amount(*size));
            let asked: Vec<String> = bandwidth.into_iter().chain(size).collect();
            let asked = asked.join(" and ");
            format!("no storage layer can ever give {asked}; the nearest is {nearest}")
        }
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::task::Argument;
    use crate::storage::Curve;

    extern "C-unwind" fn nothing(_: *mut std::ffi::c_void) {}

    fn core() -> Core {
        let limit = Some(Curve::flat(100_000_000));
        let layer = LayerSpec { name: "disk".into(), limit, ..LayerSpec::default() };
        let storage = Storage { layers: vec![layer], source: None };
        let options =
            Options { workers: 1, io_executors: 4, io_executors_extra: 0, ..Options::default() };
        let (layers, timers) = (Arc::new(Layers::new(&storage)), Arc::new(Timers::new().unwrap()));
        Core::new(&options, &storage, Vec::new(), Ways { queue: Arc::default(), layers, timers })
    }

    fn spawn(core: &mut Core, bandwidth: Ask) {
        let wants = Wants { bandwidth: Some(bandwidth), ..Wants::default() };
        let spawn = Spawn {
            body: nothing,
            argument: Argument::Pointer(std::ptr::null_mut()),
            drop: None,
            name: c"save".as_ptr(),
            priority: 0,
        };
        core.spawn(spawn, Some(&wants), std::iter::empty(), None).unwrap();
    }

    fn settle(core: &mut Core, inbox: &Inbox<Report>) {
        core.settle(inbox, &[], &mut After::default());
        core.sched.validate().unwrap();
    }

    fn next(core: &Core) -> Option<TaskRef> {
        core.io.ways.queue.pop()
    }

    #[test]
    fn an_epoch_that_may_never_end_makes_the_scheduler_look_at_the_clock() {
        let (mut core, inbox) = (core(), Inbox::default());
        spawn(&mut core, Ask::Bandwidth(60_000_000));
        settle(&mut core, &inbox);
        let task = next(&core).unwrap();
        assert!(!core.io.ways.timers.are_there(), "nothing is learned");
        inbox.put(Report::Ended(task));
        spawn(&mut core, Ask::Found(Tuning::Auto { bounds: None }));
        settle(&mut core, &inbox);
        assert!(core.io.ways.timers.are_there() && core.io.ticks);
        let task = next(&core).unwrap();
        inbox.put(Report::Tick);
        settle(&mut core, &inbox);
        assert!(core.io.ticks, "the next one");
        inbox.put(Report::Ended(task));
        inbox.put(Report::Tick);
        settle(&mut core, &inbox);
        assert!(!core.io.ticks, "nothing runs");
    }

    #[test]
    fn tasks_beyond_the_grants_wait_for_one_that_ends() {
        let (mut core, inbox) = (core(), Inbox::default());
        (0..3).for_each(|_| spawn(&mut core, Ask::Bandwidth(50_000_000)));
        settle(&mut core, &inbox);
        let first = next(&core).unwrap();
        assert!(next(&core).is_some() && next(&core).is_none());
        inbox.put(Report::Ended(first));
        settle(&mut core, &inbox);
        assert!(next(&core).is_some() && next(&core).is_none());
    }
}
