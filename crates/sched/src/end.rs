//! How tasks end: well, by failure (with retries), by time-out, by loss, by cancellation.

use alloc::sync::Arc;
use alloc::vec::Vec;

use graph::TaskId;

use crate::api::{Cause, ExecutorId, Failure, Instruction, Kind, LayerId, OnFailure, Outcome};
use crate::record::Record;
use crate::sched::Sched;
use crate::transitions::{Input, State};

impl Sched {
    pub(crate) fn node_of(&self, record: &Record) -> u32 {
        let executor = record.executor.and_then(|id| self.executors.all.get(id));
        executor.map_or(0, |executor| executor.node.0)
    }

    /// Takes a task off its executor; what it held there is free. `ran`: how long, if it ended
    /// well.
    pub(crate) fn take_off(
        &mut self,
        task: TaskId,
        executor: ExecutorId,
        ran: Option<u64>,
    ) -> bool {
        let Some(sent) = self.executors.take(executor, task) else { return false };
        if let Some((layer, constraint)) = sent.grant {
            self.give_back(layer, constraint);
            self.off_layer(task, layer, ran);
        }
        true
    }

    /// A task is off its layer: what was measured is kept.
    fn off_layer(&mut self, task: TaskId, layer: LayerId, ran: Option<u64>) {
        if let Some(function) = self.record(task).map(|record| record.function) {
            self.estimates.off(task, function, layer, ran);
        }
        self.tuned_off(task, ran);
    }

    pub(crate) fn ended(
        &mut self,
        task: TaskId,
        executor: ExecutorId,
        outcome: Outcome,
        ran: u64,
        out: &mut Vec<Instruction>,
    ) {
        let Some(record) = self.record(task) else { return };
        if record.executor != Some(executor) {
            return;
        }
        let (state, node) = (record.state, self.node_of(record));
        let function = record.function;
        let well = matches!(outcome, Outcome::Done(_)) && state != State::Abandoned;
        self.take_off(task, executor, well.then_some(ran));
        if let Some(function) = self.functions.get_mut(function.0 as usize) {
            function.ran(ran);
        }
        if state == State::Abandoned {
            self.after_time_out(task, out);
        } else {
            match outcome {
                Outcome::Done(sizes) => self.finish(task, &sizes, node, None, out),
                Outcome::Raised(payload) => self.failed(task, Cause::Raised(payload), out),
            }
        }
        self.end_if_retired(executor, out);
    }

    /// A body is over, and what it wrote is not safe yet: neither the end of its executor nor its
    /// time concerns it any more.
    pub(crate) fn settling(
        &mut self,
        task: TaskId,
        executor: ExecutorId,
        ran: Option<u64>,
        out: &mut Vec<Instruction>,
    ) {
        let at = self.record(task).filter(|record| record.executor == Some(executor));
        let Some(record) = at.filter(|record| record.state == State::Sent) else { return };
        let function = record.function.0 as usize;
        self.step(task, Input::Settle);
        let at = self.executors.all.get_mut(executor).and_then(|at| at.find_mut(task));
        let grant = at.and_then(|sent| sent.grant.as_mut());
        let reserved = grant.map(|(layer, granted)| {
            let size = core::mem::take(&mut granted.size);
            (*layer, size)
        });
        self.live(task).reserved = reserved;
        self.take_off(task, executor, ran);
        if let Some((function, ran)) = self.functions.get_mut(function).zip(ran) {
            function.ran(ran);
        }
        self.end_if_retired(executor, out);
    }

    /// What the run of a task came to that settled.
    pub(crate) fn settled(&mut self, task: TaskId, outcome: Outcome, out: &mut Vec<Instruction>) {
        let settling = |record: &&Record| record.state == State::Settling;
        let Some(record) = self.record(task).filter(settling) else { return };
        let node = self.node_of(record);
        if let Some((layer, room)) = self.live(task).reserved.take() {
            self.layers.give_room_back(layer, room);
            self.executors.io_changed = true;
        }
        match outcome {
            Outcome::Done(sizes) => self.finish(task, &sizes, node, None, out),
            Outcome::Raised(payload) => self.failed(task, Cause::Raised(payload), out),
        }
    }

