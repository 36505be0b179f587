//! One run at a worker: what it was given, what it cost, and the room for what it gives.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::shared::{give_up, Shared};
use super::{Moved, Worker, EXIT_UNTOLD};
use crate::claims::Claim;
use crate::memory::Heap;
use crate::sys;
use crate::wire::{Blob, FromWorker, List, Outcome, Run, ToWorker, INLINE_BYTES_MAX};

/// The object store has no room for a range that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreFull {
    /// How many bytes were asked for.
    pub bytes: u64,
}

impl fmt::Display for StoreFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the object store is full: there is no room for {} more bytes", self.bytes)
    }
}

impl std::error::Error for StoreFull {}

/// A function that the driver sent.
#[derive(Debug)]
pub struct Function {
    /// The driver's number of it.
    pub id: u64,
    /// Its name, for messages.
    pub name: String,
    /// Whether its body is a coroutine.
    pub asynchronous: bool,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Here(Box<[u8]>),
    Placed { heap: Arc<Heap>, offset: u64, len: u64 },
}

impl Function {
    /// The function itself. Not to be called once it was to be forgotten.
    pub fn bytes(&self) -> &[u8] {
        match &self.body {
            Body::Here(bytes) => bytes,
            // SAFETY: the driver keeps the range, unchanged, while tasks may name the function.
            Body::Placed { heap, offset, len } => unsafe { heap.slice(*offset, *len) },
        }
    }
}

/// One run that this worker has begun. Ended by [`Worker::done`] or [`Worker::raised`]; if it is
/// dropped without, the driver is told that it raised nothing at all (an empty blob). Where not
/// even that can be told, for want of memory, the process ends: the driver learns of its death.
pub struct Assignment {
    pub(super) shared: Arc<Shared>,
    pub(super) record: Vec<u8>,
    pub(super) task: u64,
    pub(super) attempt: u32,
    pub(super) claim: Claim,
    pub(super) started_ns: u64,
    pub(super) stretch: Stretch,
    /// The ranges of the heap that it was given.
    pub(super) places: List<u64>,
    /// Outputs that it handed over.
    pub(super) released: Numbers,
    /// Paths of files that it is done with.
    pub(super) released_files: BTreeSet<u32>,
    pub(super) is_stream: bool,
    pub(super) ended: bool,
}

impl Assignment {
    /// What to run.
    pub fn run(&self) -> Run<'_> {
        match ToWorker::decode(&self.record) {
            Ok(ToWorker::Run(run)) => run,
            _ => unreachable!("looked at when it was begun"),
        }
    }

    /// A number that no other run at this worker has meanwhile.
    pub fn claim(&self) -> u64 {
        self.claim.0
    }

    /// The driver's number of the task.
    pub fn task(&self) -> u64 {
        self.task
    }

    /// The outputs that it handed over, lowest first.
    pub fn released(&self) -> impl Iterator<Item = u32> + '_ {
        self.released.iter()
    }

    /// Whether it handed over whatever it returns.
    pub fn has_released_all(&self) -> bool {
        self.released.len() == self.run().returns as usize
    }

    /// When it began (`CLOCK_MONOTONIC`).
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }
}

/// A set of small numbers.
#[derive(Default)]
pub(super) struct Numbers {
    words: Vec<u64>,
    len: usize,
}

impl Numbers {
    /// `false`: it was there.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.len += usize::from(is_new);
        is_new
    }

    fn len(&self) -> usize {
        self.len
    }

    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let bits = |word: u64| (0..64).filter(move |bit| word >> bit & 1 == 1);
        let words = (0..).zip(&self.words);
        words.flat_map(move |(at, word)| bits(*word).map(move |bit| at * 64 + bit))
    }
}

/// How long a run has had a thread: the producer of a stream waits for its consumers without one.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    /// The thread that runs it; `None`: it waits.
    thread: Option<u64>,
    /// When it began, or last went on.
    pub(super) since_ns: u64,
    /// How long it ran before that.
    pub(super) ran_ns: u64,
    /// What processor time it had before that.
    pub(super) cpu_ns: u64,
}

impl Stretch {
    /// Of a run that begins on this thread.
    pub(super) fn new(now: u64) -> Self {
        Self { thread: Some(CpuMark::thread(now)), since_ns: now, ran_ns: 0, cpu_ns: 0 }
    }

    /// It waits, or is over.
    pub(super) fn end(&mut self, now: u64) {
        match self.thread.take() {
            Some(thread) => {
                self.ran_ns += now.saturating_sub(self.since_ns);
                self.cpu_ns += CpuMark::end(thread, self.since_ns, now);
            }
            None => self.since_ns = now,
        }
    }

    /// It has a thread, this one, if it had none.
    pub(super) fn go_on(&mut self) {
        if self.thread.is_none() {
            self.since_ns = sys::now_ns();
            self.thread = Some(CpuMark::thread(self.since_ns));
        }
    }
}

impl fmt::Debug for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Assignment").field(&self.run()).finish()
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        if !self.ended && !self.shared.is_forked() {
            let outcome = Outcome::Raised { blob: Blob::Inline(&[]) };
            if let Err(full) = self.shared.clone().end(self, outcome, Moved::default()) {
                give_up(&format_args!("{full}, which are to tell how a task ended"), EXIT_UNTOLD);
            }
        }
    }
}

