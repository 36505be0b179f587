//! A naive model of the graph: every question is answered by looking at all earlier tasks.
//!
//! Regions are sets of cells, the standing of a version is computed from its makers, and whether
//! a task may run is computed from the tasks before it. Nothing is counted or remembered that
//! can be looked up.

use std::collections::{BTreeMap, BTreeSet};

use graph::{Access, Bound, DatumId, Direction, Refused, Region, Target, TaskId, VersionId};

use crate::cells::{cells, spans};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Waiting,
    /// Given out by the graph: it may run.
    Ready,
    /// Given up while it runs: its versions failed, its end is still to come.
    Zombie,
    Done,
    Dead,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub id: TaskId,
    pub state: State,
    accesses: Vec<Access>,
    /// Versions that it keeps alive until it is over.
    reads: Vec<VersionId>,
    /// When its versions failed, in poisonings.
    poisoned_at: Option<usize>,
    failure: Option<u32>,
}

#[derive(Clone, Debug)]
struct Version {
    makers: Vec<TaskId>,
    released: bool,
    names: u32,
    gone: bool,
    /// In place: of which datum.
    place: Option<DatumId>,
    /// Written by a group, of one member or more.
    grouped: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Pending,
    Available,
    Failed(u32),
}

#[derive(Clone, Debug)]
struct Write {
    version: VersionId,
    region: Region,
    direction: Direction,
    covered: bool,
}

#[derive(Clone, Debug)]
enum Store {
    Value { current: VersionId, group: Option<(Direction, VersionId)> },
    Place { writes: Vec<Write>, dimensions: Option<usize> },
}

#[derive(Clone, Debug)]
struct Datum {
    store: Store,
    dropped: bool,
}

#[derive(Default)]
pub struct Model {
    pub tasks: Vec<Task>,
    versions: BTreeMap<VersionId, Version>,
    data: BTreeMap<DatumId, Datum>,
    poisonings: usize,
}

fn overlap(a: &Region, b: &Region) -> bool {
    let dimensions = spans(a).len().max(spans(b).len());
    !cells(a, dimensions).is_disjoint(&cells(b, dimensions))
}

fn cover(a: &Region, b: &Region) -> bool {
    let dimensions = spans(a).len().max(spans(b).len());
    cells(a, dimensions).is_superset(&cells(b, dimensions))
}

fn sound(region: &Region) -> bool {
    match region {
        Region::Whole => true,
        Region::Range(span) => span.start < span.end,
        Region::Box(spans) => !spans.is_empty() && spans.iter().all(|s| s.start < s.end),
    }
}

/// Whether the later of two accesses has to wait for the earlier one's task.
fn conflict(earlier: &Access, later: &Access) -> bool {
    let same_group = later.direction.grouped() && earlier.direction == later.direction;
    earlier.target == later.target
        && (earlier.direction.writes() || later.direction.writes())
        && !same_group
        && overlap(&earlier.region, &later.region)
}

impl Model {
    pub fn task(&self, id: TaskId) -> &Task {
        self.tasks.iter().find(|task| task.id == id).expect("the model knows all tasks")
    }

    pub fn task_mut(&mut self, id: TaskId) -> &mut Task {
        self.tasks.iter_mut().find(|task| task.id == id).expect("the model knows all tasks")
    }

    pub fn add_value(&mut self, version: VersionId, names: u32) {
        let new = Version {
            makers: Vec::new(),
            released: true,
            names,
            gone: false,
            place: None,
            grouped: false,
        };
        assert!(self.versions.insert(version, new).is_none(), "{version:?} is new");
    }

    pub fn add_value_datum(&mut self, datum: DatumId, initial: VersionId) {
        self.versions.get_mut(&initial).expect("known").names += 1;
        let store = Store::Value { current: initial, group: None };
        self.data.insert(datum, Datum { store, dropped: false });
    }

    pub fn add_place(&mut self, datum: DatumId) {
        let store = Store::Place { writes: Vec::new(), dimensions: None };
        self.data.insert(datum, Datum { store, dropped: false });
    }

    pub fn standing(&self, id: VersionId) -> Standing {
        let version = &self.versions[&id];
        if version.released {
            return Standing::Available;
        }
        let makers: Vec<&Task> = version.makers.iter().map(|id| self.task(*id)).collect();
        let over = |task: &&Task| task.state == State::Done || task.poisoned_at.is_some();
        if !makers.iter().all(over) {
            return Standing::Pending;
        }
        let failed = makers.iter().filter(|task| task.poisoned_at.is_some());
        match failed.min_by_key(|task| task.poisoned_at) {
            Some(first) => Standing::Failed(first.failure.expect("poisoned by something")),
            None => Standing::Available,
        }
    }

