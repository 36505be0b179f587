//! Named datatypes: passed on.

use crate::abi::{
    AnyArgs, DatatypeClass, Id, Location, OptionalArgs, Ptr, Req, Status, Text, DATATYPE_FLUSH,
};
use crate::file::flushed;
use crate::object::Object;

pub const CLASS: DatatypeClass = DatatypeClass { commit, open, get, specific, optional, close };

unsafe extern "C" fn commit(
    object: Ptr,
    location: *const Location,
    name: Text,
    kind: Id,
    link: Id,
    creation: Id,
    access: Id,
    list: Id,
    req: Req,
) -> Ptr {
    // SAFETY: HDF5 passes an object of ours and a name; what else it passes goes on as it is.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.datatype_commit;
        let made = object.act("commit of a datatype", req, |it, below, req| {
            call(it, location, below, name, kind, link, creation, access, list, req)
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
    // SAFETY: as in `commit`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.datatype_open;
        let made = object.act("open of a datatype", req, |it, below, req| {
            call(it, location, below, name, access, list, req)
        });
        Object::wrap(&object.container, made, object.path_to(name))
    }
}

unsafe extern "C" fn get(object: Ptr, args: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: as in `commit`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.datatype_get;
        object.act("query of a datatype", req, |it, below, req| call(it, below, args, list, req))
    }
}

unsafe extern "C" fn specific(object: Ptr, args: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: as in `commit`. A refresh may replace the object: the container is kept.
    unsafe {
        let is_flush = (*args.cast::<AnyArgs>()).operation == DATATYPE_FLUSH;
        let object = Object::of(object);
        let container = object.container.clone();
        let call = container.library.symbols.datatype_specific;
        let status = object
            .act("flush of a datatype", req, |it, below, req| call(it, below, args, list, req));
        flushed(&container, status, is_flush)
    }
}

unsafe extern "C" fn optional(object: Ptr, args: *mut OptionalArgs, list: Id, req: Req) -> Status {
    // SAFETY: as in `commit`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.datatype_optional;
        object.act("call for a datatype", req, |it, below, req| call(it, below, args, list, req))
    }
}

unsafe extern "C" fn close(object: Ptr, list: Id, req: Req) -> Status {
    // SAFETY: as in `commit`; closed, HDF5 forgets the object.
    unsafe {
        let ours = Object::of(object);
        let call = ours.container.library.symbols.datatype_close;
        let status =
            ours.act("close of a datatype", req, |it, below, req| call(it, below, list, req));
        if status >= 0 {
            Object::free(object);
        }
        status
    }
}
