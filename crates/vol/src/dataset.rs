//! Datasets: passed on. What a write leaves to be written is labelled with the dataset, and memory
//! that the program lends is used where it is.

use std::ffi::c_int;

use runtime::behind::Name;

use crate::abi::{
    Access, AnyArgs, DatasetClass, DatasetGetArgs, Id, Location, OptionalArgs, Ptr, Req, Status,
    Text, DATASET_FLUSH, DATASET_GET_ACCESS_LIST, DATASET_GET_CREATION_LIST, DATASET_GET_SPACE,
    DATASET_GET_TYPE, DONE, FAILED,
};
use crate::forward::{act, change, close, open};
use crate::lend::lent;
use crate::object::{act_beside, Container, Object};
use crate::postponed::plan::{self, Asked};
use crate::{postponed, scope, stack};

pub const CLASS: DatasetClass =
    DatasetClass { create, open, read, write, get, specific, optional, close };

open! {
    create_below = dataset_create, "create of a dataset",
    (location: *const Location;
     name: Text, link: Id, kind: Id, space: Id, creation: Id, access: Access),
    object => object.path_to(name)
}

unsafe extern "C" fn create(
    object: Ptr,
    location: *const Location,
    name: Text,
    link: Id,
    kind: Id,
    space: Id,
    creation: Id,
    access: Access,
    list: Id,
    req: Req,
) -> Ptr {
    // SAFETY: what HDF5 passes goes on as it is; what is made is ours.
    unsafe {
        let made =
            create_below(object, location, name, link, kind, space, creation, access, list, req);
        if !made.is_null() {
            plan::learn(Object::of(made), kind);
        }
        made
    }
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
    is_read: bool,
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
    match datasets {
        [_] => postponed::before_transfer(first),
        _ => postponed::before(container.hdf5),
    }
    if let Some(failed) = postponed::lost_at(first).filter(|_| is_read) {
        stack::push_here(container.hdf5, &format!("what is to be read is lost: {failed}"));
        return FAILED;
    }
    let pass = |req| call(container, below.as_mut_ptr(), req);
    let status = act_beside(container, operation, Some(&path), req, pass);
    postponed::passed_on(container.hdf5);
    status
}

/// Whether a transfer was left to be done later.
///
/// # Safety
///
/// What HDF5 passes of a transfer.
unsafe fn is_noted(
    is_write: bool,
    datasets: &[Ptr],
    [kinds, memory, spaces]: [*mut Id; 3],
    list: Id,
    buffers: *mut Ptr,
    req: Req,
) -> bool {
    let [dataset] = datasets else { return false };
    // SAFETY: the caller promised: one of each.
    unsafe {
        let asked = Asked {
            is_write,
            kind: *kinds,
            memory: *memory,
            space: *spaces,
            list,
            buffer: *buffers,
        };
        plan::note(Object::of(*dataset), &asked, req)
    }
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
        if is_noted(false, datasets, [kinds, memory, spaces], list, buffers, req) {
            return DONE;
        }
        transfer("read of a dataset", true, datasets, req, |container, below, req| {
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
        if is_noted(true, datasets, [kinds, memory, spaces], list, buffers, req) {
            return DONE;
        }
        let lent = lent(datasets, kinds, memory, spaces, list, buffers);
        transfer("write of a dataset", false, datasets, req, |container, below, req| {
            let call = container.hdf5.symbols.dataset_write;
            scope::lend(&lent, || {
                call(count, below, container.below, kinds, memory, spaces, list, buffers, req)
            })
        })
    }
}

/// What a dataset is stays as it is; how much room it has in the file does not.
unsafe extern "C" fn get(object: Ptr, args: Ptr, list: Id, req: Req) -> Status {
    const ASK_WHAT_IT_IS: [c_int; 4] =
        [DATASET_GET_ACCESS_LIST, DATASET_GET_CREATION_LIST, DATASET_GET_SPACE, DATASET_GET_TYPE];
    // SAFETY: HDF5 passes an object of ours, and a block that begins with what is wanted.
    unsafe {
        let object = Object::of(object);
        if !ASK_WHAT_IT_IS.contains(&(*args.cast::<AnyArgs>()).operation) {
            postponed::before(object.container.hdf5);
        }
        let call = object.container.hdf5.symbols.dataset_get;
        let status = object.act_beside("query of a dataset", req, |it, below, req| {
            call(it, below, args, list, req)
        });
        let told = &*args.cast::<DatasetGetArgs>();
        if status >= 0 && told.operation == DATASET_GET_TYPE {
            plan::learn(object, told.id);
        }
        status
    }
}

change! { specific = dataset_specific, "change of a dataset", (), flush = DATASET_FLUSH }

act! {
    optional = dataset_optional, "call for a dataset", (; args: *mut OptionalArgs)
}

close! { close_now = dataset_close, "close of a dataset" }

/// With transfers that are to be done the dataset below is closed after them.
unsafe extern "C" fn close(object: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: HDF5 passes an object of ours, and forgets it if this succeeds.
    unsafe {
        if postponed::closes(Object::of(object), req.is_null()) {
            Object::free(object);
            return DONE;
        }
        close_now(object, list, req)
    }
}
