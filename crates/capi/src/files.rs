//! Files on storage layers.

use std::ffi::{c_char, c_int, CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null;

use runtime::native::{self, Direction, Errno, Runtime, Wants};

use crate::status;

/// `al_file`.
#[repr(C)]
pub struct AlFile {
    path: *const c_char,
    direction: c_int,
}

/// Adds files to what an I/O task wants.
///
/// # Safety
///
/// `files` are `count` files with C strings.
pub(crate) unsafe fn with_files(
    wants: Wants,
    files: *const AlFile,
    count: usize,
) -> Result<Wants, String> {
    if count == 0 {
        return Ok(wants);
    }
    if files.is_null() {
        return Err("files is NULL, files_count is not 0".into());
    }
    let read = |number| {
        // SAFETY: the caller's promise.
        let file = unsafe { &*files.add(number) };
        if file.path.is_null() {
            return Err("its path is NULL".to_string());
        }
        let direction = match file.direction {
            0 => Direction::In,
            1 => Direction::Out,
            2 => Direction::InOut,
            _ => return Err("a file is read, written or both: AL_IN, AL_OUT or AL_INOUT".into()),
        };
        // SAFETY: the caller's promise.
        Ok((unsafe { CStr::from_ptr(file.path) }, direction))
    };
    Runtime::with_files(wants, (0..count).map(read))
}

/// Where a file of the calling task is.
#[no_mangle]
pub extern "C" fn al_path(file: usize) -> *const c_char {
    // The text belongs to the task that calls.
    Runtime::with_place(file, CStr::as_ptr).unwrap_or(null())
}

/// The calling task fails.
#[no_mangle]
pub extern "C" fn al_fail(error: c_int) -> c_int {
    status(Runtime::fail(error))
}

/// Opens the best copy of a file.
///
/// # Safety
///
/// `path` is null or a C string.
#[no_mangle]
pub unsafe extern "C" fn al_open(path: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let opened = unsafe { with_path(path, Runtime::open_file) };
    opened.unwrap_or_else(|errno| -errno)
}

/// Brings a file to its own path.
///
/// # Safety
///
/// `path` is null or a C string.
#[no_mangle]
pub unsafe extern "C" fn al_persist(path: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    status(unsafe { with_path(path, Runtime::persist) })
}

/// # Safety
///
/// `path` is null or a C string.
unsafe fn with_path<T>(
    path: *const c_char,
    work: impl FnOnce(&Runtime, &Path) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let runtime = native::current().filter(|_| !path.is_null()).ok_or(libc::EINVAL)?;
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) };
    work(&runtime, Path::new(OsStr::from_bytes(path.to_bytes())))
}
