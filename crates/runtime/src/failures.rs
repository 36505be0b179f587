//! Failures that the program has not looked at: leaving the session raises the first.

use std::sync::Arc;

use parking_lot::Mutex;
use sched::Failure;

/// How many unseen failures are kept in full.
const UNSEEN_MAX: usize = 1000;

/// The first failure that nobody looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureReport {
    /// The failure; a root, not one that came from another.
    pub failure: Arc<Failure>,
    /// How many such failures there are.
    pub unseen: u64,
}

#[derive(Default)]
struct Unseen {
    kept: Vec<Arc<Failure>>,
    more: u64,
    latest: Option<Arc<Failure>>,
}

/// Root failures with `OnFailure::Fail` that nobody looked at, oldest first.
#[derive(Default)]
pub(crate) struct Failures(Mutex<Unseen>);

impl Failures {
    /// A task failed.
    pub(crate) fn add(&self, root: &Arc<Failure>) {
        let mut unseen = self.0.lock();
        if unseen.kept.len() < UNSEEN_MAX {
            unseen.kept.push(Arc::clone(root));
        } else {
            unseen.more += 1;
            unseen.latest = Some(Arc::clone(root));
        }
    }

    /// The program looked at this failure, or one that came from it.
    pub(crate) fn seen(&self, root: &Arc<Failure>) {
        let mut unseen = self.0.lock();
        unseen.kept.retain(|kept| !Arc::ptr_eq(kept, root));
        if unseen.latest.as_ref().is_some_and(|latest| Arc::ptr_eq(latest, root)) {
            unseen.latest = None;
            unseen.more -= 1;
        }
    }

    /// The first one.
    pub(crate) fn first(&self) -> Option<FailureReport> {
        let unseen = self.0.lock();
        let first = unseen.kept.first().or(unseen.latest.as_ref())?;
        let count = unseen.kept.len() as u64 + unseen.more;
        Some(FailureReport { failure: Arc::clone(first), unseen: count })
    }
}
