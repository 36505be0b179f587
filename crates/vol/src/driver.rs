//! The file driver: HDF5 writes a file's bytes through it, and it hands them to the runtime.
//!
//! It stands on HDF5's plain driver (`sec2`), which opens, locks, reads and closes the file and
//! says what goes wrong there, in its words. Ours are:
//!
//! - a write of some size, or any while others are under way, goes behind the program; a small one
//!   into a quiet file is a plain write, which costs less than handing it over;
//! - a read waits for the writes that it overlaps;
//! - the end of the file counts what is not written yet; making it shorter waits for everything;
//! - a flush and a close wait for everything, and fail with what went wrong; the close of a file
//!   that a task promised leaves that to the end of the task ([`crate::later`]).
//!
//! With other processes reading while we write (SWMR) the order of all writes matters: such files
//! are written directly.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_uint, c_ulong, c_void, CStr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use runtime::behind::{Failed, Rules};

use crate::abi::{
    Address, DriverClass, DriverFile, File, Id, Ptr, Status, Text, ACCESS_SWMR, DONE,
    DRIVER_VERSION, FAILED, MEMORY_MAP, NO_ID,
};
use crate::info::Settings;
use crate::later::{self, Rest};
use crate::library::{self, Library, LIBRARIES_MAX};
use crate::opened::{self, Key, Opened};
use crate::{errors, scope, stack, wait};

/// The most that is told of failures at once.
const TOLD_BYTES_MAX: usize = 4096;

/// What the driver is called by number; HDF5 leaves 256 to 511 to be chosen.
const VALUE: c_int = 493;
const CLOSE_WEAK: c_int = 1;
const ADDRESS_MAX: Address = i64::MAX as u64;

/// `H5FD_FEAT_...` of the plain driver, asked for without a file.
const FEATURES: c_ulong = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x80 | 0x1000 | 0x8000;

/// One open file.
#[repr(C)]
struct Ours {
    /// What HDF5 looks at. First, and alone at its address.
    public: DriverFile,
    below: File,
    hdf5: &'static Library,
    fd: c_int,
    key: Option<Key>,
    name: String,
    /// One past the last byte, with what is not written yet.
    end: Address,
    settings: Settings,
    /// Other processes read while we write.
    is_shared: bool,
    opened: Option<Opened>,
    /// The task that makes the file, and a descriptor that outlives HDF5's.
    later: Option<(u64, OwnedFd)>,
}

thread_local! {
    /// How the files are written that are opened in a call of the connector.
    static SETTINGS: Cell<Option<Settings>> = const { Cell::new(None) };
    /// Which files were opened or written by what the connector calls now.
    static USED: RefCell<Option<Vec<Key>>> = const { RefCell::new(None) };
}

/// Runs a call: files that it opens, also those that HDF5 opens by itself (of external links, of
/// virtual datasets), are written like this. Also which files it opened or wrote behind.
pub fn with<T>(settings: Settings, call: impl FnOnce() -> T) -> (T, Vec<Key>) {
    // At exit this thread's values may be gone: then nobody is told which files they were.
    let exchange = |keys| USED.try_with(|used| used.replace(keys)).ok().flatten();
    let outer = SETTINGS.replace(Some(settings));
    let outer_used = exchange(Some(Vec::new()));
    let result = call();
    SETTINGS.set(outer);
    let used = exchange(outer_used).unwrap_or_default();
    used.iter().for_each(|key| note_use(*key));
    (result, used)
}

/// The call that runs now uses a file.
fn note_use(key: Key) {
    let _ = USED.try_with(|used| match used.borrow_mut().as_mut() {
        Some(used) if !used.contains(&key) => used.push(key),
        _ => {}
    });
}

/// The driver of a library, registered when it is first wanted; `NO_ID`: HDF5 does not take it.
pub fn ours(library: &'static Library) -> Id {
    let mut drivers = library.drivers.lock();
    if drivers.ours == NO_ID {
        let class: *const DriverClass = CLASSES[library.slot].get_or_init(|| class(library.slot));
        // SAFETY: a class that stays; HDF5 copies it.
        drivers.ours = unsafe { (library.symbols.driver_register)(class.cast()) };
    }
    drivers.ours
}

