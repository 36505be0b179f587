//! The words of tuning: how the bandwidth of an I/O task is chosen, and what was found.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::api::{FunctionId, Kind, LayerId, Way};

/// How the bandwidth that an I/O task asks for is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum Tuning {
    /// As its [`Constraint`](crate::Constraint) says.
    #[default]
    Static,
    /// Learned in epochs, then chosen for the number of ready tasks.
    Auto {
        /// What to try; `None`: from what the layer and its executors are.
        bounds: Option<Bounds>,
    },
    /// Followed continuously: so many tasks at once as the layer serves best.
    Adaptive,
}

/// Which constraints learning tries: `min`, and so on times `delta`, up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bounds {
    /// The first constraint, in bytes a second.
    pub min: u64,
    /// No constraint above this one.
    pub max: u64,
    /// The step, in thousandths: 2000 doubles.
    pub delta_permille: u32,
}

impl Bounds {
    /// Bounds that lead somewhere; `None` if `min` is 0 or above `max`, or the step is not
    /// above 1.
    pub fn new(min: u64, max: u64, delta_permille: u32) -> Option<Bounds> {
        let sound = min > 0 && min <= max && delta_permille > 1000;
        sound.then_some(Bounds { min, max, delta_permille })
    }
}

/// What one constraint came to: a line of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The constraint, in bytes a second.
    pub constraint: u64,
    /// The most tasks that it let run at once on one layer.
    pub most: u32,
    /// How many tasks the mean is of.
    pub tasks: u32,
    /// Their mean time, in nanoseconds, as if the layer had been full all the time.
    pub mean_ns: u64,
    /// Bytes that they moved, as far as that is known.
    pub bytes: u64,
}

/// A registry with what it is about, as it is saved and loaded. Layers of one name and one
/// bandwidth, on different nodes, are one layer here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// The name of the function.
    pub function: Arc<str>,
    /// The size class of its tasks (see [`size_class`]).
    pub size_class: u8,
    /// The name of the layer.
    pub layer: String,
    /// What each constraint came to, lowest first.
    pub entries: Vec<Entry>,
}

/// How far the tuning of a function on a layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Learning: the constraint of the epoch and how many of its tasks have ended.
    Learning {
        /// The epoch's constraint.
        constraint: u64,
        /// Tasks of the epoch that have ended.
        ended: u32,
        /// Tasks that have to end for the epoch to be over.
        most: u32,
        /// Where.
        layer: LayerId,
    },
    /// Learned: the constraint that is in force.
    Chosen {
        /// In bytes a second.
        constraint: u64,
    },
    /// Adaptive: how many tasks may run at once.
    Window {
        /// Tasks.
        tasks: u32,
        /// The rate that was last seen there: bytes a second, or tasks in a thousand seconds
        /// where bytes are not known; 0 before the first round.
        rate: u64,
        /// Where.
        layer: LayerId,
    },
}

/// What tuning does for one function on one layer (for one size class, where that matters).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuned {
    /// Which function.
    pub function: FunctionId,
    /// How its bandwidth is chosen.
    pub tuning: Tuning,
    /// The size class of its tasks (see [`size_class`]).
    pub size_class: u8,
    /// Whose slots its tasks need.
    pub slots: Kind,
    /// Which way their bytes go: what they learn is of that bandwidth.
    pub way: Way,
    /// The name of the layer.
    pub layer: String,
    /// What is in force.
    pub progress: Progress,
    /// What was learned, lowest constraint first: what a constraint is chosen from.
    pub registry: Vec<Entry>,
    /// Every epoch that ended, in order, also the one that ended the learning.
    pub epochs: Vec<Entry>,
    /// The times that the executors told of the last of them, summed, in nanoseconds.
    pub told_ns: u128,
    /// Epochs that were given up.
    pub abandoned: u32,
    /// The tasks moved very different amounts of data: a mean says little.
    pub varies: bool,
}

/// Sizes that learning takes for one: the number of binary digits of the declared size; 0 is
/// unknown.
pub fn size_class(bytes: u64) -> u8 {
    (u64::BITS - bytes.leading_zeros()) as u8
}
