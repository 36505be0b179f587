//! Starting and stopping the runtime.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr, CString};
use std::io::ErrorKind;
use std::ptr::null;

use parking_lot::Mutex;
use runtime::native::{self, say, set_hook, Hook, Options, Prefer, Runtime, StartError};

use crate::status;

/// `al_options`.
#[repr(C)]
pub struct AlOptions {
    size: usize,
    workers: c_uint,
    pinned: c_int,
    stack_bytes: usize,
    stacks_max: c_uint,
    depth: c_uint,
    engine: *const c_char,
}

/// The text that `al_engine` gave last.
static ENGINE: Mutex<Option<CString>> = Mutex::new(None);

/// Sets the defaults.
///
/// # Safety
///
/// `options` is valid for writes.
#[no_mangle]
pub unsafe extern "C" fn al_options_init(options: *mut AlOptions) {
    let defaults = AlOptions {
        size: size_of::<AlOptions>(),
        workers: 0,
        pinned: 1,
        stack_bytes: 0,
        stacks_max: 0,
        depth: 0,
        engine: null(),
    };
    // SAFETY: the caller's promise.
    unsafe { options.write(defaults) };
}

/// Starts the runtime.
///
/// # Safety
///
/// `options` is null, or was set by `al_options_init` of this library or an older one.
#[no_mangle]
pub unsafe extern "C" fn al_start(options: *const AlOptions) -> c_int {
    // SAFETY: the caller's promise.
    let asked = unsafe { options.as_ref() };
    let options = match asked.map_or(Ok(Options::default()), read) {
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

fn read(asked: &AlOptions) -> Result<Options, String> {
    if asked.size != size_of::<AlOptions>() {
        return Err("call al_options_init before you change options".into());
    }
    let defaults = Options::default();
    let or = |value: usize, usual: usize| if value == 0 { usual } else { value };
    let engine = if asked.engine.is_null() {
        Prefer::Auto
    } else {
        // SAFETY: the caller promised a C string.
        let name = unsafe { CStr::from_ptr(asked.engine) };
        match name.to_bytes() {
            b"auto" => Prefer::Auto,
            b"io_uring" => Prefer::Uring,
            b"threads" => Prefer::Threads,
            _ => return Err(format!("no engine is called {name:?}; auto, io_uring or threads")),
        }
    };
    Ok(Options {
        workers: or(asked.workers as usize, defaults.workers),
        pinned: asked.pinned != 0,
        stack_bytes: or(asked.stack_bytes, defaults.stack_bytes),
        stacks_max: or(asked.stacks_max as usize, defaults.stacks_max),
        depth: or(asked.depth as usize, defaults.depth as usize) as u32,
        engine,
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
