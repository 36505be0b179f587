//! A limit: so many bytes and operations a second, around any engine.
//!
//! Two buckets, one of bytes and one of operations, fill with time, up to a burst. An operation is
//! handed on when both have what it takes; one that takes more than the burst is handed on when its
//! bucket is full, which then owes the rest. Others wait, in order of submission: nothing small
//! overtakes something large. So what was flushed may still be waiting here; a file has to stay
//! open until its operations have completed.
//!
//! The rate of bytes may be a curve over the operations in flight: congestion, as storage has it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use ops::{Completion, Curve, Op};

use super::ready::{sleep, Ready};
use crate::{About, Engine, Full};

/// The least that a bucket holds, in seconds of its rate.
const BURST_S_MIN: f64 = 1e-6;

/// How much a second, and how much at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// This much a second.
    pub per_s: f64,
    /// This much at once after a pause.
    pub burst: f64,
}

impl Rate {
    /// A rate with the burst of 10 ms, and of 1 at least.
    pub fn per_second(per_s: f64) -> Self {
        Self { per_s, burst: (per_s * 0.01).max(1.0) }
    }
}

/// What is limited.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Bytes read, written and copied.
    pub bytes: Option<Rate>,
    /// Operations of every kind.
    pub operations: Option<Rate>,
    /// Bytes a second over the operations in flight, instead of the rate of `bytes`.
    pub curve: Option<Curve>,
}

/// What time it is, from a start that does not matter.
pub type Clock = Box<dyn FnMut() -> Duration + Send>;

/// An engine with a limit.
pub struct Throttle<E: Engine> {
    inner: E,
    bytes: Option<Bucket>,
    operations: Option<Bucket>,
    curve: Option<Curve>,
    clock: Clock,
    /// What waits for its turn.
    queue: VecDeque<(u64, Op)>,
    ready: Ready,
}

struct Bucket {
    rate: Rate,
    level: f64,
    filled_at: Duration,
}

impl Bucket {
    fn new(rate: Rate, now: Duration) -> Self {
        let burst = rate.burst.max(rate.per_s * BURST_S_MIN);
        Self { rate: Rate { burst, ..rate }, level: burst, filled_at: now }
    }

    fn fill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.filled_at);
        self.level = (self.level + passed.as_secs_f64() * self.rate.per_s).min(self.rate.burst);
        self.filled_at = self.filled_at.max(now);
    }

    /// How long until it has this much; zero when it has.
    fn time_to(&self, amount: f64) -> Duration {
        let lacking = amount.min(self.rate.burst) - self.level;
        if lacking <= 0.0 {
            return Duration::ZERO;
        }
        // Rounded up to a nanosecond: a sleep of zero would be followed by others.
        let ns = (lacking / self.rate.per_s * 1e9).ceil().max(1.0);
        Duration::from_nanos(ns as u64)
    }
}

impl<E: Engine> Throttle<E> {
    /// Limits an engine, by the monotonic clock.
    pub fn new(inner: E, limits: Limits) -> io::Result<Self> {
        let start = Instant::now();
        Self::with_clock(inner, limits, Box::new(move || start.elapsed()))
    }

    /// Limits an engine, by this clock. `wait` and `fd` take its time for real time when they say
    /// how long it is until something can go on.
    pub fn with_clock(inner: E, limits: Limits, mut clock: Clock) -> io::Result<Self> {
        let Limits { bytes, operations, curve } = limits;
        let best = curve.as_ref().map(|curve| Rate::per_second(curve.best().bandwidth as f64));
        let bytes = bytes.or(best);
        for rate in [bytes, operations].into_iter().flatten() {
            let is_rate = rate.per_s.is_finite() && rate.per_s > 0.0 && rate.burst.is_finite();
            if !is_rate {
                let message = format!("{rate:?}: a rate is a number above 0");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
        }
        let ready = Ready::new(inner.fd())?;
        let now = clock();
        let bucket = |rate: Option<Rate>| rate.map(|rate| Bucket::new(rate, now));
        let (bytes, operations) = (bucket(bytes), bucket(operations));
        Ok(Self { inner, bytes, operations, curve, clock, queue: VecDeque::new(), ready })
    }

    /// Hands on what has its turn; how long until the next has.
    fn hand_on(&mut self) -> Option<Duration> {
        if self.queue.is_empty() {
            return None;
        }
        let now = (self.clock)();
        if let (Some(curve), Some(bytes)) = (&self.curve, &mut self.bytes) {
            let writers = u32::try_from(self.queue.len() + self.inner.in_flight());
            bytes.fill(now);
            bytes.rate.per_s = curve.at(writers.unwrap_or(u32::MAX)) as f64;
        }
        for bucket in [&mut self.bytes, &mut self.operations].into_iter().flatten() {
            bucket.fill(now);
        }
        while let Some((_, op)) = self.queue.front() {
            let bytes = op.bytes() as f64;
            let time = |bucket: &Option<Bucket>, amount: f64| {
                bucket.as_ref().map_or(Duration::ZERO, |bucket| bucket.time_to(amount))
            };
            let left = time(&self.bytes, bytes).max(time(&self.operations, 1.0));
            if !left.is_zero() {
                self.ready.set(Some(left));
                return Some(left);
            }
            for (bucket, amount) in [(&mut self.bytes, bytes), (&mut self.operations, 1.0)] {
                if let Some(bucket) = bucket {
                    bucket.level -= amount;
                }
            }
            let (token, op) = self.queue.pop_front().expect("the front was looked at");
            let taken = self.inner.submit(token, op);
            assert!(taken.is_ok(), "the inner engine is full before the wrapper is");
        }
        self.ready.set(None);
        None
    }
}

impl<E: Engine> Engine for Throttle<E> {
    fn submit(&mut self, token: u64, op: Op) -> Result<(), Full> {
        if self.in_flight() >= self.capacity() {
            return Err(Full(op));
        }
        self.queue.push_back((token, op));
        Ok(())
    }

    fn flush(&mut self) {
        self.hand_on();
        self.inner.flush();
    }

    fn poll(&mut self, out: &mut Vec<Completion>) -> usize {
        self.hand_on();
        self.inner.poll(out)
    }

    fn wait(&mut self, out: &mut Vec<Completion>, timeout: Option<Duration>) -> usize {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let turn = self.hand_on();
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let nap = turn.into_iter().chain(left).min();
            if self.inner.in_flight() > 0 {
                let count = self.inner.wait(out, nap);
                if count > 0 {
                    return count;
                }
            } else if let (Some(_), Some(nap)) = (turn, nap) {
                self.inner.flush();
                sleep(nap);
            }
            if self.in_flight() == 0 || left == Some(Duration::ZERO) {
                return 0;
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.queue.len() + self.inner.in_flight()
    }

    fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.ready.fd()
    }

    fn about(&self) -> About {
        let About { name, reason } = self.inner.about();
        let said = |bucket: &Option<Bucket>, unit: &str| {
            bucket.as_ref().map(|bucket| format!("{:.0} {unit}/s", bucket.rate.per_s))
        };
        let limits = [said(&self.bytes, "bytes"), said(&self.operations, "operations")];
        let limits: Vec<_> = limits.into_iter().flatten().collect();
        About { name, reason: format!("{reason}; limited to [{}]", limits.join(", ")) }
    }
}

impl<E: Engine> Drop for Throttle<E> {
    fn drop(&mut self) {
        let mut out = Vec::new();
        while self.in_flight() > 0 {
            self.wait(&mut out, None);
            out.clear();
        }
    }
}