/// HDF5 goes: the next one that has this slot's library registers anew.
pub fn forget(library: &Library) {
    let mut drivers = library.drivers.lock();
    (drivers.ours, drivers.plain) = (NO_ID, NO_ID);
    *library.error_classes.lock() = None;
}

/// Whether a list of access properties has the plain driver.
///
/// # Safety
///
/// `list` is one.
pub unsafe fn is_plain(library: &Library, list: Id) -> bool {
    let symbols = &library.symbols;
    let mut drivers = library.drivers.lock();
    // SAFETY: a list of HDF5, as the caller promised; the copy is closed.
    unsafe {
        if drivers.plain == NO_ID {
            let copy = (symbols.list_copy)(list);
            (symbols.list_set_plain_driver)(copy);
            drivers.plain = (symbols.list_get_driver)(copy);
            (symbols.list_close)(copy);
        }
        drivers.plain != NO_ID && (symbols.list_get_driver)(list) == drivers.plain
    }
}

/// Gives a list that HDF5 made of one of our files the driver that the program chose.
///
/// # Safety
///
/// `list` is a list of access properties that may be changed.
pub unsafe fn hide(library: &Library, list: Id) {
    let ours = library.drivers.lock().ours;
    // SAFETY: the caller promised.
    unsafe {
        if ours != NO_ID && (library.symbols.list_get_driver)(list) == ours {
            (library.symbols.list_set_plain_driver)(list);
        }
    }
}

static CLASSES: [OnceLock<DriverClass>; LIBRARIES_MAX] = [const { OnceLock::new() }; LIBRARIES_MAX];

fn class(slot: usize) -> DriverClass {
    let open: unsafe extern "C" fn(Text, c_uint, Id, Address) -> File = match slot {
        0 => open::<0>,
        1 => open::<1>,
        2 => open::<2>,
        _ => open::<3>,
    };
    DriverClass {
        version: DRIVER_VERSION,
        value: VALUE,
        name: c"alongside".as_ptr(),
        address_max: ADDRESS_MAX,
        close_degree: CLOSE_WEAK,
        terminate: None,
        superblock: [None; 3],
        access_list_size: 0,
        access_list: [None; 3],
        transfer_list_size: 0,
        transfer_list: [None; 2],
        open: Some(open),
        close: Some(close),
        compare: Some(compare),
        query: Some(query),
        type_map: None,
        allocate: None,
        free: None,
        get_eoa: Some(get_eoa),
        set_eoa: Some(set_eoa),
        get_eof: Some(get_eof),
        handle: Some(handle),
        read: Some(read),
        write: Some(write),
        vectors: [None; 2],
        selections: [None; 2],
        flush: Some(flush),
        truncate: Some(truncate),
        lock: Some(lock),
        unlock: Some(unlock),
        delete: Some(delete),
        control: Some(control),
        memory_map: MEMORY_MAP,
    }
}

/// Our file of HDF5's, for as long as one of its calls.
///
/// # Safety
///
/// HDF5 passes what [`open`] gave, and one call at a time.
unsafe fn of<'a>(file: File) -> &'a mut Ours {
    // SAFETY: the caller promised.
    unsafe { &mut *file.cast() }
}

/// Calls a function of the driver below.
macro_rules! below {
    ($ours:expr, $function:ident ( $($arg:expr),* )) => {{
        let below = $ours.below;
        // SAFETY: the file below is open for as long as ours is, and its class is HDF5's, which has
        // all the functions that it is called for.
        unsafe { ((*(*below).class).$function.expect("the plain driver has it"))(below $(, $arg)*) }
    }};
}

