//! What is under way: the graph of byte ranges, the engine, and whose memory a piece is in.

use std::collections::{HashMap, VecDeque};
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Completion, Engine, Full};
use graph::{Access, DatumId, DatumKind, Direction, Graph, Region, Span, Target, TaskId};
use ops::{Answer, Buffer, Errno, Op};

use super::blocks::{Block, Blocks, Room};
use super::device::Device;
use super::fetch::{Ahead, Fetched};
use super::pace::{Pace, PAUSE};
use super::push::Pushes;
use super::{Failed, FileId, Label, Refused, Rules, TicketState};
use crate::copying::copy_past_the_caches;

/// So long writes wait for a pause at most: the device has nothing to do meanwhile.
const HELD_MAX: Duration = Duration::from_millis(50);

/// The memory of a piece. The buffer lies in the block, if there is one. The engine is lent parts
/// of it, so it stays until the piece is over.
pub(super) struct Memory {
    buffer: Buffer,
    block: Option<Block>,
    copied: usize,
}

impl Memory {
    /// Its bytes.
    pub(super) fn as_slice(&self) -> &[u8] {
        self.buffer.as_slice()
    }

    /// What is counted, and there once the piece begins.
    pub(super) fn to_come(len: usize) -> Memory {
        Memory { buffer: Buffer::from(Vec::new()), block: None, copied: len }
    }

    /// Somebody's bytes.
    ///
    /// # Safety
    ///
    /// As of [`Buffer::lent`], for a buffer that is only written from.
    pub(super) unsafe fn lent(start: *mut u8, len: usize) -> Memory {
        // SAFETY: the caller promised.
        Memory { buffer: unsafe { Buffer::lent(start, len) }, block: None, copied: 0 }
    }
}

impl Room {
    /// Memory to read into.
    pub(super) fn empty(self, len: usize) -> Memory {
        match self {
            Room::Small(mut bytes) => {
                bytes.resize(len, 0);
                Memory { buffer: Buffer::from(bytes), block: None, copied: len }
            }
            Room::Block(block) => {
                // SAFETY: as in `fill`; what the system maps is zeroed, so initialised.
                let buffer = unsafe { Buffer::lent(block.as_ptr(), len) };
                Memory { buffer, block: Some(block), copied: len }
            }
        }
    }

    /// Copies a piece.
    pub(super) fn fill(self, piece: &[u8]) -> Memory {
        match self {
            Room::Small(mut bytes) => {
                bytes.extend_from_slice(piece);
                Memory { buffer: Buffer::from(bytes), block: None, copied: piece.len() }
            }
            Room::Block(block) => {
                // SAFETY: a block is as large as the largest piece, and nobody else has it; the
                // buffer is dropped before the block can be used again (`State::close`).
                let mut buffer = unsafe { Buffer::lent(block.as_ptr(), piece.len()) };
                copy_past_the_caches(piece, buffer.as_mut_slice());
                Memory { buffer, block: Some(block), copied: piece.len() }
            }
        }
    }
}

pub(super) struct File {
    pub(super) fd: RawFd,
    pub(super) name: Arc<str>,
    rules: Rules,
    /// Its bytes in the graph, while something of it is under way.
    datum: Option<DatumId>,
    tasks: usize,
    copied: usize,
    /// Failures that nobody has taken.
    failures: Vec<Failed>,
    pub(super) fetched: Fetched,
    /// There was one, taken or not.
    has_failed: bool,
    /// Calls that change it by themselves just now: nothing may be read ahead meanwhile.
    changing: usize,
    pub(super) device: Device,
}

impl File {
    /// Whether nothing of it is under way.
    pub(super) fn is_still(&self) -> bool {
        self.tasks == 0
    }

    /// Nor written by the program itself just now.
    pub(super) fn pauses(&self) -> bool {
        self.is_still() && self.changing == 0
    }
}

pub(super) enum Work {
    /// So many of its bytes are written.
    Write { memory: Memory, done: u64 },
    /// It is read ahead of its reader; for nothing if something is written there meanwhile, or its
    /// reader did not wait for it.
    Fetch { memory: Memory, has_begun: bool, is_stale: bool },
    /// Its reader may begin, or not.
    Read { is_ready: bool, failed: Option<Failed> },
}

