//! HDF5's stack of errors: kept over a clean-up, and added to.
//!
//! Every call of HDF5's interface clears the stack first. Who cleans up after a failed call must
//! therefore take it away before and put it back after, or the program is told nothing.

use std::ffi::CString;

use crate::abi::{Id, DEFAULT};
use crate::library::Library;

/// Does what may call HDF5 after a failure, and leaves the stack of errors as it was.
pub fn keep<T>(library: &Library, clean_up: impl FnOnce() -> T) -> T {
    // SAFETY: no arguments; the id is given back below.
    let taken = unsafe { (library.symbols.stack_take)() };
    let result = clean_up();
    if taken >= 0 {
        // SAFETY: the id of a stack, which this closes.
        unsafe { (library.symbols.stack_set)(taken) };
    }
    result
}

/// Puts a sentence of ours on a stack (`DEFAULT`: that of the thread).
pub fn push(library: &Library, stack: Id, message: &str) {
    let text = CString::new(message.replace('\0', "?")).expect("no zero is left");
    let [class, major, minor] = classes(library);
    // SAFETY: ids of this library, texts that end with a zero and are copied, and a format with the
    // one text that follows.
    unsafe {
        (library.push)(
            stack,
            c"alongside".as_ptr(),
            c"alongside".as_ptr(),
            0,
            class,
            major,
            minor,
            c"%s".as_ptr(),
            text.as_ptr(),
        )
    };
}

/// Puts a sentence on the thread's stack, after a call that failed has left its own.
pub fn push_here(library: &Library, message: &str) {
    push(library, DEFAULT, message);
}

/// The class of our errors and its two messages, made when they are first needed.
fn classes(library: &Library) -> [Id; 3] {
    let mut made = library.error_classes.lock();
    *made.get_or_insert_with(|| {
        let symbols = &library.symbols;
        // SAFETY: texts that end with a zero and are copied.
        unsafe {
            let class = (symbols.class_register)(
                c"alongside".as_ptr(),
                c"alongside".as_ptr(),
                c"0.1".as_ptr(),
            );
            // H5E_MAJOR, H5E_MINOR
            let major = (symbols.message_create)(class, 0, c"Write behind".as_ptr());
            let minor = (symbols.message_create)(class, 1, c"Write failed".as_ptr());
            [class, major, minor]
        }
    })
}
