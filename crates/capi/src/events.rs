//! Events, pausing and polling services, for other libraries.

use std::ffi::{c_int, c_uint, c_void};

use runtime::native::{self, Poll, Runtime, Service};

use crate::status;

/// The task that calls.
#[no_mangle]
pub extern "C" fn al_current_task() -> u64 {
    Runtime::current_task()
}

/// The calling task waits for more events.
#[no_mangle]
pub extern "C" fn al_events_add(count: c_uint) -> c_int {
    status(Runtime::add_events(count))
}

/// Events of a task came.
#[no_mangle]
pub extern "C" fn al_events_fulfil(task: u64, count: c_uint) -> c_int {
    native::current().map_or(-libc::EINVAL, |runtime| status(runtime.fulfil_events(task, count)))
}

/// Pauses the calling task.
#[no_mangle]
pub extern "C" fn al_pause() -> c_int {
    status(Runtime::pause())
}

/// Resumes a task.
#[no_mangle]
pub extern "C" fn al_resume(task: u64) -> c_int {
    native::current().map_or(-libc::EINVAL, |runtime| status(runtime.resume(task)))
}

/// Registers a polling service.
#[no_mangle]
pub extern "C" fn al_polling_register(poll: Option<Poll>, data: *mut c_void) -> c_int {
    let (Some(runtime), Some(poll)) = (native::current(), poll) else { return -libc::EINVAL };
    status(runtime.add_service(Service { poll, data }))
}

/// Takes a polling service back.
#[no_mangle]
pub extern "C" fn al_polling_unregister(poll: Option<Poll>, data: *mut c_void) -> c_int {
    let (Some(runtime), Some(poll)) = (native::current(), poll) else { return -libc::EINVAL };
    status(runtime.remove_service(Service { poll, data }))
}
