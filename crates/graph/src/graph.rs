//! Tasks come in: accesses are bound to versions, and edges follow.
//!
//! A task waits for the versions that it reads (edges name versions, so a version released
//! early frees its readers while its producer runs on) and, for data in place, for the end of
//! earlier readers and writers of an overlapping region.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use smallvec::SmallVec;

use crate::access::{Access, Bound, DatumId, DatumKind, Direction, Target, TaskId, VersionId};
use crate::bind::Draft;
use crate::place::{Limits, Place, Writer};
use crate::region::{self, Extent};
use crate::slab::Slab;

/// Entries of a task's list up to which its memory is left to a later task.
const KEPT_ENTRIES_MAX: usize = 16;

/// Where a version stands.
#[derive(Clone, Debug)]
pub(crate) enum Standing<F> {
    Pending,
    Available,
    Failed(F),
}

/// The tasks that write one version together.
#[derive(Debug)]
pub(crate) struct Group<F> {
    /// The version that they started from. Alive while a member is.
    pub(crate) base: VersionId,
    /// Members that are not over.
    pub(crate) members: u32,
    /// What the first member that failed left.
    pub(crate) failure: Option<F>,
}

#[derive(Debug)]
pub(crate) struct Version<F> {
    pub(crate) standing: Standing<F>,
    /// Nobody is told what becomes of it.
    pub(crate) quiet: bool,
    /// Handles of the program, and the value datum whose latest version it is.
    pub(crate) holds: u32,
    pub(crate) listed: Listed,
    /// Tasks that have it to read and are not over.
    pub(crate) readers: u32,
    /// For a version that several tasks write together.
    pub(crate) group: Option<Box<Group<F>>>,
    /// Tasks that wait for it.
    pub(crate) waiters: SmallVec<[TaskId; 5]>,
    pub(crate) size: u64,
    pub(crate) node: u32,
    /// The task that makes it, or the first of those that do.
    pub(crate) producer: TaskId,
}

/// No task.
pub(crate) const NOBODY: TaskId =
    TaskId(crate::slab::Key { index: u32::MAX, generation: u32::MAX });

/// Whether a datum in place still lists a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    No,
    /// As one of the writes of a part: matters until it is there, or for good if it failed.
    Part,
    /// As the write of the whole: it is what the datum is.
    Whole,
}

impl<F> Version<F> {
    pub(crate) fn new(
        standing: Standing<F>,
        holds: u32,
        listed: Listed,
        producer: TaskId,
    ) -> Version<F> {
        let waiters = SmallVec::new();
        let (quiet, readers, group, size, node) = (false, 0, None, 0, 0);
        Version { standing, quiet, holds, listed, readers, group, waiters, size, node, producer }
    }

    pub(crate) fn failed(&self) -> bool {
        matches!(self.standing, Standing::Failed(_))
    }

    /// Whether nobody can read it any more.
    pub(crate) fn is_obsolete(&self) -> bool {
        let listed = match self.listed {
            Listed::No => false,
            Listed::Part => self.failed(),
            Listed::Whole => true,
        };
        !matches!(self.standing, Standing::Pending)
            && !listed
            && self.holds == 0
            && self.readers == 0
    }
}

#[derive(Debug)]
pub(crate) enum Store {
    Value {
        current: VersionId,
        /// The direction of the group that writes `current`, while others may join it.
        group: Option<Direction>,
        locked: Option<TaskId>,
        lock_waiters: VecDeque<TaskId>,
    },
    Place(Place),
}

