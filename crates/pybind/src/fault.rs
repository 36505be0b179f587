//! [`Fault`]: why a value will never come. `alongside.errors.of` makes the exception.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use runtime::{Cause, Failure, RUNTIME_ERROR_PREFIX, SYSTEM_ERROR_PREFIX};

use crate::buffer::{parts, Owner};

/// What happened at the root, and the names from there to here.
#[pyclass(frozen, module = "alongside._native")]
#[derive(Default)]
pub(crate) struct Fault {
    /// `raised`, `timed_out`, `worker_lost`, `cancelled`, `runtime`, `system` or `session`.
    #[pyo3(get)]
    kind: &'static str,
    /// The names of the tasks, the one that failed first.
    #[pyo3(get)]
    chain: Vec<String>,
    /// How a worker was lost, what the runtime says, or what tells more than `errno`.
    #[pyo3(get)]
    text: String,
    /// The timeout that was exceeded.
    #[pyo3(get)]
    timeout_ns: u64,
    /// What the system said of a file, by number.
    #[pyo3(get)]
    errno: i32,
    /// The file.
    #[pyo3(get)]
    path: OsString,
    raised: Arc<[u8]>,
}

impl Fault {
    pub(crate) fn of(fault: runtime::Fault) -> Fault {
        match fault {
            runtime::Fault::Failed(failure) => Fault::of_failure(&failure),
            runtime::Fault::Session(text) => {
                Fault { kind: "session", text: text.to_string(), ..Fault::default() }
            }
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
        let mut fault = Fault { chain, ..Fault::default() };
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
            Cause::NoLayer(text) => {
                fault.kind = "no_layer";
                fault.text = text.to_string();
            }
            Cause::Raised(payload) => fault.raise(payload),
        }
        fault
    }

    fn raise(&mut self, payload: &Arc<[u8]>) {
        let told =
            payload.strip_prefix(SYSTEM_ERROR_PREFIX).and_then(|rest| rest.split_at_checked(4));
        if let Some((errno, rest)) = told {
            self.kind = "system";
            self.errno = i32::from_le_bytes(errno.try_into().unwrap_or_default());
            let mut parts = rest.splitn(2, |byte| *byte == 0);
            self.path = OsString::from_vec(parts.next().unwrap_or_default().to_vec());
            self.text = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        } else if let Some(text) = payload.strip_prefix(RUNTIME_ERROR_PREFIX) {
            self.kind = "runtime";
            self.text = String::from_utf8_lossy(text).into_owned();
        } else {
            self.kind = "raised";
            self.raised = payload.clone();
        }
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
