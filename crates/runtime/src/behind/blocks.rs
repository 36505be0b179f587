//! Memory for pieces: blocks that are used again, because a fresh page costs more than its copy.

use std::ptr::NonNull;
use std::time::Instant;

use super::PIECE_BYTES_MAX;

/// Pieces up to this size have an allocation of their own.
const SMALL_BYTES_MAX: usize = 64 << 10;
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// `PIECE_BYTES_MAX` bytes, mapped, on large pages where the system has them.
#[derive(Debug)]
pub(super) struct Block {
    start: NonNull<u8>,
}

// SAFETY: a block is the only one to use its mapping.
unsafe impl Send for Block {}

impl Block {
    fn new() -> Option<Block> {
        let (len, flags) =
            (PIECE_BYTES_MAX + HUGE_PAGE_BYTES, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping where the system likes; nothing of ours is touched.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        let address = mapped as usize;
        let start = address.next_multiple_of(HUGE_PAGE_BYTES);
        let (before, after) = (start - address, HUGE_PAGE_BYTES - (start - address));
        // SAFETY: both ends lie in the mapping that was just made, and nobody uses them.
        unsafe {
            if before > 0 {
                libc::munmap(mapped, before);
            }
            if after > 0 {
                libc::munmap((start + PIECE_BYTES_MAX) as *mut libc::c_void, after);
            }
            libc::madvise(start as *mut libc::c_void, PIECE_BYTES_MAX, libc::MADV_HUGEPAGE);
        }
        Some(Block { start: NonNull::new(start as *mut u8)? })
    }

    /// Where it begins.
    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the mapping is this block's, and nobody has its address any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), PIECE_BYTES_MAX) };
    }
}

/// Memory that was reserved for a piece and has nothing in it.
#[derive(Debug)]
pub(super) enum Room {
    /// A block; so much of it will be used.
    Block(Block),
    /// It will be an allocation.
    Small,
}

/// Blocks that nobody uses.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    free: Vec<Block>,
    used_at: Option<Instant>,
}

impl Blocks {
    /// Memory for a piece. Where the system has no block to give, a plain allocation.
    pub(super) fn room(&mut self, len: usize) -> Room {
        if len <= SMALL_BYTES_MAX {
            return Room::Small;
        }
        self.free.pop().or_else(Block::new).map_or(Room::Small, Room::Block)
    }

    pub(super) fn give_back(&mut self, block: Block) {
        self.free.push(block);
        self.used_at = Some(Instant::now());
    }

    /// When the free blocks will have been idle for too long; `None`: there are none.
    pub(super) fn used_at(&self) -> Option<Instant> {
        self.used_at.filter(|_| !self.free.is_empty())
    }

    pub(super) fn clear(&mut self) {
        self.free = Vec::new();
    }
}
