//! What the machine offers: layers, emulated bandwidth, processors; and the units of both.

use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use runtime::exec::limiter::Limiters;
use runtime::storage::{LayerSpec, Scope, Storage};

use crate::errors::StorageError;

/// One storage layer.
#[pyclass(frozen, get_all, module = "alongside._native")]
pub(crate) struct Layer {
    /// Its name.
    name: String,
    /// Its folder.
    path: String,
    /// Bytes a second that may be granted; None is without limit.
    bandwidth: Option<u64>,
    /// Bytes that may be granted; None is without limit.
    capacity: Option<u64>,
    /// Emulated bandwidth in bytes a second.
    limit: Option<u64>,
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
        bandwidth: spec.bandwidth(),
        capacity: spec.capacity,
        limit: spec.limit,
        shared: spec.scope == Scope::Shared,
    }
}

/// The emulated bandwidth of a layer, shared by all processes of a session.
#[pyclass(frozen, module = "alongside._native")]
pub(crate) struct Limiter {
    limiters: Limiters,
    number: u32,
}

impl Limiter {
    pub(crate) fn new(limiters: Limiters, number: u32) -> Limiter {
        Limiter { limiters, number }
    }
}

#[pymethods]
impl Limiter {
    /// Accounts for bytes; the caller sleeps for the nanoseconds that it gives.
    fn acquire(&self, bytes: u64) -> u64 {
        self.limiters.acquire(self.number, bytes)
    }

    /// Bytes a second.
    #[getter]
    fn rate(&self) -> Option<u64> {
        self.limiters.rate(self.number)
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

/// Bytes a second: `"450MB/s"`.
#[pyfunction]
pub(crate) fn parse_bandwidth(text: &str) -> PyResult<u64> {
    runtime::storage::parse_bandwidth(text).map_err(PyValueError::new_err)
}
