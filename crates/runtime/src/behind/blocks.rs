//! Memory for pieces: blocks that are used again, because a fresh page costs more than its copy.

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;

use super::PIECE_BYTES_MAX;

/// Pieces up to this size have an allocation of their own.
const SMALL_BYTES_MAX: usize = 64 << 10;
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The sizes of blocks, each half of the one before.
const SIZES: usize = 6;
const _: () = assert!(PIECE_BYTES_MAX >> (SIZES - 1) == 2 * SMALL_BYTES_MAX);

/// `PIECE_BYTES_MAX` bytes from the system, on large pages where it has them.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
}

// SAFETY: a mapping is only an address until it is unmapped; its bytes belong to blocks.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new() -> Option<Mapping> {
        let len = PIECE_BYTES_MAX + HUGE_PAGE_BYTES;
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
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
        Some(Mapping { start: NonNull::new(start as *mut u8)? })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and the last block in it is gone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), PIECE_BYTES_MAX) };
    }
}

/// Memory for a piece: a mapping, or a half, a quarter, ... of one.
#[derive(Debug)]
pub(super) struct Block {
    mapping: Arc<Mapping>,
    offset: usize,
    /// Which of the sizes it has: 0 is a whole mapping.
    size: usize,
}

impl Block {
    /// Where it begins. Nobody else has a block with these bytes.
    pub(super) fn as_ptr(&self) -> *mut u8 {
        // SAFETY: a block lies within its mapping.
        unsafe { self.mapping.start.as_ptr().add(self.offset) }
    }

    /// Its two halves.
    fn halves(self) -> [Block; 2] {
        let size = self.size + 1;
        let (first, second) = (self.offset, self.offset + (PIECE_BYTES_MAX >> size));
        [
            Block { mapping: self.mapping.clone(), offset: first, size },
            Block { mapping: self.mapping, offset: second, size },
        ]
    }
}

/// A whole block whose pages are there: a page that is touched for the first time costs ten times
/// what a copy to it does, more on a virtual machine. `None`: the system has none to give.
pub(super) fn populated() -> Option<Block> {
    let block = Block { mapping: Arc::new(Mapping::new()?), offset: 0, size: 0 };
    let start = block.as_ptr().cast();
    // SAFETY: the range is that of a mapping that was just made; nothing in it changes.
    let status = unsafe { libc::madvise(start, PIECE_BYTES_MAX, libc::MADV_POPULATE_WRITE) };
    (status == 0).then_some(block)
}

/// Memory that was reserved for a piece and has nothing in it.
#[derive(Debug)]
pub(super) enum Room {
    /// A block; so much of it will be used.
    Block(Block),
    /// An allocation of its own.
    Small(Vec<u8>),
}

/// Blocks that nobody uses, by size.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    free: [Vec<Block>; SIZES],
    used_at: Option<Instant>,
}

impl Blocks {
    /// Memory for a piece; `None`: the system has none to give.
    pub(super) fn room(&mut self, len: usize) -> Option<Room> {
        if len <= SMALL_BYTES_MAX {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(len).ok()?;
            return Some(Room::Small(bytes));
        }
        let fits = |size: &usize| PIECE_BYTES_MAX >> size >= len;
        let size = (0..SIZES).rev().find(fits).expect("a piece is no longer than a block");
        self.take(size).map(Room::Block)
    }

    /// A block of this size, cut from a larger one if there is none.
    fn take(&mut self, size: usize) -> Option<Block> {
        if let Some(block) = self.free[size].pop() {
            return Some(block);
        }
        if size == 0 {
            let mapping = Arc::new(Mapping::new()?);
            return Some(Block { mapping, offset: 0, size });
        }
        let [first, second] = self.take(size - 1)?.halves();
        self.free[size].push(second);
        Some(first)
    }

    pub(super) fn give_back(&mut self, block: Block) {
        self.free[block.size].push(block);
        self.used_at = Some(Instant::now());
    }

    /// When a block was last given back; `None`: none is free.
    pub(super) fn used_at(&self) -> Option<Instant> {
        self.used_at.filter(|_| self.free.iter().any(|free| !free.is_empty()))
    }

    /// Bytes of the blocks that nobody uses.
    pub(super) fn free_bytes(&self) -> usize {
        self.free
            .iter()
            .enumerate()
            .map(|(size, free)| free.len() * (PIECE_BYTES_MAX >> size))
            .sum()
    }

    /// Gives one to the system, a large one if there is one; its neighbours keep theirs.
    pub(super) fn drop_one(&mut self) {
        self.free.iter_mut().find_map(Vec::pop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_are_out_never_overlap_and_come_back() {
        let mut blocks = Blocks::default();
        let sizes = [4 << 20, 100_000, 1 << 20, 70_000, 2 << 20, 300_000, 1 << 20, 65_537];
        let mut out = Vec::new();
        for len in sizes {
            let Some(Room::Block(block)) = blocks.room(len) else { panic!("{len} has a block") };
            out.push((block.as_ptr() as usize, block.as_ptr() as usize + len, block));
        }
        out.sort_by_key(|(start, ..)| *start);
        assert!(out.windows(2).all(|two| two[0].1 <= two[1].0));
        let places: Vec<usize> = out.iter().map(|(start, ..)| *start).collect();
        out.into_iter().for_each(|(.., block)| blocks.give_back(block));
        let again: Vec<Room> = sizes.iter().filter_map(|len| blocks.room(*len)).collect();
        assert_eq!(again.len(), sizes.len());
        assert!(again.iter().all(|room| match room {
            Room::Block(block) => places.contains(&(block.as_ptr() as usize)),
            Room::Small(_) => false,
        }));
        assert!(matches!(blocks.room(SMALL_BYTES_MAX), Some(Room::Small(_))));
    }
}
