//! The C interface of the native runtime: conversion only.
//!
//! One file a family: [`start`] (the runtime), [`tasks`], [`tuned`] (layers, and what was found out
//! about them), [`files`] (on layers), [`io`] (blocking and non-blocking), [`events`] (events,
//! pausing, polling),
//! [`detach`] (OpenMP). What each function does stands in
//! `include/alongside.h`. No panic of ours leaves: a fault of the library ends the program with its
//! message, as unwinding into C is not defined.

mod detach;
mod events;
mod files;
mod io;
mod start;
mod tasks;
mod tuned;

use std::ffi::c_int;

use runtime::native::Errno;

/// `0` or `-errno`.
fn status(result: Result<(), Errno>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(errno) => -errno,
    }
}
