//! Reads and writes, continued where they fall short.

use std::os::fd::RawFd;

use ops::{Buffer, Errno, Op};

use super::{direct, BUFFERS_MAX, CALL_BYTES_MAX};

/// How often a call that says `EAGAIN` is made, with a wait between, before that is the result.
const AGAIN_MAX: u32 = 1000;

/// How long one such wait is.
const AGAIN_WAIT_MS: i32 = 1;

/// A read or write, scattered or not, as the calls see it.
#[derive(Clone, Copy)]
pub(crate) struct Transfer<'a> {
    pub fd: RawFd,
    pub buffers: &'a [Buffer],
    pub offset: u64,
    pub is_read: bool,
}

impl<'a> Transfer<'a> {
    /// The transfer that the operation is, if it is one.
    pub fn of(op: &'a Op) -> Option<Self> {
        let (fd, buffers, offset, is_read) = match op {
            Op::Read { fd, buffer, offset } => (fd, std::slice::from_ref(buffer), offset, true),
            Op::Write { fd, buffer, offset } => (fd, std::slice::from_ref(buffer), offset, false),
            Op::ReadVectored { fd, buffers, offset } => (fd, &buffers[..], offset, true),
            Op::WriteVectored { fd, buffers, offset } => (fd, &buffers[..], offset, false),
            _ => return None,
        };
        Some(Self { fd: *fd, buffers, offset: *offset, is_read })
    }

    /// The bytes wanted.
    pub fn total(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.len() as u64).sum()
    }

    /// Whether every call would refuse it, for what it is and not for its file.
    pub fn is_absurd(&self) -> bool {
        let end = self.offset.checked_add(self.total());
        end.is_none_or(|end| end > i64::MAX as u64) || self.buffers.len() > BUFFERS_MAX
    }

    /// Moves the bytes after the first `done`; the count of all, or the error when there are none.
    pub fn run(&self, mut done: u64) -> Result<u64, Errno> {
        let total = self.total();
        let mut tries = 0;
        loop {
            let moved = match self.once(done) {
                Ok(moved) => moved,
                Err(Errno(libc::EINTR)) => continue,
                Err(Errno(libc::EAGAIN)) if tries < AGAIN_MAX => {
                    tries += 1;
                    self.pause();
                    continue;
                }
                Err(Errno(libc::EINVAL)) if !self.is_absurd() && direct::is_direct(self.fd) => {
                    return some(done, direct::run(self, done));
                }
                Err(errno) => return some(done, Err(errno)),
            };
            done += moved;
            assert!(done <= total, "the kernel moved {done} of {total} bytes");
            if moved == 0 || done == total || !goes_on(self.fd, self.is_read, self.offset + done) {
                return Ok(done);
            }
        }
    }

    /// One call, for the bytes after the first `done`.
    pub fn once(&self, done: u64) -> Result<u64, Errno> {
        let at = (self.offset.wrapping_add(done)) as libc::off64_t;
        let moved = if let [buffer] = self.buffers {
            let rest = &buffer[done as usize..];
            let (start, len) = (rest.as_ptr(), rest.len().min(CALL_BYTES_MAX));
            if self.is_read {
                let start = buffer.as_ptr().wrapping_add(done as usize).cast_mut();
                // SAFETY: the buffer has these bytes, and the operation owns them.
                unsafe { libc::pread64(self.fd, start.cast(), len, at) }
            } else {
                // SAFETY: the buffer has these bytes.
                unsafe { libc::pwrite64(self.fd, start.cast(), len, at) }
            }
        } else {
            let list = iovecs(self.buffers, done);
            let count = list.len() as i32;
            if self.is_read {
                // SAFETY: the list describes parts of the buffers, which the operation owns.
                unsafe { libc::preadv64(self.fd, list.as_ptr(), count, at) }
            } else {
                // SAFETY: the list describes parts of the buffers.
                unsafe { libc::pwritev64(self.fd, list.as_ptr(), count, at) }
            }
        };
        u64::try_from(moved).map_err(|_| Errno::last())
    }

    /// Sleeps until the file may be ready, for a moment at most.
    fn pause(&self) {
        let events = if self.is_read { libc::POLLIN } else { libc::POLLOUT };
        let mut waited = libc::pollfd { fd: self.fd, events, revents: 0 };
        // SAFETY: one pollfd, which lives through the call. What it finds is tried, not believed.
        unsafe { libc::poll(&mut waited, 1, AGAIN_WAIT_MS) };
    }
}

/// An error after some bytes is the count of these bytes.
pub(super) fn some(done: u64, result: Result<u64, Errno>) -> Result<u64, Errno> {
    match result {
        Err(_) if done > 0 => Ok(done),
        result => result,
    }
}

/// The parts of the buffers after the first `done` bytes. Empty ones in between stay: the kernel
/// does not mind.
pub(crate) fn iovecs(buffers: &[Buffer], done: u64) -> Vec<libc::iovec> {
    let mut skip = done as usize;
    let mut list = Vec::with_capacity(buffers.len());
    for buffer in buffers {
        let here = skip.min(buffer.len());
        skip -= here;
        if here == 0 || here < buffer.len() {
            let start = buffer.as_ptr().wrapping_add(here).cast_mut();
            list.push(libc::iovec { iov_base: start.cast(), iov_len: buffer.len() - here });
        }
    }
    list
}

/// Whether a transfer that fell short before `at` is continued: on block devices, and on regular
/// files unless a read has come to the end.
pub(crate) fn goes_on(fd: RawFd, is_read: bool, at: u64) -> bool {
    // SAFETY: zeros are a valid value of this struct of numbers.
    let mut stat: libc::stat64 = unsafe { std::mem::zeroed() };
    // SAFETY: the struct is writable and lives through the call.
    if unsafe { libc::fstat64(fd, &mut stat) } != 0 {
        return false;
    }
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFBLK => true,
        libc::S_IFREG => !is_read || at < stat.st_size as u64,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continued_list_begins_within_a_buffer() {
        let buffers = [Buffer::new(3), Buffer::new(0), Buffer::new(5)];
        let lens = |done| iovecs(&buffers, done).iter().map(|part| part.iov_len).collect();
        let expected: [(u64, Vec<usize>); 4] =
            [(0, vec![3, 0, 5]), (2, vec![1, 0, 5]), (3, vec![0, 5]), (4, vec![0, 4])];
        for (done, expected) in expected {
            assert_eq!((done, lens(done)), (done, expected));
        }
        let inside = iovecs(&buffers, 4)[1].iov_base as usize;
        assert_eq!(inside, buffers[2].as_ptr() as usize + 1);
    }
}