pub(super) struct Job {
    pub(super) file: FileId,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) work: Work,
    pub(super) label: Arc<Label>,
    pub(super) ticket: Option<Arc<TicketState>>,
}

impl Job {
    pub(super) fn overlaps(&self, offset: u64, end: u64) -> bool {
        self.offset < end && offset < self.offset + self.len
    }
}

/// Writes that could begin, and will when the program pauses: the system's copies of them would
/// take processors and memory from it, and only what it does itself is waited for.
#[derive(Default)]
struct Held {
    tasks: Vec<TaskId>,
    /// When the program wrote the first of them, and the last.
    written: Option<(Instant, Instant)>,
}

/// Everything under the mutex.
pub(super) struct State {
    pub(super) graph: Graph<()>,
    engine: Box<dyn Engine>,
    pub(super) files: HashMap<FileId, File>,
    pub(super) jobs: HashMap<TaskId, Job>,
    /// What the engine had no room for.
    pub(super) waiting: VecDeque<TaskId>,
    /// Writes that are not begun while the program is copying more.
    held: Held,
    /// Reads ahead that are not begun while the program reads.
    pub(super) ahead: Ahead,
    pub(super) pace: Pace,
    blocks: Blocks,
    /// Bytes of blocks that were reserved since everything was idle, and the most that may be held.
    burst: (usize, usize),
    /// Bytes of blocks that should be there for the next burst.
    spare_bytes: usize,
    next_file: u64,
    copied: usize,
    /// Threads that fork and wait until nothing is under way: nothing is taken meanwhile.
    pub(super) forks: usize,
    /// A file has become quiet that should go on to its device.
    pub(super) is_device_due: bool,
    /// Whether the thread for that was to be had, once it was needed.
    pub(super) has_device_thread: Option<bool>,
    /// The program has flushed, and will again.
    pub(super) is_flushing: bool,
    /// What was written directly, on its way to the device.
    pub(super) pushes: Pushes,
}

impl State {
    pub(super) fn new(engine: Box<dyn Engine>) -> State {
        State {
            graph: Graph::default(),
            engine,
            files: HashMap::new(),
            jobs: HashMap::new(),
            waiting: VecDeque::new(),
            held: Held::default(),
            ahead: Ahead::default(),
            pace: Pace::default(),
            blocks: Blocks::default(),
            burst: (0, 0),
            spare_bytes: 0,
            next_file: 0,
            copied: 0,
            forks: 0,
            is_device_due: false,
            has_device_thread: None,
            is_flushing: false,
            pushes: Pushes::default(),
        }
    }

    pub(super) fn add(&mut self, fd: RawFd, name: &str, rules: Rules) -> FileId {
        let id = FileId(self.next_file);
        self.next_file += 1;
        let name = Arc::from(name);
        let (datum, tasks, copied, failures) = (None, 0, 0, Vec::new());
        let (has_failed, fetched, changing) = (false, Fetched::default(), 0);
        let file = File {
            fd,
            name,
            rules,
            datum,
            tasks,
            copied,
            failures,
            fetched,
            has_failed,
            changing,
            device: Device::default(),
        };
        self.files.insert(id, file);
        id
    }

    pub(super) fn remove(&mut self, file: FileId) {
        self.drop_fetched(file, 0, u64::MAX);
        let file = self.files.remove(&file);
        assert!(
            file.is_none_or(|file| file.tasks == 0),
            "a file is drained before it is forgotten"
        );
    }

    /// Memory for a piece, counted; `None`: the file has as much as it may.
    /// [`Refused::Memory`]: the system has none.
    pub(super) fn reserve(&mut self, file: FileId, len: usize) -> Result<Option<Room>, Refused> {
        if !self.fits(file, len)? {
            return Ok(None);
        }
        let room = self.room(file, len).ok_or(Refused::Memory)?;
        self.count(file, len);
        Ok(Some(room))
    }

    /// Whether a file may have so much more memory.
    pub(super) fn fits(&self, file: FileId, len: usize) -> Result<bool, Refused> {
        let entry = self.files.get(&file).ok_or(Refused::Forgotten)?;
        Ok(entry.copied == 0 || entry.copied + len <= entry.rules.limit_bytes)
    }

    /// A file has so much more memory.
    pub(super) fn count(&mut self, file: FileId, len: usize) {
        self.files.get_mut(&file).expect("looked up by the caller").copied += len;
        self.copied += len;
    }

