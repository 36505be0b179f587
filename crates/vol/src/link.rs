//! Links: passed on. Of two objects, either may be missing (`H5L_SAME_LOC`).

use crate::abi::{
    Access, AnyArgs, Id, LinkClass, LinkCreateArgs, Location, OptionalArgs, Ptr, Req, Status,
    FAILED, LINK_EXISTS, LINK_HARD,
};
use crate::elink::{self, Parameter};
use crate::forward;
use crate::object::{act, act_beside, container_of, name_of, Object};

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
        let call = container.hdf5.symbols.link_create;
        let it = Object::below_of(object);
        let lists = [location.access(), Some(Access(access))];
        let status = elink::with(container.hdf5, &lists, || {
            act_beside(container, "create of a link", None, req, |req| {
                call(args, it, location, container.below, link, access, list, req)
            })
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

/// A call that gives a link another place.
macro_rules! relocate {
    ($name:ident = $symbol:ident, $operation:literal) => {
        unsafe extern "C" fn $name(
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
                let call = container.hdf5.symbols.$symbol;
                let (from, to) = (Object::below_of(from), Object::below_of(to));
                elink::with(container.hdf5, &[Some(Access(access))], || {
                    act(container, $operation, None, req, |req| {
                        let below = container.below;
                        call(from, from_location, to, to_location, below, link, access, list, req)
                    })
                })
            }
        }
    };
}

relocate! { copy = link_copy, "copy of a link" }

relocate! { move_ = link_move, "move of a link" }

forward::act_beside! { get = link_get, "query of a link", (location: *const Location; args: Ptr) }

forward::act! {
    change = link_specific, "change of links", (location: *const Location; args: Ptr)
}

forward::act_beside! {
    look = link_specific, "look at a link", (location: *const Location; args: Ptr)
}

unsafe extern "C" fn specific(
    object: Ptr,
    location: *const Location,
    args: Ptr,
    list: Id,
    req: Req,
) -> Status {
    // SAFETY: HDF5 passes a block that begins with what is wanted; the rest goes on as it is.
    unsafe {
        match (*args.cast::<AnyArgs>()).operation {
            LINK_EXISTS => look(object, location, args, list, req),
            _ => change(object, location, args, list, req),
        }
    }
}

forward::act! {
    optional = link_optional, "call for a link",
    (location: *const Location; args: *mut OptionalArgs)
}
