//! Tokens: what connectors call an object in its file; passed on.

use std::ffi::{c_char, c_int};

use crate::abi::{Ptr, Text, TokenClass};
use crate::forward::ask;

pub const CLASS: TokenClass = TokenClass { compare, to_text, from_text };

ask! { compare = token_compare, (; one: Ptr, other: Ptr, order: *mut c_int) }

ask! { to_text = token_to_text, (kind: c_int; token: Ptr, text: *mut *mut c_char) }

ask! { from_text = token_from_text, (kind: c_int; text: Text, token: Ptr) }
