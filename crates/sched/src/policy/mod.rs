//! The order in which ready I/O tasks get grants: one file a policy behind one seam.

mod fcfs;
mod line;

use alloc::boxed::Box;
use smallvec::SmallVec;

use graph::TaskId;

pub(crate) use self::line::Line;
use crate::api::{Constraint, Kind, LayerId, PolicyKind};

/// A ready I/O task as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) task: TaskId,
    /// Whose slot it needs: an I/O executor's or an engine's.
    pub(crate) kind: Kind,
    /// The program's own priority: higher first, whatever the policy.
    pub(crate) priority: i32,
    /// Arrival; a task that comes back keeps its own.
    pub(crate) serial: u64,
    pub(crate) constraint: Constraint,
    pub(crate) layer: Option<LayerId>,
}

/// Keeps ready I/O tasks and says which is next.
pub(crate) trait Policy: Send {
    /// A task became ready.
    fn push(&mut self, request: Request);

    /// A task is ready no more, if it was.
    fn remove(&mut self, request: &Request);

    /// The next request that fits, and where. It stays until it is removed.
    fn next(&self, room: &Room) -> Option<(Request, Slot)>;

    /// Whether no request is kept.
    fn is_empty(&self) -> bool;
}

/// Where a request fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) executor: crate::api::ExecutorId,
    pub(crate) layer: Option<LayerId>,
}

/// What there is to spare: of every layer that a free slot of a kind reaches, highest first.
#[derive(Debug, Default)]
pub(crate) struct Room {
    places: SmallVec<[(Slot, Kind, Constraint); 4]>,
}

impl Room {
    /// A lower layer than those before of this kind of slot.
    pub(crate) fn add(&mut self, slot: Slot, kind: Kind, bandwidth: u64, size: u64) {
        self.places.push((slot, kind, Constraint { bandwidth, size }));
    }

    /// Highest first, for each kind of slot.
    pub(crate) fn places(&self) -> &[(Slot, Kind, Constraint)] {
        &self.places
    }

    /// Puts places that are equally high into the order of a key.
    pub(crate) fn sort_by_key<K: Ord>(&mut self, key: impl Fn(Option<LayerId>) -> K) {
        self.places.sort_by_key(|(slot, ..)| key(slot.layer));
    }

    /// Without the layers that are not to be used.
    pub(crate) fn without(mut self, not: impl Fn(LayerId) -> bool) -> Room {
        self.places.retain(|(slot, ..)| !slot.layer.is_some_and(&not));
        self
    }

    /// The bandwidth to spare at a place.
    pub(crate) fn bandwidth(&self, at: Slot) -> u64 {
        let place = self.places.iter().find(|(slot, ..)| *slot == at);
        place.map_or(0, |(.., spare)| spare.bandwidth)
    }

    /// The highest layer with `asked` to spare, for a request of this kind; only that layer, if
    /// it names one. Whatever fits still fits if it asks for less.
    pub(crate) fn slot(&self, asked: Constraint, request: &Request) -> Option<Slot> {
        let only = request.layer;
        let fits = |(slot, kind, spare): &&(Slot, Kind, Constraint)| {
            *kind == request.kind
                && asked.bandwidth <= spare.bandwidth
                && asked.size <= spare.size
                && (only.is_none() || slot.layer.is_none() || slot.layer == only)
        };
        self.places.iter().find(fits).map(|(slot, ..)| *slot)
    }
}

pub(crate) fn new(kind: PolicyKind) -> Box<dyn Policy> {
    match kind {
        PolicyKind::Fcfs => Box::<fcfs::Fcfs>::default(),
    }
}
