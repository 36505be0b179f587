//! An engine for one event loop: operations go in by number, what they hold comes out with them.
//!
//! The loop watches [`Ring::fd`] and calls [`Ring::poll`] when it is readable. What an operation
//! needs to keep alive (the exporter of its memory) is kept here until its completion has come; an
//! operation for which the engine has no room waits in a line.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;

use ops::{Answer, Completion, Errno, Op};

use crate::line::Line;

/// An engine with a line before it. `K` is what an operation keeps alive.
pub struct Ring<K> {
    line: Line,
    kept: HashMap<u64, K>,
    next: u64,
    completions: Vec<Completion>,
}

/// An operation that is complete.
#[derive(Debug)]
pub struct Done<K> {
    /// The number that `submit` gave.
    pub number: u64,
    /// What came of it.
    pub result: Result<Answer, Errno>,
    /// What it kept alive.
    pub kept: K,
}

impl<K> Ring<K> {
    /// With the engine that this machine gives.
    pub fn new() -> io::Result<Ring<K>> {
        let engine = engine::open(&engine::Options::default())?;
        Ok(Ring { line: Line::new(engine), kept: HashMap::new(), next: 0, completions: Vec::new() })
    }

    /// Readable when something is complete.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.line.engine.fd()
    }

    /// How many operations are not complete.
    pub fn outstanding(&self) -> usize {
        self.kept.len()
    }

    /// Starts an operation; its number. `kept` stays until it is complete.
    pub fn submit(&mut self, op: Op, kept: K) -> u64 {
        let number = self.next;
        self.next += 1;
        self.kept.insert(number, kept);
        self.line.submit(number, op);
        self.line.engine.flush();
        number
    }

    /// What is complete.
    pub fn poll(&mut self) -> Vec<Done<K>> {
        let mut all = Vec::new();
        while self.line.engine.poll(&mut self.completions) > 0 {
            for Completion { token, result, .. } in self.completions.drain(..) {
                let kept = self.kept.remove(&token).expect("each operation completes once");
                all.push(Done { number: token, result, kept });
            }
            self.line.refill();
        }
        all
    }
}

impl<K> Drop for Ring<K> {
    /// The memory belongs to the operations until they are complete.
    fn drop(&mut self) {
        while !self.kept.is_empty() {
            self.line.engine.wait(&mut self.completions, None);
            for completion in self.completions.drain(..) {
                self.kept.remove(&completion.token);
            }
            self.line.refill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ops::Buffer;
    use std::os::fd::AsRawFd;

    fn all<K>(ring: &mut Ring<K>) -> Vec<Done<K>> {
        let mut done = Vec::new();
        while ring.outstanding() > 0 {
            let mut watched =
                libc::pollfd { fd: ring.fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one valid entry; -1 is without end.
            unsafe { libc::poll(&mut watched, 1, -1) };
            done.extend(ring.poll());
        }
        done
    }

    #[test]
    fn more_operations_than_the_engine_takes_all_complete_and_give_back_what_they_kept() {
        let path = std::env::temp_dir().join(format!("alongside-ring-{}", std::process::id()));
        let mut options = std::fs::File::options();
        let file = options.create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut ring = Ring::new().unwrap();
        let count = 3 * ring.line.engine.capacity() as u64;
        for number in 0..count {
            let mut buffer = Buffer::new(8);
            buffer.as_mut_slice().copy_from_slice(&number.to_le_bytes());
            let op = Op::Write { fd: file.as_raw_fd(), buffer, offset: number * 8 };
            assert_eq!(ring.submit(op, Box::new(number)), number);
        }
        let done = all(&mut ring);
        assert_eq!(done.len() as u64, count);
        for one in done {
            assert_eq!(*one.kept, one.number);
            assert!(matches!(one.result, Ok(Answer::Bytes(8))), "{:?}", one.result);
        }
        let bytes = std::fs::read(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
        let expected: Vec<u8> = (0..count).flat_map(u64::to_le_bytes).collect();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn what_is_kept_stays_until_a_dropped_ring_has_finished() {
        let file = std::fs::File::open("/dev/zero").unwrap();
        let kept = std::sync::Arc::new(());
        let mut ring = Ring::new().unwrap();
        for _ in 0..100 {
            let op = Op::Read { fd: file.as_raw_fd(), buffer: Buffer::new(4096), offset: 0 };
            ring.submit(op, kept.clone());
        }
        drop(ring);
        assert_eq!(std::sync::Arc::strong_count(&kept), 1);
    }
}
