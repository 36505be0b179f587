//! HDF5's stack of errors: kept over a clean-up, and added to.
//!
//! Every call of HDF5's interface clears the stack first. Who cleans up after a failed call must
//! therefore take it away before and put it back after, or the program is told nothing. And every
//! call that fails prints the stack, if the program has not turned that off: what HDF5 tries
//! inside must be tried [`quietly`].

use std::ffi::{c_uint, CString};

use crate::abi::{Id, Ptr, DEFAULT};
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

/// Does what may fail, prints nothing of it, and keeps the errors that were there before, if there
/// were any; without, those of the call stay.
pub fn quietly<T>(library: &Library, call: impl FnOnce() -> T) -> T {
    let printing = Printing::stop(library);
    // SAFETY: a question, about the stack of the thread.
    let result = match unsafe { (library.symbols.stack_count)(DEFAULT) } > 0 {
        true => keep(library, call),
        false => call(),
    };
    printing.go_on(library);
    result
}

/// Does what is no part of the call that goes on: prints nothing, and leaves the stack of errors as
/// it was.
pub fn apart<T>(library: &Library, call: impl FnOnce() -> T) -> T {
    let printing = Printing::stop(library);
    let result = keep(library, call);
    printing.go_on(library);
    result
}

/// What HDF5 prints errors with, while it is turned off: a function and its argument.
struct Printing {
    is_new: bool,
    function: Ptr,
    argument: Ptr,
}

impl Printing {
    /// HDF5 knows two kinds, and each of its functions only takes its own.
    fn stop(library: &Library) -> Printing {
        let symbols = &library.symbols;
        let null = std::ptr::null_mut();
        let mut printing = Printing { is_new: true, function: null, argument: null };
        let Printing { function, argument, .. } = &mut printing;
        let mut is_new: c_uint = 1;
        // SAFETY: HDF5 puts numbers and pointers into places of ours.
        unsafe {
            (symbols.printing_is_new)(DEFAULT, &raw mut is_new);
            match library.old_printing {
                Some((get, set)) if is_new == 0 => {
                    get(function, argument);
                    set(null, null);
                }
                _ => {
                    (symbols.printing_get)(DEFAULT, function, argument);
                    (symbols.printing_set)(DEFAULT, null, null);
                }
            }
        }
        printing.is_new = is_new != 0;
        printing
    }

    fn go_on(self, library: &Library) {
        let Printing { is_new, function, argument } = self;
        // SAFETY: what HDF5 gave, of the same kind.
        unsafe {
            match library.old_printing {
                Some((_, set)) if !is_new => keep(library, || set(function, argument)),
                _ => (library.symbols.printing_set)(DEFAULT, function, argument),
            };
        }
    }
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
        keep(library, || unsafe {
            let class = (symbols.class_register)(
                c"alongside".as_ptr(),
                c"alongside".as_ptr(),
                c"0.1".as_ptr(),
            );
            // H5E_MAJOR, H5E_MINOR
            let major = (symbols.message_create)(class, 0, c"Write behind".as_ptr());
            let minor = (symbols.message_create)(class, 1, c"Write failed".as_ptr());
            [class, major, minor]
        })
    })
}
