//! Who runs where: compute tasks by priority, locality and arrival; I/O tasks by grant.
//!
//! A compute task is tied to the node that has most bytes of its inputs (ties: the fewest tied
//! tasks so far, then the lowest node); one that only produces data goes where the fewest
//! bytes will be produced (OmpSs@cluster's affinity scheduler, Mont-Blanc D4.2, section 1.4).

use alloc::vec::Vec;
use core::cell::Cell;
use core::cmp::Reverse;
use smallvec::SmallVec;

use graph::TaskId;

use crate::api::{ExecutorId, Instruction, Kind, LayerId, NodeId};
use crate::policy::{Outlook, Place, Request, Room, Slot};
use crate::record::Deadline;
use crate::sched::Sched;
use crate::sent::Sent;
use crate::transitions::{Input, State};

impl Sched {
    /// A task that became ready joins its queue.
    pub(crate) fn enqueue(&mut self, task: TaskId, out: &mut Vec<Instruction>) {
        self.join_or_go(task, false, out);
    }

    /// A task that became ready joins its queue. If it is the `last` of those that came at once,
    /// and would be sent first, it is sent.
    pub(crate) fn join_or_go(&mut self, task: TaskId, last: bool, out: &mut Vec<Instruction>) {
        let record = self.record(task).expect("just became ready");
        let (kind, priority, serial) = (record.kind, record.priority, record.serial);
        if record.uses.is_some() && !self.files_are_free(task, out) {
            return;
        }
        match kind {
            Kind::Compute => {
                let node = self.tie(task);
                let goes_first = last && self.ready.is_empty(node);
                if goes_first && self.send_compute(node, task, out) {
                    return;
                }
                self.ready.push(node, priority, serial, task);
                self.executors.touch(node);
            }
            Kind::Io | Kind::Engine => {
                let record = self.record(task).expect("as above");
                let (group, request) = (record.group, record.request());
                if !self.could_run(task) {
                    self.hopeless.push(task);
                    return;
                }
                self.executors.io_changed = true;
                self.queue_io(group, request);
            }
        }
    }

    /// The node of a task that became ready.
    fn tie(&mut self, task: TaskId) -> usize {
        let nodes = self.executors.nodes.len();
        if nodes == 1 {
            return 0;
        }
        let record = self.record(task).expect("just became ready");
        let (cpus, produces) = (record.cpus.max(1), record.produces);
        let mut bytes: SmallVec<[u64; 16]> = smallvec::smallvec![0; nodes];
        for (size, node) in self.graph.inputs(task) {
            if let Some(sum) = bytes.get_mut(node as usize) {
                *sum += size;
            }
        }
        let producer = bytes.iter().all(|sum| *sum == 0) && produces > 0;
        let able = (0..nodes).filter(|node| self.executors.nodes[*node].processors >= cpus);
        let best = able.min_by_key(|node| {
            let tied = self.ready.tied[*node];
            if producer {
                (Reverse(0), tied.produced, *node)
            } else {
                (Reverse(bytes[*node]), tied.tasks, *node)
            }
        });
        let best = best.expect("a task that no node can run was refused");
        self.ready.tied[best].tasks += 1;
        self.ready.tied[best].produced += produces;
        self.live(task).node = best as u32;
        best
    }

    /// Sends what can be sent: looks only where something changed.
    pub(crate) fn dispatch(&mut self, out: &mut Vec<Instruction>) {
        while let Some((executor, task)) = self.executors.pop_resumed() {
            self.step(task, Input::Resume);
            out.push(Instruction::Resume { task, executor });
        }
        let touched = self.executors.take_touched();
        for node in &touched {
            while self.dispatch_one(*node, false, out) {}
            self.executors.looked_at(*node);
        }
        if self.stealing {
            self.dispatch_elsewhere(out);
            self.steal(&touched, out);
        }
        self.executors.keep_memory(touched);
        self.dispatch_io(out);
    }