#[derive(Debug)]
pub(crate) struct Datum {
    pub(crate) store: Store,
    /// Live tasks that need its lock.
    pub(crate) lock_users: u32,
    pub(crate) dropped: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Node {
    /// Versions and tasks that it still waits for.
    pub(crate) pending: u32,
    /// The tasks among them: earlier users of data in place.
    pub(crate) follows: u32,
    /// Over before those that it follows: kept so that those that follow it do not pass them.
    pub(crate) over: bool,
    pub(crate) handed_out: bool,
    pub(crate) poisoned: bool,
    pub(crate) reads: SmallVec<[VersionId; 6]>,
    /// Returns, then written values in the order of their accesses.
    pub(crate) outputs: SmallVec<[VersionId; 1]>,
    /// Versions of data in place.
    pub(crate) in_place: SmallVec<[VersionId; 1]>,
    /// Tasks that wait for its end.
    pub(crate) successors: SmallVec<[TaskId; 5]>,
    pub(crate) bound: SmallVec<[Bound; 2]>,
    pub(crate) locks: Vec<(DatumId, Extent)>,
}

impl Node {
    /// Empties a node that is over. Lists that grew beyond what most tasks need are given up.
    pub(crate) fn clear(&mut self) {
        let Node { reads, outputs, in_place, successors, bound, locks, .. } = self;
        let most = reads.capacity().max(successors.capacity()).max(bound.capacity());
        if most.max(outputs.capacity()).max(in_place.capacity()) > KEPT_ENTRIES_MAX {
            *self = Node::default();
            return;
        }
        reads.clear();
        outputs.clear();
        in_place.clear();
        successors.clear();
        bound.clear();
        locks.clear();
        (self.pending, self.follows) = (0, 0);
        (self.over, self.handed_out, self.poisoned) = (false, false, false);
    }
}

/// Why a task was not taken. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Two accesses of the task overlap, and one of them writes.
    SelfConflict(usize, usize),
    /// An empty or reversed span, or another number of dimensions than before.
    BadRegion(usize),
    /// The version or datum is not there (any more).
    Stale(usize),
    /// A write to a version by name.
    BadDirection(usize),
}

/// The dependency graph of one program. `F` is what a failure is to the caller.
#[derive(Debug)]
pub struct Graph<F> {
    pub(crate) limits: Limits,
    /// Nobody names versions of data in place, or wants to know of them.
    pub(crate) quiet_places: bool,
    /// Boxed: a task is taken out while its accesses are bound, and while it ends.
    pub(crate) tasks: Slab<Box<Node>>,
    /// How many of the tasks are over and kept.
    pub(crate) over: usize,
    pub(crate) versions: Slab<Version<F>>,
    pub(crate) data: Slab<Datum>,
    pub(crate) ready: VecDeque<TaskId>,
    pub(crate) doomed: VecDeque<(TaskId, F)>,
    pub(crate) settled: VecDeque<VersionId>,
    pub(crate) obsolete: VecDeque<VersionId>,
}

impl<F> Default for Graph<F> {
    fn default() -> Self {
        Graph {
            limits: Limits::default(),
            quiet_places: false,
            tasks: Slab::default(),
            over: 0,
            versions: Slab::default(),
            data: Slab::default(),
            ready: VecDeque::new(),
            doomed: VecDeque::new(),
            settled: VecDeque::new(),
            obsolete: VecDeque::new(),
        }
    }
}

impl<F: Clone> Graph<F> {
    /// A graph that looks for what ended at other lengths, for tests.
    pub fn with_limits(limits: Limits) -> Graph<F> {
        Graph { limits, ..Graph::default() }
    }

    /// The same, empty graph; `quiet_places`: the program names no version of data in place, and is
    /// not told what becomes of them.
    pub fn with_quiet_places(self, quiet_places: bool) -> Graph<F> {
        Graph { quiet_places, ..self }
    }

    /// A version that is not there yet.
    pub(crate) fn new_version(&mut self, producer: TaskId, holds: u32) -> VersionId {
        let version = Version::new(Standing::Pending, holds, Listed::No, producer);
        VersionId(self.versions.insert(version))
    }

    /// A version that is there, named once.
    fn new_value(&mut self) -> VersionId {
        let version = Version::new(Standing::Available, 1, Listed::No, NOBODY);
        VersionId(self.versions.insert(version))
    }

    /// A version that no task makes: it is there, and the program names it once.
    pub fn add_value(&mut self, size: u64, node: u32) -> VersionId {
        let id = self.new_value();
        let version = self.versions.get_mut(id.0).expect("just made");
        version.size = size;
        version.node = node;
        id
    }

