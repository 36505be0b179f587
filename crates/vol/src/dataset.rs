//! Datasets: passed on. What a write leaves to be written is labelled with the dataset, and memory
//! that the program lends is used where it is.

use runtime::behind::Name;

use crate::abi::{
    Access, DatasetClass, Id, Location, OptionalArgs, Ptr, Req, Status, Text, DATASET_FLUSH, FAILED,
};
use crate::forward::{act, change, close, open};
use crate::lend::lent;
use crate::object::{act, Container, Object};
use crate::{scope, stack};

pub const CLASS: DatasetClass =
    DatasetClass { create, open, read, write, get, specific, optional, close };

open! {
    create = dataset_create, "create of a dataset",
    (location: *const Location;
     name: Text, link: Id, kind: Id, space: Id, creation: Id, access: Access),
    object => object.path_to(name)
}

open! {
    open = dataset_open, "open of a dataset",
    (location: *const Location; name: Text, access: Access),
    object => object.path_to(name)
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
        stack::push_here(container.hdf5, "datasets of different connectors in one transfer");
        return FAILED;
    }
    let path = match datasets {
        [_] => first.path.clone(),
        // SAFETY: the caller promised.
        many => one_of(many.iter().map(|it| unsafe { &Object::of(*it).path })),
    };
    act(container, operation, Some(&path), req, |req| call(container, below.as_mut_ptr(), req))
}

/// The name of what is one of some datasets: which of them a range of the file belongs to is not
/// known.
fn one_of<'a>(paths: impl Iterator<Item = &'a Name>) -> Name {
    let known: Vec<&str> = paths.filter_map(|path| path.get().map(AsRef::as_ref)).collect();
    let name = Name::default();
    if !known.is_empty() {
        let shown = known.len().min(NAMES_MAX);
        let rest = if known.len() > shown { ", ..." } else { "" };
        let _ = name.set(format!("one of {}{rest}", known[..shown].join(", ")).into());
    }
    name
}

/// How many of the datasets of one transfer are named.
const NAMES_MAX: usize = 8;

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
            let call = container.hdf5.symbols.dataset_read;
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
            let call = container.hdf5.symbols.dataset_write;
            scope::lend(&lent, || {
                call(count, below, container.below, kinds, memory, spaces, list, buffers, req)
            })
        })
    }
}

act! { get = dataset_get, "query of a dataset", (; args: Ptr) }

change! { specific = dataset_specific, "change of a dataset", (), flush = DATASET_FLUSH }

act! {
    optional = dataset_optional, "call for a dataset", (; args: *mut OptionalArgs)
}

close! { close = dataset_close, "close of a dataset" }
