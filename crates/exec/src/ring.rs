//! A ring of byte records between two processes: one producer, one consumer, no system call
//! while both are busy.
//!
//! # Layout
//!
//! `head` and `tail` count bytes since the beginning and only grow; a position is the count modulo
//! the capacity, a power of two. A record is a `u32` length, its bytes, and padding to a multiple
//! of [`ALIGN_BYTES`]. A record never wraps: where it does not fit before the end, the length
//! [`SKIP`] says that the rest is empty, and the record stands at the beginning.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `tail` | producer, release, after the bytes | consumer, acquire, before the bytes |
//! | `head` | consumer, release, after copying out | producer, acquire, before overwriting |
//! | `waiting` | raised by the producer, taken by the consumer | consumer |
//! | `asleep` (may serve many rings) | raised by the sleeper, taken by the waker | producers |
//!
//! Bytes between `head` and `tail` belong to the consumer, all others to the producer; a side
//! keeps its own count in private memory and only ever publishes it, so that a count overwritten
//! by stray code in the other process is found ([`Corrupt`]) and never followed.
//!
//! # No wake-up is lost
//!
//! The consumer wants to sleep: raise `asleep`, **fence**, look at `tail` once more; only if the
//! ring is still empty, wait for the bell. The producer has pushed: publish `tail`, **fence**, take
//! `asleep` (compare-and-swap to 0), and if it was raised, ring the bell. With both fences
//! sequentially consistent, one of the two sees the other: either the consumer sees the new
//! `tail`, or the producer sees `asleep`. A bell rung too often does no harm; taking the flag makes
//! it one ring a sleep.
//!
//! The ring is full: the producer raises `waiting`, **fence**, looks at `head` once more, and
//! waits for *its* bell. The consumer, at the end of a batch: publish `head`, **fence**, take
//! `waiting`, and if it was raised, ring the producer's bell. The same argument holds.
//!
//! The same code runs in a model where every order of the two sides is tried (tests/model.rs).

use std::fmt;
use std::ptr;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

use crate::wire::RECORD_BYTES_MAX;

/// Records begin at multiples of this.
pub const ALIGN_BYTES: u64 = 8;
/// The length that stands for "go on at the beginning".
pub const SKIP: u32 = u32::MAX;
const LENGTH_BYTES: u64 = 4;

/// A count of bytes that one side publishes to the other.
pub trait Counter {
    /// Reads it, and sees everything that was written before it was published.
    fn load_acquire(&self) -> u64;
    /// Publishes it with everything written before.
    fn store_release(&self, value: u64);
}

/// A flag that one side raises and the other takes.
pub trait Flag {
    /// Raises it.
    fn raise(&self);
    /// Lowers it.
    fn lower(&self);
    /// Lowers it and tells whether it was raised.
    fn take(&self) -> bool;
}

/// The memory of one ring.
pub trait Shared {
    /// Its counters.
    type Counter: Counter;
    /// Its flags.
    type Flag: Flag;
    /// Bytes of data, a power of two and a multiple of [`ALIGN_BYTES`].
    fn capacity(&self) -> u64;
    /// Bytes taken since the beginning.
    fn head(&self) -> &Self::Counter;
    /// Bytes given since the beginning.
    fn tail(&self) -> &Self::Counter;
    /// Raised by a producer that waits for room.
    fn waiting(&self) -> &Self::Flag;
    /// A sequentially consistent fence.
    fn fence();
    /// Copies `bytes` in. The range is within the capacity and the producer's.
    fn write(&self, at: u64, bytes: &[u8]);
    /// Appends `count` bytes to `into`. The range is within the capacity and the consumer's.
    fn read(&self, at: u64, count: u64, into: &mut Vec<u8>);
    /// Reads a length. The place is within the capacity and the consumer's.
    fn read_length(&self, at: u64) -> u32;
}

/// The other side's counters or lengths make no sense: its memory was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// What was found.
    pub found: &'static str,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.found;
        write!(f, "the memory shared with this process was overwritten by something: {found}")
    }
}

impl std::error::Error for Corrupt {}

/// The room that a record of `bytes` takes.
fn room_of(bytes: u64) -> u64 {
    (LENGTH_BYTES + bytes).next_multiple_of(ALIGN_BYTES)
}

/// The side that gives. At most one exists for a ring.
#[derive(Debug)]
pub struct Producer<S: Shared> {
    shared: S,
    tail: u64,
    head_seen: u64,
}

impl<S: Shared> Producer<S> {
    /// The producer of a ring in which nothing was ever written.
    pub fn new(shared: S) -> Self {
        assert!(shared.capacity().is_power_of_two() && shared.capacity() % ALIGN_BYTES == 0);
        Self { shared, tail: 0, head_seen: 0 }
    }