    /// A body gave its processor back: its executor can take another task.
    pub(crate) fn paused(&mut self, task: TaskId, executor: ExecutorId) {
        let at = self.record(task).filter(|record| record.executor == Some(executor));
        let pauses = at.is_some_and(|at| at.state == State::Sent && at.kind == Kind::Compute);
        if pauses {
            self.step(task, Input::Pause);
            self.executors.set_aside(executor, task, false);
        }
    }

    /// A body that gave its processor back has it again.
    pub(crate) fn went_on(&mut self, task: TaskId, executor: ExecutorId) {
        let at = self.record(task).filter(|record| record.executor == Some(executor));
        let paused = at.is_some_and(|at| at.state == State::Paused && at.kind == Kind::Compute);
        if paused && self.executors.take_up(executor, task) {
            self.step(task, Input::Resume);
        }
    }

    /// Data in place are handed over early. Another run would write them anew under their readers.
    pub(crate) fn release_in_place(&mut self, task: TaskId, access: u32) {
        let Some(record) = self.record(task) else { return };
        let node = self.node_of(record);
        if self.graph.release_in_place(task, access as usize, node) {
            let record = self.live(task);
            (record.retries_left, record.is_last_run) = (0, true);
        }
    }

    /// A body waits for its consumers: its executor can take another task, and so can its layer.
    pub(crate) fn stalled(&mut self, task: TaskId, executor: ExecutorId) {
        let at = self.record(task).filter(|record| record.executor == Some(executor));
        match at.map(|at| at.state) {
            Some(State::Sent) => {
                self.step(task, Input::Pause);
            }
            // It waits for the end of its executor, and holds up nobody else there.
            Some(State::Abandoned) => {}
            _ => return,
        }
        self.executors.set_aside(executor, task, true);
        self.executors.set_halted(executor, task, true);
        let at = self.executors.all.get_mut(executor).expect("it holds the task");
        let grant = at.find_mut(task).and_then(|sent| sent.grant.take());
        if let Some((layer, constraint)) = grant {
            self.give_back(layer, constraint);
            self.off_layer(task, layer, None);
        }
    }

    /// A body that stalled can go on: before others, once its executor has nothing else to do.
    pub(crate) fn resume(&mut self, task: TaskId) {
        let at = self.record(task).filter(|record| record.state == State::Paused);
        if let Some(executor) = at.and_then(|record| record.executor) {
            self.executors.wants_back(executor, task);
        }
    }

    /// A task is over, and well as far as its dependents go.
    fn finish(
        &mut self,
        task: TaskId,
        sizes: &[u64],
        node: u32,
        failure: Option<Arc<Failure>>,
        out: &mut Vec<Instruction>,
    ) {
        self.step(task, Input::Finish);
        self.graph.finish(task, sizes, node);
        self.forget(task, failure, out);
    }

    /// Resolves what the end of a task settled, and says that the task is gone.
    fn forget(&mut self, task: TaskId, failure: Option<Arc<Failure>>, out: &mut Vec<Instruction>) {
        let record = &mut self.records[task.0.index as usize];
        if let Some(uses) = record.as_ref().and_then(|record| record.uses.as_ref()) {
            self.files.used(task, uses);
        }
        *record = None;
        while let Some((version, failure)) = self.graph.pop_settled() {
            out.push(Instruction::Resolve { version, failure });
        }
        out.push(Instruction::Forgotten { task, failure });
    }

    pub(crate) fn failure(&self, task: TaskId, cause: Cause) -> Arc<Failure> {
        let on_failure = self.record(task).expect("a live task fails").on_failure;
        let name = self.name(task);
        Arc::new(Failure { cause, name, from: None, on_failure })
    }

    /// A run failed and is off its executor: again, or for good.
    fn failed(&mut self, task: TaskId, cause: Cause, out: &mut Vec<Instruction>) {
        let record = self.live(task);
        record.executor = None;
        let cancel = record.cancel_wanted;
        let lost = matches!(cause, Cause::ExecutorLost(_));
        // Of a task that nobody wants its own error is news, and the loss of its executor is not.
        if record.retries_left == 0 || (cancel && !lost) {
            return self.fail_for_good(task, cause, out);
        }
        record.retries_left -= 1;
        self.step(task, Input::Retry);
        match cancel {
            true => self.cancel(task, out),
            false => self.enqueue(task, out),
        }
    }

