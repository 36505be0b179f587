//! First come, first served: where the head does not fit, the next is tried
//! (Elshazly, thesis, chapter 5, algorithm 2).
//!
//! Bound: a request that fits nowhere is passed by later ones that do, but once it is the oldest of
//! its group at most [`STARVE_MAX`](super::STARVE_MAX) times ([`groups`](super::groups)).

use smallvec::SmallVec;

use super::groups::Groups;
use super::line::Order;
use super::{Outlook, Policy, Request, Room, Slot};
use crate::api::{Constraint, LayerId};

pub(crate) struct Fcfs(Groups);

impl Fcfs {
    pub(crate) fn new(starve_max: u32) -> Fcfs {
        Fcfs(Groups::new(Order::Arrival, starve_max))
    }
}

impl Policy for Fcfs {
    fn push(&mut self, request: Request) {
        self.0.push(request);
    }

    fn remove(&mut self, request: &Request) {
        self.0.remove(request);
    }

    fn next(&self, room: &Room, outlook: &Outlook<'_>) -> Option<(Request, Slot)> {
        self.0.next(room, outlook, |group, room| group.arrivals.first(room))
    }

    fn started(&mut self, request: &Request, on: Option<(LayerId, Constraint)>) {
        self.0.started(request, on);
    }

    fn closed(&self, outlook: &Outlook<'_>) -> SmallVec<[LayerId; 4]> {
        self.0.closed(outlook)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
