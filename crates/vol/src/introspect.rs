//! What HDF5 asks of the connector itself.

use std::ffi::{c_int, c_void};

use crate::abi::{Class, Ptr, Status, CAPABILITY_ASYNC, DONE};
use crate::forward::ask;
use crate::info::Info;
use crate::object::Object;
use crate::{class, library};

/// `H5VL_GET_CONN_LVL_CURR`: this connector, not the last one below.
const LEVEL_CURRENT: c_int = 0;

pub unsafe extern "C" fn class(object: Ptr, level: c_int, found: *mut *const Class) -> Status {
    // SAFETY: HDF5 passes an object of ours and wants the class there.
    unsafe {
        let object = Object::of(object);
        if level == LEVEL_CURRENT {
            *found = class::of(object.container.hdf5);
            return DONE;
        }
        let call = object.container.hdf5.symbols.introspect_class;
        call(object.below, object.container.below, level, found.cast())
    }
}

/// Those of the connector below, and that calls can go on after they have returned.
pub unsafe extern "C" fn capabilities<const SLOT: usize>(
    info: *const c_void,
    flags: *mut u64,
) -> Status {
    let library = library::get::<SLOT>();
    // SAFETY: HDF5 passes what we know of a file, or null, and wants the flags there.
    unsafe {
        let below = Info::below_or_native(info.cast(), library);
        let call = library.symbols.introspect_capabilities;
        let status = call(below.info, below.connector, flags);
        (library.symbols.drop_id)(below.connector);
        if status >= 0 {
            *flags |= CAPABILITY_ASYNC;
        }
        status
    }
}

ask! {
    optional = introspect_optional, (; class: c_int, operation: c_int, flags: *mut u64)
}
