//! [`Stream`]: the native part of `alongside.Stream`.

use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use runtime::State;

use crate::errors;
use crate::handle::{future, Core, Handle};

/// New results, the future of the value after those that have a call, whether these are all.
type Mapped<'py> = (Vec<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>, bool);

/// The values of a task that come one by one. Dropping it ends the task.
#[pyclass(frozen, module = "alongside._native")]
pub(crate) struct Stream {
    pub(crate) inner: runtime::Stream,
    pub(crate) session: u64,
    pub(crate) name: Arc<str>,
    pub(crate) future_type: Py<PyAny>,
    /// The name of the function that is called for each value.
    pub(crate) mapped: OnceLock<Arc<str>>,
}

impl Stream {
    fn future<'py>(
        &self,
        py: Python<'py>,
        inner: runtime::Handle,
        name: &Arc<str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let name = Some(Arc::clone(name));
        future(py, &self.future_type, Core { inner, session: self.session, name })
    }
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
        self.future(py, inner, &self.name).map(Some)
    }

    /// What there is to know of the calls that `Session.map` began, now that so many more results
    /// were given back.
    fn mapped<'py>(&self, py: Python<'py>, given_back: u32) -> PyResult<Mapped<'py>> {
        let mapped = self.inner.mapped(given_back).map_err(errors::refused)?;
        let name = self.mapped.get().unwrap_or(&self.name);
        let results = mapped.results.into_iter().map(|inner| self.future(py, inner, name));
        let results = results.collect::<PyResult<Vec<_>>>()?;
        let next = mapped.next.map(|inner| self.future(py, inner, &self.name)).transpose()?;
        Ok((results, next, mapped.is_over))
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
