//! Attributes: passed on. Their bytes are metadata, which HDF5 writes when it likes.

use std::ffi::c_void;

use crate::abi::{
    AttributeClass, AttributeExistsArgs, Id, Location, OptionalArgs, Ptr, Req, Status, Text,
    ATTRIBUTE_EXISTS,
};
use crate::object::Object;

pub const CLASS: AttributeClass =
    AttributeClass { create, open, read, write, get, specific, optional, close };

unsafe extern "C" fn create(
    object: Ptr,
    location: *const Location,
    name: Text,
    kind: Id,
    space: Id,
    creation: Id,
    access: Id,
    list: Id,
    req: Req,
) -> Ptr {
    // SAFETY: HDF5 passes an object of ours; what else it passes goes on as it is.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.attribute_create;
        let made = object.act("create of an attribute", req, |it, below, req| {
            call(it, location, below, name, kind, space, creation, access, list, req)
        });
        Object::wrap(&object.container, made, object.path.clone())
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
        let call = object.container.library.symbols.attribute_open;
        let made = object.act("open of an attribute", req, |it, below, req| {
            call(it, location, below, name, access, list, req)
        });
        Object::wrap(&object.container, made, object.path.clone())
    }
}

unsafe extern "C" fn read(object: Ptr, kind: Id, buffer: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.attribute_read;
        object.act("read of an attribute", req, |it, below, req| {
            call(it, below, kind, buffer, list, req)
        })
    }
}

unsafe extern "C" fn write(
    object: Ptr,
    kind: Id,
    buffer: *const c_void,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.attribute_write;
        object.act("write of an attribute", req, |it, below, req| {
            call(it, below, kind, buffer, list, req)
        })
    }
}

unsafe extern "C" fn get(object: Ptr, args: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.attribute_get;
        object.act("query of an attribute", req, |it, below, req| call(it, below, args, list, req))
    }
}

unsafe extern "C" fn specific(
    object: Ptr,
    location: *const Location,
    args: Ptr,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.attribute_specific;
        let exists = args.cast::<AttributeExistsArgs>();
        if (*exists).operation == ATTRIBUTE_EXISTS && !(*exists).exists.is_null() {
            // The native connector only ever sets it, and HDF5's own asynchronous call does not
            // clear it.
            *(*exists).exists = false;
        }
        object.act("change of attributes", req, |it, below, req| {
            call(it, location, below, args, list, req)
        })
    }
}

unsafe extern "C" fn optional(object: Ptr, args: *mut OptionalArgs, list: Id, req: Req) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.attribute_optional;
        object.act("call for an attribute", req, |it, below, req| call(it, below, args, list, req))
    }
}

unsafe extern "C" fn close(object: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: as in `create`; closed, HDF5 forgets the object.
    unsafe {
        let ours = Object::of(object);
        let call = ours.container.library.symbols.attribute_close;
        let status =
            ours.act("close of an attribute", req, |it, below, req| call(it, below, list, req));
        if status >= 0 {
            Object::free(object);
        }
        status
    }
}
