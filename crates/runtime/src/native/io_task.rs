//! What makes a task an I/O task: what it asks of a layer, what it was granted, what it moved.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `granted` | the core, once, before it sends the task | the task, and who completes its operations |
//! | `started_ns` | the worker that takes it, once | the core, when the task is over |
//! | `moved` | who completes an operation, before the task counts one less | the same |
//! | `places` | the core, once, before it sends the task | the task |
//! | `failed` | the body | the core, when the task is over |
//! | `told` | the thread of the catalog, before it reports | the core, after that report |
//! | `is_settled` | who drops the argument, before the core hears that it is over | the core |
//!
//! What counts in the task (`Task::left`) orders the last look after everything else.

use std::ffi::{CStr, CString};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::OnceLock;

use exec::limiter::Writer;
use parking_lot::Mutex;
use sched::LayerId;

use super::io::Operation;
use super::placed::FileWanted;
use super::Errno;
use crate::tiers::tree;
use crate::tuning::Ask;

/// What an I/O task asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Bandwidth, or how it is to be found; `None`: nothing, and it is never held back.
    pub(super) bandwidth: Option<Ask>,
    /// Bytes that it needs on the layer.
    pub(super) size: u64,
    /// Only this layer will do.
    pub(super) layer: Option<LayerId>,
    /// The files that it uses.
    pub(super) files: Vec<FileWanted>,
    /// Any layer will do, wherever its files are.
    pub(super) anywhere: bool,
}

/// What a task was granted.
#[derive(Debug)]
struct Granted {
    layer: LayerId,
    /// Where the layer's bandwidth is emulated.
    writer: Option<Writer>,
}

/// The part of a task that only I/O tasks have.
#[derive(Debug, Default)]
pub(super) struct IoTask {
    granted: OnceLock<Granted>,
    started_ns: AtomicU64,
    moved: AtomicU64,
    files: Option<Box<FilePart>>,
}

/// How the catalog took what a task wrote.
#[derive(Debug)]
pub(super) enum Told {
    /// It did: the lengths of the files.
    Sizes(Vec<u64>),
    /// It did not, and so the task failed; or the task may not begin. Why.
    Refused(String),
}

/// Where the files of a task are.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// In the order of the files.
    pub(super) paths: Vec<CString>,
    /// Folders that a task may have to make: those of files that it writes at their own paths.
    pub(super) folders: Vec<PathBuf>,
    /// Directories that it finds empty.
    pub(super) anew: Vec<PathBuf>,
}

/// The part of an I/O task that only those with files have.
#[derive(Debug, Default)]
pub(super) struct FilePart {
    places: OnceLock<Places>,
    /// What the body said that it failed of; 0: it did not.
    failed: AtomicI32,
    told: Mutex<Option<Told>>,
    /// The program was told how it ended, and dropped its argument.
    is_settled: AtomicBool,
}

impl FilePart {
    /// Where its files are, in their order; once, before it is sent.
    pub(super) fn put(&self, places: Places) {
        let put = self.places.set(places);
        assert!(put.is_ok(), "a task is sent once");
    }

    /// Where a file of the task is, by its position.
    pub(super) fn place(&self, file: usize) -> Option<&CStr> {
        Some(self.places.get()?.paths.get(file)?)
    }

    /// Makes the folders that are missing, and the directories that the task is to fill. Where
    /// that cannot be the body finds out; with what is left in a directory the task has failed.
    pub(super) fn make_folders(&self) {
        let Some(places) = self.places.get() else { return };
        for folder in &places.folders {
            let _ = std::fs::create_dir_all(folder);
        }
        for folder in &places.anew {
            if let Err(error) = tree::make_empty(folder) {
                self.fail(error.raw_os_error().unwrap_or(libc::EIO));
            }
        }
    }

    /// The body failed of this.
    pub(super) fn fail(&self, errno: Errno) {
        self.failed.store(errno, Ordering::Relaxed);
    }

    /// What the body failed of, if it did.
    pub(super) fn failed(&self) -> Option<Errno> {
        Some(self.failed.load(Ordering::Relaxed)).filter(|errno| *errno != 0)
    }

    /// What the catalog had to say.
    pub(super) fn tell(&self, told: Told) {
        *self.told.lock() = Some(told);
    }

    /// The catalog refused something.
    pub(super) fn is_refused(&self) -> bool {
        matches!(*self.told.lock(), Some(Told::Refused(_)))
    }

    /// The lengths of what it wrote, where these had to be looked at. `None`: it failed.
    pub(super) fn sizes(&self) -> Option<Option<Vec<u64>>> {
        match (self.failed(), self.told.lock().take()) {
            (Some(_), _) | (_, Some(Told::Refused(_))) => None,
            (None, Some(Told::Sizes(sizes))) => Some(Some(sizes)),
            (None, None) => Some(None),
        }
    }

    /// Why it failed, for the program.
    pub(super) fn error(&self) -> Option<(Errno, String)> {
        if let Some(errno) = self.failed() {
            return Some((errno, io::Error::from_raw_os_error(errno).to_string()));
        }
        match &*self.told.lock() {
            Some(Told::Refused(why)) => Some((libc::EIO, why.clone())),
            _ => None,
        }
    }

    /// The program knows how it ended.
    pub(super) fn settle(&self) {
        self.is_settled.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Relaxed)
    }
}

impl IoTask {
    pub(super) fn new(has_files: bool) -> IoTask {
        IoTask { files: has_files.then(Box::default), ..IoTask::default() }
    }

    /// What only tasks with files have.
    pub(super) fn files(&self) -> Option<&FilePart> {
        self.files.as_deref()
    }

    /// It has its grant on this layer.
    pub(super) fn grant(&self, layer: LayerId, writer: Option<Writer>) {
        let granted = self.granted.set(Granted { layer, writer });
        assert!(granted.is_ok(), "a task is sent once");
    }

    /// The layer that it may use.
    pub(super) fn layer(&self) -> Option<LayerId> {
        self.granted.get().map(|granted| granted.layer)
    }

    /// Its body begins.
    pub(super) fn begin(&self) {
        if let Some(files) = self.files() {
            files.make_folders();
        }
        self.started_ns.store(exec::now_ns(), Ordering::Relaxed);
    }

    /// Nanoseconds since it began.
    pub(super) fn ran_ns(&self, now: u64) -> u64 {
        now.saturating_sub(self.started_ns.load(Ordering::Relaxed))
    }

    /// Bytes that its operations moved.
    pub(super) fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// An operation is about to begin. Writes pay for an emulated bandwidth now: when the operation
    /// may count as complete, in nanoseconds of the clock.
    pub(super) fn before(&self, operation: &Operation) -> u64 {
        match operation.writes() {
            true => self.pay(operation.bytes()),
            false => 0,
        }
    }

    /// An operation is complete. Reads pay now, for what there was: when it may count as complete,
    /// given what `before` said.
    pub(super) fn after(&self, writes: bool, result: i64, due_ns: u64) -> u64 {
        if result <= 0 {
            return due_ns;
        }
        self.moved.fetch_add(result as u64, Ordering::Relaxed);
        if writes {
            return due_ns;
        }
        self.pay(result)
    }

    fn pay(&self, bytes: i64) -> u64 {
        let writer = self.granted.get().and_then(|granted| granted.writer.as_ref());
        let wait_ns = writer.map_or(0, |writer| writer.acquire(bytes.max(0) as u64));
        if wait_ns == 0 {
            return 0;
        }
        exec::now_ns().saturating_add(wait_ns)
    }
}