    /// Memory for a piece that is counted by itself.
    pub(super) fn room(&mut self, file: FileId, len: usize) -> Option<Room> {
        let room = self.blocks.room(len)?;
        if matches!(room, Room::Block(_)) {
            let limit_bytes = self.files.get(&file).map_or(0, |file| file.rules.limit_bytes);
            self.burst = (self.burst.0 + len, self.burst.1.max(limit_bytes));
        }
        Some(room)
    }

    pub(super) fn submit_write(
        &mut self,
        file: FileId,
        offset: u64,
        memory: Memory,
        label: &Arc<Label>,
        ticket: Option<&Arc<TicketState>>,
    ) -> Result<(), Refused> {
        if !self.files.contains_key(&file) {
            return Err(Refused::Forgotten);
        }
        let len = memory.buffer.len() as u64;
        self.drop_fetched(file, offset, len);
        if let Some(ticket) = ticket {
            ticket.left.fetch_add(1, Ordering::AcqRel);
        }
        let (label, ticket) = (label.clone(), ticket.cloned());
        self.hold();
        let work = Work::Write { memory, done: 0 };
        let job = Job { file, offset, len, work, label, ticket };
        self.submit(job, Direction::Out);
        self.advance();
        Ok(())
    }

    /// Holds the next write if nothing is under way, unless others are held for long. What is not
    /// held lets the others go.
    fn hold(&mut self) {
        let is_busy = self.engine.in_flight() > 0 || !self.waiting.is_empty();
        let now = Instant::now();
        let first = self.held.written.map_or(now, |(first, _)| first);
        if is_busy || now - first > HELD_MAX {
            self.begin();
        } else {
            self.held.written = Some((first, now));
        }
    }

    /// Begins what is held.
    pub(super) fn begin(&mut self) {
        let Held { tasks, .. } = std::mem::take(&mut self.held);
        if !tasks.is_empty() {
            self.waiting.extend(tasks);
            self.feed();
        }
    }

    /// Begins what is held, if the program has paused; else the time until it will have.
    pub(super) fn begin_after_pause(&mut self) -> Option<Duration> {
        let (_, last) = self.held.written?;
        let left = PAUSE.saturating_sub(last.elapsed());
        if left.is_zero() {
            self.begin();
            return None;
        }
        Some(left)
    }

    /// Whether writes are held.
    pub(super) fn is_holding(&self) -> bool {
        self.held.written.is_some()
    }

    /// The task of a read. It fails at once where something that it overlaps has failed before.
    pub(super) fn submit_read(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
    ) -> Result<TaskId, Failed> {
        if let Some(failed) = self.failure_in(file, offset, len) {
            return Err(failed.clone());
        }
        let label = Arc::default();
        let work = Work::Read { is_ready: false, failed: None };
        let job = Job { file, offset, len, work, label, ticket: None };
        let task = self.submit(job, Direction::In);
        self.advance();
        Ok(task)
    }

    /// What has failed in a range, and nobody was told.
    pub(super) fn failure_in(&self, file: FileId, offset: u64, len: u64) -> Option<&Failed> {
        let overlaps =
            |failed: &&Failed| failed.offset < offset + len && offset < failed.offset + failed.len;
        self.files.get(&file)?.failures.iter().find(overlaps)
    }

    pub(super) fn submit(&mut self, job: Job, direction: Direction) -> TaskId {
        let file = self.files.get_mut(&job.file).expect("looked up by the caller");
        let datum = *file.datum.get_or_insert_with(|| {
            self.graph.add_datum(DatumKind::InPlace, None).expect("there is no first version")
        });
        file.tasks += 1;
        let span = Span { start: job.offset, end: job.offset + job.len };
        let target = Target::Datum(datum);
        let access = Access { target, region: Region::Range(span), direction };
        let task =
            self.graph.submit(0, &[access]).expect("one access to a range that is not empty");
        self.jobs.insert(task, job);
        task
    }

    /// Whether a read may begin; its end, if what it needs has failed.
    pub(super) fn is_ready(&mut self, task: TaskId) -> Result<bool, Failed> {
        let Work::Read { is_ready, failed } = &self.jobs[&task].work else {
            unreachable!("only reads are asked for")
        };
        match failed.clone() {
            Some(failed) => {
                self.close(task);
                Err(failed)
            }
            None => Ok(*is_ready),
        }
    }

