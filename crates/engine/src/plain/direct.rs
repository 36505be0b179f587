//! Requests that `O_DIRECT` refuses because they are not aligned.
//!
//! Whether a request is aligned is the kernel's to say (it depends on the file system, the device
//! and the memory), so it is asked by trying: only when it answered `EINVAL` and the descriptor has
//! `O_DIRECT`, a request comes here. Aligned ones pay nothing.
//!
//! - *Reads* go through an aligned bounce buffer that covers what is wanted, still past the cache.
//! - *Writes* of which only the memory is not aligned are copied to an aligned bounce buffer.
//! - *Writes* of which the range is not aligned go through the page cache, by a second descriptor
//!   without `O_DIRECT`. Reading the blocks, changing them and writing them back would also undo
//!   what somebody else writes beside the range at the same moment. Switching the flag off and on
//!   with `fcntl` would switch it for everyone with this open file. The kernel keeps the page
//!   cache and direct requests of one file coherent.
//!
//! The second descriptor is opened through `/proc/self/fd`, so `/proc` must be there and the file
//! must still be permitted to the process; otherwise that error is the result. It is closed after
//! the request, and as with any descriptor of the file that a process closes, POSIX record locks
//! (`F_SETLK`) that the process has on the file are gone then; locks of open files (`F_OFD_SETLK`,
//! `flock`) stay. A program that uses the former with `O_DIRECT` should align its writes.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use ops::{Buffer, Errno};

use super::again;
use super::transfer::Transfer;

/// The size of a bounce buffer; a multiple of every alignment.
const BOUNCE_BYTES_MAX: u64 = 1 << 20;

/// What is assumed of ranges when the kernel does not say: no device in use has larger blocks.
const ALIGNMENT_BYTES_ASSUMED: u64 = 4096;

/// The least that a range is aligned to when it is aligned.
const ALIGNMENT_BYTES_MIN: u64 = 512;

/// Whether requests of this descriptor go past the page cache.
pub(crate) fn is_direct(fd: RawFd) -> bool {
    // SAFETY: takes no memory.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags != -1 && flags & libc::O_DIRECT != 0
}

/// Does what is not aligned, after the first `done` bytes; the count of all.
pub(super) fn run(transfer: &Transfer, done: u64) -> Result<u64, Errno> {
    let (least, covering) = match alignment(transfer.fd) {
        Alignment::Bytes(bytes) => (bytes, bytes),
        Alignment::Unknown => (ALIGNMENT_BYTES_MIN, ALIGNMENT_BYTES_ASSUMED),
        Alignment::Never => return through_the_cache(transfer, done),
    };
    let bounced = if transfer.is_read {
        read_bounced(transfer, done, covering)
    } else if (transfer.offset + done) % least == 0 && (transfer.total() - done) % least == 0 {
        write_bounced(transfer, done)
    } else {
        Stopped { done, errno: Some(Errno(libc::EINVAL)) }
    };
    match bounced.errno {
        None => Ok(bounced.done),
        // Not even this is aligned enough, or never was.
        Some(Errno(libc::EINVAL)) => through_the_cache(transfer, bounced.done),
        Some(_) if bounced.done > 0 => Ok(bounced.done),
        Some(errno) => Err(errno),
    }
}

enum Alignment {
    Bytes(u64),
    Unknown,
    Never,
}

/// What the file wants the range of a request to be aligned to.
fn alignment(fd: RawFd) -> Alignment {
    let mut raw = MaybeUninit::<libc::statx>::zeroed();
    let (flags, mask) = (libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN);
    // SAFETY: the path is ended by a zero, and the kernel writes within the struct.
    let got = unsafe { libc::statx(fd, c"".as_ptr(), flags, mask, raw.as_mut_ptr()) };
    // SAFETY: zeros are a valid value of it, whatever the kernel filled in.
    let raw = unsafe { raw.assume_init_ref() };
    if got != 0 || raw.stx_mask & libc::STATX_DIOALIGN == 0 {
        return Alignment::Unknown;
    }
    match u64::from(raw.stx_dio_offset_align) {
        0 => Alignment::Never,
        bytes if bytes.is_power_of_two() && bytes <= BOUNCE_BYTES_MAX => Alignment::Bytes(bytes),
        _ => Alignment::Unknown,
    }
}

/// How far it came, and why no farther.
struct Stopped {
    done: u64,
    errno: Option<Errno>,
}

