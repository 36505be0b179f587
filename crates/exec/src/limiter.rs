//! Emulated bandwidth: what a set of processes together may move, as if a layer were slower.
//!
//! One [`Cell`] a layer, shared by all processes: the *virtual time when the layer is free*, in
//! nanoseconds of `CLOCK_MONOTONIC`. A transfer of `n` bytes moves it forward by `n / rate`
//! from where it is, but at least from `now - burst`; the caller then sleeps until it is no longer
//! ahead of now. That is a token bucket: an idle layer gives [`BURST_NS`] worth of bytes at once,
//! a busy one exactly its rate, whoever asks. Nothing is ever held, so a process that dies leaves
//! nothing behind.
//!
//! # A curve
//!
//! The rate may depend on how many write at once (readers count too). A [`Writer`], one for each
//! file that a task has open, takes a *seat*: a word with the time until which it counts, which is
//! [`SEAT_NS`] after the end of its last transfer. Who transfers counts the seats whose time is
//! not over, and pays by the curve's rate for that many. The word itself says whose it is: a writer
//! changes it from the value that it put there, and if that is gone it looks for another seat whose
//! time is over. A writer that is dropped gives its seat back; that of a process that died is free
//! when its time is over.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `count`, `points` | the driver, before any process starts | everybody |
//! | `free_at_ns` | who transfers, by exchange | the same |
//! | `seats` | a writer, by exchange: one whose time is over, or its own | who transfers |
//! | `seats_used` | who takes a seat, only up | who transfers |
//!
//! No other memory depends on these words, and the count may be off by one for a moment; so the
//! orderings are relaxed.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use ops::{bandwidth_at, Curve, Point, POINTS_MAX};

use crate::memory::Control;
use crate::sys::now_ns;

/// How many layers can be limited.
pub const LIMITERS_MAX: usize = 64;
/// How long a layer must be idle to give the largest burst, and how much that is: what it moves
/// in this time.
pub const BURST_NS: u64 = 5_000_000;
/// How long a writer counts after a transfer. It should be longer than what a task does between
/// two transfers of one file, and is the error after a process died.
pub const SEAT_NS: u64 = 100_000_000;
/// A transfer is cut into pieces of at most this, so that those who share a layer take turns: what
/// the layer moves in about so long, within bounds.
pub const PIECE_NS: u64 = 4_000_000;
const PIECE_BYTES: std::ops::RangeInclusive<u64> = 16 << 10..=256 << 10;
/// Writers that are told apart on a layer; further ones are not counted.
pub const SEATS_MAX: usize = 512;

/// A point of a curve as it stands in shared memory.
#[repr(C)]
#[derive(Default)]
struct PointCell {
    bandwidth: AtomicU64,
    writers: AtomicU32,
    _padding: u32,
}

/// One limited layer.
#[repr(C)]
pub(crate) struct Cell {
    /// When the layer is free.
    free_at_ns: AtomicU64,
    /// Points of its curve; 0 is without limit, 1 a plain rate.
    count: AtomicU32,
    /// No seat from here on was ever taken.
    seats_used: AtomicU32,
    points: [PointCell; POINTS_MAX],
    /// Until when the writers count; 0: never.
    seats: [AtomicU64; SEATS_MAX],
}

/// All of them, as they stand in the control area.
pub(crate) type Cells = [Cell; LIMITERS_MAX];

/// The seat that a writer has, and what it put there last.
#[derive(Debug)]
struct Seat {
    index: AtomicU32,
    until_ns: AtomicU64,
}

impl Seat {
    const fn new() -> Seat {
        Seat { index: AtomicU32::new(0), until_ns: AtomicU64::new(0) }
    }
}

impl Cell {
    fn new(limit: Option<&Curve>) -> Cell {
        let cell = Cell {
            free_at_ns: AtomicU64::new(0),
            count: AtomicU32::new(0),
            seats_used: AtomicU32::new(0),
            points: Default::default(),
            seats: [const { AtomicU64::new(0) }; SEATS_MAX],
        };
        cell.set(limit);
        cell
    }

