//! Probes of storage for Python: conversion only.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use runtime::probe::{Figure, Kind, Options, Outcome, Probe as Inner, ProbeError, Side};
use runtime::Scope;

use crate::errors::StorageError;

type FigureTuple = (bool, u64, u32, f64, f64, usize);
type SideTuple = (u64, u32, (u32, u64), Option<u32>, Vec<(u32, u64)>);

/// A probe of one folder, which goes on step by step.
#[pyclass(frozen, module = "alongside._native")]
pub(crate) struct Probe(Mutex<Inner>);

/// What a probe found.
#[pyclass(frozen, get_all, module = "alongside._native")]
pub(crate) struct ProbeOutcome {
    /// By cell: is it writing, bytes of a block, writers, bytes a second, spread, rounds.
    figures: Vec<FigureTuple>,
    /// Reading.
    read: Option<SideTuple>,
    /// Writing.
    write: Option<SideTuple>,
    /// Whether the system's memory was gone around.
    direct: bool,
    /// The engine that did it.
    engine: String,
    /// Bytes that were read and written.
    bytes: u64,
    /// How long it took.
    seconds: f64,
}

fn raised(error: ProbeError) -> PyErr {
    match error {
        ProbeError::Options(message) => PyValueError::new_err(message),
        ProbeError::System { path, what, error } => PyOSError::new_err((
            error.raw_os_error().unwrap_or_default(),
            format!("{what}: {error}"),
            path,
        )),
        error => StorageError::new_err(error.to_string()),
    }
}

fn figure(figure: &Figure) -> FigureTuple {
    let cell = figure.cell;
    let is_write = cell.kind == Kind::Write;
    (is_write, cell.block_bytes, cell.writers, figure.bandwidth, figure.spread, figure.rounds)
}

fn side(side: &Side) -> SideTuple {
    let knee = side.knee;
    let best = (knee.best.writers, knee.best.bandwidth);
    (knee.block_bytes, knee.writers, best, knee.falls_at, side.curve.pairs())
}

impl Probe {
    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl Probe {
    #[new]
    fn new(
        path: &str,
        block_bytes: Vec<u64>,
        writers: Vec<u32>,
        rounds: u32,
        space_bytes: u64,
        data_bytes: u64,
        seconds: f64,
    ) -> PyResult<Probe> {
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(format!("--seconds {seconds}: {error}")))?;
        let options = Options { block_bytes, writers, rounds, space_bytes, data_bytes, time };
        Inner::start(Path::new(path), &options)
            .map(|probe| Probe(Mutex::new(probe)))
            .map_err(raised)
    }

    /// Does the next piece of work. False: there is nothing left.
    fn step(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.with(Inner::step)).map_err(raised)
    }

    /// Steps that are done, and steps in all.
    #[getter]
    fn progress(&self) -> (u64, u64) {
        self.with(|probe| probe.progress())
    }

    /// Bytes that are read and written at most.
    #[getter]
    fn data_bytes_max(&self) -> u64 {
        self.with(|probe| probe.plan().data_bytes_max())
    }

    /// Bytes of space that are used.
    #[getter]
    fn space_bytes(&self) -> u64 {
        self.with(|probe| probe.plan().space_bytes())
    }

    /// What was found so far.
    fn outcome(&self) -> ProbeOutcome {
        let Outcome { figures, read, write, is_direct, engine, bytes, time } =
            self.with(|probe| probe.outcome());
        ProbeOutcome {
            figures: figures.iter().map(figure).collect(),
            read: read.as_ref().map(side),
            write: write.as_ref().map(side),
            direct: is_direct,
            engine: engine.to_string(),
            bytes,
            seconds: time.as_secs_f64(),
        }
    }

    /// The table of a storage description for the folder.
    fn layer(&self, name: &str, shared: bool, emulate: bool) -> String {
        let scope = if shared { Scope::Shared } else { Scope::Node };
        self.with(|probe| probe.layer(name, scope, emulate)).to_toml()
    }
}
