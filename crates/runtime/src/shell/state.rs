//! The driver's tables, and what they hold of tasks, versions, functions and files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use exec::claims::Claim;
use sched::{
    DatumId, Direction, ExecutorId, Failure, FunctionId, Instruction, Kind, LayerId, Sched, TaskId,
    VersionId,
};
use smallvec::SmallVec;

use super::builtin::{Builtin, Engines};
use super::staged::{Ending, Tiers};
use super::streams::Producer;
use super::table::Table;
use super::workers::Workers;
use crate::files::Files;
use crate::futures::{Core, Fault, Outcome, Signal};
use crate::statistics::{FunctionStatistics, Overlap, Statistics};
use crate::store::{Pin, Value};
use crate::trace::{Record, RecordKind, Trace};
use crate::tuning::TunedStatistics;

/// Where a version stands.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    Pending,
    There,
    Failed(Arc<Failure>),
}

/// What is kept of a version.
pub(crate) struct Version {
    pub(crate) value: Option<Value>,
    pub(crate) core: Option<Arc<Core>>,
    pub(crate) standing: Standing,
    /// The tasks that make it (several only for a group, and only while recording).
    pub(crate) producers: SmallVec<[TaskId; 1]>,
    /// For a version that several tasks write: what they started from.
    pub(crate) base: Option<VersionId>,
}

impl Version {
    pub(crate) fn pending(producer: TaskId) -> Version {
        Version {
            value: None,
            core: None,
            standing: Standing::Pending,
            producers: SmallVec::from_buf([producer]),
            base: None,
        }
    }

    pub(crate) fn there(value: Value, core: Arc<Core>) -> Version {
        Version {
            value: Some(value),
            core: Some(core),
            standing: Standing::There,
            producers: SmallVec::new(),
            base: None,
        }
    }

    /// What its future holds, once it stands.
    pub(crate) fn outcome(&self, none: &Arc<[u8]>) -> Option<Outcome> {
        match &self.standing {
            Standing::Pending => None,
            Standing::Failed(failure) => Some(Err(Fault::Failed(Arc::clone(failure)))),
            Standing::There => {
                let none = || Value::Inline(Arc::clone(none));
                Some(Ok(self.value.clone().unwrap_or_else(none)))
            }
        }
    }
}

/// Where a task was sent to.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) executor: ExecutorId,
    pub(crate) attempt: u32,
    /// The worker's; the engine begins a task when it gets it.
    pub(crate) claim: Option<Claim>,
    pub(crate) layer: Option<LayerId>,
    /// Memory that the run may look at until it has ended: its record, if that was too long for
    /// a message, and values of groups, which may fail (and be discarded) while it runs.
    pub(crate) pins: SmallVec<[Pin; 1]>,
}

/// What is kept of a task that is not over.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) function: u64,
    pub(crate) label: FunctionId,
    /// Its name in the trace.
    pub(crate) name: u32,
    pub(crate) kind: Kind,
    pub(crate) arguments: Value,
    /// How it uses its inputs (the first accesses).
    pub(crate) inputs: SmallVec<[Direction; 2]>,
    /// Which files it uses (the accesses after them).
    pub(crate) files: SmallVec<[(DatumId, Direction); 1]>,
    pub(crate) returns: u32,
    /// What the engine does of it, if it can.
    pub(crate) builtin: Option<Builtin>,
    pub(crate) durable: bool,
    /// Bandwidth that its run was granted.
    pub(crate) granted: u64,
    /// Bytes that it said it needs on its layer.
    pub(crate) size: u64,
    pub(crate) sent: Option<Sent>,
    /// Files (by position) that its run is done with.
    pub(crate) released: SmallVec<[u32; 1]>,
    /// How many of them the catalog is being told of; the end of the run waits for that.
    pub(crate) releasing: u32,
    pub(super) ending: Option<Box<Ending>>,
    /// Where it is to begin when the catalog says so: executor and attempt.
    pub(crate) deferred: Option<(ExecutorId, u32)>,
}

/// A function that tasks name.
pub(crate) struct Function {
    pub(crate) spec: super::FunctionSpec,
    pub(crate) label: FunctionId,
    pub(crate) tasks: u64,
    pub(crate) forgotten: bool,
}

/// What is granted of a layer, for the trace.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Granted {
    pub(crate) bandwidth: u64,
    pub(crate) tasks: u64,
}

