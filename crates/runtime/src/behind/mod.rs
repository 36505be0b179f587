//! Writes that go on behind the caller: order by byte range, errors kept until somebody asks.
//!
//! ```text
//! write ──> pieces in memory of ours ──> graph (a file's byte ranges) ──> engine ──> thread: ended
//!           (copied, or lent)            what overlaps waits              (threads)  next ones
//! read ───> waits for the writes that it overlaps, then the caller reads by itself
//! fetch ──> reads ahead, after the writes that it overlaps; the read of it copies from memory
//! drain ──> waits for all of a file, and takes what went wrong
//! write_through ──> the caller writes: of a program that drains right after its writes
//! ```
//!
//! For one who writes files through calls of its own (the HDF5 connector's file driver) and keeps
//! the descriptor open until [`WriteBehind::forget`]. Every write is a task of the graph whose
//! output is its byte range of the file, so disjoint writes overtake each other and overlapping
//! ones never do. A file that has nothing under way costs its reader one lock.
//!
//! - *Memory*: a piece is copied before `write` returns, unless it is [`Bytes::Lent`]. What is
//!   copied and not written is at most [`Rules::limit_bytes`] a file; a write over it waits. Blocks
//!   are kept for the next write and given back [`IDLE_S_MAX`] seconds after the last.
//! - *Errors*: a failed write is kept with its file until `drain` takes it, once. Until then a
//!   read that overlaps it fails with the same cause; those that do not go on.
//! - *Device*: pieces are handed to the device as soon as the system has them (`sync_file_range`),
//!   so that a later flush finds them there. In a pause what the device keeps in a cache follows.
//! - *fork*: everything is drained before; a child has no thread of ours, and there every write is
//!   refused ([`Refused::Child`]) for the caller to do by itself.
//!
//! Source of the idea: Tang et al., sections II and III; that the file's bytes name the
//! dependencies, not its objects, is ours.

mod blocks;
mod device;
mod fetch;
mod pace;
mod push;
mod state;
mod thread;

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{fmt, io};

use engine::Engine;
pub use exec::native::thread::without_signals;
pub use exec::now_ns;
use ops::Errno;
use parking_lot::{Condvar, Mutex, MutexGuard};

use state::State;
use thread::Bell;

/// The largest piece that a write is cut into: large enough for the device, small enough that
/// others get at the file in between.
pub const PIECE_BYTES_MAX: usize = 4 << 20;

/// From this size on another thread helps to copy a write: one does not use all the bandwidth of
/// the memory. For less it is hardly worth starting.
const HELPED_BYTES_MIN: usize = 16 << 20;

/// Blocks of memory that nobody used for so long are given back.
pub const IDLE_S_MAX: u64 = 5;

/// Threads of the engine: writes to one file go one at a time in most file systems.
const THREADS: u32 = 2;
const DEPTH: u32 = 1024;

/// A file that is written behind its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(u64);

/// What holds for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Bytes that are copied and not written yet, at most; a single piece is always taken.
    pub limit_bytes: usize,
}

/// Who a write is for: what is said of it when it fails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The operation, in words: `"write of a dataset"`.
    pub operation: &'static str,
    /// The object in the file.
    pub object: Option<Name>,
}

/// What an object is called, once it is known.
pub type Name = Arc<OnceLock<Box<str>>>;

/// A write that did not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The file, as it was opened.
    pub file: Arc<str>,
    /// First byte of the range in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Who it was for.
    pub label: Arc<Label>,
    /// Why.
    pub errno: Errno,
    /// Why, if it did not come to writing bytes: where they would have been is not known then.
    pub why: Option<Arc<str>>,
}

impl fmt::Display for Failed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failed { file, offset, len, label, errno, why } = self;
        match why {
            Some(why) => write!(out, "{file}: {len} bytes were not transferred: {why} (")?,
            None => write!(out, "{file}: {len} bytes at {offset} were not written: {errno} (")?,
        }
        match label.object.as_ref().and_then(|name| name.get()) {
            Some(object) => write!(out, "{} {object})", label.operation),
            None => write!(out, "{})", label.operation),
        }
    }
}

/// Why a write was not taken. Nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// This process was forked from the one that has the thread.
    Child,
    /// No such file.
    Forgotten,
    /// The system has no memory for a copy. A write does without one, and is over when it returns.
    Memory,
}

