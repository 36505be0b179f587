//! Loom's locks, atomics and fences, used like those of `src/native/sync.rs`. Any one fence can be
//! left out, to see that a model fails without it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

pub(super) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

type Place = &'static Location<'static>;

// All threads of a model are run by the thread of the test.
thread_local! {
    static SEEN: RefCell<BTreeSet<Place>> = const { RefCell::new(BTreeSet::new()) };
    static LEFT_OUT: Cell<Option<Place>> = const { Cell::new(None) };
}

/// Where the code that ran has fences.
pub(super) fn fences_seen() -> BTreeSet<Place> {
    SEEN.with_borrow(Clone::clone)
}

/// From now on this fence does nothing.
pub(super) fn leave_out(fence: Option<Place>) {
    LEFT_OUT.set(fence);
}

#[track_caller]
pub(super) fn fence(ordering: Ordering) {
    let place = Location::caller();
    SEEN.with_borrow_mut(|seen| seen.insert(place));
    if LEFT_OUT.get() != Some(place) {
        loom::sync::atomic::fence(ordering);
    }
}

/// Loom's lock with the word beside it that `parking_lot` has. Loom alone does not try what others
/// do just before a lock is let go of, and in code with `try_lock` that makes a difference.
#[derive(Debug, Default)]
pub(super) struct Mutex<T> {
    is_locked: AtomicBool,
    inner: loom::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    pub(super) fn new(value: T) -> Self {
        Mutex { is_locked: AtomicBool::new(false), inner: loom::sync::Mutex::new(value) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        let inner = self.inner.lock().expect("a model ends with its first panic");
        self.is_locked.store(true, Ordering::Relaxed);
        MutexGuard { mutex: self, inner: Some(inner) }
    }

    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        if self.is_locked.load(Ordering::Relaxed) {
            return None;
        }
        let inner = self.inner.try_lock().ok()?;
        self.is_locked.store(true, Ordering::Relaxed);
        Some(MutexGuard { mutex: self, inner: Some(inner) })
    }
}

/// Empty only while it waits.
pub(super) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    inner: Option<loom::sync::MutexGuard<'a, T>>,
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.inner.is_some() {
            self.mutex.is_locked.store(false, Ordering::Release);
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect("it does not wait")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("it does not wait")
    }
}

#[derive(Debug)]
pub(super) struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub(super) fn new() -> Self {
        Condvar(loom::sync::Condvar::new())
    }

    pub(super) fn notify_all(&self) {
        self.0.notify_all();
    }

    pub(super) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.inner.take().expect("it does not wait");
        guard.mutex.is_locked.store(false, Ordering::Release);
        guard.inner = Some(self.0.wait(held).expect("a model ends with its first panic"));
        guard.mutex.is_locked.store(true, Ordering::Relaxed);
    }
}
