//! A bad disk: short transfers, errors, latency, reordering and power loss, around any engine.
//!
//! Everything that goes wrong is drawn from one seed, a fixed number of draws an operation, so the
//! same operations submitted in the same order meet the same faults. What an operation meets:
//!
//! | fault | whom | what happens |
//! |---|---|---|
//! | `EIO` | reads, writes, copies, syncs | nothing is done; a sync loses what it was to make durable |
//! | `ENOSPC` | writes, copies, `fallocate` | nothing is done |
//! | short | reads, writes | the first part is done, and the result counts it, as after an error |
//! | latency | all | the completion comes later |
//! | reordering | all | handed on in another order, and completions overtake each other |
//! | power loss | writes, copies, lengths | see [`Fault::power_loss`] |

mod journal;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use ops::{Answer, Buffer, Completion, Errno, Op};
use slab::Slab;

use super::random::Random;
use super::ready::{sleep, Ready};
use crate::{About, Engine, Full};
use journal::{Journal, Ticket};
pub use journal::{Lost, Survivors};

/// How much later a reordered completion is at most.
const REORDERED_MAX: Duration = Duration::from_millis(1);

/// What goes wrong, and how often: shares of the operations, 0 to 1. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Reproduces everything.
    pub seed: u64,
    /// `EIO` of reads, writes, copies and syncs.
    pub eio: f64,
    /// `ENOSPC` of writes, copies and `fallocate`.
    pub enospc: f64,
    /// Reads and writes that do the first part only.
    pub short: f64,
    /// Completions that are late, by up to `late_max`.
    pub late: f64,
    /// How late they are at most.
    pub late_max: Duration,
    /// Operations that overtake each other.
    pub reordered: f64,
    /// Whether to remember what is not durable, for [`Fault::power_loss`].
    pub has_power_loss: bool,
}

/// An engine on a bad disk.
pub struct Fault<E: Engine> {
    inner: E,
    faults: Faults,
    random: Random,
    journal: Option<Journal>,
    /// What the inner engine has; its tokens are the numbers here.
    entries: Slab<Entry>,
    /// What is to be handed to the inner engine at the next flush.
    batch: Vec<(usize, Op)>,
    /// What is done, or failed, and is to be told when it is time.
    told: Vec<(Instant, Completion)>,
    ready: Ready,
}

struct Entry {
    token: u64,
    /// The operation, where the inner engine has only a part of it.
    whole: Option<Op>,
    ticket: Option<Ticket>,
    later: Duration,
}

/// What was drawn for an operation.
struct Fate {
    errno: Option<Errno>,
    /// The bytes to be moved instead of all.
    short: Option<u64>,
    later: Duration,
}

impl<E: Engine> Fault<E> {
    /// Puts a bad disk behind an engine.
    pub fn new(inner: E, faults: Faults) -> io::Result<Self> {
        let ready = Ready::new(inner.fd())?;
        Ok(Self {
            inner,
            random: Random::new(faults.seed),
            journal: faults.has_power_loss.then(Journal::default),
            faults,
            entries: Slab::new(),
            batch: Vec::new(),
            told: Vec::new(),
            ready,
        })
    }

