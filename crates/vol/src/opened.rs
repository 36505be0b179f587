//! The files that are open, with the device and inode that others know them by.
//!
//! In the child of a fork nothing goes on behind the program, and the tables here are not looked
//! at: another thread of the parent may have held their locks.
//!
//! HDF5 opens a file once for all who open it, and closes it when the last of them has. To find
//! out that it has it already it opens it once more, so for a moment there are two of one.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::RawFd;
use std::sync::Once;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use runtime::behind::{self, Failed, FileId, Rules, Ticket, WriteBehind};

use crate::library::Library;
use crate::{errors, postponed, python};

/// A file: device and inode.
pub type Key = (u64, u64);

/// One whose bytes are written and read behind its program.
#[derive(Clone, Copy)]
pub struct Opened {
    pub behind: &'static WriteBehind,
    pub file: FileId,
}

/// Of which library each is, and which file.
static OPENED: Mutex<BTreeMap<FileId, (usize, Key)>> = Mutex::new(BTreeMap::new());

/// Files that other processes read while we write them: the order of all writes matters.
static SHARED: Mutex<BTreeSet<(usize, Key)>> = Mutex::new(BTreeSet::new());

/// A table; `None` in the child of a fork.
fn lock<T>(table: &'static Mutex<T>) -> Option<MutexGuard<'static, T>> {
    (!behind::is_child()).then(|| table.lock())
}

/// From now on other processes read these files; without keys, which a request may have kept from
/// being known, all of the library.
///
/// # Errors
///
/// What was written before, and failed. They are not shared then.
pub fn share(library: &Library, keys: &[Key]) -> Result<(), Vec<Failed>> {
    let keys = Some(keys).filter(|keys| !keys.is_empty());
    drain(Some(library), keys)?;
    let files = found(Some(library), keys);
    if let (Some(opened), Some(mut shared)) = (lock(&OPENED), lock(&SHARED)) {
        shared.extend(files.iter().filter_map(|file| opened.get(file)).copied());
    }
    if let Ok(behind) = behind::global() {
        files.into_iter().for_each(|file| behind.drop_fetched(file));
    }
    Ok(())
}

/// Whether that was said of a file.
pub fn is_shared(library: &Library, key: Key) -> bool {
    lock(&SHARED).is_some_and(|shared| shared.contains(&(library.slot, key)))
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

/// Knows a file from now on; `None`: the system has no thread for what goes on behind programs.
pub fn begin(library: &Library, key: Key, fd: RawFd, name: &str, rules: Rules) -> Option<Opened> {
    if behind::is_child() {
        return None;
    }
    let behind = behind::global().ok()?;
    python::wait_at_end();
    wait_at_exit();
    let opened = Opened { behind, file: behind.add(fd, name, rules) };
    OPENED.lock().insert(opened.file, (library.slot, key));
    Some(opened)
}

/// Ends that: everything is written, or told. HDF5 does not open a file that is shorter than it
/// says inside (`len`); with a hole where bytes were lost, the rest can be read.
pub fn end_at(opened: Opened, fd: RawFd, len: u64) -> Result<(), Vec<Failed>> {
    let Opened { behind, file } = opened;
    let drained = behind.drain(file);
    if behind.has_failed(file) && len_of(fd).is_some_and(|now| now < len) {
        // SAFETY: a descriptor and a number. Without success the file stays as it is, and the
        // failure before is told anyway.
        unsafe { libc::ftruncate(fd, len as i64) };
    }
    if let Some(mut all) = lock(&OPENED) {
        let place = all.remove(&file);
        // HDF5 opens a file once more to look at it, and closes that again.
        if let Some(place) = place.filter(|place| !all.values().any(|other| other == place)) {
            SHARED.lock().remove(&place);
        }
    }
    behind.forget(file).and(drained)
}

/// Has the end of the program wait for what is written, also where HDF5 does nothing at its end
/// (`H5dont_atexit`).
fn wait_at_exit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: a function that stays: this library is never unloaded.
        unsafe { libc::atexit(wait_for_all) };
    });
}

