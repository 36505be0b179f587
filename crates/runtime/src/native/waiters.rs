//! Threads outside of tasks that wait until few enough tasks are left.
//!
//! - A waiter: lock, write down what it waits for (`most`), **fence**, look at `live`; wait (which
//!   lets go of the lock).
//! - The core: change `live`, **fence**, look at `most`; if `live` is below it: lock, unlock,
//!   notify.
//!
//! Both fences are sequentially consistent: either the core sees what is waited for, or the waiter
//! sees the new `live`. The lock between the two makes sure that a waiter that saw the old `live`
//! is in its wait when it is notified. The model (`tests/model.rs`) finds a wait that nobody ends
//! if either fence or the lock is missing. Nobody is woken before there is something to see: a
//! program that waits for the end would be woken by every task otherwise.

use super::sync::{fence, AtomicUsize, Condvar, Mutex, Ordering};

/// How many tasks are not over, and who waits for them.
#[derive(Debug)]
pub(super) struct Waiters {
    live: AtomicUsize,
    /// One more than the most tasks that somebody waits for; 0: nobody waits. Changed under the
    /// lock.
    most: AtomicUsize,
    /// What each of those who wait waits for.
    wanted: Mutex<Vec<usize>>,
    some_ended: Condvar,
}

impl Default for Waiters {
    fn default() -> Self {
        Waiters {
            live: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            wanted: Mutex::new(Vec::new()),
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

    /// Some tasks are over: after `set_live`, and after letting go of the core's lock.
    pub(super) fn some_are_over(&self) {
        fence(Ordering::SeqCst);
        if self.live() < self.most.load(Ordering::Acquire) {
            drop(self.wanted.lock());
            self.some_ended.notify_all();
        }
    }

    /// Waits until there are so many tasks or fewer.
    pub(super) fn wait_until_at_most(&self, live: usize) {
        let mut wanted = self.wanted.lock();
        wanted.push(live);
        self.note(&wanted);
        fence(Ordering::SeqCst);
        while self.live() > live {
            self.some_ended.wait(&mut wanted);
        }
        let own = wanted.iter().position(|other| *other == live).expect("put there above");
        wanted.swap_remove(own);
        self.note(&wanted);
    }

    fn note(&self, wanted: &[usize]) {
        let most = wanted.iter().max().map_or(0, |most| most + 1);
        self.most.store(most, Ordering::Release);
    }
}
