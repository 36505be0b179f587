//! The object store: who holds which range of the heap, and for how long.
//!
//! A range is given out as a [`Pin`]; it is free again when the last clone of the pin is gone.
//! Everybody who looks at a range holds one: the table of versions, the program's handles and
//! views, and (here, on its behalf) a worker that said it still has views of it. Dropping a pin
//! takes one short lock that nobody holds while waiting for anything else; memory is given
//! back to the system by the runtime thread, which is woken once there is much of it.

mod allocator;
pub mod block;

use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use exec::mapped::Mapped;
use exec::memory::Heap;
use exec::poller::Poller;
use exec::process::Pool;
use parking_lot::Mutex;

use crate::{copying, fork};
use allocator::Allocator;

/// Free memory beyond what may be retained that is let be, to give back much at once.
const TRIM_SLACK_BYTES: u64 = 32 << 20;
/// From this size on, pages are asked for in one go before a value is written.
const PREFAULT_BYTES_MIN: u64 = 1 << 20;

/// The store has no room for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreFull {
    /// Bytes that were asked for.
    pub asked: u64,
    /// Bytes in use.
    pub in_use: u64,
    /// Bytes that may be in use.
    pub max: u64,
}

impl fmt::Display for StoreFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "object store full: a value of {} bytes does not fit; {} of {} bytes are in use. \
             Drop futures and arrays that are not needed any more, or give the session more \
             (memory=)",
            self.asked, self.in_use, self.max
        )
    }
}

impl std::error::Error for StoreFull {}

#[derive(Debug)]
struct Inner {
    allocator: Allocator,
    mapped: Mapped,
    peak_bytes: u64,
}

impl Inner {
    /// The pages of a surplus range were given back, or could not be.
    fn given_back(&mut self, offset: u64, len: u64, done: bool) {
        if done {
            self.mapped.clear(offset, len);
            self.allocator.bared(offset, len);
        } else {
            self.allocator.kept(offset, len);
        }
    }
}

/// The driver's side of the heap.
#[derive(Debug)]
pub(crate) struct Store {
    heap: Arc<Heap>,
    /// Where the runtime thread sleeps.
    poller: Arc<Poller>,
    inner: Mutex<Inner>,
    max: u64,
    retained: u64,
    trim_wanted: AtomicBool,
    forks: u64,
}

impl Store {
    /// All of the heap is free; up to `max` bytes may be in use, and up to `retained` freed ones
    /// keep their pages.
    pub(crate) fn new(pool: &Pool, max: u64, retained: u64) -> Arc<Store> {
        let allocator = Allocator::new(pool.heap().bytes());
        Arc::new(Store {
            heap: Arc::clone(pool.heap()),
            poller: Arc::clone(pool.poller()),
            inner: Mutex::new(Inner { allocator, mapped: Mapped::default(), peak_bytes: 0 }),
            max,
            retained,
            trim_wanted: AtomicBool::new(false),
            forks: fork::count(),
        })
    }

    /// A range of `len` bytes. Its content is whatever was there before.
    pub(crate) fn allocate(self: &Arc<Store>, len: u64) -> Result<Pin, StoreFull> {
        let mut inner = self.inner.lock();
        let used = inner.allocator.used_bytes();
        let full = StoreFull { asked: len, in_use: used, max: self.max };
        let rounded = |len| allocator::rounded(len).0;
        let most = self.max.next_multiple_of(allocator::PAGE_BYTES);
        if len > self.max || used + rounded(len) > most {
            return Err(full);
        }
        let mut found = inner.allocator.allocate(len);
        if found.is_none() {
            // No free range of one kind is long enough: make all of them one kind.
            self.trim_locked(&mut inner, 0);
            found = inner.allocator.allocate(len);
        }
        let offset = found.ok_or(full)?;
        inner.peak_bytes = inner.peak_bytes.max(inner.allocator.used_bytes());
        drop(inner);
        Ok(Pin { range: Arc::new(Range { store: Arc::clone(self), offset, len }), len })
    }

    /// A block of a pickle and its buffers: in a message if it is small, else in the heap.
    pub(crate) fn encode(
        self: &Arc<Store>,
        pickle: &[u8],
        buffers: &[&[u8]],
    ) -> Result<Value, StoreFull> {
        let layout = block::Layout::new(pickle.len(), buffers.iter().map(|b| b.len()));
        if layout.total() <= exec::wire::INLINE_BYTES_MAX {
            return Ok(Value::Inline(block::encode(pickle, buffers).into()));
        }
        let pin = self.allocate(layout.total() as u64)?;
        pin.fill(|bytes| layout.write(bytes, pickle, buffers));
        Ok(Value::Placed(pin))
    }

