//! Programs of Python: whether this is one, and the end of its processes of `multiprocessing`.
//!
//! These end by `os._exit`, which calls no destructor and nothing of HDF5: what is not written by
//! then would be lost. Python is asked to run a few lines where it next may (on its main thread,
//! between two instructions), so nothing waits here for its lock; these have `multiprocessing` wait
//! for us before it ends the process.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::opened;

type Run = unsafe extern "C" fn(*const c_char) -> c_int;
type Later = unsafe extern "C" fn(extern "C" fn(*mut c_void) -> c_int, *mut c_void) -> c_int;

/// Has `multiprocessing`, if the process is one of its own or has it loaded, call a function.
const AT_END: &str = r#"exec('''
import sys
util = sys.modules.get("multiprocessing.util")
if util is not None and not sys.is_finalizing():
    import ctypes
    util.Finalize(None, ctypes.CFUNCTYPE(None)(ADDRESS), exitpriority=0)
''', {})"#;

/// A function of Python's interface, if there is one in this process.
fn find<T>(name: &CStr) -> Option<T> {
    // SAFETY: a name; the caller knows the type of what is called so, a pointer.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        (!found.is_null()).then(|| std::mem::transmute_copy(&found))
    }
}

/// Whether an interpreter of Python runs in this process.
pub fn is_running() -> bool {
    let is_initialized: Option<unsafe extern "C" fn() -> c_int> = find(c"Py_IsInitialized");
    // SAFETY: it takes and changes nothing.
    is_initialized.is_some_and(|ask| unsafe { ask() } != 0)
}

/// Has a process of `multiprocessing` wait at its end for all that is written. Once a process: what
/// its parent asked for, `multiprocessing` has forgotten in a child.
pub fn wait_at_end() {
    static ASKED_BY: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    if ASKED_BY.load(Ordering::Relaxed) == process || !is_running() {
        return;
    }
    let Some(later) = find::<Later>(c"Py_AddPendingCall") else { return };
    // SAFETY: it may be called by any thread, at any time. If it has no room, the next file asks.
    if unsafe { later(register, std::ptr::null_mut()) } == 0 {
        ASKED_BY.store(process, Ordering::Relaxed);
    }
}

extern "C" fn register(_: *mut c_void) -> c_int {
    let address = opened::wait_for_all as extern "C" fn() as usize;
    let text = CString::new(AT_END.replace("ADDRESS", &address.to_string()));
    if let (Some(run), Ok(text)) = (find::<Run>(c"PyRun_SimpleString"), text) {
        // SAFETY: Python calls this with its lock held. What goes wrong in the text it prints.
        unsafe { run(text.as_ptr()) };
    }
    0
}
