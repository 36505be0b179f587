//! What the machine offers: layers, emulated bandwidth, processors; and the units of both.

use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use runtime::exec::limiter::Writer;
use runtime::storage::{Curve, LayerSpec, Scope, Storage};
use runtime::Ask;

use crate::errors::StorageError;

/// One storage layer.
#[pyclass(frozen, get_all, module = "alongside._native")]
pub(crate) struct Layer {
    /// Its name.
    name: String,
    /// Its folder.
    path: String,
    /// Bytes a second that may be granted to a task that reads and writes; None is without limit.
    bandwidth: Option<u64>,
    /// Bytes a second that may be granted to all tasks together; None is without limit.
    together: Option<u64>,
    /// Bytes a second that it can be read with, if known.
    read_bandwidth: Option<u64>,
    /// Bytes a second that it can be written with, if known.
    write_bandwidth: Option<u64>,
    /// Bytes that may be granted; None is without limit.
    capacity: Option<u64>,
    /// How full of files, as shares, before they leave, and until when; None: they stay.
    watermarks: Option<(f64, f64)>,
    /// Emulated bandwidth in bytes a second; of a curve, its best.
    limit: Option<u64>,
    /// The points of the emulated bandwidth: writers, bytes a second in all.
    curve: Option<Vec<(u32, u64)>>,
    /// What it was measured to take: writers, bytes a second in all.
    measured: Option<Vec<(u32, u64)>>,
    /// The processors that it is attached to; empty: all are as near.
    processors: Vec<usize>,
    /// Whether every node reaches it.
    shared: bool,
}

/// A storage description as Python objects.
pub(crate) fn layers(storage: &Storage) -> Vec<Layer> {
    storage.layers.iter().map(layer).collect()
}

fn layer(spec: &LayerSpec) -> Layer {
    Layer {
        name: spec.name.clone(),
        path: spec.path.to_string_lossy().into_owned(),
        bandwidth: spec.least_bandwidth(),
        together: spec.together(),
        read_bandwidth: spec.read_bandwidth,
        write_bandwidth: spec.write_bandwidth,
        capacity: spec.capacity,
        watermarks: spec.watermarks.map(|marks| (share(marks.high), share(marks.low))),
        limit: spec.limit.as_ref().map(|limit| limit.best().bandwidth),
        curve: spec.limit.as_ref().map(Curve::pairs),
        measured: spec.measured.as_ref().map(Curve::pairs),
        processors: spec.processors.clone(),
        shared: spec.scope == Scope::Shared,
    }
}

fn share(permille: u32) -> f64 {
    f64::from(permille) / 1000.0
}

/// The emulated bandwidth of a layer, shared by all processes of a session, for a file on it.
#[pyclass(frozen, module = "alongside._native")]
pub(crate) struct Limiter(Writer);

impl Limiter {
    pub(crate) fn new(writer: Writer) -> Limiter {
        Limiter(writer)
    }
}

#[pymethods]
impl Limiter {
    /// Accounts for bytes; the caller sleeps for the nanoseconds that it gives.
    fn acquire(&self, bytes: u64) -> u64 {
        self.0.acquire(bytes)
    }

    /// How many bytes are read or written at once, at most.
    #[getter]
    fn piece(&self) -> u64 {
        self.0.piece()
    }

    /// Bytes a second; of a curve, its best.
    #[getter]
    fn rate(&self) -> Option<u64> {
        Some(self.0.limit()?.best().bandwidth)
    }
}

/// What this computer has.
#[pyclass(frozen, get_all, module = "alongside._native")]
pub(crate) struct Machine {
    /// Processors that this process may use.
    processors: usize,
    /// Bytes of memory.
    memory_bytes: u64,
    /// The engine that does file operations here: io_uring or threads.
    engine: String,
    /// Why that one.
    engine_reason: String,
}

/// Looks at this computer.
#[pyfunction]
pub(crate) fn machine() -> Machine {
    let found = runtime::Machine::probe();
    Machine {
        processors: found.processors,
        memory_bytes: found.memory_bytes,
        engine: found.engine.name.into(),
        engine_reason: found.engine.reason,
    }
}

/// The layers of a storage file, or of none: the working directory.
#[pyfunction]
#[pyo3(signature = (file=None))]
pub(crate) fn read_storage(file: Option<&str>) -> PyResult<Vec<Layer>> {
    Ok(layers(&storage(file)?))
}

/// Reads a storage file.
pub(crate) fn storage(file: Option<&str>) -> PyResult<Storage> {
    let Some(file) = file else { return Ok(Storage::default()) };
    Storage::read(Path::new(file)).map_err(|error| StorageError::new_err(error.to_string()))
}

/// Bytes: `"200GB"`, `"64KiB"`.
#[pyfunction]
pub(crate) fn parse_bytes(text: &str) -> PyResult<u64> {
    runtime::storage::parse_bytes(text).map_err(PyValueError::new_err)
}

/// What an I/O task asks for: bytes a second of `"450MB/s"`; None of what is to be found (`"auto"`,
/// `"auto(min,max,delta)"`, `"adaptive"`).
#[pyfunction]
pub(crate) fn parse_ask(text: &str) -> PyResult<Option<u64>> {
    match runtime::parse_ask(text).map_err(PyValueError::new_err)? {
        Ask::Bandwidth(bandwidth) => Ok(Some(bandwidth)),
        Ask::Found(_) => Ok(None),
    }
}
