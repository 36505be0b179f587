//! The whole state checked against itself, for tests and internal errors.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::access::{TaskId, VersionId};
use crate::graph::{Graph, Standing, Store};

impl<F: Clone> Graph<F> {
    /// Counts everything again: `Err` says what does not add up. Takes time in proportion to
    /// what is alive.
    pub fn validate(&self) -> Result<(), String> {
        let mut pending: BTreeMap<TaskId, u32> = BTreeMap::new();
        let mut readers: BTreeMap<VersionId, u32> = BTreeMap::new();
        let mut members: BTreeMap<VersionId, u32> = BTreeMap::new();
        let mut follows: BTreeMap<TaskId, u32> = BTreeMap::new();
        for (key, node) in self.tasks.iter() {
            for successor in &node.successors {
                *pending.entry(*successor).or_default() += 1;
                *follows.entry(*successor).or_default() += 1;
            }
            for read in &node.reads {
                *readers.entry(*read).or_default() += 1;
            }
            for output in &node.outputs {
                *members.entry(*output).or_default() += 1;
            }
            if node.handed_out && node.pending != 0 {
                return Err(format!("{:?} was given out while it waits", TaskId(key)));
            }
        }
        self.validate_versions(&mut pending, &readers, &members)?;
        for (key, node) in self.tasks.iter() {
            let expected = pending.get(&TaskId(key)).copied().unwrap_or(0);
            let counted = node.pending;
            let followed = follows.get(&TaskId(key)).copied().unwrap_or(0);
            if node.follows != followed {
                return Err(format!("{:?} follows {} of {followed}", TaskId(key), node.follows));
            }
            if node.over && node.follows == 0 {
                return Err(format!("{:?} is over and kept for nobody", TaskId(key)));
            }
            if node.poisoned && counted >= expected {
                continue;
            }
            if counted != expected {
                return Err(format!("{:?} counts {counted} of {expected}", TaskId(key)));
            }
        }
        self.validate_locks()
    }

    fn validate_versions(
        &self,
        pending: &mut BTreeMap<TaskId, u32>,
        readers: &BTreeMap<VersionId, u32>,
        members: &BTreeMap<VersionId, u32>,
    ) -> Result<(), String> {
        for (key, version) in self.versions.iter() {
            let id = VersionId(key);
            let expected = readers.get(&id).copied().unwrap_or(0);
            if version.readers != expected {
                return Err(format!("{id:?} counts {} readers of {expected}", version.readers));
            }
            for waiter in version.waiters.iter().filter(|task| self.is_live(**task)) {
                *pending.entry(*waiter).or_default() += 1;
            }
            if let Some(group) = &version.group {
                let expected = members.get(&id).copied().unwrap_or(0);
                if group.members != expected {
                    return Err(format!("{id:?} counts {} members of {expected}", group.members));
                }
            }
            let settled = !matches!(version.standing, Standing::Pending);
            if settled && !version.waiters.is_empty() {
                return Err(format!("{id:?} is settled and has waiters"));
            }
        }
        Ok(())
    }

    fn validate_locks(&self) -> Result<(), String> {
        let waits = |waiters: &VecDeque<TaskId>| {
            let mut live = waiters.iter().filter_map(|task| self.tasks.get(task.0));
            live.any(|node| !node.poisoned)
        };
        for (key, datum) in self.data.iter() {
            let mut holders = Vec::new();
            let idle = match &datum.store {
                Store::Value { locked, lock_waiters, .. } => {
                    holders.extend(*locked);
                    locked.is_none() && waits(lock_waiters)
                }
                Store::Place(place) => {
                    holders.extend(place.entries.iter().filter_map(|entry| entry.locked));
                    let mut entries = (0u32..).zip(&place.entries);
                    entries.any(|(at, entry)| waits(&entry.lock_waiters) && place.lockable(at))
                }
            };
            if let Some(dead) = holders.iter().find(|task| !self.is_live(**task)) {
                return Err(format!("datum {key:?} is locked by {dead:?}, which is over"));
            }
            if idle {
                return Err(format!("datum {key:?} is free and has waiters"));
            }
        }
        Ok(())
    }
}