    pub(super) fn end_read(&mut self, task: TaskId) {
        self.graph.finish(task, &[], 0);
        self.close(task);
        self.advance();
    }

    /// Follows the graph: what is ready goes to the engine, as far as it takes it.
    pub(super) fn advance(&mut self) {
        while let Some(task) = self.graph.pop_ready() {
            // What has failed is lost to who reads it until somebody was told.
            let Job { file, offset, len, .. } = self.jobs[&task];
            let lost = self.failure_in(file, offset, len).cloned();
            match &mut self.jobs.get_mut(&task).expect("looked at above").work {
                Work::Read { failed, .. } if lost.is_some() => {
                    *failed = lost;
                    self.graph.finish(task, &[], 0);
                }
                Work::Fetch { is_stale, .. } if *is_stale || lost.is_some() || self.forks > 0 => {
                    self.end_fetch(task, false);
                }
                Work::Read { is_ready, .. } => *is_ready = true,
                Work::Write { .. } if self.held.written.is_some() => self.held.tasks.push(task),
                Work::Write { .. } => self.waiting.push_back(task),
                Work::Fetch { .. } => self.ahead.hold(task),
            }
        }
        while self.graph.pop_settled().is_some() {}
        while self.graph.pop_obsolete().is_some() {}
        self.feed();
    }

    pub(super) fn feed(&mut self) {
        let mut fed = false;
        while let Some(task) = self.ahead.next() {
            self.begin_fetch(task);
        }
        while let Some(task) = self.waiting.pop_front() {
            let op = self.operation(task);
            if let Err(Full(_)) = self.engine.submit(task.to_bits(), op) {
                self.waiting.push_front(task);
                break;
            }
            fed = true;
        }
        if fed {
            self.engine.flush();
        }
    }

    /// What the engine is to do for a task. It is lent the memory, which stays until the task is
    /// closed: after the completion.
    fn operation(&mut self, task: TaskId) -> Op {
        let Job { file, offset, work, .. } = self.jobs.get_mut(&task).expect("it waits");
        let fd = self.files[file].fd;
        match work {
            Work::Write { memory, done } => {
                let rest = &memory.buffer.as_slice()[*done as usize..];
                // SAFETY: as above, and it is only written from.
                let buffer = unsafe { Buffer::lent(rest.as_ptr().cast_mut(), rest.len()) };
                Op::Write { fd, buffer, offset: *offset + *done }
            }
            Work::Fetch { memory, .. } => {
                let (start, len) = (memory.buffer.as_mut_ptr(), memory.buffer.len());
                // SAFETY: as above, and nobody looks at it before the completion.
                let buffer = unsafe { Buffer::lent(start, len) };
                Op::Read { fd, buffer, offset: *offset }
            }
            Work::Read { .. } => unreachable!("a reader reads by itself"),
        }
    }

    /// Takes what the engine has done.
    pub(super) fn poll(&mut self, done: &mut Vec<Completion>) {
        self.engine.poll(done);
    }

    /// What of the completions should go on to the device.
    pub(super) fn written(&self, done: &[Completion], least: u64) -> Vec<(RawFd, u64, u64)> {
        let range = |completion: &Completion| {
            let job = self.jobs.get(&TaskId::from_bits(completion.token))?;
            let is_write = matches!(job.work, Work::Write { .. });
            let is_long = is_write && completion.result.is_ok() && job.len >= least;
            is_long.then(|| (self.files[&job.file].fd, job.offset, job.len))
        };
        done.iter().filter_map(range).collect()
    }

    /// Ends writes. One that was cut short goes on: the rest says why, if there is a reason.
    pub(super) fn end(&mut self, done: &mut Vec<Completion>) {
        for Completion { token, result, .. } in done.drain(..) {
            let task = TaskId::from_bits(token);
            let job = &self.jobs[&task];
            if matches!(job.work, Work::Fetch { .. }) {
                let is_whole = matches!(result, Ok(Answer::Bytes(count)) if count == job.len);
                self.end_begun_fetch(task, is_whole);
                continue;
            }
            match self.is_over(task, result) {
                Ok(false) => self.waiting.push_back(task),
                Ok(true) => {
                    let Job { file, offset, len, .. } = self.jobs[&task];
                    self.note_written(file, offset, len);
                    self.graph.finish(task, &[], 0);
                    self.close(task);
                }
                Err(errno) => {
                    self.fail(task, errno);
                    self.close(task);
                }
            }
        }
        self.advance();
    }

