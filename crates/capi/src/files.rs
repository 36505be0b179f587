//! Files on storage layers.

use std::ffi::{c_char, c_int, CStr, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::ptr::null;

use runtime::native::{self, Direction, Errno, Runtime, Wants};
use runtime::PathKind;

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
        let (kind, direction) = match file.direction {
            0 => (PathKind::File, Direction::In),
            1 => (PathKind::File, Direction::Out),
            2 => (PathKind::File, Direction::InOut),
            5 => (PathKind::Directory, Direction::In),
            6 => (PathKind::Directory, Direction::Out),
            7 => (PathKind::Directory, Direction::InOut),
            _ => {
                let text = "a file is read, written or both: AL_IN, AL_OUT or AL_INOUT, and \
                            AL_DIR_IN, AL_DIR_OUT or AL_DIR_INOUT for a directory";
                return Err(text.into());
            }
        };
        // SAFETY: the caller's promise.
        Ok((unsafe { CStr::from_ptr(file.path) }, kind, direction))
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

/// Gives a path for a file that goes with the runtime.
///
/// # Safety
///
/// `name` is null or a C string; `path` is null or valid for writes of `bytes`.
#[no_mangle]
pub unsafe extern "C" fn al_scratch(name: *const c_char, path: *mut c_char, bytes: usize) -> c_int {
    let Some(runtime) = native::current().filter(|_| !path.is_null()) else {
        return -libc::EINVAL;
    };
    let name = match name.is_null() {
        true => c"scratch",
        // SAFETY: the caller's promise.
        false => unsafe { CStr::from_ptr(name) },
    };
    let made = match runtime.scratch(OsStr::from_bytes(name.to_bytes())) {
        Ok(made) => made.into_os_string().into_vec(),
        Err(errno) => return -errno,
    };
    if made.len() >= bytes {
        return -libc::ENAMETOOLONG;
    }
    // SAFETY: the caller's promise: there is room for the text and a zero.
    unsafe {
        path.copy_from_nonoverlapping(made.as_ptr().cast(), made.len());
        path.add(made.len()).write(0);
    }
    0
}

/// The program will not name a scratch file any more.
///
/// # Safety
///
/// `path` is null or a C string.
#[no_mangle]
pub unsafe extern "C" fn al_forget(path: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    status(unsafe { with_path(path, Runtime::forget_file) })
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
