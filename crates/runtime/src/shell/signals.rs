//! Which signals a thread takes.
//!
//! Signals are meant for the program's own threads: the runtime thread blocks them all. Its
//! workers inherit the mask of the thread that forks them; they get the program's, not this.

/// A set of blocked signals.
#[derive(Clone, Copy)]
pub(super) struct Mask(libc::sigset_t);

impl Mask {
    /// All signals.
    pub(super) fn all() -> Mask {
        // SAFETY: an all-zero set is a valid place to fill.
        let mut set = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is a valid place.
        unsafe { libc::sigfillset(&mut set) };
        Mask(set)
    }

    /// Blocks these signals, and no others, in the calling thread; what it blocked before.
    pub(super) fn set(&self) -> Mask {
        // SAFETY: an all-zero set is a valid place for the answer.
        let mut before = unsafe { std::mem::zeroed() };
        // SAFETY: both sets are valid; only the calling thread's mask changes.
        let failed = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, &mut before) };
        assert_eq!(failed, 0, "the arguments are valid");
        Mask(before)
    }

    /// Does something with these signals blocked.
    pub(super) fn during<T>(&self, act: impl FnOnce() -> T) -> T {
        let before = self.set();
        let done = act();
        before.set();
        done
    }
}
