//! First come, first served: where the head does not fit, the next is tried
//! (Elshazly, thesis, chapter 5, algorithm 1).

use alloc::collections::BTreeMap;
use core::cmp::Reverse;

use super::line::Line;
use super::{Policy, Request, Room, Slot};
use crate::api::LayerId;

/// One line for tasks that go to any layer, and one for each layer that was asked for by name.
#[derive(Default)]
pub(crate) struct Fcfs {
    lines: BTreeMap<Option<LayerId>, Line>,
}

impl Policy for Fcfs {
    fn push(&mut self, request: Request) {
        self.lines.entry(request.layer).or_default().insert(request);
    }

    fn remove(&mut self, request: &Request) {
        let Some(line) = self.lines.get_mut(&request.layer) else { return };
        line.remove(request);
        if line.is_empty() {
            self.lines.remove(&request.layer);
        }
    }

    fn next(&self, room: &Room) -> Option<(Request, Slot)> {
        let firsts = self.lines.values().filter_map(|line| line.first(room));
        firsts.min_by_key(|(request, _)| (Reverse(request.priority), request.serial))
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}
