//! Reading ahead: bytes that somebody will ask for are read behind their program, and handed over.
//!
//! A fetched piece is memory of its file, counted in its limit. It is handed over once, to a read
//! of its bytes, and dropped when something is written over it. A piece that could not be read
//! whole is dropped without a word: the read itself will say why.
//!
//! One copy more is made of what is read ahead, which pays while the program does something else.
//! So pieces begin when it has asked for nothing for a moment, a few at a time, and a read does not
//! wait for what has not begun of its bytes: it is quicker to read them by itself.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use graph::{Direction, TaskId};

use super::pace::PAUSE;
use super::state::{Job, Memory, State, Work};
use super::{FileId, Label, Refused, PIECE_BYTES_MAX, THREADS};
use crate::copying::copy_part;

/// Pieces that the engine is given at once: enough that its threads go on by themselves while the
/// processors are taken. Nobody waits for others.
const AT_ONCE_MAX: usize = 4 * THREADS as usize;

/// What could be read ahead and has not begun, of all files, and what the program does.
#[derive(Default)]
pub(super) struct Ahead {
    held: VecDeque<TaskId>,
    /// Pieces that the engine reads.
    begun: usize,
    /// Reads of the program that go on.
    readers: usize,
    /// When it last read, or asked for something to be read ahead.
    asked: Option<Instant>,
}

impl Ahead {
    /// Whether something is held.
    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// A piece may begin when the program is away.
    pub(super) fn hold(&mut self, task: TaskId) {
        self.held.push_back(task);
    }

    /// The program begins to read.
    pub(super) fn begins(&mut self) {
        self.readers += 1;
    }

    /// It goes on.
    pub(super) fn ends(&mut self) {
        self.readers -= 1;
        self.asked = Some(Instant::now());
    }

    /// The time until held pieces begin, if nothing happens.
    fn left(&self) -> Option<Duration> {
        let may_begin = self.is_holding() && self.readers == 0 && self.begun < AT_ONCE_MAX;
        may_begin.then(|| {
            self.asked.map_or(Duration::ZERO, |asked| PAUSE.saturating_sub(asked.elapsed()))
        })
    }