    /// Idle executors take what the nodes of the tasks could not.
    fn dispatch_elsewhere(&mut self, out: &mut Vec<Instruction>) {
        if self.ready.nodes.is_empty() {
            return;
        }
        for node in self.executors.idle_nodes.clone() {
            while self.dispatch_one(node, true, out) {}
        }
    }

    /// The first ready task of another node, for one that has none.
    fn first_elsewhere(&mut self, node: usize) -> Option<(usize, TaskId)> {
        if self.executors.nodes[node].idle().is_none() || self.first_live(node).is_some() {
            return None;
        }
        let waiting = self.ready.nodes.iter().copied();
        let richest = waiting.max_by_key(|other| (self.ready.len(*other), Reverse(*other)))?;
        let task = self.first_live(richest)?;
        let cpus = self.record(task)?.cpus.max(1);
        (self.executors.nodes[node].processors >= cpus).then_some((richest, task))
    }

    fn first_live(&mut self, node: usize) -> Option<TaskId> {
        while let Some(task) = self.ready.first(node) {
            if self.record(task).is_some_and(|record| record.state == State::Ready) {
                return Some(task);
            }
            self.ready.pop(node);
        }
        None
    }

    fn dispatch_one(&mut self, node: usize, elsewhere: bool, out: &mut Vec<Instruction>) -> bool {
        let first = match elsewhere {
            true => self.first_elsewhere(node),
            false => self.first_live(node).map(|task| (node, task)),
        };
        let Some((from, task)) = first else { return false };
        if self.executors.is_reserved(node) || !self.send_compute(node, task, out) {
            return false;
        }
        self.ready.pop(from);
        self.executors.touch(from);
        true
    }

    /// Sends a ready compute task to an executor of a node, if one takes it.
    fn send_compute(&mut self, node: usize, task: TaskId, out: &mut Vec<Instruction>) -> bool {
        let sent = self.compute_sent(task);
        let picked = self.executors.pick(node, sent.cpus, sent.estimate_ns, sent.alone);
        let Some(executor) = picked else { return false };
        self.send(task, Slot { executor, layer: None }, sent, out);
        true
    }

    /// What an executor is to hold of a compute task.
    fn compute_sent(&self, task: TaskId) -> Sent {
        let record = self.record(task).expect("the caller knows that the task is live");
        let function = self.functions.get(record.function.0 as usize);
        Sent {
            task,
            cpus: record.cpus.max(1),
            estimate_ns: function.and_then(|function| function.mean_ns()),
            alone: record.timeout.is_some(),
            recalling: false,
            abandoned: false,
            stalls: false,
            halted: false,
            grant: None,
        }
    }

    /// A ready compute task runs at an executor that was sent another one: as if it had paused.
    pub(crate) fn begun(&mut self, task: TaskId, executor: ExecutorId) {
        let sent = self.compute_sent(task);
        self.hand_over(task, Slot { executor, layer: None }, sent);
        self.paused(task, executor);
    }

    fn steal(&mut self, touched: &[usize], out: &mut Vec<Instruction>) {
        if self.executors.pipeline.tasks_max < 2 {
            return;
        }
        for node in touched.iter().copied() {
            if !self.ready.is_empty(node) {
                continue;
            }
            let Some(idle) = self.executors.nodes[node].idle() else { continue };
            for (task, executor) in self.executors.steal_for(idle) {
                out.push(Instruction::Recall { task, executor });
            }
        }
    }