/// Follows some writes to their end, however they end. Clones follow the same.
#[derive(Clone, Debug, Default)]
pub struct Ticket(Arc<TicketState>);

#[derive(Debug, Default)]
struct TicketState {
    left: AtomicU64,
    failed: Mutex<Option<Failed>>,
}

impl Ticket {
    /// Pieces that have not ended.
    pub fn left(&self) -> u64 {
        self.0.left.load(Ordering::Acquire)
    }

    /// The first failure, as often as it is asked for.
    pub fn failed(&self) -> Option<Failed> {
        self.0.failed.lock().clone()
    }
}

/// Does writes behind their callers' backs. One is enough for a process: [`global`].
pub struct WriteBehind {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// This is a child of the process that has the thread.
    orphaned: AtomicBool,
    /// Wakes the thread.
    bell: Arc<Bell>,
    /// Wakes the one that follows bytes to the device.
    device_bell: Bell,
    /// The threads end.
    is_over: AtomicBool,
}

impl Shared {
    /// Something has ended: tells all who may have waited for it.
    fn tell(self: &Arc<Shared>, mut state: MutexGuard<'_, State>) {
        let is_device_due = std::mem::take(&mut state.is_device_due);
        let is_followed = is_device_due && device::has_thread(self, &mut state);
        drop(state);
        self.changed.notify_all();
        if is_followed {
            self.device_bell.ring();
        }
    }
}

/// The program reads: nothing begins to be read ahead.
struct Reader<'a>(&'a Shared);

impl Reader<'_> {
    fn new(shared: &Shared) -> Reader<'_> {
        shared.state.lock().ahead.begins();
        Reader(shared)
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.ahead.ends();
        if state.ahead.is_holding() {
            self.0.bell.ring();
        }
    }
}

impl WriteBehind {
    /// One of its own, over the engine of threads.
    ///
    /// # Errors
    ///
    /// The system has no thread or no descriptor left.
    pub fn new() -> io::Result<WriteBehind> {
        WriteBehind::over(|bell| {
            let bell = bell.clone();
            engine::threads(DEPTH, THREADS, Arc::new(move || bell.ring()))
        })
    }

