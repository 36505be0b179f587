//! Copies of many bytes, by stores that go past the caches.

/// From this size on a value is copied past the caches. Measured with one processor that copies
/// and another, of the same cache of 32 MiB, that reads the copy at once: from 8 MiB on both
/// together take 0.6 to 0.9 times as long as after the C library's copy, up to 4 MiB as long.
const LARGE_BYTES_MIN: usize = 8 << 20;

/// Of the caches.
#[cfg(all(target_arch = "x86_64", not(watched)))]
const LINE_BYTES: usize = 64;

/// Copies a value that somebody will read.
///
/// # Panics
/// If the two have not the same length.
pub(crate) fn copy(from: &[u8], to: &mut [u8]) {
    copy_part(from.len(), from, to);
}

/// Copies a part of a value of so many bytes, as [`copy`] copies all of it.
///
/// # Panics
/// If the two have not the same length.
pub(crate) fn copy_part(value_bytes: usize, from: &[u8], to: &mut [u8]) {
    if value_bytes < LARGE_BYTES_MIN {
        to.copy_from_slice(from);
    } else {
        copy_past_the_caches(from, to);
    }
}

/// Copies bytes to memory that will not be read soon: by stores that go past the caches, which
/// leaves these to the program and moves a third less, line by line of several pages in turn, so
/// that what a new page takes (its translation, and the first loads that nothing has foreseen) is
/// waited for once for all of them. Measured on 320 MiB: 1.7 to 1.9 times as fast as the C
/// library's copy; of small pages 1.2 times as fast as one page after the other.
///
/// # Panics
/// If the two have not the same length.
#[cfg(all(target_arch = "x86_64", not(watched)))]
pub(crate) fn copy_past_the_caches(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64::_mm_sfence;
    const PAGE_BYTES: usize = 4096;
    const PAGES: usize = 4;
    assert_eq!(from.len(), to.len(), "a copy is as long as what is copied");
    let head = to.as_ptr().align_offset(LINE_BYTES).min(to.len());
    let (from_head, from) = from.split_at(head);
    let (to_head, to) = to.split_at_mut(head);
    to_head.copy_from_slice(from_head);
    let mut from_groups = from.chunks_exact(PAGES * PAGE_BYTES);
    let mut to_groups = to.chunks_exact_mut(PAGES * PAGE_BYTES);
    for (from, to) in from_groups.by_ref().zip(to_groups.by_ref()) {
        for line in (0..PAGE_BYTES).step_by(LINE_BYTES) {
            for page in (0..PAGES * PAGE_BYTES).step_by(PAGE_BYTES) {
                let line = page + line..page + line + LINE_BYTES;
                copy_line(&from[line.clone()], &mut to[line]);
            }
        }
    }
    let mut from_lines = from_groups.remainder().chunks_exact(LINE_BYTES);
    let mut to_lines = to_groups.into_remainder().chunks_exact_mut(LINE_BYTES);
    from_lines.by_ref().zip(to_lines.by_ref()).for_each(|(from, to)| copy_line(from, to));
    to_lines.into_remainder().copy_from_slice(from_lines.remainder());
    // SAFETY: orders the stores before what tells others of them.
    unsafe { _mm_sfence() };
}

/// Copies a line of the caches to one that is aligned.
#[cfg(all(target_arch = "x86_64", not(watched)))]
fn copy_line(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    assert!(from.len() == LINE_BYTES && to.len() == LINE_BYTES);
    let (from, to): (*const __m128i, *mut __m128i) = (from.as_ptr().cast(), to.as_mut_ptr().cast());
    // SAFETY: both are a line long, and the target is aligned to one. Every x86-64 has these
    // instructions.
    unsafe {
        let line: [__m128i; 4] = std::array::from_fn(|at| _mm_loadu_si128(from.add(at)));
        line.into_iter().enumerate().for_each(|(at, part)| _mm_stream_si128(to.add(at), part));
    }
}

/// Where there are no such stores, or the thread sanitizer would not see them: a plain copy.
///
/// # Panics
/// If the two have not the same length.
#[cfg(not(all(target_arch = "x86_64", not(watched))))]
pub(crate) fn copy_past_the_caches(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_byte_arrives_and_no_other_changes(
            len in prop_oneof![0usize..2000, 0usize..70_000],
            before in 0usize..200,
            skipped in 0usize..100,
        ) {
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8 + 1).collect();
            let from = &bytes[skipped.min(bytes.len())..];
            let mut to = vec![0; before + from.len() + 100];
            copy_past_the_caches(from, &mut to[before..before + from.len()]);
            prop_assert!(to[..before].iter().all(|byte| *byte == 0));
            prop_assert_eq!(&to[before..before + from.len()], from);
            prop_assert!(to[before + from.len()..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn values_of_any_size_are_copied() {
        for len in [0, 1, LARGE_BYTES_MIN - 1, LARGE_BYTES_MIN, LARGE_BYTES_MIN + 63] {
            let from: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let mut to = vec![255; len];
            copy(&from, &mut to);
            assert_eq!(from, to, "{len} bytes");
        }
    }
}