unsafe extern "C" fn open<const SLOT: usize>(
    name: Text,
    flags: c_uint,
    list: Id,
    address_max: Address,
) -> File {
    let library = library::get::<SLOT>();
    let symbols = &library.symbols;
    // SAFETY: HDF5's text.
    later::before_open(unsafe { CStr::from_ptr(name) });
    // SAFETY: HDF5's list and name; what is made here is closed here.
    let below = unsafe {
        let plain = (symbols.list_copy)(list);
        (symbols.list_set_plain_driver)(plain);
        // HDF5 tries whether there is a file before it creates one.
        let open = || (symbols.driver_open)(name, flags, plain, address_max);
        let below = stack::quietly(library, open);
        stack::keep(library, || (symbols.list_close)(plain));
        below
    };
    if below.is_null() {
        return below.cast();
    }
    // SAFETY: HDF5's text.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    let mut ours = Box::new(Ours {
        public: DriverFile::new(),
        below,
        hdf5: library,
        fd: -1,
        key: None,
        name,
        end: 0,
        settings: SETTINGS.get().unwrap_or_default(),
        is_shared: flags & ACCESS_SWMR != 0,
        opened: None,
        later: None,
    });
    ours.end = below!(ours, get_eof(0));
    let mut handle: Ptr = std::ptr::null_mut();
    if below!(ours, handle(list, &raw mut handle)) >= 0 && !handle.is_null() {
        // SAFETY: the plain driver's handle is its descriptor.
        ours.fd = unsafe { *handle.cast::<c_int>() };
        ours.key = opened::key_of(ours.fd);
        ours.later = ours.make_later();
        ours.opened = ours.begin();
    }
    ours.key.into_iter().for_each(note_use);
    Box::into_raw(ours).cast()
}

unsafe extern "C" fn close(file: File) -> Status {
    // SAFETY: HDF5 passes what `open` gave, and forgets it.
    let mut ours = unsafe { Box::from_raw(file.cast::<Ours>()) };
    let rest = ours.rest();
    let written = match &rest {
        Some(_) => Ok(()),
        None => ours.end(),
    };
    // SAFETY: the file below is open, and nobody uses it any more.
    let close = || unsafe { (ours.hdf5.symbols.driver_close)(ours.below) };
    let closed = stack::quietly(ours.hdf5, close);
    rest.into_iter().for_each(later::keep);
    match told(ours.hdf5, written) {
        FAILED => FAILED,
        _ => closed,
    }
}

/// The longest that this process may make a file: HDF5 is told at once what is beyond that, as it
/// would not close such a file any more.
fn len_max() -> Address {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the block is ours. Without an answer there is no limit.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    limit.rlim_cur
}

/// Tells the program what went wrong; on the way out, a person.
pub fn told(library: &Library, outcome: Result<(), Vec<Failed>>) -> Status {
    let Err(failures) = outcome else { return DONE };
    match library.is_terminating() {
        true => failures.iter().for_each(|failed| errors::say(&failed.to_string())),
        // One entry: HDF5's stack has 32 and forgets what comes after, and h5py shows the first.
        false => stack::push_here(library, &wait::said(&failures, TOLD_BYTES_MAX)),
    }
    FAILED
}

impl Ours {
    /// What goes on behind the program goes there; a file that others read meanwhile has none.
    fn begin(&self) -> Option<Opened> {
        if self.is_shared {
            return None;
        }
        let rules = Rules { limit_bytes: self.settings.limit_bytes() };
        let fd = self.later.as_ref().map_or(self.fd, |(_, fd)| fd.as_raw_fd());
        opened::begin(self.hdf5, self.key?, fd, &self.name, rules)
    }

    /// Of a file that the task of this thread makes: what its bytes are written through, also when
    /// HDF5 has closed it. Without a descriptor to spare its close waits.
    fn make_later(&self) -> Option<(u64, OwnedFd)> {
        let number = later::promised(self.key?)?;
        // SAFETY: the descriptor is HDF5's, and open.
        let fd = unsafe { BorrowedFd::borrow_raw(self.fd) };
        Some((number, fd.try_clone_to_owned().ok()?))
    }

    /// Where writes go behind the program.
    fn behind(&self) -> Option<Opened> {
        let key = self.key?;
        self.opened.filter(|_| !opened::is_shared(self.hdf5, key))
    }

    /// Whether there is nothing under way, and nothing to be told.
    fn is_quiet(&self) -> bool {
        self.opened.is_none_or(|opened| opened.behind.is_quiet(opened.file))
    }

    /// Runs a small write here and now, if it disturbs nothing that is under way.
    fn write_now(
        &self,
        kind: c_int,
        size: usize,
        write: impl FnOnce() -> Status,
    ) -> Option<Status> {
        if size >= self.settings.behind_bytes(kind) {
            return None;
        }
        match self.opened {
            Some(Opened { behind, file }) => behind.change(file, write),
            None => Some(write()),
        }
    }