    fn in_place(&self, datum: DatumId) -> bool {
        matches!(self.data[&datum].store, Store::Place { .. })
    }

    /// What the graph has to answer to a submission.
    pub fn refusal(&self, accesses: &[Access]) -> Option<Refused> {
        accesses.iter().enumerate().find_map(|(at, access)| {
            if !sound(&access.region) {
                return Some(Refused::BadRegion(at));
            }
            let count = spans(&access.region).len();
            match access.target {
                Target::Version(version) if self.versions[&version].gone => {
                    return Some(Refused::Stale(at))
                }
                Target::Version(_) if access.direction != Direction::In => {
                    return Some(Refused::BadDirection(at))
                }
                Target::Version(_) => return None,
                Target::Datum(datum) => {
                    let datum = &self.data[&datum];
                    let fits = match &datum.store {
                        Store::Value { .. } => count == 0,
                        Store::Place { dimensions, .. } => {
                            count == 0 || dimensions.is_none_or(|known| known == count)
                        }
                    };
                    if datum.dropped {
                        return Some(Refused::Stale(at));
                    }
                    if !fits {
                        return Some(Refused::BadRegion(at));
                    }
                }
            }
            self.refusal_beside(accesses, at)
        })
    }

    fn refusal_beside(&self, accesses: &[Access], at: usize) -> Option<Refused> {
        let access = &accesses[at];
        let same = |other: &(usize, &Access)| other.1.target == access.target;
        accesses[..at].iter().enumerate().filter(same).find_map(|(first, other)| {
            let counts = (spans(&other.region).len(), spans(&access.region).len());
            if counts.0 != counts.1 && counts.0 != 0 && counts.1 != 0 {
                return Some(Refused::BadRegion(at));
            }
            let writes = other.direction.writes() || access.direction.writes();
            let clash = writes && overlap(&other.region, &access.region);
            clash.then_some(Refused::SelfConflict(first, at))
        })
    }

    /// Takes a task that the graph took, and checks what it was bound to.
    pub fn submit(
        &mut self,
        id: TaskId,
        accesses: Vec<Access>,
        bound: &[Bound],
        outputs: &[VersionId],
        returns: usize,
    ) {
        let task = Task {
            id,
            state: State::Waiting,
            accesses: accesses.clone(),
            reads: Vec::new(),
            poisoned_at: None,
            failure: None,
        };
        self.tasks.push(task);
        for version in &outputs[..returns] {
            self.make(*version, id, 1, None, false);
        }
        let mut written = outputs[returns..].iter();
        assert_eq!(bound.len(), accesses.len());
        for (access, bound) in accesses.iter().zip(bound) {
            match access.target {
                Target::Version(version) => {
                    assert_eq!(*bound, Bound { read: Some(version), write: None });
                    self.task_mut(id).reads.push(version);
                }
                Target::Datum(datum) if self.in_place(datum) => {
                    self.submit_in_place(id, access, *bound);
                }
                Target::Datum(datum) => {
                    self.submit_value(id, datum, access.direction, *bound);
                    if access.direction.writes() {
                        assert_eq!(written.next().copied(), bound.write, "outputs by access");
                    }
                }
            }
        }
        assert_eq!(written.next(), None, "no more outputs than writes");
    }

    fn make(
        &mut self,
        version: VersionId,
        task: TaskId,
        names: u32,
        place: Option<DatumId>,
        grouped: bool,
    ) {
        let makers = vec![task];
        let new = Version { makers, released: false, names, gone: false, place, grouped };
        assert!(self.versions.insert(version, new).is_none(), "{version:?} is new");
    }

    fn submit_value(&mut self, id: TaskId, datum: DatumId, how: Direction, bound: Bound) {
        let Store::Value { current, group } = self.data[&datum].store.clone() else {
            unreachable!()
        };
        let mut next_group = None;
        if how == Direction::In {
            assert_eq!(bound, Bound { read: Some(current), write: None });
        } else {
            let joined = group.filter(|(direction, _)| {
                *direction == how && self.standing(current) == Standing::Pending
            });
            if let Some((_, base)) = joined {
                assert_eq!(bound, Bound { read: Some(base), write: Some(current) });
                self.versions.get_mut(&current).expect("known").makers.push(id);
                next_group = group;
            } else {
                assert_eq!(bound.read, how.reads().then_some(current));
                let made = bound.write.expect("a write makes a version");
                self.make(made, id, 1, None, how.grouped());
                self.versions.get_mut(&current).expect("known").names -= 1;
                next_group = how.grouped().then_some((how, current));
            }
        }
        let next = bound.write.unwrap_or(current);
        let Some(datum) = self.data.get_mut(&datum) else { unreachable!() };
        datum.store = Store::Value { current: next, group: next_group };
        self.task_mut(id).reads.extend(bound.read);
    }

