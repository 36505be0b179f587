//! What is under way: the graph of byte ranges, the engine, and whose memory a piece is in.

use std::collections::{HashMap, VecDeque};
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;

use engine::{Completion, Engine, Full};
use graph::{Access, DatumId, DatumKind, Direction, Graph, Region, Span, Target, TaskId};
use ops::{Answer, Buffer, Errno, Op};

use super::blocks::{Block, Blocks, Room};
use super::{Failed, FileId, Label, Refused, Rules, TicketState};

/// The memory of a piece. The buffer lies in the block, if there is one.
pub(super) struct Memory {
    buffer: Buffer,
    block: Option<Block>,
    copied: usize,
}

impl Memory {
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
    /// Copies a piece.
    pub(super) fn fill(self, piece: &[u8]) -> Memory {
        match self {
            Room::Small => {
                Memory { buffer: Buffer::from(piece.to_vec()), block: None, copied: piece.len() }
            }
            Room::Block(block) => {
                // SAFETY: a block is as large as the largest piece, and nobody else has it; the
                // buffer is dropped before the block can be used again (`State::free`).
                let buffer = unsafe {
                    std::ptr::copy_nonoverlapping(piece.as_ptr(), block.as_ptr(), piece.len());
                    Buffer::lent(block.as_ptr(), piece.len())
                };
                Memory { buffer, block: Some(block), copied: piece.len() }
            }
        }
    }
}

struct File {
    fd: RawFd,
    name: Arc<str>,
    rules: Rules,
    /// Its bytes in the graph, while something of it is under way.
    datum: Option<DatumId>,
    tasks: usize,
    copied: usize,
    /// Failures that nobody has taken.
    failures: Vec<Failed>,
    /// There was one, taken or not.
    has_failed: bool,
}

enum Work {
    /// Nobody has begun it.
    Write(Op),
    /// The engine has it.
    Begun,
    /// Its reader may begin, or not.
    Read { is_ready: bool, failed: Option<Failed> },
}

struct Job {
    file: FileId,
    offset: u64,
    len: u64,
    work: Work,
    block: Option<Block>,
    copied: usize,
    label: Arc<Label>,
    ticket: Option<Arc<TicketState>>,
}

/// Everything under the mutex.
pub(super) struct State {
    graph: Graph<Failed>,
    engine: Box<dyn Engine>,
    files: HashMap<FileId, File>,
    jobs: HashMap<TaskId, Job>,
    /// What the engine had no room for.
    waiting: VecDeque<TaskId>,
    blocks: Blocks,
    next_file: u64,
    copied: usize,
}

impl State {
    pub(super) fn new(engine: Box<dyn Engine>) -> State {
        State {
            graph: Graph::default(),
            engine,
            files: HashMap::new(),
            jobs: HashMap::new(),
            waiting: VecDeque::new(),
            blocks: Blocks::default(),
            next_file: 0,
            copied: 0,
        }
    }

    pub(super) fn add(&mut self, fd: RawFd, name: &str, rules: Rules) -> FileId {
        let id = FileId(self.next_file);
        self.next_file += 1;
        let name = Arc::from(name);
        let (tasks, copied, failures, has_failed) = (0, 0, Vec::new(), false);
        let file = File { fd, name, rules, datum: None, tasks, copied, failures, has_failed };
        self.files.insert(id, file);
        id
    }

    pub(super) fn remove(&mut self, file: FileId) {
        let file = self.files.remove(&file);
        assert!(
            file.is_none_or(|file| file.tasks == 0),
            "a file is drained before it is forgotten"
        );
    }

    /// Memory for a piece, counted; `None`: the file has as much as it may.
    pub(super) fn reserve(&mut self, file: FileId, len: usize) -> Result<Option<Room>, Refused> {
        let entry = self.files.get_mut(&file).ok_or(Refused::Forgotten)?;
        if entry.copied > 0 && entry.copied + len > entry.rules.limit_bytes {
            return Ok(None);
        }
        entry.copied += len;
        self.copied += len;
        Ok(Some(self.blocks.room(len)))
    }

    pub(super) fn submit_write(
        &mut self,
        file: FileId,
        offset: u64,
        memory: Memory,
        label: &Arc<Label>,
        ticket: Option<&Arc<TicketState>>,
    ) -> Result<(), Refused> {
        let entry = self.files.get(&file).ok_or(Refused::Forgotten)?;
        let Memory { buffer, block, copied } = memory;
        let len = buffer.len() as u64;
        let op = Op::Write { fd: entry.fd, buffer, offset };
        if let Some(ticket) = ticket {
            ticket.left.fetch_add(1, Ordering::AcqRel);
        }
        let (label, ticket) = (label.clone(), ticket.cloned());
        let work = Work::Write(op);
        let job = Job { file, offset, len, work, block, copied, label, ticket };
        self.submit(job, Direction::Out);
        self.advance();
        Ok(())
    }

    /// The task of a read. It fails at once where something that it overlaps has failed before.
    pub(super) fn submit_read(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
    ) -> Result<TaskId, Failed> {
        let entry = self.files.get(&file).expect("a file is read before it is forgotten");
        let overlaps =
            |failed: &&Failed| failed.offset < offset + len && offset < failed.offset + failed.len;
        if let Some(failed) = entry.failures.iter().find(overlaps) {
            return Err(failed.clone());
        }
        let label = Arc::default();
        let work = Work::Read { is_ready: false, failed: None };
        let job = Job { file, offset, len, work, block: None, copied: 0, label, ticket: None };
        let task = self.submit(job, Direction::In);
        self.advance();
        Ok(task)
    }

