//! The order in which ready I/O tasks get grants: one file a policy behind one seam.

mod fcfs;
mod line;

use alloc::boxed::Box;
use smallvec::SmallVec;

use graph::TaskId;

use crate::api::{Constraint, LayerId, PolicyKind};

/// A ready I/O task as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) task: TaskId,
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

/// What there is to spare: of every layer that a free executor slot reaches, highest first.
#[derive(Debug, Default)]
pub(crate) struct Room {
    places: SmallVec<[(Slot, Constraint); 4]>,
}

impl Room {
    /// A lower layer than those before.
    pub(crate) fn add(&mut self, slot: Slot, bandwidth: u64, size: u64) {
        self.places.push((slot, Constraint { bandwidth, size }));
    }

    /// The highest layer with both to spare; `only` that one, if it is named. Whatever fits
    /// still fits if it asks for less.
    pub(crate) fn slot(&self, asked: Constraint, only: Option<LayerId>) -> Option<Slot> {
        let fits = |(slot, spare): &&(Slot, Constraint)| {
            asked.bandwidth <= spare.bandwidth
                && asked.size <= spare.size
                && (only.is_none() || slot.layer.is_none() || slot.layer == only)
        };
        self.places.iter().find(fits).map(|(slot, _)| *slot)
    }
}

pub(crate) fn new(kind: PolicyKind) -> Box<dyn Policy> {
    match kind {
        PolicyKind::Fcfs => Box::<fcfs::Fcfs>::default(),
    }
}
