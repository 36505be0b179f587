//! What a wrapper's descriptor is: an epoll on the inner engine's and on a timer.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Readable when the inner engine's descriptor is, or when the timer has run out.
pub(super) struct Ready {
    epoll: OwnedFd,
    timer: OwnedFd,
    is_set: bool,
}

impl Ready {
    pub fn new(inner: BorrowedFd<'_>) -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes no memory.
        let timer = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        // SAFETY: takes no memory.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        for fd in [inner, timer.as_fd()] {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
            let (epoll, fd) = (epoll.as_raw_fd(), fd.as_raw_fd());
            // SAFETY: one event, which lives through the call.
            if unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Self { epoll, timer, is_set: false })
    }

    /// Becomes readable after this time; `None`: not because of time.
    pub fn set(&mut self, after: Option<Duration>) {
        if after.is_none() && !self.is_set {
            return;
        }
        self.is_set = after.is_some();
        let value = match after {
            // A timer of zero would be off.
            Some(after) => time(after.max(Duration::from_nanos(1))),
            None => time(Duration::ZERO),
        };
        let wanted = libc::itimerspec { it_interval: time(Duration::ZERO), it_value: value };
        let (timer, old) = (self.timer.as_raw_fd(), std::ptr::null_mut());
        // SAFETY: the time lives through the call.
        let set = unsafe { libc::timerfd_settime(timer, 0, &wanted, old) };
        assert!(set == 0, "a timer cannot be set to {after:?}: {}", io::Error::last_os_error());
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

fn owned(fd: i32) -> io::Result<OwnedFd> {
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn time(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(duration.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// Sleeps this long in the kernel, or until a signal.
pub(super) fn sleep(duration: Duration) {
    let limit = time(duration);
    // SAFETY: no descriptors, and a time that lives through the call.
    unsafe { libc::ppoll(std::ptr::null_mut(), 0, &limit, std::ptr::null()) };
}
