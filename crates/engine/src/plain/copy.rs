//! Copies bytes from file to file: inside the kernel where it can, else through a buffer.

use std::os::fd::RawFd;

use ops::{Buffer, Errno};

use super::transfer::{some, Transfer};
use super::CALL_BYTES_MAX;

/// What is read and written at a time when the kernel does not copy.
const PIECE_BYTES_MAX: u64 = 1 << 20;

/// Copies `len` bytes, or up to the end of `from`; the count, or the error when there are none.
pub(super) fn copy(from: RawFd, at: u64, to: RawFd, to_at: u64, len: u64) -> Result<u64, Errno> {
    let is_absurd = |offset: u64| offset.checked_add(len).is_none_or(|end| end > i64::MAX as u64);
    if is_absurd(at) || is_absurd(to_at) {
        return Err(Errno(libc::EINVAL));
    }
    let mut done = 0;
    while done < len {
        match in_kernel(from, at + done, to, to_at + done, len - done) {
            Ok(0) if done > 0 => break,
            // It also says 0 for files that are made up on the fly, as those in `/proc`.
            Ok(0) => return through_a_buffer(from, at, to, to_at, len),
            Ok(moved) => done += moved,
            Err(Errno(libc::EINTR)) => {}
            Err(errno) if is_for_a_buffer(errno, from, to) => {
                let rest = through_a_buffer(from, at + done, to, to_at + done, len - done);
                return some(done, rest.map(|moved| done + moved));
            }
            Err(errno) => return some(done, Err(errno)),
        }
    }
    Ok(done)
}

fn in_kernel(from: RawFd, at: u64, to: RawFd, to_at: u64, len: u64) -> Result<u64, Errno> {
    let (mut at, mut to_at) = (at as libc::off64_t, to_at as libc::off64_t);
    let len = len.min(CALL_BYTES_MAX as u64) as usize;
    // SAFETY: the offsets live through the call; no other memory is touched.
    let moved = unsafe { libc::copy_file_range(from, &mut at, to, &mut to_at, len, 0) };
    u64::try_from(moved).map_err(|_| Errno::last())
}

/// Whether the kernel only means that it does not copy between these two.
fn is_for_a_buffer(errno: Errno, from: RawFd, to: RawFd) -> bool {
    match errno.0 {
        libc::EXDEV | libc::ENOSYS | libc::EOPNOTSUPP | libc::EPERM => true,
        // Of regular files it is an overlap, and true.
        libc::EINVAL => !(is_regular(from) && is_regular(to)),
        _ => false,
    }
}

fn is_regular(fd: RawFd) -> bool {
    // SAFETY: zeros are a valid value of this struct of numbers.
    let mut stat: libc::stat64 = unsafe { std::mem::zeroed() };
    // SAFETY: the struct is writable and lives through the call.
    let known = unsafe { libc::fstat64(fd, &mut stat) } == 0;
    known && stat.st_mode & libc::S_IFMT == libc::S_IFREG
}

fn through_a_buffer(from: RawFd, at: u64, to: RawFd, to_at: u64, len: u64) -> Result<u64, Errno> {
    let mut piece = Buffer::new(PIECE_BYTES_MAX.min(len) as usize);
    let mut done = 0;
    while done < len {
        let want = PIECE_BYTES_MAX.min(len - done) as usize;
        let read = part(from, &mut piece, want, at + done, true);
        let got = match some(done, read) {
            Ok(got) if got == 0 || read.is_err() => break,
            Ok(got) => got,
            Err(errno) => return Err(errno),
        };
        match part(to, &mut piece, got as usize, to_at + done, false) {
            Ok(put) if put < got => return Ok(done + put),
            Ok(put) => done += put,
            Err(errno) => return some(done, Err(errno)),
        }
    }
    Ok(done)
}

/// Moves the first `len` bytes of the piece.
fn part(
    fd: RawFd,
    piece: &mut Buffer,
    len: usize,
    offset: u64,
    is_read: bool,
) -> Result<u64, Errno> {
    // SAFETY: a part of `piece`, which lives longer and is not used meanwhile.
    let part = [unsafe { Buffer::lent(piece.as_mut_ptr(), len) }];
    Transfer { fd, buffers: &part, offset, is_read }.run(0)
}
