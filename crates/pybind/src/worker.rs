//! The worker's side: what `alongside._worker` runs its loop on.

use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyException, PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::iterator::PySendResult;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyIterator, PyList};
use runtime::block::Layout;
use runtime::exec::process::Kind;
use runtime::exec::wire::{Blob, Credit, InputMode, INLINE_BYTES_MAX};
use runtime::exec::worker::{Ahead, Moved, Next, Output};

use crate::buffer::{parsed, parts, pickle, Buffer, Given, Owner};
use crate::errors::{self, StoreFullError};
use crate::machine::Limiter;

/// As `serial.PROTOCOL`.
const PICKLE_PROTOCOL: u8 = 5;

/// A pickle and its buffers.
type Packed<'py> = (Bound<'py, PyAny>, Bound<'py, PyList>);
/// A file of a task: where it is, who accounts for its bandwidth, whether it is written.
type Place = (Py<PyAny>, Option<Limiter>, bool);

/// Bytes that this thread has written to tell the driver of something.
#[pyfunction]
pub fn rung_bytes() -> u64 {
    runtime::exec::rung_bytes()
}

/// This process as a worker.
#[pyclass(frozen, module = "alongside._native")]
pub(crate) struct Worker(runtime::exec::worker::Worker);

#[pymethods]
impl Worker {
    /// Joins the session that started this process.
    #[new]
    fn new() -> PyResult<Worker> {
        runtime::exec::worker::Worker::from_env().map(Worker).map_err(errors::session)
    }

    /// Whether it is for I/O tasks.
    #[getter]
    fn io(&self) -> bool {
        self.0.kind() == Kind::Io
    }

    /// How many tasks it runs at once.
    #[getter]
    fn slots(&self) -> u32 {
        self.0.slots()
    }

    /// Tells the session that it takes tasks.
    fn ready(&self) {
        self.0.ready();
    }

    /// Waits for a run; or the number of a function to forget, or (in a tuple) the claim of a run
    /// whose stream may go on, or None at the end.
    #[allow(clippy::should_implement_trait)] // the name that the loop reads well with
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match py.detach(|| self.0.next()) {
            Next::Run(inner) => {
                let worker = self.0.clone();
                let inner = Mutex::new(inner);
                let ahead = Mutex::default();
                Some(Bound::new(py, Assignment { worker, inner, ahead })?.into_any())
            }
            Next::ForgetFunction(id) => Some(id.into_pyobject(py)?.into_any()),
            Next::Granted(claim) => Some((claim,).into_pyobject(py)?.into_any()),
            Next::Stop => None,
        })
    }

    /// The pickle and buffers of a function.
    fn function<'py>(&self, py: Python<'py>, number: u64) -> PyResult<Bound<'py, PyAny>> {
        let function = self.0.function(number).ok_or_else(|| {
            PyRuntimeError::new_err(format!("function {number} was not sent to this worker"))
        })?;
        let owner = Owner::Bytes(function.bytes().into());
        Ok(parts(py, &owner)?.into_any())
    }
}

/// One run of a task body.
#[pyclass(frozen, module = "alongside._native")]
pub(crate) struct Assignment {
    worker: runtime::exec::worker::Worker,
    inner: Mutex<runtime::exec::worker::Assignment>,
    ahead: Mutex<Ahead>,
}

impl Assignment {
    fn inner(&self) -> MutexGuard<'_, runtime::exec::worker::Assignment> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn owner(&self, blob: Blob<'_>) -> Owner {
        match blob {
            Blob::Inline(bytes) => Owner::Bytes(bytes.into()),
            Blob::Placed { offset, len } => Owner::View(Arc::new(self.worker.view(offset, len))),
        }
    }

    fn output(&self, py: Python<'_>, (data, buffers): &Packed<'_>) -> PyResult<Output> {
        let whole; // pickles are bytes, but a value may also be handed on as it came
        let data = match data.cast::<PyBytes>() {
            Ok(bytes) => bytes.as_bytes(),
            Err(_) => {
                whole = Given::new(&PyList::new(py, [data])?)?;
                whole.slices()[0]
            }
        };
        let given = Given::new(buffers)?;
        let buffers = given.slices();
        let layout = Layout::new(data.len(), buffers.iter().map(|buffer| buffer.len()));
        let len = layout.total() as u64;
        let asked = self.ahead().take(len);
        let write = || {
            let mut output = match asked {
                Some(asked) => asked.output(len)?,
                None => self.worker.output(len)?,
            };
            layout.write(output.bytes_mut(), data, &buffers);
            Ok(output)
        };
        let output = if layout.total() <= INLINE_BYTES_MAX { write() } else { py.detach(write) };
        output.map_err(full)
    }
}

