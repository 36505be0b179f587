//! What a session is started with.

use std::ffi::OsString;
use std::sync::Arc;

use sched::PolicyKind;

use crate::machine;
use crate::storage::Storage;

/// I/O executors for each processor, unless said otherwise.
const IO_EXECUTORS_PER_PROCESSOR: usize = 4;
/// At least so many I/O executors, unless said otherwise.
const IO_EXECUTORS_MIN: usize = 8;
/// The most compute workers that can be asked for (each needs a place in shared memory, and
/// so do their replacements).
pub const WORKERS_MAX: usize = 200;
/// I/O tasks at once, with those that the bandwidth of their layers limits, unless a number was
/// asked for. Tens of writers saturate what storage there is in a node; hundreds, a cluster's.
const IO_EXECUTORS_LIMITED: usize = 256;
/// The most I/O executors that can be asked for.
pub const IO_EXECUTORS_MAX: usize = 4000;

/// The order of grants that has this name.
pub fn policy(name: &str) -> Option<PolicyKind> {
    match name {
        "fcfs" => Some(PolicyKind::Fcfs),
        "priority" => Some(PolicyKind::Priority),
        "backfilling" => Some(PolicyKind::Backfilling),
        _ => None,
    }
}

/// What a session is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Compute worker processes.
    pub workers: usize,
    /// I/O tasks at once, if nothing else limits them: threads of the I/O worker process, which
    /// come and go with need.
    pub io_executors: usize,
    /// How many more at once where the bandwidth of their layers limits them.
    pub io_executors_extra: usize,
    /// Bytes that the object store may have in use; `None`: 60 % of the memory.
    pub store_bytes_max: Option<u64>,
    /// Freed bytes of the object store that are kept, ready to be used again.
    pub store_bytes_retained: u64,
    /// The storage layers.
    pub storage: Storage,
    /// The order in which I/O tasks get grants.
    pub policy: PolicyKind,
    /// Whether files that no task will use any more move down while no I/O goes on.
    pub flush: bool,
    /// Whether files that tasks are about to read are copied up while no I/O goes on.
    pub prefetch: bool,
    /// Whether an idle worker takes tasks that wait at another.
    pub stealing: bool,
    /// Whether the whole trace is kept.
    pub record: bool,
    /// How a worker is started: program and arguments.
    pub worker_command: Vec<OsString>,
    /// Environment variables of the workers, besides this process's own; by default those that keep
    /// numerical libraries to one thread, where they are not set.
    pub worker_environment: Vec<(OsString, OsString)>,
    /// The block that stands for a value that is not there (a pickled `None`).
    pub none_block: Arc<[u8]>,
}

/// How many I/O tasks run at once at most, unless said otherwise.
pub(crate) fn io_executors() -> usize {
    let wanted = (IO_EXECUTORS_PER_PROCESSOR * machine::processors()).max(IO_EXECUTORS_MIN);
    wanted.min(IO_EXECUTORS_MAX)
}

/// How many more at once where the bandwidth of their layers limits them, unless said otherwise.
pub(crate) fn io_executors_extra() -> usize {
    IO_EXECUTORS_LIMITED.saturating_sub(io_executors())
}

impl Default for Options {
    fn default() -> Self {
        Options {
            workers: machine::processors().min(WORKERS_MAX),
            io_executors: io_executors(),
            io_executors_extra: io_executors_extra(),
            store_bytes_max: None,
            store_bytes_retained: 1 << 30,
            storage: Storage::default(),
            policy: PolicyKind::default(),
            flush: false,
            prefetch: false,
            stealing: true,
            record: false,
            worker_command: Vec::new(),
            worker_environment: one_thread_each(),
            none_block: Arc::from([]),
        }
    }
}

/// Variables by which numerical libraries are told how many threads to start.
const THREAD_VARIABLES: [&str; 5] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
];

/// A worker has one processor: a library that starts a thread for each processor of the machine in
/// each worker would have them all fight for these. What the user has set stays.
fn one_thread_each() -> Vec<(OsString, OsString)> {
    let unset = |name: &&str| std::env::var_os(name).is_none();
    THREAD_VARIABLES.into_iter().filter(unset).map(|name| (name.into(), "1".into())).collect()
}

impl Options {
    /// Checks what can be checked before anything is started.
    pub(crate) fn check(&self) -> Result<(), String> {
        let ranged = [
            ("workers", self.workers, WORKERS_MAX),
            ("io_executors", self.io_executors, IO_EXECUTORS_MAX - self.io_executors_extra),
        ];
        for (name, given, max) in ranged {
            if given == 0 || given > max {
                return Err(format!("{name} is {given}; it must be from 1 to {max}"));
            }
        }
        if self.worker_command.is_empty() {
            return Err("worker_command is empty; it must name a program".to_string());
        }
        if self.store_bytes_max == Some(0) {
            return Err("the object store's limit is 0; it must be more".to_string());
        }
        if self.storage.layers.is_empty() {
            return Err("the storage has no layers; describe at least one".to_string());
        }
        let most = exec::limiter::LIMITERS_MAX;
        if self.storage.layers.len() > most {
            return Err(format!("the storage has more than {most} layers"));
        }
        for layer in &self.storage.layers {
            if !layer.path.is_dir() {
                let (name, path) = (&layer.name, layer.path.display());
                return Err(format!(
                    "layer \"{name}\": {path} is not a folder that can be entered"
                ));
            }
        }
        Ok(())
    }
}
