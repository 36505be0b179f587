//! Knowing, without a system call, that this process is a forked child.
//!
//! A child of `fork` has the parent's memory but not its threads: its sessions are inert, locks
//! may be held by nobody. Every session remembers how often the process was forked when it was
//! made; a difference says that this is a child.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Once;

static FORKS: AtomicU64 = AtomicU64::new(0);
static HOOK: Once = Once::new();

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// How many forks lie between the first process and this one.
pub(crate) fn count() -> u64 {
    HOOK.call_once(|| {
        // SAFETY: the handler only changes an atomic, which may be done in a forked child.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    FORKS.load(Ordering::Relaxed)
}