    fn submit_in_place(&mut self, id: TaskId, access: &Access, bound: Bound) {
        let Target::Datum(datum_id) = access.target else { unreachable!() };
        assert_eq!(bound.read, None);
        assert_eq!(bound.write.is_some(), access.direction.writes());
        let needed = self.needed_in_place(access);
        let alive = needed.into_iter().filter(|version| !self.versions[version].gone);
        let alive: Vec<VersionId> = alive.collect();
        self.task_mut(id).reads.extend(alive);
        if let Some(version) = bound.write {
            self.make(version, id, 0, Some(datum_id), false);
        }
        let datum = self.data.get_mut(&datum_id).expect("known");
        let Store::Place { writes, dimensions } = &mut datum.store else { unreachable!() };
        if !spans(&access.region).is_empty() {
            *dimensions = Some(spans(&access.region).len());
        }
        let Some(version) = bound.write else { return };
        let (region, direction) = (access.region.clone(), access.direction);
        if !direction.grouped() {
            for write in writes.iter_mut().filter(|write| cover(&region, &write.region)) {
                write.covered = true;
            }
        }
        writes.push(Write { version, region, direction, covered: false });
    }

    /// The versions in place that an access reads.
    fn needed_in_place(&self, access: &Access) -> Vec<VersionId> {
        let Target::Datum(datum) = access.target else { return Vec::new() };
        let Store::Place { writes, .. } = &self.data[&datum].store else { return Vec::new() };
        if !access.direction.reads() {
            return Vec::new();
        }
        let group = access.direction.grouped().then_some(access.direction);
        let touched = writes.iter().filter(|write| {
            !write.covered
                && group != Some(write.direction)
                && overlap(&write.region, &access.region)
        });
        touched.map(|write| write.version).collect()
    }

    /// A task stops holding back others when it is over; one that was cancelled while it
    /// waited still stands between those before and those after it.
    fn out_of_the_way(&self, task: &Task) -> bool {
        match task.state {
            State::Done => true,
            State::Dead => self.before(task, true).all(|earlier| self.out_of_the_way(earlier)),
            _ => false,
        }
    }

    /// The earlier tasks that use data in place that this one uses too.
    fn before<'a>(&'a self, task: &'a Task, writes: bool) -> impl Iterator<Item = &'a Task> {
        let earlier = self.tasks.iter().take_while(|other| other.id != task.id);
        earlier.filter(move |other| {
            task.accesses.iter().filter(|access| !writes || access.direction.writes()).any(
                |later| {
                    let Target::Datum(datum) = later.target else { return false };
                    self.in_place(datum)
                        && other.accesses.iter().any(|earlier| conflict(earlier, later))
                },
            )
        })
    }

    pub fn edges_met(&self, task: &Task) -> bool {
        task.reads.iter().all(|version| self.standing(*version) == Standing::Available)
            && self
                .before(task, false)
                .all(|earlier| self.out_of_the_way(earlier) || self.gave_all(earlier, task))
    }

    /// Whether an earlier task handed over all that a later one reads, and is held back by nothing
    /// else of it.
    fn gave_all(&self, earlier: &Task, later: &Task) -> bool {
        let gave = |early: &Access, late: &Access| {
            let Target::Datum(datum) = early.target else { return false };
            let Store::Place { writes, .. } = &self.data[&datum].store else { return false };
            let own = |write: &&Write| {
                self.versions[&write.version].makers.contains(&earlier.id)
                    && (&write.region, write.direction) == (&early.region, early.direction)
            };
            !late.direction.writes()
                && writes.iter().find(own).is_some_and(|it| self.versions[&it.version].released)
        };
        let in_place = |access: &&Access| match access.target {
            Target::Datum(datum) => self.in_place(datum),
            _ => false,
        };
        later.accesses.iter().filter(in_place).all(|late| {
            let mut conflicting = earlier.accesses.iter().filter(|early| conflict(early, late));
            conflicting.all(|early| gave(early, late))
        })
    }

    /// The failures of versions that a task needs.
    pub fn failures(&self, task: &Task) -> Vec<u32> {
        let standings = task.reads.iter().map(|version| self.standing(*version));
        standings.filter_map(|s| if let Standing::Failed(f) = s { Some(f) } else { None }).collect()
    }

    /// Whether two tasks need one lock.
    fn share_a_lock(&self, a: &Task, b: &Task) -> bool {
        let commutative = |access: &&Access| access.direction == Direction::Commutative;
        a.accesses.iter().filter(commutative).any(|a| {
            b.accesses
                .iter()
                .filter(commutative)
                .any(|b| a.target == b.target && overlap(&a.region, &b.region))
        })
    }

