//! Tokens: what connectors call an object in its file; passed on.

use std::ffi::{c_char, c_int};

use crate::abi::{Ptr, Status, Text, TokenClass};
use crate::object::Object;

pub const CLASS: TokenClass = TokenClass { compare, to_text, from_text };

unsafe extern "C" fn compare(object: Ptr, one: Ptr, other: Ptr, order: *mut c_int) -> Status {
    // SAFETY: HDF5 passes an object of ours; what else it passes goes on as it is.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.token_compare;
        call(object.below, object.container.below, one, other, order)
    }
}

unsafe extern "C" fn to_text(
    object: Ptr,
    kind: c_int,
    token: Ptr,
    text: *mut *mut c_char,
) -> Status {
    // SAFETY: as in `compare`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.token_to_text;
        call(object.below, kind, object.container.below, token, text)
    }
}

unsafe extern "C" fn from_text(object: Ptr, kind: c_int, text: Text, token: Ptr) -> Status {
    // SAFETY: as in `compare`.
    unsafe {
        let object = Object::of(object);
        let call = object.container.library.symbols.token_from_text;
        call(object.below, kind, object.container.below, text, token)
    }
}