    fn set(&self, curve: Option<&Curve>) {
        let points = curve.map_or(&[][..], Curve::points);
        for (cell, point) in self.points.iter().zip(points) {
            cell.writers.store(point.writers, Ordering::Relaxed);
            cell.bandwidth.store(point.bandwidth, Ordering::Relaxed);
        }
        self.count.store(points.len() as u32, Ordering::Relaxed);
    }

    /// Its points, in a row that is filled up.
    fn points(&self) -> ([Point; POINTS_MAX], usize) {
        let count = (self.count.load(Ordering::Relaxed) as usize).min(POINTS_MAX);
        let mut points = [Point::default(); POINTS_MAX];
        for (point, cell) in points.iter_mut().zip(&self.points[..count]) {
            point.writers = cell.writers.load(Ordering::Relaxed);
            point.bandwidth = cell.bandwidth.load(Ordering::Relaxed);
        }
        (points, count)
    }

    /// Accounts for a transfer: how long it waits.
    fn acquire(&self, seat: &Seat, bytes: u64, now: u64) -> u64 {
        let (points, count) = self.points();
        if count == 0 || bytes == 0 {
            return 0;
        }
        if count == 1 {
            return self.pass(bytes, points[0].bandwidth, now);
        }
        self.sit(seat, now, now.saturating_add(SEAT_NS));
        let wait = self.pass(bytes, bandwidth_at(&points[..count], self.writers(now)), now);
        self.sit(seat, now, now.saturating_add(wait).saturating_add(SEAT_NS));
        wait
    }

    fn pass(&self, bytes: u64, rate: u64, now: u64) -> u64 {
        let cost = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate.max(1)));
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        let earliest = now.saturating_sub(BURST_NS);
        let mut end = 0;
        let _ = self.free_at_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
            end = free.max(earliest).saturating_add(cost);
            Some(end)
        });
        end.saturating_sub(now)
    }

    /// How many write at this time.
    fn writers(&self, now: u64) -> u32 {
        let used = (self.seats_used.load(Ordering::Relaxed) as usize).min(SEATS_MAX);
        let taken = |seat: &&AtomicU64| seat.load(Ordering::Relaxed) > now;
        self.seats[..used].iter().filter(taken).count().max(1) as u32
    }

    /// Counts a writer until this time: in its seat, or in a free one.
    fn sit(&self, seat: &Seat, now: u64, until: u64) {
        let change = |index: usize, from: u64| {
            self.seats[index]
                .compare_exchange(from, until, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        };
        let own = seat.until_ns.swap(until, Ordering::Relaxed);
        if own != 0 && change(seat.index.load(Ordering::Relaxed) as usize, own) {
            return;
        }
        for index in 0..SEATS_MAX {
            let until = self.seats[index].load(Ordering::Relaxed);
            if until <= now && change(index, until) {
                seat.index.store(index as u32, Ordering::Relaxed);
                self.seats_used.fetch_max(index as u32 + 1, Ordering::Relaxed);
                return;
            }
        }
        seat.until_ns.store(0, Ordering::Relaxed);
    }

    fn leave(&self, seat: &Seat) {
        let own = seat.until_ns.swap(0, Ordering::Relaxed);
        let index = seat.index.load(Ordering::Relaxed) as usize;
        if own != 0 {
            // A seat that is another's by now stays as it is.
            let _ =
                self.seats[index].compare_exchange(own, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// The limiters of a pool, from any of its processes; or those of one process.
#[derive(Clone, Debug)]
pub struct Limiters(Place);

/// Where the cells are.
#[derive(Clone)]
enum Place {
    Shared(Arc<Control>),
    Own(Arc<[Cell]>),
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Place::Shared(_) => "Shared",
            Place::Own(_) => "Own",
        })
    }
}

impl Limiters {
    pub(crate) fn new(control: Arc<Control>) -> Self {
        Self(Place::Shared(control))
    }

    /// Limiters that only this process knows: one for each of these layers, in their order.
    pub fn own<'a>(limits: impl Iterator<Item = Option<&'a Curve>>) -> Self {
        Self(Place::Own(limits.map(Cell::new).collect()))
    }

    fn cells(&self) -> &[Cell] {
        match &self.0 {
            Place::Shared(control) => control.limiters(),
            Place::Own(cells) => cells,
        }
    }

    /// Limits a layer; `None` is without limit. Before any process uses it.
    pub fn set(&self, layer: u32, limit: Option<&Curve>) {
        self.cells()[layer as usize].set(limit);
    }

    /// The limit of a layer; `None` is without.
    pub fn limit(&self, layer: u32) -> Option<Curve> {
        let (points, count) = self.cells()[layer as usize].points();
        Curve::new(points[..count].to_vec()).ok()
    }

    /// Somebody who reads or writes a file on a layer.
    pub fn writer(&self, layer: u32) -> Writer {
        let layers = self.cells().len();
        assert!((layer as usize) < layers, "layer {layer} of {layers}");
        Writer { limiters: self.clone(), layer, seat: Seat::new() }
    }
}

