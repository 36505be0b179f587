//! External links whose files the program has a list of access properties for
//! (`H5Pset_elink_fapl`): HDF5 opens them by itself, with that list.
//!
//! The list names the plain driver, and HDF5 takes a file that is open with another one for another
//! file: what one of the two writes, the other would not see, and both have caches. So while a call
//! runs that may follow such a link, the list names our driver in its place.

use std::ffi::{c_char, c_int, c_void};

use crate::abi::{Access, Id, Location, OptionalArgs, Ptr, DEFAULT, LOCATION_BY_NAME};
use crate::library::Library;
use crate::{driver, stack};

/// What a call is passed, and may have such a list in it.
pub trait Parameter: Copy {
    /// The list.
    ///
    /// # Safety
    ///
    /// It is what HDF5 passed, and the call has not returned.
    unsafe fn access(self) -> Option<Access> {
        None
    }
}

impl Parameter for Access {
    unsafe fn access(self) -> Option<Access> {
        Some(self)
    }
}

impl Parameter for *const Location {
    unsafe fn access(self) -> Option<Access> {
        // SAFETY: the caller promised.
        let location = unsafe { self.as_ref() };
        location.filter(|at| at.kind == LOCATION_BY_NAME).map(|at| Access(at.access))
    }
}

impl Parameter for Id {}
impl Parameter for Ptr {}
impl Parameter for *const c_void {}
impl Parameter for *const c_char {}
impl Parameter for *mut c_int {}
impl Parameter for *mut OptionalArgs {}

/// Runs a call that may follow links with one of these lists.
///
/// # Safety
///
/// They are what HDF5 passed: lists of link access properties, or the default.
pub unsafe fn with<T>(
    library: &'static Library,
    lists: &[Option<Access>],
    call: impl FnOnce() -> T,
) -> T {
    // SAFETY: the caller promised.
    let exchange = |Access(list): &Access| unsafe { Exchanged::of(library, *list) };
    let exchanged = lists.iter().flatten().find_map(exchange);
    let result = call();
    if let Some(exchanged) = exchanged {
        stack::keep(library, || exchanged.undo(library));
    }
    result
}

/// A list whose files are opened with our driver for now.
struct Exchanged {
    list: Id,
    /// The list of access properties for the files, as the program set it.
    before: Id,
}

impl Exchanged {
    /// Exchanges the driver, if the list has such a list, and that names the plain one.
    unsafe fn of(library: &'static Library, list: Id) -> Option<Exchanged> {
        if list <= DEFAULT {
            return None;
        }
        let symbols = &library.symbols;
        // SAFETY: the caller promised; the copies are closed here or in `undo`.
        unsafe {
            let before = (symbols.links_get_files)(list);
            if before <= DEFAULT {
                return None;
            }
            let ours = driver::ours(library);
            if !driver::is_plain(library, before) {
                (symbols.list_close)(before);
                return None;
            }
            let now = (symbols.list_copy)(before);
            (symbols.list_set_driver)(now, ours, std::ptr::null());
            (symbols.links_set_files)(list, now);
            (symbols.list_close)(now);
            Some(Exchanged { list, before })
        }
    }

    fn undo(self, library: &'static Library) {
        let symbols = &library.symbols;
        // SAFETY: the list lives as long as the call, and the other is ours.
        unsafe {
            (symbols.links_set_files)(self.list, self.before);
            (symbols.list_close)(self.before);
        }
    }
}
