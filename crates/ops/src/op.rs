//! What can be done to a file. Each operation lists the errors that it gives and what they mean.
//!
//! Errors that every operation on a descriptor has: `EBADF`, the descriptor is not open, or not for
//! this (also: it was closed before the kernel had the request); `EIO`, the device failed, and for
//! a write or a sync the data may be lost; `ENOMEM`, the kernel has no memory. Those that every
//! operation on a path has: `ENOENT`, the name or a folder of it is not there; `ENOTDIR`, what
//! should be a folder is not; `EACCES`, a folder may not be searched, or the mode forbids it;
//! `ELOOP`, symbolic links in a circle; `ENAMETOOLONG`; `ENOMEM`.

use std::ffi::CString;
use std::os::fd::RawFd;

use crate::Buffer;

/// An operation on a file, with the memory that it needs.
///
/// Descriptors are borrowed: they have to stay open until the operation has reached the kernel,
/// and mean the same file until the completion. Offsets are positions in the file, at most
/// `i64::MAX`; a descriptor's own position is neither used nor changed. Relative paths begin at
/// the current folder.
#[derive(Debug)]
pub enum Op {
    /// Reads `buffer.len()` bytes at `offset`. Answer: `Bytes`, fewer at the end of the file, 0
    /// past it.
    ///
    /// - `EISDIR`: a folder. `ESPIPE`: a pipe, a socket or a terminal, which has no offsets.
    /// - `EINVAL`: the offset is too large, or the file cannot be read. Never because of
    ///   `O_DIRECT`: requests that are not aligned are served another way.
    /// - `EIO`: a bad sector, or the device is gone. `ESTALE`: a network file system lost the
    ///   file. `EFAULT`: lent memory is not there.
    Read {
        /// The file.
        fd: RawFd,
        /// What is read into.
        buffer: Buffer,
        /// Where in the file.
        offset: u64,
    },
    /// Writes the buffer at `offset`; a file opened with `O_APPEND` is written at its end. Answer:
    /// `Bytes`, all of them unless there was an error after some.
    ///
    /// - `ENOSPC`, `EDQUOT`: no space, or the quota is used up; try a lower layer. `EFBIG`: past
    ///   the limit of the file system or of the process.
    /// - `EIO`: the data may be lost. `EROFS`, `EPERM`: remounted read-only, or sealed.
    /// - `ESPIPE`: a pipe or a socket. `EINVAL`, `EFAULT`, `ESTALE`: as for a read.
    Write {
        /// The file.
        fd: RawFd,
        /// What is written.
        buffer: Buffer,
        /// Where in the file.
        offset: u64,
    },
    /// Reads into several buffers, one after the other. Errors as of `Read`; `EINVAL` also: more
    /// than 1,024 buffers.
    ReadVectored {
        /// The file.
        fd: RawFd,
        /// What is read into, in this order.
        buffers: Vec<Buffer>,
        /// Where in the file.
        offset: u64,
    },
    /// Writes several buffers, one after the other. Errors as of `Write`; `EINVAL` also: more than
    /// 1,024 buffers.
    WriteVectored {
        /// The file.
        fd: RawFd,
        /// What is written, in this order.
        buffers: Vec<Buffer>,
        /// Where in the file.
        offset: u64,
    },
    /// Makes the file's data and what belongs to it (size, times) durable: all that was written
    /// and completed before this was submitted.
    ///
    /// - `EIO`, `ENOSPC`, `EDQUOT`: something written earlier is lost. It is said once: a second
    ///   `Fsync` that succeeds does not mean that the data is there.
    /// - `EINVAL`, `EROFS`: this kind of file cannot be synced.
    Fsync {
        /// The file.
        fd: RawFd,
    },
    /// As `Fsync`, without what is not needed to read the data back (times). Errors as of `Fsync`.
    Fdatasync {
        /// The file.
        fd: RawFd,
    },
    /// Opens a file. Answer: `Fd`. The flags are used as they are; think of `O_CLOEXEC`.
    ///
    /// - `EEXIST`: it is there, and `O_CREAT | O_EXCL` were given. `EISDIR`: a folder, to be
    ///   written. `EROFS`: a read-only file system. `ENOSPC`, `EDQUOT`: no room for a new name.
    /// - `EMFILE`, `ENFILE`: too many files are open, in this process or at all.
    /// - `EINVAL`: flags that do not go together, or `O_DIRECT` where there is none.
    /// - `EAGAIN`: with `O_NONBLOCK`, somebody has a lease on the file. `ENXIO`: with
    ///   `O_NONBLOCK`, a pipe that nobody reads. `ETXTBSY`: a program that runs, to be written.
    Open {
        /// Its name.
        path: CString,
        /// As for `open(2)`: `O_RDONLY`, ...
        flags: i32,
        /// Permissions of a new file, before the umask.
        mode: u32,
    },
    /// Closes a descriptor, after the operations on it that were submitted before. It is closed
    /// whatever the result is.
    ///
    /// - `EIO`, `ENOSPC`, `EDQUOT`: something written earlier is lost (network file systems).
    /// - `EINTR` is not given: the descriptor is closed then.
    Close {
        /// The descriptor. It belongs to the operation.
        fd: RawFd,
    },
    /// What is known of a file; symbolic links are followed. Answer: `Stat`. Errors of a path.
    Stat {
        /// Its name.
        path: CString,
    },
    /// Reserves, frees or zeroes a range, as `fallocate(2)`.
    ///
    /// - `ENOSPC`, `EDQUOT`: no room; nothing is reserved, or a part. `EFBIG`: past the limit.
    /// - `EOPNOTSUPP`: the file system cannot do this `mode`. `EINVAL`: a length of 0, or a range
    ///   or `mode` that makes no sense. `ENODEV`, `ESPIPE`: not a regular file.
    /// - `EPERM`, `ETXTBSY`: sealed, immutable, or in use as swap.
    Fallocate {
        /// The file.
        fd: RawFd,
        /// As for `fallocate(2)`: 0 reserves and grows the file.
        mode: i32,
        /// Where the range begins.
        offset: u64,
        /// How long it is.
        len: u64,
    },
    /// Makes the file this long: cuts it, or grows it with zeros that take no space.
    ///
    /// - `EINVAL`: not open for writing, not a regular file, or too long to be a number.
    /// - `EFBIG`: past the limit. `EPERM`, `ETXTBSY`: sealed, append-only, or a running program.
    Truncate {
        /// The file.
        fd: RawFd,
        /// Its new length.
        len: u64,
    },
    /// Gives a file another name in the same file system; what had that name is replaced at once.
    /// Errors of a path, and:
    ///
    /// - `EXDEV`: another file system; copy, sync, and remove. `ENOTEMPTY`, `EEXIST`: the target
    ///   is a folder with something in it. `EISDIR`, `ENOTDIR`: file and folder mixed.
    /// - `EINVAL`: a folder into itself. `EBUSY`: in use as a mount. `ENOSPC`, `EDQUOT`: no room
    ///   for the name. `EROFS`, `EPERM`: not to be changed.
    Rename {
        /// The old name.
        from: CString,
        /// The new name.
        to: CString,
    },
    /// Removes a name; the file goes with its last name and descriptor. Errors of a path, and:
    ///
    /// - `EISDIR`: a folder. `EBUSY`: in use by the system. `EROFS`, `EPERM`: not to be changed.
    Unlink {
        /// The name.
        path: CString,
    },
    /// Copies bytes of one file to another, inside the kernel where that is possible. Answer:
    /// `Bytes`, fewer when `from` ends before. Errors as of a `Read` of `from` and a `Write` of
    /// `to`, and `EINVAL`: the ranges overlap in one file.
    Copy {
        /// What is read.
        from: RawFd,
        /// Where in it.
        from_offset: u64,
        /// What is written.
        to: RawFd,
        /// Where in it.
        to_offset: u64,
        /// How many bytes.
        len: u64,
    },
}