/// One of those who read or write on a limited layer. Counts as one, however many threads use it.
#[derive(Debug)]
pub struct Writer {
    limiters: Limiters,
    layer: u32,
    seat: Seat,
}

impl Writer {
    fn cell(&self) -> &Cell {
        &self.limiters.cells()[self.layer as usize]
    }

    /// Accounts for a transfer. The caller sleeps for the nanoseconds that this gives.
    #[must_use]
    pub fn acquire(&self, bytes: u64) -> u64 {
        self.cell().acquire(&self.seat, bytes, now_ns())
    }

    /// The limit of the layer; `None` is without.
    pub fn limit(&self) -> Option<Curve> {
        self.limiters.limit(self.layer)
    }

    /// How many bytes are transferred at once, at most.
    pub fn piece(&self) -> u64 {
        let best = self.limit().map_or(u64::MAX, |limit| limit.best().bandwidth);
        let bytes =
            (best / (1_000_000_000 / PIECE_NS)).clamp(*PIECE_BYTES.start(), *PIECE_BYTES.end());
        bytes.next_power_of_two().min(*PIECE_BYTES.end())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.cell().leave(&self.seat);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;
    const START: u64 = 1_000_000_000_000;

    fn cell(limit: Option<Curve>) -> Cell {
        Cell::new(limit.as_ref())
    }

    fn flat(rate: u64) -> Cell {
        cell(Some(Curve::flat(rate)))
    }

    /// 100 MB/s for one, 200 MB/s for two, 50 MB/s for four and more.
    fn curved() -> Cell {
        let points = [(1, 100 * MB), (2, 200 * MB), (4, 50 * MB)];
        let point = |(writers, bandwidth)| Point { writers, bandwidth };
        cell(Some(Curve::new(points.map(point).into()).unwrap()))
    }

    /// How long 10 MB take when the layer is busy, in milliseconds.
    fn cost_ms(cell: &Cell, seat: &Seat, now: u64) -> u64 {
        let before = cell.free_at_ns.load(Ordering::Relaxed);
        let wait = cell.acquire(seat, 10 * MB, now);
        (now + wait - before.max(now - BURST_NS)) / 1_000_000
    }

    #[test]
    fn a_burst_is_free_then_the_rate_holds() {
        let (cell, now, seat) = (flat(100 * MB), START, Seat::new());
        let burst = 100 * MB * BURST_NS / 1_000_000_000;
        assert_eq!(cell.acquire(&seat, burst, now), 0);
        assert_eq!(cell.acquire(&seat, 100 * MB, now), 1_000_000_000);
        assert_eq!(cell.acquire(&seat, 100 * MB, now), 2_000_000_000);
        assert_eq!(cell.acquire(&seat, 50 * MB, now + 2_000_000_000), 500_000_000);
    }

    #[test]
    fn layers_of_one_process_have_their_own_limits() {
        let curve = Curve::flat(100 * MB);
        let limiters = Limiters::own([None, Some(&curve)].into_iter());
        assert_eq!((limiters.limit(0), limiters.limit(1)), (None, Some(curve)));
        assert_eq!(limiters.writer(0).acquire(u64::MAX), 0);
        assert!(limiters.writer(1).acquire(100 * MB) > 900_000_000);
    }

    #[test]
    fn idle_time_does_not_pile_up() {
        let (cell, seat) = (flat(100 * MB), Seat::new());
        assert_eq!(cell.acquire(&seat, 1, 1_000_000_000), 0);
        let hour = 3600 * 1_000_000_000;
        let wait = cell.acquire(&seat, 100 * MB, hour);
        assert_eq!(wait, 1_000_000_000 - BURST_NS);
    }

    #[test]
    fn no_limit_and_no_bytes_cost_nothing_and_much_does_not_overflow() {
        let seat = Seat::new();
        assert_eq!(cell(None).acquire(&seat, u64::MAX, 5), 0);
        let one = flat(1);
        assert_eq!(one.acquire(&seat, 0, 5), 0);
        assert_eq!(one.acquire(&seat, u64::MAX, 5), u64::MAX - 5);
        assert_eq!(one.acquire(&seat, u64::MAX, 5), u64::MAX - 5);
    }

    #[test]
    fn many_threads_together_get_the_rate() {
        let (cell, now) = (flat(1_000_000_000), START);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let seat = Seat::new();
                    (0..10_000).for_each(|_| _ = cell.acquire(&seat, 1_000, now));
                });
            }
        });
        let wait = cell.acquire(&Seat::new(), 1_000, now);
        assert_eq!(wait, 40_001 * 1_000 - BURST_NS);
    }

    #[test]
    fn the_rate_is_that_of_so_many_writers() {
        let (cell, seats) = (curved(), [const { Seat::new() }; 5]);
        let costs = seats.each_ref().map(|seat| cost_ms(&cell, seat, START));
        assert_eq!(costs, [100, 50, 80, 200, 200], "100, 200, 125, 50, 50 MB/s");
        assert_eq!(cost_ms(&cell, &seats[0], START), 200, "it has its seat");
        assert_eq!(cell.writers(START), 5);
    }

    #[test]
    fn who_left_or_has_not_written_for_long_does_not_count() {
        let (cell, seats) = (curved(), [const { Seat::new() }; 3]);
        seats.iter().for_each(|seat| _ = cell.acquire(seat, 1, START));
        cell.leave(&seats[1]);
        assert_eq!(cell.writers(START), 2);
        assert_eq!(cost_ms(&cell, &seats[0], START), 50, "two, at 200 MB/s");
        let later = START + 1_000_000_000;
        assert_eq!(cost_ms(&cell, &seats[2], later), 100, "alone again");
        assert_eq!(cell.writers(later), 1);
    }

    #[test]
    fn a_seat_whose_time_is_over_is_anothers_and_is_not_given_back() {
        let (cell, [one, other]) = (curved(), [const { Seat::new() }; 2]);
        let _ = cell.acquire(&one, 1, START);
        let later = START + 1_000_000_000;
        let _ = cell.acquire(&other, 1, later);
        assert_eq!(cell.seats_used.load(Ordering::Relaxed), 1, "the same seat");
        cell.leave(&one);
        assert_eq!(cell.writers(later), 1, "the other still has it");
        let _ = cell.acquire(&one, 1, later);
        assert_eq!(cell.writers(later), 2);
    }

    #[test]
    fn more_writers_than_seats_are_as_many_as_seats() {
        let cell = curved();
        let seats: Vec<_> = (0..SEATS_MAX + 5).map(|_| Seat::new()).collect();
        seats.iter().for_each(|seat| _ = cell.acquire(seat, 1, START));
        assert_eq!(cell.writers(START), SEATS_MAX as u32);
        seats.iter().for_each(|seat| cell.leave(seat));
        assert_eq!(cell.writers(START), 1);
    }

    #[test]
    fn writers_that_come_and_go_on_many_threads_leave_no_seat_taken() {
        let cell = curved();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for now in START..START + 2_000 {
                        let seat = Seat::new();
                        let _ = cell.acquire(&seat, 1, now);
                        cell.leave(&seat);
                    }
                });
            }
        });
        assert!(cell.seats.iter().all(|seat| seat.load(Ordering::Relaxed) == 0));
    }
}