    /// A new datum. A value needs its first version (held from now on); without one it gets
    /// an empty one. `None` if `initial` is not there (any more).
    pub fn add_datum(&mut self, kind: DatumKind, initial: Option<VersionId>) -> Option<DatumId> {
        if let Some(initial) = initial {
            let version = self.versions.get_mut(initial.0)?;
            match kind {
                DatumKind::Value => version.holds += 1,
                DatumKind::InPlace => version.listed = Listed::Whole,
            }
        }
        let store = match kind {
            DatumKind::InPlace => {
                let mut place = Place::new(self.limits);
                if let Some(version) = initial {
                    let entry = place.intern(&[]);
                    let writer = Writer { task: NOBODY, version, direction: Direction::Out };
                    place.entries[entry as usize].writers.push(writer);
                }
                Store::Place(place)
            }
            DatumKind::Value => {
                let current = initial.unwrap_or_else(|| self.new_value());
                let lock_waiters = VecDeque::new();
                Store::Value { current, group: None, locked: None, lock_waiters }
            }
        };
        Some(DatumId(self.data.insert(Datum { store, lock_users: 0, dropped: false })))
    }

    /// Takes a task with `returns` values of its own and these accesses.
    pub fn submit(&mut self, returns: u32, accesses: &[Access]) -> Result<TaskId, Refused> {
        self.check(accesses)?;
        // It is there while its accesses are bound: what is not there counts as ended.
        let (key, memory) = self.tasks.begin();
        let task = TaskId(key);
        let mut draft = Draft { task, node: memory.unwrap_or_default() };
        for _ in 0..returns {
            let version = self.new_version(task, 1);
            draft.node.outputs.push(version);
        }
        for access in accesses {
            let bound = match access.target {
                Target::Version(version) => {
                    self.read(&mut draft, version);
                    Bound { read: Some(version), write: None }
                }
                Target::Datum(datum) => {
                    let spans = region::spans(&access.region).expect("checked");
                    self.bind(&mut draft, datum, spans, access.direction)
                }
            };
            draft.node.bound.push(bound);
        }
        let node = draft.node;
        let free = node.pending == 0 && !node.poisoned;
        self.tasks.put(key, node);
        if free {
            self.edges_met(task);
        }
        Ok(task)
    }

    fn check(&self, accesses: &[Access]) -> Result<(), Refused> {
        let mut earlier = Earlier::new(accesses.len());
        for (index, access) in accesses.iter().enumerate() {
            let spans = region::spans(&access.region).ok_or(Refused::BadRegion(index))?;
            match access.target {
                Target::Version(version) => {
                    self.versions.get(version.0).ok_or(Refused::Stale(index))?;
                    if access.direction != Direction::In {
                        return Err(Refused::BadDirection(index));
                    }
                }
                Target::Datum(id) => {
                    let datum = self.data.get(id.0).filter(|datum| !datum.dropped);
                    let fits = match &datum.ok_or(Refused::Stale(index))?.store {
                        Store::Value { .. } => spans.is_empty(),
                        Store::Place(place) => place.fits(spans.len()),
                    };
                    if !fits {
                        return Err(Refused::BadRegion(index));
                    }
                    earlier.check(accesses, id, index)?;
                }
            }
        }
        Ok(())
    }
}

/// Accesses of a task up to which looking through all of them is quicker than a map.
const FEW_ACCESSES: usize = 8;

/// Which earlier accesses of a task are to the same datum; a map where there are many.
struct Earlier(Option<BTreeMap<DatumId, SmallVec<[usize; 2]>>>);

impl Earlier {
    fn new(accesses: usize) -> Earlier {
        Earlier((accesses > FEW_ACCESSES).then(BTreeMap::new))
    }

    /// Checks the access at `index`, which is to `id`, against those before it.
    fn check(&mut self, accesses: &[Access], id: DatumId, index: usize) -> Result<(), Refused> {
        let Some(map) = &mut self.0 else {
            for (other, access) in accesses[..index].iter().enumerate() {
                if access.target == Target::Datum(id) {
                    check_two(accesses, other, index)?;
                }
            }
            return Ok(());
        };
        let same = map.entry(id).or_default();
        same.iter().try_for_each(|other| check_two(accesses, *other, index))?;
        same.push(index);
        Ok(())
    }
}

/// Checks an access against an earlier one of its task to the same datum.
fn check_two(accesses: &[Access], other: usize, index: usize) -> Result<(), Refused> {
    let spans = |at: usize| region::spans(&accesses[at].region).expect("checked");
    let (one, two) = (spans(other), spans(index));
    if one.len() != two.len() && !one.is_empty() && !two.is_empty() {
        return Err(Refused::BadRegion(index));
    }
    let writes = accesses[other].direction.writes() || accesses[index].direction.writes();
    if writes && region::overlap(one, two) {
        return Err(Refused::SelfConflict(other, index));
    }
    Ok(())
}