impl Op {
    /// Its name, in lower case: for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::ReadVectored { .. } => "readv",
            Self::WriteVectored { .. } => "writev",
            Self::Fsync { .. } => "fsync",
            Self::Fdatasync { .. } => "fdatasync",
            Self::Open { .. } => "open",
            Self::Close { .. } => "close",
            Self::Stat { .. } => "stat",
            Self::Fallocate { .. } => "fallocate",
            Self::Truncate { .. } => "truncate",
            Self::Rename { .. } => "rename",
            Self::Unlink { .. } => "unlink",
            Self::Copy { .. } => "copy",
        }
    }

    /// The descriptors that it works on.
    pub fn fds(&self) -> [Option<RawFd>; 2] {
        match *self {
            Self::Read { fd, .. }
            | Self::Write { fd, .. }
            | Self::ReadVectored { fd, .. }
            | Self::WriteVectored { fd, .. }
            | Self::Fsync { fd }
            | Self::Fdatasync { fd }
            | Self::Close { fd }
            | Self::Fallocate { fd, .. }
            | Self::Truncate { fd, .. } => [Some(fd), None],
            Self::Copy { from, to, .. } => [Some(from), Some(to)],
            Self::Open { .. } | Self::Stat { .. } | Self::Rename { .. } | Self::Unlink { .. } => {
                [None, None]
            }
        }
    }

    /// The bytes that it would read, write or copy; 0 for what moves none.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Read { buffer, .. } | Self::Write { buffer, .. } => buffer.len() as u64,
            Self::ReadVectored { buffers, .. } | Self::WriteVectored { buffers, .. } => {
                buffers.iter().map(|buffer| buffer.len() as u64).sum()
            }
            Self::Copy { len, .. } => *len,
            Self::Fsync { .. }
            | Self::Fdatasync { .. }
            | Self::Open { .. }
            | Self::Close { .. }
            | Self::Stat { .. }
            | Self::Fallocate { .. }
            | Self::Truncate { .. }
            | Self::Rename { .. }
            | Self::Unlink { .. } => 0,
        }
    }

    /// The buffers, in order; none for what has no memory.
    pub fn into_buffers(self) -> Vec<Buffer> {
        match self {
            Self::Read { buffer, .. } | Self::Write { buffer, .. } => vec![buffer],
            Self::ReadVectored { buffers, .. } | Self::WriteVectored { buffers, .. } => buffers,
            Self::Fsync { .. }
            | Self::Fdatasync { .. }
            | Self::Open { .. }
            | Self::Close { .. }
            | Self::Stat { .. }
            | Self::Fallocate { .. }
            | Self::Truncate { .. }
            | Self::Rename { .. }
            | Self::Unlink { .. }
            | Self::Copy { .. } => Vec::new(),
        }
    }
}
