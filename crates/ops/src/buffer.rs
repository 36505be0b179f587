//! Memory that an operation owns while it is under way.
//!
//! A buffer's bytes stay at one address for as long as the buffer lives, however often the value is
//! moved: the kernel is given that address. Three owners are possible, and only the constructor
//! knows which: pages of our own, the allocation of a `Vec`, or somebody who promised.

use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// What [`Buffer::new`] aligns to: enough for `O_DIRECT` on every device that we know of.
pub const PAGE_BYTES: usize = 4096;

/// Bytes that are read into or written from. See the module's doc for who owns them.
pub struct Buffer {
    start: NonNull<u8>,
    len: usize,
    owner: Owner,
}

/// Who gives the memory back when the buffer is dropped.
enum Owner {
    /// This buffer: pages from the allocator, with the layout of `len` bytes, page-aligned.
    Pages,
    /// This buffer: what was the `Vec`'s allocation, of so many bytes.
    Vec { capacity: usize },
    /// Somebody else. Also of empty buffers, which have no memory.
    Nobody,
}

// SAFETY: a buffer is the only one to use its bytes: the allocations are its own, and who lends
// memory promises so for any thread (see `lent`).
unsafe impl Send for Buffer {}
// SAFETY: through a shared reference the bytes can only be read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Zeroed memory, aligned to a page.
    pub fn new(len: usize) -> Self {
        if len == 0 {
            return Self { start: NonNull::dangling(), len, owner: Owner::Nobody };
        }
        let layout = pages(len);
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, len, owner: Owner::Pages }
    }

    /// Somebody's memory.
    ///
    /// # Safety
    ///
    /// Until the buffer is dropped (operations bring their buffers back in their completion), the
    /// `len` bytes at `start` stay where they are and are initialised, and nobody else touches
    /// them, whichever thread has the buffer. They are writable; only for a buffer that is put
    /// into nothing but a write, and whose content nobody asks for mutably, is it enough that they
    /// are readable and that nobody changes them: no engine changes what it writes.
    pub unsafe fn lent(start: *mut u8, len: usize) -> Self {
        assert!(!start.is_null() || len == 0, "{len} bytes were lent, and they are nowhere");
        let start = NonNull::new(start).unwrap_or(NonNull::dangling());
        Self { start, len, owner: Owner::Nobody }
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where they are.
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// Where they are, to be changed.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the bytes are there, initialised and nobody else's for as long as the buffer
        // lives, whoever the owner is; `len` is within an allocation, so below `isize::MAX`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and the buffer is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// The layout of an allocation of our own.
fn pages(len: usize) -> Layout {
    Layout::from_size_align(len, PAGE_BYTES).expect("a buffer is smaller than half the addresses")
}

impl From<Vec<u8>> for Buffer {
    /// The bytes that the vector has; its spare capacity is kept and not used.
    fn from(bytes: Vec<u8>) -> Self {
        let mut bytes = ManuallyDrop::new(bytes);
        let owner = match bytes.capacity() {
            0 => Owner::Nobody,
            capacity => Owner::Vec { capacity },
        };
        let start = NonNull::new(bytes.as_mut_ptr()).expect("a vector's pointer is never null");
        Self { start, len: bytes.len(), owner }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        match self.owner {
            // SAFETY: `new` allocated it with this layout, and nothing else gives it back.
            Owner::Pages => unsafe { dealloc(self.start.as_ptr(), pages(self.len)) },
            Owner::Vec { capacity } => {
                // SAFETY: `from` took it from a vector with this length and capacity.
                drop(unsafe { Vec::from_raw_parts(self.start.as_ptr(), self.len, capacity) });
            }
            Owner::Nobody => {}
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice()
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes at {:p})", self.len, self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_memory_is_zeroed_and_aligned_to_a_page() {
        for len in [1, 511, PAGE_BYTES, PAGE_BYTES + 1] {
            let buffer = Buffer::new(len);
            assert_eq!(buffer.as_ptr() as usize % PAGE_BYTES, 0);
            assert_eq!(&buffer[..], &vec![0; len][..]);
        }
    }

    #[test]
    fn a_vectors_bytes_stay_where_they_are() {
        let mut bytes = Vec::with_capacity(100);
        bytes.extend_from_slice(b"abc");
        let at = bytes.as_ptr();
        let mut buffer = Buffer::from(bytes);
        buffer[0] = b'x';
        assert_eq!((buffer.as_ptr(), &buffer[..]), (at, &b"xbc"[..]));
    }

    #[test]
    fn empty_buffers_have_no_memory_and_can_be_used() {
        // SAFETY: there are no bytes, so nothing is promised about them.
        let lent = unsafe { Buffer::lent(std::ptr::null_mut(), 0) };
        for mut buffer in [Buffer::new(0), Buffer::from(Vec::new()), lent] {
            assert!(buffer.is_empty() && buffer.as_mut_slice().is_empty());
        }
    }

    #[test]
    fn lent_memory_is_changed_in_place_and_not_given_back() {
        let mut bytes = vec![1, 2, 3];
        // SAFETY: `bytes` lives on, and is not touched before the buffer is gone.
        let mut buffer = unsafe { Buffer::lent(bytes.as_mut_ptr(), 2) };
        buffer.fill(9);
        drop(buffer);
        assert_eq!(bytes, [9, 9, 3]);
    }
}
