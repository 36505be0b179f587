//! Named datatypes: passed on.

use crate::abi::{Access, DatatypeClass, Id, Location, OptionalArgs, Ptr, Text, DATATYPE_FLUSH};
use crate::forward::{act, act_beside, change, close, open};

pub const CLASS: DatatypeClass = DatatypeClass { commit, open, get, specific, optional, close };

open! {
    commit = datatype_commit, "commit of a datatype",
    (location: *const Location; name: Text, kind: Id, link: Id, creation: Id, access: Access),
    object => object.path_to(name)
}

open! {
    open = datatype_open, "open of a datatype",
    (location: *const Location; name: Text, access: Access),
    object => object.path_to(name)
}

act_beside! { get = datatype_get, "query of a datatype", (; args: Ptr) }

change! { specific = datatype_specific, "flush of a datatype", (), flush = DATATYPE_FLUSH }

act! {
    optional = datatype_optional, "call for a datatype", (; args: *mut OptionalArgs)
}

close! { close = datatype_close, "close of a datatype" }
