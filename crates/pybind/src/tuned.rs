//! What was learned and adapted, as Python sees it.

use std::path::PathBuf;

use pyo3::prelude::*;
use runtime::{Entry, Learned, Progress, TunedStatistics, Tuning};

use crate::errors::StorageError;

/// A line of a registry: constraint (bytes/s), the most tasks at once, tasks, mean ns, bytes.
pub(crate) type Line = (u64, u32, u32, u64, u64);

/// A registry: function, size class, layer, lines.
pub(crate) type LearnedLine = (String, u8, String, Vec<Line>);

fn line(entry: &Entry) -> Line {
    (entry.constraint, entry.most, entry.tasks, entry.mean_ns, entry.bytes)
}

pub(crate) fn learned(one: &Learned) -> LearnedLine {
    let entries = one.entries.iter().map(line).collect();
    (one.function.to_string(), one.size_class, one.layer.clone(), entries)
}

pub(crate) fn loaded((function, size_class, layer, entries): LearnedLine) -> Learned {
    let entry = |(constraint, most, tasks, mean_ns, bytes)| Entry {
        constraint,
        most,
        tasks,
        mean_ns,
        bytes,
    };
    let entries = entries.into_iter().map(entry).collect();
    Learned { function: function.into(), size_class, layer, entries }
}

/// The registries in a file, as `learned` gives them; none where there is no file.
#[pyfunction]
pub(crate) fn read_learned(path: PathBuf) -> PyResult<Vec<LearnedLine>> {
    let all = runtime::read_learned(&path).map_err(StorageError::new_err)?;
    Ok(all.iter().map(learned).collect())
}

/// Writes a file, whole or not at all; what it had of other functions and layers stays.
#[pyfunction]
pub(crate) fn write_learned(
    py: Python<'_>,
    path: PathBuf,
    learned: Vec<LearnedLine>,
) -> PyResult<()> {
    let all: Vec<Learned> = learned.into_iter().map(loaded).collect();
    py.detach(|| runtime::write_learned(&path, &all)).map_err(StorageError::new_err)
}

/// What tuning does for one function on one layer. Bandwidths in bytes/s, times in nanoseconds.
#[pyclass(frozen, get_all, module = "alongside._native")]
pub(crate) struct Tuned {
    /// The name of the function.
    function: String,
    /// The name of the layer.
    layer: String,
    /// `"auto"` or `"adaptive"`.
    mode: &'static str,
    /// Binary digits of the declared size; 0 is unknown.
    size_class: u8,
    /// `"learning"`, `"chosen"` or `"window"`.
    state: &'static str,
    /// The constraint in force; None for a window.
    constraint: Option<u64>,
    /// How many tasks the window lets run at once; None while learning or after it.
    tasks: Option<u32>,
    /// The rate that was last seen in the window; None elsewhere, and before there was one.
    rate: Option<u64>,
    /// What was learned: `(constraint, most tasks at once, tasks, mean ns, bytes)`.
    registry: Vec<Line>,
    /// Every epoch that ended, likewise.
    epochs: Vec<Line>,
    /// Epochs that were given up.
    abandoned: u32,
    /// The tasks moved very different amounts of data: a mean says little.
    varies: bool,
}

impl Tuned {
    pub(crate) fn of(TunedStatistics { function, tuned: from }: &TunedStatistics) -> Tuned {
        let (state, constraint, tasks, rate) = match from.progress {
            Progress::Learning { constraint, .. } => ("learning", Some(constraint), None, None),
            Progress::Chosen { constraint } => ("chosen", Some(constraint), None, None),
            Progress::Window { tasks, rate, .. } => {
                ("window", None, Some(tasks), Some(rate).filter(|rate| *rate > 0))
            }
        };
        Tuned {
            function: function.to_string(),
            layer: from.layer.clone(),
            mode: if from.tuning == Tuning::Adaptive { "adaptive" } else { "auto" },
            size_class: from.size_class,
            state,
            constraint,
            tasks,
            rate,
            registry: from.registry.iter().map(line).collect(),
            epochs: from.epochs.iter().map(line).collect(),
            abandoned: from.abandoned,
            varies: from.varies,
        }
    }
}
