//! Operations of tasks: submitted to the worker's engine, completed by whoever polls it.
//!
//! A *blocking* operation lives on the stack of its fiber: its token is the address of a
//! [`Waiting`]. A *non-blocking* one has a [`Promise`] of its own, which counts in its task: its
//! token is that address with the lowest bit set. A token is used for one operation at a time and
//! is taken apart by its completion, which comes exactly once.
//!
//! When the engine is full, operations wait in a line and enter as others complete; whoever waits
//! for them runs other tasks meanwhile.

use std::cell::Cell;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicIsize, AtomicUsize, Ordering};

use engine::Engine;
use ops::{Buffer, Completion, Op};
use parking_lot::Mutex;

use super::task::{Place, TaskRef};
use super::worker::outside_of_tasks;
use crate::line::Line;

/// Operations that are submitted before the engine hands them to the kernel at the latest.
const BATCH_MAX: usize = 16;

/// Bytes of one operation at most: a slice cannot be longer.
const BYTES_MAX: usize = isize::MAX as usize;
/// Nothing of a program lies below: what the system keeps free there (`vm.mmap_min_addr`).
const LOWEST_ADDRESS: usize = 4096;

/// Marks the token of a non-blocking operation.
const PROMISE: u64 = 1;

/// A file operation as a C program asks for it.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// `pread`.
    Read(RawFd, *mut u8, usize, i64),
    /// `pwrite`.
    Write(RawFd, *const u8, usize, i64),
    /// `preadv`.
    ReadVectored(RawFd, *const libc::iovec, i32, i64),
    /// `pwritev`.
    WriteVectored(RawFd, *const libc::iovec, i32, i64),
    /// `fsync`.
    Fsync(RawFd),
    /// `fdatasync`.
    Fdatasync(RawFd),
}

/// Where the result of a non-blocking operation goes; null: nobody asked.
#[derive(Clone, Copy, Debug)]
pub struct ResultPlace(pub *mut isize);

// SAFETY: the program promised that the place may be written until the task is over.
unsafe impl Send for ResultPlace {}

impl ResultPlace {
    /// Puts a result there, if there is a place. In release order: the program may watch the place,
    /// and finds the bytes when it finds the result.
    pub(super) fn set(&self, result: i64) {
        if !self.0.is_null() {
            // SAFETY: the program promised the place until its task is over, which it is not yet.
            unsafe { AtomicIsize::from_ptr(self.0) }.store(result as isize, Ordering::Release);
        }
    }
}

/// Whether a vector cannot be looked at: a pointer that is null or was one before it was added to.
fn is_bad(pieces: *const libc::iovec) -> bool {
    (pieces as usize) < LOWEST_ADDRESS || !pieces.is_aligned()
}

