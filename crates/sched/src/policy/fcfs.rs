//! First come, first served: where the head does not fit, the next is tried
//! (Elshazly, thesis, chapter 5, algorithm 2).
//!
//! Bound: a request that fits nowhere is passed by later ones that do, but once it is the oldest of
//! its group at most [`STARVE_MAX`](super::STARVE_MAX) times ([`groups`](super::groups)).

use super::groups::Groups;
use super::line::Order;
use super::{Outlook, Policy, Request, Room, Slot};

pub(crate) struct Fcfs(Groups);

impl Fcfs {
    pub(crate) fn new(starve_max: u32) -> Fcfs {
        Fcfs(Groups::new(Order::Arrival, starve_max))
    }
}

impl Policy for Fcfs {
    fn groups(&self) -> &Groups {
        &self.0
    }

    fn groups_mut(&mut self) -> &mut Groups {
        &mut self.0
    }

    fn next(&self, room: &Room, outlook: &Outlook<'_>) -> Option<(Request, Slot)> {
        self.0.next(room, outlook, |group, room| group.arrivals.first(room))
    }
}