    /// The ring's memory.
    pub fn shared(&self) -> &S {
        &self.shared
    }

    /// Puts a record in, whole, unless there is no room. The consumer is not woken by this.
    #[must_use]
    pub fn push(&mut self, record: &[u8]) -> bool {
        let (capacity, need) = (self.shared.capacity(), room_of(record.len() as u64));
        assert!(need <= capacity / 2, "a record of {} bytes in a ring", record.len());
        let at = self.tail & (capacity - 1);
        let to_end = capacity - at;
        let skipped = if need > to_end { to_end } else { 0 };
        if !self.has_room(skipped + need) {
            return false;
        }
        if skipped > 0 {
            self.shared.write(at, &SKIP.to_le_bytes());
        }
        let at = if skipped > 0 { 0 } else { at };
        self.shared.write(at, &(record.len() as u32).to_le_bytes());
        self.shared.write(at + LENGTH_BYTES, record);
        self.tail += skipped + need;
        self.shared.tail().store_release(self.tail);
        true
    }

    fn has_room(&mut self, bytes: u64) -> bool {
        let capacity = self.shared.capacity();
        if self.tail + bytes - self.head_seen <= capacity {
            return true;
        }
        let head = self.shared.head().load_acquire();
        // A head that goes back or overtakes the tail is nonsense: then there is no room.
        if head >= self.head_seen && head <= self.tail {
            self.head_seen = head;
        }
        self.tail + bytes - self.head_seen <= capacity
    }

    /// Says that the producer waits for room, and looks once more. `false`: push again, or
    /// wait for the bell.
    #[must_use]
    pub fn wait_for_room(&mut self, record: &[u8]) -> bool {
        self.shared.waiting().raise();
        S::fence();
        let pushed = self.push(record);
        if pushed {
            self.shared.waiting().lower();
        }
        pushed
    }

    /// After pushing: whether the sleeper behind `asleep` must be woken by its bell.
    #[must_use]
    pub fn must_wake(&self, asleep: &S::Flag) -> bool {
        S::fence();
        asleep.take()
    }
}

/// The side that takes. At most one exists for a ring.
#[derive(Debug)]
pub struct Consumer<S: Shared> {
    shared: S,
    head: u64,
    tail_seen: u64,
}

impl<S: Shared> Consumer<S> {
    /// The consumer of a ring in which nothing was ever written.
    pub fn new(shared: S) -> Self {
        Self { shared, head: 0, tail_seen: 0 }
    }

    /// The ring's memory.
    pub fn shared(&self) -> &S {
        &self.shared
    }

    /// Copies the oldest record into `into` (which is cleared); `false`: there is none.
    pub fn pop(&mut self, into: &mut Vec<u8>) -> Result<bool, Corrupt> {
        if self.head == self.tail_seen && !self.look()? {
            return Ok(false);
        }
        let mask = self.shared.capacity() - 1;
        let mut length = self.shared.read_length(self.head & mask);
        if length == SKIP {
            self.head += self.shared.capacity() - (self.head & mask);
            if self.head >= self.tail_seen {
                return Err(Corrupt { found: "nothing follows a skip" });
            }
            length = self.shared.read_length(0);
        }
        let need = room_of(u64::from(length));
        let at = self.head & mask;
        if u64::from(length) > RECORD_BYTES_MAX as u64
            || need > self.tail_seen - self.head
            || need > self.shared.capacity() - at
        {
            return Err(Corrupt { found: "a record is longer than what was written" });
        }
        into.clear();
        self.shared.read(at + LENGTH_BYTES, u64::from(length), into);
        self.head += need;
        self.shared.head().store_release(self.head);
        Ok(true)
    }

    /// Looks for more; whether there is any.
    fn look(&mut self) -> Result<bool, Corrupt> {
        let tail = self.shared.tail().load_acquire();
        let written = tail.wrapping_sub(self.head);
        if written > self.shared.capacity() || tail % ALIGN_BYTES != 0 {
            return Err(Corrupt { found: "a ring holds more than its capacity" });
        }
        self.tail_seen = tail;
        Ok(written > 0)
    }

    /// After a batch of pops: whether the producer waits for room and must be woken.
    #[must_use]
    pub fn must_wake(&self) -> bool {
        S::fence();
        self.shared.waiting().take()
    }

    /// Says that the consumer is about to sleep, and looks once more. `true`: wait for the bell,
    /// then lower `asleep`. `false`: there is something.
    #[must_use]
    pub fn prepare_sleep(&mut self, asleep: &S::Flag) -> bool {
        asleep.raise();
        S::fence();
        let empty = self.is_empty();
        if !empty {
            asleep.lower();
        }
        empty
    }

