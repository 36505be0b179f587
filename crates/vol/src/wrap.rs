//! Objects that HDF5 makes by itself (while it iterates, say) and wants to look like ours.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use runtime::behind::Name;

use crate::abi::{Ptr, Status, DONE, FAILED};
use crate::object::{Container, Object};
use crate::stack;

/// What is needed to wrap: the container, and what the connector below needs (null: nothing).
struct Context {
    container: Arc<Container>,
    below: Ptr,
}

pub unsafe extern "C" fn get_object(object: *const c_void) -> Ptr {
    // SAFETY: HDF5 passes an object of ours.
    unsafe {
        let object = Object::of(object);
        (object.container.hdf5.symbols.get_object)(object.below, object.container.below)
    }
}

pub unsafe extern "C" fn get_context(object: *const c_void, context: *mut Ptr) -> Status {
    // SAFETY: HDF5 passes an object or a request of ours, and wants the context there.
    unsafe {
        let object = Object::of(object);
        let container = object.container.clone();
        let mut below = std::ptr::null_mut();
        let call = container.hdf5.symbols.get_context;
        let has_below = !object.below.is_null();
        if has_below && call(object.below, container.below, &raw mut below) < 0 {
            return FAILED;
        }
        *context = Box::into_raw(Box::new(Context { container, below })).cast();
        DONE
    }
}

pub unsafe extern "C" fn wrap(object: Ptr, kind: c_int, context: Ptr) -> Ptr {
    // SAFETY: HDF5 passes an object of the last connector below, and a context of ours.
    unsafe {
        let Context { container, below } = &*context.cast();
        let call = container.hdf5.symbols.wrap;
        let wrapped = call(object, kind, container.below, *below);
        Object::wrap(container, wrapped, Name::default())
    }
}

pub unsafe extern "C" fn unwrap(object: Ptr) -> Ptr {
    // SAFETY: HDF5 passes an object of ours, and forgets it if this succeeds.
    unsafe {
        let ours = Object::of(object);
        let call = ours.container.hdf5.symbols.unwrap;
        let below = call(ours.below, ours.container.below);
        if !below.is_null() {
            Object::free(object);
        }
        below
    }
}

pub unsafe extern "C" fn free_context(context: Ptr) -> Status {
    // SAFETY: HDF5 passes a context of ours, and forgets it.
    let context = unsafe { Box::from_raw(context.cast::<Context>()) };
    let library = context.container.hdf5;
    stack::keep(library, || {
        if !context.below.is_null() {
            let call = library.symbols.free_context;
            // SAFETY: what the connector below made.
            unsafe { call(context.below, context.container.below) };
        }
        drop(context.container);
    });
    DONE
}
