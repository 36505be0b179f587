//! What goes on at a moment: fibers and completions that an emulated bandwidth holds back, and
//! looks of the scheduler at the clock.
//!
//! Whoever has something for later puts it here, and sets the alarm if that is the first. Workers
//! look between tasks and before they sleep; those that sleep watch the alarm, which wakes one of
//! them. An alarm that rings while nobody sleeps ends the next sleep at once, so nothing is missed.
//! `next_ns` is changed under the lock; a look that comes too early finds nothing due and another
//! one follows.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use exec::native::alarm::Alarm;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::io::Promise;
use super::task::Place;

/// No moment.
const NEVER: u64 = u64::MAX;

/// What is due.
#[derive(Debug)]
pub(super) enum Due {
    /// This fiber goes on.
    Fiber(Place),
    /// This came, with its result.
    Promised(Box<Promise>, i64),
    /// The scheduler looks at the clock.
    Tick,
}

#[derive(Debug, Default)]
struct List {
    /// By moment, then by order of arrival.
    waiting: BTreeMap<(u64, u64), Due>,
    arrived: u64,
}

/// All that waits for a moment. Each counts in a task that is not over, but the one tick.
#[derive(Debug)]
pub(super) struct Timers {
    list: Mutex<List>,
    next_ns: AtomicU64,
    alarm: Alarm,
}

impl Timers {
    pub(super) fn new() -> io::Result<Timers> {
        let (list, next_ns) = (Mutex::default(), AtomicU64::new(NEVER));
        Ok(Timers { list, next_ns, alarm: Alarm::new()? })
    }

    /// Rings when something is due.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }

    /// Whether something waits.
    pub(super) fn are_there(&self) -> bool {
        self.next_ns.load(Ordering::Relaxed) != NEVER
    }

    /// Something is due at a moment of the clock.
    pub(super) fn add(&self, at_ns: u64, due: Due) {
        let mut list = self.list.lock();
        list.arrived += 1;
        let arrived = list.arrived;
        list.waiting.insert((at_ns.min(NEVER - 1), arrived), due);
        self.set(&list);
    }

    /// Gives what is due now; how many.
    pub(super) fn fire(&self, mut fire: impl FnMut(Due)) -> usize {
        if !self.are_there() {
            return 0;
        }
        let now = exec::now_ns();
        if self.next_ns.load(Ordering::Relaxed) > now {
            return 0;
        }
        let mut due: SmallVec<[Due; 8]> = SmallVec::new();
        let mut list = self.list.lock();
        while let Some(first) = list.waiting.first_entry().filter(|first| first.key().0 <= now) {
            due.push(first.remove());
        }
        self.set(&list);
        drop(list);
        let count = due.len();
        due.into_iter().for_each(&mut fire);
        count
    }

    /// The first moment may have become another.
    fn set(&self, list: &List) {
        let first = list.waiting.keys().next().map_or(NEVER, |(at_ns, _)| *at_ns);
        if self.next_ns.swap(first, Ordering::Relaxed) != first && first != NEVER {
            self.alarm.set(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fire(timers: &Timers) -> Vec<u32> {
        let mut fibers = Vec::new();
        timers.fire(|due| match due {
            Due::Fiber(place) => fibers.push(place.fiber),
            other => panic!("{other:?}"),
        });
        fibers
    }

    #[test]
    fn what_is_due_comes_in_order_and_the_rest_stays() {
        let timers = Timers::new().unwrap();
        assert!(!timers.are_there() && fire(&timers).is_empty());
        let now = exec::now_ns();
        for (fiber, at) in [(1, now - 5), (2, now - 9), (3, now + 3_600_000_000_000), (4, now - 5)]
        {
            timers.add(at, Due::Fiber(Place { worker: 0, fiber }));
        }
        assert_eq!(fire(&timers), [2, 1, 4]);
        assert!(timers.are_there() && fire(&timers).is_empty());
    }
}
