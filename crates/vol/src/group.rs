//! Groups: passed on; of a mount, the file that is mounted is put in its place below.

use crate::abi::{
    Access, GroupClass, GroupSpecificArgs, Id, Location, OptionalArgs, Ptr, Req, Status, Text,
    GROUP_FLUSH, GROUP_MOUNT,
};
use crate::file::flushed;
use crate::forward::{act, act_beside, close, open};
use crate::object::Object;

pub const CLASS: GroupClass = GroupClass { create, open, get, specific, optional, close };

open! {
    create = group_create, "create of a group",
    (location: *const Location; name: Text, link: Id, creation: Id, access: Access),
    object => object.path_to(name)
}

open! {
    open = group_open, "open of a group",
    (location: *const Location; name: Text, access: Access),
    object => object.path_to(name)
}

act_beside! { get = group_get, "query of a group", (; args: Ptr) }

unsafe extern "C" fn specific(
    object: Ptr,
    args: *mut GroupSpecificArgs,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: HDF5 passes an object of ours; the block is its own, and of a mount holds a file. A
    // refresh may replace the object: the container is kept.
    unsafe {
        let object = Object::of(object);
        let container = object.container.clone();
        let call = container.hdf5.symbols.group_specific;
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

act! { optional = group_optional, "call for a group", (; args: *mut OptionalArgs) }

close! { close = group_close, "close of a group" }
