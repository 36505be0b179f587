//! Files: opened with our file driver below the connector below, if that is the native one.

use std::ffi::{c_uint, c_ulong, CStr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use crate::abi::{
    FileClass, FileGetArgs, FileNumberArgs, FileSpecificArgs, Id, OptionalArgs, Ptr, Req, Status,
    Text, ACCESS_SWMR, ACCESS_WRITE, DEFAULT, DONE, FAILED, FILE_DELETE, FILE_FLUSH,
    FILE_GET_ACCESS_LIST, FILE_GET_NUMBER, FILE_IS_ACCESSIBLE, FILE_REOPEN, FILE_START_SWMR, NO_ID,
};
use crate::info::Info;
use crate::library::{self, Library};
use crate::object::{act, Container, Object};
use crate::{driver, info, later, opened, postponed, stack};

/// The callbacks of a slot: a file is opened before there is an object to tell its library.
pub const fn class<const SLOT: usize>() -> FileClass {
    FileClass {
        create: create::<SLOT>,
        open: open::<SLOT>,
        get,
        specific: specific::<SLOT>,
        optional,
        close,
    }
}

/// A list of access properties for the connector below, and what is held for it.
struct Lists {
    container: Arc<Container>,
    below: Id,
    info: Ptr,
}

impl Lists {
    /// Makes the list: the connector below, and our driver in place of the plain one.
    ///
    /// # Safety
    ///
    /// `list` is a list of file access properties.
    unsafe fn of<const SLOT: usize>(list: Id) -> Lists {
        let library = library::get::<SLOT>();
        let symbols = &library.symbols;
        // SAFETY: the caller promised; ids and what HDF5 copied for us.
        unsafe {
            let mut info = std::ptr::null_mut();
            (symbols.list_get_info)(list, &raw mut info);
            let known = Info::below_or_native(info.cast(), library);
            let below = (symbols.list_copy)(list);
            (symbols.list_set_connector)(below, known.connector, known.info);
            let mut is_ours = known.is_native && driver::is_plain(library, list);
            if is_ours {
                let ours = driver::ours(library);
                is_ours = ours != NO_ID;
                if is_ours {
                    (symbols.list_set_driver)(below, ours, std::ptr::null());
                }
            }
            let (connector, settings) = (known.connector, known.settings);
            let container = Container::new(library, connector, settings, is_ours);
            Lists { container: Arc::new(container), below, info }
        }
    }

    /// Gives back what was held; the errors of a call that failed stay.
    fn end<const SLOT: usize>(self, is_good: bool) {
        let library = library::get::<SLOT>();
        // SAFETY: the list that was made, and what HDF5 copied for us.
        let give_back = || unsafe {
            (library.symbols.list_close)(self.below);
            info::free::<SLOT>(self.info);
            drop(self.container);
        };
        match is_good {
            true => give_back(),
            false => stack::keep(library, give_back),
        }
    }
}

/// Whether nothing can be opened with these settings; then the program is told.
fn is_refused(container: &Container) -> bool {
    let refusal = container.settings.refusal();
    if let Some(why) = refusal {
        stack::push_here(container.hdf5, why);
    }
    refusal.is_some()
}

/// Opens or creates a file below.
///
/// # Safety
///
/// `name` is a text, and `list` a list of file access properties; `call` opens with the list that
/// it is given.
unsafe fn opened_with<const SLOT: usize>(
    operation: &'static str,
    name: Text,
    flags: c_uint,
    list: Id,
    req: Req,
    call: impl FnOnce(&Library, Id, Req) -> Ptr,
) -> Ptr {
    // SAFETY: the caller promised.
    let (lists, name) = unsafe { (Lists::of::<SLOT>(list), CStr::from_ptr(name)) };
    let container = &lists.container;
    let _ = container.name.set(name.to_string_lossy().into());
    if flags & ACCESS_SWMR != 0 {
        container.postpones.store(false, Ordering::Relaxed);
    }
    let made = match is_refused(container) {
        true => std::ptr::null_mut(),
        false => act(container, operation, None, req, |req| call(container.hdf5, lists.below, req)),
    };
    if !made.is_null() && flags & ACCESS_WRITE != 0 {
        // SAFETY: the file that was made.
        unsafe { learn_number(container, made) };
    }
    let wrapped = Object::wrap(&lists.container, made, Arc::new(OnceLock::from(Box::from("/"))));
    lists.end::<SLOT>(!wrapped.is_null());
    wrapped
}

/// A file was opened for writing: how HDF5 numbers it, if it says.
///
/// # Safety
///
/// `file` is of the connector below.
unsafe fn learn_number(container: &Container, file: Ptr) {
    let mut number: c_ulong = 0;
    let mut args = FileNumberArgs { operation: FILE_GET_NUMBER, number: &raw mut number };
    let (library, block) = (container.hdf5, (&raw mut args).cast());
    stack::apart(library, || {
        let get = library.symbols.file_get;
        // SAFETY: the caller promised; a block with room for the number.
        let status = unsafe { get(file, container.below, block, DEFAULT, std::ptr::null_mut()) };
        if status >= 0 {
            let _ = container.writable_file.set(number);
        }
    });
}

unsafe extern "C" fn create<const SLOT: usize>(
    name: Text,
    flags: c_uint,
    creation: Id,
    access: Id,
    list: Id,
    req: Req,
) -> Ptr {
    // SAFETY: HDF5 passes a name and lists.
    unsafe {
        later::before_open(CStr::from_ptr(name));
        let call = |library: &Library, access, req| {
            (library.symbols.file_create)(name, flags, creation, access, list, req)
        };
        opened_with::<SLOT>("create of a file", name, flags | ACCESS_WRITE, access, req, call)
    }
}

unsafe extern "C" fn open<const SLOT: usize>(
    name: Text,
    flags: c_uint,
    access: Id,
    list: Id,
    req: Req,
) -> Ptr {
    // SAFETY: as in `create`.
    unsafe {
        later::before_open(CStr::from_ptr(name));
        let call = |library: &Library, access, req| {
            (library.symbols.file_open)(name, flags, access, list, req)
        };
        opened_with::<SLOT>("open of a file", name, flags, access, req, call)
    }
}

/// A list of access properties shows the driver that the program chose.
unsafe extern "C" fn get(object: Ptr, args: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: HDF5 passes an object of ours and a block.
    unsafe {
        let object = Object::of(object);
        let library = object.container.hdf5;
        let status = object.act("query of a file", req, |it, below, req| {
            (library.symbols.file_get)(it, below, args, list, req)
        });
        let FileGetArgs { operation, list } = *args.cast();
        if status >= 0 && operation == FILE_GET_ACCESS_LIST {
            driver::hide(library, list);
        }
        status
    }
}

unsafe extern "C" fn specific<const SLOT: usize>(
    object: Ptr,
    args: *mut FileSpecificArgs,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: HDF5 passes a block, and an object of ours unless the block has a name and a list.
    unsafe {
        let operation = (*args).operation;
        if operation == FILE_IS_ACCESSIBLE || operation == FILE_DELETE {
            return by_name::<SLOT>(*args, list, req);
        }
        let object = Object::of(object);
        let container = object.container.clone();
        let call = container.hdf5.symbols.file_specific;
        let status =
            object.act("flush of a file", req, |it, below, req| call(it, below, args, list, req));
        if status >= 0 && operation == FILE_REOPEN {
            let reopened = (*args).words[0].cast::<Ptr>();
            *reopened = Object::wrap(&container, *reopened, object.path.clone());
        }
        flushed(&container, status, operation == FILE_FLUSH)
    }
}

/// What is done to a file that is not open, by its name and a list of access properties.
unsafe fn by_name<const SLOT: usize>(mut args: FileSpecificArgs, list: Id, req: Req) -> Status {
    // SAFETY: the second word of such a block is the list.
    unsafe {
        let lists = Lists::of::<SLOT>(args.words[1] as usize as Id);
        args.words[1] = lists.below as usize as Ptr;
        let container = &lists.container;
        let call = container.hdf5.symbols.file_specific;
        let status = match is_refused(container) {
            true => FAILED,
            false => act(container, "look at a file", None, req, |req| {
                call(std::ptr::null_mut(), container.below, &raw mut args, list, req)
            }),
        };
        lists.end::<SLOT>(status >= 0);
        status
    }
}

/// Before other processes read the file, all that was written is there, and stays in order.
unsafe extern "C" fn optional(object: Ptr, args: *mut OptionalArgs, list: Id, req: Req) -> Status {
    // SAFETY: HDF5 passes an object of ours and a block.
    unsafe {
        let object = Object::of(object);
        let Container { hdf5: library, ref files, .. } = *object.container;
        if (*args).operation == FILE_START_SWMR {
            postponed::before(library);
            object.container.postpones.store(false, Ordering::Relaxed);
            let files = files.lock().clone();
            if let Err(failures) = opened::share(library, &files) {
                return driver::told(library, Err(failures));
            }
        }
        object.act("call for a file", req, |it, below, req| {
            (library.symbols.file_optional)(it, below, args, list, req)
        })
    }
}

unsafe extern "C" fn close(object: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: HDF5 passes an object of ours; closed, it forgets it.
    unsafe {
        let ours = Object::of(object);
        let container = ours.container.clone();
        postponed::before(container.hdf5);
        if told_lost(&container) == FAILED && !container.hdf5.is_terminating() {
            return FAILED;
        }
        let call = container.hdf5.symbols.file_close;
        let status = ours.act("close of a file", req, |it, below, req| call(it, below, list, req));
        if status >= 0 {
            Object::free(object);
            closed(&container);
        }
        status
    }
}

/// Tells what failed of transfers that were done later.
fn told_lost(container: &Arc<Container>) -> Status {
    match postponed::take_lost(container) {
        lost if lost.is_empty() => DONE,
        lost => driver::told(container.hdf5, Err(lost)),
    }
}

/// The end of a close: what was written through this file may be in those that stay open, as they
/// are open elsewhere, too: the sources of virtual datasets, or the file itself. What went wrong
/// there they tell, as this call cannot: HDF5 would keep the file that is gone. What a task
/// promised is left to its end.
fn closed(container: &Container) {
    let mut files = container.files.lock().clone();
    files.retain(|key| later::promised(*key).is_none());
    opened::settle(container.hdf5, &files);
}

/// The end of what may be a flush: HDF5 has written what it had, and now it is on its way to the
/// file. Only then are others told that it is there.
pub fn flushed(container: &Arc<Container>, status: Status, is_flush: bool) -> Status {
    if status < 0 || !is_flush {
        return status;
    }
    opened::flushes();
    let files = container.files.lock().clone();
    let files = Some(files.as_slice()).filter(|files| !files.is_empty());
    let mut failures = postponed::take_lost(container);
    failures.extend(opened::drain(Some(container.hdf5), files).err().into_iter().flatten());
    let outcome = if failures.is_empty() { Ok(()) } else { Err(failures) };
    match driver::told(container.hdf5, outcome) {
        FAILED => FAILED,
        _ => status,
    }
}