    /// One over any engine, for which the bell is rung when something has completed.
    fn over(
        open: impl FnOnce(&Arc<Bell>) -> io::Result<Box<dyn Engine>>,
    ) -> io::Result<WriteBehind> {
        let bell = Arc::default();
        let engine = open(&bell)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(engine)),
            changed: Condvar::new(),
            orphaned: AtomicBool::new(false),
            bell,
            device_bell: Bell::default(),
            is_over: AtomicBool::new(false),
        });
        thread::start(&shared)?;
        Ok(WriteBehind { shared })
    }

    /// Knows a file from now on. The descriptor stays the caller's, and stays open until
    /// [`WriteBehind::forget`].
    pub fn add(&self, fd: RawFd, name: &str, rules: Rules) -> FileId {
        self.shared.state.lock().add(fd, name, rules)
    }

    /// Takes a write. Ended writes may be followed with a ticket.
    ///
    /// # Errors
    ///
    /// It was not taken; a failure of the write itself is kept for [`WriteBehind::drain`].
    pub fn write(
        &self,
        file: FileId,
        offset: u64,
        bytes: &[u8],
        label: &Arc<Label>,
        ticket: Option<&Ticket>,
    ) -> Result<(), Refused> {
        let next = AtomicUsize::new(0);
        let copy = || loop {
            let at = next.fetch_add(PIECE_BYTES_MAX, Ordering::Relaxed);
            let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) else {
                return Ok(());
            };
            let piece = &rest[..rest.len().min(PIECE_BYTES_MAX)];
            let at = offset + at as u64;
            match self.room(file, piece.len()) {
                Ok(room) => self.submit(file, at, room.fill(piece), label, ticket)?,
                Err(Refused::Memory) => self.write_in_place(file, at, piece, label, ticket)?,
                Err(refused) => return Err(refused),
            }
        };
        self.paced(file, || match bytes.len() < HELPED_BYTES_MIN {
            true => copy(),
            false => thread::helped(copy),
        })
    }

    /// As [`WriteBehind::write`], without a copy.
    ///
    /// # Safety
    ///
    /// The bytes stay where they are and nobody changes them until the write has ended.
    ///
    /// # Errors
    ///
    /// As of [`WriteBehind::write`].
    pub unsafe fn write_lent(
        &self,
        file: FileId,
        offset: u64,
        bytes: &[u8],
        label: &Arc<Label>,
        ticket: Option<&Ticket>,
    ) -> Result<(), Refused> {
        self.paced(file, || {
            let mut at = offset;
            for piece in bytes.chunks(PIECE_BYTES_MAX) {
                // SAFETY: the caller promised, and no engine changes what it writes.
                let memory = unsafe { state::Memory::lent(piece.as_ptr().cast_mut(), piece.len()) };
                self.submit(file, at, memory, label, ticket)?;
                at += piece.len() as u64;
            }
            Ok(())
        })
    }

    /// Takes a write and waits for its end: its bytes are used where they are.
    fn write_in_place(
        &self,
        file: FileId,
        offset: u64,
        bytes: &[u8],
        label: &Arc<Label>,
        ticket: Option<&Ticket>,
    ) -> Result<(), Refused> {
        // SAFETY: they stay until this returns, and nothing uses them after that.
        unsafe { self.write_lent(file, offset, bytes, label, ticket) }?;
        let range = [(offset, bytes.len() as u64)];
        let mut state = self.shared.state.lock();
        while !self.is_orphaned() && state.is_writing(file, &range) {
            self.wait(&mut state, None);
        }
        Ok(())
    }

    /// Has the caller change a file by itself, if nothing of it is under way, read ahead or to be
    /// told; nothing is read ahead meanwhile, which could be what was there before. `None`: it was
    /// not called.
    pub fn change<T>(&self, file: FileId, change: impl FnOnce() -> T) -> Option<T> {
        if self.is_orphaned() {
            return Some(change());
        }
        let mut state = self.shared.state.lock();
        if !state.is_quiet(file) {
            return None;
        }
        state.change(file, true);
        drop(state);
        let result = change();
        self.shared.state.lock().change(file, false);
        Some(result)
    }

    /// Has the caller write a range by itself, as of [`WriteBehind::change`], if a copy would buy
    /// the program nothing (`pace`); `write` says whether the file has it. If so it is handed to
    /// the device behind the program. `false`: it was not written, and is to be taken as any other.
    pub fn write_through(
        &self,
        file: FileId,
        offset: u64,
        len: u64,
        write: impl FnOnce() -> bool,
    ) -> bool {
        let mut state = self.lock_to_take();
        let now = Instant::now();
        if self.is_orphaned() || !state.pace.is_direct(now) || !state.is_quiet(file) {
            return false;
        }
        state.pace.begins(now);
        state.change(file, true);
        drop(state);
        let is_written = write();
        let mut state = self.shared.state.lock();
        state.change(file, false);
        state.pace.ends(file, Instant::now());
        let is_due = is_written && state.note_direct(file, offset, len);
        drop(state);
        if is_due {
            self.shared.bell.ring();
        }
        is_written
    }

    /// Something that the program writes, taken.
    fn paced<T>(&self, file: FileId, write: impl FnOnce() -> T) -> T {
        self.shared.state.lock().pace.begins(Instant::now());
        let result = write();
        self.shared.state.lock().pace.ends(file, Instant::now());
        result
    }

    /// Memory for a piece, when the file may have it.
    fn room(&self, file: FileId, len: usize) -> Result<blocks::Room, Refused> {
        let mut state = self.lock_to_take();
        loop {
            if self.is_orphaned() {
                return Err(Refused::Child);
            }
            if let Some(room) = state.reserve(file, len)? {
                return Ok(room);
            }
            // What is read ahead gives way: nobody may ever ask for it.
            state.drop_fetched(file, 0, u64::MAX);
            if let Some(room) = state.reserve(file, len)? {
                return Ok(room);
            }
            self.wait(&mut state, None);
        }
    }

    fn submit(
        &self,
        file: FileId,
        offset: u64,
        memory: state::Memory,
        label: &Arc<Label>,
        ticket: Option<&Ticket>,
    ) -> Result<(), Refused> {
        let mut state = self.lock_to_take();
        if self.is_orphaned() {
            return Err(Refused::Child);
        }
        let was_holding = state.is_holding();
        state.submit_write(file, offset, memory, label, ticket.map(|ticket| &ticket.0))?;
        if state.is_holding() && !was_holding {
            self.shared.bell.ring();
        }
        Ok(())
    }

    /// Whether nothing of a file is under way and nothing of it has failed.
    pub fn is_quiet(&self, file: FileId) -> bool {
        self.is_orphaned() || self.shared.state.lock().is_quiet(file)
    }

    /// Whether some write of a file has ever failed: it may be shorter than it was to be.
    pub fn has_failed(&self, file: FileId) -> bool {
        self.shared.state.lock().has_failed(file)
    }

    /// Waits for the writes that a range overlaps, then calls `read`, before any later write to
    /// the range begins.
    ///
    /// # Errors
    ///
    /// A write that the range needs has failed: that is the cause, and `read` was not called.
    pub fn read<T>(
        &self,
        file: FileId,
        offset: u64,
        len: u64,
        read: impl FnOnce() -> T,
    ) -> Result<T, Failed> {
        if len == 0 || self.is_quiet(file) {
            return Ok(read());
        }
        let mut state = self.lock_to_take();
        let task = state.submit_read(file, offset, len)?;
        loop {
            match state.is_ready(task) {
                Ok(true) => break,
                Ok(false) => self.wait(&mut state, None),
                Err(failed) => {
                    // Whoever waits until nothing is under way waited for this read, too.
                    self.shared.tell(state);
                    return Err(failed);
                }
            }
        }
        drop(state);
        let answer = read();
        let mut state = self.shared.state.lock();
        state.end_read(task);
        self.shared.tell(state);
        Ok(answer)
    }

    /// Reads a range ahead, behind the caller, as far as the file's limit allows; how many bytes
    /// that will be. [`WriteBehind::read_into`] hands them over.
    ///
    /// # Errors
    ///
    /// It was not taken.
    pub fn fetch(&self, file: FileId, offset: u64, len: u64) -> Result<u64, Refused> {
        let mut state = self.lock_to_take();
        if self.is_orphaned() {
            return Err(Refused::Child);
        }
        let fetched = state.fetch(file, offset, len);
        if state.ahead.is_holding() {
            self.shared.bell.ring();
        }
        fetched
    }

    /// Reads a range: hands over what was read ahead of it, waits for what is on its way, and has
    /// `read` read the rest (from where, into what), as of [`WriteBehind::read`]; whether it could.
    /// One read of a file at a time, and no write to the range meanwhile.
    ///
    /// # Errors
    ///
    /// As of [`WriteBehind::read`].
    pub fn read_into(
        &self,
        file: FileId,
        offset: u64,
        into: &mut [u8],
        mut read: impl FnMut(u64, &mut [u8]) -> bool,
    ) -> Result<bool, Failed> {
        let len = into.len() as u64;
        if len == 0 || !self.shared.state.lock().has_fetched(file) {
            return self.read(file, offset, len, || read(offset, into));
        }
        let _reader = Reader::new(&self.shared);
        let (end, mut by_itself) = (offset + len, Vec::new());
        let parts = loop {
            let mut state = self.shared.state.lock();
            state.take_back(file, offset, end);
            if let Some((start, until)) = state.gap(file, (offset, end), &by_itself) {
                drop(state);
                let part = &mut into[(start - offset) as usize..(until - offset) as usize];
                if !self.read(file, start, until - start, || read(start, part))? {
                    return Ok(false);
                }
                by_itself.push((start, until));
            } else if state.is_fetching(file, offset, end) {
                self.wait(&mut state, None);
            } else {
                break state.parts(file, offset, end);
            }
        };
        parts.iter().for_each(|part| part.copy(into));
        self.shared.state.lock().handed_over(file, offset, end, parts);
        self.shared.changed.notify_all();
        Ok(true)
    }

    /// What was read of a file ahead is of no use any more: it is not handed over.
    pub fn drop_fetched(&self, file: FileId) {
        self.shared.state.lock().drop_fetched(file, 0, u64::MAX);
    }

    /// The program flushes: it will ask for its bytes to be on the device, perhaps by an `fsync` of
    /// its own. From now on they are brought there as soon as it pauses.
    pub fn flushes(&self) {
        self.shared.state.lock().is_flushing = true;
    }

    /// Waits until nothing of a file is under way.
    ///
    /// # Errors
    ///
    /// What went wrong since the last time, each failure once.
    pub fn drain(&self, file: FileId) -> Result<(), Vec<Failed>> {
        self.shared.state.lock().pace.waits(file, Instant::now());
        match self.lock_when_settled(file).take_failures(file) {
            failures if failures.is_empty() => Ok(()),
            failures => Err(failures),
        }
    }

    /// As [`WriteBehind::drain`]; what went wrong stays, to be taken later.
    pub fn settle(&self, file: FileId) {
        drop(self.lock_when_settled(file));
    }

    /// The lock, once nothing of a file is under way.
    fn lock_when_settled(&self, file: FileId) -> MutexGuard<'_, State> {
        let mut state = self.shared.state.lock();
        while !self.is_orphaned() && state.under_way(file) > 0 {
            self.wait(&mut state, None);
        }
        state
    }

    /// Whether nothing that was written to these ranges (offset, length; in order, apart from each
    /// other) is under way, however it ended.
    pub fn is_written(&self, file: FileId, ranges: &[(u64, u64)]) -> bool {
        self.is_orphaned() || !self.shared.state.lock().is_writing(file, ranges)
    }

    /// Waits until nothing that was written to these ranges is under way, as of
    /// [`WriteBehind::is_written`].
    ///
    /// # Errors
    ///
    /// What went wrong there since the last time, each failure once.
    pub fn drain_ranges(&self, file: FileId, ranges: &[(u64, u64)]) -> Result<(), Vec<Failed>> {
        let mut state = self.shared.state.lock();
        while !self.is_orphaned() && state.is_writing(file, ranges) {
            self.wait(&mut state, None);
        }
        match state.take_failures_in(file, ranges) {
            failures if failures.is_empty() => Ok(()),
            failures => Err(failures),
        }
    }

    /// Waits for what a ticket follows, at most so long (`None`: as long as it takes); whether all
    /// of it has ended.
    pub fn wait_for(&self, ticket: &Ticket, timeout: Option<Duration>) -> bool {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.shared.state.lock();
        while ticket.left() > 0 && !self.is_orphaned() {
            if until.is_some_and(|until| Instant::now() >= until) {
                return false;
            }
            self.wait(&mut state, until);
        }
        true
    }

    /// Drains a file and does not know it any more.
    ///
    /// # Errors
    ///
    /// As of [`WriteBehind::drain`].
    pub fn forget(&self, file: FileId) -> Result<(), Vec<Failed>> {
        let mut state = self.shared.state.lock();
        state.drop_fetched(file, 0, u64::MAX);
        while !self.is_orphaned() && !(state.leave_device(file) & state.is_still(file)) {
            self.wait(&mut state, None);
        }
        let failures = state.take_failures(file);
        state.remove(file);
        match failures.is_empty() {
            true => Ok(()),
            false => Err(failures),
        }
    }

    /// A failure was told elsewhere: `drain` tells nothing of that write again.
    pub fn told(&self, file: FileId, failed: &Failed) {
        self.shared.state.lock().forget_failure(file, failed);
    }

    /// Bytes that are copied and not written, of all files.
    pub fn copied_bytes(&self) -> usize {
        self.shared.state.lock().copied_bytes()
    }

    /// The lock, to take something new: not while a thread forks, which waits until nothing is
    /// under way.
    fn lock_to_take(&self) -> MutexGuard<'_, State> {
        let mut state = self.shared.state.lock();
        while state.forks > 0 && !self.is_orphaned() {
            self.wait(&mut state, None);
        }
        state
    }

    fn wait(&self, state: &mut MutexGuard<'_, State>, until: Option<Instant>) {
        state.begin();
        match until {
            Some(until) => drop(self.shared.changed.wait_until(state, until)),
            None => self.shared.changed.wait(state),
        }
    }

    fn is_orphaned(&self) -> bool {
        self.shared.orphaned.load(Ordering::Relaxed)
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        self.shared.state.lock().begin();
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.bell.ring();
        self.shared.device_bell.ring();
    }
}

static GLOBAL: OnceLock<WriteBehind> = OnceLock::new();

/// The process's own, started when it is first asked for.
///
/// # Errors
///
/// As of [`WriteBehind::new`]; the next call tries again.
pub fn global() -> io::Result<&'static WriteBehind> {
    if let Some(behind) = GLOBAL.get() {
        return Ok(behind);
    }
    let behind = WriteBehind::new()?;
    let behind = GLOBAL.get_or_init(|| {
        thread::survive_forks();
        behind
    });
    Ok(behind)
}

/// Whether this process was forked from the one that [`global`] works for: nothing goes on here,
/// and whoever held a lock of the caller's then may hold it for ever.
pub fn is_child() -> bool {
    GLOBAL.get().is_some_and(WriteBehind::is_orphaned)
}

#[cfg(test)]
mod tests;
