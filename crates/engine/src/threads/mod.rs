//! The engine for where io_uring is not to be had: a thread an operation, from a bounded pool.
//!
//! Operations begin in the order of submission and end in any. Threads are started when they are
//! needed, so an engine that is not used costs an eventfd.

mod pool;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use ops::{Completion, Op};
use slab::Slab;

pub(crate) use pool::{Finished, Job, Pool};

use crate::order::Place;
use crate::{About, Engine, Full, Tell};

/// An engine of threads.
pub(crate) struct Threads {
    pool: Pool,
    capacity: usize,
    reason: String,
    sequence: u64,
    slots: Slab<Slot>,
    /// Closes that wait for others on their descriptor, in order of submission.
    closes: Vec<usize>,
}

struct Slot {
    token: u64,
    place: Place,
    /// The operation, while it waits.
    waiting: Option<Op>,
}

impl Threads {
    pub fn new(
        capacity: usize,
        threads_max: usize,
        reason: String,
        tell: Option<Tell>,
    ) -> io::Result<Self> {
        let pool = Pool::new(threads_max, libc::EFD_NONBLOCK, tell)?;
        let slots = Slab::with_capacity(capacity);
        Ok(Self { pool, capacity, reason, sequence: 0, slots, closes: Vec::new() })
    }

    fn must_wait(&self, key: usize) -> bool {
        self.slots[key].place.is_behind(self.slots.iter().map(|(_, slot)| slot.place))
    }

    /// Starts the closes that no longer wait for anybody.
    fn start_closes(&mut self) {
        let closes = std::mem::take(&mut self.closes);
        for key in closes {
            if self.must_wait(key) {
                self.closes.push(key);
            } else {
                let op = self.slots[key].waiting.take().expect("a close that waits is in its slot");
                self.pool.submit(Job { key, op, done: 0 });
            }
        }
    }

    fn take(&mut self, out: &mut Vec<Completion>) -> usize {
        self.pool.quiet();
        let finished = self.pool.take();
        let count = finished.len();
        for Finished { key, op, result } in finished {
            let slot = self.slots.remove(key);
            assert!(slot.waiting.is_none(), "{} was done while it waited", op.name());
            out.push(Completion { token: slot.token, op, result });
        }
        if count > 0 && !self.closes.is_empty() {
            self.start_closes();
        }
        count
    }
}

impl Engine for Threads {
    fn submit(&mut self, token: u64, op: Op) -> Result<(), Full> {
        if self.slots.len() >= self.capacity {
            return Err(Full(op));
        }
        self.sequence += 1;
        let place = Place::of(&op, self.sequence);
        let is_close = matches!(op, Op::Close { .. });
        let key = self.slots.insert(Slot { token, place, waiting: None });
        if is_close && self.must_wait(key) {
            self.slots[key].waiting = Some(op);
            self.closes.push(key);
        } else {
            self.pool.submit(Job { key, op, done: 0 });
        }
        Ok(())
    }

    fn flush(&mut self) {}

    fn poll(&mut self, out: &mut Vec<Completion>) -> usize {
        self.take(out)
    }

    fn wait(&mut self, out: &mut Vec<Completion>, timeout: Option<Duration>) -> usize {
        if self.slots.is_empty() {
            return 0;
        }
        // A time too far away to be a time is no limit.
        self.pool.wait(timeout.and_then(|timeout| Instant::now().checked_add(timeout)));
        self.take(out)
    }

    fn in_flight(&self) -> usize {
        self.slots.len()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.pool.watch()
    }

    fn about(&self) -> About {
        About { name: "threads", reason: self.reason.clone() }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let mut out = Vec::new();
        while !self.slots.is_empty() {
            self.wait(&mut out, None);
            out.clear();
        }
    }
}
