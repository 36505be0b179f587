//! Emulated bandwidth: what a set of processes together may move, as if a layer were slower.
//!
//! One [`Cell`] a layer, shared by all processes: the *virtual time when the layer is free*, in
//! nanoseconds of `CLOCK_MONOTONIC`. A transfer of `n` bytes moves it forward by `n / rate`
//! from where it is, but at least from `now - burst`; the caller then sleeps until it is no longer
//! ahead of now. That is a token bucket: an idle layer gives [`BURST_NS`] worth of bytes at once,
//! a busy one exactly its rate, whoever asks. Nothing is ever held, so a process that dies leaves
//! nothing behind.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::memory::Control;
use crate::sys::now_ns;

/// How many layers can be limited.
pub const LIMITERS_MAX: usize = 64;
/// How long a layer must be idle to give the largest burst, and how much that is: what it moves
/// in this time.
pub const BURST_NS: u64 = 5_000_000;

/// One limited layer.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Cell {
    /// Bytes a second; 0 is without limit.
    rate: AtomicU64,
    /// When the layer is free.
    free_at_ns: AtomicU64,
}

/// All of them, as they stand in the control area.
pub(crate) type Cells = [Cell; LIMITERS_MAX];

impl Cell {
    fn acquire(&self, bytes: u64, now: u64) -> u64 {
        let rate = self.rate.load(Ordering::Relaxed);
        if rate == 0 || bytes == 0 {
            return 0;
        }
        let cost = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate));
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        let earliest = now.saturating_sub(BURST_NS);
        let mut end = 0;
        let _ = self.free_at_ns.fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| {
            end = free.max(earliest).saturating_add(cost);
            Some(end)
        });
        end.saturating_sub(now)
    }
}

/// The limiters of a pool, from any of its processes.
#[derive(Clone, Debug)]
pub struct Limiters(Arc<Control>);

impl Limiters {
    pub(crate) fn new(control: Arc<Control>) -> Self {
        Self(control)
    }

    /// Limits a layer to `rate` bytes a second; 0 is without limit.
    pub fn set(&self, layer: u32, rate: u64) {
        self.0.limiters()[layer as usize].rate.store(rate, Ordering::Relaxed);
    }

    /// The limit of a layer, in bytes a second; `None` is without.
    pub fn rate(&self, layer: u32) -> Option<u64> {
        let rate = self.0.limiters()[layer as usize].rate.load(Ordering::Relaxed);
        (rate > 0).then_some(rate)
    }

    /// Accounts for a transfer. The caller sleeps for the nanoseconds that this gives.
    #[must_use]
    pub fn acquire(&self, layer: u32, bytes: u64) -> u64 {
        self.0.limiters()[layer as usize].acquire(bytes, now_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    fn cell(rate: u64) -> Cell {
        let cell = Cell::default();
        cell.rate.store(rate, Ordering::Relaxed);
        cell
    }

    #[test]
    fn a_burst_is_free_then_the_rate_holds() {
        let (cell, now) = (cell(100 * MB), 1_000_000_000_000);
        let burst = 100 * MB * BURST_NS / 1_000_000_000;
        assert_eq!(cell.acquire(burst, now), 0);
        assert_eq!(cell.acquire(100 * MB, now), 1_000_000_000);
        assert_eq!(cell.acquire(100 * MB, now), 2_000_000_000);
        assert_eq!(cell.acquire(50 * MB, now + 2_000_000_000), 500_000_000);
    }

    #[test]
    fn idle_time_does_not_pile_up() {
        let cell = cell(100 * MB);
        assert_eq!(cell.acquire(1, 1_000_000_000), 0);
        let hour = 3600 * 1_000_000_000;
        let wait = cell.acquire(100 * MB, hour);
        assert_eq!(wait, 1_000_000_000 - BURST_NS);
    }

    #[test]
    fn no_limit_and_no_bytes_cost_nothing_and_much_does_not_overflow() {
        assert_eq!(cell(0).acquire(u64::MAX, 5), 0);
        let one = cell(1);
        assert_eq!(one.acquire(0, 5), 0);
        assert_eq!(one.acquire(u64::MAX, 5), u64::MAX - 5);
        assert_eq!(one.acquire(u64::MAX, 5), u64::MAX - 5);
    }

    #[test]
    fn many_threads_together_get_the_rate() {
        let (cell, now) = (cell(1_000_000_000), 1_000_000_000_000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| _ = cell.acquire(1_000, now)));
            }
        });
        let wait = cell.acquire(1_000, now);
        assert_eq!(wait, 40_001 * 1_000 - BURST_NS);
    }
}
