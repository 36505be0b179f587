//! `alongside._native`: the runtime for Python. Conversion only, no logic.
//!
//! In flow order: [`slots`] (the inputs of a call, noted while its arguments are pickled),
//! [`session`] (from calls to the runtime), [`handle`] (from the runtime's handles to futures),
//! [`buffer`] (values as Python buffers that hold their memory), [`worker`] (a worker's side),
//! and small conversions: [`fault`], [`machine`], [`probe`], [`statistics`], [`errors`].
//!
//! The GIL is given up around everything that may wait and around large copies. Nothing of the
//! runtime ever takes it; only `interrupted` callbacks of waits do, for pending signals.

mod buffer;
mod errors;
mod fault;
mod handle;
mod machine;
mod probe;
mod ring;
mod session;
mod slots;
mod statistics;
mod stream;
mod tiers;
mod tuned;
mod worker;

use pyo3::prelude::*;

/// The module's contents.
#[pymodule(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<buffer::Buffer>()?;
    module.add_class::<fault::Fault>()?;
    module.add_class::<handle::Handle>()?;
    module.add_class::<machine::Layer>()?;
    module.add_class::<machine::Limiter>()?;
    module.add_class::<machine::Machine>()?;
    module.add_class::<probe::Probe>()?;
    module.add_class::<probe::ProbeOutcome>()?;
    module.add_class::<ring::Ring>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<statistics::FunctionStatistics>()?;
    module.add_class::<statistics::Statistics>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<tuned::Tuned>()?;
    module.add_class::<worker::Assignment>()?;
    module.add_class::<worker::Worker>()?;
    module.add("Refused", module.py().get_type::<errors::Refused>())?;
    module.add("WORKERS_MAX", runtime::options::WORKERS_MAX)?;
    module.add("IO_EXECUTORS_MAX", runtime::options::IO_EXECUTORS_MAX)?;
    module.add_function(wrap_pyfunction!(slots::slots_open, module)?)?;
    module.add_function(wrap_pyfunction!(slots::slots_close, module)?)?;
    module.add_function(wrap_pyfunction!(slots::slots_count, module)?)?;
    module.add_function(wrap_pyfunction!(slots::slots_truncate, module)?)?;
    module.add_function(wrap_pyfunction!(slots::slots_note_object, module)?)?;
    module.add_function(wrap_pyfunction!(machine::parse_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(machine::parse_ask, module)?)?;
    module.add_function(wrap_pyfunction!(machine::machine, module)?)?;
    module.add_function(wrap_pyfunction!(machine::read_storage, module)?)?;
    module.add_function(wrap_pyfunction!(tuned::read_learned, module)?)?;
    module.add_function(wrap_pyfunction!(tiers::sessions_left, module)?)?;
    module.add_function(wrap_pyfunction!(tiers::session_files, module)?)?;
    module.add_function(wrap_pyfunction!(tiers::recover, module)?)?;
    module.add_function(wrap_pyfunction!(tuned::write_learned, module)?)?;
    module.add_function(wrap_pyfunction!(worker::rung_bytes, module)?)?;
    Ok(())
}
