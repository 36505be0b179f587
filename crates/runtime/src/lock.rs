//! The lock of an open file, which the kernel drops with the last of its descriptors.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::fork;

/// A lock that says that this process lives: what it forks does not hold it.
#[derive(Debug)]
pub(crate) struct Held {
    file: File,
    forks: u64,
}

impl Held {
    /// Takes the lock of a file. `None`: somebody has it.
    pub(crate) fn take(file: File) -> io::Result<Option<Held>> {
        let held = Held { file, forks: fork::count() };
        fork::lose_in_child(held.file.as_raw_fd());
        Ok(try_lock(&held.file)?.then_some(held))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A forked child that could not lose the descriptor has the lock of its parent.
        if self.forks == fork::count() {
            fork::keep_in_child(self.file.as_raw_fd());
            unlock(&self.file);
        }
    }
}

/// Takes the lock. False: somebody has it.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, libc::LOCK_EX | libc::LOCK_NB) {
        Err(error) if error.raw_os_error() == Some(libc::EWOULDBLOCK) => Ok(false),
        taken => taken.map(|()| true),
    }
}

/// Takes the lock, after whoever has it.
pub(crate) fn lock(file: &File) -> io::Result<()> {
    loop {
        match flock(file, libc::LOCK_EX) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            end => return end,
        }
    }
}

/// Gives it back, also where a forked child has a descriptor.
pub(crate) fn unlock(file: &File) {
    // Closing the descriptor does the same, if later.
    let _ = flock(file, libc::LOCK_UN);
}

fn flock(file: &File, operation: libc::c_int) -> io::Result<()> {
    // SAFETY: a system call on a descriptor that is open.
    match unsafe { libc::flock(file.as_raw_fd(), operation) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
