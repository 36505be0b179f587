//! Links: passed on. Of two objects, either may be missing (`H5L_SAME_LOC`).

use crate::abi::{
    Id, LinkClass, LinkCreateArgs, Location, OptionalArgs, Ptr, Req, Status, FAILED, LINK_HARD,
};
use crate::object::{act, container_of, name_of, Object};

pub const CLASS: LinkClass = LinkClass { create, copy, move_, get, specific, optional };

unsafe extern "C" fn create(
    args: *mut LinkCreateArgs,
    object: Ptr,
    location: *const Location,
    link: Id,
    access: Id,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: HDF5 passes objects of ours, and of a hard link another one in the block, which is
    // put back; what else it passes goes on as it is.
    unsafe {
        let is_hard = (*args).operation == LINK_HARD;
        let current = if is_hard { (*args).current } else { std::ptr::null_mut() };
        let Some(container) = container_of(object, current) else { return FAILED };
        if is_hard {
            (*args).current = Object::below_of(current);
        }
        let call = container.library.symbols.link_create;
        let it = Object::below_of(object);
        let status = act(container, "create of a link", None, req, |req| {
            call(args, it, location, container.below, link, access, list, req)
        });
        if is_hard {
            (*args).current = current;
            if status >= 0 && !current.is_null() && !object.is_null() {
                named(Object::of(current), Object::of(object), location);
            }
        }
        status
    }
}

/// An object that had no name has this one now.
///
/// # Safety
///
/// As of [`create`].
unsafe fn named(current: &Object, place: &Object, location: *const Location) {
    // SAFETY: the caller promised.
    if let Some(text) = unsafe { place.text_to(name_of(location)) } {
        let _ = current.path.set(text);
    }
}

unsafe extern "C" fn copy(
    from: Ptr,
    from_location: *const Location,
    to: Ptr,
    to_location: *const Location,
    link: Id,
    access: Id,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let Some(container) = container_of(from, to) else { return FAILED };
        let call = container.library.symbols.link_copy;
        let (from, to, below) = (Object::below_of(from), Object::below_of(to), container.below);
        act(container, "copy of a link", None, req, |req| {
            call(from, from_location, to, to_location, below, link, access, list, req)
        })
    }
}

unsafe extern "C" fn move_(
    from: Ptr,
    from_location: *const Location,
    to: Ptr,
    to_location: *const Location,
    link: Id,
    access: Id,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let Some(container) = container_of(from, to) else { return FAILED };
        let call = container.library.symbols.link_move;
        let (from, to, below) = (Object::below_of(from), Object::below_of(to), container.below);
        act(container, "move of a link", None, req, |req| {
            call(from, from_location, to, to_location, below, link, access, list, req)
        })
    }
}

unsafe extern "C" fn get(
    object: Ptr,
    location: *const Location,
    args: Ptr,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.link_get;
        object.act("query of a link", req, |it, below, req| {
            call(it, location, below, args, list, req)
        })
    }
}

unsafe extern "C" fn specific(
    object: Ptr,
    location: *const Location,
    args: Ptr,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.link_specific;
        object.act("change of links", req, |it, below, req| {
            call(it, location, below, args, list, req)
        })
    }
}

unsafe extern "C" fn optional(
    object: Ptr,
    location: *const Location,
    args: *mut OptionalArgs,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: as in `create`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.link_optional;
        object.act("call for a link", req, |it, below, req| {
            call(it, location, below, args, list, req)
        })
    }
}
