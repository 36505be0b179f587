//! A datum in place: its distinct regions, who writes and reads them, who holds their locks.
//!
//! Every distinct region is interned once. Its *neighbours*, the regions that overlap it, are
//! found through the projection maps when it first appears and are remembered, so a program
//! that comes back to the same blocks pays for geometry once (the memoised pairwise
//! intersections of Mont-Blanc D4.2, section 1.2).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use smallvec::SmallVec;

use crate::access::{Direction, Span, TaskId, VersionId};
use crate::projection::Projections;
use crate::region::{self, Extent};

/// How much is kept of what ended before it is looked for. Decides speed and nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Regions of a datum in place before those that nobody uses are dropped.
    pub regions_max: usize,
    /// Readers or writers of a region before those that ended are dropped.
    pub unsearched_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { regions_max: 256, unsearched_max: 32 }
    }
}

/// A task that writes a region, and the version that it makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    pub(crate) task: TaskId,
    pub(crate) version: VersionId,
    pub(crate) direction: Direction,
}

/// A region that overlaps another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbour {
    pub(crate) entry: u32,
    /// Whether it lies wholly inside.
    pub(crate) inside: bool,
}

/// One distinct region.
#[derive(Debug)]
pub(crate) struct Entry {
    extent: Extent,
    /// Every region that overlaps this one, itself included.
    pub(crate) neighbours: Vec<Neighbour>,
    pub(crate) writers: SmallVec<[Writer; 1]>,
    /// How many of the last writers are of one direction.
    alike: usize,
    pub(crate) readers: Vec<TaskId>,
    readers_searched_at: usize,
    writers_searched_at: usize,
    /// The commutative task that works on it now.
    pub(crate) locked: Option<TaskId>,
    /// Tasks that have all but the lock of this region, in order.
    pub(crate) lock_waiters: VecDeque<TaskId>,
}

impl Entry {
    fn keep_writers(&mut self, limits: Limits, matters: impl Fn(&Writer) -> bool) {
        self.writers.retain(|writer| matters(writer));
        let last = self.writers.last().map(|last| last.direction);
        let same = |writer: &&Writer| Some(writer.direction) == last;
        self.alike = self.writers.iter().rev().take_while(same).count();
        self.writers_searched_at = (self.writers.len() * 2).max(limits.unsearched_max);
    }

    /// A task that writes all of it takes the place of those that did, who were taken out.
    pub(crate) fn replace_writers(&mut self, writer: Writer) {
        debug_assert!(self.writers.is_empty(), "they were taken out");
        self.writers.push(writer);
        self.alike = 1;
    }

    /// The writers that a task of a direction comes after: not those of its own group.
    pub(crate) fn writers_before(&self, direction: Direction) -> impl Iterator<Item = &Writer> {
        let group = direction.grouped().then_some(direction);
        let alike = self.writers.last().is_some_and(|last| Some(last.direction) == group);
        let end = self.writers.len() - if alike { self.alike } else { 0 };
        self.writers[..end].iter().filter(move |writer| Some(writer.direction) != group)
    }
}

/// The regions of one datum in place.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) limits: Limits,
    pub(crate) entries: Vec<Entry>,
    by_extent: BTreeMap<Extent, u32>,
    projections: Projections,
    dimensions: Option<usize>,
    emptied_at: usize,
}

impl Place {
    pub(crate) fn new(limits: Limits) -> Place {
        Place {
            limits,
            entries: Vec::new(),
            by_extent: BTreeMap::new(),
            projections: Projections::default(),
            dimensions: None,
            emptied_at: 0,
        }
    }

    /// Whether a region of this many dimensions fits the datum (0: the whole).
    pub(crate) fn fits(&self, dimensions: usize) -> bool {
        dimensions == 0 || self.dimensions.is_none_or(|known| known == dimensions)
    }

    /// The entry of the whole, if there is no other.
    pub(crate) fn only_whole(&mut self) -> Option<&mut Entry> {
        match self.entries.as_mut_slice() {
            [only] if only.extent.is_empty() => Some(only),
            _ => None,
        }
    }

