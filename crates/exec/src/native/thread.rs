//! What a worker thread asks of the system: its processor, no signals, a place to sleep.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys::{self, Epoll, ON_RING};

/// Signals that a thread gets by its own doing; the others are for the program's threads.
const OWN_SIGNALS: [libc::c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGSYS,
];

/// The processors that the calling thread may use, lowest first.
pub fn processors() -> Vec<usize> {
    // SAFETY: a set of bits; all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a valid place of the size that is told.
    let got = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    if got != 0 {
        let count = std::thread::available_parallelism().map_or(1, |count| count.get());
        return (0..count).collect();
    }
    // SAFETY: the numbers are below the size of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// Keeps the calling thread on one processor. `false`: the system would not.
pub fn pin(processor: usize) -> bool {
    // SAFETY: as in `processors`; the number came from there.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

/// Does something that starts a thread, which inherits that it takes no signals but those that it
/// causes itself: handlers run on the program's own threads.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: sets of bits; all zeros is the empty set.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: plain calls on sets of our own.
    unsafe {
        libc::sigfillset(&mut all);
        for signal in OWN_SIGNALS {
            libc::sigdelset(&mut all, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
    }
    let started = start();
    // SAFETY: `before` was filled in above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    started
}

/// Where a worker sleeps: woken by its bell, or by any of the descriptors that it watches.
#[derive(Debug)]
pub struct Bed {
    epoll: Epoll,
    bell: OwnedFd,
}

const EVENTS_MAX: usize = 16;

impl Bed {
    /// A bed with only a bell.
    pub fn new() -> io::Result<Bed> {
        let (epoll, bell) = (Epoll::new()?, sys::bell()?);
        epoll.add(bell.as_fd(), ON_RING, 0)?;
        Ok(Bed { epoll, bell })
    }

    /// Watches a descriptor, edge-triggered; of several beds that watch it, one sleeper is woken.
    pub fn watch(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let one = libc::EPOLLEXCLUSIVE as u32;
        self.epoll.add(fd, ON_RING | one, 1)
    }

    /// Wakes the sleeper, or whoever sleeps here next.
    pub fn wake(&self) {
        sys::ring_bell(self.bell.as_fd());
    }

    /// Sleeps until something comes; `timeout_ms` -1 is without end.
    pub fn sleep(&self, timeout_ms: i32) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        let woken = self.epoll.wait(&mut events, timeout_ms);
        // Nothing but a fault of ours can make waiting fail; looking again does no harm.
        debug_assert!(woken.is_ok());
        drop(woken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_rung_before_ends_the_next_sleep() {
        let bed = Bed::new().unwrap();
        bed.wake();
        bed.sleep(-1);
    }

    #[test]
    fn a_thread_is_kept_on_the_processor_that_it_was_pinned_to() {
        let all = processors();
        assert!(!all.is_empty());
        let last = *all.last().unwrap();
        let kept = std::thread::spawn(move || pin(last).then(processors)).join().unwrap();
        assert_eq!(kept, Some(vec![last]));
    }
}