/// `-errno` or what the system call gives.
fn given(result: i64) -> i64 {
    if result >= 0 {
        return result;
    }
    -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

impl Operation {
    /// The ordinary system call, on the calling thread. Not by the C library's functions, which
    /// `libalongside_preload` turns into operations of the task again.
    ///
    /// # Safety
    ///
    /// What the system call asks: valid memory of the lengths told.
    pub unsafe fn call(&self) -> i64 {
        let call = |number, fd: RawFd, memory: usize, length: usize, at: i64| {
            let fd = i64::from(fd);
            // Vectored calls take the offset in two halves, of which the kernel ignores the second
            // where a register holds all of it.
            // SAFETY: the caller's promise is that of the system call.
            given(unsafe { libc::syscall(number, fd, memory, length, at, 0_i64) })
        };
        match *self {
            Operation::Read(fd, to, bytes, at) => {
                call(libc::SYS_pread64, fd, to as usize, bytes, at)
            }
            Operation::Write(fd, from, bytes, at) => {
                call(libc::SYS_pwrite64, fd, from as usize, bytes, at)
            }
            Operation::ReadVectored(fd, pieces, count, at) => {
                call(libc::SYS_preadv, fd, pieces as usize, count as usize, at)
            }
            Operation::WriteVectored(fd, pieces, count, at) => {
                call(libc::SYS_pwritev, fd, pieces as usize, count as usize, at)
            }
            Operation::Fsync(fd) => call(libc::SYS_fsync, fd, 0, 0, 0),
            Operation::Fdatasync(fd) => call(libc::SYS_fdatasync, fd, 0, 0, 0),
        }
    }

    /// Whether the plain system call has to answer, as an engine cannot be given this: what is
    /// refused without a look at the disk, and memory that is nowhere.
    pub fn is_odd(&self) -> bool {
        let is_nowhere = |start: *const u8, bytes: usize| start.is_null() || bytes > BYTES_MAX;
        match *self {
            Operation::Read(_, to, bytes, at) => at < 0 || is_nowhere(to, bytes),
            Operation::Write(_, from, bytes, at) => at < 0 || is_nowhere(from, bytes),
            Operation::ReadVectored(_, pieces, count, at)
            | Operation::WriteVectored(_, pieces, count, at) => {
                if at < 0 || count <= 0 || count > libc::UIO_MAXIOV || is_bad(pieces) {
                    return true;
                }
                // SAFETY: the program's vector has `count` pieces during the call.
                let pieces = unsafe { std::slice::from_raw_parts(pieces, count as usize) };
                let mut total = 0_usize;
                pieces.iter().any(|piece| {
                    total = total.saturating_add(piece.iov_len);
                    total > BYTES_MAX || (piece.iov_base.is_null() && piece.iov_len > 0)
                })
            }
            Operation::Fsync(_) | Operation::Fdatasync(_) => false,
        }
    }

    /// The operation as a value for an engine.
    ///
    /// # Safety
    ///
    /// The memory stays, and is not touched by others, until the completion has come.
    pub(super) unsafe fn value(&self) -> Op {
        // SAFETY: the caller's promise, for every buffer below; a vector was looked at by `is_odd`.
        unsafe {
            match *self {
                Operation::Read(fd, to, bytes, at) => {
                    Op::Read { fd, buffer: Buffer::lent(to, bytes), offset: at as u64 }
                }
                Operation::Write(fd, from, bytes, at) => {
                    let buffer = Buffer::lent(from.cast_mut(), bytes);
                    Op::Write { fd, buffer, offset: at as u64 }
                }
                Operation::ReadVectored(fd, pieces, count, at) => {
                    Op::ReadVectored { fd, buffers: lent(pieces, count), offset: at as u64 }
                }
                Operation::WriteVectored(fd, pieces, count, at) => {
                    Op::WriteVectored { fd, buffers: lent(pieces, count), offset: at as u64 }
                }
                Operation::Fsync(fd) => Op::Fsync { fd },
                Operation::Fdatasync(fd) => Op::Fdatasync { fd },
            }
        }
    }

    /// Whether it transfers bytes to a file.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Operation::Write(..) | Operation::WriteVectored(..))
    }

    /// Bytes that are transferred if all goes well.
    pub(super) fn bytes(&self) -> i64 {
        match *self {
            Operation::Read(_, _, bytes, _) | Operation::Write(_, _, bytes, _) => bytes as i64,
            Operation::ReadVectored(_, pieces, count, _)
            | Operation::WriteVectored(_, pieces, count, _) => {
                // SAFETY: the program's vector has `count` pieces during the call.
                let pieces = unsafe { std::slice::from_raw_parts(pieces, count as usize) };
                pieces.iter().map(|piece| piece.iov_len as i64).sum()
            }
            Operation::Fsync(_) | Operation::Fdatasync(_) => 0,
        }
    }
}

/// # Safety
///
/// `pieces` are `count` descriptions of memory that stays until the completion has come.
unsafe fn lent(pieces: *const libc::iovec, count: i32) -> Vec<Buffer> {
    // SAFETY: the caller's promise.
    let pieces = unsafe { std::slice::from_raw_parts(pieces, count as usize) };
    // SAFETY: as above.
    pieces
        .iter()
        .map(|piece| unsafe { Buffer::lent(piece.iov_base.cast(), piece.iov_len) })
        .collect()
}

/// A fiber that waits for an operation; on its stack.
#[derive(Debug)]
pub(super) struct Waiting {
    place: Place,
    result: AtomicI64,
    done: AtomicBool,
}

impl Waiting {
    pub(super) fn new(place: Place) -> Waiting {
        Waiting { place, result: AtomicI64::new(0), done: AtomicBool::new(false) }
    }

    /// The result, once it has come.
    pub(super) fn result(&self) -> Option<i64> {
        self.done.load(Ordering::Acquire).then(|| self.result.load(Ordering::Relaxed))
    }
}

/// A non-blocking operation of a task.
#[derive(Debug)]
pub(super) struct Promise {
    pub(super) task: TaskRef,
    place: ResultPlace,
    bytes: i64,
    pub(super) writes: bool,
    /// It counts as complete at this moment of the clock, and not before.
    pub(super) due_ns: u64,
}

impl Promise {
    /// Puts the result where it was asked for. What went wrong, if nobody asked.
    pub(super) fn keep(&self, result: i64) -> Option<i64> {
        if !self.place.0.is_null() {
            self.place.set(result);
            return None;
        }
        match result {
            error if error < 0 => Some(error),
            short if short < self.bytes => Some(-i64::from(libc::EIO)),
            _ => None,
        }
    }
}

/// What a completion is for.
pub(super) enum Done {
    /// This fiber goes on.
    Fiber(Place),
    /// This was promised, and came.
    Promised(Box<Promise>, i64),
}

/// The operations of one worker.
pub(super) struct Io {
    line: Mutex<Line>,
    /// Operations that have not completed, those in the line included.
    outstanding: AtomicUsize,
    /// Submitted and perhaps not handed to the kernel.
    unflushed: AtomicUsize,
    fd: RawFd,
}

impl std::fmt::Debug for Io {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io").field("outstanding", &self.outstanding).finish_non_exhaustive()
    }
}

