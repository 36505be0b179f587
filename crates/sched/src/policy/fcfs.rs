//! First come, first served: where the head does not fit, the next is tried
//! (Elshazly, thesis, chapter 5, algorithm 1).

use alloc::collections::BTreeMap;
use core::cmp::Reverse;

use super::line::Line;
use super::{Policy, Request, Room, Slot};
use crate::api::{Kind, LayerId};

/// One line for tasks that go to any layer, and one for each layer that was asked for by name;
/// each once for either kind of slot, so that nobody waits behind who needs another kind, and
/// once for those that ask for a bandwidth, who may take slots that others may not.
#[derive(Default)]
pub(crate) struct Fcfs {
    lines: BTreeMap<(Kind, Option<LayerId>, bool), Line>,
}

fn key(request: &Request) -> (Kind, Option<LayerId>, bool) {
    (request.kind, request.layer, request.constraint.bandwidth > 0)
}

impl Policy for Fcfs {
    fn push(&mut self, request: Request) {
        self.lines.entry(key(&request)).or_default().insert(request);
    }

    fn remove(&mut self, request: &Request) {
        let Some(line) = self.lines.get_mut(&key(request)) else { return };
        line.remove(request);
        if line.is_empty() {
            self.lines.remove(&key(request));
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
