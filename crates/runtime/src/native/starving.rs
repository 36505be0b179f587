//! Workers that have a task to begin and no stack for it.
//!
//! | who | does |
//! |---|---|
//! | the starving | try the stacks, set the flag, try again; sleep if there is still none |
//! | who gives one back | give it back, look at the flag, lower it, wake all |
//!
//! The stacks are behind a lock. Either the second attempt comes after the stack is back and gets
//! it, or the lock orders the flag before the look at it. Without the second attempt a stack that
//! came back in between would be told to nobody (`tests/model.rs`).

use super::sync::{AtomicBool, Ordering};

/// Whether a worker waits for a stack.
#[derive(Debug)]
pub(super) struct Starving(AtomicBool);

impl Default for Starving {
    fn default() -> Self {
        Starving(AtomicBool::new(false))
    }
}

impl Starving {
    pub(super) fn is_some(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// What `take` gives. If that is nothing, the caller is told when something came back; the
    /// first of them has `tell_others` called, who may have something to give back.
    pub(super) fn take<T>(
        &self,
        mut take: impl FnMut() -> Option<T>,
        tell_others: impl FnOnce(),
    ) -> Option<T> {
        if let Some(taken) = take() {
            return Some(taken);
        }
        let was_told = self.0.swap(true, Ordering::AcqRel);
        let taken = take();
        if taken.is_none() && !was_told {
            tell_others();
        }
        taken
    }

    /// Something was given back. `true`: those who wait have to be woken.
    pub(super) fn came_back(&self) -> bool {
        self.is_some() && self.0.swap(false, Ordering::AcqRel)
    }
}
