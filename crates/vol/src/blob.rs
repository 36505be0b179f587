//! Blobs: where connectors keep variable-length data; passed on.

use std::ffi::c_void;

use crate::abi::{BlobClass, OptionalArgs, Ptr, Status};
use crate::object::Object;

pub const CLASS: BlobClass = BlobClass { put, get, specific, optional };

unsafe extern "C" fn put(
    object: Ptr,
    buffer: *const c_void,
    size: usize,
    blob: Ptr,
    context: Ptr,
) -> Status {
    // SAFETY: HDF5 passes an object of ours; what else it passes goes on as it is.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.blob_put;
        call(object.below, object.container.below, buffer, size, blob, context)
    }
}

unsafe extern "C" fn get(
    object: Ptr,
    blob: *const c_void,
    buffer: Ptr,
    size: usize,
    context: Ptr,
) -> Status {
    // SAFETY: as in `put`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.blob_get;
        call(object.below, object.container.below, blob, buffer, size, context)
    }
}

unsafe extern "C" fn specific(object: Ptr, blob: Ptr, args: Ptr) -> Status {
    // SAFETY: as in `put`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.blob_specific;
        call(object.below, object.container.below, blob, args)
    }
}

unsafe extern "C" fn optional(object: Ptr, blob: Ptr, args: *mut OptionalArgs) -> Status {
    // SAFETY: as in `put`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.blob_optional;
        call(object.below, object.container.below, blob, args)
    }
}
