//! Runs that are over while what they wrote is not safe yet.

use sched::{Event, ExecutorId, Outcome, State};

use crate::checkers::Fault;
use crate::values::Body;
use crate::world::{Happening, World};

impl World<'_> {
    /// How long it takes until what a run of a task wrote is safe, if its end waits for that. One
    /// that was given up is told at once.
    pub(crate) fn settles(&self, task: usize) -> Option<u64> {
        let entry = self.task(task);
        let is_sent = self.sched.state(entry.id) == Some(State::Sent);
        self.faults.settles(task, entry.begins).filter(|_| is_sent)
    }

    /// A run is over, and its end is told later: what it held is free.
    pub(crate) fn is_settling(
        &mut self,
        task: usize,
        executor: ExecutorId,
        ran: u64,
        body: &Body,
        lasts: u64,
    ) -> Result<(), Fault> {
        self.report.settled += 1;
        self.checks.back(task, self.now);
        self.settling.insert(task, body.clone());
        self.later(lasts, Happening::Settle(task));
        let ran = Some(ran + u64::from(self.misreports(task)));
        self.drive(Event::Settling { task: self.task(task).id, executor, ran })
    }

    pub(crate) fn is_settled(&mut self, task: usize) -> Result<(), Fault> {
        let body = self.settling.remove(&task).expect("it settles once");
        let settled =
            Event::Settled { task: self.task(task).id, outcome: Outcome::Done([].into()) };
        self.drive_done(settled, task, &body)
    }
}
