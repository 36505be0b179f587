//! Stacks for fibers: pooled, each with a guard page, bounded in number.
//!
//! Stacks are cut from slabs of [`SLAB_STACKS`]. Below each lies a guard page: installed inside the
//! mapping where the kernel can (Linux 6.13), so that a slab stays one mapping and the number of
//! stacks is not bounded by the number of mappings; else by protecting the page. A fresh mapping
//! for every fiber would cost hundreds of times what a pooled stack costs (measured by others, and
//! the reason for this file).
//!
//! A stack that comes back is the next to be given out, so it is in the cache. What a deep fiber
//! touched of a stack is given back to the system only when more than [`WARM_STACKS`] lie unused.

use std::io;
use std::num::NonZeroUsize;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;

/// Bytes of a guard page.
pub const GUARD_BYTES: usize = 4096;
/// Stacks that are mapped at once.
pub const SLAB_STACKS: usize = 64;
/// Unused stacks whose memory is kept.
pub const WARM_STACKS: usize = 256;
/// The least that a fiber can work with, in bytes.
pub const STACK_BYTES_MIN: usize = 16 << 10;
/// The most, in bytes: a slab of them has to fit into the addresses of a process.
pub const STACK_BYTES_MAX: usize = 1 << 30;

/// `MADV_GUARD_INSTALL`, which the C library does not name yet.
const GUARD_INSTALL: libc::c_int = 102;

/// How many stacks there may be, and how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a stack without its guard page; a multiple of the page size.
    pub stack_bytes: usize,
    /// Stacks at once.
    pub stacks_max: usize,
}

#[derive(Debug)]
struct Slab {
    start: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Free {
    slabs: Vec<Slab>,
    /// Lowest addresses (of the guard pages) of stacks that nobody has; the last is the warmest.
    stacks: Vec<usize>,
    /// From here on the memory of unused stacks is kept; those before have been given back.
    cold: usize,
    taken: usize,
    taken_most: usize,
}

/// The stacks of a process.
#[derive(Debug)]
pub struct Stacks {
    limits: Limits,
    free: Mutex<Free>,
    light_guards: AtomicBool,
}

/// One stack. It goes back to its pool when it is dropped.
#[derive(Debug)]
pub struct Stack {
    pool: Arc<Stacks>,
    guard: usize,
}

impl Stacks {
    /// An empty pool.
    pub fn new(limits: Limits) -> Arc<Stacks> {
        assert!((STACK_BYTES_MIN..=STACK_BYTES_MAX).contains(&limits.stack_bytes));
        assert!(limits.stack_bytes % GUARD_BYTES == 0);
        let light_guards = AtomicBool::new(true);
        Arc::new(Stacks { limits, free: Mutex::default(), light_guards })
    }

    /// A stack; `None` when as many as there may be are taken. `Err`: the system has no memory.
    pub fn take(self: &Arc<Self>) -> io::Result<Option<Stack>> {
        let mut free = self.free.lock();
        if free.taken >= self.limits.stacks_max {
            return Ok(None);
        }
        if free.stacks.is_empty() {
            self.map_slab(&mut free)?;
        }
        let guard = free.stacks.pop().expect("mapped above");
        free.cold = free.cold.min(free.stacks.len());
        free.taken += 1;
        free.taken_most = free.taken_most.max(free.taken);
        Ok(Some(Stack { pool: self.clone(), guard }))
    }

    /// How many stacks are taken, and how many were at most.
    pub fn taken(&self) -> (usize, usize) {
        let free = self.free.lock();
        (free.taken, free.taken_most)
    }

    /// The guard page, if any, that an address lies in: its stack has overflowed.
    pub fn guards(&self, address: usize) -> bool {
        // Called from a signal handler: whoever holds the lock may be the one that was interrupted.
        let Some(free) = self.free.try_lock() else { return false };
        let slab =
            free.slabs.iter().find(|slab| (slab.start..slab.start + slab.bytes).contains(&address));
        slab.is_some_and(|slab| (address - slab.start) % self.step() < GUARD_BYTES)
    }

    fn step(&self) -> usize {
        self.limits.stack_bytes + GUARD_BYTES
    }

    fn map_slab(&self, free: &mut Free) -> io::Result<()> {
        let bytes = SLAB_STACKS * self.step();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        // SAFETY: a new anonymous mapping touches nothing that exists.
        let start = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = start as usize;
        for number in 0..SLAB_STACKS {
            if let Err(error) = self.guard(start + number * self.step()) {
                // SAFETY: the mapping was made above, and nobody knows of it.
                unsafe { libc::munmap(start as *mut libc::c_void, bytes) };
                return Err(error);
            }
        }
        free.slabs.push(Slab { start, bytes });
        free.stacks.extend((0..SLAB_STACKS).rev().map(|number| start + number * self.step()));
        free.cold = free.stacks.len();
        Ok(())
    }