/// Processor time of a thread at some moment. Asking for it is a system call that costs as much
/// as everything else here, so a thread asks at most once in [`CPU_MARK_NS`]: a shorter run is
/// taken to have had the processor all the time.
#[derive(Clone, Copy)]
struct CpuMark {
    thread: u64,
    asked_ns: u64,
    cpu_ns: u64,
    /// What was taken for granted since.
    granted_ns: u64,
}

const CPU_MARK_NS: u64 = 100_000;

thread_local! {
    static CPU_MARK: Cell<Option<CpuMark>> = const { Cell::new(None) };
}

impl CpuMark {
    /// At the beginning of a run: this thread's number.
    fn thread(now: u64) -> u64 {
        static THREADS: AtomicU64 = AtomicU64::new(0);
        let mark = CPU_MARK.get().unwrap_or_else(|| {
            let thread = THREADS.fetch_add(1, Ordering::Relaxed);
            Self { thread, asked_ns: now, cpu_ns: sys::thread_cpu_ns(), granted_ns: 0 }
        });
        CPU_MARK.set(Some(mark));
        mark.thread
    }

    /// Processor time of a run that began on `thread`; 0 when that is another.
    fn end(thread: u64, started_ns: u64, ended_ns: u64) -> u64 {
        let Some(mut mark) = CPU_MARK.get().filter(|mark| mark.thread == thread) else {
            return 0;
        };
        let ran_ns = ended_ns.saturating_sub(started_ns);
        let mut used_ns = ran_ns;
        if ended_ns.saturating_sub(mark.asked_ns) < CPU_MARK_NS {
            mark.granted_ns += ran_ns;
        } else {
            let cpu_ns = sys::thread_cpu_ns();
            used_ns = cpu_ns.saturating_sub(mark.cpu_ns + mark.granted_ns).min(ran_ns);
            mark = Self { thread, asked_ns: ended_ns, cpu_ns, granted_ns: 0 };
        }
        CPU_MARK.set(Some(mark));
        used_ns
    }
}

/// A range of the heap that this worker was allocated; given back if it is dropped before it was
/// handed over.
pub struct Allocation {
    pub(super) shared: Arc<Shared>,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) kept: bool,
}

impl Allocation {
    /// Its bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the driver gave the range to this allocation alone, until it is handed over
        // or freed, and either consumes it.
        unsafe { self.shared.heap.slice_mut(self.offset, self.len) }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if !self.kept {
            self.shared.push(&FromWorker::Free { offset: self.offset });
        }
    }
}

/// Memory that was asked for before its value is there: the driver answers meanwhile. Given back
/// if it is not used.
pub struct Asked {
    pub(super) shared: Arc<Shared>,
    pub(super) request: u64,
    pub(super) len: u64,
    pub(super) taken: bool,
}

impl Asked {
    /// Room for a value of `len` bytes: what was asked for if that is hardly longer, else as
    /// [`Worker::output`](super::Worker::output).
    pub fn output(mut self, len: u64) -> Result<Output, StoreFull> {
        if len > INLINE_BYTES_MAX as u64 && fits(self.len, len) {
            if let Some(mut allocation) = self.take() {
                allocation.len = len;
                return Ok(Output::Placed(allocation));
            }
        }
        let shared = Arc::clone(&self.shared);
        drop(self); // first: there may not be room for both
        shared.output(len)
    }

    fn take(&mut self) -> Option<Allocation> {
        self.taken = true;
        self.shared.answer(self.request, self.len)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.taken && !self.shared.is_forked() {
            drop(self.take());
        }
    }
}

/// The memory of the next value of a run, asked for before it is serialised, while its values are
/// of one length.
#[derive(Default)]
pub struct Ahead {
    asked: Option<Asked>,
    last: u64,
    is_steady: bool,
}

impl Ahead {
    /// A value will be handed over, and is serialised now.
    pub fn expect(&mut self, worker: &Worker) {
        if self.is_steady && self.asked.is_none() {
            self.asked = worker.ask(self.last);
        }
    }

    /// What was asked for, for a value of `len` bytes.
    pub fn take(&mut self, len: u64) -> Option<Asked> {
        self.is_steady = fits(self.last, len);
        self.last = len;
        self.asked.take()
    }
}

/// Whether memory for `room` bytes does for `len`: no more than an eighth of it stays unused.
fn fits(room: u64, len: u64) -> bool {
    len <= room && room - len <= room / 8
}

/// The room for one value that goes to the driver: short ones in the record, others in the heap.
pub enum Output {
    /// In the record.
    Inline(Vec<u8>),
    /// In the heap.
    Placed(Allocation),
}

impl Output {
    /// Stands for one that was handed over before; no value has no bytes.
    pub const RELEASED: Output = Output::Inline(Vec::new());

    /// Its bytes, to write; zeros or leftovers of others before.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Output::Inline(bytes) => bytes,
            Output::Placed(allocation) => allocation.bytes_mut(),
        }
    }

    pub(super) fn blob(&self) -> Blob<'_> {
        match self {
            Output::Inline(bytes) => Blob::Inline(bytes),
            Output::Placed(at) => Blob::Placed { offset: at.offset, len: at.len },
        }
    }

    pub(super) fn handed_over(self) {
        if let Output::Placed(mut allocation) = self {
            allocation.kept = true;
        }
    }
}
