//! A list that grows without moving what is in it.
//!
//! A `Vec` that is full is copied into one twice as large, whose pages are touched for the first
//! time: 5 to 15 % of an event's cost where 100,000 tasks are called before the first of them ends.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Entries of a chunk: only the first chunk, which is all that most programs need, ever moves.
const CHUNK_ENTRIES: usize = 1024;

/// Entries by position.
#[derive(Debug)]
pub struct Chunks<T> {
    /// All but the last are full.
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks { chunks: Vec::new() }
    }
}

impl<T> Chunks<T> {
    /// Adds an entry at the end.
    pub fn push(&mut self, entry: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK_ENTRIES => last.push(entry),
            last => {
                let entries = if last.is_some() { CHUNK_ENTRIES } else { 0 };
                let mut chunk = Vec::with_capacity(entries);
                chunk.push(entry);
                self.chunks.push(chunk);
            }
        }
    }

    /// The entry of a position.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / CHUNK_ENTRIES)?.get(index % CHUNK_ENTRIES)
    }

    /// As [`Chunks::get`], to change it.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.chunks.get_mut(index / CHUNK_ENTRIES)?.get_mut(index % CHUNK_ENTRIES)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::len);
        self.chunks.len().saturating_sub(1) * CHUNK_ENTRIES + last
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// All entries in order of position.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

impl<T> Index<usize> for Chunks<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        &self.chunks[index / CHUNK_ENTRIES][index % CHUNK_ENTRIES]
    }
}

impl<T> IndexMut<usize> for Chunks<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.chunks[index / CHUNK_ENTRIES][index % CHUNK_ENTRIES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_positions_across_chunks() {
        let mut list = Chunks::default();
        assert!(list.is_empty() && list.get(0).is_none());
        for number in 0..3 * CHUNK_ENTRIES + 1 {
            assert_eq!(list.len(), number);
            list.push(number);
        }
        list[CHUNK_ENTRIES] += 1;
        *list.get_mut(CHUNK_ENTRIES - 1).unwrap() += 2;
        let changed = |number| match number {
            number if number == CHUNK_ENTRIES => number + 1,
            number if number == CHUNK_ENTRIES - 1 => number + 2,
            number => number,
        };
        assert!(list.iter().copied().eq((0..list.len()).map(changed)));
        assert!((0..list.len()).all(|at| list[at] == changed(at)));
        assert!(list.get(list.len()).is_none() && list.get_mut(4 * CHUNK_ENTRIES).is_none());
    }
}
