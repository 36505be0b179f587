//! What happened to whom: the latest moves of all tasks, for messages and internal errors.

use alloc::vec::Vec;

use graph::TaskId;

use crate::api::Time;
use crate::transitions::{Input, State};

/// How many moves are remembered, over all tasks.
pub const STEPS_MAX: usize = 8192;

/// One move of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub at: Time,
    /// Who.
    pub task: TaskId,
    /// From where.
    pub from: State,
    /// Moved by what.
    pub input: Input,
    /// To where.
    pub to: State,
}

/// The latest moves.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// A ring, once it is full.
    steps: Vec<Step>,
    /// Where the oldest is then.
    oldest: usize,
}

impl Story {
    pub(crate) fn note(&mut self, step: Step) {
        if self.steps.len() < STEPS_MAX {
            self.steps.push(step);
            return;
        }
        self.steps[self.oldest] = step;
        self.oldest = (self.oldest + 1) % STEPS_MAX;
    }

    /// Those of a task, oldest first.
    pub(crate) fn of(&self, task: TaskId) -> Vec<Step> {
        let (newer, older) = self.steps.split_at(self.oldest);
        older.iter().chain(newer).filter(|step| step.task == task).copied().collect()
    }
}
