//! Messages for people: to standard error, or to the hook of the program.

use std::ffi::{c_char, c_void, CString};

use parking_lot::Mutex;

use super::worker::outside_of_tasks;

/// Where messages go instead.
pub type Hook = extern "C" fn(*const c_char, *mut c_void);

struct Where {
    hook: Hook,
    data: *mut c_void,
}

// SAFETY: the program promised, by setting the hook, that it may be called from any thread.
unsafe impl Send for Where {}

static HOOK: Mutex<Option<Where>> = Mutex::new(None);

/// Sends messages to `hook` from now on; `None`: to standard error.
pub fn set_hook(hook: Option<Hook>, data: *mut c_void) {
    *HOOK.lock() = hook.map(|hook| Where { hook, data });
}

/// Tells people something. Not while a lock of ours is held: the hook is the program's code.
pub fn say(text: &str) {
    let (hook, data) = match &*HOOK.lock() {
        None => {
            exec::tell(&format!("alongside: {text}"));
            return;
        }
        Some(place) => (place.hook, place.data),
    };
    let text = CString::new(text.replace('\0', " ")).expect("no zeros are left");
    // It may be called in the middle of what a task asked for: it must not pause that task.
    outside_of_tasks(|| hook(text.as_ptr(), data));
}
