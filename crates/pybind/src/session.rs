//! [`Session`]: calls into the runtime.

use std::collections::HashMap;
use std::ffi::{CString, OsString};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::exceptions::{PyOSError, PyRuntimeWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyList, PyTuple};
use runtime::{
    block, parse_tuning, Ahead, Builtin, Call, Constraint, DatumId, FileUse, FunctionSpec,
    GraphEnd, Input, Kind, OnFailure, Options, Overrides, PathKind, PolicyKind, RepeatedCall,
    Spawned, StartError, StreamBuffer, Tuning, Value, WaitEnd, WaitFor,
};

use crate::buffer::{Given, COPY_BYTES_DETACHED_MIN};
use crate::errors::{self, ConstraintError, StoreFullError};
use crate::fault::Fault;
use crate::handle::{duration, future, waited, Core, Handle};
use crate::machine::{self, Layer, Limiter};
use crate::slots;
use crate::statistics::Statistics;
use crate::stream::Stream;
use crate::tuned::{self, LearnedLine};

/// `None`, pickled.
const NONE_PICKLE: &[u8] = b"\x80\x05N.";
const NS_PER_S: f64 = 1e9;

static NUMBERS: AtomicU64 = AtomicU64::new(1);

type Node = (u64, String, bool, Option<u64>, &'static str);
type Edge = (u64, u64);

/// A running session.
#[pyclass(frozen, module = "alongside._native")]
pub(crate) struct Session {
    inner: runtime::Session,
    number: u64,
    future_type: Py<PyAny>,
    names: Mutex<HashMap<u64, (Arc<str>, u32)>>,
}

impl Session {
    fn future<'py>(
        &self,
        py: Python<'py>,
        inner: runtime::Handle,
        name: Option<Arc<str>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        future(py, &self.future_type, Core { inner, session: self.number, name })
    }

    /// The one copy of a value: into a message, or into the object store.
    fn encode(&self, py: Python<'_>, data: &[u8], buffers: &Bound<'_, PyList>) -> PyResult<Value> {
        let given = Given::new(buffers)?;
        let slices = given.slices();
        let bytes = data.len() + slices.iter().map(|slice| slice.len()).sum::<usize>();
        let value = if bytes < COPY_BYTES_DETACHED_MIN {
            self.inner.encode(data, &slices)
        } else {
            py.detach(|| self.inner.encode(data, &slices))
        };
        value.map_err(|full| StoreFullError::new_err(full.to_string()))
    }

    fn named(&self, function: u64) -> Option<(Arc<str>, u32)> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).get(&function).cloned()
    }
}

fn none_block() -> Arc<[u8]> {
    let layout = block::Layout::new(NONE_PICKLE.len(), std::iter::empty());
    let mut bytes = vec![0; layout.total()];
    layout.write(&mut bytes, NONE_PICKLE, &[]);
    bytes.into()
}

fn on_failure(text: &str) -> PyResult<OnFailure> {
    Ok(match text {
        "fail" => OnFailure::Fail,
        "ignore" => OnFailure::Ignore,
        "cancel_dependents" => OnFailure::CancelDependents,
        _ => return Err(PyValueError::new_err(format!("on_failure={text:?} is unknown"))),
    })
}

fn builtin((name, offset, size): (&str, u64, Option<u64>)) -> PyResult<Builtin> {
    Ok(match name {
        "read" => Builtin::Read { offset, size },
        "write" => Builtin::Write,
        "copy" => Builtin::Copy,
        "persist" => Builtin::Persist,
        _ => return Err(PyValueError::new_err(format!("{name:?} is no built-in task"))),
    })
}

