//! Groups: passed on; of a mount, the file that is mounted is put in its place below.

use crate::abi::{
    GroupClass, GroupSpecificArgs, Id, Location, OptionalArgs, Ptr, Req, Status, Text, GROUP_FLUSH,
    GROUP_MOUNT,
};
use crate::file::flushed;
use crate::object::Object;

pub const CLASS: GroupClass = GroupClass { create, open, get, specific, optional, close };

unsafe extern "C" fn create(
    object: Ptr,
    location: *const Location,
    name: Text,
    link: Id,
    creation: Id,
    access: Id,
    list: Id,
    req: Req,
) -> Ptr {
    // SAFETY: HDF5 passes an object of ours and a name; what else it passes goes on as it is.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.group_create;
        let made = object.act("create of a group", req, |it, below, req| {
            call(it, location, below, name, link, creation, access, list, req)
        });
        Object::wrap(&object.container, made, object.path_to(name))
    }
}

unsafe extern "C" fn open(
    object: Ptr,
    location: *const Location,
    name: Text,
    access: Id,
    list: Id,
    req: Req,
) -> Ptr {
    // SAFETY: as in `create`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.group_open;
        let made = object.act("open of a group", req, |it, below, req| {
            call(it, location, below, name, access, list, req)
        });
        Object::wrap(&object.container, made, object.path_to(name))
    }
}

unsafe extern "C" fn get(object: Ptr, args: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.group_get;
        object.act("query of a group", req, |it, below, req| call(it, below, args, list, req))
    }
}

unsafe extern "C" fn specific(
    object: Ptr,
    args: *mut GroupSpecificArgs,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: as in `create`; the block is HDF5's, and of a mount it holds a file of ours. A
    // refresh may replace the object: the container is kept.
    unsafe {
        let object = Object::of(object);
        let container = object.container.clone();
        let call = container.library.symbols.group_specific;
        let GroupSpecificArgs { operation, .. } = *args;
        let mut mount;
        let mut passed = args;
        if operation == GROUP_MOUNT {
            let GroupSpecificArgs { name, child, list, .. } = *args;
            mount = GroupSpecificArgs { operation, name, child: Object::below_of(child), list };
            passed = &raw mut mount;
        }
        let status = object
            .act("change of a group", req, |it, below, req| call(it, below, passed, list, req));
        flushed(&container, status, operation == GROUP_FLUSH)
    }
}

unsafe extern "C" fn optional(object: Ptr, args: *mut OptionalArgs, list: Id, req: Req) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.group_optional;
        object.act("call for a group", req, |it, below, req| call(it, below, args, list, req))
    }
}

unsafe extern "C" fn close(object: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: as in `create`; closed, HDF5 forgets the object.
    unsafe {
        let ours = Object::of(object);
        let call = ours.container.library.symbols.group_close;
        let status = ours.act("close of a group", req, |it, below, req| call(it, below, list, req));
        if status >= 0 {
            Object::free(object);
        }
        status
    }
}
