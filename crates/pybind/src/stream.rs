//! [`Stream`]: the native part of `alongside.Stream`.

use std::sync::Arc;

use pyo3::prelude::*;
use runtime::State;

use crate::errors;
use crate::handle::{future, Core, Handle};

/// The values of a task that come one by one. Dropping it ends the task.
#[pyclass(frozen, module = "alongside._native")]
pub(crate) struct Stream {
    pub(crate) inner: runtime::Stream,
    pub(crate) session: u64,
    pub(crate) name: Arc<str>,
    pub(crate) future_type: Py<PyAny>,
}

#[pymethods]
impl Stream {
    /// The name of its task.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Tells that the program comes for the next value, and uses the last one no more.
    fn come(&self) -> PyResult<()> {
        self.inner.come().map_err(errors::session)
    }

    /// Takes the value of the future that the caller has. Gives the future of what comes after it.
    /// None: there is no value, or not yet.
    fn take<'py>(&self, py: Python<'py>, of: &Handle) -> PyResult<Option<Bound<'py, PyAny>>> {
        if of.inner().state() != State::Done {
            return Ok(None);
        }
        let Some(inner) = self.inner.take().map_err(errors::session)? else { return Ok(None) };
        let core = Core { inner, session: self.session, name: Some(self.name.clone()) };
        future(py, &self.future_type, core).map(Some)
    }

    /// Whether it was ended before its values did.
    fn closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Wants no more of it.
    fn close(&self) {
        self.inner.close();
    }
}
