//! One operation under way: its entry for the ring, and what the ring's answer means.
//!
//! The kernel is given addresses of what the slot owns on the heap: the buffers, the paths, and
//! here the list of parts and the struct for `statx`. A slot can move; these do not.

use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

use io_uring::{opcode, squeue, types};
use ops::{Answer, Errno, Op, Stat};

use crate::order::Place;
use crate::plain::{self, Transfer, CALL_BYTES_MAX};

/// How often the ring is asked again before the pool is.
const RETRIES_MAX: u8 = 16;

/// One operation, wherever it is.
pub(super) struct Slot {
    pub token: u64,
    pub place: Place,
    /// The operation; `None` while the pool has it.
    pub op: Option<Op>,
    /// Bytes moved so far.
    pub done: u64,
    pub state: State,
    retries: u8,
    /// The parts that the kernel was told to move.
    list: Vec<libc::iovec>,
    /// Where the kernel writes what it knows of a file.
    stat: Option<Box<MaybeUninit<libc::statx>>>,
}

// SAFETY: the list points into buffers of the slot's own operation, which go where it goes.
unsafe impl Send for Slot {}

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A close that waits for others on its descriptor.
    Waiting,
    /// In the ring, submitted or not.
    Ring,
    /// In the pool.
    Pool,
}

/// What is to be done after the ring's answer.
pub(super) enum Verdict {
    /// It is over.
    Over(Result<Answer, Errno>),
    /// Into the ring again, for the rest.
    Again,
    /// The pool does the rest.
    ToPool,
}

impl Slot {
    pub fn new(token: u64, op: Op, sequence: u64) -> Self {
        let place = Place::of(&op, sequence);
        Self {
            token,
            place,
            op: Some(op),
            done: 0,
            state: State::Waiting,
            retries: 0,
            list: Vec::new(),
            stat: None,
        }
    }

    /// The entry that does the operation, or the rest of it.
    pub fn entry(&mut self) -> squeue::Entry {
        let op = self.op.as_ref().expect("the operation is here to be put into the ring");
        match op {
            Op::Read { fd, buffer, offset } => {
                let (start, len) = rest(buffer.as_ptr(), buffer.len(), self.done);
                let entry = opcode::Read::new(types::Fd(*fd), start, len);
                entry.offset(offset + self.done).build()
            }
            Op::Write { fd, buffer, offset } => {
                let (start, len) = rest(buffer.as_ptr(), buffer.len(), self.done);
                let entry = opcode::Write::new(types::Fd(*fd), start, len);
                entry.offset(offset + self.done).build()
            }
            Op::ReadVectored { fd, buffers, offset } => {
                self.list = plain::iovecs(buffers, self.done);
                let (list, count) = (self.list.as_ptr(), self.list.len() as u32);
                let entry = opcode::Readv::new(types::Fd(*fd), list, count);
                entry.offset(offset + self.done).build()
            }
            Op::WriteVectored { fd, buffers, offset } => {
                self.list = plain::iovecs(buffers, self.done);
                let (list, count) = (self.list.as_ptr(), self.list.len() as u32);
                let entry = opcode::Writev::new(types::Fd(*fd), list, count);
                entry.offset(offset + self.done).build()
            }
            Op::Fsync { fd } => opcode::Fsync::new(types::Fd(*fd)).build(),
            Op::Fdatasync { fd } => {
                opcode::Fsync::new(types::Fd(*fd)).flags(types::FsyncFlags::DATASYNC).build()
            }
            Op::Close { fd } => opcode::Close::new(types::Fd(*fd)).build(),
            Op::Fallocate { fd, mode, offset, len } => {
                opcode::Fallocate::new(types::Fd(*fd), *len).offset(*offset).mode(*mode).build()
            }
            Op::Truncate { fd, len } => opcode::Ftruncate::new(types::Fd(*fd), *len).build(),
            Op::Stat { path } => {
                let raw = self.stat.insert(Box::new(MaybeUninit::zeroed()));
                let (path, into) = (path.as_ptr(), raw.as_mut_ptr().cast());
                opcode::Statx::new(HERE, path, into).mask(libc::STATX_BASIC_STATS).build()
            }
            Op::Open { path, flags, mode } => {
                let entry = opcode::OpenAt::new(HERE, path.as_ptr()).flags(*flags).mode(*mode);
                // Opened while submitting it would be opened with `O_NONBLOCK`, which for a named
                // pipe is another operation; so the kernel's worker opens it.
                entry.build().flags(squeue::Flags::ASYNC)
            }
            Op::Rename { from, to } => {
                opcode::RenameAt::new(HERE, from.as_ptr(), HERE, to.as_ptr()).build()
            }
            Op::Unlink { path } => opcode::UnlinkAt::new(HERE, path.as_ptr()).build(),
            Op::Copy { .. } => unreachable!("the ring has no copy"),
        }
    }

    /// What the ring's answer means.
    pub fn judge(&mut self, result: i32) -> Verdict {
        let errno = match u64::try_from(result) {
            Ok(value) => return self.succeeded(value),
            Err(_) => Errno(-result),
        };
        let op = self.op.as_ref().expect("the ring had the operation");
        match errno.0 {
            libc::EINTR if matches!(op, Op::Close { .. }) => Verdict::Over(plain::closed(errno)),
            // Nobody cancels here: the kernel does, when the thread that submitted has ended.
            libc::EINTR | libc::ECANCELED if self.retries < RETRIES_MAX => {
                self.retries += 1;
                Verdict::Again
            }
            libc::EINTR | libc::ECANCELED | libc::EAGAIN => Verdict::ToPool,
            libc::EINVAL if Transfer::of(op).is_some_and(|t| plain::is_direct(t.fd)) => {
                Verdict::ToPool
            }
            _ if self.done > 0 => Verdict::Over(Ok(Answer::Bytes(self.done))),
            _ => Verdict::Over(Err(errno)),
        }
    }

    fn succeeded(&mut self, value: u64) -> Verdict {
        let op = self.op.as_ref().expect("the ring had the operation");
        if let Some(transfer) = Transfer::of(op) {
            self.done += value;
            let total = transfer.total();
            assert!(self.done <= total, "the kernel moved {} of {total} bytes", self.done);
            let is_over = value == 0
                || self.done == total
                || !plain::goes_on(transfer.fd, transfer.is_read, transfer.offset + self.done);
            return if is_over {
                Verdict::Over(Ok(Answer::Bytes(self.done)))
            } else {
                Verdict::Again
            };
        }
        Verdict::Over(Ok(match (op, &self.stat) {
            (Op::Open { .. }, _) => {
                // SAFETY: the kernel just made this descriptor for us.
                Answer::Fd(unsafe { OwnedFd::from_raw_fd(value as i32) })
            }
            (Op::Stat { .. }, Some(raw)) => {
                // SAFETY: zeros are a valid value of it, whatever the kernel filled in.
                Answer::Stat(Box::new(Stat::from(unsafe { raw.assume_init_ref() })))
            }
            _ => Answer::Nothing,
        }))
    }
}

/// Paths begin at the current folder.
const HERE: types::Fd = types::Fd(libc::AT_FDCWD);

/// What one call moves of the bytes after the first `done`.
fn rest(start: *const u8, len: usize, done: u64) -> (*mut u8, u32) {
    let done = done as usize;
    assert!(done <= len, "{done} bytes are done, of {len}");
    (start.wrapping_add(done).cast_mut(), (len - done).min(CALL_BYTES_MAX) as u32)
}
