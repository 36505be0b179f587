//! A descriptor that becomes ready at a moment, for beds to watch.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::sys::check;

/// Rings once, at the moment that was set last.
#[derive(Debug)]
pub struct Alarm(OwnedFd);

impl Alarm {
    /// An alarm that is not set.
    pub fn new() -> io::Result<Alarm> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: gives a new descriptor or -1.
        unsafe {
            let fd = check(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?;
            Ok(Alarm(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Rings when [`crate::now_ns`] is `at_ns` (at once if it was), and not when it was to before.
    pub fn set(&self, at_ns: u64) {
        // All zeros would take the alarm back.
        let at_ns = at_ns.clamp(1, i64::MAX as u64);
        let at = libc::timespec {
            tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
        };
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let once = libc::itimerspec { it_interval: never, it_value: at };
        // SAFETY: the descriptor is a timer of ours, `once` is read during the call only.
        let set = unsafe {
            let before = std::ptr::null_mut();
            libc::timerfd_settime(self.0.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &once, before)
        };
        assert_eq!(set, 0, "a sound moment can be set");
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::thread::Bed;

    #[test]
    fn an_alarm_ends_the_sleep_of_who_watches_it_each_time_that_it_is_set() {
        let (alarm, bed) = (Alarm::new().unwrap(), Bed::new().unwrap());
        bed.watch(alarm.as_fd()).unwrap();
        for wait_ns in [0, 3_000_000, 1_000_000] {
            let at = crate::now_ns() + wait_ns;
            alarm.set(at);
            bed.sleep(-1);
            assert!(crate::now_ns() >= at);
        }
    }
}
