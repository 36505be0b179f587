//! What the program has written directly is handed to the device behind it.
//!
//! A piece that the engine writes is handed over when it ends. Here a program has written by itself
//! and goes on: the thread hands over what has come together meanwhile.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use super::state::State;
use super::{FileId, PIECE_BYTES_MAX};

/// So much is handed to the device at once.
pub(super) const PUSHED_BYTES_MIN: u64 = 256 << 10;

/// It is a hint: if so many ranges wait, the oldest are left to who syncs.
const RANGES_MAX: usize = 4096;

/// Ranges (first, end) of files that the system has, and the device has not been handed.
#[derive(Default)]
pub(super) struct Pushes {
    ranges: VecDeque<(FileId, (u64, u64))>,
    bytes: u64,
    /// The thread has its descriptor.
    now: Option<FileId>,
}

impl Pushes {
    fn add(&mut self, file: FileId, first: u64, end: u64) {
        self.bytes += end - first;
        match self.ranges.back_mut() {
            Some((last, (_, last_end))) if *last == file && *last_end == first => *last_end = end,
            _ => self.ranges.push_back((file, (first, end))),
        }
        while self.ranges.len() > RANGES_MAX {
            let oldest = self.ranges.pop_front();
            self.bytes -= oldest.map_or(0, |(_, (first, end))| end - first);
        }
    }

    /// The next piece: offset and length.
    fn next(&mut self) -> Option<(FileId, u64, u64)> {
        if self.bytes < PUSHED_BYTES_MIN {
            return None;
        }
        let (file, (first, end)) = self.ranges.front_mut()?;
        let (file, at, len) = (*file, *first, (*end - *first).min(PIECE_BYTES_MAX as u64));
        *first += len;
        if first == end {
            self.ranges.pop_front();
        }
        self.bytes -= len;
        self.now = Some(file);
        Some((file, at, len))
    }

    /// A file will be closed: the rest of it is left to the system. Whether its descriptor is not
    /// used.
    pub(super) fn leave(&mut self, file: FileId) -> bool {
        self.ranges.retain(|(other, _)| *other != file);
        self.bytes = self.ranges.iter().map(|(_, (first, end))| end - first).sum();
        self.now != Some(file)
    }
}

impl State {
    /// The program has written a range by itself. Whether the thread has something to do.
    pub(super) fn note_direct(&mut self, file: FileId, offset: u64, len: u64) -> bool {
        if !self.files.contains_key(&file) {
            return false;
        }
        self.note_written(file, offset, len);
        self.pushes.add(file, offset, offset + len);
        self.pushes.bytes >= PUSHED_BYTES_MIN
    }

    /// What the thread should hand to the device: descriptor, offset and length.
    pub(super) fn next_push(&mut self) -> Option<(RawFd, u64, u64)> {
        let (file, at, len) = self.pushes.next()?;
        Some((self.files[&file].fd, at, len))
    }

    /// It has.
    pub(super) fn end_push(&mut self) {
        let file = self.pushes.now.take().and_then(|file| self.files.get(&file));
        self.is_device_due |= file.is_some_and(|file| file.device.is_enough());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId(0);
    const OTHER: FileId = FileId(1);
    const PIECE: u64 = PIECE_BYTES_MAX as u64;

    #[test]
    fn what_comes_together_is_handed_over_in_pieces_of_a_size() {
        let mut pushes = Pushes::default();
        pushes.add(FILE, 0, PUSHED_BYTES_MIN - 1);
        assert_eq!(pushes.next(), None);
        pushes.add(FILE, PUSHED_BYTES_MIN - 1, PIECE + PUSHED_BYTES_MIN);
        pushes.add(OTHER, 7, 9);
        assert_eq!(pushes.next(), Some((FILE, 0, PIECE)));
        assert_eq!(pushes.next(), Some((FILE, PIECE, PUSHED_BYTES_MIN)));
        assert_eq!(pushes.next(), None, "the rest is too little");
        assert_eq!((pushes.bytes, pushes.ranges.len()), (2, 1));
    }

    #[test]
    fn a_file_that_will_be_closed_is_left_once_its_descriptor_is_not_used() {
        let mut pushes = Pushes::default();
        pushes.add(FILE, 0, 2 * PIECE);
        pushes.add(OTHER, 0, PIECE);
        assert_eq!(pushes.next(), Some((FILE, 0, PIECE)));
        assert!(!pushes.leave(FILE));
        assert!(pushes.leave(OTHER));
        pushes.now = None;
        assert!(pushes.leave(FILE));
        assert_eq!((pushes.next(), pushes.bytes), (None, 0));
    }

    #[test]
    fn ranges_that_nobody_hands_over_do_not_fill_memory() {
        let mut pushes = Pushes::default();
        let many = 2 * RANGES_MAX as u64;
        (0..many).for_each(|at| pushes.add(FILE, 10 * at, 10 * at + 1));
        assert_eq!((pushes.ranges.len(), pushes.bytes), (RANGES_MAX, RANGES_MAX as u64));
    }
}
