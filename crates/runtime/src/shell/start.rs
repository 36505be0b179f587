//! Starting a session: shared memory, the scheduler, the runtime thread, the workers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::mpsc;
use std::sync::Arc;
use std::thread::JoinHandle;

use exec::process::Pool;
use sched::{Config, Sched};

use super::builtin::Engines;
use super::signals::Mask;
use super::state::{Granted, State};
use super::table::Table;
use super::workers::Workers;
use super::{thread, Resources, Shared};
use crate::files::Files;
use crate::machine;
use crate::options::Options;
use crate::statistics::{Overlap, Statistics};
use crate::storage::LayerSpec;
use crate::store::Store;
use crate::trace::Trace;

/// Address space of the object store, in multiples of the memory.
const HEAP_MEMORIES: u64 = 4;
/// The store's limit, unless said otherwise, in hundredths of the memory.
const STORE_PERCENT: u64 = 60;
/// Tasks that may be at a compute worker at a time.
const PIPELINE_TASKS_MAX: u32 = 64;
/// Mean run time that may wait at a compute worker.
const PIPELINE_NS_MAX: u64 = 1_000_000;

/// Why a session could not be started. Nothing is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartError {
    /// An option that makes no sense.
    Options(String),
    /// The system refused.
    System(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Options(text) | StartError::System(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for StartError {}

fn state(options: &Options) -> Result<State, StartError> {
    let layers = &options.storage.layers;
    let sched = Sched::new(Config {
        layers: layers.iter().map(LayerSpec::layer).collect(),
        policy: options.policy,
        processors: vec![options.workers as u32],
        stealing: options.stealing,
        pipeline_tasks_max: PIPELINE_TASKS_MAX,
        pipeline_ns_max: PIPELINE_NS_MAX,
        flush: options.flush,
        prefetch: options.prefetch,
        quiet_places: false,
    });
    let started_ns = exec::now_ns();
    let names = layers.iter().map(|layer| layer.name.clone()).collect();
    let trace = Trace::new(started_ns, options.record, names);
    let trace = trace.map_err(|error| {
        let folder = std::env::temp_dir();
        let folder = folder.display();
        StartError::System(format!("no temporary file for the trace in {folder}: {error}"))
    })?;
    Ok(State {
        sched,
        out: Vec::new(),
        tasks: Table::default(),
        versions: Table::default(),
        streams: BTreeMap::new(),
        hungry: BTreeSet::new(),
        functions: HashMap::new(),
        functions_made: 0,
        labels: HashMap::new(),
        label_names: Vec::new(),
        files: Files::new(layers),
        tiers: None,
        prefetches: options.prefetch,
        workers: Workers::default(),
        engines: Engines::default(),
        trace,
        totals: Statistics::default(),
        overlap: Overlap::default(),
        granted: vec![Granted::default(); layers.len()],
        none: Arc::clone(&options.none_block),
        warnings: Vec::new(),
        undersized: HashSet::new(),
        noted: HashSet::new(),
        at: None,
        drained: Vec::new(),
        sleeps_until: 0,
        forgotten: Vec::new(),
        ended: None,
        broken: None,
        started_ns,
        stopped_ns: None,
        store_recorded: 0,
    })
}

/// Starts everything. Gives the runtime thread, to be joined after the end.
pub(crate) fn start(options: Options) -> Result<(Arc<Shared>, JoinHandle<()>), StartError> {
    options.check().map_err(StartError::Options)?;
    let memory = machine::memory_bytes();
    let max = options.store_bytes_max.unwrap_or(memory / 100 * STORE_PERCENT);
    let heap = memory.max(max).saturating_mul(HEAP_MEMORIES);
    let pool = Pool::new(heap).map_err(|error| {
        StartError::System(format!(
            "no shared memory for the object store ({heap} bytes of address space; a limit \
             such as ulimit -v forbids it?): {error}"
        ))
    })?;
    let store = Store::new(&pool, max, options.store_bytes_retained);
    let state = state(&options)?;
    let limiters = pool.limiters();
    for (number, layer) in options.storage.layers.iter().enumerate() {
        limiters.set(number as u32, layer.limit.as_ref());
    }
    let resources = Resources { store, poller: Arc::clone(pool.poller()), limiters };
    let shared = Shared::new(options, resources, state);
    let (report, started) = mpsc::sync_channel(1);
    // The thread starts with all signals blocked, and never takes one.
    let everything = Mask::all();
    let program = everything.set();
    let thread = {
        let shared = Arc::clone(&shared);
        let body = move || thread::main(&shared, pool, program, &report);
        std::thread::Builder::new().name("alongside".into()).spawn(body)
    };
    program.set();
    let thread =
        thread.map_err(|error| StartError::System(format!("cannot start a thread: {error}")))?;
    match started.recv() {
        Ok(Ok(())) => Ok((shared, thread)),
        Ok(Err(text)) => {
            let _ = thread.join();
            Err(StartError::System(text))
        }
        Err(_) => {
            let _ = thread.join();
            Err(StartError::System("the runtime thread ended while it started".to_string()))
        }
    }
}
