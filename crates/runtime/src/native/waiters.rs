//! Threads outside of tasks that wait until few enough tasks are left.
//!
//! | who | does |
//! |---|---|
//! | waiter | count itself, **fence**, lock, look at `live`; wait (which lets go of the lock) |
//! | core | change `live`, **fence**, look at the count; if it is not zero, lock, unlock, notify |
//!
//! Both fences are sequentially consistent: either the core sees the waiter, or the waiter sees
//! the new `live`. The lock between the two makes sure that a waiter that saw the old `live` is in
//! its wait when it is notified. The model (`tests/model.rs`) finds a wait that nobody ends if
//! either fence or the lock is missing.

use super::sync::{fence, AtomicUsize, Condvar, Mutex, Ordering};

/// How many tasks are not over, and who waits for them.
#[derive(Debug)]
pub(super) struct Waiters {
    live: AtomicUsize,
    waiting: AtomicUsize,
    ended: Mutex<()>,
    some_ended: Condvar,
}

impl Default for Waiters {
    fn default() -> Self {
        Waiters {
            live: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            ended: Mutex::new(()),
            some_ended: Condvar::new(),
        }
    }
}

impl Waiters {
    pub(super) fn live(&self) -> usize {
        self.live.load(Ordering::Acquire)
    }

    /// For whoever holds the core's lock.
    pub(super) fn set_live(&self, live: usize) {
        self.live.store(live, Ordering::Release);
    }

    /// Some tasks are over: after `set_live`, and after letting go of the core's lock. Those who
    /// wait look again if `live` is at most `most`, the largest number that anybody waits for.
    pub(super) fn some_are_over(&self, most: usize) {
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Acquire) > 0 && self.live() <= most {
            drop(self.ended.lock());
            self.some_ended.notify_all();
        }
    }

    /// Waits until there are so many tasks or fewer.
    pub(super) fn wait_until_at_most(&self, live: usize) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let mut ended = self.ended.lock();
        while self.live() > live {
            self.some_ended.wait(&mut ended);
        }
        drop(ended);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
