//! [`Handle`]: the native base of `alongside.Future`.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use runtime::{Input, State, WaitEnd};

use crate::buffer::{parts, Owner};
use crate::fault::Fault;
use crate::slots;

/// What a handle is made of, on its way through Python's object creation.
pub(crate) struct Core {
    pub(crate) inner: runtime::Handle,
    pub(crate) session: u64,
    pub(crate) name: Option<Arc<str>>,
}

thread_local! {
    /// Filled right before a future is made, taken by its `__new__`.
    static CRADLE: RefCell<Option<Core>> = const { RefCell::new(None) };
}

/// One version of a value: what a future is about.
#[pyclass(frozen, subclass, module = "alongside._native")]
pub(crate) struct Handle(Core);

/// Makes an object of the class of futures (a subclass of [`Handle`]).
pub(crate) fn future<'py>(
    py: Python<'py>,
    future_type: &Py<PyAny>,
    core: Core,
) -> PyResult<Bound<'py, PyAny>> {
    CRADLE.set(Some(core));
    future_type.bind(py).call0()
}

/// A wait in seconds; `None` is without end.
pub(crate) fn duration(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    Duration::try_from_secs_f64(seconds.max(0.0))
        .map(Some)
        .map_err(|_| PyOverflowError::new_err(format!("timeout={seconds} is too long")))
}

/// Waits without the GIL. Whether it came to its end; signals may raise.
pub(crate) fn waited(
    py: Python<'_>,
    wait: impl Send + FnOnce(&mut dyn FnMut() -> bool) -> WaitEnd,
) -> PyResult<WaitEnd> {
    let mut raised = None;
    let end = py.detach(|| {
        wait(&mut || {
            Python::attach(|py| py.check_signals()).map_err(|error| raised = Some(error)).is_err()
        })
    });
    raised.map_or(Ok(end), Err)
}

impl Handle {
    pub(crate) fn inner(&self) -> &runtime::Handle {
        &self.0.inner
    }
}

#[pymethods]
impl Handle {
    #[new]
    fn new() -> PyResult<Handle> {
        CRADLE
            .take()
            .map(Handle)
            .ok_or_else(|| PyTypeError::new_err("a future is made by calling a task, not by hand"))
    }

    /// The number of its session.
    #[getter]
    fn session(&self) -> u64 {
        self.0.session
    }

    /// The name of its task; None for stored values.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// The number of its version, unique in the session.
    #[getter]
    fn key(&self) -> u64 {
        self.0.inner.key()
    }

    /// Whether it has a value, or will never have one.
    fn done(&self) -> bool {
        self.0.inner.is_resolved()
    }

    /// 0 waiting, 1 sent to a worker, 2 done, 3 failed, 4 cancelled.
    fn state(&self) -> u8 {
        match self.0.inner.state() {
            State::Pending => 0,
            State::Sent => 1,
            State::Done => 2,
            State::Failed => 3,
            State::Cancelled => 4,
        }
    }

    /// Waits until it is done, at most `timeout` seconds. Whether it is.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        if self.0.inner.is_resolved() {
            return Ok(true);
        }
        let timeout = duration(timeout)?;
        waited(py, |interrupted| self.0.inner.wait(timeout, interrupted))?;
        Ok(self.0.inner.is_resolved())
    }

    /// The pickle and buffers of its value, or a `Fault`; None if it is not done.
    fn outcome<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match self.0.inner.outcome() {
            None => None,
            Some(Ok(value)) => Some(parts(py, &Owner::Value(value))?.into_any()),
            Some(Err(fault)) => Some(Bound::new(py, Fault::of(fault))?.into_any()),
        })
    }

    /// Pickles as an input of the call that is being pickled.
    fn __reduce_ex__<'py>(
        &self,
        py: Python<'py>,
        _protocol: i32,
    ) -> PyResult<(Bound<'py, PyAny>, (usize,))> {
        static SLOT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let index = slots::note(Input::Handle(self.0.inner.clone())).ok_or_else(|| {
            PyTypeError::new_err(
                "a future can only be sent as (a part of) an argument of a task; \
                 elsewhere use its result()",
            )
        })?;
        Ok((SLOT.import(py, "alongside.serial", "slot")?.clone(), (index,)))
    }
}
