//! Attributes: passed on. Their bytes are metadata, which HDF5 writes when it likes.

use std::ffi::c_void;

use crate::abi::{
    Access, AttributeClass, AttributeExistsArgs, Id, Location, OptionalArgs, Ptr, Req, Status,
    Text, ATTRIBUTE_EXISTS,
};
use crate::elink::{self, Parameter};
use crate::forward::{act_beside, close, open};
use crate::object::Object;

pub const CLASS: AttributeClass =
    AttributeClass { create, open, read, write, get, specific, optional, close };

open! {
    create = attribute_create, "create of an attribute",
    (location: *const Location; name: Text, kind: Id, space: Id, creation: Id, access: Id),
    object => object.path.clone()
}

open! {
    open = attribute_open, "open of an attribute",
    (location: *const Location; name: Text, access: Access),
    object => object.path.clone()
}

act_beside! { read = attribute_read, "read of an attribute", (; kind: Id, buffer: Ptr) }

act_beside! {
    write = attribute_write, "write of an attribute", (; kind: Id, buffer: *const c_void)
}

act_beside! { get = attribute_get, "query of an attribute", (; args: Ptr) }

unsafe extern "C" fn specific(
    object: Ptr,
    location: *const Location,
    args: Ptr,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: HDF5 passes an object of ours, and a block that begins with what is wanted.
    unsafe {
        let object = Object::of(object);
        let call = object.container.hdf5.symbols.attribute_specific;
        let exists = args.cast::<AttributeExistsArgs>();
        if (*exists).operation == ATTRIBUTE_EXISTS && !(*exists).exists.is_null() {
            // The native connector only ever sets it, and HDF5's own asynchronous call does not
            // clear it.
            *(*exists).exists = false;
        }
        elink::with(object.container.hdf5, &[location.access()], || {
            object.act_beside("change of attributes", req, |it, below, req| {
                call(it, location, below, args, list, req)
            })
        })
    }
}

act_beside! {
    optional = attribute_optional, "call for an attribute", (; args: *mut OptionalArgs)
}

close! { close = attribute_close, "close of an attribute" }