    /// A task that is at no executor failed, whatever retries it has left.
    pub(crate) fn fail_for_good(&mut self, task: TaskId, cause: Cause, out: &mut Vec<Instruction>) {
        let failure = self.failure(task, cause);
        if failure.on_failure == OnFailure::Ignore {
            self.finish(task, &[], 0, Some(failure), out);
            return;
        }
        self.step(task, Input::Fail);
        self.over(task, failure, out);
    }

    /// A task is over and its versions will never be.
    fn over(&mut self, task: TaskId, failure: Arc<Failure>, out: &mut Vec<Instruction>) {
        self.graph.poison(task, &failure);
        self.graph.remove(task);
        self.forget(task, Some(failure), out);
    }

    /// A version that the task needs failed: it is cancelled, and says how that came.
    pub(crate) fn doom(&mut self, task: TaskId, from: Arc<Failure>, out: &mut Vec<Instruction>) {
        let name = self.name(task);
        let (cause, on_failure) = (from.cause.clone(), from.on_failure);
        self.step(task, Input::Cancel);
        let failure = Arc::new(Failure { cause, name, from: Some(from), on_failure });
        self.over(task, failure, out);
    }

    pub(crate) fn cancel(&mut self, task: TaskId, out: &mut Vec<Instruction>) {
        let Some(record) = self.record_mut(task) else { return };
        match record.state {
            State::Waiting | State::Ready => {
                let (state, node) = (record.state, record.node as usize);
                let (request, group) = (record.request(), record.group);
                match (record.kind, state) {
                    (_, State::Waiting) => {}
                    (Kind::Io | Kind::Engine, _) => self.unqueue_io(group, &request),
                    // Another task may be at the head of the queue now.
                    (Kind::Compute, _) => self.executors.touch(node),
                }
                self.step(task, Input::Cancel);
                let (name, cause) = (self.name(task), Cause::Cancelled);
                let on_failure = OnFailure::CancelDependents;
                let failure = Failure { cause, name, from: None, on_failure };
                self.over(task, Arc::new(failure), out);
            }
            State::Sent => {
                record.cancel_wanted = true;
                let executor = record.executor.expect("it is at one");
                out.push(Instruction::Recall { task, executor });
            }
            State::Paused | State::Settling | State::Abandoned => record.cancel_wanted = true,
            _ => {}
        }
    }

    /// An executor gave a task back that it had not begun.
    pub(crate) fn recalled(
        &mut self,
        task: TaskId,
        executor: ExecutorId,
        out: &mut Vec<Instruction>,
    ) {
        let sent = self.record(task).filter(|record| record.executor == Some(executor));
        match sent.map(|record| record.state) {
            Some(State::Sent) => {
                self.take_off(task, executor, None);
                self.unbegun(task, out);
            }
            // Its time was up meanwhile. Nothing of it is there for which others would wait.
            Some(State::Abandoned) => {
                self.take_off(task, executor, None);
                self.after_time_out(task, out);
            }
            _ => return,
        }
        self.end_if_retired(executor, out);
    }

    /// The engine cannot do a task, and has not begun it: an I/O executor has to.
    pub(crate) fn refused(
        &mut self,
        task: TaskId,
        executor: ExecutorId,
        out: &mut Vec<Instruction>,
    ) {
        let Some(record) = self.record_mut(task) else { return };
        if record.executor != Some(executor) || record.kind != Kind::Engine {
            return;
        }
        record.kind = Kind::Io;
        let abandoned = record.state == State::Abandoned;
        let group = record.group;
        self.take_off(task, executor, None);
        self.live(task).group = self.group_with_io_slots(group);
        if abandoned {
            self.after_time_out(task, out);
        } else {
            self.unbegun(task, out);
        }
        self.end_if_retired(executor, out);
    }

