//! Layers that fail, are down or full, and what becomes of the tasks that need them.
//!
//! - A run that its layer failed ([`Event::Unplaced`](crate::Event::Unplaced)) is ready again, for
//!   another layer. If none is left that could ever take it, it fails as if its body had raised.
//! - A layer that is down takes nothing. A task waits as long as a layer that is up could ever take
//!   it; if all those are down, it fails ([`Cause::NoLayer`]).
//! - Files may leave less room than a task asks for. It waits: tasks end, files move and are
//!   deleted. If nothing runs and nothing moves for [`STUCK_NS_MAX`], nothing will make room, and
//!   the tasks that find none fail likewise. What waits for its consumers does not run: they may be
//!   the ones that find no room. Nor does what was given up and waits for the end of its executor.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use graph::TaskId;

use crate::api::{Cause, Constraint, ExecutorId, Instruction, LayerId, Time};
use crate::record::Record;
use crate::sched::Sched;
use crate::transitions::{Input, State};
use crate::tuner::STATIC;

/// How long I/O tasks wait for room while nothing goes on that could make some, in nanoseconds.
const STUCK_NS_MAX: u64 = 10_000_000_000;

impl Sched {
    /// What a task asks of a layer at most.
    fn asked(&self, record: &Record) -> Constraint {
        match record.group {
            STATIC => record.constraint,
            group => Constraint { bandwidth: self.tuner.bandwidth_max(group), ..record.constraint },
        }
    }

    /// The layers that did not fail a task and that it may use, as far as it says.
    fn layers_for<'a>(&'a self, record: &'a Record) -> impl Iterator<Item = LayerId> + 'a {
        let named = |id: &LayerId| record.layer.is_none_or(|only| only == *id);
        self.layers.ids().filter(move |id| named(id) && !record.failed_on.contains(*id))
    }

    /// Whether some layer could ever take a ready I/O task.
    pub(crate) fn could_run(&self, task: TaskId) -> bool {
        let record = self.record(task).expect("the caller has it");
        let usual =
            record.failed_on.is_empty() && !self.layers.ids().any(|id| self.layers.is_down(id));
        let asked = self.asked(record);
        usual || self.layers_for(record).any(|id| self.layers.takes(id, asked))
    }

    /// A run failed because of its layer.
    pub(crate) fn unplaced(
        &mut self,
        task: TaskId,
        executor: ExecutorId,
        failure: Arc<[u8]>,
        out: &mut Vec<Instruction>,
    ) {
        let Some(record) = self.record(task).filter(|it| it.executor == Some(executor)) else {
            return;
        };
        if !record.kind.is_io() {
            return;
        }
        let abandoned = record.state == State::Abandoned;
        let layer = self.grant_of(task).map(|(layer, _)| layer);
        self.take_off(task, executor, None);
        let record = self.live(task);
        layer.into_iter().for_each(|layer| record.failed_on.insert(layer));
        if abandoned {
            self.after_time_out(task, out);
        } else {
            self.displaced(task, failure, layer.is_some(), out);
        }
        self.end_if_retired(executor, out);
    }

    fn displaced(
        &mut self,
        task: TaskId,
        failure: Arc<[u8]>,
        had_layer: bool,
        out: &mut Vec<Instruction>,
    ) {
        self.live(task).executor = None;
        if !had_layer || self.live(task).is_last_run || !self.could_run(task) {
            self.fail_for_good(task, Cause::Raised(failure), out);
            return;
        }
        self.step(task, Input::Displace);
        match self.live(task).cancel_wanted {
            true => self.cancel(task, out),
            false => self.enqueue(task, out),
        }
    }

    /// A layer takes nothing from now on.
    pub(crate) fn layer_down(&mut self, layer: LayerId) {
        self.layers.set_down(layer, true);
        self.executors.io_changed = true;
        let ready = |record: &&Record| record.kind.is_io() && record.state == State::Ready;
        let waits = self.records.iter().flatten().filter(ready);
        let lost: Vec<TaskId> =
            waits.map(|record| record.task).filter(|task| !self.could_run(*task)).collect();
        lost.into_iter().for_each(|task| self.give_up(task));
    }

    /// A layer works again.
    pub(crate) fn layer_up(&mut self, layer: LayerId) {
        self.layers.set_down(layer, false);
        self.room_came();
    }

    /// A ready I/O task that nothing will take.
    fn give_up(&mut self, task: TaskId) {
        let record = self.record(task).expect("it is ready");
        let (group, request) = (record.group, record.request());
        self.unqueue_io(group, &request);
        self.hopeless.push(task);
    }

    /// It fails, and says why.
    pub(crate) fn fail_hopeless(&mut self, task: TaskId, out: &mut Vec<Instruction>) {
        let Some(record) = self.record(task).filter(|it| it.state == State::Ready) else { return };
        let asked = self.asked(record);
        let mut text = format!(
            "no storage layer can take it ({} bytes/s, {} bytes): ",
            asked.bandwidth, asked.size
        );
        let named = |id: &LayerId| record.layer.is_none_or(|only| only == *id);
        let whys = self.layers.ids().filter(named).map(|id| self.why_not(record, id, asked));
        text += &whys.collect::<Vec<String>>().join(", ");
        self.fail_for_good(task, Cause::NoLayer(Arc::from(text)), out);
    }

    fn why_not(&self, record: &Record, id: LayerId, asked: Constraint) -> String {
        let name = &self.layers.layer(id).name;
        if record.failed_on.contains(id) {
            return format!("\"{name}\" failed it");
        }
        if self.layers.is_down(id) {
            return format!("\"{name}\" is down");
        }
        let idle = self.layers.idle(id);
        let bandwidth = idle.bandwidth(asked.way);
        match asked.bandwidth > bandwidth {
            true => format!("\"{name}\" has {bandwidth} bytes/s"),
            false => format!("\"{name}\" has room for {} bytes", idle.size),
        }
    }

    /// Notes since when nothing goes on that could make room for I/O tasks that wait.
    pub(crate) fn look_for_stuck(&mut self) {
        let stuck = self.executors.io_free > 0
            && !self.layers.is_empty()
            && self.sent() == u64::from(self.executors.halted)
            && self.io_is_ready()
            && !self.files.may_make_room();
        self.stuck_since = stuck.then(|| self.stuck_since.unwrap_or(self.now));
    }

    /// When those that wait for room are given up.
    pub(crate) fn stuck_until(&self) -> Option<Time> {
        self.stuck_since.map(|since| since.saturating_add(STUCK_NS_MAX))
    }

    /// Nothing went on for too long: tasks that find no room even so are given up.
    pub(crate) fn give_up_stuck(&mut self) {
        if self.stuck_until().is_none_or(|until| until > self.now) {
            return;
        }
        self.stuck_since = Some(self.now);
        let ready = |record: &&Record| record.kind.is_io() && record.state == State::Ready;
        let fits = |record: &Record| {
            let asked = self.asked(record);
            let there = self.layers_for(record).filter(|id| !self.layers.is_down(*id));
            let mut idle = there.map(|id| self.layers.idle(id));
            idle.any(|idle| idle.fits(asked))
        };
        let waits = self.records.iter().flatten().filter(ready).filter(|record| !fits(record));
        let lost: Vec<TaskId> = waits.map(|record| record.task).collect();
        lost.into_iter().for_each(|task| self.give_up(task));
    }
}
