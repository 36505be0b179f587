//! What happened to whom: the latest moves of all tasks, for messages and internal errors.

use alloc::collections::VecDeque;
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

/// The latest moves, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Story {
    steps: VecDeque<Step>,
}

impl Story {
    pub(crate) fn note(&mut self, step: Step) {
        if self.steps.len() == STEPS_MAX {
            self.steps.pop_front();
        }
        self.steps.push_back(step);
    }

    pub(crate) fn of(&self, task: TaskId) -> Vec<Step> {
        self.steps.iter().filter(|step| step.task == task).copied().collect()
    }
}
