//! The face of the runtime: a session, and what a program does with it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use exec::limiter::Limiters;
use ops::Curve;
use parking_lot::Mutex;
use sched::{Constraint, DatumId, DatumKind, LayerId, Learned, TaskId, Tuning};

use crate::failures::FailureReport;
use crate::files::{FileDatum, FileError, Files, PathKind};
use crate::futures::{self, Handle, WaitEnd, WaitFor};
use crate::naming::Named;
use crate::options::Options;
use crate::placing::Unsettled;
use crate::shell::{self, Call, FunctionSpec, SessionError, Shared, SpawnError, Spawned};
use crate::shell::{StartError, FORKED};
use crate::statistics::Statistics;
use crate::storage::Storage;
use crate::store::{block, StoreFull, Value};
use crate::trace::{self, Graph, Record};

/// Stops the session when the last clone of it is gone.
struct Inner {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The layer that nobody described is measured, or somebody is at it.
    measured: AtomicBool,
    /// Held by who makes the folders of the session.
    opening: Mutex<()>,
    unsettled: Mutex<Vec<Unsettled>>,
    warnings: Mutex<Vec<String>>,
}

impl Inner {
    fn stop(&self, tell: &mut dyn FnMut(usize, usize)) {
        if self.shared.forks() != crate::fork::count() {
            return;
        }
        self.shared.stop();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // It ended; what it had to say of a panic is in the futures.
            let _ = thread.join();
        }
        let unsettled = self.shared.settle(tell);
        self.unsettled.lock().extend(unsettled);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop(&mut |_, _| {});
        if self.shared.forks() != crate::fork::count() {
            // A forked child has no such thread.
            std::mem::forget(self.thread.lock().take());
        }
    }
}

/// A running runtime. Cheap to clone; stopped when the last clone is dropped.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session {{ alive: {} }}", self.is_alive())
    }
}