fn policy(text: &str) -> PyResult<PolicyKind> {
    let unknown = || ConstraintError::new_err(format!("io_policy={text:?} is unknown"));
    runtime::options::policy(text).ok_or_else(unknown)
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (*, command, future_type, workers=None, io_executors=None, storage=None,
                        io_policy="fcfs", flush=false, prefetch=false, record=false,
                        memory=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments of one Python call
    fn new(
        py: Python<'_>,
        command: Vec<OsString>,
        future_type: Py<PyAny>,
        workers: Option<usize>,
        io_executors: Option<usize>,
        storage: Option<&str>,
        io_policy: &str,
        flush: bool,
        prefetch: bool,
        record: bool,
        memory: Option<u64>,
    ) -> PyResult<Session> {
        let mut options = Options {
            storage: machine::storage(storage)?,
            policy: policy(io_policy)?,
            flush,
            prefetch,
            record,
            worker_command: command,
            none_block: none_block(),
            ..Options::default()
        };
        options.workers = workers.unwrap_or(options.workers);
        if let Some(at_once) = io_executors {
            (options.io_executors, options.io_executors_extra) = (at_once, 0);
        }
        options.store_bytes_max = memory.or(options.store_bytes_max);
        let started = py.detach(|| runtime::Session::start(options));
        let inner = started.map_err(|error| match error {
            StartError::Options(_) => ConstraintError::new_err(error.to_string()),
            StartError::System(_) => errors::session(error),
        })?;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Ok(Session { inner, number, future_type, names: Mutex::default() })
    }

    /// Its number in this process.
    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    /// Makes a function known. Gives its number.
    #[pyo3(signature = (name, data, buffers, *, io, cpus, priority, retries, timeout, on_failure,
                        bandwidth, tuning, size, durable, asynchronous, returns, buffer=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments of one Python call
    fn function(
        &self,
        py: Python<'_>,
        name: &str,
        data: &[u8],
        buffers: &Bound<'_, PyList>,
        io: bool,
        cpus: u32,
        priority: i32,
        retries: u32,
        timeout: Option<f64>,
        on_failure: &str,
        bandwidth: u64,
        tuning: Option<&str>,
        size: u64,
        durable: bool,
        asynchronous: bool,
        returns: u32,
        buffer: Option<u32>,
    ) -> PyResult<u64> {
        let name: Arc<str> = name.into();
        let spec = FunctionSpec {
            name: name.clone(),
            blob: self.encode(py, data, buffers)?,
            kind: if io { Kind::Io } else { Kind::Compute },
            cpus,
            priority,
            retries,
            timeout_ns: timeout.map(|seconds| (seconds * NS_PER_S) as u64),
            on_failure: self::on_failure(on_failure)?,
            constraint: Constraint { bandwidth, size, ..Constraint::default() },
            tuning: tuning
                .map_or(Ok(Tuning::Static), parse_tuning)
                .map_err(PyValueError::new_err)?,
            durable,
            asynchronous,
            returns,
            buffer: buffer.map(|values| match values {
                0 => StreamBuffer::Automatic,
                values => StreamBuffer::Values(values),
            }),
        };
        let (constraint, tuning) = (spec.constraint, spec.tuning);
        if let Err(text) = py.detach(|| self.inner.measure_for(constraint, tuning)) {
            let category = py.get_type::<PyRuntimeWarning>();
            PyErr::warn(py, &category, &CString::new(text)?, 2)?;
        }
        let id = self.inner.function(spec).map_err(errors::session)?;
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(id, (name, returns));
        Ok(id)
    }

    /// Drops a function once no task needs it.
    fn forget_function(&self, function: u64) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).remove(&function);
        self.inner.forget_function(function);
    }

    /// Submits a call whose inputs were noted while it was pickled. Gives a future, or a tuple; of
    /// a stream its first future and the stream.
    /// `builtin` is what the engine is to do of it: `(name, offset, size)`.
    #[pyo3(signature = (function, data, buffers, files=None, builtin=None))]
    fn spawn<'py>(
        &self,
        py: Python<'py>,
        function: u64,
        data: &[u8],
        buffers: &Bound<'py, PyList>,
        files: Option<Vec<(u64, u8)>>,
        builtin: Option<(&str, u64, Option<u64>)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some((name, returns)) = self.named(function) else {
            return Err(errors::session(format!("function {function} was forgotten")));
        };
        let arguments = self.encode(py, data, buffers)?;
        let mut uses = Vec::new();
        for (datum, direction) in files.unwrap_or_default() {
            let direction = slots::direction(direction)?;
            uses.push(FileUse { datum: DatumId::from_bits(datum), direction });
        }
        let builtin = builtin.map(self::builtin).transpose()?;
        let (inputs, overrides) = (slots::take(), Overrides::default());
        let call = Call { function, arguments, inputs, files: uses, builtin, overrides };
        let Spawned { returns: handles, stream, .. } =
            self.inner.spawn(call).map_err(errors::refused)?;
        let mut futures = Vec::with_capacity(handles.len());
        for handle in handles {
            futures.push(self.future(py, handle, Some(name.clone()))?);
        }
        if let Some(inner) = stream {
            let future_type = self.future_type.clone_ref(py);
            let (session, mapped) = (self.number, OnceLock::new());
            let stream = Stream { inner, session, name, future_type, mapped };
            let first = futures.pop().ok_or_else(|| errors::session("a stream has a future"))?;
            return Ok((first, stream).into_pyobject(py)?.into_any());
        }
        if returns == 1 {
            return futures.pop().ok_or_else(|| errors::session("a task without a future"));
        }
        Ok(PyTuple::new(py, futures)?.into_any())
    }

    /// Has a function called for each value of a stream from now on, `following` being the future
    /// of the next one, with arguments that were pickled with that: ahead of the program by so many
    /// calls (0: as the runtime sees fit). False, and nothing was done: the call has other inputs,
    /// too, or the function does not give one value.
    fn map(
        &self,
        py: Python<'_>,
        stream: &Stream,
        following: &Handle,
        function: u64,
        packed: (PyBackedBytes, Bound<'_, PyList>),
        ahead: u32,
    ) -> PyResult<bool> {
        let inputs = slots::take();
        let [Input::Handle(input)] = &inputs[..] else { return Ok(false) };
        let next = following.inner();
        if input.key() != next.key() || stream.session != self.number {
            return Ok(false);
        }
        let Some((name, _)) = self.named(function) else { return Ok(false) };
        let repeated = RepeatedCall { function, arguments: self.encode(py, &packed.0, &packed.1)? };
        let ahead = if ahead == 0 { Ahead::Automatic } else { Ahead::Calls(ahead) };
        let begun = stream.inner.map(repeated, ahead, next).map_err(errors::session)?;
        if begun {
            let _ = stream.mapped.set(name);
        }
        Ok(begun)
    }

    /// Stores a value. Gives a future that is done.
    fn put<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        buffers: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = self.encode(py, data, buffers)?;
        let handle = self.inner.put(value).map_err(errors::session)?;
        self.future(py, handle, None)
    }

    /// Begins to track an object with this first version. Gives its datum.
    fn object(&self, initial: &Handle) -> PyResult<u64> {
        Ok(self.inner.object(initial.inner()).map_err(errors::session)?.to_bits())
    }

    /// The datum of a file or `directory` (None: either) that a task reads or `writes`; whether
    /// there is one (now, or once its task ran); where; where below that the path leads; whether
    /// nothing is there that tasks did not make.
    fn file(
        &self,
        path: PathBuf,
        writes: bool,
        directory: Option<bool>,
    ) -> PyResult<(u64, bool, PathBuf, OsString, bool)> {
        let kind = directory.map(|directory| match directory {
            true => PathKind::Directory,
            false => PathKind::File,
        });
        let file = self.inner.path(&path, writes, kind).map_err(errors::file)?;
        Ok((file.datum.to_bits(), file.known, file.place, file.inside.into_os_string(), file.anew))
    }

    /// A path for a file or directory that goes with the session.
    fn scratch(&self, name: PathBuf) -> PyResult<OsString> {
        let path = self.inner.scratch(&name).map_err(errors::file)?;
        Ok(path.into_os_string())
    }

    /// The program can no longer name the path of a scratch file.
    fn forget_path(&self, path: PathBuf) {
        self.inner.forget_path(&path);
    }

    /// What the user should hear of, and was not told yet.
    fn take_warnings(&self) -> Vec<String> {
        self.inner.take_warnings()
    }

    /// A future of the latest version of an object or file.
    fn current<'py>(&self, py: Python<'py>, datum: u64) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.inner.current(DatumId::from_bits(datum)).map_err(errors::session)?;
        self.future(py, handle, None)
    }

    /// Stops tracking an object.
    fn forget_datum(&self, datum: u64) {
        self.inner.forget_datum(DatumId::from_bits(datum));
    }

    /// Where a file is now.
    fn place_of(&self, datum: u64) -> Option<PathBuf> {
        self.inner.place_of(DatumId::from_bits(datum))
    }

    /// The emulated bandwidth of the place of a path, if it has one.
    fn limiter_of(&self, path: PathBuf) -> Option<Limiter> {
        let (layer, limit) = self.inner.layer_of(&path)?;
        limit?;
        Some(Limiter::new(self.inner.limiters()?.writer(layer as u32)))
    }

    /// Cancels the task of a future if its body has not begun.
    fn cancel(&self, handle: &Handle) -> bool {
        handle.inner().task().is_some_and(|task| self.inner.cancel(task))
    }

    /// Cancels every task whose body has not begun. How many those were.
    fn cancel_all(&self) -> usize {
        self.inner.cancel_all()
    }

    /// Waits for all, at most `timeout` seconds. Whether all are done.
    fn wait(
        &self,
        py: Python<'_>,
        handles: Vec<Bound<'_, Handle>>,
        timeout: Option<f64>,
    ) -> PyResult<bool> {
        let timeout = duration(timeout)?;
        let handles: Vec<_> = handles.iter().map(|handle| handle.get().inner().clone()).collect();
        waited(py, |interrupted| self.inner.wait(&handles, WaitFor::All, timeout, interrupted))?;
        Ok(handles.iter().all(runtime::Handle::is_resolved))
    }

    /// Ends the producers of all streams: nobody will take their values.
    fn close_streams(&self) {
        self.inner.close_streams();
    }

    /// Waits until all tasks are over, at most `timeout` seconds. Whether they are.
    fn drain(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let timeout = duration(timeout)?;
        match waited(py, |interrupted| self.inner.drain(timeout, interrupted))? {
            WaitEnd::Ended(reason) => Err(errors::session(reason)),
            end => Ok(matches!(end, WaitEnd::Ready)),
        }
    }

    /// Puts `tag` in the queue of `next_notification` once the future is done.
    fn notify(&self, handle: &Handle, tag: u64) {
        self.inner.notify(handle.inner(), tag);
    }

    /// Waits for a tag; None when the session has ended.
    fn next_notification(&self, py: Python<'_>) -> Option<u64> {
        py.detach(|| self.inner.next_notification())
    }

    /// The first failure that should be raised and that nobody looked at.
    fn first_failure(&self) -> Option<Fault> {
        self.inner.first_failure().map(|report| Fault::of_failure(&report.failure))
    }

    /// The figures until now.
    fn statistics(&self, py: Python<'_>) -> PyResult<Statistics> {
        Statistics::of(py, &self.inner.statistics())
    }

    /// What was learned: `(function, size class, layer, registry)`.
    fn learned(&self) -> Vec<LearnedLine> {
        self.inner.learned().iter().map(tuned::learned).collect()
    }

    /// Takes in what `learned` gave in an earlier session.
    fn load_learned(&self, learned: Vec<LearnedLine>) {
        self.inner.load_learned(learned.into_iter().map(tuned::loaded).collect());
    }

    /// Writes the timeline (Chrome and Perfetto JSON).
    fn export_trace(&self, py: Python<'_>, file: PathBuf) -> PyResult<()> {
        py.detach(|| self.inner.export_trace(&file)).map_err(PyOSError::new_err)
    }

    /// The task graph: nodes `(task, name, is I/O, ran ns, end)`, and edges.
    fn graph(&self) -> PyResult<(Vec<Node>, Vec<Edge>)> {
        let graph = self.inner.graph().map_err(PyOSError::new_err)?;
        let nodes = graph.nodes.iter().map(|node| {
            let end = match node.end {
                GraphEnd::Open => "open",
                GraphEnd::Done => "done",
                GraphEnd::Failed => "failed",
                GraphEnd::Cancelled => "cancelled",
            };
            (node.task, node.name.to_string(), node.kind == Kind::Io, node.ran_ns, end)
        });
        Ok((nodes.collect(), graph.edges.clone()))
    }

    /// Why it broke down; None while it works, or was stopped.
    fn broken(&self) -> Option<String> {
        self.inner.broken().map(|reason| reason.to_string())
    }

    /// The storage layers.
    fn layers(&self) -> Vec<Layer> {
        machine::layers(self.inner.storage())
    }

    /// Compute workers, and I/O tasks at once.
    fn executors(&self) -> (usize, usize) {
        let options = self.inner.options();
        (options.workers, options.io_executors)
    }

    /// The processes that run task bodies.
    fn worker_pids(&self) -> Vec<u32> {
        self.inner.worker_pids()
    }

    /// Ends the processes, after all tasks or at once.
    /// `tell` is called with how many files were brought to their own paths, and of how many.
    /// Gives those that could not be: own path, where it is, why.
    fn stop(
        &self,
        py: Python<'_>,
        cancel: bool,
        tell: Option<Py<PyAny>>,
    ) -> Vec<(PathBuf, PathBuf, String)> {
        let mut tell = |done: usize, all: usize| {
            let Some(tell) = &tell else { return };
            Python::attach(|py| {
                if let Err(error) = tell.call1(py, (done, all)) {
                    error.write_unraisable(py, None);
                }
            });
        };
        py.detach(|| self.inner.stop_telling(cancel, &mut tell));
        let unsettled = self.inner.unsettled().into_iter();
        unsettled.map(|one| (one.home, one.place, one.why)).collect()
    }
}
