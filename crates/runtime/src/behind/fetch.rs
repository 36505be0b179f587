//! Reading ahead: bytes that somebody will ask for are read behind their program, and handed over.
//!
//! A fetched piece is memory of its file, counted in its limit. It is handed over once, to a read
//! that it covers (alone or with its neighbours), and dropped when something is written over it. A
//! piece that could not be read whole is dropped without a word: the read itself will say why.

use std::sync::Arc;

use graph::{Direction, TaskId};

use super::state::{Job, Memory, State, Work};
use super::{FileId, Label, Refused, PIECE_BYTES_MAX};
use crate::copying::copy_part;

/// What was read of a file and nobody has asked for, and what is being read.
#[derive(Default)]
pub(super) struct Fetched {
    pieces: Vec<Piece>,
    tasks: Vec<TaskId>,
}

struct Piece {
    offset: u64,
    memory: Arc<Memory>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset + self.memory.as_slice().len() as u64
    }

    fn overlaps(&self, offset: u64, end: u64) -> bool {
        self.offset < end && offset < self.end()
    }
}

impl Fetched {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.tasks.is_empty()
    }

    /// Takes some pieces out.
    fn take(&mut self, is_taken: impl Fn(&Piece) -> bool) -> Vec<Piece> {
        let (taken, kept) = std::mem::take(&mut self.pieces).into_iter().partition(is_taken);
        self.pieces = kept;
        taken
    }

    /// How many pieces are being read.
    pub(super) fn under_way(&self) -> usize {
        self.tasks.len()
    }
}

/// A part of what a read is given: memory, and where in it and in the read it begins.
pub(super) struct Part {
    memory: Arc<Memory>,
    from: usize,
    to: usize,
    len: usize,
}

impl Part {
    /// Copies it to its place in the read.
    pub(super) fn copy(&self, into: &mut [u8]) {
        let bytes = &self.memory.as_slice()[self.from..self.from + self.len];
        copy_part(into.len(), bytes, &mut into[self.to..self.to + self.len]);
    }
}

impl State {
    /// Reads a range ahead, as far as the file's limit allows; how many bytes that are.
    pub(super) fn fetch(&mut self, file: FileId, offset: u64, len: u64) -> Result<u64, Refused> {
        let mut at = offset;
        while at < offset + len && !self.is_changing(file) {
            let piece = (offset + len - at).min(PIECE_BYTES_MAX as u64);
            if !self.is_known(file, at, at + piece) && self.failure_in(file, at, piece).is_none() {
                let room = match self.reserve(file, piece as usize) {
                    Ok(Some(room)) => room,
                    Ok(None) | Err(Refused::Memory) => break,
                    Err(refused) => return Err(refused),
                };
                let work = Work::Fetch { memory: room.empty(piece as usize), is_stale: false };
                let label = Arc::new(Label::default());
                let job = Job { file, offset: at, len: piece, work, label, ticket: None };
                let task = self.submit(job, Direction::In);
                self.fetched(file).tasks.push(task);
            }
            at += piece;
        }
        self.advance();
        Ok(at - offset)
    }

    fn fetched(&mut self, file: FileId) -> &mut Fetched {
        &mut self.files.get_mut(&file).expect("a file outlives what is read of it").fetched
    }

    /// Whether something of a range is there already, or is being read.
    fn is_known(&self, file: FileId, offset: u64, end: u64) -> bool {
        let is_there = |piece: &Piece| piece.overlaps(offset, end);
        let is_fetched =
            self.files.get(&file).is_some_and(|file| file.fetched.pieces.iter().any(is_there));
        is_fetched || self.is_fetching(file, offset, end)
    }

    /// Whether something of a range is being read ahead.
    pub(super) fn is_fetching(&self, file: FileId, offset: u64, end: u64) -> bool {
        let overlaps = |task: &TaskId| {
            let job = &self.jobs[task];
            job.offset < end && offset < job.offset + job.len
        };
        self.files.get(&file).is_some_and(|file| file.fetched.tasks.iter().any(overlaps))
    }

    /// A piece has been read, or not.
    pub(super) fn end_fetch(&mut self, task: TaskId, is_whole: bool) {
        let Job { file, offset, work, .. } = self.take(task);
        let Work::Fetch { memory, is_stale } = work else { unreachable!("only fetches end here") };
        self.fetched(file).tasks.retain(|other| *other != task);
        if is_whole && !is_stale {
            self.fetched(file).pieces.push(Piece { offset, memory: Arc::new(memory) });
        } else {
            self.release(file, memory);
        }
    }

    /// Something is written to a range: what was read of it is of no use.
    pub(super) fn drop_fetched(&mut self, file: FileId, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let Some(entry) = self.files.get_mut(&file) else { return };
        for task in &entry.fetched.tasks {
            let job = self.jobs.get_mut(task).expect("it is being read");
            if let Work::Fetch { is_stale, .. } = &mut job.work {
                *is_stale |= job.offset < end && offset < job.offset + job.len;
            }
        }
        let dropped = entry.fetched.take(|piece| piece.overlaps(offset, end));
        self.give_up(file, dropped);
    }

    fn give_up(&mut self, file: FileId, pieces: Vec<Piece>) {
        for piece in pieces {
            let memory = Arc::into_inner(piece.memory).expect("one reader at a time");
            self.release(file, memory);
        }
    }

    /// What covers a read, in order; `None`: not all of it is there, and what is, goes.
    pub(super) fn parts(&mut self, file: FileId, offset: u64, len: u64) -> Option<Vec<Part>> {
        let end = offset + len;
        let (mut at, mut parts) = (offset, Vec::new());
        while at < end {
            let pieces = &self.files.get(&file)?.fetched.pieces;
            let Some(piece) = pieces.iter().find(|piece| piece.overlaps(at, at + 1)) else {
                drop(parts);
                self.drop_fetched(file, offset, len);
                return None;
            };
            let until = piece.end().min(end);
            let memory = piece.memory.clone();
            let (from, to) = ((at - piece.offset) as usize, (at - offset) as usize);
            parts.push(Part { memory, from, to, len: (until - at) as usize });
            at = until;
        }
        Some(parts)
    }

    /// A read has been given its bytes: pieces go whose end was read.
    pub(super) fn handed_over(&mut self, file: FileId, offset: u64, len: u64, parts: Vec<Part>) {
        drop(parts);
        let end = offset + len;
        let is_read = |piece: &Piece| piece.overlaps(offset, end) && piece.end() <= end;
        let read = self.fetched(file).take(is_read);
        self.give_up(file, read);
    }
}
