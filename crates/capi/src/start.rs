//! Starting and stopping the runtime.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr, CString, OsStr};
use std::io::ErrorKind;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::null;

use parking_lot::Mutex;
use runtime::native::{self, say, set_hook, Hook, Options, Prefer, Runtime, StartError};

use runtime::PolicyKind;

use crate::status;

/// `al_options`. What the first programs knew ends before `io_executors`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AlOptions {
    size: usize,
    workers: c_uint,
    pinned: c_int,
    stack_bytes: usize,
    stacks_max: c_uint,
    depth: c_uint,
    engine: *const c_char,
    io_executors: c_uint,
    storage: *const c_char,
    learned: *const c_char,
    io_policy: *const c_char,
    flush: c_int,
    prefetch: c_int,
}

/// Bytes of the options that every program has.
const FIRST_BYTES: usize = offset_of!(AlOptions, io_executors);

const DEFAULTS: AlOptions = AlOptions {
    size: size_of::<AlOptions>(),
    workers: 0,
    pinned: 1,
    stack_bytes: 0,
    stacks_max: 0,
    depth: 0,
    engine: null(),
    io_executors: 0,
    storage: null(),
    learned: null(),
    io_policy: null(),
    flush: 0,
    prefetch: 0,
};

/// The text that `al_engine` gave last.
static ENGINE: Mutex<Option<CString>> = Mutex::new(None);

/// Sets the defaults of the first options.
///
/// # Safety
///
/// `options` is valid for writes of [`FIRST_BYTES`].
#[no_mangle]
pub unsafe extern "C" fn al_options_init(options: *mut AlOptions) {
    // SAFETY: the caller's promise.
    unsafe { al_options_init_size(options, FIRST_BYTES) };
}

/// Sets the defaults of options of this size.
///
/// # Safety
///
/// `options` is valid for writes of `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn al_options_init_size(options: *mut AlOptions, size: usize) {
    let size = size.min(size_of::<AlOptions>());
    let defaults = AlOptions { size, ..DEFAULTS };
    // SAFETY: the caller's promise; `defaults` has at least so many bytes, all of them set but for
    // the padding, which is copied as it is.
    unsafe { (&raw const defaults).cast::<u8>().copy_to(options.cast(), size) };
}

/// Starts the runtime.
///
/// # Safety
///
/// `options` is null, or was set by `al_options_init` of this library or an older one, and its
/// texts are C strings.
#[no_mangle]
pub unsafe extern "C" fn al_start(options: *const AlOptions) -> c_int {
    // SAFETY: the caller's promise.
    let asked = if options.is_null() { Ok(DEFAULTS) } else { unsafe { taken(options) } };
    // SAFETY: as above.
    let options = match asked.and_then(|asked| unsafe { read(&asked) }) {
        Ok(options) => options,
        Err(what) => {
            say(&format!("al_start: {what}"));
            return -libc::EINVAL;
        }
    };
    match Runtime::start(&options) {
        Ok(_) => 0,
        Err(StartError::Running) => -libc::EALREADY,
        Err(StartError::Forked) => {
            say("al_start: the runtime of the parent does not live on in the child of a fork");
            -libc::EPERM
        }
        Err(StartError::Option(what)) => {
            say(&format!("al_start: {what}"));
            -libc::EINVAL
        }
        Err(StartError::System(error)) => {
            say(&format!("al_start: the workers cannot be started: {error}"));
            -error.raw_os_error().unwrap_or(match error.kind() {
                ErrorKind::InvalidInput => libc::EINVAL,
                ErrorKind::Unsupported => libc::ENOSYS,
                _ => libc::EIO,
            })
        }
    }
}

/// The options of a program that may know fewer of them: the defaults for the others.
///
/// # Safety
///
/// As of `al_start`; `options` is not null.
unsafe fn taken(options: *const AlOptions) -> Result<AlOptions, String> {
    // SAFETY: the caller's promise: the size is the first that every program has.
    let size = unsafe { (&raw const (*options).size).read() };
    if size < FIRST_BYTES {
        return Err("call al_options_init before you change options".into());
    }
    if size > size_of::<AlOptions>() {
        return Err("the program was built for a newer library than this one".into());
    }
    let mut taken = DEFAULTS;
    // SAFETY: the program has so many bytes; every value of a field is a sound one.
    unsafe { options.cast::<u8>().copy_to((&raw mut taken).cast(), size) };
    Ok(taken)
}

/// # Safety
///
/// The texts are null or C strings.
unsafe fn read(asked: &AlOptions) -> Result<Options, String> {
    let defaults = Options::default();
    let or = |value: usize, usual: usize| if value == 0 { usual } else { value };
    // SAFETY: the caller's promise, for all of them.
    let text = |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    let path = |at| text(at).map(|text| PathBuf::from(OsStr::from_bytes(text.to_bytes())));
    let engine = match text(asked.engine).map(CStr::to_bytes) {
        None | Some(b"auto") => Prefer::Auto,
        Some(b"io_uring") => Prefer::Uring,
        Some(b"threads") => Prefer::Threads,
        Some(other) => {
            let name = String::from_utf8_lossy(other);
            return Err(format!("no engine is called {name:?}; auto, io_uring or threads"));
        }
    };
    let policy = text(asked.io_policy).map_or(Ok(PolicyKind::default()), |name| {
        let name = name.to_string_lossy();
        runtime::options::policy(&name).ok_or_else(|| {
            format!("no io_policy is called {name:?}; fcfs, priority or backfilling")
        })
    })?;
    Ok(Options {
        workers: or(asked.workers as usize, defaults.workers),
        pinned: asked.pinned != 0,
        stack_bytes: or(asked.stack_bytes, defaults.stack_bytes),
        stacks_max: or(asked.stacks_max as usize, defaults.stacks_max),
        depth: or(asked.depth as usize, defaults.depth as usize) as u32,
        engine,
        io_executors: or(asked.io_executors as usize, defaults.io_executors),
        // A number that was asked for is meant.
        io_executors_extra: match asked.io_executors {
            0 => defaults.io_executors_extra,
            _ => 0,
        },
        storage: path(asked.storage),
        learned: path(asked.learned),
        policy,
        flush: asked.flush != 0,
        prefetch: asked.prefetch != 0,
    })
}

/// Waits for all tasks, then ends the workers.
#[no_mangle]
pub extern "C" fn al_stop() -> c_int {
    let Some(runtime) = native::current() else { return -libc::EINVAL };
    let stopped = status(runtime.stop());
    *ENGINE.lock() = None;
    stopped
}

/// How many workers there are.
#[no_mangle]
pub extern "C" fn al_workers() -> c_int {
    native::current().map_or(0, |runtime| runtime.workers() as c_int)
}

/// The worker that the caller is on.
#[no_mangle]
pub extern "C" fn al_worker() -> c_int {
    Runtime::worker().map_or(-1, |worker| worker as c_int)
}

/// The version of the library.
#[no_mangle]
pub extern "C" fn al_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Which engine does the I/O, and why.
#[no_mangle]
pub extern "C" fn al_engine() -> *const c_char {
    let Some(runtime) = native::current() else { return null() };
    let mut kept = ENGINE.lock();
    let text = kept.get_or_insert_with(|| CString::new(runtime.engine()).unwrap_or_default());
    text.as_ptr()
}

/// Sends messages elsewhere.
#[no_mangle]
pub extern "C" fn al_set_message_hook(hook: Option<Hook>, data: *mut c_void) {
    set_hook(hook, data);
}
