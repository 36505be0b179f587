//! Reports to the core: taken by whoever holds its lock, so that nobody waits with one in hand.
//!
//! A report is put into the list; then its writer tries to take the lock. If it gets it, it hands
//! all reports over itself. If not, the holder looks at the list again after it let go: the list
//! was changed before the attempt that failed, so it sees the report.
//!
//! | who | does |
//! |---|---|
//! | writer | change the list, raise `some` (`put`); **fence**, try to lock the core (`settle`) |
//! | holder | let go of the core; **fence**, look at `some` (`settle`) |
//!
//! Both fences are the one in `settle`, sequentially consistent. If the attempt failed, the holder
//! had not let go when the writer's fence was passed, so the holder's fence came later and it sees
//! `some`. The model (`tests/model.rs`) finds a report that nobody hands over without the fence.

use super::sync::{fence, AtomicBool, Mutex, Ordering};

/// The list.
#[derive(Debug)]
pub(super) struct Inbox<T> {
    list: Mutex<Vec<T>>,
    some: AtomicBool,
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Inbox { list: Mutex::new(Vec::new()), some: AtomicBool::new(false) }
    }
}

impl<T> Inbox<T> {
    pub(super) fn put(&self, report: T) {
        self.list.lock().push(report);
        self.some.store(true, Ordering::Release);
    }

    /// Hands over what is in the list, also what came while somebody held the core's lock. Called
    /// after `put`, and after letting go of the lock. `try_settle` does it if it gets the lock; if
    /// not (`false`), the holder comes here.
    pub(super) fn settle(&self, mut try_settle: impl FnMut() -> bool) {
        while self.has_some() {
            if !try_settle() {
                return;
            }
        }
    }

    fn has_some(&self) -> bool {
        fence(Ordering::SeqCst);
        self.some.load(Ordering::Acquire)
    }

    /// Takes everything into an empty list.
    pub(super) fn take(&self, into: &mut Vec<T>) {
        debug_assert!(into.is_empty());
        if !self.some.load(Ordering::Acquire) {
            return;
        }
        let mut list = self.list.lock();
        self.some.store(false, Ordering::Relaxed);
        std::mem::swap(&mut *list, into);
    }
}
