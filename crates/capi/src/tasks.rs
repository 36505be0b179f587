//! Spawning tasks and waiting for them.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};

use runtime::native::{
    self, say, Access, Argument, Body, Direction, Region, Runtime, Span, Spawn, Wants,
};

use crate::files::{with_files, AlFile};
use crate::status;

/// Dimensions of a region at most.
const DIMENSIONS_MAX: c_uint = 8;

/// `al_span`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AlSpan {
    start: u64,
    end: u64,
}

/// `al_access`.
#[repr(C)]
pub struct AlAccess {
    base: *const c_void,
    direction: c_int,
    dimensions: c_uint,
    span: AlSpan,
    spans: *const AlSpan,
}

/// `al_task`.
#[repr(C)]
pub struct AlTask {
    body: Option<Body>,
    argument: *mut c_void,
    argument_bytes: usize,
    accesses: *const AlAccess,
    accesses_count: usize,
    name: *const c_char,
    priority: c_int,
    drop: Option<Body>,
    io: *const AlIo,
}

/// `al_io`.
#[repr(C)]
pub struct AlIo {
    bandwidth: *const c_char,
    size: u64,
    layer: *const c_char,
    files: *const AlFile,
    files_count: usize,
}

fn refuse(what: &str, task: Option<&CStr>) -> c_int {
    let task = task.map_or(String::new(), |name| format!(" the task {name:?}:"));
    say(&format!("al_spawn:{task} {what}"));
    -libc::EINVAL
}

/// Spawns a task.
///
/// # Safety
///
/// `task` describes valid memory, and its name lives as long as the task.
#[no_mangle]
pub unsafe extern "C" fn al_spawn(task: *const AlTask) -> c_int {
    // SAFETY: the caller's promise.
    let spawned = native::with_current(|runtime| unsafe { spawn(runtime, task) });
    let stopped = || Err("the runtime does not run; call al_start before".into());
    match spawned.unwrap_or_else(stopped) {
        Ok(()) => 0,
        // SAFETY: the caller's promise.
        Err(what) => refuse(&what, unsafe { name_of(task) }),
    }
}

/// # Safety
///
/// As of `al_spawn`.
unsafe fn name_of<'a>(task: *const AlTask) -> Option<&'a CStr> {
    // SAFETY: the caller's promise.
    let name = unsafe { task.as_ref() }?.name;
    // SAFETY: as above.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}

/// # Safety
///
/// As of `al_spawn`.
unsafe fn spawn(runtime: &Runtime, task: *const AlTask) -> Result<(), String> {
    // SAFETY: the caller's promise.
    let task = unsafe { task.as_ref() }.ok_or("no task is described")?;
    let body = task.body.ok_or("the task has no body")?;
    if task.accesses_count > 0 && task.accesses.is_null() {
        return Err("accesses is NULL, accesses_count is not 0".into());
    }
    let argument = match task.argument_bytes {
        0 => Argument::Pointer(task.argument),
        _ if task.argument.is_null() => {
            return Err("argument is NULL, argument_bytes is not 0".into());
        }
        // SAFETY: the caller's promise.
        bytes => unsafe { Argument::copy(task.argument, bytes) },
    };
    // SAFETY: the caller's promise.
    let wants = match unsafe { task.io.as_ref() } {
        None => None,
        // SAFETY: as above.
        Some(io) => Some(unsafe { wants(runtime, io) }?),
    };
    let spawn = Spawn { body, argument, drop: task.drop, name: task.name, priority: task.priority };
    let accesses = (0..task.accesses_count).map(|number| {
        // SAFETY: the caller promised so many accesses, with valid spans.
        let access = unsafe { read(&*task.accesses.add(number)) };
        access.map_err(|what| format!("access {number}: {what}"))
    });
    runtime.spawn(spawn, wants.as_ref(), accesses)
}

/// # Safety
///
/// The texts are null or C strings, and there are so many files.
#[cold]
unsafe fn wants(runtime: &Runtime, io: &AlIo) -> Result<Wants, String> {
    // SAFETY: the caller's promise, for both.
    let text = |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    let wants = runtime.wants(text(io.bandwidth), io.size, text(io.layer))?;
    // SAFETY: as above, for the files.
    unsafe { with_files(wants, io.files, io.files_count) }
}

/// # Safety
///
/// `spans` has as many spans as there are dimensions, or is null.
unsafe fn read(access: &AlAccess) -> Result<Access, &'static str> {
    if access.base.is_null() {
        return Err("its base is NULL");
    }
    let direction = match access.direction {
        0 => Direction::In,
        1 => Direction::Out,
        2 => Direction::InOut,
        3 => Direction::Concurrent,
        4 => Direction::Commutative,
        _ => return Err("no such direction"),
    };
    let span = |span: AlSpan| Span { start: span.start, end: span.end };
    let region = match access.dimensions {
        0 => Region::Whole,
        1 => Region::Range(span(access.span)),
        more if more > DIMENSIONS_MAX => return Err("more than AL_DIMENSIONS_MAX dimensions"),
        _ if access.spans.is_null() => return Err("it has dimensions, but spans is NULL"),
        // SAFETY: the caller's promise.
        more => Region::Box(unsafe {
            (0..more as usize).map(|number| span(*access.spans.add(number))).collect()
        }),
    };
    Ok(Access { base: access.base as usize, direction, region })
}

/// The calling task is done with the data of one of its accesses.
#[no_mangle]
pub extern "C" fn al_release(access: c_uint) -> c_int {
    status(Runtime::release(access))
}

/// Waits for everything that the caller spawned.
#[no_mangle]
pub extern "C" fn al_taskwait() -> c_int {
    native::current().map_or(-libc::EINVAL, |runtime| status(runtime.wait_all()))
}

/// Waits until nobody that the caller spawned uses a datum.
#[no_mangle]
pub extern "C" fn al_wait_on(base: *const c_void) -> c_int {
    if base.is_null() {
        return -libc::EINVAL;
    }
    native::current().map_or(-libc::EINVAL, |runtime| status(runtime.wait_on(base as usize)))
}
