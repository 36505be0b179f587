//! Where the driver sleeps: one epoll over one doorbell and the ends of all workers.
//!
//! All workers, and the program's own threads ([`Poller::wake`]), ring the same doorbell, an
//! eventfd that is watched edge-triggered and never read. One sleep flag in the control area
//! serves all rings to the driver; the protocol is that of [`crate::ring`]:
//!
//! 1. [`Poller::prepare_sleep`] raises the flag, fences, and looks at every ring once more;
//! 2. if all are empty, [`Poller::wait`] sleeps until a ring of the bell, an end, or the time;
//! 3. it lowers the flag on return ([`Poller::cancel_sleep`] does so without sleeping).
//!
//! A worker that pushed takes the flag and rings. A thread of the program that changed something
//! the sleeper must know calls `wake`, which rings always: a bell rung before the wait ends it
//! at once. One thread sleeps at a time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{fence, AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::memory::{Control, AREAS_MAX};
use crate::ring::Flag;
use crate::sys::{self, Epoll, Linger, ON_END, ON_RING};

const BELL_TAG: u64 = u64::MAX;
const EVENTS_MAX: usize = 64;

/// The driver's place to sleep, shared by its threads.
#[derive(Debug)]
pub struct Poller {
    control: Arc<Control>,
    epoll: Epoll,
    bell: OwnedFd,
    /// Areas whose rings are looked at.
    open: Box<[AtomicBool]>,
    /// One past the highest area that was ever open.
    areas_end: AtomicUsize,
    sleeper: Mutex<()>,
}

impl Poller {
    pub(crate) fn new(control: Arc<Control>) -> io::Result<Self> {
        let (epoll, bell) = (Epoll::new()?, sys::bell()?);
        epoll.add(bell.as_fd(), ON_RING, BELL_TAG)?;
        let open = (0..AREAS_MAX).map(|_| AtomicBool::new(false)).collect();
        let areas_end = AtomicUsize::new(0);
        Ok(Self { control, epoll, bell, open, areas_end, sleeper: Mutex::new(()) })
    }

    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// From now on the rings of this area are looked at, and `end` tells of its process.
    pub(crate) fn open(&self, area: usize, end: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        assert_ne!(token, BELL_TAG);
        self.epoll.add(end, ON_END, token)?;
        self.open[area].store(true, Ordering::SeqCst);
        self.areas_end.fetch_max(area + 1, Ordering::SeqCst);
        Ok(())
    }

    /// The rings of this area are no longer looked at.
    pub(crate) fn close(&self, area: usize) {
        self.open[area].store(false, Ordering::SeqCst);
    }

    /// The descriptor no longer tells of its process.
    pub(crate) fn forget(&self, end: BorrowedFd<'_>) {
        self.epoll.remove(end);
    }

    /// Ends the sleep of the driver, or the next one before it begins.
    pub fn wake(&self) {
        sys::ring_bell(self.bell.as_fd());
    }

    /// Says that the driver is about to sleep. `false`: some ring holds something (and the
    /// flag is lowered again); drain all processes and try again.
    #[must_use]
    pub fn prepare_sleep(&self) -> bool {
        self.control.driver_asleep().raise();
        fence(Ordering::SeqCst);
        let empty = self.is_empty();
        if !empty {
            self.cancel_sleep();
        }
        empty
    }

    fn is_empty(&self) -> bool {
        let areas = 0..self.areas_end.load(Ordering::Acquire);
        let mut open = areas.filter(|area| self.open[*area].load(Ordering::Acquire));
        open.all(|area| self.control.is_received(area))
    }

    /// Stays awake for a little while if the last waits were short ([`Linger`]), for a driver
    /// that expects a report. `true`: some ring holds something, or `woken` says so.
    #[must_use]
    pub fn linger(&self, linger: &mut Linger, mut woken: impl FnMut() -> bool) -> bool {
        linger.linger(|| !self.is_empty() || woken())
    }

    /// Says that the driver does not sleep after all.
    pub fn cancel_sleep(&self) {
        self.control.driver_asleep().lower();
    }

    /// Sleeps until something comes, at most `timeout` (rounded up to milliseconds). Appends
    /// the tokens of processes that have ended, each once. After `prepare_sleep` gave `true`.
    pub fn wait(&self, timeout: Option<Duration>, ended: &mut Vec<u64>) -> io::Result<()> {
        let _sleeper = self.sleeper.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let timeout_ms = timeout.map_or(-1, |timeout| {
            i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
        });
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        let ready = self.epoll.wait(&mut events, timeout_ms);
        self.cancel_sleep();
        ended.extend(ready?.filter(|tag| *tag != BELL_TAG));
        Ok(())
    }
}
