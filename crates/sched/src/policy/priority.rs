//! Highest bandwidth first, and strictly so (Elshazly, thesis, chapter 5, algorithms 3 and 4).
//!
//! The head of a group is its first request, in order of the program's priority, bandwidth
//! (descending) and arrival, that some layer could take if the tasks there ended. If it does not
//! fit now, the whole group waits. Before it begins on a layer, each higher one that could take it
//! is weighed: if the shortest remaining time of the tasks there and its mean time there are
//! together less than its mean time here, it waits, and the group with it. Times that are not known
//! delay nobody: no estimate, no weighing.
//!
//! Bound: a request of low bandwidth waits for those of higher bandwidth that come later, but once
//! it is the oldest of its group at most [`STARVE_MAX`](super::STARVE_MAX) times
//! ([`groups`](super::groups)). Who waits for a higher layer does so only while a task runs there
//! that is not late by more than its own estimate ([`estimates`](super::estimates)).

use super::groups::{Group, Groups};
use super::line::Order;
use super::{Outlook, Policy, Request, Room, Slot};

pub(crate) struct Priority(Groups);

impl Priority {
    pub(crate) fn new(starve_max: u32) -> Priority {
        Priority(Groups::new(Order::Bandwidth, starve_max))
    }
}

/// Whether a request is better off waiting for a higher layer (`canMaximize`).
fn waits_for_higher(request: &Request, slot: Slot, outlook: &Outlook<'_>) -> bool {
    let Some(here) = slot.layer else { return false };
    let Some(time_here) = outlook.estimate(request, here) else { return false };
    let mut higher = outlook.layers_for(request).filter(|layer| outlook.is_above(*layer, here));
    higher.any(|layer| {
        let time_there = outlook.estimate(request, layer);
        let total = time_there.and_then(|time| outlook.remaining(layer)?.checked_add(time));
        total.is_some_and(|total| total < time_here)
    })
}

fn pick(group: &Group, room: &Room, idle: &Room, outlook: &Outlook<'_>) -> Option<(Request, Slot)> {
    let (head, _) = group.first(idle)?;
    let slot = room.slot(&head)?;
    (!waits_for_higher(&head, slot, outlook)).then_some((head, slot))
}

impl Policy for Priority {
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