    /// The task among those that may run or run that holds a lock which this one needs.
    pub fn lock_holder(&self, task: &Task) -> Option<TaskId> {
        let mut holders = self.tasks.iter().filter(|other| {
            matches!(other.state, State::Ready | State::Zombie) && other.id != task.id
        });
        holders.find(|other| self.share_a_lock(task, other)).map(|holder| holder.id)
    }

    pub fn poison(&mut self, id: TaskId, failure: u32, state: State) {
        self.poisonings += 1;
        let at = self.poisonings;
        let task = self.task_mut(id);
        task.state = state;
        task.poisoned_at.get_or_insert(at);
        task.failure.get_or_insert(failure);
    }

    /// Whether the graph has to take a release of an output.
    pub fn release(&mut self, version: VersionId) -> bool {
        let taken = self.standing(version) == Standing::Pending && !self.is_group(version);
        if taken {
            self.versions.get_mut(&version).expect("known").released = true;
        }
        taken
    }

    /// Whether a version is one of data in place.
    pub fn is_in_place(&self, version: VersionId) -> bool {
        self.versions.get(&version).is_some_and(|version| version.place.is_some())
    }

    /// Whether the graph has to take a release of data in place.
    pub fn release_in_place(&mut self, version: VersionId) -> bool {
        let in_place = self.is_in_place(version);
        let taken = in_place && self.standing(version) == Standing::Pending;
        if taken {
            self.versions.get_mut(&version).expect("known").released = true;
        }
        taken
    }

    fn is_group(&self, version: VersionId) -> bool {
        self.versions[&version].grouped
    }

    pub fn name(&mut self, version: VersionId, more: bool) {
        let version = self.versions.get_mut(&version).expect("known");
        version.names = if more { version.names + 1 } else { version.names - 1 };
    }

    /// What the graph has to answer to a question for the latest version; it is named then.
    pub fn current(&mut self, datum: DatumId) -> Option<VersionId> {
        let found = match &mut self.data.get_mut(&datum).expect("known").store {
            Store::Value { current, group } => {
                *group = None;
                Some(*current)
            }
            Store::Place { writes, .. } => {
                let kept = |write: &&Write| {
                    !write.covered
                        && write.region == Region::Whole
                        && !self.versions[&write.version].gone
                };
                writes.iter().rev().find(kept).map(|write| write.version)
            }
        };
        let found = found.filter(|version| !self.versions[version].gone)?;
        self.name(found, true);
        Some(found)
    }

    pub fn drop_datum(&mut self, datum: DatumId) {
        let datum = self.data.get_mut(&datum).expect("known");
        assert!(!datum.dropped, "the test drops once");
        datum.dropped = true;
        if let Store::Value { current, .. } = datum.store {
            self.name(current, false);
        }
    }

    fn listed(&self, id: VersionId, version: &Version) -> bool {
        let Some(datum) = version.place else { return false };
        let datum = &self.data[&datum];
        let Store::Place { writes, .. } = &datum.store else { return false };
        let write = writes.iter().find(|write| write.version == id).expect("a write in place");
        let lasting = write.region == Region::Whole && !write.direction.grouped();
        let failed = matches!(self.standing(id), Standing::Failed(_));
        !datum.dropped && !write.covered && (lasting || failed)
    }

    /// The versions that nobody can read any more and that the graph has not said so of yet.
    pub fn obsolete(&self) -> BTreeSet<VersionId> {
        let readers: BTreeSet<VersionId> = self
            .tasks
            .iter()
            .filter(|task| !matches!(task.state, State::Done | State::Dead))
            .flat_map(|task| task.reads.iter().copied())
            .collect();
        let kept = self.versions.iter().filter(|(_, version)| !version.gone);
        kept.filter(|(id, version)| {
            version.names == 0
                && !readers.contains(id)
                && self.standing(**id) != Standing::Pending
                && !self.listed(**id, version)
        })
        .map(|(id, _)| *id)
        .collect()
    }

    pub fn set_gone(&mut self, version: VersionId) {
        let gone = &mut self.versions.get_mut(&version).expect("known").gone;
        assert!(!core::mem::replace(gone, true), "{version:?} becomes obsolete once");
    }

    pub fn live_versions(&self) -> usize {
        self.versions.values().filter(|version| !version.gone).count()
    }

    pub fn live_tasks(&self) -> usize {
        self.in_state(&[State::Waiting, State::Ready, State::Zombie]).len()
    }

    pub fn in_state(&self, states: &[State]) -> Vec<TaskId> {
        let wanted = self.tasks.iter().filter(|task| states.contains(&task.state));
        wanted.map(|task| task.id).collect()
    }

    pub fn is_dropped(&self, datum: DatumId) -> bool {
        self.data[&datum].dropped
    }
}
