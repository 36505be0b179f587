//! Tasks go out: versions settle, dependents are freed or doomed, what is obsolete is dropped.

use alloc::boxed::Box;
use alloc::vec::Vec;
use smallvec::SmallVec;

use crate::access::{Bound, DatumId, TaskId, VersionId};
use crate::graph::{Graph, Node, Standing, Store, Version};
use crate::place::Writer;
use crate::region::Extent;

impl<F: Clone> Graph<F> {
    /// The next task that waits for nothing any more. Each is given out once.
    pub fn pop_ready(&mut self) -> Option<TaskId> {
        while let Some(task) = self.ready.pop_front() {
            if let Some(node) = self.tasks.get_mut(task.0) {
                assert!(!node.handed_out && node.pending == 0, "ready once, waiting for nothing");
                node.handed_out = true;
                return Some(task);
            }
        }
        None
    }

    /// The next task that can never run, with the failure of the version that it needs.
    /// The caller answers with [`Graph::poison`] and [`Graph::remove`].
    pub fn pop_doomed(&mut self) -> Option<(TaskId, F)> {
        while let Some((task, failure)) = self.doomed.pop_front() {
            if self.is_live(task) {
                return Some((task, failure));
            }
        }
        None
    }

    /// The next version that has come, or (with its failure) never will.
    pub fn pop_settled(&mut self) -> Option<(VersionId, Option<F>)> {
        while let Some(id) = self.settled.pop_front() {
            match self.versions.get(id.0).map(|version| &version.standing) {
                Some(Standing::Failed(failure)) => return Some((id, Some(failure.clone()))),
                Some(Standing::Available) => return Some((id, None)),
                Some(Standing::Pending) => unreachable!("a settled version stays settled"),
                None => {}
            }
        }
        None
    }

    /// The next version that nobody can read any more. Its identifier is dead with this call.
    /// Take all that settled first.
    pub fn pop_obsolete(&mut self) -> Option<VersionId> {
        while let Some(id) = self.obsolete.pop_front() {
            if self.versions.get(id.0).is_some_and(Version::is_obsolete) {
                self.versions.remove(id.0);
                return Some(id);
            }
        }
        None
    }

    /// Whether [`Graph::pop_ready`] has something.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether one of the four has something.
    pub fn has_news(&self) -> bool {
        let Graph { ready, doomed, settled, obsolete, .. } = self;
        !(ready.is_empty() && doomed.is_empty() && settled.is_empty() && obsolete.is_empty())
    }

    /// Whether a task was taken and is not over.
    pub fn is_live(&self, task: TaskId) -> bool {
        self.tasks.get(task.0).is_some_and(|node| !node.over)
    }

    /// How many tasks are not over.
    pub fn live_tasks(&self) -> usize {
        self.tasks.len() - self.over
    }

    /// How many versions are kept.
    pub fn live_versions(&self) -> usize {
        self.versions.len()
    }

    /// What each access of a live task was bound to, in order.
    pub fn bound(&self, task: TaskId) -> &[Bound] {
        self.tasks.get(task.0).map(|node| node.bound.as_slice()).unwrap_or_default()
    }

    /// The value versions that a live task makes: returns, then written values by access.
    pub fn outputs(&self, task: TaskId) -> &[VersionId] {
        self.tasks.get(task.0).map(|node| node.outputs.as_slice()).unwrap_or_default()
    }

    /// Whether tasks can still be submitted that use a datum.
    pub fn is_named(&self, id: DatumId) -> bool {
        self.data.get(id.0).is_some_and(|datum| !datum.dropped)
    }

    /// Whether a datum is used in place.
    pub fn is_in_place(&self, id: DatumId) -> bool {
        self.data.get(id.0).is_some_and(|datum| matches!(datum.store, Store::Place(_)))
    }

