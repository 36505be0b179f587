//! The few system calls that the standard library does not wrap.

use std::cell::Cell;
use std::io;
use std::mem::take;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Once;

/// Turns a `-1` into the error in `errno`.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer for the whole call.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    assert_eq!(result, 0, "the clock {clock} is missing");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of `CLOCK_MONOTONIC`: the same clock in every process of a machine.
pub fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// How long a side that has nothing to do stays awake for more, in nanoseconds: about what a
/// wake-up costs, so that it never costs more than twice what the best choice would have.
pub const LINGER_NS: u64 = 100_000;

/// A wait that was at most so long, in nanoseconds, would have been short without the two
/// wake-ups in it: the next one is worth lingering for.
pub const SHORT_WAIT_NS: u64 = 4 * LINGER_NS;

/// After a yield that should have been a sleep so many waits in a row have to be short.
const SHORT_WAITS_AFTER_LONG_YIELD: u32 = 16;

/// Whether a side lingers before it sleeps: only while its waits are short. What one wait was
/// like is the best that is known of the next one; between long tasks nobody burns a processor.
#[derive(Debug)]
pub struct Linger {
    /// So many of the last waits in a row were short.
    short_waits: u32,
    /// So many have to be, for it to linger.
    wanted: u32,
    /// How long others kept the processor that it last lent them while it lingered.
    lent_ns: u64,
}

impl Default for Linger {
    fn default() -> Self {
        Self { short_waits: 1, wanted: 1, lent_ns: 0 }
    }
}

impl Linger {
    /// Whether it would linger now.
    pub fn is_worth_it(&self) -> bool {
        self.short_waits >= self.wanted
    }

    /// Looks for `something` for a little while before the caller sleeps, and lets every other
    /// thread that wants the processor have it. Whether it came.
    pub fn linger(&mut self, mut something: impl FnMut() -> bool) -> bool {
        if !self.is_worth_it() {
            return false;
        }
        let mut now = now_ns();
        let until = now + LINGER_NS;
        loop {
            if something() {
                return true;
            }
            if now >= until {
                self.lent_ns = 0; // whatever comes now has not waited for the processor
                return false;
            }
            std::thread::yield_now();
            let back = now_ns();
            (self.lent_ns, now) = (back - now, back);
        }
    }

    /// Learns from how much there was to do after it lingered (nothing, if it did not).
    ///
    /// Who yields gets the processor back when a computation has had its turn, some milliseconds;
    /// who sleeps gets it when something comes. If all that came meanwhile would have cost less in
    /// wake-ups, sleeping is better until many waits in a row were short.
    pub fn served(&mut self, things: usize) {
        let lent_ns = take(&mut self.lent_ns);
        let woken_ns = (things as u64).saturating_mul(LINGER_NS);
        if things > 0 && lent_ns > SHORT_WAIT_NS && lent_ns > woken_ns {
            (self.short_waits, self.wanted) = (0, SHORT_WAITS_AFTER_LONG_YIELD);
        }
    }

    /// Sleeps, and learns from how long that was.
    pub fn sleep<T>(&mut self, sleep: impl FnOnce() -> T) -> T {
        let began = now_ns();
        let result = sleep();
        self.slept(now_ns() - began);
        result
    }

    fn slept(&mut self, ns: u64) {
        self.short_waits = if ns <= SHORT_WAIT_NS { self.short_waits.saturating_add(1) } else { 0 };
        if self.is_worth_it() {
            self.wanted = 1;
        }
    }
}

/// Processor time that the calling thread has used, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// A close-on-exec memory file, sealed against shrinking and growing, of `bytes` zeros.
pub(crate) fn memfd(name: &std::ffi::CStr, bytes: u64) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: `name` is a C string; the call gives a new file descriptor or -1.
    let fd = unsafe {
        let fd = check(libc::memfd_create(name.as_ptr(), flags))?;
        OwnedFd::from_raw_fd(fd)
    };
    let length = libc::off_t::try_from(bytes).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, "more bytes than a file can have")
    })?;
    // SAFETY: plain calls on a descriptor that we own.
    unsafe {
        check(libc::ftruncate(fd.as_raw_fd(), length))?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        check(libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals))?;
    }
    Ok(fd)
}

