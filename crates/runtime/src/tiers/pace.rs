//! How much of a copy is under way at a time. A copy that is told to wait must not leave the device
//! busy: what lies in the page cache would be written before what tasks read. So what was copied is
//! sent to the device at once, and the copy is never more than two chunks ahead of it.

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::write_out::write_out;

/// A chunk takes about so long, at least and at most: that is how long I/O tasks wait for it.
const CHUNK_NS: std::ops::Range<u64> = 4_000_000..16_000_000;
/// And is so large.
const CHUNK_BYTES_MIN: usize = 256 << 10;
const CHUNK_BYTES_FIRST: usize = 1 << 20;
const CHUNK_BYTES_MAX: usize = 16 << 20;

/// The pace of one copy.
pub(super) struct Pace {
    chunk: usize,
    adapts: bool,
    /// Where the chunk before begins, which may still be on its way to the device.
    before: u64,
    /// Where the next begins.
    next: u64,
}

impl Pace {
    /// For a new copy; with `fixed`, in chunks of so many bytes.
    pub(super) fn new(fixed: Option<u64>) -> Pace {
        let chunk = fixed.map_or(CHUNK_BYTES_FIRST, |bytes| bytes as usize);
        Pace { chunk, adapts: fixed.is_none(), before: 0, next: 0 }
    }

    /// How many bytes are copied next.
    pub(super) fn chunk(&self) -> usize {
        self.chunk
    }

    /// So many bytes were copied since then. Returns when the chunk before is on the device.
    pub(super) fn moved(&mut self, copy: &File, bytes: usize, began_ns: u64) {
        let (before, at) = (self.before, self.next);
        (self.before, self.next) = (at, at + bytes as u64);
        // Only hints: the copy is flushed in the end, and that says what failed.
        let _ = write_out(copy.as_raw_fd(), at, bytes as u64, false);
        if before < at {
            let _ = write_out(copy.as_raw_fd(), before, at - before, true);
        }
        if self.adapts {
            self.adapt(exec::now_ns().saturating_sub(began_ns));
        }
    }

    fn adapt(&mut self, took_ns: u64) {
        self.chunk = match took_ns {
            ns if ns < CHUNK_NS.start => (self.chunk * 2).min(CHUNK_BYTES_MAX),
            ns if ns > CHUNK_NS.end => (self.chunk / 2).max(CHUNK_BYTES_MIN),
            _ => self.chunk,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_become_as_large_as_the_device_takes_in_time() {
        let mut pace = Pace::new(None);
        (0..10).for_each(|_| pace.adapt(0));
        assert_eq!(pace.chunk(), CHUNK_BYTES_MAX);
        pace.adapt(CHUNK_NS.start);
        assert_eq!(pace.chunk(), CHUNK_BYTES_MAX);
        (0..10).for_each(|_| pace.adapt(CHUNK_NS.end + 1));
        assert_eq!(pace.chunk(), CHUNK_BYTES_MIN);
    }

    #[test]
    fn a_fixed_pace_stays() {
        let path = std::env::temp_dir().join(format!("alongside-pace-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        file.set_len(30).unwrap();
        let mut pace = Pace::new(Some(10));
        for _ in 0..3 {
            pace.moved(&file, 10, 0);
        }
        assert_eq!((pace.chunk(), pace.before, pace.next), (10, 20, 30));
        std::fs::remove_file(path).unwrap();
    }
}