/// Everything that the mutex protects.
pub(crate) struct State {
    pub(crate) sched: Sched,
    /// Instructions that were not carried out yet. Empty whenever the mutex is free.
    pub(crate) out: Vec<Instruction>,
    pub(crate) tasks: Table<TaskId, Task>,
    pub(crate) versions: Table<VersionId, Version>,
    /// By the task that makes it.
    pub(super) streams: BTreeMap<u64, Producer>,
    /// Those whose producers are about to wait for consumers, or do.
    pub(super) hungry: BTreeSet<u64>,
    pub(crate) functions: HashMap<u64, Function>,
    pub(crate) functions_made: u64,
    /// One label for all functions of a name and kind: statistics and means are kept by it.
    pub(crate) labels: HashMap<(Arc<str>, Kind), FunctionId>,
    /// The names of the labels in the trace.
    pub(crate) label_names: Vec<u32>,
    pub(crate) files: Files,
    pub(super) tiers: Option<Tiers>,
    /// Files that tasks are about to read are copied up.
    pub(crate) prefetches: bool,
    pub(crate) workers: Workers,
    pub(super) engines: Engines,
    pub(crate) trace: Trace,
    pub(crate) totals: Statistics,
    pub(crate) overlap: Overlap,
    pub(crate) granted: Vec<Granted>,
    pub(crate) none: Arc<[u8]>,
    /// What the user should hear of, and was not told yet.
    pub(crate) warnings: Vec<String>,
    /// Functions whose `size` was told to be far too small.
    pub(crate) undersized: HashSet<FunctionId>,
    /// Root failures that were written down, of tasks that are not over.
    pub(crate) noted: HashSet<*const Failure>,
    /// The task that is being dealt with, for internal errors.
    pub(crate) at: Option<TaskId>,
    /// Who waits for the last task to be over.
    pub(crate) drained: Vec<Arc<Signal>>,
    /// Until when the runtime thread sleeps; 0: it does not.
    pub(crate) sleeps_until: u64,
    /// Room for names that were dropped.
    pub(crate) forgotten: Vec<VersionId>,
    /// Why nothing can be done any more.
    pub(crate) ended: Option<Arc<str>>,
    /// Why it broke down, if it did.
    pub(crate) broken: Option<Arc<str>>,
    pub(crate) started_ns: u64,
    pub(crate) stopped_ns: Option<u64>,
    pub(crate) store_recorded: u64,
}

// SAFETY: `noted` holds addresses only to compare them; nothing is read through them.
unsafe impl Send for State {}

impl State {
    pub(crate) fn is_sent(&self, task: TaskId) -> bool {
        self.tasks.get(task).is_some_and(|task| task.sent.is_some())
    }

    /// Whether the runtime thread has something to do before its time.
    pub(crate) fn wants_thread(&self) -> bool {
        let late = self.sched.next_deadline().is_some_and(|at| at < self.sleeps_until);
        late || self.workers.wants_thread() || self.broken.is_some()
    }

    /// The label of a name and kind.
    pub(crate) fn label(&mut self, name: &Arc<str>, kind: Kind) -> FunctionId {
        if let Some(label) = self.labels.get(&(Arc::clone(name), kind)) {
            return *label;
        }
        let label = self.sched.add_function(Arc::clone(name));
        let traced = self.trace.name(Arc::clone(name));
        assert_eq!(label.0 as usize, self.label_names.len(), "labels are numbered in order");
        self.label_names.push(traced);
        self.totals.functions.push(FunctionStatistics::new(Arc::clone(name), kind));
        self.labels.insert((Arc::clone(name), kind), label);
        label
    }

    pub(crate) fn statistics_of(&mut self, label: FunctionId) -> &mut FunctionStatistics {
        &mut self.totals.functions[label.0 as usize]
    }

    /// Adds a record of a task to the trace.
    pub(crate) fn trace_task(&mut self, kind: RecordKind, id: TaskId, fill: impl Fn(&mut Record)) {
        let mut record = Record::new(exec::now_ns(), kind);
        record.task = id.to_bits();
        if let Some(task) = self.tasks.get(id) {
            record.function = task.name;
        }
        fill(&mut record);
        self.trace.push(record);
    }

    /// What is granted of a layer changed.
    pub(crate) fn grant(&mut self, layer: LayerId, change: impl Fn(&mut Granted)) {
        let granted = &mut self.granted[layer.0 as usize];
        change(granted);
        let mut record = Record::new(exec::now_ns(), RecordKind::Granted);
        record.layer = layer.0;
        record.amount = granted.bandwidth;
        record.other = granted.tasks;
        self.trace.push(record);
    }

    /// What runs now, as far as the driver knows: kind and start.
    pub(crate) fn running(&self) -> Vec<(Kind, u64)> {
        let busy = self.workers.all.values().filter(|worker| worker.is_busy());
        let engines = self.engines.busy_since_ns().map(|since| (Kind::Io, since));
        busy.map(|worker| (worker.kind, worker.busy_since_ns)).chain(engines).collect()
    }

    /// The figures as they are now.
    pub(crate) fn statistics(&self, store: Option<(u64, u64)>) -> Statistics {
        let mut figures = self.totals.clone();
        let now = self.stopped_ns.unwrap_or_else(exec::now_ns);
        figures.elapsed_ns = now.saturating_sub(self.started_ns);
        figures.live = self.tasks.len() as u64;
        figures.tuned = TunedStatistics::all(&self.sched);
        if let Some(store) = store {
            (figures.store_bytes, figures.store_bytes_peak) = store;
        }
        self.overlap.report(now, self.running().into_iter(), &mut figures);
        figures
    }

    /// Where a file's data are now, if that is known.
    pub(crate) fn place_of(&self, datum: DatumId) -> Option<PathBuf> {
        self.files.get(datum).map(|file| file.best().place)
    }

    /// Ends everything that waits, with an error.
    pub(crate) fn break_down(&mut self, why: &Arc<str>) {
        if self.broken.is_none() {
            self.broken = Some(Arc::clone(why));
        }
        self.fail_all(why);
    }

    /// No future stays open.
    pub(crate) fn fail_all(&mut self, why: &Arc<str>) {
        self.ended.get_or_insert_with(|| Arc::clone(why));
        self.out.clear();
        for version in self.versions.clear() {
            if let Some(core) = &version.core {
                core.fill(Err(Fault::Session(Arc::clone(why))));
            }
        }
        drop(self.tasks.clear());
        self.functions.clear();
        self.streams.clear();
        self.hungry.clear();
        self.drained.drain(..).for_each(|signal| signal.hit());
        self.stopped_ns.get_or_insert_with(exec::now_ns);
    }
}
