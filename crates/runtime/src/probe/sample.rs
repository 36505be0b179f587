//! One measurement: so many at once, each with one operation under way, block after block.
//!
//! Writer `i` of `w` goes through the files `i`, `i + w`, `i + 2w`, ..., so that few writers see as
//! much of the device as many do, and no two share a file. Before a file is read again the system
//! has to forget it, or its memory would be measured. Together they take from one count of
//! operations until it is used up or the time is over; those that wrote then flush, as many at
//! once as wrote.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use engine::{Buffer, Completion, Engine, Op};

use super::files::Files;
use super::plan::{Cell, Kind};
use super::ProbeError;

/// Does measurements, one after the other.
pub(super) struct Sampler {
    engine: Box<dyn Engine>,
    pub(super) files: Files,
    file_bytes: u64,
    completions: Vec<Completion>,
    /// Of the last measurement, for the next one: to fill new memory takes time, in which storage
    /// that is limited to a rate becomes willing to let more pass at once.
    memory: Vec<Buffer>,
}

/// Where a writer is: which of its files, and where in it.
#[derive(Clone, Copy)]
struct Place {
    file: usize,
    offset: u64,
}

impl Sampler {
    pub(super) fn new(files: Files, file_bytes: u64) -> Result<Sampler, ProbeError> {
        // Threads, where there is no ring, must be as many as operations: each may block.
        let depth = u32::try_from(files.count()).unwrap_or(u32::MAX).max(8);
        let options = engine::Options { depth, threads: depth, ..Default::default() };
        let engine = engine::open(&options);
        let engine = engine.map_err(|error| files.failed("cannot open an engine", error))?;
        Ok(Sampler { engine, files, file_bytes, completions: Vec::new(), memory: Vec::new() })
    }