    /// Runs a write here and now where a copy of it would buy the program nothing. Not where
    /// somebody asked for one: by an event set, a size from which on writes go behind, or by
    /// promising the file from a task, whose executor does not wait. `false`: it is not written.
    /// Of one that failed HDF5 is not told, as an assertion may then end it in the close: the next
    /// try is a copy's, whose failure is told as of any other.
    fn write_through(&self, address: Address, size: usize, write: impl FnOnce() -> Status) -> bool {
        let is_asked_for =
            self.settings.is_behind_asked_for() || self.later.is_some() || scope::is_followed();
        let Some(Opened { behind, file }) = self.behind().filter(|_| !is_asked_for) else {
            return false;
        };
        let write = || stack::quietly(self.hdf5, || stack::keep(self.hdf5, write)) >= 0;
        behind.write_through(file, address, size as u64, write)
    }

    /// Takes bytes; `false`: they have to be written here and now.
    fn write_behind(&self, address: Address, bytes: &[u8]) -> bool {
        let Some(Opened { behind, file }) = self.behind() else { return false };
        let (label, ticket) = (scope::label(), scope::ticket());
        let taken = match scope::is_lent(bytes) {
            // SAFETY: the program keeps this memory until it is told that the write is over.
            true => unsafe { behind.write_lent(file, address, bytes, &label, ticket.as_ref()) },
            false => behind.write(file, address, bytes, &label, ticket.as_ref()),
        };
        self.key.into_iter().for_each(note_use);
        taken.is_ok()
    }

    fn drain(&self) -> Result<(), Vec<Failed>> {
        self.opened.map_or(Ok(()), |opened| opened.behind.drain(opened.file))
    }

    /// Whether bytes were lost, and with them perhaps the end of the file.
    fn has_failed(&self) -> bool {
        self.opened.is_some_and(|opened| opened.behind.has_failed(opened.file))
    }

    /// The last of what is written behind the program.
    fn end(&mut self) -> Result<(), Vec<Failed>> {
        let Some(opened) = self.opened else { return Ok(()) };
        opened::end_at(opened, self.fd, below!(self, get_eoa(0)))
    }

    /// Whether a close leaves what is not written to the end of the task that makes the file.
    fn is_later(&self) -> bool {
        let goes_on = self.later.as_ref().is_some_and(|(number, _)| later::goes_on(*number));
        goes_on && !self.has_failed() && !self.hdf5.is_terminating()
    }

    /// What is left of the file when HDF5 closes it.
    fn rest(&mut self) -> Option<Rest> {
        if !self.is_later() || self.is_quiet() {
            return None;
        }
        let (opened, key, len) = (self.opened?, self.key?, below!(self, get_eoa(0)));
        let (number, fd) = self.later.take()?;
        Some(Rest { number, key, opened, fd, len, name: self.name.as_str().into() })
    }
}

unsafe extern "C" fn write(
    file: File,
    kind: c_int,
    list: Id,
    address: Address,
    size: usize,
    buffer: Ptr,
) -> Status {
    // SAFETY: HDF5 passes its file.
    let ours = unsafe { of(file) };
    let end = address.checked_add(size as u64).filter(|end| *end <= ADDRESS_MAX);
    let plainly = || below!(ours, write(kind, list, address, size, buffer));
    let status = ours.write_now(kind, size, plainly).unwrap_or_else(|| {
        // SAFETY: HDF5's bytes, for as long as this call.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), size) };
        let is_possible = end.is_some_and(|end| end <= len_max()) && size > 0;
        let is_taken =
            || ours.write_through(address, size, plainly) || ours.write_behind(address, bytes);
        match is_possible && is_taken() {
            true => DONE,
            false => plainly(),
        }
    });
    if status >= 0 {
        ours.end = ours.end.max(end.unwrap_or(0));
    }
    status
}

unsafe extern "C" fn read(
    file: File,
    kind: c_int,
    list: Id,
    address: Address,
    size: usize,
    buffer: Ptr,
) -> Status {
    // SAFETY: HDF5 passes its file.
    let ours = unsafe { of(file) };
    let plainly = || below!(ours, read(kind, list, address, size, buffer));
    let is_in_range = address.checked_add(size as u64).is_some();
    let Some(Opened { behind, file }) = ours.opened.filter(|_| is_in_range && size > 0) else {
        return plainly();
    };
    // SAFETY: HDF5's memory, for as long as this call.
    let into = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size) };
    let read = |address, part: &mut [u8]| {
        below!(ours, read(kind, list, address, part.len(), part.as_mut_ptr().cast())) >= 0
    };
    match behind.read_into(file, address, into, read) {
        Ok(true) => DONE,
        Ok(false) => FAILED,
        Err(failed) => {
            stack::push_here(ours.hdf5, &format!("what is to be read is lost: {failed}"));
            FAILED
        }
    }
}

