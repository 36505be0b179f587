//! The order in which ready I/O tasks get grants: one file a policy behind one seam.

mod backfilling;
pub(crate) mod estimates;
mod fcfs;
mod groups;
mod line;
mod priority;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use smallvec::SmallVec;

use graph::TaskId;

pub(crate) use self::estimates::{Estimates, Outlook};
pub(crate) use self::groups::Groups;
pub(crate) use self::line::Line;
use crate::api::{Constraint, FunctionId, Kind, LayerId, PolicyKind, Way};
use crate::layers::{Mask, Spare};

/// How often the oldest request of a group is passed by later ones before nobody passes it.
pub(crate) const STARVE_MAX: u32 = 256;

/// A ready I/O task as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) task: TaskId,
    /// Whose slot it needs: an I/O executor's or an engine's.
    pub(crate) kind: Kind,
    pub(crate) function: FunctionId,
    /// The program's own priority: higher first, whatever the policy.
    pub(crate) priority: i32,
    /// Arrival; a task that comes back keeps its own.
    pub(crate) serial: u64,
    pub(crate) constraint: Constraint,
    pub(crate) layer: Option<LayerId>,
    /// Layers that it must not go to.
    pub(crate) not: Mask,
}

impl Request {
    /// Whether the request may go to a layer as far as it says.
    pub(crate) fn may_use(&self, layer: LayerId) -> bool {
        self.layer.is_none_or(|only| only == layer) && !self.not.contains(layer)
    }

    /// Whether the request fits on a layer of which there is so much.
    pub(crate) fn could_use(&self, layer: LayerId, idle: Spare) -> bool {
        self.may_use(layer) && idle.fits(self.constraint)
    }
}

/// Keeps ready I/O tasks, in groups, and says which is next.
pub(crate) trait Policy: Send {
    /// The requests that are kept.
    fn groups(&self) -> &Groups;

    /// Likewise.
    fn groups_mut(&mut self) -> &mut Groups;

    /// The next request that may begin, and where. It stays until it is removed.
    fn next(&self, room: &Room, outlook: &Outlook<'_>) -> Option<(Request, Slot)>;
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
    places: SmallVec<[Place; 4]>,
}

/// A layer with a free slot that reaches it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) slot: Slot,
    pub(crate) kind: Kind,
    pub(crate) spare: Spare,
    /// Only a task that the bandwidth limits may take the slot.
    pub(crate) extra: bool,
}

impl Room {
    /// A lower layer than those before of this kind of slot.
    pub(crate) fn add(&mut self, slot: Slot, kind: Kind, bandwidth: u64, size: u64) {
        self.put(Place { slot, kind, spare: Spare::new(bandwidth, size), extra: false });
    }

    /// Likewise.
    pub(crate) fn put(&mut self, place: Place) {
        self.places.push(place);
    }

    /// Highest first, for each kind of slot.
    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Puts places that are equally high into the order of a key.
    pub(crate) fn sort_by_key<K: Ord>(&mut self, key: impl Fn(Option<LayerId>) -> K) {
        self.places.sort_by_key(|place| key(place.slot.layer));
    }

    /// Without the layers that are not to be used.
    pub(crate) fn without(mut self, not: impl Fn(LayerId) -> bool) -> Room {
        self.places.retain(|place| !place.slot.layer.is_some_and(&not));
        self
    }

    /// Of these places, those that something is true of.
    pub(crate) fn filtered(&self, is_open: impl Fn(&Place) -> bool) -> Room {
        Room { places: self.places.iter().filter(|place| is_open(place)).copied().collect() }
    }

    /// The bandwidth to spare at a place.
    pub(crate) fn bandwidth(&self, at: Slot, way: Way) -> u64 {
        let place = self.places.iter().find(|place| place.slot == at);
        place.map_or(0, |place| place.spare.bandwidth(way))
    }

    /// The highest layer with room for a request; only that layer, if it names one.
    pub(crate) fn slot(&self, request: &Request) -> Option<Slot> {
        self.slot_for(request.constraint, request, request.not)
    }

    /// Whether some request of the same kind and for the same layers as this one, which asks for
    /// `asked`, may fit. Whatever fits still fits if it asks for less (but not for nothing).
    pub(crate) fn may_fit(&self, asked: Constraint, request: &Request) -> bool {
        self.slot_for(asked, request, Mask::default()).is_some()
    }

    fn slot_for(&self, asked: Constraint, request: &Request, not: Mask) -> Option<Slot> {
        let only = request.layer;
        let fits = |place: &&Place| {
            let Place { slot, kind, spare, extra } = **place;
            kind == request.kind
                && spare.fits(asked)
                && (!extra || (asked.bandwidth > 0 && spare.bandwidth(asked.way) < u64::MAX))
                && (only.is_none() || slot.layer.is_none() || slot.layer == only)
                && !slot.layer.is_some_and(|layer| not.contains(layer))
        };
        self.places.iter().find(fits).map(|place| place.slot)
    }
}

pub(crate) fn new(kind: PolicyKind) -> Box<dyn Policy> {
    match kind {
        PolicyKind::Fcfs => Box::new(fcfs::Fcfs::new(STARVE_MAX)),
        PolicyKind::Priority => Box::new(priority::Priority::new(STARVE_MAX)),
        PolicyKind::Backfilling => Box::new(backfilling::Backfilling::new(STARVE_MAX)),
    }
}
