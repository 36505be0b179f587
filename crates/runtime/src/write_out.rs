//! Ranges of a file on their way from the system's cache to its device.

use std::os::fd::RawFd;

use ops::Errno;

/// Has the system begin to write what it has of a range; `waits`: and waits until all of it is
/// written, as far as the device says. The device may still keep it in a cache of its own.
///
/// # Errors
///
/// As of `sync_file_range`: what the device did not take (`waits`), or a file that has no such
/// ranges.
pub(crate) fn write_out(fd: RawFd, offset: u64, len: u64, waits: bool) -> Result<(), Errno> {
    let flags = match waits {
        true => {
            libc::SYNC_FILE_RANGE_WAIT_BEFORE
                | libc::SYNC_FILE_RANGE_WRITE
                | libc::SYNC_FILE_RANGE_WAIT_AFTER
        }
        false => libc::SYNC_FILE_RANGE_WRITE,
    };
    // SAFETY: a system call that takes no memory. Numbers too large become negative, which the
    // kernel refuses.
    match unsafe { libc::sync_file_range(fd, offset as i64, len as i64, flags) } {
        0 => Ok(()),
        _ => Err(Errno::last()),
    }
}
