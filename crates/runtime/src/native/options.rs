//! How a runtime is started, and why it cannot be.

use std::io;
use std::path::PathBuf;

use engine::Prefer;
use exec::native::stacks::{STACK_BYTES_MAX, STACK_BYTES_MIN};
use exec::native::thread;
use sched::{Learned, PolicyKind};

use crate::learned::read_learned;
use crate::options::{io_executors, io_executors_extra, IO_EXECUTORS_MAX};
use crate::storage::Storage;

/// Workers at most: an executor of the scheduler each.
pub const WORKERS_MAX: usize = 1024;

/// How a runtime is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Worker threads.
    pub workers: usize,
    /// Each on a processor of its own.
    pub pinned: bool,
    /// Bytes of a stack.
    pub stack_bytes: usize,
    /// Stacks at once.
    pub stacks_max: usize,
    /// Operations of each worker in the kernel at once.
    pub depth: u32,
    /// Which engine.
    pub engine: Prefer,
    /// I/O tasks that run at once, if nothing else limits them.
    pub io_executors: usize,
    /// How many more at once where the bandwidth of their layers limits them.
    pub io_executors_extra: usize,
    /// The storage description; `None`: the working directory, without limits.
    pub storage: Option<PathBuf>,
    /// Where what was learned is kept; `None`: nowhere.
    pub learned: Option<PathBuf>,
    /// In which order ready I/O tasks get grants.
    pub policy: PolicyKind,
    /// Move files that no task will use to their own paths while no I/O goes on.
    pub flush: bool,
    /// Copy files that tasks are about to read to a faster layer while no I/O goes on.
    pub prefetch: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            workers: thread::processors().len(),
            pinned: true,
            stack_bytes: 64 << 10,
            stacks_max: 128 << 10,
            depth: 256,
            engine: Prefer::Auto,
            io_executors: io_executors(),
            io_executors_extra: io_executors_extra(),
            storage: None,
            learned: None,
            policy: PolicyKind::default(),
            flush: false,
            prefetch: false,
        }
    }
}

/// Why a runtime could not be started.
#[derive(Debug)]
pub enum StartError {
    /// One runs in this process.
    Running,
    /// This is the child of a process whose runtime runs.
    Forked,
    /// An option makes no sense, or a file that it names; the text says which.
    Option(String),
    /// The system would not.
    System(io::Error),
}

impl Options {
    pub(super) fn check(&self) -> Result<(), StartError> {
        let wrong = |what: &str| Err(StartError::Option(what.to_string()));
        if self.workers == 0 || self.workers > WORKERS_MAX {
            return wrong("workers has to be between 1 and 1024");
        }
        let stack_bytes = STACK_BYTES_MIN..=STACK_BYTES_MAX;
        if !stack_bytes.contains(&self.stack_bytes) || self.stack_bytes % 4096 != 0 {
            return wrong("stack_bytes has to be a multiple of 4096, between 16384 and 1 GiB");
        }
        if self.stacks_max < self.workers {
            return wrong("stacks_max has to be as many as there are workers, or more");
        }
        if self.depth == 0 || self.depth > 32768 {
            return wrong("depth has to be between 1 and 32768");
        }
        if self.io_executors == 0 || self.io_executors > IO_EXECUTORS_MAX {
            return wrong(&format!("io_executors has to be between 1 and {IO_EXECUTORS_MAX}"));
        }
        Ok(())
    }

    /// The layers.
    pub(super) fn read_storage(&self) -> Result<Storage, StartError> {
        let Some(file) = &self.storage else { return Ok(Storage::default()) };
        Storage::read(file).map_err(|error| StartError::Option(error.to_string()))
    }

    /// What earlier runs learned, and where it is kept, whatever becomes of the working directory.
    pub(super) fn read_learned(&self) -> Result<(Vec<Learned>, Option<PathBuf>), StartError> {
        let Some(file) = &self.learned else { return Ok((Vec::new(), None)) };
        let file = std::path::absolute(file).map_err(StartError::System)?;
        Ok((read_learned(&file).map_err(StartError::Option)?, Some(file)))
    }
}
