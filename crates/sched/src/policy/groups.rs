//! Who waits with whom, and that nobody waits for ever.
//!
//! A *group* is of those that compete for the same: one kind of slot, one layer asked for by name
//! or any, the same layers that failed them, and of which bandwidth they ask, if of any at all
//! (those that do may take slots that others may not). What a policy calls the head is the head of
//! a group: nobody waits behind one who needs another kind of slot, another layer, or what is left
//! for reading where he writes.
//!
//! **The bound, for every policy.** In each group the oldest request of the highest priority counts
//! how often later ones of no higher priority begin on a layer that could take it if nobody ran
//! there. At `starve_max` it *starves*: those who would pass it may not begin on any such layer
//! until it has begun. So a request is passed at most `starve_max` times once it is the oldest of
//! its group, and `(k + 1) * starve_max` times if there are `k` older ones when it comes. The
//! program's own priorities go first all the same: low ones may starve, that is the program's wish.
//! So may one that files leave no room for on any layer: closing a layer would not help it.

use alloc::collections::BTreeMap;
use smallvec::SmallVec;

use super::line::Order;
use super::{Line, Outlook, Request, Room, Slot};
use crate::api::{Constraint, FunctionId, Kind, LayerId, Way};
use crate::layers::{Mask, Spare};

type Key = (Kind, Option<LayerId>, Option<Way>, Mask);

fn key(request: &Request) -> Key {
    let Constraint { bandwidth, way, .. } = request.constraint;
    (request.kind, request.layer, (bandwidth > 0).then_some(way), request.not)
}

/// Those that compete for the same.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// All of them.
    pub(super) arrivals: Line,
    /// Likewise by function, highest bandwidth first; only where the order is not arrival.
    pub(super) by_function: BTreeMap<FunctionId, Line>,
    /// How often the oldest was passed.
    passed: u32,
}

impl Group {
    /// The first in order of bandwidth that fits.
    pub(super) fn first(&self, room: &Room) -> Option<(Request, Slot)> {
        let firsts = self.by_function.values().filter_map(|line| line.first(room));
        firsts.min_by_key(|(request, _)| Order::Bandwidth.rank(request))
    }
}

/// All groups.
#[derive(Debug)]
pub(crate) struct Groups {
    order: Order,
    starve_max: u32,
    groups: BTreeMap<Key, Group>,
}

/// One that was passed too often, and the layers that are closed for it.
struct Starving {
    request: Request,
    closed: SmallVec<[LayerId; 4]>,
}

impl Starving {
    fn is_passed_by(&self, other: &Request) -> bool {
        let one = &self.request;
        Order::Arrival.rank(one) < Order::Arrival.rank(other)
    }
}

impl Groups {
    pub(super) fn new(order: Order, starve_max: u32) -> Groups {
        Groups { order, starve_max, groups: BTreeMap::new() }
    }

    /// A task became ready.
    pub(crate) fn push(&mut self, request: Request) {
        let group = self.groups.entry(key(&request)).or_default();
        let first = group.arrivals.head().map(|head| head.task);
        group.arrivals.insert(request);
        if group.arrivals.head().map(|head| head.task) != first {
            group.passed = 0;
        }
        if self.order == Order::Bandwidth {
            let line = group.by_function.entry(request.function);
            line.or_insert_with(|| Line::new(Order::Bandwidth)).insert(request);
        }
    }

    /// A task is ready no more, if it was.
    pub(crate) fn remove(&mut self, request: &Request) {
        let Some(group) = self.groups.get_mut(&key(request)) else { return };
        if group.arrivals.head().is_some_and(|head| head.task == request.task) {
            group.passed = 0;
        }
        group.arrivals.remove(request);
        if let Some(line) = group.by_function.get_mut(&request.function) {
            line.remove(request);
            if line.is_empty() {
                group.by_function.remove(&request.function);
            }
        }
        if group.arrivals.is_empty() {
            self.groups.remove(&key(request));
        }
    }

    /// Whether no request is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// A task begins on a layer, of which there would be so much if nobody ran: one of those that
    /// were kept, or another. Those that it passes count it.
    pub(crate) fn started(&mut self, request: &Request, on: Option<(LayerId, Spare)>) {
        for group in self.groups.values_mut() {
            let Some(oldest) = group.arrivals.head() else { continue };
            let passes = Order::Arrival.rank(oldest) < Order::Arrival.rank(request);
            if passes && on.is_none_or(|(layer, idle)| oldest.could_use(layer, idle)) {
                group.passed = group.passed.saturating_add(1);
            }
        }
    }

    /// Those that were passed too often, oldest first.
    fn starving(&self, outlook: &Outlook<'_>) -> SmallVec<[Starving; 1]> {
        let passed = self.groups.values().filter(|group| group.passed >= self.starve_max);
        let oldest = passed.filter_map(|group| group.arrivals.head());
        let closed = |request: &Request| Starving {
            request: *request,
            closed: outlook.layers_for(request).collect(),
        };
        let helped = |starving: &Starving| !starving.closed.is_empty();
        let mut all: SmallVec<[Starving; 1]> = oldest.map(closed).filter(helped).collect();
        all.sort_by_key(|starving| Order::Arrival.rank(&starving.request));
        all
    }

    /// The layers on which nobody else may begin, for the sake of those who starve.
    pub(crate) fn closed(&self, outlook: &Outlook<'_>) -> SmallVec<[LayerId; 4]> {
        self.starving(outlook).iter().flat_map(|starving| starving.closed.clone()).collect()
    }

    /// The first in order of those that `pick` finds in each group, none of which passes one who
    /// starves.
    pub(super) fn next(
        &self,
        room: &Room,
        outlook: &Outlook<'_>,
        pick: impl Fn(&Group, &Room) -> Option<(Request, Slot)>,
    ) -> Option<(Request, Slot)> {
        let starving = self.starving(outlook);
        let open = |before: &[Starving]| {
            let is_closed = |layer: LayerId| before.iter().any(|it| it.closed.contains(&layer));
            room.filtered(|place| !place.slot.layer.is_some_and(is_closed))
        };
        let fed = starving.iter().enumerate().find_map(|(at, Starving { request, .. })| {
            open(&starving[..at]).slot(request).map(|slot| (*request, slot))
        });
        let rest = (!starving.is_empty()).then(|| open(&starving));
        let found = self.groups.values().filter_map(|group| {
            let (request, slot) = pick(group, room)?;
            let passes = starving.iter().any(|starving| starving.is_passed_by(&request));
            match &rest {
                Some(rest) if passes => pick(group, rest),
                _ => Some((request, slot)),
            }
        });
        let higher = |found: &(Request, Slot)| match &fed {
            Some((request, _)) => found.0.priority > request.priority,
            None => true,
        };
        let first = found.filter(higher).min_by_key(|(request, _)| self.order.rank(request));
        first.or(fed)
    }
}
