//! What is common to groups, datasets and named datatypes (`H5O`): passed on.

use std::ffi::c_int;

use crate::abi::{
    AnyArgs, Id, Location, ObjectClass, OptionalArgs, Ptr, Req, Status, Text, OBJECT_FLUSH,
};
use crate::file::flushed;
use crate::object::{name_of, Object};

pub const CLASS: ObjectClass = ObjectClass { open, copy, get, specific, optional };

unsafe extern "C" fn open(
    object: Ptr,
    location: *const Location,
    opened: *mut c_int,
    list: Id,
    req: Req,
) -> Ptr {
    // SAFETY: HDF5 passes an object of ours; what else it passes goes on as it is.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.object_open;
        let made = object.act("open of an object", req, |it, below, req| {
            call(it, location, below, opened, list, req)
        });
        Object::wrap(&object.container, made, object.path_to(name_of(location)))
    }
}

unsafe extern "C" fn copy(
    from: Ptr,
    from_location: *const Location,
    from_name: Text,
    to: Ptr,
    to_location: *const Location,
    to_name: Text,
    copying: Id,
    link: Id,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: as in `open`; both objects are there.
    unsafe {
        let call = Object::of(from).container.library.symbols.object_copy;
        let from = Object::below_of(from);
        Object::of(to).act("copy of an object", req, |to, below, req| {
            call(
                from,
                from_location,
                from_name,
                to,
                to_location,
                to_name,
                below,
                copying,
                link,
                list,
                req,
            )
        })
    }
}

unsafe extern "C" fn get(
    object: Ptr,
    location: *const Location,
    args: Ptr,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: as in `open`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.object_get;
        object.act("query of an object", req, |it, below, req| {
            call(it, location, below, args, list, req)
        })
    }
}

unsafe extern "C" fn specific(
    object: Ptr,
    location: *const Location,
    args: Ptr,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: as in `open`. A refresh may replace the object: the container is kept.
    unsafe {
        let is_flush = (*args.cast::<AnyArgs>()).operation == OBJECT_FLUSH;
        let object = Object::of(object);
        let container = object.container.clone();
        let call = container.library.symbols.object_specific;
        let status = object.act("change of an object", req, |it, below, req| {
            call(it, location, below, args, list, req)
        });
        flushed(&container, status, is_flush)
    }
}

unsafe extern "C" fn optional(
    object: Ptr,
    location: *const Location,
    args: *mut OptionalArgs,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: as in `open`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.object_optional;
        object.act("call for an object", req, |it, below, req| {
            call(it, location, below, args, list, req)
        })
    }
}
