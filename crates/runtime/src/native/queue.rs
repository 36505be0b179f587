//! What others put for a worker, and how it sleeps without missing any of it.
//!
//! | who | does |
//! |---|---|
//! | giver | change a queue and its flag, **fence**, look at `asleep`; if it is set, ring the bell |
//! | sleeper | set `asleep`, **fence**, look at the flags of all its queues; sleep if all are empty |
//!
//! Both fences are sequentially consistent, so one of the two sees the other. The bell is an
//! eventfd: rung before the sleep, it ends it at once; rung too often, it does no harm. Of a queue
//! that all workers share the giver wakes one, and who takes something and leaves some wakes
//! another: both wake-ups of two givers may have gone to the same. The model
//! (`tests/model.rs`) finds a sleep that nobody ends if either fence is missing.

use std::collections::VecDeque;

use super::sync::{fence, AtomicBool, Mutex, Ordering};

/// Many put; one takes, or many. Looking whether there is something takes no lock.
#[derive(Debug)]
pub(super) struct Queue<T> {
    list: Mutex<VecDeque<T>>,
    /// Whether the list has something: changed under its lock.
    some: AtomicBool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { list: Mutex::new(VecDeque::new()), some: AtomicBool::new(false) }
    }
}

impl<T> Queue<T> {
    pub(super) fn has_some(&self) -> bool {
        self.some.load(Ordering::Acquire)
    }

    pub(super) fn push(&self, value: T) {
        let mut list = self.list.lock();
        list.push_back(value);
        self.some.store(true, Ordering::Release);
    }

    pub(super) fn pop(&self) -> Option<T> {
        if !self.has_some() {
            return None;
        }
        let mut list = self.list.lock();
        let value = list.pop_front();
        self.some.store(!list.is_empty(), Ordering::Release);
        value
    }

    /// Takes back what was put last of what equals this. `false`: it was taken.
    pub(super) fn take_back(&self, value: &T) -> bool
    where
        T: PartialEq,
    {
        let mut list = self.list.lock();
        let Some(at) = list.iter().rposition(|other| other == value) else { return false };
        list.remove(at);
        self.some.store(!list.is_empty(), Ordering::Release);
        true
    }
}

/// Whether a worker sleeps, or is about to.
#[derive(Debug)]
pub(super) struct Asleep(AtomicBool);

impl Default for Asleep {
    fn default() -> Self {
        Asleep(AtomicBool::new(false))
    }
}

impl Asleep {
    /// For the sleeper, before its last look at everything that it must not miss.
    pub(super) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// For the sleeper, awake again.
    pub(super) fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// For the giver, after it put something: `true`: the bell has to be rung.
    pub(super) fn must_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Acquire)
    }
}