    /// Whether nothing is there at this moment.
    pub fn is_empty(&self) -> bool {
        self.shared.tail().load_acquire() == self.head
    }
}

impl Counter for AtomicU64 {
    #[inline]
    fn load_acquire(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    #[inline]
    fn store_release(&self, value: u64) {
        self.store(value, Ordering::Release);
    }
}

impl Flag for AtomicU32 {
    #[inline]
    fn raise(&self) {
        self.store(1, Ordering::Relaxed);
    }

    #[inline]
    fn lower(&self) {
        self.store(0, Ordering::Relaxed);
    }

    #[inline]
    fn take(&self) -> bool {
        let change = || self.compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed);
        self.load(Ordering::Relaxed) != 0 && change().is_ok()
    }
}

/// The shared counters of a ring, each side's on a cache line of its own.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Header {
    head: Line<AtomicU64>,
    tail: Line<AtomicU64>,
    waiting: Line<AtomicU32>,
}

#[repr(C, align(128))]
#[derive(Debug, Default)]
pub(crate) struct Line<T>(pub(crate) T);

const _: () = assert!(size_of::<Header>() == 384);

impl Header {
    /// Makes the ring empty. Only while neither side is in use.
    pub(crate) fn reset(&self) {
        self.head.0.store(0, Ordering::Relaxed);
        self.tail.0.store(0, Ordering::Relaxed);
        self.waiting.0.store(0, Ordering::Release);
    }

    /// Whether everything that was given has been taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.0.load(Ordering::Acquire) == self.tail.0.load(Ordering::Acquire)
    }
}

/// A ring in memory shared with another process. `K` keeps the memory mapped.
#[derive(Debug)]
pub struct Mapped<K> {
    header: ptr::NonNull<Header>,
    data: ptr::NonNull<u8>,
    capacity: u64,
    _keeper: K,
}

// SAFETY: the pointers lead to shared memory that `K` keeps mapped; the header is atomic, and
// the data are touched only by the one producer and the one consumer, as the module says.
unsafe impl<K: Send> Send for Mapped<K> {}

impl<K> Mapped<K> {
    /// A ring over a header and `capacity` bytes of data.
    ///
    /// # Safety
    /// Both stay mapped, readable and writable while `keeper` lives. In all processes together
    /// at most one producer and one consumer use them.
    pub unsafe fn new(
        header: ptr::NonNull<Header>,
        data: ptr::NonNull<u8>,
        capacity: u64,
        keeper: K,
    ) -> Self {
        Self { header, data, capacity, _keeper: keeper }
    }

    fn header(&self) -> &Header {
        // SAFETY: mapped while `self` lives, and made of atomics only.
        unsafe { self.header.as_ref() }
    }

    fn place(&self, at: u64, count: u64) -> *mut u8 {
        assert!(at + count <= self.capacity, "a ring keeps within its memory");
        // SAFETY: within the data, as just asserted.
        unsafe { self.data.as_ptr().add(at as usize) }
    }
}

impl<K> Shared for Mapped<K> {
    type Counter = AtomicU64;
    type Flag = AtomicU32;

    #[inline]
    fn capacity(&self) -> u64 {
        self.capacity
    }

    #[inline]
    fn head(&self) -> &AtomicU64 {
        &self.header().head.0
    }

    #[inline]
    fn tail(&self) -> &AtomicU64 {
        &self.header().tail.0
    }

    #[inline]
    fn waiting(&self) -> &AtomicU32 {
        &self.header().waiting.0
    }

    #[inline]
    fn fence() {
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn write(&self, at: u64, bytes: &[u8]) {
        let to = self.place(at, bytes.len() as u64);
        // SAFETY: `place` checked the range; it is the producer's, nobody else looks at it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    #[inline]
    fn read(&self, at: u64, count: u64, into: &mut Vec<u8>) {
        let from = self.place(at, count);
        into.reserve(count as usize);
        // SAFETY: `place` checked the range, it is the consumer's; `reserve` made the room.
        unsafe {
            let end = into.as_mut_ptr().add(into.len());
            ptr::copy_nonoverlapping(from, end, count as usize);
            into.set_len(into.len() + count as usize);
        }
    }

    #[inline]
    fn read_length(&self, at: u64) -> u32 {
        let from = self.place(at, LENGTH_BYTES);
        // SAFETY: `place` checked the range, it is the consumer's; alignment is not needed.
        u32::from_le_bytes(unsafe { from.cast::<[u8; 4]>().read_unaligned() })
    }
}