    fn guard(&self, page: usize) -> io::Result<()> {
        let at = page as *mut libc::c_void;
        if self.light_guards.load(Ordering::Relaxed) {
            // SAFETY: the page belongs to a mapping of ours that nobody uses yet.
            if unsafe { libc::madvise(at, GUARD_BYTES, GUARD_INSTALL) } == 0 {
                return Ok(());
            }
            self.light_guards.store(false, Ordering::Relaxed);
        }
        // SAFETY: as above.
        match unsafe { libc::mprotect(at, GUARD_BYTES, libc::PROT_NONE) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn give_back(&self, guard: usize) {
        let mut free = self.free.lock();
        free.taken -= 1;
        free.stacks.push(guard);
        if free.stacks.len() - free.cold > WARM_STACKS {
            let coldest = free.stacks[free.cold];
            free.cold += 1;
            let at = (coldest + GUARD_BYTES) as *mut libc::c_void;
            // SAFETY: the memory of an unused stack; the lock is held, so nobody takes it.
            unsafe { libc::madvise(at, self.limits.stack_bytes, libc::MADV_DONTNEED) };
        }
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        for slab in std::mem::take(&mut self.free.get_mut().slabs) {
            // SAFETY: every stack holds the pool, so all are back, and nobody uses the mapping.
            unsafe { libc::munmap(slab.start as *mut libc::c_void, slab.bytes) };
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.pool.give_back(self.guard);
    }
}

// SAFETY: the memory between `limit` and `base` is mapped, belongs to this value alone, begins with
// a guard page, and has STACK_BYTES_MIN bytes or more.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> NonZeroUsize {
        let top = self.guard + GUARD_BYTES + self.pool.limits.stack_bytes;
        NonZeroUsize::new(top).expect("a mapping is not at 0")
    }

    fn limit(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.guard).expect("a mapping is not at 0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corosensei::stack::Stack as _;

    fn pool(stacks_max: usize) -> Arc<Stacks> {
        Stacks::new(Limits { stack_bytes: 64 << 10, stacks_max })
    }

    #[test]
    fn the_stack_that_came_back_last_is_given_out_first() {
        let pool = pool(10);
        let [first, second] = [(); 2].map(|()| pool.take().unwrap().unwrap());
        assert_ne!(first.guard, second.guard);
        let (warm, cold) = (second.guard, first.guard);
        drop(first);
        drop(second);
        let again = [(); 2].map(|()| pool.take().unwrap().unwrap());
        assert_eq!(again.each_ref().map(|stack| stack.guard), [warm, cold]);
    }

    #[test]
    fn there_are_no_more_than_the_limit() {
        let pool = pool(SLAB_STACKS + 1);
        let all: Vec<Stack> = (0..SLAB_STACKS + 1).map(|_| pool.take().unwrap().unwrap()).collect();
        assert!(pool.take().unwrap().is_none());
        assert_eq!(pool.taken(), (SLAB_STACKS + 1, SLAB_STACKS + 1));
        drop(all);
        assert!(pool.take().unwrap().is_some());
        assert_eq!(pool.taken().1, SLAB_STACKS + 1);
    }

    #[test]
    fn guard_pages_are_known_and_the_stack_above_is_not_one() {
        let pool = pool(10);
        let stack = pool.take().unwrap().unwrap();
        assert!(pool.guards(stack.limit().get()));
        assert!(pool.guards(stack.limit().get() + GUARD_BYTES - 1));
        assert!(!pool.guards(stack.limit().get() + GUARD_BYTES));
        assert!(!pool.guards(stack.base().get() - 1));
        assert!(!pool.guards(&raw const pool as usize));
    }

    #[test]
    fn memory_beyond_the_warm_stacks_is_given_back() {
        let pool = pool(2 * WARM_STACKS);
        let all: Vec<Stack> = (0..2 * WARM_STACKS).map(|_| pool.take().unwrap().unwrap()).collect();
        let lowest: Vec<*mut u8> =
            all.iter().map(|stack| (stack.guard + GUARD_BYTES) as *mut u8).collect();
        // SAFETY: the lowest byte of a stack that this test owns.
        lowest.iter().for_each(|byte| unsafe { byte.write(7) });
        drop(all);
        // SAFETY: the pool keeps the mappings.
        let kept = lowest.iter().filter(|byte| unsafe { byte.read() } == 7).count();
        assert_eq!(kept, WARM_STACKS);
    }
}
