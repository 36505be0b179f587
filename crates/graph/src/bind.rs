//! Binding one access: which version it reads, which it makes, which edges follow.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use smallvec::SmallVec;

use crate::access::{Bound, DatumId, Direction, Span, TaskId, VersionId};
use crate::graph::{Graph, Group, Listed, Node, Standing, Store, Version};
use crate::place::{Place, Writer};
use crate::region::Extent;
use crate::slab::Slab;

/// A task while its accesses are bound.
pub(crate) struct Draft {
    pub(crate) task: TaskId,
    pub(crate) node: Box<Node>,
}

/// The task waits for a version, and keeps it alive until it is over.
fn read<F: Clone>(
    versions: &mut Slab<Version<F>>,
    doomed: &mut VecDeque<(TaskId, F)>,
    draft: &mut Draft,
    id: VersionId,
) -> bool {
    let Some(version) = versions.get_mut(id.0) else { return false };
    version.readers += 1;
    draft.node.reads.push(id);
    match &version.standing {
        Standing::Available => {}
        Standing::Pending => {
            version.waiters.push(draft.task);
            draft.node.pending += 1;
        }
        Standing::Failed(failure) => {
            draft.node.poisoned = true;
            doomed.push_back((draft.task, failure.clone()));
        }
    }
    true
}

/// The task waits for the end of an earlier one.
fn follow(tasks: &mut Slab<Box<Node>>, draft: &mut Draft, earlier: TaskId) {
    assert_ne!(earlier, draft.task, "a task never waits for itself");
    if let Some(node) = tasks.get_mut(earlier.0) {
        if node.successors.last() != Some(&draft.task) {
            node.successors.push(draft.task);
            draft.node.pending += 1;
            draft.node.follows += 1;
        }
    }
}

impl<F: Clone> Graph<F> {
    /// The task waits for a version that is there, and keeps it alive until it is over.
    pub(crate) fn read(&mut self, draft: &mut Draft, id: VersionId) {
        let is_there = read(&mut self.versions, &mut self.doomed, draft, id);
        assert!(is_there, "checked, or held by its datum");
    }

    /// Binds an access to a datum that was checked.
    pub(crate) fn bind(
        &mut self,
        draft: &mut Draft,
        id: DatumId,
        spans: &[Span],
        direction: Direction,
    ) -> Bound {
        let datum = self.data.get_mut(id.0).expect("checked");
        if direction == Direction::Commutative {
            datum.lock_users += 1;
            draft.node.locks.push((id, Extent::from_slice(spans)));
        }
        match &mut datum.store {
            Store::Value { current, group, .. } => {
                let (base, group) = (*current, *group);
                self.bind_value(draft, id, direction, base, group)
            }
            Store::Place(_) => match self.bind_whole(draft, id, spans, direction) {
                Some(bound) => bound,
                None => self.bind_place(draft, id, spans, direction),
            },
        }
    }

    /// Binds an access to a datum in place that was only ever used as a whole, without groups:
    /// what [`Graph::bind_place`] comes to where there is one region, with nothing collected.
    /// `None`: it is not so simple.
    fn bind_whole(
        &mut self,
        draft: &mut Draft,
        id: DatumId,
        spans: &[Span],
        direction: Direction,
    ) -> Option<Bound> {
        let Store::Place(place) = &mut self.data.get_mut(id.0).expect("checked").store else {
            return None;
        };
        let entry = place.only_whole().filter(|_| spans.is_empty() && !direction.grouped())?;
        let users_max = self.limits.unsearched_max;
        if entry.writers.len() > users_max || entry.readers.len() > users_max {
            return None;
        }
        if !direction.writes() {
            for writer in &entry.writers {
                read(&mut self.versions, &mut self.doomed, draft, writer.version);
            }
            entry.readers.push(draft.task);
            return Some(Bound::default());
        }
        let covered = core::mem::take(&mut entry.writers);
        for writer in &covered {
            if direction.reads() {
                read(&mut self.versions, &mut self.doomed, draft, writer.version);
            }
            follow(&mut self.tasks, draft, writer.task);
        }
        for reader in entry.readers.drain(..) {
            follow(&mut self.tasks, draft, reader);
        }
        let mut version = Version::new(Standing::Pending, 0, Listed::Whole, draft.task);
        version.quiet = self.quiet_places;
        let version = VersionId(self.versions.insert(version));
        entry.replace_writers(Writer { task: draft.task, version, direction });
        draft.node.in_place.push(version);
        covered.iter().for_each(|writer| self.unlist(writer.version));
        Some(Bound { read: None, write: Some(version) })
    }

    fn bind_value(
        &mut self,
        draft: &mut Draft,
        id: DatumId,
        direction: Direction,
        base: VersionId,
        group: Option<Direction>,
    ) -> Bound {
        if direction == Direction::In {
            self.close_group(id);
            self.read(draft, base);
            return Bound { read: Some(base), write: None };
        }
        if direction.grouped() && group == Some(direction) {
            if let Some(bound) = self.join(draft, base) {
                return bound;
            }
        }
        let read = direction.reads().then_some(base);
        if let Some(base) = read {
            self.read(draft, base);
        }
        let made = self.new_version(draft.task, 1);
        if direction.grouped() {
            let group = Group { base, members: 1, failure: None };
            self.versions.get_mut(made.0).expect("just made").group = Some(Box::new(group));
        }
        draft.node.outputs.push(made);
        if let Store::Value { current, group, .. } =
            &mut self.data.get_mut(id.0).expect("checked").store
        {
            *current = made;
            *group = direction.grouped().then_some(direction);
        }
        self.unhold(base);
        Bound { read, write: Some(made) }
    }