    fn is_over(&mut self, task: TaskId, result: Result<Answer, Errno>) -> Result<bool, Errno> {
        let job = self.jobs.get_mut(&task).expect("a completion is of a task that is there");
        let Work::Write { done, .. } = &mut job.work else {
            unreachable!("the engine only writes")
        };
        match result? {
            // No byte and no reason is what a device gives that is full.
            Answer::Bytes(0) => Err(Errno(libc::ENOSPC)),
            Answer::Bytes(count) => {
                *done += count;
                Ok(*done == job.len)
            }
            answer => unreachable!("a write is answered with {answer:?}"),
        }
    }

    fn fail(&mut self, task: TaskId, errno: Errno) {
        let job = &self.jobs[&task];
        let file = self.files.get_mut(&job.file).expect("a file outlives its tasks");
        let Job { offset, len, .. } = *job;
        let label = job.label.clone();
        let failed = Failed { file: file.name.clone(), offset, len, label, errno, why: None };
        if let Some(ticket) = &job.ticket {
            ticket.failed.lock().get_or_insert_with(|| failed.clone());
        }
        match file.failures.iter_mut().find(|other| is_beside(other, &failed)) {
            Some(other) => {
                other.offset = other.offset.min(failed.offset);
                other.len += failed.len;
            }
            None => file.failures.push(failed.clone()),
        }
        file.has_failed = true;
        // For the order it is over like any other: what is lost stands in the file's failures.
        self.graph.finish(task, &[], 0);
    }

