//! The seam between the scheduler and the tuner.

use alloc::vec::Vec;

use graph::TaskId;

use super::{share, size_class, Flight, Found, Needs, Tuner, Tuning, View, WindowKey};
use crate::api::{Constraint, Instruction, Kind, LayerId, Refusal, TaskSpec, Time};
use crate::policy::Request;
use crate::sched::Sched;
use crate::sent::Sent;

/// The group of a task that is not tuned.
pub(crate) const STATIC: u32 = u32::MAX;

/// The tuner, and what it looks at.
fn split(sched: &mut Sched) -> (&mut Tuner, View<'_>) {
    let Sched { tuner, layers, executors, functions, now, .. } = sched;
    (tuner, View { layers, executors, functions, now: *now })
}

impl Sched {
    /// The group of a task that is to be submitted.
    pub(crate) fn group_of(&mut self, spec: &TaskSpec) -> u32 {
        if spec.kind == Kind::Compute || spec.tuning == Tuning::Static {
            return STATIC;
        }
        // The controller does not care for sizes.
        let class = match spec.tuning {
            Tuning::Adaptive => 0,
            _ => size_class(spec.constraint.size),
        };
        let first = !self.tuner.is_used();
        let needs = Needs { kind: spec.kind, way: spec.constraint.way };
        let key = (spec.function, spec.tuning, class, spec.layer, needs);
        let group = self.tuner.group(key, &self.layers);
        if first {
            self.layers.ids().for_each(|layer| self.advance(layer));
        }
        group
    }

    /// The group of a task that an engine has passed on to the I/O executors.
    pub(crate) fn group_with_io_slots(&mut self, group: u32) -> u32 {
        match group {
            STATIC => STATIC,
            group => self.tuner.group_with(group, Kind::Io, &self.layers),
        }
    }

    /// What a tuned task asks of a layer must be there, for all that may be tried.
    pub(crate) fn check_tuned(&self, spec: &TaskSpec) -> Result<(), Refusal> {
        let bandwidth = match spec.tuning {
            Tuning::Auto { bounds: Some(bounds) } => bounds.max,
            _ => 0,
        };
        let asked = Constraint { bandwidth, ..spec.constraint };
        let nearest = self.layers.could_ever(spec.layer, asked);
        nearest.map_err(|nearest| Refusal::NoLayer { asked, nearest })
    }

    /// An I/O task is ready.
    pub(crate) fn queue_io(&mut self, group: u32, request: Request) {
        if group == STATIC {
            self.policy.groups_mut().push(request);
            return;
        }
        let constraint = Constraint { bandwidth: 0, ..request.constraint };
        let (tuner, view) = split(self);
        tuner.push(group, Request { constraint, ..request }, &view);
    }

    /// An I/O task is ready no more.
    pub(crate) fn unqueue_io(&mut self, group: u32, request: &Request) {
        // Others may have waited behind it.
        self.executors.io_changed = true;
        match group {
            STATIC => self.policy.groups_mut().remove(request),
            group => self.tuner.remove(group, request),
        }
    }

    fn advance(&mut self, layer: LayerId) {
        let (tuner, view) = split(self);
        tuner.advance(layer, view.layers.tasks(layer), view.now);
    }

    /// A task gets its grant on a layer.
    pub(crate) fn grant(&mut self, layer: LayerId, constraint: Constraint) {
        if self.tuner.is_used() {
            self.advance(layer);
        }
        self.layers.grant(layer, constraint);
    }

    /// What a task held on a layer is free.
    pub(crate) fn give_back(&mut self, layer: LayerId, constraint: Constraint) {
        if self.tuner.is_used() {
            self.advance(layer);
        }
        self.layers.give_back(layer, constraint);
    }

    /// Sends I/O tasks where some are tuned.
    pub(crate) fn dispatch_tuned(&mut self, out: &mut Vec<Instruction>) {
        self.look_again_at = None;
        while self.executors.io_free > 0
            && (self.tuner.has_ready() || !self.policy.groups().is_empty())
        {
            let room = self.room();
            let (tuner, view) = split(self);
            tuner.release(&view);
            let closed = self.policy.groups().closed(&self.outlook());
            let tuned_room =
                room.filtered(|place| !place.slot.layer.is_some_and(|id| closed.contains(&id)));
            let (tuner, view) = split(self);
            let tuned = tuner.next(&tuned_room, &view);
            let open = room.without(|layer| self.tuner.aside[layer.0 as usize].is_some());
            let outlook = self.outlook();
            let plain = self.policy.next(&open, &outlook);
            self.look_again_at = outlook.again_at.get();
            let place = |request: &Request| (core::cmp::Reverse(request.priority), request.serial);
            match (tuned, plain) {
                (Some(found), plain)
                    if plain.is_none_or(|(plain, _)| place(&found.request) < place(&plain)) =>
                {
                    self.send_tuned(&found, out);
                }
                (_, Some((request, slot))) => {
                    self.policy.groups_mut().remove(&request);
                    self.send_io(&request, slot, out);
                }
                (_, None) => return,
            }
        }
    }