    /// Joins the group that writes a version, if that is not settled.
    fn join(&mut self, draft: &mut Draft, made: VersionId) -> Option<Bound> {
        let version = self.versions.get_mut(made.0).expect("held by its datum");
        if !matches!(version.standing, Standing::Pending) {
            return None;
        }
        let group = version.group.as_mut().expect("the datum's group wrote it");
        assert!(group.members > 0, "a group without members is settled");
        group.members += 1;
        let base = group.base;
        self.read(draft, base);
        draft.node.outputs.push(made);
        Some(Bound { read: Some(base), write: Some(made) })
    }

    /// The next task of the group's direction starts a new group.
    pub(crate) fn close_group(&mut self, datum: DatumId) {
        if let Some(datum) = self.data.get_mut(datum.0) {
            if let Store::Value { group, .. } = &mut datum.store {
                *group = None;
            }
        }
    }

    fn place_mut(&mut self, datum: DatumId) -> &mut Place {
        match &mut self.data.get_mut(datum.0).expect("checked").store {
            Store::Place(place) => place,
            Store::Value { .. } => unreachable!("the caller looked"),
        }
    }

    fn bind_place(
        &mut self,
        draft: &mut Draft,
        id: DatumId,
        spans: &[Span],
        direction: Direction,
    ) -> Bound {
        self.compact(id);
        let place = self.place_mut(id);
        let own = place.intern(spans);
        let mut writers: SmallVec<[Writer; 4]> = SmallVec::new();
        let mut readers: SmallVec<[TaskId; 8]> = SmallVec::new();
        let mut covered: SmallVec<[Writer; 4]> = SmallVec::new();
        let replaces = direction.writes() && !direction.grouped();
        for at in 0..place.entries[own as usize].neighbours.len() {
            let neighbour = place.entries[own as usize].neighbours[at];
            let entry = &mut place.entries[neighbour.entry as usize];
            writers.extend(entry.writers_before(direction).copied());
            if direction.writes() {
                readers.extend_from_slice(&entry.readers);
            }
            if replaces && neighbour.inside {
                covered.extend(entry.writers.drain(..));
                entry.readers.clear();
            }
        }
        self.search_if_many_ended(id, own, &writers, &readers);
        for writer in writers {
            if direction.reads() {
                read(&mut self.versions, &mut self.doomed, draft, writer.version);
            }
            if direction.writes() {
                follow(&mut self.tasks, draft, writer.task);
            }
        }
        for reader in readers {
            if reader != draft.task {
                follow(&mut self.tasks, draft, reader);
            }
        }
        let bound = self.record_in_place(draft, id, own, direction);
        covered.iter().for_each(|writer| self.unlist(writer.version));
        bound
    }

    /// So that those that come after need not look at what ended once more.
    fn search_if_many_ended(
        &mut self,
        id: DatumId,
        own: u32,
        writers: &[Writer],
        readers: &[TaskId],
    ) {
        let (tasks, versions) = (&self.tasks, &self.versions);
        let live = |task: TaskId| tasks.contains(task.0);
        let matters =
            |writer: &Writer| live(writer.task) || versions.get(writer.version.0).is_some();
        let ended = writers.iter().filter(|writer| !matters(writer)).count()
            + readers.iter().filter(|reader| !live(**reader)).count();
        if ended <= self.limits.unsearched_max {
            return;
        }
        if let Store::Place(place) = &mut self.data.get_mut(id.0).expect("checked").store {
            place.search(own, live, matters);
        }
    }

    fn record_in_place(
        &mut self,
        draft: &mut Draft,
        id: DatumId,
        own: u32,
        direction: Direction,
    ) -> Bound {
        let task = draft.task;
        if !direction.writes() {
            let tasks = &self.tasks;
            if let Store::Place(place) = &mut self.data.get_mut(id.0).expect("checked").store {
                place.add_reader(own, task, |reader| tasks.contains(reader.0));
            }
            return Bound::default();
        }
        let version = self.new_version(draft.task, 0);
        let (tasks, versions) = (&self.tasks, &self.versions);
        let mut listed = Listed::Part;
        if let Store::Place(place) = &mut self.data.get_mut(id.0).expect("checked").store {
            if place.extent(own).is_empty() && !direction.grouped() {
                listed = Listed::Whole;
            }
            place.add_writer(own, Writer { task, version, direction }, |writer| {
                tasks.contains(writer.task.0) || versions.get(writer.version.0).is_some()
            });
        }
        let made = self.versions.get_mut(version.0).expect("just made");
        (made.listed, made.quiet) = (listed, self.quiet_places);
        draft.node.in_place.push(version);
        Bound { read: None, write: Some(version) }
    }

    /// A datum in place no longer lists a version.
    pub(crate) fn unlist(&mut self, id: VersionId) {
        if let Some(version) = self.versions.get_mut(id.0) {
            version.listed = Listed::No;
            self.look_at(id);
        }
    }

    /// Forgets what ended well long ago in a datum in place.
    fn compact(&mut self, id: DatumId) {
        let (tasks, versions) = (&self.tasks, &self.versions);
        if let Store::Place(place) = &mut self.data.get_mut(id.0).expect("checked").store {
            place.compact(|entry| {
                let matters = |writer: &Writer| {
                    tasks.contains(writer.task.0) || versions.get(writer.version.0).is_some()
                };
                entry.writers.iter().any(matters)
                    || entry.readers.iter().any(|reader| tasks.contains(reader.0))
            });
        }
    }
}
