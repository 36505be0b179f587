//! Everything behind the one lock: the scheduler, the data, the tasks.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use graph::{Region, Target, TaskId};
use smallvec::SmallVec;

use sched::{
    Config, Constraint, Event, ExecutorId, FunctionId, Instruction, Kind, NodeId, OnFailure,
    Outcome, Refusal, Sched, TaskSpec, Tuning,
};

use super::data::{Data, Table};
use super::inbox::Inbox;
use super::task::{Access, Body, Report, Spawn, Task, TaskRef};
use super::worker::Worker;

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
    now: u64,
    /// Tasks that are not over.
    pub(super) live: usize,
}

/// What a lock's holder has to do after it let go.
#[derive(Debug, Default)]
pub(super) struct After {
    /// Tasks that are over.
    pub(super) over: usize,
    /// Tasks whose last child ended and that have a `drop`, which is the program's code: it is
    /// called before their end is reported, and not under the lock.
    pub(super) to_drop: SmallVec<[TaskRef; 2]>,
    /// Workers that got something, each once.
    pub(super) woken: SmallVec<[usize; 8]>,
}

impl Core {
    pub(super) fn new(workers: usize) -> Core {
        let config = Config {
            processors: vec![workers as u32],
            stealing: true,
            pipeline_tasks_max: AHEAD_TASKS_MAX,
            pipeline_ns_max: AHEAD_NS_MAX,
            ..Config::default()
        };
        let mut sched = Sched::new(config);
        let name: Arc<str> = Arc::from("task");
        let function = sched.add_function(name.clone());
        let mut core = Core {
            sched,
            data: Data::default(),
            tasks: Vec::new(),
            functions: Table::default(),
            spec: blank(function, name),
            out: Vec::new(),
            reports: Vec::new(),
            now: 0,
            live: 0,
        };
        for worker in 0..workers as u32 {
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

    /// Takes a task in. On refusal nothing was changed.
    pub(super) fn spawn(
        &mut self,
        spawn: Spawn,
        accesses: impl Iterator<Item = Result<Access, String>>,
        parent: Option<TaskRef>,
    ) -> Result<(), String> {
        self.spec.function = self.function(spawn.body);
        self.spec.priority = spawn.priority;
        self.spec.accesses.clear();
        let domain = parent.map(|parent| parent.get().id());
        for access in accesses {
            let access = self.bind(domain, access?);
            self.spec.accesses.push(access);
        }
        let taken = self.sched.submit(self.now, &self.spec, &mut self.out);
        let id = taken.map_err(|refusal| words(&refusal))?.task;
        self.keep(id, Task::new(spawn, id, parent));
        if let Some(parent) = parent {
            let parent = parent.get();
            parent.expect(1);
            parent.children.fetch_add(1, Ordering::AcqRel);
        }
        self.live += 1;
        Ok(())
    }

    fn keep(&mut self, id: TaskId, task: Task) {
        let index = id.0.index as usize;
        if index >= self.tasks.len() {
            self.tasks.resize_with(index + 1, || None);
        }
        match &mut self.tasks[index] {
            Some(memory) => **memory = task,
            none => *none = Some(Box::new(task)),
        }
    }

    fn function(&mut self, body: Body) -> FunctionId {
        let (bits, sched) = (body as usize, &mut self.sched);
        let name = &self.spec.name;
        *self.functions.entry(bits).or_insert_with(|| sched.add_function(name.clone()))
    }

    fn bind(&mut self, domain: Option<TaskId>, access: Access) -> graph::Access {
        let Access { base, direction, region } = access;
        let region = match region {
            Region::Range(span) if span.start == 0 && span.end == u64::MAX => Region::Whole,
            region => region,
        };
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
            reports.drain(..).for_each(|report| self.handle(report));
            self.reports = reports;
        }
    }

    fn handle(&mut self, report: Report) {
        let event = match report {
            Report::Ended(task) => {
                let task = task.get();
                let ran = task.ran_ns.load(Ordering::Relaxed);
                self.now += ran;
                let outcome = Outcome::Done(Box::default());
                Event::Ended { task: task.id(), executor: executor(task), outcome, ran }
            }
            Report::Paused(task) => {
                let task = task.get();
                Event::Paused { task: task.id(), executor: executor(task) }
            }
        };
        self.sched.handle(self.now, event, &mut self.out);
    }

    fn carry_out(&mut self, workers: &[Worker], after: &mut After) {
        while !self.out.is_empty() {
            let mut out = std::mem::take(&mut self.out);
            for instruction in out.drain(..) {
                match instruction {
                    Instruction::Run { task, executor, .. } => {
                        self.send(workers, task, executor, after);
                    }
                    Instruction::Recall { task, executor } => self.recall(workers, task, executor),
                    Instruction::Forgotten { task, .. } => self.forget(workers, task, after),
                    // Data are in place: nobody holds their versions.
                    Instruction::Resolve { .. } | Instruction::Discard { .. } => {}
                    Instruction::Kill { .. } | Instruction::Retire { .. } => {
                        unreachable!("native tasks have no timeouts")
                    }
                }
            }
            if self.out.is_empty() {
                self.out = out;
            }
        }
    }

    fn send(&self, workers: &[Worker], id: TaskId, executor: ExecutorId, after: &mut After) {
        let task = self.tasks[id.0.index as usize].as_deref().expect("the scheduler knows it");
        let number = executor.0 as usize;
        task.worker.store(executor.0, Ordering::Relaxed);
        if workers[number].give(TaskRef::of(task)) && !after.woken.contains(&number) {
            after.woken.push(number);
        }
    }

    fn recall(&mut self, workers: &[Worker], id: TaskId, executor: ExecutorId) {
        let task = self.tasks[id.0.index as usize].as_deref().expect("the scheduler knows it");
        if workers[executor.0 as usize].take_back(TaskRef::of(task)) {
            let event = Event::Recalled { task: id, executor };
            self.sched.handle(self.now, event, &mut self.out);
        }
    }

    fn forget(&mut self, workers: &[Worker], id: TaskId, after: &mut After) {
        let task = self.tasks[id.0.index as usize].as_deref_mut().expect("the scheduler knew it");
        let parent = task.parent;
        task.end();
        self.data.forget_children(&mut self.sched, id, &mut self.out);
        self.live -= 1;
        if let Some(parent) = parent {
            if super::worker::child_is_over(workers, parent) {
                match parent.get().has_drop() {
                    true => after.to_drop.push(parent),
                    false => self.reports.push(Report::Ended(parent)),
                }
            }
        }
        after.over += 1;
        if self.live == 0 {
            self.data.all_is_over(&mut self.sched, &mut self.out);
        }
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

fn executor(task: &Task) -> ExecutorId {
    ExecutorId(task.worker.load(Ordering::Relaxed))
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
        other => format!("{other:?}"),
    }
}