    fn submit(&mut self, job: Job, direction: Direction) -> TaskId {
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
    fn advance(&mut self) {
        while let Some((task, failed)) = self.graph.pop_doomed() {
            self.graph.remove(task);
            let job = self.jobs.get_mut(&task).expect("a doomed task is there");
            let Work::Read { failed: slot, .. } = &mut job.work else {
                unreachable!("a write needs nothing that was there before")
            };
            *slot = Some(failed);
        }
        while let Some(task) = self.graph.pop_ready() {
            match &mut self.jobs.get_mut(&task).expect("a ready task is there").work {
                Work::Read { is_ready, .. } => *is_ready = true,
                Work::Write(_) => self.waiting.push_back(task),
                Work::Begun => unreachable!("a task becomes ready once"),
            }
        }
        while self.graph.pop_settled().is_some() {}
        while self.graph.pop_obsolete().is_some() {}
        self.feed();
    }

    fn feed(&mut self) {
        let mut fed = false;
        while let Some(task) = self.waiting.pop_front() {
            let job = self.jobs.get_mut(&task).expect("a waiting task is there");
            let Work::Write(op) = std::mem::replace(&mut job.work, Work::Begun) else {
                unreachable!("only writes wait for the engine")
            };
            if let Err(Full(op)) = self.engine.submit(task.to_bits(), op) {
                job.work = Work::Write(op);
                self.waiting.push_front(task);
                break;
            }
            fed = true;
        }
        if fed {
            self.engine.flush();
        }
    }

    /// Takes what the engine has done. What of it should go on to the device: descriptor, offset,
    /// length.
    pub(super) fn poll(&mut self, done: &mut Vec<Completion>) {
        self.engine.poll(done);
    }

    /// What of the completions should go on to the device.
    pub(super) fn written(&self, done: &[Completion], least: u64) -> Vec<(RawFd, u64, u64)> {
        let range = |completion: &Completion| {
            let job = self.jobs.get(&TaskId::from_bits(completion.token))?;
            let is_long = completion.result.is_ok() && job.len >= least;
            is_long.then(|| (self.files[&job.file].fd, job.offset, job.len))
        };
        done.iter().filter_map(range).collect()
    }

    /// Ends writes. Their buffers go first: the blocks that they lie in are used again.
    pub(super) fn end(&mut self, done: &mut Vec<Completion>) {
        for completion in done.drain(..) {
            let task = TaskId::from_bits(completion.token);
            let errno = self.errno_of(task, &completion.result);
            drop(completion);
            match errno {
                None => self.graph.finish(task, &[], 0),
                Some(errno) => self.fail(task, errno),
            }
            self.close(task);
        }
        self.advance();
    }

    fn errno_of(&self, task: TaskId, result: &Result<Answer, Errno>) -> Option<Errno> {
        match result {
            Ok(Answer::Bytes(count)) if *count == self.jobs[&task].len => None,
            // The system takes nothing and does not say why: such a device is full.
            Ok(_) => Some(Errno(libc::ENOSPC)),
            Err(errno) => Some(*errno),
        }
    }

    fn fail(&mut self, task: TaskId, errno: Errno) {
        let job = &self.jobs[&task];
        let file = self.files.get_mut(&job.file).expect("a file outlives its tasks");
        let Job { offset, len, .. } = *job;
        let label = job.label.clone();
        let failed = Failed { file: file.name.clone(), offset, len, label, errno };
        if let Some(ticket) = &job.ticket {
            ticket.failed.lock().get_or_insert_with(|| failed.clone());
        }
        file.failures.push(failed.clone());
        file.has_failed = true;
        self.graph.poison(task, &failed);
        self.graph.remove(task);
    }

    /// A task is over: what it had is free.
    fn close(&mut self, task: TaskId) {
        let job = self.jobs.remove(&task).expect("a task is over once");
        let file = self.files.get_mut(&job.file).expect("a file outlives its tasks");
        file.tasks -= 1;
        file.copied -= job.copied;
        self.copied -= job.copied;
        if file.tasks == 0 {
            // What was written needs no remembering: nothing is left to be put in order.
            let datum = file.datum.take().expect("a file with tasks has a datum");
            self.graph.drop_datum(datum);
        }
        if let Some(block) = job.block {
            self.blocks.give_back(block);
        }
        if let Some(ticket) = &job.ticket {
            ticket.left.fetch_sub(1, Ordering::AcqRel);
        }
    }

    pub(super) fn is_quiet(&self, file: FileId) -> bool {
        self.files.get(&file).is_none_or(|file| file.tasks == 0 && file.failures.is_empty())
    }

    pub(super) fn has_failed(&self, file: FileId) -> bool {
        self.files.get(&file).is_some_and(|file| file.has_failed)
    }

    pub(super) fn under_way(&self, file: FileId) -> usize {
        self.files.get(&file).map_or(0, |file| file.tasks)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(super) fn take_failures(&mut self, file: FileId) -> Vec<Failed> {
        self.files.get_mut(&file).map_or(Vec::new(), |file| std::mem::take(&mut file.failures))
    }

    pub(super) fn forget_failure(&mut self, file: FileId, told: &Failed) {
        if let Some(file) = self.files.get_mut(&file) {
            file.failures.retain(|failed| failed != told);
        }
    }

    pub(super) fn copied_bytes(&self) -> usize {
        self.copied
    }

    /// When free memory was last used; `None`: there is none.
    pub(super) fn blocks_used_at(&self) -> Option<Instant> {
        self.blocks.used_at()
    }

    pub(super) fn clear_blocks(&mut self) {
        self.blocks.clear();
    }

    /// In a child: nothing of this will ever end.
    pub(super) fn orphan(&mut self) {
        let state = std::mem::replace(self, State::new(Box::new(NoEngine)));
        self.next_file = state.next_file;
        // The engine belongs to threads of the parent, and so may what waits for it.
        std::mem::forget(state);
    }
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
