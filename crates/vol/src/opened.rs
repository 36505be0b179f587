//! The files that are written behind their program, by device and inode.
//!
//! HDF5 opens a file once for all who open it, and closes it when the last of them has; what is
//! kept here is that one.

use std::collections::{HashMap, HashSet};
use std::os::fd::RawFd;
use std::sync::LazyLock;
use std::time::Duration;

use parking_lot::Mutex;
use runtime::behind::{self, Failed, FileId, Rules, Ticket, WriteBehind};

use crate::library::Library;

/// A file: device and inode.
pub type Key = (u64, u64);

/// One that bytes were written to behind its program.
#[derive(Clone, Copy)]
pub struct Opened {
    pub behind: &'static WriteBehind,
    pub file: FileId,
}

static OPENED: LazyLock<Mutex<HashMap<(usize, Key), Opened>>> = LazyLock::new(Mutex::default);

/// Files that other processes read while we write them: the order of all writes matters.
static SHARED: LazyLock<Mutex<HashSet<(usize, Key)>>> = LazyLock::new(Mutex::default);

/// From now on other processes read these files.
///
/// # Errors
///
/// What was written before, and failed. They are not shared then.
pub fn share(library: &Library, keys: &[Key]) -> Result<(), Vec<Failed>> {
    drain(Some(library), Some(keys))?;
    SHARED.lock().extend(keys.iter().map(|key| (library.slot, *key)));
    Ok(())
}

/// Whether that was said of a file.
pub fn is_shared(library: &Library, key: Key) -> bool {
    SHARED.lock().contains(&(library.slot, key))
}

/// The file is closed.
pub fn unshare(library: &Library, key: Option<Key>) {
    if let Some(key) = key {
        SHARED.lock().remove(&(library.slot, key));
    }
}

/// Which file a descriptor is of.
pub fn key_of(fd: RawFd) -> Option<Key> {
    status_of(fd).map(|status| (status.st_dev, status.st_ino))
}

/// How many bytes it has now.
pub fn len_of(fd: RawFd) -> Option<u64> {
    status_of(fd).and_then(|status| u64::try_from(status.st_size).ok())
}

fn status_of(fd: RawFd) -> Option<libc::stat> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the block is ours.
    let done = unsafe { libc::fstat(fd, &raw mut stat) } == 0;
    done.then_some(stat)
}

/// Begins to write a file behind its program; `None`: the system has no thread for it.
pub fn begin(library: &Library, key: Key, fd: RawFd, name: &str, rules: Rules) -> Option<Opened> {
    let behind = behind::global().ok()?;
    let opened = Opened { behind, file: behind.add(fd, name, rules) };
    OPENED.lock().insert((library.slot, key), opened);
    Some(opened)
}

/// Ends that: everything is written, or told.
pub fn end(library: &Library, key: Key, opened: Opened) -> Result<(), Vec<Failed>> {
    OPENED.lock().remove(&(library.slot, key));
    opened.behind.forget(opened.file)
}

/// Waits until all of these files is written (`None`: of all files of all libraries).
pub fn drain(library: Option<&Library>, keys: Option<&[Key]>) -> Result<(), Vec<Failed>> {
    let wanted = |(slot, key): &(usize, Key)| {
        library.is_none_or(|library| library.slot == *slot)
            && keys.is_none_or(|keys| keys.contains(key))
    };
    let found: Vec<_> = OPENED
        .lock()
        .iter()
        .filter(|(place, _)| wanted(place))
        .map(|(_, opened)| *opened)
        .collect();
    let drained = found.iter().filter_map(|opened| opened.behind.drain(opened.file).err());
    match drained.flatten().collect::<Vec<_>>() {
        failures if failures.is_empty() => Ok(()),
        failures => Err(failures),
    }
}

/// Whether everything that a ticket follows is over, after at most so long.
pub fn wait_for(ticket: &Ticket, timeout: Option<Duration>) -> bool {
    behind::global().is_ok_and(|behind| behind.wait_for(ticket, timeout))
}

/// A failure was told to the program: it is not told again.
pub fn told(failed: &Failed) {
    for opened in OPENED.lock().values() {
        opened.behind.told(opened.file, failed);
    }
}
