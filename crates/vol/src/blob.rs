//! Blobs: where connectors keep variable-length data; passed on.

use std::ffi::c_void;

use crate::abi::{BlobClass, OptionalArgs, Ptr};
use crate::forward::ask;

pub const CLASS: BlobClass = BlobClass { put, get, specific, optional };

ask! {
    put = blob_put,
    (; buffer: *const c_void, size: usize, blob: Ptr, context: Ptr)
}

ask! {
    get = blob_get,
    (; blob: *const c_void, buffer: Ptr, size: usize, context: Ptr)
}

ask! { specific = blob_specific, (; blob: Ptr, args: Ptr) }

ask! { optional = blob_optional, (; blob: Ptr, args: *mut OptionalArgs) }