    fn send_tuned(&mut self, found: &Found, out: &mut Vec<Instruction>) {
        self.tuner.remove(found.group, &found.request);
        let constraint = Constraint { bandwidth: found.bandwidth, ..found.request.constraint };
        let request = Request { constraint, ..found.request };
        if let Some(layer) = found.slot.layer {
            self.advance(layer);
        }
        let (tuner, view) = split(self);
        tuner.started(found, &view);
        self.send_io(&request, found.slot, out);
    }

    /// A task is off its executor and its layer: after `ran` nanoseconds, or for nothing.
    pub(crate) fn tuned_off(&mut self, task: TaskId, ran: Option<u64>) {
        if self.tuner.flights.is_empty() {
            return;
        }
        let (tuner, view) = split(self);
        if let Some(key) = tuner.off(task, ran, &view) {
            self.narrow_grants(key);
        }
    }

    /// A window became wider: every task in it holds no more than its share, so that the others
    /// find theirs at once.
    fn narrow_grants(&mut self, key: WindowKey) {
        let (tuner, view) = split(self);
        let Some(window) = tuner.windows.get(&key) else { return };
        let (_, layer, needs) = key;
        let tasks = window.tasks(view.slots_all(layer, needs.kind).max(1));
        let most = share(view.layers.layer(layer).limit(needs.way), tasks);
        let of_it = |flight: &Flight| {
            let group = &tuner.groups[flight.group as usize];
            let adaptive = group.tuning == Tuning::Adaptive;
            adaptive && (group.function, flight.layer, group.needs) == key
        };
        let flights = tuner.flights.iter().filter(|(_, flight)| of_it(flight));
        let tasks: Vec<TaskId> = flights.map(|(task, _)| *task).collect();
        for task in tasks {
            let executor = self.record(task).and_then(|record| record.executor);
            let executor = executor.and_then(|id| self.executors.all.get_mut(id));
            let Some(sent) = executor.and_then(|executor| executor.find_mut(task)) else {
                continue;
            };
            let Sent { grant: Some((_, granted)), .. } = sent else { continue };
            let less = granted.bandwidth.saturating_sub(most);
            granted.bandwidth -= less;
            self.layers.narrow(layer, needs.way, less);
        }
    }

    /// The driver says how many bytes a task moved.
    pub(crate) fn moved(&mut self, task: TaskId, bytes: u64) {
        if let Some(function) = self.record(task).map(|record| record.function) {
            self.estimates.moved(function, bytes);
        }
        if let Some(flight) = self.tuner.flights.get_mut(&task).filter(|_| bytes > 0) {
            flight.bytes = bytes;
        }
    }

    /// A task of an epoch is given up: so is the epoch.
    pub(crate) fn abandon_epoch_of(&mut self, task: TaskId) {
        let epoch = self.tuner.flights.get(&task).and_then(|flight| flight.epoch);
        let Some((id, number)) = epoch else { return };
        let learner = &self.tuner.learners[id as usize].1;
        if learner.epoch().is_some_and(|epoch| epoch.number == number) {
            self.abandon_epoch(id);
        }
    }

    fn abandon_epoch(&mut self, id: u32) {
        let learner = &mut self.tuner.learners[id as usize].1;
        let Some(layer) = learner.epoch().map(|epoch| epoch.ground.layer) else { return };
        learner.abandon();
        self.tuner.leave(id, layer);
    }

    /// Epochs in which nothing has ended for too long are given up.
    pub(crate) fn abandon_quiet(&mut self) {
        let now = self.now;
        for id in 0..self.tuner.learners.len() as u32 {
            let quiet = self.tuner.learners[id as usize].1.quiet_at();
            if quiet.is_some_and(|at| at <= now) {
                self.abandon_epoch(id);
            }
        }
    }

    /// When the next epoch is given up, if nothing ends before.
    pub(crate) fn quiet_at(&self) -> Option<Time> {
        self.tuner.learners.iter().filter_map(|(_, learner)| learner.quiet_at()).min()
    }
}