unsafe extern "C" fn flush(file: File, _list: Id, is_closing: bool) -> Status {
    // SAFETY: HDF5 passes its file.
    let ours = unsafe { of(file) };
    if is_closing && ours.is_later() {
        return DONE;
    }
    told(ours.hdf5, ours.drain())
}

unsafe extern "C" fn truncate(file: File, _list: Id, _is_closing: bool) -> Status {
    // SAFETY: HDF5 passes its file.
    let ours = unsafe { of(file) };
    let wanted = below!(ours, get_eoa(0));
    let has_failed = ours.has_failed();
    if wanted < ours.end || has_failed {
        // What is written after this would make the file longer again.
        let drained = ours.drain();
        if drained.is_err() {
            return told(ours.hdf5, drained);
        }
        if let Some(Opened { behind, file }) = ours.opened {
            behind.drop_fetched(file);
        }
    }
    if has_failed {
        ours.end = opened::len_of(ours.fd).unwrap_or(ours.end);
    }
    if wanted == ours.end {
        return DONE;
    }
    // SAFETY: a descriptor and a number.
    let cut = || match unsafe { libc::ftruncate(ours.fd, wanted as i64) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    };
    let changed = ours.opened.and_then(|Opened { behind, file }| behind.change(file, cut));
    if let Err(why) = changed.unwrap_or_else(cut) {
        let message = format!("{}: it cannot be made {wanted} bytes long: {why}", ours.name);
        stack::push_here(ours.hdf5, &message);
        return FAILED;
    }
    ours.end = wanted;
    DONE
}

unsafe extern "C" fn compare(one: File, other: File) -> c_int {
    // SAFETY: HDF5 passes two files of ours.
    let (one, other) = unsafe { (of(one), of(other)) };
    below!(one, compare(other.below))
}

unsafe extern "C" fn query(file: File, features: *mut c_ulong) -> Status {
    if file.is_null() {
        // SAFETY: HDF5 wants them there.
        unsafe { *features = FEATURES };
        return DONE;
    }
    // SAFETY: HDF5 passes its file.
    let ours = unsafe { of(file) };
    below!(ours, query(features))
}

unsafe extern "C" fn get_eoa(file: File, kind: c_int) -> Address {
    // SAFETY: HDF5 passes its file.
    let ours = unsafe { of(file) };
    below!(ours, get_eoa(kind))
}

unsafe extern "C" fn set_eoa(file: File, kind: c_int, address: Address) -> Status {
    // SAFETY: HDF5 passes its file.
    let ours = unsafe { of(file) };
    below!(ours, set_eoa(kind, address))
}

unsafe extern "C" fn get_eof(file: File, _kind: c_int) -> Address {
    // SAFETY: HDF5 passes its file.
    unsafe { of(file) }.end
}

unsafe extern "C" fn handle(file: File, list: Id, handle: *mut Ptr) -> Status {
    // SAFETY: HDF5 passes its file.
    let ours = unsafe { of(file) };
    below!(ours, handle(list, handle))
}

unsafe extern "C" fn lock(file: File, is_for_writing: bool) -> Status {
    // SAFETY: HDF5 passes its file.
    let ours = unsafe { of(file) };
    below!(ours, lock(is_for_writing))
}

unsafe extern "C" fn unlock(file: File) -> Status {
    // SAFETY: HDF5 passes its file.
    let ours = unsafe { of(file) };
    if ours.is_later() && !ours.is_quiet() {
        // It goes with the last descriptor, when all is written.
        return DONE;
    }
    below!(ours, unlock())
}

unsafe extern "C" fn delete(name: Text, _list: Id) -> Status {
    // SAFETY: HDF5's text.
    match unsafe { libc::remove(name) } {
        0 => DONE,
        _ => FAILED,
    }
}

unsafe extern "C" fn control(
    file: File,
    operation: u64,
    flags: u64,
    input: *const c_void,
    output: *mut Ptr,
) -> Status {
    // SAFETY: HDF5 passes its file.
    let ours = unsafe { of(file) };
    below!(ours, control(operation, flags, input, output))
}
