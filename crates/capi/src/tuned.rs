//! Layers, and what was found out about functions on them.

use std::ffi::{c_char, c_int, c_uint, c_void, CString};
use std::ptr::null;

use runtime::native::{self, Layer, Runtime};
use runtime::{Progress, TunedStatistics, Tuning};

/// `al_tuned`.
#[repr(C)]
pub struct AlTuned {
    function: *const c_char,
    layer: *const c_char,
    mode: *const c_char,
    state: *const c_char,
    constraint: u64,
    rate: u64,
    window: c_uint,
    epochs: c_uint,
    abandoned: c_uint,
    varies: c_int,
}

/// `al_tuned_hook`.
pub type Hook = extern "C-unwind" fn(*const AlTuned, *mut c_void);

/// The name of the layer that the calling I/O task may use.
#[no_mangle]
pub extern "C" fn al_layer() -> *const c_char {
    // The text belongs to the runtime, which does not end before its tasks.
    Runtime::with_layer(|layer: &Layer| layer.name().as_ptr()).unwrap_or(null())
}

/// The folder of the layer that the calling I/O task may use.
#[no_mangle]
pub extern "C" fn al_layer_path() -> *const c_char {
    Runtime::with_layer(|layer: &Layer| layer.path().as_ptr()).unwrap_or(null())
}

/// Calls the hook for each function and layer that tuning has met.
#[no_mangle]
pub extern "C-unwind" fn al_each_tuned(hook: Option<Hook>, data: *mut c_void) -> c_int {
    let (Some(hook), Some(runtime)) = (hook, native::current()) else { return -libc::EINVAL };
    let all = runtime.tuned();
    for one in &all {
        tell(one, hook, data);
    }
    c_int::try_from(all.len()).unwrap_or(c_int::MAX)
}

fn tell(TunedStatistics { function, tuned }: &TunedStatistics, hook: Hook, data: *mut c_void) {
    let (state, constraint, window, rate) = match tuned.progress {
        Progress::Learning { constraint, .. } => (c"learning", constraint, 0, 0),
        Progress::Chosen { constraint } => (c"chosen", constraint, 0, 0),
        Progress::Window { tasks, rate, .. } => (c"window", 0, tasks, rate),
    };
    let mode = if tuned.tuning == Tuning::Adaptive { c"adaptive" } else { c"auto" };
    let text = |text: &str| CString::new(text).unwrap_or_default();
    let (function, layer) = (text(function), text(&tuned.layer));
    let told = AlTuned {
        function: function.as_ptr(),
        layer: layer.as_ptr(),
        mode: mode.as_ptr(),
        state: state.as_ptr(),
        constraint,
        rate,
        window,
        epochs: tuned.epochs.len() as c_uint,
        abandoned: tuned.abandoned,
        varies: c_int::from(tuned.varies),
    };
    hook(&told, data);
}
