//! The pread and pwrite family: blocking in form, and non-blocking.

use std::ffi::{c_int, c_void};

use libc::{iovec, off_t, size_t, ssize_t};
use runtime::native::{Operation, ResultPlace, Runtime};

use crate::status;

macro_rules! family {
    ($(
        $name:ident, $async:ident:
            $operation:ident($($argument:ident: $type:ty => $value:expr),*) -> $gives:ty;
    )*) => {
        $(
            /// See `alongside.h`.
            ///
            /// # Safety
            ///
            /// As for the system call.
            #[no_mangle]
            pub unsafe extern "C" fn $name(fd: c_int, $($argument: $type),*) -> $gives {
                // SAFETY: the caller's promise.
                unsafe { Runtime::operate(&Operation::$operation(fd, $($value),*)) as $gives }
            }

            /// See `alongside.h`.
            ///
            /// # Safety
            ///
            /// As for the system call, until the task is over; and `result` is null or valid.
            #[no_mangle]
            pub unsafe extern "C" fn $async(
                fd: c_int,
                $($argument: $type,)*
                result: *mut ssize_t,
            ) -> c_int {
                let operation = Operation::$operation(fd, $($value),*);
                // SAFETY: the caller's promise.
                status(unsafe { Runtime::promise(&operation, ResultPlace(result)) })
            }
        )*
    };
}

family! {
    al_pread, al_pread_async: Read(
        buffer: *mut c_void => buffer.cast(), bytes: size_t => bytes, offset: off_t => offset
    ) -> ssize_t;
    al_pwrite, al_pwrite_async: Write(
        buffer: *const c_void => buffer.cast(), bytes: size_t => bytes, offset: off_t => offset
    ) -> ssize_t;
    al_preadv, al_preadv_async: ReadVectored(
        pieces: *const iovec => pieces, count: c_int => count, offset: off_t => offset
    ) -> ssize_t;
    al_pwritev, al_pwritev_async: WriteVectored(
        pieces: *const iovec => pieces, count: c_int => count, offset: off_t => offset
    ) -> ssize_t;
    al_fsync, al_fsync_async: Fsync() -> c_int;
    al_fdatasync, al_fdatasync_async: Fdatasync() -> c_int;
}
