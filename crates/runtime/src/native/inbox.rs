//! Reports to the core: taken by whoever holds its lock, so that nobody waits with one in hand.
//!
//! A report is put into the list; then its writer tries to take the lock. If it gets it, it hands
//! all reports over itself. If not, the holder looks at the list again after it let go: the list
//! was changed before the attempt that failed, so it sees the report (both sides fence,
//! `has_some`).

use std::sync::atomic::{fence, AtomicBool, Ordering};

use parking_lot::Mutex;

use super::task::TaskRef;

/// What is told of a task.
#[derive(Clone, Copy, Debug)]
pub(super) enum Report {
    /// Nothing of it is left to come.
    Ended(TaskRef),
    /// Its body gave its processor back.
    Paused(TaskRef),
}

/// The list.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    list: Mutex<Vec<Report>>,
    some: AtomicBool,
}

impl Inbox {
    pub(super) fn put(&self, report: Report) {
        self.list.lock().push(report);
        self.some.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Whether there is something to take. After letting go of the core's lock.
    pub(super) fn has_some(&self) -> bool {
        fence(Ordering::SeqCst);
        self.some.load(Ordering::Acquire)
    }

    /// Takes everything into an empty list.
    pub(super) fn take(&self, into: &mut Vec<Report>) {
        debug_assert!(into.is_empty());
        if !self.some.load(Ordering::Acquire) {
            return;
        }
        let mut list = self.list.lock();
        self.some.store(false, Ordering::Relaxed);
        std::mem::swap(&mut *list, into);
    }
}
