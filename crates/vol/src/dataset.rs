//! Datasets: passed on. What a write leaves to be written is labelled with the dataset, and memory
//! that the program lends is used where it is.

use crate::abi::{
    AnyArgs, DatasetClass, Id, Location, OptionalArgs, Ptr, Req, Status, Text, DATASET_FLUSH,
    FAILED,
};
use crate::file::flushed;
use crate::lend::lent;
use crate::object::{act, Container, Object};
use crate::{scope, stack};

pub const CLASS: DatasetClass =
    DatasetClass { create, open, read, write, get, specific, optional, close };

unsafe extern "C" fn create(
    object: Ptr,
    location: *const Location,
    name: Text,
    link: Id,
    kind: Id,
    space: Id,
    creation: Id,
    access: Id,
    list: Id,
    req: Req,
) -> Ptr {
    // SAFETY: HDF5 passes an object of ours and a name; what else it passes goes on as it is.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.dataset_create;
        let made = object.act("create of a dataset", req, |it, below, req| {
            call(it, location, below, name, link, kind, space, creation, access, list, req)
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
        let call = object.container.library.symbols.dataset_open;
        let made = object.act("open of a dataset", req, |it, below, req| {
            call(it, location, below, name, access, list, req)
        });
        Object::wrap(&object.container, made, object.path_to(name))
    }
}

/// Passes a transfer of some datasets of one file on.
///
/// # Safety
///
/// HDF5 passed `count` datasets of ours, and at least one.
unsafe fn transfer(
    operation: &'static str,
    datasets: &[Ptr],
    req: Req,
    call: impl FnOnce(&Container, *mut Ptr, Req) -> Status,
) -> Status {
    // SAFETY: the caller promised.
    let (first, mut below) = unsafe {
        let below: Vec<Ptr> = datasets.iter().map(|it| Object::below_of(*it)).collect();
        (Object::of(datasets[0]), below)
    };
    let container = &first.container;
    // SAFETY: the caller promised.
    let is_one =
        datasets.iter().all(|it| unsafe { Object::of(*it) }.container.below == container.below);
    if !is_one {
        stack::push_here(container.library, "datasets of different connectors in one transfer");
        return FAILED;
    }
    act(container, operation, Some(&first.path), req, |req| {
        call(container, below.as_mut_ptr(), req)
    })
}

unsafe extern "C" fn read(
    count: usize,
    datasets: *mut Ptr,
    kinds: *mut Id,
    memory: *mut Id,
    spaces: *mut Id,
    list: Id,
    buffers: *mut Ptr,
    req: Req,
) -> Status {
    // SAFETY: HDF5 passes so many datasets of ours, and at least one; the rest goes on as it is.
    unsafe {
        let datasets = std::slice::from_raw_parts(datasets, count);
        transfer("read of a dataset", datasets, req, |container, below, req| {
            let call = container.library.symbols.dataset_read;
            call(count, below, container.below, kinds, memory, spaces, list, buffers, req)
        })
    }
}

unsafe extern "C" fn write(
    count: usize,
    datasets: *mut Ptr,
    kinds: *mut Id,
    memory: *mut Id,
    spaces: *mut Id,
    list: Id,
    buffers: *mut Ptr,
    req: Req,
) -> Status {
    // SAFETY: as in `read`.
    unsafe {
        let datasets = std::slice::from_raw_parts(datasets, count);
        let lent = lent(datasets, kinds, memory, spaces, list, buffers);
        transfer("write of a dataset", datasets, req, |container, below, req| {
            let call = container.library.symbols.dataset_write;
            scope::lend(&lent, || {
                call(count, below, container.below, kinds, memory, spaces, list, buffers, req)
            })
        })
    }
}

unsafe extern "C" fn get(object: Ptr, args: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.dataset_get;
        object.act("query of a dataset", req, |it, below, req| call(it, below, args, list, req))
    }
}

unsafe extern "C" fn specific(object: Ptr, args: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: as in `create`. A refresh may replace the object: the container is kept.
    unsafe {
        let is_flush = (*args.cast::<AnyArgs>()).operation == DATASET_FLUSH;
        let object = Object::of(object);
        let container = object.container.clone();
        let call = container.library.symbols.dataset_specific;
        let status = object
            .act("change of a dataset", req, |it, below, req| call(it, below, args, list, req));
        flushed(&container, status, is_flush)
    }
}

unsafe extern "C" fn optional(object: Ptr, args: *mut OptionalArgs, list: Id, req: Req) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.dataset_optional;
        object.act("call for a dataset", req, |it, below, req| call(it, below, args, list, req))
    }
}

unsafe extern "C" fn close(object: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: as in `create`; closed, HDF5 forgets the object.
    unsafe {
        let ours = Object::of(object);
        let call = ours.container.library.symbols.dataset_close;
        let status =
            ours.act("close of a dataset", req, |it, below, req| call(it, below, list, req));
        if status >= 0 {
            Object::free(object);
        }
        status
    }
}
