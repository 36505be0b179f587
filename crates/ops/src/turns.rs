//! How threads that do operations share the processors with those that compute.

/// Turns of the processor that a thread asks for, in nanoseconds, that mostly waits: the smallest
/// that kernels allow.
const SHORT_TURN_NS: u64 = 100_000;

/// How the calling thread, and the threads and processes that it starts, share the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// As the system does it.
    Usual,
    /// As much of the processors as others, in short turns, but soon after it is woken: what
    /// keeps a device busy must not wait until a computation has had its turn.
    Short,
}

/// Asks for that, if the kernel can (Linux 6.12 or newer) and the thread has no real-time
/// policy. It takes no privilege. Where it cannot be had, nothing changes.
pub fn take_turns(turns: Turns) {
    let bytes = std::mem::size_of::<libc::sched_attr>() as libc::c_uint;
    // SAFETY: all of its fields are integers.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: `attributes` has room for `bytes`, and is live in both calls.
    unsafe {
        let got = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, bytes, 0);
        let policy = attributes.sched_policy as libc::c_int;
        if got < 0 || (policy != libc::SCHED_OTHER && policy != libc::SCHED_BATCH) {
            return;
        }
        attributes.size = bytes;
        attributes.sched_flags = 0;
        attributes.sched_runtime = if turns == Turns::Short { SHORT_TURN_NS } else { 0 };
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The turn of this thread in nanoseconds; 0 where the kernel does not tell.
    fn turn_ns() -> u64 {
        let bytes = std::mem::size_of::<libc::sched_attr>() as libc::c_uint;
        // SAFETY: as above.
        unsafe {
            let mut attributes: libc::sched_attr = std::mem::zeroed();
            libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, bytes, 0);
            attributes.sched_runtime
        }
    }

    #[test]
    fn turns_are_short_while_that_is_asked_for() {
        let usual = turn_ns();
        take_turns(Turns::Short);
        let short = turn_ns();
        take_turns(Turns::Usual);
        assert_eq!(turn_ns(), usual);
        assert_eq!(short, if usual == 0 { 0 } else { SHORT_TURN_NS });
    }
}