fn read_bounced(transfer: &Transfer, mut done: u64, alignment: u64) -> Stopped {
    let end = transfer.offset + transfer.total();
    let mut bounce = Buffer::new(bounce_bytes(end - transfer.offset - done + 2 * alignment));
    while transfer.offset + done < end {
        let at = transfer.offset + done;
        let start = at / alignment * alignment;
        let want = (end.next_multiple_of(alignment) - start).min(bounce.len() as u64);
        let read = match call(transfer.fd, &mut bounce, want, start, true) {
            Ok(read) => read,
            Err(errno) => return Stopped { done, errno: Some(errno) },
        };
        let useful = read.min(end - start).saturating_sub(at - start);
        if useful == 0 {
            break;
        }
        let from = (at - start) as usize;
        scatter(transfer, done, &bounce[from..from + useful as usize]);
        done += useful;
    }
    Stopped { done, errno: None }
}

fn write_bounced(transfer: &Transfer, mut done: u64) -> Stopped {
    let total = transfer.total();
    let mut bounce = Buffer::new(bounce_bytes(total - done));
    while done < total {
        let want = (total - done).min(bounce.len() as u64);
        gather(transfer, done, &mut bounce[..want as usize]);
        match call(transfer.fd, &mut bounce, want, transfer.offset + done, false) {
            Ok(0) => break,
            Ok(written) => done += written,
            Err(errno) => return Stopped { done, errno: Some(errno) },
        }
    }
    Stopped { done, errno: None }
}

fn bounce_bytes(wanted: u64) -> usize {
    wanted.next_multiple_of(ALIGNMENT_BYTES_ASSUMED).min(BOUNCE_BYTES_MAX) as usize
}

/// One call for the first `len` bytes of the bounce buffer, made until it is not interrupted.
fn call(
    fd: RawFd,
    bounce: &mut Buffer,
    len: u64,
    offset: u64,
    is_read: bool,
) -> Result<u64, Errno> {
    assert!(len <= bounce.len() as u64, "{len} bytes of a bounce buffer of {}", bounce.len());
    // SAFETY: a part of `bounce`, which lives longer and is not used meanwhile.
    let part = [unsafe { Buffer::lent(bounce.as_mut_ptr(), len as usize) }];
    let transfer = Transfer { fd, buffers: &part, offset, is_read };
    loop {
        match transfer.once(0) {
            Err(Errno(libc::EINTR)) => {}
            result => return result,
        }
    }
}

/// Copies bytes to where the transfer wants those after the first `done`.
fn scatter(transfer: &Transfer, done: u64, mut bytes: &[u8]) {
    for (start, room) in parts(transfer, done) {
        let len = room.min(bytes.len());
        // SAFETY: the part is within a buffer of the operation, which is ours to read into and
        // never overlaps the bounce buffer.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, len) };
        bytes = &bytes[len..];
    }
}

/// Fills `bytes` with those that the transfer wants written after the first `done`.
fn gather(transfer: &Transfer, done: u64, mut bytes: &mut [u8]) {
    for (start, there) in parts(transfer, done) {
        let len = there.min(bytes.len());
        // SAFETY: the part is within a buffer of the operation, and never overlaps the bounce
        // buffer.
        unsafe { std::ptr::copy_nonoverlapping(start, bytes.as_mut_ptr(), len) };
        bytes = &mut bytes[len..];
    }
}

/// The parts of the transfer's buffers after the first `done` bytes.
fn parts(transfer: &Transfer, done: u64) -> impl Iterator<Item = (*mut u8, usize)> {
    super::iovecs(transfer.buffers, done)
        .into_iter()
        .map(|part| (part.iov_base.cast::<u8>(), part.iov_len))
}

fn through_the_cache(transfer: &Transfer, done: u64) -> Result<u64, Errno> {
    let twin = cached_twin(transfer.fd)?;
    Transfer { fd: twin.as_raw_fd(), ..*transfer }.run(done)
}

/// The same file, opened again without `O_DIRECT`.
fn cached_twin(fd: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: takes no memory.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags == -1 {
        return Err(Errno::last());
    }
    let kept = libc::O_ACCMODE | libc::O_APPEND | libc::O_SYNC | libc::O_DSYNC;
    let flags = flags & kept | libc::O_CLOEXEC;
    let path = CString::new(format!("/proc/self/fd/{fd}")).expect("no zero in a number");
    // SAFETY: the path is ended by a zero and lives through the call.
    let twin = again(|| unsafe { libc::open(path.as_ptr(), flags) })?;
    // SAFETY: the kernel just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(twin) })
}
