//! The scheduler's own books checked against each other.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use crate::api::LayerId;
use crate::record::Record;
use crate::sched::Sched;
use crate::transitions::State;

impl Sched {
    pub(crate) fn validate_tasks(&self) -> Result<(), String> {
        let (mut waiting, mut ready, mut sent) = (0, 0, 0);
        for record in self.records.iter().flatten() {
            let task = record.task;
            if !self.graph.is_live(task) {
                return Err(format!("{task:?} has a record and is not in the graph"));
            }
            match record.state {
                State::Waiting => waiting += 1,
                State::Ready => ready += 1,
                State::Sent | State::Paused | State::Settling | State::Abandoned => sent += 1,
                state => return Err(format!("{task:?} is {state} and still kept")),
            }
            let at = record.executor.and_then(|id| self.executors.all.get(id));
            let listed = at.is_some_and(|at| at.tasks().any(|sent| sent.task == task));
            let holds = matches!(record.state, State::Sent | State::Paused | State::Abandoned);
            if holds != listed {
                return Err(format!("{task:?} is {} and listed: {listed}", record.state));
            }
        }
        let timed = |record: &&Record| {
            matches!(record.state, State::Sent | State::Paused) && record.timeout.is_some()
        };
        let expected = self.records.iter().flatten().filter(timed).count();
        if self.deadlines.len() != expected {
            return Err(format!("{} deadlines of {expected}", self.deadlines.len()));
        }
        let counts = self.counts();
        if (counts.waiting, counts.ready, counts.sent) != (waiting, ready, sent) {
            return Err(format!("{counts:?} but {waiting} wait, {ready} ready, {sent} sent"));
        }
        if self.graph.live_tasks() as u64 != waiting + ready + sent {
            return Err(format!("{} tasks in the graph, {counts:?}", self.graph.live_tasks()));
        }
        Ok(())
    }

    pub(crate) fn validate_executors(&self) -> Result<(), String> {
        let mut grants: BTreeMap<LayerId, ([u64; 3], u64)> = BTreeMap::new();
        for (id, executor) in self.executors.all.iter() {
            for sent in executor.tasks() {
                let record = self.record(sent.task);
                if record.is_none_or(|record| record.executor != Some(id)) {
                    return Err(format!("{id:?} lists {:?}, which is not there", sent.task));
                }
                if record.is_some_and(|record| record.kind != executor.kind) {
                    return Err(format!("{id:?} has {:?}, which is of another kind", sent.task));
                }
                if let Some((layer, constraint)) = sent.grant {
                    let sum = grants.entry(layer).or_default();
                    sum.0[constraint.way as usize] += constraint.bandwidth;
                    sum.1 += constraint.size;
                }
            }
            let slots = executor.slots + executor.extra;
            if executor.kind.is_io() && executor.sent.len() as u32 > slots {
                return Err(format!("{id:?} holds more than its {slots} slots"));
            }
        }
        for (layer, room) in self.records.iter().flatten().filter_map(|record| record.reserved) {
            grants.entry(layer).or_default().1 += room;
        }
        if self.overlooks_io() {
            return Err("an I/O task could be sent, and nothing changed".into());
        }
        for id in self.layers.ranked() {
            let expected = grants.get(id).copied().unwrap_or_default();
            let size = self.layers.granted(*id).map_or(0, |granted| granted.size);
            let granted = (self.layers.granted_ways(*id), size);
            if granted != expected {
                return Err(format!("{id:?} granted {granted:?} of {expected:?}"));
            }
        }
        self.executors.validate()
    }
}
