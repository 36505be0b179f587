//! No task runs after its end or cancellation, on a dead executor, unasked, or twice at once.
//! A cancelled task that had begun may end as it would have, but is never sent again.

use graph::TaskId;
use sched::{ExecutorId, Failure};

use super::Fault;

#[derive(Clone, Debug, Default)]
struct Life {
    id: Option<TaskId>,
    sent: Option<ExecutorId>,
    body: Option<ExecutorId>,
    over: bool,
    cancelled: bool,
}

/// The account of every task's life.
#[derive(Debug)]
pub struct Dead {
    lives: Vec<Life>,
}

fn fault(task: usize, message: String) -> Fault {
    Fault::of_task("dead", task, message)
}

impl Dead {
    /// No task lives yet.
    pub fn new(tasks: usize) -> Dead {
        Dead { lives: vec![Life::default(); tasks] }
    }

    /// A task was taken.
    pub fn submitted(&mut self, task: usize, id: TaskId) {
        self.lives[task].id = Some(id);
    }

    /// The scheduler sends a task.
    pub fn run(&mut self, task: usize, executor: ExecutorId) -> Result<(), Fault> {
        let life = &mut self.lives[task];
        if life.over {
            return Err(fault(task, format!("sent to {executor:?} after its end")));
        }
        if life.cancelled {
            return Err(fault(task, format!("sent to {executor:?} after it was cancelled")));
        }
        if let Some(other) = life.sent.or(life.body) {
            return Err(fault(task, format!("sent to {executor:?} while at {other:?}")));
        }
        life.sent = Some(executor);
        Ok(())
    }

    /// The program cancelled a task, and the scheduler was told: one that is at no executor is
    /// over with that.
    pub fn cancelled(&mut self, task: usize) -> Result<(), Fault> {
        let life = &mut self.lives[task];
        life.cancelled = true;
        match (life.over, life.sent.or(life.body)) {
            (false, None) => Err(fault(task, "cancelled before it began, and goes on".to_string())),
            _ => Ok(()),
        }
    }

    /// The executor that a task is at, as far as the driver knows.
    pub fn sent_to(&self, task: usize) -> Option<ExecutorId> {
        self.lives[task].sent
    }

    /// The driver knows that a task is at its executor no more.
    pub fn back(&mut self, task: usize) {
        self.lives[task].sent = None;
    }

    /// A body begins.
    pub fn begins(&mut self, task: usize, at: ExecutorId, alive: bool) -> Result<(), Fault> {
        let life = &mut self.lives[task];
        if !alive {
            return Err(fault(task, format!("begins on {at:?}, which is dead")));
        }
        if let Some(other) = life.body {
            return Err(fault(task, format!("begins on {at:?} while it runs on {other:?}")));
        }
        if life.over {
            return Err(fault(task, format!("begins on {at:?} after its end")));
        }
        if life.sent != Some(at) {
            return Err(fault(task, format!("begins on {at:?}, was sent to {:?}", life.sent)));
        }
        life.body = Some(at);
        Ok(())
    }

    /// A body is over.
    pub fn ends(&mut self, task: usize) {
        self.lives[task].body = None;
    }

    /// The scheduler forgets a task: its body is over, or never was.
    pub fn over(&mut self, task: usize, failure: Option<&Failure>) -> Result<(), Fault> {
        let life = &mut self.lives[task];
        if std::mem::replace(&mut life.over, true) {
            return Err(fault(task, "is over twice".to_string()));
        }
        match life.body {
            Some(at) => Err(fault(task, format!("is over ({failure:?}) while it runs on {at:?}"))),
            None => Ok(()),
        }
    }
}