    fn unbegun(&mut self, task: TaskId, out: &mut Vec<Instruction>) {
        self.step(task, Input::GiveBack);
        let record = self.live(task);
        record.executor = None;
        if record.cancel_wanted {
            self.cancel(task, out);
        } else {
            self.enqueue(task, out);
        }
    }

    /// An executor is gone. What had begun there failed; the rest was never there.
    pub(crate) fn lose(
        &mut self,
        id: ExecutorId,
        started: &[TaskId],
        reason: &Arc<str>,
        out: &mut Vec<Instruction>,
    ) {
        let Some(executor) = self.executors.remove(id) else { return };
        for sent in executor.tasks().copied() {
            if let Some((layer, constraint)) = sent.grant {
                self.give_back(layer, constraint);
                self.off_layer(sent.task, layer, None);
            }
            let task = sent.task;
            if sent.abandoned {
                self.after_time_out(task, out);
            } else if started.contains(&task) {
                self.failed(task, Cause::ExecutorLost(reason.clone()), out);
            } else {
                self.unbegun(task, out);
            }
        }
    }

    /// Gives up every run whose time is over.
    pub(crate) fn give_up_late(&mut self, out: &mut Vec<Instruction>) {
        while let Some(deadline) = self.deadlines.first().copied() {
            if deadline.at > self.now {
                return;
            }
            self.time_out(deadline.task, out);
        }
    }

    fn time_out(&mut self, task: TaskId, out: &mut Vec<Instruction>) {
        self.step(task, Input::TimeOut);
        let record = self.live(task);
        let id = record.executor.expect("it is at one");
        let timeout = record.timeout.expect("its time was up");
        let last = record.retries_left == 0 || record.cancel_wanted;
        if last {
            let failure = self.failure(task, Cause::TimedOut(timeout));
            // Its dependents need not wait for the end of its executor; data in place do.
            if failure.on_failure != OnFailure::Ignore {
                self.graph.poison(task, &failure);
            }
            self.live(task).failure = Some(failure);
        }
        self.executors.wants_no_more(id, task);
        self.executors.set_halted(id, task, true);
        let executor = self.executors.all.get_mut(id).expect("it holds the task");
        executor.find_mut(task).expect("it holds the task").abandoned = true;
        let retiring = executor.retiring;
        self.abandon_epoch_of(task);
        if !retiring {
            self.executors.retire(id);
            out.push(Instruction::Retire { executor: id });
        }
        self.end_if_retired(id, out);
    }

    /// The run of a task that was given up is over at last.
    pub(crate) fn after_time_out(&mut self, task: TaskId, out: &mut Vec<Instruction>) {
        let record = self.live(task);
        record.executor = None;
        match record.failure.take() {
            // It handed over meanwhile what a second run would write anew.
            None if record.is_last_run => {
                let timeout = record.timeout.expect("its time was up");
                self.fail_for_good(task, Cause::TimedOut(timeout), out);
            }
            None => {
                record.retries_left -= 1;
                let cancel = record.cancel_wanted;
                self.step(task, Input::Retry);
                match cancel {
                    true => self.cancel(task, out),
                    false => self.enqueue(task, out),
                }
            }
            Some(failure) if failure.on_failure == OnFailure::Ignore => {
                self.finish(task, &[], 0, Some(failure), out);
            }
            Some(failure) => {
                self.step(task, Input::Fail);
                self.over(task, failure, out);
            }
        }
    }

    /// A retired executor with nothing but abandoned tasks is ended.
    pub(crate) fn end_if_retired(&mut self, id: ExecutorId, out: &mut Vec<Instruction>) {
        if self.executors.all.get(id).is_some_and(|executor| executor.retiring) {
            self.end_retired(id, out);
        }
    }

    #[cold]
    fn end_retired(&mut self, id: ExecutorId, out: &mut Vec<Instruction>) {
        let executor = self.executors.all.get_mut(id).expect("the caller looked");
        let idle = executor.tasks().all(|sent| sent.abandoned);
        if idle && !core::mem::replace(&mut executor.killed, true) {
            out.push(Instruction::Kill { executor: id });
        }
    }
}