    /// What I/O tasks find to spare now.
    pub(crate) fn room(&self) -> Room {
        let (executors, layers) = (&self.executors, &self.layers);
        // A free slot, and whether only tasks that the bandwidth limits may take it.
        let free_slot = |kind: Kind, layer: Option<LayerId>| {
            let reaches =
                |node: &usize| layer.is_none_or(|id| layers.reaches(id, NodeId(*node as u32)));
            let reached = || (0..executors.nodes.len()).filter(reaches);
            let open = reached().find_map(|node| executors.nodes[node].io_slot(kind));
            let executor = match open {
                Some(executor) => executor,
                None => reached().find_map(|node| executors.nodes[node].extra_slot(kind))?,
            };
            Some((Slot { executor, layer }, open.is_none()))
        };
        let mut room = Room::default();
        for kind in [Kind::Io, Kind::Engine] {
            if layers.is_empty() {
                let slot = free_slot(kind, None).filter(|(_, extra)| !extra);
                slot.into_iter().for_each(|(slot, _)| room.add(slot, kind, u64::MAX, u64::MAX));
            }
            for id in layers.ranked().iter().filter(|id| !layers.is_down(**id)) {
                let Some((slot, extra)) = free_slot(kind, Some(*id)) else { continue };
                let spare = layers.spare(*id);
                room.put(Place { slot, kind, spare, extra });
            }
        }
        if let Some(order) = layers.order() {
            room.sort_by_key(order);
        }
        room
    }

    fn dispatch_io(&mut self, out: &mut Vec<Instruction>) {
        if self.tuner.is_used() {
            self.dispatch_tuned(out);
            return;
        }
        // Compute tasks that come and go must not pay for I/O tasks that wait.
        if !self.executors.io_changed {
            return;
        }
        self.look_again_at = None;
        while self.executors.io_free > 0 && !self.policy.groups().is_empty() {
            let outlook = self.outlook();
            let next = self.policy.next(&self.room(), &outlook);
            self.look_again_at = outlook.again_at.get();
            let Some((request, slot)) = next else { break };
            self.policy.groups_mut().remove(&request);
            self.send_io(&request, slot, out);
        }
        self.executors.io_changed = false;
    }

    /// Whether an I/O task waits that could be sent, and nobody would look.
    pub(crate) fn overlooks_io(&self) -> bool {
        let looks = self.tuner.is_used() || self.executors.io_changed;
        let next = || self.policy.next(&self.room(), &self.outlook());
        !looks && self.executors.io_free > 0 && next().is_some()
    }

    /// What a policy can know now.
    pub(crate) fn outlook(&self) -> Outlook<'_> {
        Outlook {
            estimates: &self.estimates,
            layers: &self.layers,
            aside: self.tuner.aside(),
            now: self.now,
            again_at: Cell::new(None),
        }
    }

    /// Sends an I/O task with the grant that it asks for.
    pub(crate) fn send_io(&mut self, request: &Request, slot: Slot, out: &mut Vec<Instruction>) {
        if let Some(layer) = slot.layer {
            self.grant(layer, request.constraint);
            self.estimates.started(request, layer, self.now);
        }
        let on = slot.layer.map(|layer| (layer, self.layers.idle(layer)));
        self.policy.groups_mut().started(request, on);
        let sent = Sent {
            task: request.task,
            cpus: 0,
            estimate_ns: None,
            alone: true,
            recalling: false,
            abandoned: false,
            stalls: false,
            halted: false,
            grant: slot.layer.map(|layer| (layer, request.constraint)),
        };
        self.send(request.task, slot, sent, out);
    }

    fn send(&mut self, task: TaskId, slot: Slot, sent: Sent, out: &mut Vec<Instruction>) {
        let attempt = self.hand_over(task, slot, sent);
        let Slot { executor, layer } = slot;
        out.push(Instruction::Run { task, executor, attempt, layer });
    }

    /// An executor has a task from now on; which run of it this is.
    fn hand_over(&mut self, task: TaskId, slot: Slot, sent: Sent) -> u32 {
        self.executors.send(slot.executor, sent);
        let now = self.now;
        let record = self.step(task, Input::Dispatch);
        record.attempt += 1;
        record.executor = Some(slot.executor);
        let attempt = record.attempt;
        if let Some(timeout) = record.timeout {
            let deadline = Deadline { at: now.saturating_add(timeout), task };
            record.deadline = Some(deadline);
            self.deadlines.insert(deadline);
        }
        attempt
    }
}
