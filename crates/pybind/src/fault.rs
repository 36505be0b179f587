//! [`Fault`]: why a value will never come. `alongside.errors.of` makes the exception.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use runtime::{Cause, Failure, RUNTIME_ERROR_PREFIX};

use crate::buffer::{parts, Owner};

/// What happened at the root, and the names from there to here.
#[pyclass(frozen, module = "alongside._native")]
pub(crate) struct Fault {
    /// `raised`, `timed_out`, `worker_lost`, `cancelled`, `runtime` or `session`.
    #[pyo3(get)]
    kind: &'static str,
    /// The names of the tasks, the one that failed first.
    #[pyo3(get)]
    chain: Vec<String>,
    /// How a worker was lost, or what the runtime says.
    #[pyo3(get)]
    text: String,
    /// The timeout that was exceeded.
    #[pyo3(get)]
    timeout_ns: u64,
    raised: Arc<[u8]>,
}

impl Fault {
    pub(crate) fn of(fault: runtime::Fault) -> Fault {
        match fault {
            runtime::Fault::Failed(failure) => Fault::of_failure(&failure),
            runtime::Fault::Session(text) => Fault {
                kind: "session",
                chain: Vec::new(),
                text: text.to_string(),
                timeout_ns: 0,
                raised: Arc::default(),
            },
        }
    }

    pub(crate) fn of_failure(failure: &Failure) -> Fault {
        let mut chain = vec![failure.name.to_string()];
        let mut from = &failure.from;
        while let Some(before) = from {
            chain.push(before.name.to_string());
            from = &before.from;
        }
        chain.reverse();
        let mut fault =
            Fault { kind: "", chain, text: String::new(), timeout_ns: 0, raised: Arc::default() };
        match &failure.cause {
            Cause::Cancelled => fault.kind = "cancelled",
            Cause::TimedOut(timeout_ns) => {
                fault.kind = "timed_out";
                fault.timeout_ns = *timeout_ns;
            }
            Cause::ExecutorLost(reason) => {
                fault.kind = "worker_lost";
                fault.text = reason.to_string();
            }
            Cause::Raised(payload) => match payload.strip_prefix(RUNTIME_ERROR_PREFIX) {
                Some(text) => {
                    fault.kind = "runtime";
                    fault.text = String::from_utf8_lossy(text).into_owned();
                }
                None => {
                    fault.kind = "raised";
                    fault.raised = payload.clone();
                }
            },
        }
        fault
    }
}

#[pymethods]
impl Fault {
    /// The pickle and buffers that the worker sent about the exception.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        parts(py, &Owner::Bytes(self.raised.clone()))
    }
}