thread_local! {
    /// Kept between polls, so that none allocates.
    static COMPLETIONS: Cell<Vec<Completion>> = const { Cell::new(Vec::new()) };
}

impl Io {
    pub(super) fn new(engine: Box<dyn Engine>) -> Io {
        use std::os::fd::AsRawFd;
        let fd = engine.fd().as_raw_fd();
        let zero = || AtomicUsize::new(0);
        let line = Mutex::new(Line::new(engine));
        Io { line, outstanding: zero(), unflushed: zero(), fd }
    }

    /// The descriptor that tells of completions.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the engine lives as long as this, and so does its descriptor.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }

    /// Which engine, and why.
    pub(super) fn about(&self) -> String {
        let about = self.line.lock().engine.about();
        format!("{}: {}", about.name, about.reason)
    }

    /// How many operations have not completed.
    pub(super) fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Acquire)
    }

    /// Starts a blocking operation; its fiber is resumed when it is complete.
    ///
    /// # Safety
    ///
    /// `waiting` and the memory of the operation stay until the completion has come.
    pub(super) unsafe fn begin(&self, operation: &Operation, waiting: &Waiting) {
        // SAFETY: the caller's promise.
        let op = unsafe { operation.value() };
        self.submit(&raw const *waiting as u64, op);
    }

    /// Starts a non-blocking operation, which counts in the task already.
    ///
    /// # Safety
    ///
    /// The memory of the operation stays until the completion has come.
    pub(super) unsafe fn promise(&self, operation: &Operation, task: TaskRef, place: ResultPlace) {
        let due_ns = task.get().io().map_or(0, |io| io.before(operation));
        let (bytes, writes) = (operation.bytes(), operation.writes());
        let promise = Box::new(Promise { task, place, bytes, writes, due_ns });
        // SAFETY: the caller's promise.
        let op = unsafe { operation.value() };
        let is_first = self.outstanding() == 0;
        self.submit(Box::into_raw(promise) as u64 | PROMISE, op);
        if is_first {
            // The task may compute for long before anybody flushes. Those that follow go with the
            // next batch, or are handed over by whoever sees this one complete.
            self.flush();
        }
    }

    fn submit(&self, token: u64, op: Op) {
        self.outstanding.fetch_add(1, Ordering::AcqRel);
        let mut line = self.line.lock();
        // An engine of threads that gets none does it here, by calls that `libalongside_preload`
        // would turn into an operation of the task: again into this line.
        outside_of_tasks(|| line.submit(token, op));
        if self.unflushed.fetch_add(1, Ordering::AcqRel) + 1 >= BATCH_MAX {
            line.engine.flush();
            self.unflushed.store(0, Ordering::Release);
        }
    }

    /// Hands everything submitted to the kernel.
    pub(super) fn flush(&self) {
        if self.unflushed.load(Ordering::Acquire) > 0 {
            let mut line = self.line.lock();
            self.unflushed.store(0, Ordering::Release);
            line.engine.flush();
        }
    }

    /// Takes what has completed and tells `done` of each; how many. `wait` is whether to wait for
    /// somebody else who is at it (else nothing is done then).
    pub(super) fn poll(&self, wait: bool, mut done: impl FnMut(Done)) -> usize {
        if self.outstanding() == 0 {
            return 0;
        }
        let mut completions = COMPLETIONS.try_with(Cell::take).unwrap_or_default();
        {
            let line = if wait { Some(self.line.lock()) } else { self.line.try_lock() };
            let Some(mut line) = line else {
                let _ = COMPLETIONS.try_with(|kept| kept.set(completions));
                return 0;
            };
            self.unflushed.store(0, Ordering::Release);
            line.engine.poll(&mut completions);
            if !completions.is_empty() && line.waiting() > 0 {
                line.refill();
            }
        }
        let count = completions.len();
        if count > 0 {
            self.outstanding.fetch_sub(count, Ordering::AcqRel);
        }
        for completion in completions.drain(..) {
            done(take_apart(completion));
        }
        let _ = COMPLETIONS.try_with(|kept| kept.set(completions));
        count
    }
}

fn take_apart(completion: Completion) -> Done {
    let result = match completion.result {
        Ok(answer) => answer.bytes() as i64,
        Err(errno) => -i64::from(errno.0),
    };
    if completion.token & PROMISE != 0 {
        let promise = (completion.token & !PROMISE) as *mut Promise;
        // SAFETY: `promise` made this token from a box, and this is its one completion.
        return Done::Promised(unsafe { Box::from_raw(promise) }, result);
    }
    // SAFETY: `begin` made this token; the fiber with the value on its stack goes on only after
    // `done` is set and it was resumed, which the caller does with the place read here before.
    let waiting = unsafe { &*(completion.token as *const Waiting) };
    let place = waiting.place;
    waiting.result.store(result, Ordering::Relaxed);
    waiting.done.store(true, Ordering::Release);
    Done::Fiber(place)
}
