//! What is common to groups, datasets and named datatypes (`H5O`): passed on.

use std::ffi::c_int;

use crate::abi::{
    AnyArgs, Id, Location, ObjectClass, OptionalArgs, Ptr, Req, Status, Text, OBJECT_FLUSH,
    OBJECT_GET_INFO,
};
use crate::forward::{act, act_beside, change, open};
use crate::object::{name_of, Object};

pub const CLASS: ObjectClass = ObjectClass { open, copy, get, specific, optional };

open! {
    open = object_open, "open of an object",
    (location: *const Location; opened: *mut c_int),
    object => object.path_to(name_of(location))
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
        let call = Object::of(from).container.hdf5.symbols.object_copy;
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

act! {
    get_info = object_get, "query of an object", (location: *const Location; args: Ptr)
}

act_beside! {
    get_place = object_get, "query of an object", (location: *const Location; args: Ptr)
}

/// What file it is in, its name and its kind stay as they are.
unsafe extern "C" fn get(
    object: Ptr,
    location: *const Location,
    args: Ptr,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: HDF5 passes a block that begins with what is wanted; the rest goes on as it is.
    unsafe {
        match (*args.cast::<AnyArgs>()).operation {
            OBJECT_GET_INFO => get_info(object, location, args, list, req),
            _ => get_place(object, location, args, list, req),
        }
    }
}

change! {
    specific = object_specific, "change of an object",
    (location: *const Location), flush = OBJECT_FLUSH
}

act! {
    optional = object_optional, "call for an object",
    (location: *const Location; args: *mut OptionalArgs)
}
