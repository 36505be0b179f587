//! What must hold in every simulation, one file a promise.
//!
//! A checker sees what goes into the scheduler and what comes out of it, keeps its own small
//! account, and knows nothing of the scheduler's inside. Every one of them is proved to be able
//! to fail by a canary (see [`crate::Canary`]).

pub mod dead;
pub mod files;
pub mod grants;
pub mod liveness;
pub mod memory;
pub mod order;
pub mod results;
pub mod state;
pub mod streams;
pub mod tuning;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which checker saw it.
    pub checker: &'static str,
    /// What it saw.
    pub message: String,
    /// The number of the task that it is about.
    pub task: Option<usize>,
}

impl Fault {
    /// A fault about one task.
    pub fn of_task(checker: &'static str, task: usize, message: impl Into<String>) -> Fault {
        Fault { checker, message: message.into(), task: Some(task) }
    }

    /// A fault about the whole.
    pub fn new(checker: &'static str, message: impl Into<String>) -> Fault {
        Fault { checker, message: message.into(), task: None }
    }
}
