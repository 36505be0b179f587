//! The way out: what the scheduler wants done is done.

use std::sync::Arc;

use sched::{Cause, Event, Failure, Instruction, OnFailure, TaskId, VersionId};

use super::state::{Standing, State};
use super::Shared;
use crate::futures::root;
use crate::trace::RecordKind;

impl State {
    /// Carries out what is to be done, until nothing is.
    pub(crate) fn carry_out(&mut self, shared: &Arc<Shared>) {
        while !self.out.is_empty() {
            let mut batch = std::mem::take(&mut self.out);
            for instruction in batch.drain(..) {
                self.carry(shared, instruction);
            }
            if self.out.is_empty() {
                self.out = batch;
                self.feed_streams();
            }
        }
        if self.tasks.len() == 0 && !self.drained.is_empty() {
            self.drained.drain(..).for_each(|signal| signal.hit());
        }
    }

    fn carry(&mut self, shared: &Arc<Shared>, instruction: Instruction) {
        if let Instruction::Run { task, .. }
        | Instruction::Recall { task, .. }
        | Instruction::Forgotten { task, .. } = &instruction
        {
            self.at = Some(*task);
        }
        match instruction {
            Instruction::Run { task, executor, attempt, layer } => {
                self.run(shared, task, super::run::Place { executor, attempt, layer });
            }
            Instruction::Recall { task, executor } => self.recall(task, executor),
            Instruction::Resume { task, executor } => self.resume(task, executor),
            Instruction::Kill { executor } => {
                if let Some(worker) = self.workers.all.get_mut(&executor.0) {
                    worker.kill("was ended because a task there ran longer than it may");
                }
                self.kill_engine(executor);
            }
            Instruction::Retire { executor } => self.retire(executor),
            Instruction::Resolve { version, failure } => {
                self.resolve(shared, version, failure);
            }
            Instruction::Discard { version } => drop(self.versions.remove(version)),
            Instruction::Forgotten { task, failure } => self.forgotten(shared, task, failure),
            Instruction::Move { datum, to, keep, .. } => self.begin_move(datum, to, keep),
            Instruction::DropCopy { datum, .. } => self.drop_copy(datum),
            Instruction::Remove { datum } => self.remove_file(datum),
            Instruction::HoldMoves { hold } => self.hold_moves(hold),
        }
    }

    fn recall(&mut self, task: TaskId, executor: sched::ExecutorId) {
        let sent = self.tasks.get(task).and_then(|task| task.sent.as_ref());
        let claim = sent.filter(|sent| sent.executor == executor).and_then(|sent| sent.claim);
        let worker = self.workers.all.get_mut(&executor.0);
        let (Some(claim), Some(worker)) = (claim, worker) else { return };
        if worker.process.recall(claim) {
            worker.sent = worker.sent.saturating_sub(1);
            self.take_back(task);
            let recalled = Event::Recalled { task, executor };
            self.sched.handle(exec::now_ns(), recalled, &mut self.out);
        }
    }

    fn resolve(&mut self, shared: &Shared, id: VersionId, failure: Option<Arc<Failure>>) {
        if let Some(failure) = &failure {
            self.note(shared, failure);
        }
        let Some(version) = self.versions.get_mut(id) else { return };
        version.standing = match failure {
            Some(failure) => Standing::Failed(failure),
            None => Standing::There,
        };
        if matches!(version.standing, Standing::Failed(_)) {
            version.value = None;
        }
        let base = version.base.take();
        let unchanged = version.value.is_none() && matches!(version.standing, Standing::There);
        if let Some(base) = base.filter(|_| unchanged) {
            // Every member of the group failed, and was to be ignored: nothing has changed.
            let value = self.versions.get(base).and_then(|base| base.value.clone());
            self.versions.get_mut(id).expect("looked up above").value = value;
        }
        let version = self.versions.get(id).expect("looked up above");
        if let Some(core) = &version.core {
            core.fill(version.outcome(&self.none).expect("it stands"));
        }
    }

    /// Writes a failure down that the program should look at.
    fn note(&mut self, shared: &Shared, failure: &Arc<Failure>) {
        let own = failure.from.is_none() && failure.on_failure == OnFailure::Fail;
        if own && failure.cause != Cause::Cancelled && self.noted.insert(Arc::as_ptr(failure)) {
            shared.failures.add(root(failure));
        }
    }

    fn forgotten(&mut self, shared: &Shared, id: TaskId, failure: Option<Arc<Failure>>) {
        if let Some(failure) = &failure {
            self.note(shared, failure);
            self.noted.remove(&Arc::as_ptr(failure));
        }
        let end = match &failure {
            None => 0,
            Some(failure) if failure.cause == Cause::Cancelled => 2,
            Some(_) => 1,
        };
        self.trace_task(RecordKind::Over, id, |record| record.amount = end);
        self.take_back(id);
        self.stream_is_over(id);
        let Some(task) = self.tasks.remove(id) else { return };
        self.unuse_files(&task.files);
        let figures = self.statistics_of(task.label);
        match end {
            0 => figures.done += 1,
            2 => figures.cancelled += 1,
            _ => figures.failed += 1,
        }
        match end {
            0 => self.totals.done += 1,
            2 => self.totals.cancelled += 1,
            _ => self.totals.failed += 1,
        }
        if let Some(function) = self.functions.get_mut(&task.function) {
            function.tasks -= 1;
            if function.tasks == 0 && function.forgotten {
                self.drop_function(task.function);
            }
        }
    }
}