/// A doorbell: each ring makes an edge-triggered epoll ready once; it is never read.
pub(crate) fn bell() -> io::Result<OwnedFd> {
    // SAFETY: gives a new descriptor or -1.
    unsafe {
        let fd = check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

thread_local! {
    static RUNG_BYTES: Cell<u64> = const { Cell::new(0) };
}

/// Bytes that the calling thread has written to doorbells: the system counts them as its I/O.
pub fn rung_bytes() -> u64 {
    RUNG_BYTES.get()
}

/// Rings a doorbell. Cannot fail in a way that matters: the counter is 64 bits wide.
pub(crate) fn ring_bell(bell: BorrowedFd<'_>) {
    let one = 1u64;
    // SAFETY: writes eight bytes from a live variable to a live descriptor.
    let written =
        unsafe { libc::write(bell.as_raw_fd(), (&raw const one).cast(), size_of_val(&one)) };
    RUNG_BYTES.set(RUNG_BYTES.get() + u64::try_from(written).unwrap_or(0));
}

/// Tells people a line. By one write, so that lines of several processes stay whole, and without
/// the standard library's lock, which a thread that a fork left behind may hold.
pub fn tell(line: &str) {
    let line = format!("{line}\n");
    // SAFETY: plain write of valid memory; nothing can be done about an error here.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

/// Sets or clears close-on-exec. Safe to call between `fork` and `exec`.
pub(crate) fn set_cloexec(fd: libc::c_int, on: bool) -> io::Result<()> {
    // SAFETY: plain fcntl; a bad descriptor gives an error.
    unsafe { check(libc::fcntl(fd, libc::F_SETFD, if on { libc::FD_CLOEXEC } else { 0 }))? };
    Ok(())
}

/// Opens `/dev/null` in place of the standard streams that are closed, as a program of a daemon may
/// have them: a descriptor of ours there would be written to by whoever prints, and lost by a child
/// that is given streams of its own.
pub(crate) fn fill_standard_streams() -> io::Result<()> {
    for stream in libc::STDIN_FILENO..=libc::STDERR_FILENO {
        // SAFETY: plain calls; the path is a C string, and a new descriptor is the lowest free one.
        unsafe {
            if libc::fcntl(stream, libc::F_GETFD) < 0 {
                check(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR))?;
            }
        }
    }
    Ok(())
}

/// A descriptor that becomes readable when the process ends; `None` where the kernel has none.
pub(crate) fn pidfd(pid: u32) -> Option<OwnedFd> {
    // SAFETY: gives a new close-on-exec descriptor or -1.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as libc::c_int))
    }
}

/// An epoll instance.
#[derive(Debug)]
pub(crate) struct Epoll(OwnedFd);

/// Ready at each ring of a bell.
pub(crate) const ON_RING: u32 = (libc::EPOLLIN | libc::EPOLLET) as u32;
/// Ready once when there is something to read or the other end is gone.
pub(crate) const ON_END: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: gives a new descriptor or -1.
        unsafe {
            let fd = check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    pub(crate) fn add(&self, fd: BorrowedFd<'_>, events: u32, tag: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: tag };
        // SAFETY: both descriptors are live, `event` is read during the call only.
        unsafe {
            let epoll = self.0.as_raw_fd();
            check(libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event))?;
        }
        Ok(())
    }

    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) {
        // SAFETY: both descriptors are live; a null event is allowed for DEL.
        unsafe {
            let nothing = std::ptr::null_mut();
            libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_DEL, fd.as_raw_fd(), nothing);
        }
    }

    /// Waits and gives the tags that are ready. `timeout_ms` -1 is without end. EINTR gives
    /// nothing.
    pub(crate) fn wait<'a>(
        &self,
        events: &'a mut [libc::epoll_event],
        timeout_ms: i32,
    ) -> io::Result<impl Iterator<Item = u64> + 'a> {
        let room = i32::try_from(events.len()).unwrap_or(i32::MAX);
        // SAFETY: `events` has room for `room` entries.
        let result =
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), room, timeout_ms) };
        let ready = match check(result) {
            Ok(count) => count as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        Ok(events[..ready].iter().map(|event| event.u64))
    }
}

static FORKS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// How many forks lie between the program's start and this process. Whoever shares memory with
/// other processes remembers it, and touches nothing when it has changed: a forked child has
/// the mappings of its parent but must not speak in its name.
pub fn forks() -> u64 {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // SAFETY: the handler only counts, which is allowed after a fork.
        unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
    });
    FORKS.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::{now_ns, Linger, LINGER_NS, SHORT_WAITS_AFTER_LONG_YIELD, SHORT_WAIT_NS};

    const TURN_NS: u64 = 4_000_000;

    fn lent(ns: u64, things: usize) -> Linger {
        let mut linger = Linger { lent_ns: ns, ..Linger::default() };
        linger.served(things);
        linger
    }

    #[test]
    fn it_lingers_again_after_one_short_wait() {
        let mut linger = Linger::default();
        assert!(linger.is_worth_it());
        linger.slept(SHORT_WAIT_NS + 1);
        assert!(!linger.is_worth_it());
        assert!(!linger.linger(|| panic!("it does not look")));
        linger.slept(SHORT_WAIT_NS);
        assert!(linger.is_worth_it());
        assert!(linger.linger(|| true));
    }

    #[test]
    fn after_a_yield_that_should_have_been_a_sleep_it_lingers_after_many_short_waits_in_a_row() {
        let mut linger = lent(TURN_NS, 1);
        for _ in 1..SHORT_WAITS_AFTER_LONG_YIELD {
            linger.slept(0);
        }
        assert!(!linger.is_worth_it());
        linger.slept(TURN_NS);
        for _ in 0..SHORT_WAITS_AFTER_LONG_YIELD {
            assert!(!linger.is_worth_it());
            linger.slept(0);
        }
        assert!(linger.is_worth_it());
    }

    #[test]
    fn a_yield_was_right_if_it_was_short_or_gathered_more_than_wake_ups_would_have_cost() {
        let many = (TURN_NS / LINGER_NS) as usize;
        assert!(lent(TURN_NS, many).is_worth_it());
        assert!(!lent(TURN_NS, many - 1).is_worth_it());
        assert!(lent(TURN_NS, 0).is_worth_it(), "nothing waited");
        assert!(lent(SHORT_WAIT_NS, 1).is_worth_it());
    }

    #[test]
    fn what_it_learns_of_a_yield_it_learns_once() {
        let mut linger = Linger { lent_ns: TURN_NS, ..Linger::default() };
        linger.served(0);
        linger.served(1);
        assert!(linger.is_worth_it());
    }

    #[test]
    fn what_wakes_it_did_not_wait_for_a_yield_after_which_there_was_nothing() {
        let mut linger = Linger::default();
        let long_after = now_ns() + 2 * SHORT_WAIT_NS;
        let looks_long = || {
            while now_ns() < long_after {}
            false
        };
        assert!(!linger.linger(looks_long));
        linger.served(1);
        assert!(linger.is_worth_it());
    }
}
