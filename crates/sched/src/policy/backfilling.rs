//! Highest bandwidth first; while the head waits, others begin that end before it can (Elshazly,
//! thesis, chapter 5, algorithm 5).
//!
//! Order and head are those of [`priority`](super::priority); nobody is weighed against a higher
//! layer. If the head does not fit now, later requests that fit begin if their estimated time on
//! the layer that they would get is less than the shortest remaining time of any I/O task that
//! runs: the head cannot begin before one of them ends. As in the thesis, whether that one leaves
//! enough is not looked at. What is not known delays nobody: a request without an estimate begins,
//! and so does everybody if no remaining time is known. Of a function that was never measured, only
//! the first request that fits is looked at.
//!
//! Bound: the head is passed by those that fit beside it, but once it is the oldest of its group at
//! most [`STARVE_MAX`](super::STARVE_MAX) times ([`groups`](super::groups)).

use super::groups::{Group, Groups};
use super::line::Order;
use super::{Outlook, Policy, Request, Room, Slot};
use crate::api::Time;

pub(crate) struct Backfilling(Groups);

impl Backfilling {
    pub(crate) fn new(starve_max: u32) -> Backfilling {
        Backfilling(Groups::new(Order::Bandwidth, starve_max))
    }
}

/// The first that ends in less than `wait` nanoseconds, as far as is known.
fn backfill(
    group: &Group,
    room: &Room,
    wait: Time,
    outlook: &Outlook<'_>,
) -> Option<(Request, Slot)> {
    let firsts = group.by_function.iter().filter_map(|(function, line)| {
        let is_short = |layer| outlook.mean(*function, layer).is_none_or(|mean| mean < wait);
        let short = room.filtered(|place| place.slot.layer.is_none_or(is_short));
        let (request, slot) = line.first(&short)?;
        let estimate = slot.layer.and_then(|layer| outlook.estimate(&request, layer));
        estimate.is_none_or(|estimate| estimate < wait).then_some((request, slot))
    });
    firsts.min_by_key(|(request, _)| Order::Bandwidth.rank(request))
}

fn pick(group: &Group, room: &Room, idle: &Room, outlook: &Outlook<'_>) -> Option<(Request, Slot)> {
    let Some((head, _)) = group.first(idle) else { return group.first(room) };
    if let Some(slot) = room.slot(&head) {
        return Some((head, slot));
    }
    match outlook.shortest_remaining() {
        Some(wait) => backfill(group, room, wait, outlook),
        None => group.first(room),
    }
}

impl Policy for Backfilling {
    fn groups(&self) -> &Groups {
        &self.0
    }

    fn groups_mut(&mut self) -> &mut Groups {
        &mut self.0
    }

    fn next(&self, room: &Room, outlook: &Outlook<'_>) -> Option<(Request, Slot)> {
        let idle = outlook.idle();
        self.0.next(room, outlook, |group, room| pick(group, room, &idle, outlook))
    }
}