    /// A task is over: what it had is free.
    fn close(&mut self, task: TaskId) {
        let job = self.take(task);
        if let Work::Write { memory, .. } = job.work {
            self.release(job.file, memory);
        }
        if let Some(ticket) = &job.ticket {
            ticket.left.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Takes a task out that is over.
    pub(super) fn take(&mut self, task: TaskId) -> Job {
        let job = self.jobs.remove(&task).expect("a task is over once");
        let file = self.files.get_mut(&job.file).expect("a file outlives its tasks");
        file.tasks -= 1;
        if file.tasks == 0 {
            // What was written needs no remembering: nothing is left to be put in order.
            let datum = file.datum.take().expect("a file with tasks has a datum");
            self.graph.drop_datum(datum);
            self.is_device_due |= file.device.is_enough();
        }
        job
    }

    /// Memory of a file is free. The buffer goes first: it lies in the block.
    pub(super) fn release(&mut self, file: FileId, memory: Memory) {
        let Memory { buffer, block, copied } = memory;
        self.files.get_mut(&file).expect("a file outlives its memory").copied -= copied;
        self.copied -= copied;
        drop(buffer);
        block.into_iter().for_each(|block| self.blocks.give_back(block));
    }

    pub(super) fn is_quiet(&self, file: FileId) -> bool {
        self.files.get(&file).is_none_or(|file| {
            file.tasks == 0 && file.failures.is_empty() && file.fetched.is_empty()
        })
    }

    /// Somebody begins, or ends, to change a file by itself.
    pub(super) fn change(&mut self, file: FileId, begins: bool) {
        if let Some(file) = self.files.get_mut(&file) {
            file.changing =
                if begins { file.changing + 1 } else { file.changing.saturating_sub(1) };
        }
    }

    /// Whether somebody changes it by itself.
    pub(super) fn is_changing(&self, file: FileId) -> bool {
        self.files.get(&file).is_some_and(|file| file.changing > 0)
    }

    pub(super) fn has_failed(&self, file: FileId) -> bool {
        self.files.get(&file).is_some_and(|file| file.has_failed)
    }

    pub(super) fn under_way(&self, file: FileId) -> usize {
        self.files.get(&file).map_or(0, |file| file.tasks - file.fetched.under_way())
    }

    /// Whether nothing of a file is under way, also nothing that is read ahead.
    pub(super) fn is_still(&self, file: FileId) -> bool {
        self.files.get(&file).is_none_or(File::is_still)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether something is being written to one of these ranges, which are in order.
    pub(super) fn is_writing(&self, file: FileId, ranges: &[(u64, u64)]) -> bool {
        self.under_way(file) > 0
            && self.jobs.values().any(|job| {
                let is_write = matches!(job.work, Work::Write { .. });
                is_write && job.file == file && is_in(ranges, job.offset, job.len)
            })
    }

    pub(super) fn take_failures_in(&mut self, file: FileId, ranges: &[(u64, u64)]) -> Vec<Failed> {
        let Some(file) = self.files.get_mut(&file) else { return Vec::new() };
        let all = std::mem::take(&mut file.failures);
        let (taken, rest) =
            all.into_iter().partition(|failed| is_in(ranges, failed.offset, failed.len));
        file.failures = rest;
        taken
    }

    pub(super) fn take_failures(&mut self, file: FileId) -> Vec<Failed> {
        let Some(entry) = self.files.get_mut(&file) else { return Vec::new() };
        let failures = std::mem::take(&mut entry.failures);
        failures.into_iter().chain(entry.device.take_failure()).collect()
    }

    pub(super) fn forget_failure(&mut self, file: FileId, told: &Failed) {
        if let Some(file) = self.files.get_mut(&file) {
            file.failures.retain(|failed| !Arc::ptr_eq(&failed.label, &told.label));
        }
    }

    pub(super) fn copied_bytes(&self) -> usize {
        self.copied
    }

    /// When free memory was last used; `None`: there is none.
    pub(super) fn blocks_used_at(&self) -> Option<Instant> {
        self.blocks.used_at()
    }

    /// Gives a free block to the system: one, since a gibibyte of them takes a tenth of a second,
    /// and who writes needs the lock.
    pub(super) fn drop_block(&mut self) {
        self.blocks.drop_one();
        self.spare_bytes = 0;
    }

    /// Whether another block should be made while nothing goes on: a program that wrote so much
    /// without a pause, in a step, will write it again, and not always find as much of it written
    /// already. At most as many again as there are.
    pub(super) fn wants_spare(&mut self) -> bool {
        if !self.is_idle() {
            return false;
        }
        let there = self.blocks.free_bytes() + self.copied;
        let (bytes, limit_bytes) = std::mem::take(&mut self.burst);
        if bytes > 0 {
            self.spare_bytes = bytes.min(limit_bytes).min(2 * there);
        }
        there < self.spare_bytes
    }

    /// A block that was made; `None`: the system gives none.
    pub(super) fn add_spare(&mut self, block: Option<Block>) {
        match block {
            Some(block) => self.blocks.give_back(block),
            None => self.spare_bytes = 0,
        }
    }

    /// What a child has in its place: nothing of this will ever end there.
    pub(super) fn orphan(&self) -> State {
        let mut state = State::new(Box::new(NoEngine));
        state.next_file = self.next_file;
        state
    }
}

/// Whether some of `len` bytes at an offset are in ranges (offset, length) that are in order.
fn is_in(ranges: &[(u64, u64)], offset: u64, len: u64) -> bool {
    let after = ranges.partition_point(|(start, _)| *start < offset.saturating_add(len));
    ranges[..after].last().is_some_and(|(start, length)| start.saturating_add(*length) > offset)
}

/// Whether a piece failed as one beside it did, of the same write.
fn is_beside(one: &Failed, other: &Failed) -> bool {
    let is_same_write = Arc::ptr_eq(&one.label, &other.label);
    let (end, other_end) = (one.offset + one.len, other.offset + other.len);
    let is_adjacent = end == other.offset || other_end == one.offset;
    is_same_write && one.errno == other.errno && is_adjacent
}

/// Takes nothing: the engine of a child.
struct NoEngine;

impl Engine for NoEngine {
    fn submit(&mut self, _: u64, op: Op) -> Result<(), Full> {
        Err(Full(op))
    }

    fn flush(&mut self) {}

    fn poll(&mut self, _: &mut Vec<Completion>) -> usize {
        0
    }

    fn wait(&mut self, _: &mut Vec<Completion>, _: Option<std::time::Duration>) -> usize {
        0
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn capacity(&self) -> usize {
        0
    }

    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        unreachable!("nobody watches the engine of a child")
    }

    fn about(&self) -> engine::About {
        engine::About { name: "none", reason: "a forked child has no engine".into() }
    }
}