impl Session {
    /// Starts a session. Its workers are on their way when this returns; tasks can be
    /// submitted at once.
    ///
    /// # Errors
    /// An option makes no sense, or the system refuses processes, threads or memory.
    pub fn start(options: Options) -> Result<Session, StartError> {
        let doubts = options.storage.doubts();
        let (shared, thread) = shell::start(options)?;
        Ok(Session(Arc::new(Inner {
            shared,
            thread: Mutex::new(Some(thread)),
            measured: AtomicBool::new(false),
            opening: Mutex::default(),
            unsettled: Mutex::default(),
            warnings: Mutex::new(doubts),
        })))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Takes a function that calls will name; its number.
    ///
    /// # Errors
    /// The session ended.
    pub fn function(&self, spec: FunctionSpec) -> Result<u64, SessionError> {
        self.shared().with(|state| state.add_function(spec))
    }

    /// Measures the layer that nobody described, if there is one and a task of such a function
    /// needs to know its bandwidth. Once a session; takes less than a second on a disk, five at
    /// most.
    ///
    /// # Errors
    /// It cannot be measured: it stays without limits. In words, and only the first time.
    pub fn measure_for(&self, constraint: Constraint, tuning: Tuning) -> Result<(), String> {
        let needs = constraint.bandwidth > 0 || matches!(tuning, Tuning::Auto { .. });
        if !needs || !self.storage().is_assumed() || self.0.measured.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let folder = &self.storage().layers[0].path;
        let bandwidth = crate::probe::quick::bandwidth(folder)?;
        let measured = self.shared().with(|state| state.sched.set_bandwidth(LayerId(0), bandwidth));
        measured.map_err(|error| error.to_string())
    }

    /// No call will name this function again. Its tasks run nevertheless.
    pub fn forget_function(&self, id: u64) {
        // If the session ended there is nothing to forget.
        let _ = self.shared().with(|state| state.forget_function(id));
    }

    /// A value from a pickle and its out-of-band buffers; copies them once. (After the end of
    /// the session, into memory of this process.)
    ///
    /// # Errors
    /// The object store is full.
    pub fn encode(&self, pickle: &[u8], buffers: &[&[u8]]) -> Result<Value, StoreFull> {
        match self.shared().store() {
            Some(store) => store.encode(pickle, buffers),
            None => Ok(Value::Inline(block::encode(pickle, buffers).into())),
        }
    }

    /// A future whose value is there.
    ///
    /// # Errors
    /// The session ended.
    pub fn put(&self, value: Value) -> Result<Handle, SessionError> {
        let shared = self.shared();
        shared.with(|state| state.put(shared, value))
    }

    /// Takes a call. The task may be on its way to a worker when this returns.
    ///
    /// # Errors
    /// The call makes no sense or can never run; nothing was changed.
    pub fn spawn(&self, call: Call) -> Result<Spawned, SpawnError> {
        let shared = self.shared();
        shared.with(|state| state.spawn(shared, call)).map_err(SpawnError::Session)?
    }

    /// An object of the program, to be used by tasks in any direction.
    ///
    /// # Errors
    /// The session ended.
    pub fn object(&self, initial: &Handle) -> Result<DatumId, SessionError> {
        if !initial.belongs_to(self.shared()) {
            return Err(SessionError("this future belongs to another session".into()));
        }
        let datum = self
            .shared()
            .with(|state| state.sched.add_datum(DatumKind::Value, Some(initial.version())))?;
        Ok(datum.expect("the handle names the version"))
    }

    /// A file, to be used by tasks in any direction. The same file is the same datum. A task that
    /// `writes` it may do so away from its own path.
    ///
    /// # Errors
    /// The path cannot be used, there is no room for a catalog, or the session ended.
    pub fn file(&self, path: &Path, writes: bool) -> Result<FileDatum, FileError> {
        self.path(path, writes, Some(PathKind::File))
    }

    /// As `file`, for what is of a kind (none: of either). A path below a directory that tasks use
    /// is a part of that: it is read with it.
    ///
    /// # Errors
    /// As `file`; `Kind` if it is of another kind, and `Overlaps` if it would be written apart from
    /// what it is a part of.
    pub fn path(
        &self,
        path: &Path,
        writes: bool,
        kind: Option<PathKind>,
    ) -> Result<FileDatum, FileError> {
        // The file system is looked at without the mutex.
        let looked = Named::look(path)?;
        let named = self.shared().with(|state| {
            let file = state.name_file(&looked, kind, writes)?;
            let is_managed = state.files.get(file.datum).is_some_and(|file| file.managed);
            let may_move = writes || state.prefetches;
            Ok((file, may_move && is_managed && !state.has_tiers()))
        });
        let (file, wants_tiers) = named.map_err(FileError::Session)??;
        if wants_tiers {
            self.open_tiers()?;
        }
        Ok(file)
    }

    /// Makes the folders for files away from their own paths, and the catalog, once a session.
    fn open_tiers(&self) -> Result<(), FileError> {
        let _one = self.0.opening.lock();
        let shared = self.shared();
        let known = shared.look(|state| (state.has_tiers(), state.files.layers().to_vec()));
        let (done, layers) = known.map_err(FileError::Session)?;
        if done {
            return Ok(());
        }
        let text = |error: std::io::Error| {
            FileError::Staging(format!(
                "the catalog of the session cannot be made in the working directory, so files \
                 cannot be kept on several layers: {error}"
            ))
        };
        let opened = crate::tiers::open(&layers).map_err(text)?;
        let refused = opened.problems.iter().map(|(layer, error)| {
            let name = &layers[*layer].name;
            format!("layer \"{name}\" takes no files of tasks: {error}")
        });
        self.0.warnings.lock().extend(refused);
        let added = shared.with(|state| state.add_tiers(shared, opened));
        added.map_err(FileError::Session)?.map_err(text)
    }

    /// The future of the latest version of an object or a file. For a file its value is the
    /// block of `None`.
    ///
    /// # Errors
    /// The session ended, or the datum was forgotten.
    pub fn current(&self, datum: DatumId) -> Result<Handle, SessionError> {
        let shared = self.shared();
        let handle = shared.with(|state| match state.sched.current(datum) {
            Some(version) => Some(state.handle_of(shared, version)),
            None => {
                // A file that no task has written is as it is.
                state.files.get(datum)?;
                Some(state.put(shared, Value::Inline(Arc::clone(&shared.options.none_block))))
            }
        })?;
        handle.ok_or_else(|| SessionError("this object or file was forgotten".into()))
    }

    /// The program can no longer name an object or a file.
    pub fn forget_datum(&self, datum: DatumId) {
        // If the session ended there is nothing to forget.
        let _ = self.shared().with(|state| {
            state.files.remove(datum);
            state.sched.drop_datum(datum, &mut state.out);
        });
    }

    /// A path for a file or directory that goes with the session, and is deleted sooner if
    /// [`forget_path`](Session::forget_path) is called and no task uses it.
    ///
    /// # Errors
    /// There is no room for a catalog, or the session ended.
    pub fn scratch(&self, name: &Path) -> Result<PathBuf, FileError> {
        self.open_tiers()?;
        let path = self.shared().with(|state| state.files.scratch(name));
        let nowhere = || FileError::Staging("no layer takes files of tasks".into());
        path.map_err(FileError::Session)?.ok_or_else(nowhere)
    }

    /// The program can no longer name the path of a scratch file.
    pub fn forget_path(&self, path: &Path) {
        let Ok(key) = Files::key(path) else { return };
        // If the session ended there is nothing to forget.
        let _ = self.shared().with(|state| {
            state.forget_file(&key.home);
        });
    }

    /// Where the data of a file are now; `None`: nowhere yet, or not a file.
    pub fn place_of(&self, datum: DatumId) -> Option<PathBuf> {
        self.shared().look(|state| state.place_of(datum)).ok().flatten()
    }

    /// Which layer a place is on, and the emulated bandwidth of that layer.
    pub fn layer_of(&self, place: &Path) -> Option<(usize, Option<Curve>)> {
        let layer = self.shared().look(|state| state.files.layer_of(place)).ok().flatten()?;
        let number = layer.0 as usize;
        Some((number, self.storage().layers[number].limit.clone()))
    }

    /// The emulated bandwidths, by the numbers of their layers; `None` after the end.
    pub fn limiters(&self) -> Option<Limiters> {
        self.shared().limiters()
    }

    /// Cancels a task whose body has not begun. `true`: it will not run.
    pub fn cancel(&self, task: TaskId) -> bool {
        let shared = self.shared();
        shared.with(|state| state.cancel(shared, task)).unwrap_or(false)
    }

    /// Cancels every task whose body has not begun; how many.
    pub fn cancel_all(&self) -> usize {
        let shared = self.shared();
        shared.with(|state| state.cancel_all(shared)).unwrap_or(0)
    }

    /// Waits for all or any of the futures. When a signal comes, `interrupted` says whether
    /// to stop waiting.
    pub fn wait(
        &self,
        handles: &[Handle],
        until: WaitFor,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> WaitEnd {
        futures::wait(handles, until, timeout, interrupted)
    }

    /// No producer of a stream goes on: nobody will take its values.
    pub fn close_streams(&self) {
        let shared = self.shared();
        // A session that ended has closed them.
        let _ = shared.with(|state| state.close_streams(shared));
    }

    /// Waits until no task is left.
    pub fn drain(
        &self,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> WaitEnd {
        self.shared().drain(timeout, interrupted)
    }

    /// Has [`Session::next_notification`] give `tag` once the outcome is there.
    pub fn notify(&self, handle: &Handle, tag: u64) {
        handle.notify(tag, &self.shared().notifications);
    }

    /// The next tag; waits for one. `None`: the session ended.
    pub fn next_notification(&self) -> Option<u64> {
        if self.shared().forks() != crate::fork::count() {
            return None;
        }
        self.shared().notifications.next()
    }

    /// The first failure that should end the program and that nobody has looked at.
    pub fn first_failure(&self) -> Option<FailureReport> {
        self.shared().failures.first()
    }

    /// Figures, as they are now.
    pub fn statistics(&self) -> Statistics {
        let store = self.shared().store().map(|store| store.bytes());
        self.shared().look(|state| state.statistics(store)).unwrap_or_default()
    }

    /// What was learned about constraints, for a later session.
    pub fn learned(&self) -> Vec<Learned> {
        self.shared().look(|state| state.sched.learned()).unwrap_or_default()
    }

    /// Takes in what earlier sessions learned. Functions that have tasks already learn on.
    pub fn load_learned(&self, learned: Vec<Learned>) {
        let _ = self.shared().look(|state| state.sched.load(learned));
    }

    /// The records of the trace that are kept, oldest first.
    pub fn events(&self) -> Vec<Record> {
        let mut records = Vec::new();
        if let Ok(snapshot) = self.shared().look(|state| state.trace.snapshot()) {
            // What could be read is given; `export_trace` says what is missing.
            let _ = snapshot.for_each(&mut |record| records.push(record));
        }
        records
    }

    /// The names that [`Record::function`] counts.
    pub fn names(&self) -> Vec<Arc<str>> {
        self.shared().look(|state| state.trace.names().to_vec()).unwrap_or_default()
    }

    /// Writes the trace as Chrome JSON, which Perfetto opens.
    ///
    /// # Errors
    /// What could not be written or read, with the path.
    pub fn export_trace(&self, path: &Path) -> Result<(), String> {
        let snapshot = self.shared().look(|state| state.trace.snapshot());
        let snapshot = snapshot.map_err(|error| error.to_string())?;
        let write = || {
            let mut file = BufWriter::new(File::create(path)?);
            trace::write_chrome(&snapshot, &mut file)?;
            file.flush()
        };
        write().map_err(|error| format!("the trace was not written to {}: {error}", path.display()))
    }

    /// The task graph. Without `record`: only the latest tasks, without edges.
    ///
    /// # Errors
    /// The recorded trace could not be read.
    pub fn graph(&self) -> Result<Graph, String> {
        let snapshot = self.shared().look(|state| state.trace.snapshot());
        let snapshot = snapshot.map_err(|error| error.to_string())?;
        trace::build_graph(&snapshot).map_err(|error| format!("the trace was not read: {error}"))
    }

    /// What the scheduler knows of the latest moves of a task.
    pub fn story(&self, task: TaskId) -> Vec<String> {
        let story = self.shared().look(|state| state.sched.story(task)).unwrap_or_default();
        story.into_iter().map(|step| format!("{step:?}")).collect()
    }

    /// Whether tasks can be submitted.
    pub fn is_alive(&self) -> bool {
        self.shared().look(|state| state.ended.is_none()).unwrap_or(false)
    }

    /// Why the session broke down, if it did.
    pub fn broken(&self) -> Option<Arc<str>> {
        self.shared().look(|state| state.broken.clone()).unwrap_or_else(|_| Some(FORKED.into()))
    }

    /// The storage layers.
    pub fn storage(&self) -> &Storage {
        &self.shared().options.storage
    }

    /// What the session was started with.
    pub fn options(&self) -> &Options {
        &self.shared().options
    }

    /// The processes of the workers that are alive.
    pub fn worker_pids(&self) -> Vec<u32> {
        let pids = self
            .shared()
            .look(|state| state.workers.all.values().map(|worker| worker.process.pid()).collect());
        pids.unwrap_or_default()
    }

    /// Ends the session: every process, every descriptor, all memory that no value needs.
    /// With `cancel`, tasks that run are killed; without, all tasks are waited for. In a forked
    /// child, nothing.
    ///
    /// Files that tasks wrote away from their own paths are brought there; what could not be is in
    /// [`Session::unsettled`].
    pub fn stop(&self, cancel: bool) {
        self.stop_telling(cancel, &mut |_, _| {});
    }

    /// As [`Session::stop`]; `tell` hears how many files were brought to their own paths, of how
    /// many.
    pub fn stop_telling(&self, cancel: bool, tell: &mut dyn FnMut(usize, usize)) {
        if !cancel {
            self.drain(None, &mut || false);
        }
        self.cancel_all();
        self.0.stop(tell);
    }

    /// What the user should hear of, and was not told yet.
    pub fn take_warnings(&self) -> Vec<String> {
        let mut warnings = std::mem::take(&mut *self.0.warnings.lock());
        let more = self.shared().look(|state| std::mem::take(&mut state.warnings));
        warnings.extend(more.unwrap_or_default());
        warnings
    }

    /// The files that could not be brought to their own paths when the session ended.
    pub fn unsettled(&self) -> Vec<Unsettled> {
        self.0.unsettled.lock().clone()
    }
}
