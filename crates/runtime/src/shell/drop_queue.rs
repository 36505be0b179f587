//! Names that were dropped, until somebody has the mutex anyway.

use parking_lot::Mutex;
use sched::VersionId;

/// So many dropped names are worth waking the runtime thread for.
const WAKE_NAMES: usize = 512;

/// A queue that can be pushed to from anywhere.
#[derive(Default)]
pub(crate) struct DropQueue(Mutex<Vec<VersionId>>);

impl DropQueue {
    /// Adds a name; `true`: somebody should look at the queue soon (much memory waits in it,
    /// or it is long).
    pub(crate) fn push(&self, version: VersionId, large: bool) -> bool {
        let mut queue = self.0.lock();
        queue.push(version);
        large || queue.len() % WAKE_NAMES == 0
    }

    /// Takes at most `max` names; `true`: the queue is empty now.
    pub(crate) fn take(&self, max: usize, into: &mut Vec<VersionId>) -> bool {
        let mut queue = self.0.lock();
        let rest = queue.len().saturating_sub(max);
        into.extend(queue.drain(rest..));
        rest == 0
    }
}
