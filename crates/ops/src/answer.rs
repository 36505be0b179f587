//! What an operation gives: the answer or the errno, and the operation itself with its buffers.

use std::os::fd::OwnedFd;

use crate::{Errno, Op};

/// What a success gives.
#[derive(Debug)]
pub enum Answer {
    /// So many bytes were read, written or copied.
    Bytes(u64),
    /// The file that was opened. Dropping it closes it.
    Fd(OwnedFd),
    /// What is known of the file.
    Stat(Box<Stat>),
    /// It is done, and there is nothing to say about it.
    Nothing,
}

impl Answer {
    /// The count of bytes; 0 for an answer of another kind.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(count) => *count,
            Self::Fd(_) | Self::Stat(_) | Self::Nothing => 0,
        }
    }
}

/// The end of an operation.
#[derive(Debug)]
pub struct Completion {
    /// What the submitter called the operation.
    pub token: u64,
    /// The operation, its buffers in it: they belong to the submitter again.
    pub op: Op,
    /// What came of it.
    pub result: Result<Answer, Errno>,
}

/// A moment: seconds since 1970, and nanoseconds of the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// The rest, 0 to 999,999,999.
    pub nanoseconds: u32,
}

/// What is known of a file, named as in `stat(2)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The device that holds it: major and minor number.
    pub device: (u32, u32),
    /// Its number there.
    pub inode: u64,
    /// Kind and permissions, as `st_mode`.
    pub mode: u32,
    /// Names that it has.
    pub links: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its length.
    pub size_bytes: u64,
    /// What it takes of the device.
    pub allocated_bytes: u64,
    /// What the file system likes to be asked for at once.
    pub preferred_bytes: u32,
    /// Last read, as far as the mount counts it.
    pub accessed: Time,
    /// Last change of the content.
    pub modified: Time,
    /// Last change of anything.
    pub changed: Time,
}

impl Stat {
    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFDIR
    }
}

impl From<&libc::statx> for Stat {
    fn from(raw: &libc::statx) -> Self {
        /// A sector, in which `stat` counts, whatever the device has.
        const SECTOR_BYTES: u64 = 512;
        let time =
            |at: &libc::statx_timestamp| Time { seconds: at.tv_sec, nanoseconds: at.tv_nsec };
        Self {
            device: (raw.stx_dev_major, raw.stx_dev_minor),
            inode: raw.stx_ino,
            mode: u32::from(raw.stx_mode),
            links: raw.stx_nlink,
            uid: raw.stx_uid,
            gid: raw.stx_gid,
            size_bytes: raw.stx_size,
            allocated_bytes: raw.stx_blocks * SECTOR_BYTES,
            preferred_bytes: raw.stx_blksize,
            accessed: time(&raw.stx_atime),
            modified: time(&raw.stx_mtime),
            changed: time(&raw.stx_ctime),
        }
    }
}