    /// The entry of a region, made now if it is new.
    pub(crate) fn intern(&mut self, extent: &[Span]) -> u32 {
        if let Some(entry) = self.by_extent.get(extent) {
            return *entry;
        }
        let id = u32::try_from(self.entries.len()).expect("fewer than 2^32 regions");
        let mut neighbours = Vec::from([Neighbour { entry: id, inside: true }]);
        for other in self.overlapping(extent) {
            let entry = &mut self.entries[other as usize];
            let inside = region::cover(extent, &entry.extent);
            neighbours.push(Neighbour { entry: other, inside });
            let inside = region::cover(&entry.extent, extent);
            entry.neighbours.push(Neighbour { entry: id, inside });
        }
        if !extent.is_empty() {
            self.dimensions = Some(extent.len());
            self.projections.insert(id, extent);
        }
        self.by_extent.insert(Extent::from_slice(extent), id);
        self.entries.push(Entry {
            extent: Extent::from_slice(extent),
            neighbours,
            writers: SmallVec::new(),
            alike: 0,
            readers: Vec::new(),
            readers_searched_at: self.limits.unsearched_max,
            writers_searched_at: self.limits.unsearched_max,
            locked: None,
            lock_waiters: VecDeque::new(),
        });
        id
    }

    fn overlapping(&self, extent: &[Span]) -> Vec<u32> {
        if extent.is_empty() {
            return (0..self.entries.len() as u32).collect();
        }
        let mut found = self.projections.overlapping(extent);
        if let Some(whole) = self.by_extent.get(&Extent::new()) {
            found.push(*whole);
        }
        found
    }

    /// The entry of a region that was interned before.
    pub(crate) fn find(&self, extent: &[Span]) -> Option<u32> {
        self.by_extent.get(extent).copied()
    }

    /// The region of an entry.
    pub(crate) fn extent(&self, entry: u32) -> &Extent {
        &self.entries[entry as usize].extent
    }

    /// Adds a reader; forgets those that ended when the list has doubled.
    pub(crate) fn add_reader(&mut self, entry: u32, task: TaskId, live: impl Fn(TaskId) -> bool) {
        let entry = &mut self.entries[entry as usize];
        if entry.readers.len() >= entry.readers_searched_at {
            entry.readers.retain(|reader| live(*reader));
            entry.readers_searched_at = (entry.readers.len() * 2).max(self.limits.unsearched_max);
        }
        entry.readers.push(task);
    }

    /// Adds a writer; forgets those that no longer matter when the list has doubled.
    pub(crate) fn add_writer(
        &mut self,
        entry: u32,
        writer: Writer,
        matters: impl Fn(&Writer) -> bool,
    ) {
        let entry = &mut self.entries[entry as usize];
        if entry.writers.len() >= entry.writers_searched_at {
            entry.keep_writers(self.limits, matters);
        }
        let alike = entry.writers.last().is_some_and(|last| last.direction == writer.direction);
        entry.alike = if alike { entry.alike + 1 } else { 1 };
        entry.writers.push(writer);
    }

    /// Forgets what ended in a region and its neighbours.
    pub(crate) fn search(
        &mut self,
        entry: u32,
        live: impl Fn(TaskId) -> bool,
        matters: impl Fn(&Writer) -> bool,
    ) {
        for at in 0..self.entries[entry as usize].neighbours.len() {
            let neighbour = self.entries[entry as usize].neighbours[at].entry;
            let entry = &mut self.entries[neighbour as usize];
            entry.keep_writers(self.limits, &matters);
            entry.readers.retain(|reader| live(*reader));
        }
    }

    /// Whether a commutative task may work on the region of an entry.
    pub(crate) fn lockable(&self, entry: u32) -> bool {
        let neighbours = &self.entries[entry as usize].neighbours;
        neighbours.iter().all(|other| self.entries[other.entry as usize].locked.is_none())
    }

    /// Drops regions that nobody uses any more, when there may be many.
    pub(crate) fn compact(&mut self, used: impl Fn(&Entry) -> bool) {
        if self.entries.len() < (self.emptied_at * 2).max(self.limits.regions_max) {
            return;
        }
        let entries = core::mem::take(&mut self.entries);
        self.by_extent.clear();
        self.projections = Projections::default();
        for old in entries {
            if !used(&old) && old.locked.is_none() && old.lock_waiters.is_empty() {
                continue;
            }
            let id = self.intern(&old.extent.clone());
            let entry = &mut self.entries[id as usize];
            entry.writers = old.writers;
            entry.alike = old.alike;
            entry.readers = old.readers;
            entry.locked = old.locked;
            entry.lock_waiters = old.lock_waiters;
        }
        self.emptied_at = self.entries.len();
    }
}