    /// The next piece, if one begins now.
    pub(super) fn next(&mut self) -> Option<TaskId> {
        self.left().filter(Duration::is_zero)?;
        self.held.pop_front()
    }
}

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
    /// Nothing is there, nor being read.
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
                if !self.fits(file, piece as usize)? {
                    break;
                }
                self.count(file, piece as usize);
                let memory = Memory::to_come(piece as usize);
                let work = Work::Fetch { memory, has_begun: false, is_stale: false };
                let label = Arc::new(Label::default());
                let job = Job { file, offset: at, len: piece, work, label, ticket: None };
                let task = self.submit(job, Direction::In);
                self.fetched(file).tasks.push(task);
            }
            at += piece;
        }
        self.ahead.asked = Some(Instant::now());
        self.advance();
        Ok(at - offset)
    }

    /// Begins pieces, if the program has been away for long enough; else the time until it will
    /// have been.
    pub(super) fn fetch_after_pause(&mut self) -> Option<Duration> {
        let left = self.ahead.left()?;
        if left.is_zero() {
            self.feed();
            return None;
        }
        Some(left)
    }

    fn fetched(&mut self, file: FileId) -> &mut Fetched {
        &mut self.files.get_mut(&file).expect("a file outlives what is read of it").fetched
    }

    /// Whether something of a file is there, or is being read.
    pub(super) fn has_fetched(&self, file: FileId) -> bool {
        self.files.get(&file).is_some_and(|file| !file.fetched.is_empty())
    }

    /// Whether something of a range is there already, or is being read.
    fn is_known(&self, file: FileId, offset: u64, end: u64) -> bool {
        let Some(Fetched { pieces, tasks }) = self.files.get(&file).map(|file| &file.fetched)
        else {
            return false;
        };
        pieces.iter().any(|piece| piece.overlaps(offset, end))
            || tasks.iter().any(|task| self.jobs[task].overlaps(offset, end))
    }

    /// Whether something of a range is being read ahead now.
    pub(super) fn is_fetching(&self, file: FileId, offset: u64, end: u64) -> bool {
        self.begun(file).any(|job| job.overlaps(offset, end))
    }

    /// The pieces of a file that are being read.
    fn begun(&self, file: FileId) -> impl Iterator<Item = &Job> {
        let tasks = self.files.get(&file).into_iter().flat_map(|file| &file.fetched.tasks);
        let begun = |job: &&Job| matches!(job.work, Work::Fetch { has_begun: true, .. });
        tasks.map(|task| &self.jobs[task]).filter(begun)
    }

    /// Gives a piece to the engine, if the system has memory for it.
    pub(super) fn begin_fetch(&mut self, task: TaskId) {
        let job = &self.jobs[&task];
        let (file, len) = (job.file, job.len as usize);
        let Some(room) = self.room(file, len) else { return self.end_fetch(task, false) };
        let job = self.jobs.get_mut(&task).expect("looked up above");
        let Work::Fetch { memory, has_begun, .. } = &mut job.work else {
            unreachable!("only fetches begin")
        };
        (*memory, *has_begun) = (room.empty(len), true);
        self.ahead.begun += 1;
        self.waiting.push_back(task);
    }

    /// The engine has read a piece, or not.
    pub(super) fn end_begun_fetch(&mut self, task: TaskId, is_whole: bool) {
        self.ahead.begun -= 1;
        self.end_fetch(task, is_whole);
    }

    /// A piece is over.
    pub(super) fn end_fetch(&mut self, task: TaskId, is_whole: bool) {
        self.graph.finish(task, &[], 0);
        let Job { file, offset, work, .. } = self.take(task);
        let Work::Fetch { memory, is_stale, .. } = work else {
            unreachable!("only fetches end here")
        };
        self.fetched(file).tasks.retain(|other| *other != task);
        if is_whole && !is_stale {
            self.fetched(file).pieces.push(Piece { offset, memory: Arc::new(memory) });
        } else {
            self.release(file, memory);
        }
    }

    /// Nothing that has not begun is read ahead.
    pub(super) fn drop_held(&mut self) {
        let held = std::mem::take(&mut self.ahead.held);
        held.into_iter().for_each(|task| self.end_fetch(task, false));
        self.advance();
    }

    /// A read is about to read a range by itself, as far as it is neither there nor on its way:
    /// pieces that have not begun go if their end is read.
    pub(super) fn take_back(&mut self, file: FileId, offset: u64, end: u64) {
        self.drop_unread(file, |job| {
            let has_begun = matches!(job.work, Work::Fetch { has_begun: true, .. });
            !has_begun && job.overlaps(offset, end) && job.offset + job.len <= end
        });
    }

    /// Something is written to a range: what was read of it is of no use.
    pub(super) fn drop_fetched(&mut self, file: FileId, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        self.drop_unread(file, |job| job.overlaps(offset, end));
        let Some(entry) = self.files.get_mut(&file) else { return };
        let dropped = entry.fetched.take(|piece| piece.overlaps(offset, end));
        self.give_up(file, dropped);
    }

    /// Drops pieces that are not there: held ones now, others once they have come or could begin.
    fn drop_unread(&mut self, file: FileId, is_dropped: impl Fn(&Job) -> bool) {
        let Some(entry) = self.files.get(&file) else { return };
        for task in &entry.fetched.tasks {
            let job = self.jobs.get_mut(task).expect("it is to be read");
            let drops = is_dropped(job);
            if let Work::Fetch { is_stale, .. } = &mut job.work {
                *is_stale |= drops;
            }
        }
        if !self.ahead.is_holding() {
            return;
        }
        let is_stale =
            |task: &TaskId| matches!(self.jobs[task].work, Work::Fetch { is_stale: true, .. });
        let held = std::mem::take(&mut self.ahead.held);
        let (dropped, kept): (VecDeque<_>, _) = held.into_iter().partition(is_stale);
        self.ahead.held = kept;
        dropped.into_iter().for_each(|task| self.end_fetch(task, false));
        self.advance();
    }

    fn give_up(&mut self, file: FileId, pieces: Vec<Piece>) {
        for piece in pieces {
            let memory = Arc::into_inner(piece.memory).expect("one reader at a time");
            self.release(file, memory);
        }
    }

    /// The first part of a range that is neither there nor on its way, nor in `others`.
    pub(super) fn gap(
        &self,
        file: FileId,
        (offset, end): (u64, u64),
        others: &[(u64, u64)],
    ) -> Option<(u64, u64)> {
        let pieces = self.files.get(&file).into_iter().flat_map(|file| &file.fetched.pieces);
        let mut known: Vec<(u64, u64)> = pieces
            .map(|piece| (piece.offset, piece.end()))
            .chain(self.begun(file).map(|job| (job.offset, job.offset + job.len)))
            .chain(others.iter().copied())
            .filter(|(start, until)| *start < end && offset < *until)
            .collect();
        known.sort_unstable();
        let mut at = offset;
        for (start, until) in known {
            if at < start {
                return Some((at, start));
            }
            at = at.max(until);
        }
        (at < end).then_some((at, end))
    }

    /// What is there of a read.
    pub(super) fn parts(&self, file: FileId, offset: u64, end: u64) -> Vec<Part> {
        let pieces = self.files.get(&file).into_iter().flat_map(|file| &file.fetched.pieces);
        let part = |piece: &Piece| {
            let (start, until) = (piece.offset.max(offset), piece.end().min(end));
            Part {
                memory: piece.memory.clone(),
                from: (start - piece.offset) as usize,
                to: (start - offset) as usize,
                len: (until - start) as usize,
            }
        };
        pieces.filter(|piece| piece.overlaps(offset, end)).map(part).collect()
    }

    /// A read has been given its bytes: pieces go whose end was read.
    pub(super) fn handed_over(&mut self, file: FileId, offset: u64, end: u64, parts: Vec<Part>) {
        drop(parts);
        let is_read = |piece: &Piece| piece.overlaps(offset, end) && piece.end() <= end;
        let read = self.fetched(file).take(is_read);
        self.give_up(file, read);
    }
}
