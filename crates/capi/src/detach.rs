//! Operations that hold back detached OpenMP tasks.

use std::ffi::{c_int, c_void};

use libc::{iovec, off_t, size_t, ssize_t};
use runtime::native::detach::{start, submitted, Event, Fulfil};
use runtime::native::{Operation, ResultPlace};

use crate::status;

macro_rules! family {
    ($($name:ident: $operation:ident($($argument:ident: $type:ty => $value:expr),*);)*) => {
        $(
            /// See `alongside.h`.
            ///
            /// # Safety
            ///
            /// As for the system call, until the event is fulfilled; and `result` is null or valid.
            #[no_mangle]
            pub unsafe extern "C" fn $name(
                event: usize,
                fulfil: Option<Fulfil>,
                fd: c_int,
                $($argument: $type,)*
                result: *mut ssize_t,
            ) -> c_int {
                let Some(fulfil) = fulfil else { return -libc::EINVAL };
                let event = Event { handle: event, fulfil };
                let operation = Operation::$operation(fd, $($value),*);
                // SAFETY: the caller's promise.
                status(unsafe { start(event, &operation, ResultPlace(result)) })
            }
        )*
    };
}

family! {
    al_detach_pread: Read(
        buffer: *mut c_void => buffer.cast(), bytes: size_t => bytes, offset: off_t => offset
    );
    al_detach_pwrite: Write(
        buffer: *const c_void => buffer.cast(), bytes: size_t => bytes, offset: off_t => offset
    );
    al_detach_preadv: ReadVectored(
        pieces: *const iovec => pieces, count: c_int => count, offset: off_t => offset
    );
    al_detach_pwritev: WriteVectored(
        pieces: *const iovec => pieces, count: c_int => count, offset: off_t => offset
    );
    al_detach_fsync: Fsync();
    al_detach_fdatasync: Fdatasync();
}

/// The task of the event submits no more.
#[no_mangle]
pub extern "C" fn al_detach_done(event: usize, fulfil: Option<Fulfil>) -> c_int {
    let Some(fulfil) = fulfil else { return -libc::EINVAL };
    status(submitted(Event { handle: event, fulfil }))
}
