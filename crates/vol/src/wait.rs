//! Waiting and reading ahead from outside of HDF5: for those who have the file, not its ids.

use std::ffi::{c_char, c_int};

use runtime::behind::Failed;

use crate::opened;

/// Waits until what was written to a file (by device and inode; both 0: to all files) is with the
/// system. 0: it is. 1: something failed, and why is in `text`, cut to `size` bytes with its zero.
///
/// # Safety
///
/// `text` is null or has room for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn alongside_hdf5_wait(
    device: u64,
    inode: u64,
    text: *mut c_char,
    size: usize,
) -> c_int {
    let keys = [(device, inode)];
    let keys = Some(keys.as_slice()).filter(|_| (device, inode) != (0, 0));
    let Err(failures) = opened::drain(None, keys) else { return 0 };
    // SAFETY: the caller promised.
    unsafe { say(&failures, text, size) };
    1
}

/// Puts what went wrong into a text, a line each.
///
/// # Safety
///
/// `text` is null or has room for `size` bytes.
pub unsafe fn say(failures: &[Failed], text: *mut c_char, size: usize) {
    if text.is_null() || size == 0 {
        return;
    }
    let said = failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let len = said.len().min(size - 1);
    // SAFETY: the caller has so much room.
    unsafe {
        std::ptr::copy_nonoverlapping(said.as_ptr().cast(), text, len);
        *text.add(len) = 0;
    }
}

/// Reads so many bytes of a file ahead (by device and inode), from an offset in it on: the reads
/// that ask for them later copy them from memory. How many bytes that will be: as many as the
/// file's limit allows, and none of a file that is not open.
#[no_mangle]
pub extern "C" fn alongside_hdf5_fetch(device: u64, inode: u64, offset: u64, len: u64) -> u64 {
    if len == 0 || offset.checked_add(len).is_none() {
        return 0;
    }
    opened::fetch((device, inode), offset, len)
}
