//! Operations by plain system calls: what the pools do, and what all engines agree with.

mod copy;
mod direct;
mod transfer;

use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

use ops::{Answer, Errno, Op, Stat};

pub(crate) use direct::is_direct;
pub(crate) use transfer::{goes_on, iovecs, Transfer};

/// The most buffers that one call takes (`IOV_MAX`).
pub(crate) const BUFFERS_MAX: usize = 1024;

/// The most bytes that one call moves (`MAX_RW_COUNT`: below 2 GiB by a page).
pub(crate) const CALL_BYTES_MAX: usize = 0x7fff_f000;

/// Does an operation of which `done` bytes are done already; sleeps as long as it takes.
pub(crate) fn perform(op: &Op, done: u64) -> Result<Answer, Errno> {
    if let Some(transfer) = Transfer::of(op) {
        return transfer.run(done).map(Answer::Bytes);
    }
    match *op {
        // SAFETY: takes no memory.
        Op::Fsync { fd } => again(|| unsafe { libc::fsync(fd) }).map(nothing),
        // SAFETY: takes no memory.
        Op::Fdatasync { fd } => again(|| unsafe { libc::fdatasync(fd) }).map(nothing),
        Op::Open { ref path, flags, mode } => {
            // SAFETY: the path is ended by a zero and lives through the call.
            let fd = again(|| unsafe { libc::open(path.as_ptr(), flags, mode) })?;
            // SAFETY: the kernel just made this descriptor for us.
            Ok(Answer::Fd(unsafe { OwnedFd::from_raw_fd(fd) }))
        }
        // SAFETY: takes no memory, and the descriptor belongs to the operation.
        Op::Close { fd } => match unsafe { libc::close(fd) } {
            0 => Ok(Answer::Nothing),
            _ => closed(Errno::last()),
        },
        Op::Stat { ref path } => stat(path),
        Op::Fallocate { fd, mode, offset, len } => {
            let (offset, len) = (offset as libc::off64_t, len as libc::off64_t);
            // SAFETY: takes no memory. Numbers too large become negative, which the kernel refuses.
            again(|| unsafe { libc::fallocate64(fd, mode, offset, len) }).map(nothing)
        }
        Op::Truncate { fd, len } => {
            // SAFETY: takes no memory; as above for a number too large.
            again(|| unsafe { libc::ftruncate64(fd, len as i64) }).map(nothing)
        }
        Op::Rename { ref from, ref to } => {
            // SAFETY: the paths are ended by zeros and live through the call.
            again(|| unsafe { libc::rename(from.as_ptr(), to.as_ptr()) }).map(nothing)
        }
        Op::Unlink { ref path } => {
            // SAFETY: the path is ended by a zero and lives through the call.
            again(|| unsafe { libc::unlink(path.as_ptr()) }).map(nothing)
        }
        Op::Copy { from, from_offset, to, to_offset, len } => {
            copy::copy(from, from_offset, to, to_offset, len).map(Answer::Bytes)
        }
        Op::Read { .. } | Op::Write { .. } | Op::ReadVectored { .. } | Op::WriteVectored { .. } => {
            unreachable!("{} is a transfer", op.name())
        }
    }
}

/// Makes the call until it is not interrupted.
fn again(mut call: impl FnMut() -> i32) -> Result<i32, Errno> {
    loop {
        match call() {
            -1 if Errno::last() == Errno(libc::EINTR) => {}
            -1 => return Err(Errno::last()),
            value => return Ok(value),
        }
    }
}

fn nothing(_: i32) -> Answer {
    Answer::Nothing
}

/// What a failed close means. Linux has closed the descriptor when it says `EINTR`.
pub(crate) fn closed(errno: Errno) -> Result<Answer, Errno> {
    if errno == Errno(libc::EINTR) {
        Ok(Answer::Nothing)
    } else {
        Err(errno)
    }
}

fn stat(path: &std::ffi::CStr) -> Result<Answer, Errno> {
    let mut raw = MaybeUninit::<libc::statx>::zeroed();
    let mask = libc::STATX_BASIC_STATS;
    // SAFETY: the path is ended by a zero, and the kernel writes within the struct.
    again(|| unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr(), 0, mask, raw.as_mut_ptr()) })?;
    // SAFETY: zeros are a valid value of it, whatever the kernel filled in.
    Ok(Answer::Stat(Box::new(Stat::from(unsafe { raw.assume_init_ref() }))))
}