/// Whether the producer of a stream has to wait, and whether nobody wants more.
fn waits_or_closed(credit: Option<Credit>) -> (bool, bool) {
    credit.map_or((true, true), |credit| (credit.is_used_up(), credit.closed))
}

fn full(error: runtime::exec::worker::StoreFull) -> PyErr {
    StoreFullError::new_err(format!(
        "{error}. Drop futures and arrays that are not needed any more, or give the session more \
         (memory=)"
    ))
}

#[pymethods]
impl Assignment {
    /// Function, pickle and buffers of the arguments, and whether that is all there is to it: no
    /// inputs, no files, one value returned.
    fn start<'py>(&self, py: Python<'py>) -> PyResult<(u64, Packed<'py>, bool)> {
        let inner = self.inner();
        let run = inner.run();
        let plain = run.inputs.is_empty()
            && run.paths.is_empty()
            && run.writes.is_empty()
            && run.returns == 1
            && !run.durable
            && run.stream.is_none();
        if let Blob::Inline(bytes) = run.arguments {
            let block = parsed(bytes)?;
            if block.buffers.is_empty() {
                let data = PyBytes::new(py, block.pickle).into_any();
                return Ok((run.function, (data, PyList::empty(py)), plain));
            }
        }
        let owner = self.owner(run.arguments);
        Ok((run.function, parts(py, &owner)?.extract()?, plain))
    }

    /// The number of the task.
    #[getter]
    fn task(&self) -> u64 {
        self.inner().task()
    }

    /// How many values the body returns.
    #[getter]
    fn returns(&self) -> u32 {
        self.inner().run().returns
    }

    /// Whether the files that it writes are to be flushed to the device.
    #[getter]
    fn durable(&self) -> bool {
        self.inner().run().durable
    }

    /// The processors that its layer is attached to; none: it may run on any.
    #[getter]
    fn processors(&self) -> Vec<u32> {
        self.inner().run().processors.iter().copied().collect()
    }

    /// Whether its bytes are worth counting: an I/O task, or one that uses files.
    #[getter]
    fn uses_files(&self) -> bool {
        self.worker.kind() == Kind::Io || !self.inner().run().paths.is_empty()
    }

    /// Which inputs have new values to hand over after the returns.
    #[getter]
    fn writes(&self) -> Vec<u32> {
        self.inner().run().writes.into_vec()
    }

    /// The pickle and buffers of an input; whether it is changed in place with others.
    fn input<'py>(&self, py: Python<'py>, index: usize) -> PyResult<(Packed<'py>, bool)> {
        let inner = self.inner();
        let run = inner.run();
        let &(mode, blob) =
            run.inputs.get(index).ok_or_else(|| PyIndexError::new_err("no such input"))?;
        let owner = self.owner(blob);
        let bytes = owner.bytes();
        let block = parsed(bytes)?;
        let data = pickle(py, &owner, bytes, block.pickle)?;
        let buffers = PyList::empty(py);
        for range in block.buffers {
            match (mode, &owner) {
                (InputMode::Read, _) => buffers.append(Buffer::new(&owner, range))?,
                (InputMode::Shared, Owner::View(view)) => {
                    buffers.append(Buffer::shared(view, range))?;
                }
                _ => buffers.append(PyByteArray::new(py, &bytes[range]))?,
            }
        }
        Ok(((data, buffers), mode == InputMode::Shared))
    }

    /// The real places of its files, each with its limiter or None, and whether it writes it.
    fn places(&self, py: Python<'_>) -> PyResult<Vec<Place>> {
        let inner = self.inner();
        let mut places = Vec::new();
        for path in inner.run().paths {
            let text = std::ffi::OsStr::from_bytes(path.bytes).into_pyobject(py)?;
            let limiter =
                path.limiter.map(|number| Limiter::new(self.worker.limiters().writer(number)));
            places.push((text.into_any().unbind(), limiter, path.written));
        }
        Ok(places)
    }

    /// A value will be handed over, and is serialised now: its memory is asked for meanwhile.
    fn expect(&self) {
        self.ahead().expect(&self.worker);
    }

    /// Hands an output over before the end of the run. False: the run did so before.
    fn release(&self, py: Python<'_>, output: u32, packed: Packed<'_>) -> PyResult<bool> {
        let value = self.output(py, &packed)?;
        Ok(self.worker.release(&mut self.inner(), output, value))
    }

    /// Hands over what a generator yields, each value as the next output from `first` on, until
    /// `count` outputs were. How many were; then 0: all; or 1 and the last value, which
    /// [`Assignment::release`] has to be asked about, as it cannot be sent so or is one too many;
    /// or 2 and what the generator returned. In one call, as several of Python's for each value
    /// cost more than a small value does. Raises what the generator raises.
    fn release_each<'py>(
        &self,
        dumps: &Bound<'py, PyAny>,
        count: u32,
        generator: &Bound<'py, PyIterator>,
        first: u32,
    ) -> PyResult<(u32, u8, Bound<'py, PyAny>)> {
        let py = generator.py();
        let none = py.None().into_bound(py);
        let (buffers, keywords) = (PyList::empty(py), PyDict::new(py));
        keywords.set_item("buffer_callback", buffers.getattr("append")?)?;
        for number in first..count {
            let value = match generator.send(&none)? {
                PySendResult::Next(value) => value,
                PySendResult::Return(value) => return Ok((number, 2, value)),
            };
            self.expect();
            let data = match dumps.call((&value, PICKLE_PROTOCOL), Some(&keywords)) {
                Ok(data) => data,
                Err(error) if error.is_instance_of::<PyException>(py) => {
                    return Ok((number, 1, value));
                }
                Err(ends) => return Err(ends),
            };
            if !self.release(py, number, (data, buffers.clone()))? {
                return Ok((number, 1, value));
            }
            if !buffers.is_empty() {
                buffers.del_slice(0, buffers.len())?;
            }
        }
        Ok((count, 0, none))
    }

    /// It is done with a file, by its position among `places`. False: it was before.
    fn release_file(&self, path: u32) -> bool {
        self.worker.release_file(&mut self.inner(), path)
    }

    /// The outputs that it handed over, lowest first.
    #[getter]
    fn released(&self) -> Vec<u32> {
        self.inner().released().collect()
    }

    /// Whether it handed over whatever it returns.
    #[getter]
    fn has_released_all(&self) -> bool {
        self.inner().has_released_all()
    }

    /// A number that no other run in this process has meanwhile.
    #[getter]
    fn claim(&self) -> u64 {
        self.inner().claim()
    }

    /// How many values of its stream earlier runs handed over; None: its value is no stream.
    #[getter]
    fn made(&self) -> Option<u64> {
        self.inner().run().stream.map(|stream| stream.made)
    }

    /// Whether it has to wait before it hands over another value of its stream, and whether
    /// nobody wants more.
    fn credit(&self) -> (bool, bool) {
        waits_or_closed(self.worker.credit(&mut self.inner()))
    }

    /// Hands over the next value of its stream; `number` counts over all runs. Gives its credit.
    fn yielded(&self, py: Python<'_>, number: u64, packed: Packed<'_>) -> PyResult<(bool, bool)> {
        let value = self.output(py, &packed)?;
        Ok(waits_or_closed(self.worker.yielded(&self.inner(), number, value)))
    }

    /// It waits, having handed over as much as it may. False: it may hand over more.
    fn stall(&self) -> bool {
        self.worker.stall(&mut self.inner())
    }

    /// The run ended well: hands over the returns, then the written inputs; None for those that
    /// it handed over before.
    #[pyo3(signature = (outputs, bytes_read=0, bytes_written=0))]
    fn done(
        &self,
        py: Python<'_>,
        outputs: Vec<Option<Packed<'_>>>,
        bytes_read: u64,
        bytes_written: u64,
    ) -> PyResult<()> {
        let output = |packed: &Option<Packed<'_>>| match packed {
            Some(packed) => self.output(py, packed),
            None => Ok(Output::RELEASED),
        };
        let outputs = outputs.iter().map(output).collect::<PyResult<Vec<_>>>()?;
        let moved = Moved { bytes_read, bytes_written, layer_errno: 0 };
        self.worker.done(&mut self.inner(), outputs, moved).map_err(full)
    }

    /// The run raised: hands over what is known of the exception.
    #[pyo3(signature = (data, buffers, bytes_read=0, bytes_written=0, layer_errno=0))]
    fn raised<'py>(
        &self,
        py: Python<'py>,
        data: Bound<'py, PyAny>,
        buffers: Bound<'py, PyList>,
        bytes_read: u64,
        bytes_written: u64,
        layer_errno: u32,
    ) -> PyResult<()> {
        let exception = self.output(py, &(data, buffers))?;
        let moved = Moved { bytes_read, bytes_written, layer_errno };
        self.worker.raised(&mut self.inner(), exception, moved).map_err(full)
    }
}