    /// What does the operations.
    pub(super) fn engine(&self) -> &'static str {
        self.engine.about().name
    }

    /// Writes a part of a file for the first time; the last one flushes it.
    pub(super) fn lay_out(&mut self, file: usize, from: u64, to: u64) -> Result<(), ProbeError> {
        let block_bytes = (to - from).min(1 << 20);
        let mut offset = from;
        while offset < to {
            let bytes = block_bytes.min(to - offset);
            let fd = self.files.fd(file);
            let op = Op::Write { fd, buffer: filled(bytes, offset), offset };
            self.begin(0, op);
            self.finish_one(bytes)?;
            offset += bytes;
        }
        if to == self.file_bytes {
            self.flush_files(1, [file].into())?;
        }
        Ok(())
    }

    /// Measures: the bytes that were moved, and the nanoseconds that it took. `turn` says with
    /// which of its files a writer begins.
    pub(super) fn sample(
        &mut self,
        cell: Cell,
        bytes: u64,
        time: Duration,
        turn: usize,
    ) -> Result<(u64, u64), ProbeError> {
        let writers = cell.writers as usize;
        let mut left = (bytes / cell.block_bytes).max(u64::from(cell.writers));
        let mut places: Vec<Place> = (0..writers)
            .map(|writer| {
                let own = (self.files.count() - writer).div_ceil(writers);
                Place { file: writer + turn % own * writers, offset: 0 }
            })
            .collect();
        let mut touched = BTreeSet::new();
        self.keep_memory(cell);
        self.files.forget();
        let started = Instant::now();
        for writer in (0..writers).rev() {
            let buffer = self.memory.pop().expect("one for each");
            touched.insert(places[writer].file);
            self.begin(writer as u64, operation(cell.kind, &self.files, places[writer], buffer));
            left -= 1;
        }
        let mut moved = 0;
        while self.engine.in_flight() > 0 {
            for completion in self.completed() {
                moved += whole(&self.files, &completion, cell.block_bytes)?;
                let buffer = buffer_of(completion.op);
                if left == 0 || started.elapsed() >= time {
                    self.memory.push(buffer);
                    continue;
                }
                left -= 1;
                let writer = completion.token as usize;
                self.advance(&mut places[writer], cell);
                touched.insert(places[writer].file);
                let op = operation(cell.kind, &self.files, places[writer], buffer);
                self.begin(completion.token, op);
            }
        }
        if cell.kind == Kind::Write {
            self.flush_files(writers, touched)?;
        }
        Ok((moved, started.elapsed().as_nanos() as u64))
    }

    fn advance(&self, place: &mut Place, cell: Cell) {
        let writers = cell.writers as usize;
        place.offset += cell.block_bytes;
        if place.offset + cell.block_bytes > self.file_bytes {
            place.offset = 0;
            place.file += writers;
            if place.file >= self.files.count() {
                place.file %= writers;
            }
            if cell.kind == Kind::Read {
                self.files.forget_one(place.file);
            }
        }
    }

    /// Has at least one block for each writer in memory.
    fn keep_memory(&mut self, cell: Cell) {
        self.memory.retain(|buffer| buffer.len() as u64 == cell.block_bytes);
        for writer in self.memory.len()..cell.writers as usize {
            self.memory.push(filled(cell.block_bytes, writer as u64));
        }
    }

    fn begin(&mut self, token: u64, op: Op) {
        let taken = self.engine.submit(token, op);
        assert!(taken.is_ok(), "no more operations at once than the engine was opened for");
    }

    /// Waits for some completions.
    fn completed(&mut self) -> Vec<Completion> {
        self.engine.flush();
        let mut completions = std::mem::take(&mut self.completions);
        self.engine.wait(&mut completions, None);
        completions
    }

    fn finish_one(&mut self, bytes: u64) -> Result<(), ProbeError> {
        while self.engine.in_flight() > 0 {
            for completion in self.completed() {
                whole(&self.files, &completion, bytes)?;
            }
        }
        Ok(())
    }

    /// Flushes files, so many at once.
    fn flush_files(&mut self, at_once: usize, files: BTreeSet<usize>) -> Result<(), ProbeError> {
        let mut files = files.into_iter();
        loop {
            while self.engine.in_flight() < at_once {
                let Some(file) = files.next() else { break };
                let fd = self.files.fd(file);
                self.begin(0, Op::Fsync { fd });
            }
            if self.engine.in_flight() == 0 {
                return Ok(());
            }
            for completion in self.completed() {
                whole(&self.files, &completion, 0)?;
            }
        }
    }
}

/// Memory that does not compress, other at every call with another seed.
fn filled(bytes: u64, seed: u64) -> Buffer {
    let mut buffer = Buffer::new(bytes as usize);
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for word in buffer.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_ne_bytes());
    }
    buffer
}

fn operation(kind: Kind, files: &Files, place: Place, buffer: Buffer) -> Op {
    let (fd, offset) = (files.fd(place.file), place.offset);
    match kind {
        Kind::Read => Op::Read { fd, buffer, offset },
        Kind::Write => Op::Write { fd, buffer, offset },
    }
}

fn buffer_of(op: Op) -> Buffer {
    match op {
        Op::Read { buffer, .. } | Op::Write { buffer, .. } => buffer,
        other => unreachable!("{other:?} is no transfer"),
    }
}

/// The bytes of an operation that did all that it should.
fn whole(files: &Files, completion: &Completion, bytes: u64) -> Result<u64, ProbeError> {
    let what = match &completion.op {
        Op::Read { .. } => "cannot read back what was written",
        Op::Write { .. } => "cannot write",
        _ => "cannot flush",
    };
    match &completion.result {
        Ok(answer) if answer.bytes() == bytes => Ok(bytes),
        Ok(_) => Err(files.failed(what, io::Error::from(io::ErrorKind::UnexpectedEof))),
        Err(errno) => Err(files.failed(what, io::Error::from_raw_os_error(errno.0))),
    }
}
