//! The runtime's figures as Python objects.

use pyo3::prelude::*;
use runtime::Kind;

use crate::tuned::Tuned;

/// What a session has done so far. Times in nanoseconds.
#[pyclass(frozen, get_all, module = "alongside._native")]
pub(crate) struct Statistics {
    /// By function, in the order of their first calls.
    functions: Vec<Py<FunctionStatistics>>,
    /// Tasks submitted.
    submitted: u64,
    /// Tasks that ended well.
    done: u64,
    /// Tasks that failed, or needed one that did.
    failed: u64,
    /// Tasks that the program cancelled.
    cancelled: u64,
    /// Tasks that are not over.
    live: u64,
    /// Since the session started (until it stopped).
    elapsed_ns: u64,
    /// Sum of the run times of compute tasks.
    compute_ns: u64,
    /// Sum of the run times of I/O tasks.
    io_ns: u64,
    /// Time in which at least one compute task ran.
    compute_active_ns: u64,
    /// Time in which at least one I/O task ran.
    io_active_ns: u64,
    /// Time in which at least one of each ran.
    hidden_ns: u64,
    /// The share of the I/O time in which compute ran; None without I/O.
    hidden_share: Option<f64>,
    /// Bytes that tasks read from files.
    bytes_read: u64,
    /// Bytes that tasks wrote to files.
    bytes_written: u64,
    /// Bytes of values now in the object store.
    store_bytes: u64,
    /// The most that this was.
    store_bytes_peak: u64,
    /// Workers that died and were replaced.
    workers_lost: u64,
    files_moved: u64,
    bytes_moved: u64,
    moves_failed: u64,
    displaced: u64,
    /// What tuning does, for each function and layer that it has met.
    tuned: Vec<Py<Tuned>>,
}

/// What the tasks of one function did. Times in nanoseconds.
#[pyclass(frozen, get_all, module = "alongside._native")]
pub(crate) struct FunctionStatistics {
    /// Its name.
    name: String,
    /// Whether its tasks are I/O tasks.
    io: bool,
    /// Tasks submitted.
    submitted: u64,
    /// Tasks that ended well.
    done: u64,
    /// Tasks that failed, or needed one that did.
    failed: u64,
    /// Tasks that the program cancelled.
    cancelled: u64,
    /// Runs of the body, retries included.
    runs: u64,
    /// Sum of their times.
    run_ns: u64,
    /// Sum of their processor times.
    cpu_ns: u64,
    /// Mean time of a run; None without one.
    mean_ns: Option<u64>,
    /// Bytes read from files.
    bytes_read: u64,
    /// Bytes written to files.
    bytes_written: u64,
}

#[pymethods]
impl Statistics {
    /// The summary that `alongside run` prints.
    fn __repr__(slf: Bound<'_, Self>) -> PyResult<String> {
        let lines = slf.py().import("alongside.summary")?.call_method1("lines", (slf,))?;
        Ok(lines.extract::<Vec<String>>()?.join("\n"))
    }
}

impl Statistics {
    pub(crate) fn of(py: Python<'_>, from: &runtime::Statistics) -> PyResult<Statistics> {
        let functions = from.functions.iter().map(|one| Py::new(py, FunctionStatistics::of(one)));
        let tuned = from.tuned.iter().map(|one| Py::new(py, Tuned::of(one)));
        Ok(Statistics {
            functions: functions.collect::<PyResult<_>>()?,
            submitted: from.submitted,
            done: from.done,
            failed: from.failed,
            cancelled: from.cancelled,
            live: from.live,
            elapsed_ns: from.elapsed_ns,
            compute_ns: from.compute_ns,
            io_ns: from.io_ns,
            compute_active_ns: from.compute_active_ns,
            io_active_ns: from.io_active_ns,
            hidden_ns: from.hidden_ns,
            hidden_share: from.hidden_share(),
            bytes_read: from.bytes_read,
            bytes_written: from.bytes_written,
            store_bytes: from.store_bytes,
            store_bytes_peak: from.store_bytes_peak,
            workers_lost: from.workers_lost,
            files_moved: from.files_moved,
            bytes_moved: from.bytes_moved,
            moves_failed: from.moves_failed,
            displaced: from.displaced,
            tuned: tuned.collect::<PyResult<_>>()?,
        })
    }
}

impl FunctionStatistics {
    fn of(from: &runtime::FunctionStatistics) -> FunctionStatistics {
        FunctionStatistics {
            name: from.name.to_string(),
            io: from.kind == Kind::Io,
            submitted: from.submitted,
            done: from.done,
            failed: from.failed,
            cancelled: from.cancelled,
            runs: from.runs,
            run_ns: from.run_ns,
            cpu_ns: from.cpu_ns,
            mean_ns: from.mean_ns(),
            bytes_read: from.bytes_read,
            bytes_written: from.bytes_written,
        }
    }
}
