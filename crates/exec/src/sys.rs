//! The few system calls that the standard library does not wrap.

use std::cell::Cell;
use std::io;
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

/// Whether a side lingers before it sleeps: only while its waits are short. What one wait was
/// like is the best that is known of the next one; between long tasks nobody burns a processor.
#[derive(Debug)]
pub struct Linger {
    waits_are_short: bool,
}

impl Default for Linger {
    fn default() -> Self {
        Self { waits_are_short: true }
    }
}

impl Linger {
    /// Whether it would linger now.
    pub fn is_worth_it(&self) -> bool {
        self.waits_are_short
    }

    /// Looks for `something` for a little while before the caller sleeps, and lets every other
    /// thread that wants the processor have it. Whether it came.
    pub fn linger(&mut self, mut something: impl FnMut() -> bool) -> bool {
        if !self.waits_are_short {
            return false;
        }
        let until = now_ns() + LINGER_NS;
        loop {
            if something() {
                return true;
            }
            if now_ns() >= until {
                return false;
            }
            std::thread::yield_now();
        }
    }

    /// Sleeps, and learns from how long that was.
    pub fn sleep<T>(&mut self, sleep: impl FnOnce() -> T) -> T {
        let began = now_ns();
        let result = sleep();
        self.waits_are_short = now_ns() - began <= SHORT_WAIT_NS;
        result
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