/// Waits for all that is written; whatever went wrong goes to a person, as nobody else is left.
pub extern "C" fn wait_for_all() {
    postponed::finish();
    let mut failures = postponed::take_lost_of(None);
    failures.extend(drain(None, None).err().into_iter().flatten());
    failures.iter().for_each(|failed| errors::say(&failed.to_string()));
}

/// The files of a library (`None`: of all) that have one of these keys (`None`: any).
fn found(library: Option<&Library>, keys: Option<&[Key]>) -> Vec<FileId> {
    let is_wanted = |(slot, key): &(usize, Key)| {
        library.is_none_or(|library| library.slot == *slot)
            && keys.is_none_or(|keys| keys.contains(key))
    };
    let Some(opened) = lock(&OPENED) else { return Vec::new() };
    opened.iter().filter(|(_, place)| is_wanted(place)).map(|(file, _)| *file).collect()
}

/// Waits until all of these files is written.
pub fn drain(library: Option<&Library>, keys: Option<&[Key]>) -> Result<(), Vec<Failed>> {
    let Ok(behind) = behind::global() else { return Ok(()) };
    let files = found(library, keys);
    let drained = files.into_iter().filter_map(|file| behind.drain(file).err());
    match drained.flatten().collect::<Vec<_>>() {
        failures if failures.is_empty() => Ok(()),
        failures => Err(failures),
    }
}

/// The program flushes its files: what is written goes on to the device as soon as it pauses.
pub fn flushes() {
    if let (false, Ok(behind)) = (behind::is_child(), behind::global()) {
        behind.flushes();
    }
}

/// Waits until all of these files is written; what went wrong they have still to tell.
pub fn settle(library: &Library, keys: &[Key]) {
    for file in found(Some(library), Some(keys)) {
        if let Ok(behind) = behind::global() {
            behind.settle(file);
        }
    }
}

/// Waits until all of these ranges (offset, length; in order) of a file is written.
pub fn drain_ranges(key: Key, ranges: &[(u64, u64)]) -> Result<(), Vec<Failed>> {
    let Ok(behind) = behind::global() else { return Ok(()) };
    let files = found(None, Some(&[key])).into_iter();
    let drained = files.filter_map(|file| behind.drain_ranges(file, ranges).err());
    match drained.flatten().collect::<Vec<_>>() {
        failures if failures.is_empty() => Ok(()),
        failures => Err(failures),
    }
}

/// Whether all of these ranges of files (`None`: of all) is written, or has failed.
pub fn is_written(keys: Option<&[Key]>, ranges: &[(u64, u64)]) -> bool {
    let Ok(behind) = behind::global() else { return true };
    found(None, keys).into_iter().all(|file| behind.is_written(file, ranges))
}

/// Reads a range of a file ahead; how many bytes that will be.
pub fn fetch(key: Key, offset: u64, len: u64) -> u64 {
    let Ok(behind) = behind::global() else { return 0 };
    let is_shared =
        lock(&SHARED).is_some_and(|shared| shared.iter().any(|(_, shared)| *shared == key));
    let files = found(None, Some(&[key]));
    files
        .first()
        .filter(|_| !is_shared)
        .map_or(0, |file| behind.fetch(*file, offset, len).unwrap_or(0))
}

/// Whether everything that a ticket follows is over, after at most so long.
pub fn wait_for(ticket: &Ticket, timeout: Option<Duration>) -> bool {
    behind::global().is_ok_and(|behind| behind.wait_for(ticket, timeout))
}

/// A failure was told to the program: it is not told again.
pub fn told(failed: &Failed) {
    if let Ok(behind) = behind::global() {
        found(None, None).into_iter().for_each(|file| behind.told(file, failed));
    }
}