    /// A copy of bytes in the heap.
    pub(crate) fn copy(self: &Arc<Store>, bytes: &[u8]) -> Result<Pin, StoreFull> {
        let pin = self.allocate(bytes.len() as u64)?;
        pin.fill(|place| copying::copy(bytes, place));
        Ok(pin)
    }

    /// Bytes in use, and the most that were.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let inner = self.inner.lock();
        (inner.allocator.used_bytes(), inner.peak_bytes)
    }

    /// Gives memory back to the system, down to what may be retained, if there is much more.
    pub(crate) fn trim(&self) {
        if !self.trim_wanted.swap(false, Ordering::Relaxed) {
            return;
        }
        let taken = self.inner.lock().allocator.surplus(self.retained);
        // The system call is made without the lock: meanwhile the ranges are nobody's.
        let done: Vec<_> = taken.into_iter().map(|range| (range, self.punch(range))).collect();
        let mut inner = self.inner.lock();
        for ((offset, len), given_back) in done {
            inner.given_back(offset, len, given_back);
        }
    }

    /// Gives everything back that is free.
    pub(crate) fn close(&self) {
        self.trim_locked(&mut self.inner.lock(), 0);
    }

    fn trim_locked(&self, inner: &mut Inner, keep: u64) {
        for range in inner.allocator.surplus(keep) {
            let given_back = self.punch(range);
            inner.given_back(range.0, range.1, given_back);
        }
    }

    fn punch(&self, (offset, len): (u64, u64)) -> bool {
        // SAFETY: the range came from `Allocator::surplus`: no pin of it is left, so nobody
        // looks at it.
        unsafe { self.heap.punch(offset, len) }.is_ok()
    }

    fn free(&self, offset: u64) {
        if self.forks != fork::count() {
            return; // A forked child: the memory is the parent's, and the lock may be held.
        }
        let mut inner = self.inner.lock();
        inner.allocator.free(offset);
        let much = self.retained.saturating_add(TRIM_SLACK_BYTES);
        let is_much = inner.allocator.touched_bytes() > much;
        drop(inner);
        // The runtime thread looks before it sleeps; rung after that look, the bell wakes it.
        if is_much && !self.trim_wanted.swap(true, Ordering::Relaxed) {
            self.poller.wake();
        }
    }
}

#[derive(Debug)]
struct Range {
    store: Arc<Store>,
    offset: u64,
    len: u64,
}

impl Drop for Range {
    fn drop(&mut self) {
        self.store.free(self.offset);
    }
}

/// A range of the heap that stays as long as a clone of this lives.
#[derive(Clone, Debug)]
pub struct Pin {
    range: Arc<Range>,
    len: u64,
}

impl Pin {
    /// Where it begins in the heap.
    pub fn offset(&self) -> u64 {
        self.range.offset
    }

    /// The first `len` bytes of the same range; `None`: it is shorter.
    pub(crate) fn shortened(&self, len: u64) -> Option<Pin> {
        (len <= self.range.len).then(|| Pin { range: Arc::clone(&self.range), len })
    }

    /// Writes a range that was just allocated.
    fn fill(&self, write: impl FnOnce(&mut [u8])) {
        let place = self.part(0, self.len);
        // SAFETY: `fill` is called once, by who allocated the range, before anyone else has it.
        write(unsafe { std::slice::from_raw_parts_mut(place.as_ptr(), self.len as usize) });
    }

    /// Where `len` bytes from `at` on can be written, by who allocated the range and before anyone
    /// else has it.
    ///
    /// # Panics
    /// If they are not within the range.
    pub(crate) fn part(&self, at: u64, len: u64) -> NonNull<u8> {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len), "{len} bytes at {at}");
        let Store { heap, inner, .. } = &*self.range.store;
        let offset = self.range.offset + at;
        if len >= PREFAULT_BYTES_MIN && !inner.lock().mapped.set(offset, len) {
            heap.prefault_write(offset, len);
        }
        heap.writer(offset, len)
    }
}

/// A block: in the driver's own memory, or in the heap.
#[derive(Clone, Debug)]
pub enum Value {
    /// Small: its bytes travel inside messages.
    Inline(Arc<[u8]>),
    /// In the heap, for everyone to see.
    Placed(Pin),
}

impl Value {
    /// A small value.
    pub fn inline(bytes: impl Into<Arc<[u8]>>) -> Value {
        Value::Inline(bytes.into())
    }

    /// The block's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Value::Inline(bytes) => bytes,
            // SAFETY: the pin keeps the range; it was written before the value was handed over,
            // and is written again only by members of a `Concurrent` group, whose value nobody
            // gets before the last of them ended.
            Value::Placed(pin) => unsafe { pin.range.store.heap.slice(pin.range.offset, pin.len) },
        }
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        match self {
            Value::Inline(bytes) => bytes.len(),
            Value::Placed(pin) => pin.len as usize,
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests;