    /// The power goes, and comes back: files hold what a sync made durable, and of the writes after
    /// that nothing, or some, or parts of some. Nobody hears of what was in flight.
    ///
    /// It is about the content and the length of files that were changed through this engine.
    /// Names (created, renamed, removed) count as durable at once, and what an open truncates is
    /// not seen. The files must be permitted to
    /// the process through `/proc/self/fd`. Needs [`Faults::has_power_loss`].
    pub fn power_loss(&mut self, survivors: Survivors) -> io::Result<Lost> {
        let mut unheard = Vec::new();
        while self.in_flight() > 0 {
            self.wait(&mut unheard, None);
        }
        match &mut self.journal {
            Some(journal) => journal.power_loss(survivors, &mut self.random),
            None => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "`has_power_loss` is off, so nothing is known of what is durable",
            )),
        }
    }

    /// Draws what happens to an operation: as many draws for each.
    fn draw(&mut self, op: &Op) -> Fate {
        let faults = &self.faults;
        let [eio, enospc, short, late, reordered] =
            [faults.eio, faults.enospc, faults.short, faults.late, faults.reordered]
                .map(|share| self.random.chance(share));
        let bytes = op.bytes();
        let part = self.random.below(bytes.max(2) - 1) + 1;
        let late_by = self.random.duration(faults.late_max);
        let reordered_by = self.random.duration(REORDERED_MAX);
        let (is_transfer, is_sync, grows) = match op {
            Op::Read { .. } | Op::ReadVectored { .. } => (true, false, false),
            Op::Write { .. } | Op::WriteVectored { .. } => (true, false, true),
            Op::Copy { .. } => (false, true, true),
            Op::Fsync { .. } | Op::Fdatasync { .. } => (false, true, false),
            Op::Fallocate { .. } => (false, false, true),
            _ => (false, false, false),
        };
        let errno = if eio && (is_transfer || is_sync) {
            Some(Errno(libc::EIO))
        } else if enospc && grows {
            Some(Errno(libc::ENOSPC))
        } else {
            None
        };
        let later = [(late, late_by), (reordered, reordered_by)];
        let later = later.iter().filter(|(is_so, _)| *is_so).map(|(_, by)| *by).sum();
        Fate { errno, short: (short && is_transfer && bytes > 1).then_some(part), later }
    }

    /// Hands the batch to the inner engine, in another order if some of it is to be reordered.
    fn hand_on(&mut self) {
        if self.faults.reordered > 0.0 {
            // A close stays behind what was submitted before it.
            let batch = self.batch.drain(..);
            let (closes, mut others): (Vec<_>, Vec<_>) =
                batch.partition(|(_, op)| matches!(op, Op::Close { .. }));
            self.random.shuffle(&mut others);
            self.batch = others;
            self.batch.extend(closes);
        }
        for (key, op) in self.batch.drain(..) {
            let taken = self.inner.submit(key as u64, op);
            assert!(taken.is_ok(), "the inner engine is full before the wrapper is");
        }
    }

    /// What the inner engine has done, to be told when it is time.
    fn absorb(&mut self, done: Vec<Completion>) {
        let now = Instant::now();
        for Completion { token, op, result } in done {
            let entry = self.entries.remove(token as usize);
            if let (Some(journal), Some(ticket)) = (&mut self.journal, entry.ticket) {
                journal.ended(ticket, &result);
            }
            let op = entry.whole.unwrap_or(op);
            self.told.push((now + entry.later, Completion { token: entry.token, op, result }));
        }
    }

    /// Tells what is to be told by now, and sets the timer for the rest.
    fn tell(&mut self, out: &mut Vec<Completion>) -> usize {
        let now = Instant::now();
        let (mut due, later): (Vec<_>, Vec<_>) =
            self.told.drain(..).partition(|(at, _)| *at <= now);
        if self.faults.reordered > 0.0 {
            self.random.shuffle(&mut due);
        }
        self.told = later;
        let count = due.len();
        out.extend(due.into_iter().map(|(_, completion)| completion));
        self.ready.set(self.next_told());
        count
    }

    /// How long until something is told.
    fn next_told(&self) -> Option<Duration> {
        let first = self.told.iter().map(|(at, _)| *at).min();
        first.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

impl<E: Engine> Engine for Fault<E> {
    fn submit(&mut self, token: u64, op: Op) -> Result<(), Full> {
        if self.in_flight() >= self.capacity() {
            return Err(Full(op));
        }
        let Fate { errno, short, later } = self.draw(&op);
        let ticket = match &mut self.journal {
            Some(journal) => match journal.begins(&op, short) {
                Ok(ticket) => ticket,
                Err(errno) => {
                    self.told.push((Instant::now(), Completion { token, op, result: Err(errno) }));
                    return Ok(());
                }
            },
            None => None,
        };
        if let Some(errno) = errno {
            let result = Err(errno);
            if let (Some(journal), Some(ticket)) = (&mut self.journal, ticket) {
                journal.ended(ticket, &result);
            }
            self.told.push((Instant::now() + later, Completion { token, op, result }));
            return Ok(());
        }
        let (op, whole) = match short {
            Some(bytes) => (part_of(&op, bytes), Some(op)),
            None => (op, None),
        };
        let key = self.entries.insert(Entry { token, whole, ticket, later });
        self.batch.push((key, op));
        Ok(())
    }

    fn flush(&mut self) {
        self.hand_on();
        self.inner.flush();
        // What failed without the inner engine shows by the timer.
        self.ready.set(self.next_told());
    }

    fn poll(&mut self, out: &mut Vec<Completion>) -> usize {
        self.hand_on();
        let mut done = Vec::new();
        self.inner.poll(&mut done);
        self.absorb(done);
        self.tell(out)
    }

    fn wait(&mut self, out: &mut Vec<Completion>, timeout: Option<Duration>) -> usize {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let count = self.poll(out);
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            if count > 0 || self.in_flight() == 0 || left == Some(Duration::ZERO) {
                return count;
            }
            let nap = self.next_told().into_iter().chain(left).min();
            if self.inner.in_flight() > 0 {
                let mut done = Vec::new();
                self.inner.wait(&mut done, nap);
                self.absorb(done);
            } else if let Some(nap) = nap {
                sleep(nap);
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.entries.len() + self.told.len()
    }

    fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.ready.fd()
    }

    fn about(&self) -> About {
        let About { name, reason } = self.inner.about();
        About { name, reason: format!("{reason}; with faults, seed {}", self.faults.seed) }
    }
}

impl<E: Engine> Drop for Fault<E> {
    fn drop(&mut self) {
        let mut out = Vec::new();
        while self.in_flight() > 0 {
            self.wait(&mut out, None);
            out.clear();
        }
    }
}

/// The same transfer of the first bytes only, with memory lent by the whole.
fn part_of(op: &Op, bytes: u64) -> Op {
    let mut left = bytes as usize;
    let mut lend = |buffer: &Buffer| {
        let len = left.min(buffer.len());
        left -= len;
        // SAFETY: the whole operation is kept, untouched, until the part has completed, and its
        // buffers with it.
        unsafe { Buffer::lent(buffer.as_ptr().cast_mut(), len) }
    };
    match op {
        Op::Read { fd, buffer, offset } => {
            Op::Read { fd: *fd, buffer: lend(buffer), offset: *offset }
        }
        Op::Write { fd, buffer, offset } => {
            Op::Write { fd: *fd, buffer: lend(buffer), offset: *offset }
        }
        Op::ReadVectored { fd, buffers, offset } => {
            let buffers = buffers.iter().map(lend).collect();
            Op::ReadVectored { fd: *fd, buffers, offset: *offset }
        }
        Op::WriteVectored { fd, buffers, offset } => {
            let buffers = buffers.iter().map(lend).collect();
            Op::WriteVectored { fd: *fd, buffers, offset: *offset }
        }
        _ => unreachable!("{} has no parts", op.name()),
    }
}

/// The bytes that a result counts.
fn bytes_of(result: &Result<Answer, Errno>) -> u64 {
    result.as_ref().map_or(0, Answer::bytes)
}
