//! Closes that do not wait: of files that the task of this thread promised, which is over for
//! others only when they are written.
//!
//! A thread says which files its task makes ([`alongside_hdf5_close_later`]) and gets a number.
//! From then on the close of such a file only hands over what is not written: its bytes, its
//! descriptor and with it HDF5's lock of the file stay here. [`alongside_hdf5_settle`] waits for
//! all of a number, without HDF5's locks, and says what went wrong. Who opens one of the files
//! before that in this process waits for it, too.
//!
//! Source of the idea: TASIO's non-blocking operations, which hold back the dependents of a task
//! and not the task.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, CStr};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;
use runtime::behind::{self, Failed, Label};

use crate::opened::{self, Key, Opened};

/// A task of a thread, and what it makes.
struct Promise {
    number: u64,
    paths: Vec<String>,
}

/// A file that HDF5 has closed.
pub struct Rest {
    pub number: u64,
    pub key: Key,
    pub opened: Opened,
    /// Keeps the file open, and HDF5's lock on it.
    pub fd: OwnedFd,
    /// So long it has to be in the end.
    pub len: u64,
    /// As it was opened.
    pub name: Arc<str>,
}

struct Entry {
    number: u64,
    key: Key,
    rest: Mutex<Option<Rest>>,
    failures: Mutex<Vec<Failed>>,
}

thread_local! {
    static PROMISE: RefCell<Option<Promise>> = const { RefCell::new(None) };
}

static NEXT: AtomicU64 = AtomicU64::new(1);
static ENTRIES: Mutex<Vec<Arc<Entry>>> = Mutex::new(Vec::new());
/// How many entries there are: who opens a file looks no further if there is none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The number of this thread's task, if it makes this file.
pub fn promised(key: Key) -> Option<u64> {
    let is_it = |path: &String| {
        std::fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == key)
    };
    let number = |promise: &Promise| promise.paths.iter().any(is_it).then_some(promise.number);
    PROMISE.try_with(|promise| promise.borrow().as_ref().and_then(number)).ok().flatten()
}

/// Whether the task of this number goes on, on this thread: it will settle what is left.
pub fn goes_on(number: u64) -> bool {
    let is_it = |promise: &Promise| promise.number == number;
    PROMISE.try_with(|promise| promise.borrow().as_ref().is_some_and(is_it)).unwrap_or(false)
}

/// Keeps what is left of a file.
pub fn keep(rest: Rest) {
    let Rest { number, key, .. } = rest;
    let (rest, failures) = (Mutex::new(Some(rest)), Mutex::default());
    let mut entries = ENTRIES.lock();
    entries.push(Arc::new(Entry { number, key, rest, failures }));
    COUNT.store(entries.len(), Ordering::Release);
}

/// Waits for what is left of a file that is about to be opened again.
pub fn before_open(name: &CStr) {
    if COUNT.load(Ordering::Acquire) == 0 || behind::is_child() {
        return;
    }
    let Ok(found) = std::fs::metadata(&*name.to_string_lossy()) else { return };
    let key = (found.dev(), found.ino());
    let all = ENTRIES.lock().iter().filter(|entry| entry.key == key).cloned().collect::<Vec<_>>();
    all.iter().for_each(|entry| finish(entry));
}

/// Writes the last of a file and lets go of it. A second one to come waits for the first.
fn finish(entry: &Entry) {
    let mut rest = entry.rest.lock();
    let Some(Rest { opened, fd, len, name, .. }) = rest.take() else { return };
    if let Err(failures) = opened::end_at(opened, fd.as_raw_fd(), len) {
        entry.failures.lock().extend(failures);
    }
    // SAFETY: the descriptor was ours, and nobody uses it after this.
    let closed = unsafe { libc::close(fd.into_raw_fd()) };
    // Where the device is elsewhere, only the last close may tell that it did not take something.
    let why = std::io::Error::last_os_error();
    if closed == -1 && why.raw_os_error() != Some(libc::EINTR) {
        let label = Arc::new(Label { operation: "close of the file", object: None });
        let failed = Failed { file: name, offset: 0, len, label, errno: why.into(), why: None };
        entry.failures.lock().push(failed);
    }
}

/// What went wrong with all files of a number, once they are over.
fn settle(number: u64) -> Vec<Failed> {
    if behind::is_child() {
        return Vec::new();
    }
    let is_its = |entry: &Arc<Entry>| entry.number == number;
    let its: Vec<_> = ENTRIES.lock().iter().filter(|entry| is_its(entry)).cloned().collect();
    its.iter().for_each(|entry| finish(entry));
    let mut entries = ENTRIES.lock();
    entries.retain(|entry| !is_its(entry));
    COUNT.store(entries.len(), Ordering::Release);
    its.iter().flat_map(|entry| std::mem::take(&mut *entry.failures.lock())).collect()
}

/// From now on this thread's closes of these files (paths, each ended by a zero, the last one by
/// two) do not wait; null: all do. The number that [`alongside_hdf5_settle`] is asked for, 0 of
/// null.
///
/// # Safety
///
/// `paths` is null or as said.
#[no_mangle]
pub unsafe extern "C" fn alongside_hdf5_close_later(paths: *const c_char) -> u64 {
    let mut rest = paths;
    let mut list = Vec::new();
    // SAFETY: the caller promised.
    while !rest.is_null() && unsafe { *rest } != 0 {
        // SAFETY: as above.
        let path = unsafe { CStr::from_ptr(rest) };
        list.push(path.to_string_lossy().into_owned());
        // SAFETY: the next one, or the last zero, is behind the zero of this one.
        rest = unsafe { rest.add(path.count_bytes() + 1) };
    }
    let number = if paths.is_null() { 0 } else { NEXT.fetch_add(1, Ordering::Relaxed) };
    let promise = (number > 0).then_some(Promise { number, paths: list });
    let _ = PROMISE.try_with(|slot| slot.replace(promise));
    number
}

/// Waits for what is left of a file that is about to be opened, by whatever means.
///
/// # Safety
///
/// `name` is a path.
#[no_mangle]
pub unsafe extern "C" fn alongside_hdf5_before_open(name: *const c_char) {
    // SAFETY: the caller promised.
    before_open(unsafe { CStr::from_ptr(name) });
}

/// Waits until all files of a number that are closed are written. 0: they are. Else the first
/// errno, and why is in `text`, cut to `size` bytes with its zero.
///
/// # Safety
///
/// `text` is null or has room for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn alongside_hdf5_settle(
    number: u64,
    text: *mut c_char,
    size: usize,
) -> c_int {
    let failures = settle(number);
    let Some(first) = failures.first() else { return 0 };
    // SAFETY: the caller promised.
    unsafe { crate::wait::say(&failures, text, size) };
    first.errno.0
}
