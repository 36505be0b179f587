//! Knowing, without a system call, that this process is a forked child, and what of its parent it
//! does not keep.
//!
//! A child of `fork` has the parent's memory but not its threads: its sessions are inert, locks
//! may be held by nobody. Every session remembers how often the process was forked when it was
//! made; a difference says that this is a child.
//!
//! It has the parent's descriptors too, and with them the locks of files that say that the parent
//! lives. Those are in `LOST`, a descriptor and one in each place that is taken: whoever takes a
//! place, or gives it back, does so with one atomic operation; the child, which has one thread,
//! empties all. Nothing is read over them, so that no ordering is needed.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::Once;

/// So many sessions of one process at a time lose their locks in a child; more would keep them.
const LOST_MAX: usize = 256;

static FORKS: AtomicU64 = AtomicU64::new(0);
static HOOK: Once = Once::new();
static LOST: [AtomicI32; LOST_MAX] = [const { AtomicI32::new(0) }; LOST_MAX];

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    for place in &LOST {
        let taken = place.swap(0, Ordering::Relaxed);
        if taken != 0 {
            lose(taken - 1);
        }
    }
}

/// Leads a descriptor elsewhere: it stays open, as it is closed with what owns it.
fn lose(descriptor: RawFd) {
    // SAFETY: system calls that may be made in a forked child, on a string that ends in a zero and
    // on a descriptor that its owner keeps open while it has a place.
    unsafe {
        let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if nowhere >= 0 {
            libc::dup3(nowhere, descriptor, libc::O_CLOEXEC);
            libc::close(nowhere);
        }
    }
}

/// How many forks lie between the first process and this one.
pub(crate) fn count() -> u64 {
    HOOK.call_once(|| {
        // SAFETY: the handler changes atomics and makes system calls, which may be done in a forked
        // child.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    FORKS.load(Ordering::Relaxed)
}

fn change(from: i32, to: i32) {
    let (set, got) = (Ordering::Relaxed, Ordering::Relaxed);
    let _ = LOST.iter().find(|place| place.compare_exchange(from, to, set, got).is_ok());
}

/// A forked child does not keep what is open there.
pub(crate) fn lose_in_child(descriptor: RawFd) {
    count(); // the handler is there
    change(0, descriptor + 1);
}

/// The descriptor is about to be closed: a child would have another file there.
pub(crate) fn keep_in_child(descriptor: RawFd) {
    change(descriptor + 1, 0);
}