    /// The tasks that make what a live task still waits for; `None`: it also waits for the end of
    /// tasks that use its data in place, or for its turn with others.
    pub fn awaited(&self, task: TaskId) -> Option<impl Iterator<Item = TaskId> + '_> {
        let node = self.tasks.get(task.0).filter(|node| !node.over)?;
        let reads = node.reads.iter().filter_map(|id| self.versions.get(id.0));
        let pending = reads.filter(|version| matches!(version.standing, Standing::Pending));
        (node.follows == 0 && node.pending > 0).then(|| pending.map(|version| version.producer))
    }

    /// Bytes and node of every version that a live task reads.
    pub fn inputs(&self, task: TaskId) -> impl Iterator<Item = (u64, u32)> + '_ {
        let reads = self.tasks.get(task.0).map(|node| node.reads.as_slice()).unwrap_or_default();
        reads.iter().filter_map(|id| self.versions.get(id.0)).map(|v| (v.size, v.node))
    }

    /// The latest version of a datum, named once more by the caller; a group that writes it
    /// takes no new members. For data in place, the latest write of the whole that is kept
    /// (`None`: never written as a whole under this graph, or by groups that are over).
    pub fn current(&mut self, id: DatumId) -> Option<VersionId> {
        self.close_group(id);
        let version = match &self.data.get(id.0)?.store {
            Store::Value { current, .. } => *current,
            Store::Place(place) => {
                let whole = &place.entries[place.find(&[])? as usize];
                let kept = |writer: &&Writer| self.versions.get(writer.version.0).is_some();
                whole.writers.iter().rev().find(kept)?.version
            }
        };
        let named = self.versions.get_mut(version.0)?;
        named.holds += 1;
        Some(version)
    }

    /// The program names a version once more.
    pub fn hold(&mut self, version: VersionId) -> bool {
        let version = self.versions.get_mut(version.0);
        version.map(|version| version.holds += 1).is_some()
    }

    /// The program names a version once less.
    pub fn unhold(&mut self, id: VersionId) {
        if let Some(version) = self.versions.get_mut(id.0) {
            assert!(version.holds > 0, "{id:?} was named");
            version.holds -= 1;
            self.look_at(id);
        }
    }

    /// The program can no longer name a datum.
    pub fn drop_datum(&mut self, id: DatumId) {
        let Some(datum) = self.data.get_mut(id.0) else { return };
        if core::mem::replace(&mut datum.dropped, true) {
            return;
        }
        let mut value = None;
        let mut writers = Vec::new();
        match &mut datum.store {
            Store::Value { current, .. } => value = Some(*current),
            Store::Place(place) => {
                for entry in &mut place.entries {
                    writers.extend(entry.writers.drain(..));
                }
            }
        }
        if datum.lock_users == 0 {
            self.data.remove(id.0);
        }
        value.into_iter().for_each(|version| self.unhold(version));
        writers.iter().for_each(|writer| self.unlist(writer.version));
    }

    pub(crate) fn look_at(&mut self, id: VersionId) {
        let Some(version) = self.versions.get(id.0).filter(|version| version.is_obsolete()) else {
            return;
        };
        if version.quiet {
            self.versions.remove(id.0);
        } else {
            self.obsolete.push_back(id);
        }
    }

    /// A task hands over one of its outputs before its end. `false`: it has no such output,
    /// or that had been settled, or others of its group write it too.
    pub fn release(&mut self, task: TaskId, output: usize, size: u64, node: u32) -> bool {
        let Some(id) = self.outputs(task).get(output).copied() else { return false };
        let version = self.versions.get(id.0);
        let single = version.is_some_and(|version| {
            version.group.is_none() && matches!(version.standing, Standing::Pending)
        });
        if single {
            self.available(id, size, node);
        }
        single
    }

    /// A task is done with data in place that it writes, by the position of the access: who reads
    /// them goes on. Who writes them waits for its end. `false`: as [`Graph::release`].
    pub fn release_in_place(&mut self, task: TaskId, access: usize, node: u32) -> bool {
        let Some(id) = self.bound(task).get(access).and_then(|bound| bound.write) else {
            return false;
        };
        let in_place = self.tasks.get(task.0).is_some_and(|node| node.in_place.contains(&id));
        let version = self.versions.get(id.0).filter(|_| in_place);
        let pending = version.is_some_and(|it| matches!(it.standing, Standing::Pending));
        if pending {
            self.available(id, 0, node);
        }
        pending
    }

    /// A task hands over the latest value of a stream: its output becomes another version, named
    /// once, that is still to come. `None`: as [`Graph::release`].
    pub fn renew(
        &mut self,
        task: TaskId,
        output: usize,
        size: u64,
        node: u32,
    ) -> Option<VersionId> {
        if !self.release(task, output, size, node) {
            return None;
        }
        let next = self.new_version(task, 1);
        let node = self.tasks.get_mut(task.0).expect("it has outputs");
        node.outputs[output] = next;
        Some(next)
    }

    /// How many tasks that are not over have a version to read; `None`: it is obsolete.
    pub fn readers(&self, version: VersionId) -> Option<u32> {
        self.versions.get(version.0).map(|version| version.readers)
    }

    fn available(&mut self, id: VersionId, size: u64, node: u32) {
        let Some(version) = self.versions.get_mut(id.0) else { return };
        if !matches!(version.standing, Standing::Pending) {
            return;
        }
        version.standing = Standing::Available;
        version.size = size;
        version.node = node;
        if !version.quiet {
            self.settled.push_back(id);
        }
        let waiters = core::mem::take(&mut version.waiters);
        self.look_at(id);
        waiters.iter().for_each(|task| self.one_less(*task));
    }

    fn fail(&mut self, id: VersionId, failure: &F) {
        let Some(version) = self.versions.get_mut(id.0) else { return };
        if !matches!(version.standing, Standing::Pending) {
            return;
        }
        version.standing = Standing::Failed(failure.clone());
        if !version.quiet {
            self.settled.push_back(id);
        }
        let waiters = core::mem::take(&mut version.waiters);
        self.look_at(id);
        for task in waiters {
            if let Some(node) = self.tasks.get_mut(task.0) {
                node.poisoned = true;
                self.doomed.push_back((task, failure.clone()));
            }
        }
    }

    /// One member of a group is over; the last one settles the version.
    fn leave(&mut self, id: VersionId, failure: Option<&F>, size: u64, node: u32) -> bool {
        let Some(group) = self.versions.get_mut(id.0).and_then(|version| version.group.as_mut())
        else {
            return false;
        };
        group.members -= 1;
        if group.failure.is_none() {
            group.failure = failure.cloned();
        }
        if group.members == 0 {
            match group.failure.take() {
                Some(failure) => self.fail(id, &failure),
                None => self.available(id, size, node),
            }
        }
        true
    }

    /// A task ended well: its versions are there (`sizes` as in [`Graph::outputs`]).
    pub fn finish(&mut self, task: TaskId, sizes: &[u64], place: u32) {
        let Some(node) = self.tasks.lend(task.0) else { return };
        assert!(node.pending == 0 && !node.poisoned, "only a ready task can end well");
        for (index, id) in node.outputs.iter().enumerate() {
            let size = sizes.get(index).copied().unwrap_or(0);
            if !self.leave(*id, None, size, place) {
                self.available(*id, size, place);
            }
        }
        node.in_place.iter().for_each(|id| self.available(*id, 0, place));
        self.end(task, node);
    }

    /// A task will not produce what it has not released: these versions fail, and whoever
    /// needs them is doomed. The task itself stays until [`Graph::remove`], and so do the
    /// edges of data in place. Its own outputs can still be asked for; it has left its groups.
    pub fn poison(&mut self, task: TaskId, failure: &F) {
        let Some(node) = self.tasks.get_mut(task.0) else { return };
        node.poisoned = true;
        let mut outputs = core::mem::take(&mut node.outputs);
        let in_place = core::mem::take(&mut node.in_place);
        outputs.retain(|id| {
            let own = !self.leave(*id, Some(failure), 0, 0);
            if own {
                self.fail(*id, failure);
            }
            own
        });
        in_place.into_iter().for_each(|id| self.fail(id, failure));
        self.tasks.get_mut(task.0).expect("looked up above").outputs = outputs;
    }

    /// A task is over: what waited for its end goes on, what it kept alive may go. One that
    /// is over before the tasks that it follows keeps its place between them and those after.
    pub fn remove(&mut self, task: TaskId) {
        if self.is_live(task) {
            let node = self.tasks.lend(task.0).expect("it is live");
            self.end(task, node);
        }
    }

    /// The end of a task that was lent: nothing that follows from it asks for it.
    fn end(&mut self, task: TaskId, mut node: Box<Node>) {
        for id in node.reads.drain(..) {
            if let Some(version) = self.versions.get_mut(id.0) {
                assert!(version.readers > 0, "{id:?} had a reader");
                version.readers -= 1;
                self.look_at(id);
            }
        }
        let locks = core::mem::take(&mut node.locks);
        if node.follows == 0 {
            self.let_go(task, node);
        } else {
            node.outputs.clear();
            node.in_place.clear();
            node.bound.clear();
            (node.over, node.poisoned) = (true, true);
            self.over += 1;
            self.tasks.put(task.0, node);
        }
        for (datum, extent) in locks {
            self.unlock(task, datum, &extent);
        }
    }

    /// Those that follow a task that is over go on, unless they follow others.
    fn let_go(&mut self, task: TaskId, node: Box<Node>) {
        let mut over: SmallVec<[TaskId; 4]> = SmallVec::new();
        self.no_longer_followed(task, node, &mut over);
        while let Some(task) = over.pop() {
            if self.tasks.get(task.0).is_some_and(|node| node.follows == 0) {
                let node = self.tasks.lend(task.0).expect("looked at above");
                self.over -= 1;
                self.no_longer_followed(task, node, &mut over);
            }
        }
    }

    /// Retires a task; those that follow it and are `over`, too, come after it.
    fn no_longer_followed(
        &mut self,
        task: TaskId,
        mut node: Box<Node>,
        over: &mut SmallVec<[TaskId; 4]>,
    ) {
        for successor in &node.successors {
            let Some(next) = self.tasks.get_mut(successor.0) else { continue };
            assert!(next.follows > 0, "{successor:?} followed {task:?}");
            next.follows -= 1;
            if next.over {
                over.push(*successor);
            } else {
                self.one_less(*successor);
            }
        }
        node.clear();
        self.tasks.retire(task.0, node);
    }

    fn one_less(&mut self, task: TaskId) {
        let Some(node) = self.tasks.get_mut(task.0) else { return };
        assert!(node.pending > 0, "{task:?} waited for something");
        node.pending -= 1;
        if node.pending == 0 && !node.poisoned {
            self.edges_met(task);
        }
    }

    /// All edges are met: the task is ready once it has the locks of its commutative data,
    /// all or none of them, so that no two tasks ever wait for each other.
    pub(crate) fn edges_met(&mut self, task: TaskId) {
        let node = self.tasks.get(task.0).expect("the caller has it");
        if node.locks.is_empty() {
            self.ready.push_back(task);
            return;
        }
        let locks = node.locks.clone();
        let taken = locks.iter().find(|(datum, extent)| !self.lockable(*datum, extent));
        if let Some((datum, extent)) = taken {
            match &mut self.data.get_mut(datum.0).expect("used by a live task").store {
                Store::Value { lock_waiters, .. } => lock_waiters.push_back(task),
                Store::Place(place) => {
                    let entry = place.intern(extent) as usize;
                    place.entries[entry].lock_waiters.push_back(task);
                }
            }
            return;
        }
        locks.iter().for_each(|(datum, extent)| self.set_lock(*datum, extent, Some(task)));
        self.ready.push_back(task);
    }

    fn lockable(&mut self, datum: DatumId, extent: &Extent) -> bool {
        match &mut self.data.get_mut(datum.0).expect("used by a live task").store {
            Store::Value { locked, .. } => locked.is_none(),
            Store::Place(place) => {
                // The region may have been dropped while the task waited for others.
                let entry = place.intern(extent);
                place.lockable(entry)
            }
        }
    }

    fn lock_holder(&self, datum: DatumId, extent: &Extent) -> Option<TaskId> {
        match &self.data.get(datum.0)?.store {
            Store::Value { locked, .. } => *locked,
            Store::Place(place) => place.entries[place.find(extent)? as usize].locked,
        }
    }

    fn set_lock(&mut self, datum: DatumId, extent: &Extent, holder: Option<TaskId>) {
        match &mut self.data.get_mut(datum.0).expect("used by a live task").store {
            Store::Value { locked, .. } => *locked = holder,
            Store::Place(place) => {
                let entry = place.intern(extent);
                place.entries[entry as usize].locked = holder;
            }
        }
    }

    fn unlock(&mut self, task: TaskId, id: DatumId, extent: &Extent) {
        let held = self.lock_holder(id, extent) == Some(task);
        if held {
            self.set_lock(id, extent, None);
        }
        let datum = self.data.get_mut(id.0).expect("used by a live task");
        datum.lock_users -= 1;
        if datum.lock_users == 0 {
            if datum.dropped {
                self.data.remove(id.0);
            }
            return;
        }
        if !held {
            return;
        }
        if let Store::Value { .. } = &datum.store {
            self.wake_lock_waiters(id, None);
            return;
        }
        let neighbours = self.lock_neighbours(id, extent);
        neighbours.into_iter().for_each(|entry| self.wake_lock_waiters(id, Some(entry)));
    }

    /// The regions of a datum in place that overlap one and have waiters.
    fn lock_neighbours(&self, id: DatumId, extent: &Extent) -> Vec<u32> {
        let Some(Store::Place(place)) = self.data.get(id.0).map(|datum| &datum.store) else {
            return Vec::new();
        };
        let Some(own) = place.find(extent) else { return Vec::new() };
        let near = place.entries[own as usize].neighbours.iter().map(|near| near.entry);
        near.filter(|near| !place.entries[*near as usize].lock_waiters.is_empty()).collect()
    }

    /// The waiters of a value, or of a region in place, until its lock is taken again. A
    /// waiter that lacks another lock still goes to wait for that one.
    fn wake_lock_waiters(&mut self, id: DatumId, entry: Option<u32>) {
        while let Some(datum) = self.data.get_mut(id.0) {
            let waiter = match (&mut datum.store, entry) {
                (Store::Value { locked: None, lock_waiters, .. }, _) => lock_waiters.pop_front(),
                (Store::Place(place), Some(entry)) if place.lockable(entry) => {
                    place.entries[entry as usize].lock_waiters.pop_front()
                }
                _ => return,
            };
            let Some(waiter) = waiter else { return };
            if self.tasks.get(waiter.0).is_some_and(|node| !node.poisoned) {
                self.edges_met(waiter);
            }
        }
    }
}
