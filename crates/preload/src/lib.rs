//! The interposed pread and pwrite family: calls inside tasks pause the task.
//!
//! `LD_PRELOAD=libalongside_preload.so program`: each function below stands before the one of the C
//! library. If the program has loaded libalongside and the caller is in one of its tasks, the call
//! becomes the task-aware one; else it is the C library's own. Programs that never start the
//! runtime pay one look at a pointer.
//!
//! libalongside is looked up by name and not linked: a library linked into this one would have a
//! runtime of its own, of which the program's tasks know nothing. It is looked up again until it is
//! found, as a program may load it late; the C library's functions are looked up once.

use std::ffi::{c_int, c_void, CStr};
use std::mem::transmute_copy;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use libc::{iovec, off_t, size_t, ssize_t};

/// A function that is looked up by its name.
struct Symbol {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Symbol {
    const fn new(name: &'static CStr) -> Symbol {
        Symbol { name, address: AtomicPtr::new(null_mut()) }
    }

    /// The C library's function of this name, the one after ours.
    fn next(&self) -> *mut c_void {
        self.find(libc::RTLD_NEXT)
    }

    fn find(&self, place: *mut c_void) -> *mut c_void {
        let known = self.address.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        // SAFETY: a C string and one of the two special places.
        let found = unsafe { libc::dlsym(place, self.name.as_ptr()) };
        self.address.store(found, Ordering::Release);
        found
    }
}

static CURRENT_TASK: Symbol = Symbol::new(c"al_current_task");
/// Calls that still look for a library that was not there: looking costs, so less and less often.
static LOOKS: AtomicU32 = AtomicU32::new(0);

/// Whether the caller is in a task of libalongside.
fn in_task() -> bool {
    let mut address = CURRENT_TASK.address.load(Ordering::Acquire);
    if address.is_null() {
        let looks = LOOKS.fetch_add(1, Ordering::Relaxed);
        if looks > 16 && !looks.is_power_of_two() && looks % 1024 != 0 {
            return false;
        }
        address = CURRENT_TASK.find(libc::RTLD_DEFAULT);
        if address.is_null() {
            return false;
        }
    }
    // SAFETY: the function of this name in libalongside has this type.
    let current = unsafe { transmute_copy::<_, extern "C" fn() -> u64>(&address) };
    current() != 0
}

/// `-errno` as the C library tells it.
fn told(result: i64) -> i64 {
    if result >= 0 {
        return result;
    }
    // SAFETY: the address of this thread's errno; a fiber does not change its thread.
    unsafe { *libc::__errno_location() = -result as c_int };
    -1
}

/// There is no such function in the C library: the program could not have been linked.
fn missing() -> i64 {
    told(-i64::from(libc::ENOSYS))
}

/// A literal that ends with a zero.
const fn c_name(literal: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(literal.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("it ends with its only zero"),
    }
}

macro_rules! interpose {
    ($($name:ident as $task_aware:literal ($($argument:ident: $type:ty),*) -> $gives:ty;)*) => {
        $(
            /// See the C library's manual.
            ///
            /// # Safety
            ///
            /// As the C library's.
            #[no_mangle]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> $gives {
                type Function = unsafe extern "C" fn($($type),*) -> $gives;
                static OURS: Symbol = Symbol::new(c_name(concat!($task_aware, "\0")));
                static THEIRS: Symbol = Symbol::new(c_name(concat!(stringify!($name), "\0")));
                if in_task() {
                    let address = OURS.find(libc::RTLD_DEFAULT);
                    if !address.is_null() {
                        // SAFETY: libalongside's function of this name has this type.
                        let ours = unsafe { transmute_copy::<_, Function>(&address) };
                        // SAFETY: the caller's promise.
                        return told(unsafe { ours($($argument),*) } as i64) as $gives;
                    }
                }
                let address = THEIRS.next();
                if address.is_null() {
                    return missing() as $gives;
                }
                // SAFETY: the C library's function of this name has this type.
                let theirs = unsafe { transmute_copy::<_, Function>(&address) };
                // SAFETY: the caller's promise.
                unsafe { theirs($($argument),*) }
            }
        )*
    };
}

interpose! {
    pread as "al_pread" (fd: c_int, buffer: *mut c_void, bytes: size_t, offset: off_t) -> ssize_t;
    pread64 as "al_pread" (fd: c_int, buffer: *mut c_void, bytes: size_t, offset: off_t) -> ssize_t;
    pwrite as "al_pwrite" (
        fd: c_int, buffer: *const c_void, bytes: size_t, offset: off_t
    ) -> ssize_t;
    pwrite64 as "al_pwrite" (
        fd: c_int, buffer: *const c_void, bytes: size_t, offset: off_t
    ) -> ssize_t;
    preadv as "al_preadv" (fd: c_int, pieces: *const iovec, count: c_int, offset: off_t) -> ssize_t;
    preadv64 as "al_preadv" (
        fd: c_int, pieces: *const iovec, count: c_int, offset: off_t
    ) -> ssize_t;
    pwritev as "al_pwritev" (
        fd: c_int, pieces: *const iovec, count: c_int, offset: off_t
    ) -> ssize_t;
    pwritev64 as "al_pwritev" (
        fd: c_int, pieces: *const iovec, count: c_int, offset: off_t
    ) -> ssize_t;
    fsync as "al_fsync" (fd: c_int) -> c_int;
    fdatasync as "al_fdatasync" (fd: c_int) -> c_int;
}

/// The compiler's check of `pread`: a buffer that is too small ends the program.
///
/// # Safety
///
/// As the C library's.
#[no_mangle]
pub unsafe extern "C" fn __pread_chk(
    fd: c_int,
    buffer: *mut c_void,
    bytes: size_t,
    offset: off_t,
    buffer_bytes: size_t,
) -> ssize_t {
    check(bytes, buffer_bytes);
    // SAFETY: the caller's promise.
    unsafe { pread(fd, buffer, bytes, offset) }
}

/// As `__pread_chk`.
///
/// # Safety
///
/// As the C library's.
#[no_mangle]
pub unsafe extern "C" fn __pread64_chk(
    fd: c_int,
    buffer: *mut c_void,
    bytes: size_t,
    offset: off_t,
    buffer_bytes: size_t,
) -> ssize_t {
    check(bytes, buffer_bytes);
    // SAFETY: the caller's promise.
    unsafe { pread(fd, buffer, bytes, offset) }
}

extern "C" {
    fn __chk_fail() -> !;
}

fn check(bytes: size_t, buffer_bytes: size_t) {
    if buffer_bytes < bytes {
        // SAFETY: the C library's way to end a program that overflows a buffer.
        unsafe { __chk_fail() };
    }
}
