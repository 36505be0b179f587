//! Waiting and reading ahead from outside of HDF5: for those who have the file, not its ids. The
//! interface for C is `include/alongside_hdf5.h`.

use std::ffi::{c_char, c_int};

use runtime::behind::Failed;

use crate::opened::{self, Key};
use crate::postponed;

/// All of a file.
const WHOLE: (u64, u64) = (0, u64::MAX);

/// The ranges of a call, in order and apart from each other.
///
/// # Safety
///
/// `ranges` is null (all of the file) or has `count` pairs.
unsafe fn ranges_of(ranges: *const [u64; 2], count: usize) -> Vec<(u64, u64)> {
    if ranges.is_null() {
        return vec![WHOLE];
    }
    // SAFETY: the caller promised.
    let given = unsafe { std::slice::from_raw_parts(ranges, count) };
    let some = given.iter().filter(|[_, len]| *len > 0);
    let mut sorted: Vec<_> = some.map(|[start, len]| (*start, *len)).collect();
    sorted.sort_unstable();
    sorted.dedup_by(|next, before| {
        let (end, next_end) = (before.0.saturating_add(before.1), next.0.saturating_add(next.1));
        let meets = next.0 <= end;
        if meets {
            before.1 = end.max(next_end) - before.0;
        }
        meets
    });
    sorted
}

/// The keys of a call: none of the numbers means all files.
fn keys_of(device: u64, inode: u64) -> Option<[Key; 1]> {
    ((device, inode) != (0, 0)).then_some([(device, inode)])
}

/// Waits until what was written to a file (by device and inode; both 0: to all files) is with the
/// system: all of it, or what is in these ranges (offset, length), if there are some. 0: it is.
/// Else the errno of the first that failed, and why is in `text`, cut to `size` bytes with its
/// zero.
///
/// # Safety
///
/// `ranges` is null or has `count` pairs; `text` is null or has room for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn alongside_hdf5_wait(
    device: u64,
    inode: u64,
    ranges: *const [u64; 2],
    count: usize,
    text: *mut c_char,
    size: usize,
) -> c_int {
    // Which bytes of the file they come to is known when they are done.
    postponed::finish();
    let keys = keys_of(device, inode);
    let mut failures = postponed::take_lost_of(keys.as_ref().map(<[Key; 1]>::as_slice));
    let waited = match keys {
        Some([key]) if !ranges.is_null() => {
            // SAFETY: the caller promised.
            opened::drain_ranges(key, &unsafe { ranges_of(ranges, count) })
        }
        keys => opened::drain(None, keys.as_ref().map(<[Key; 1]>::as_slice)),
    };
    failures.extend(waited.err().into_iter().flatten());
    if failures.is_empty() {
        return 0;
    }
    // SAFETY: the caller promised.
    unsafe { say(&failures, text, size) };
    failures[0].errno.0
}

/// Whether [`alongside_hdf5_wait`] would return at once. 1: it would. 0: something is under way.
///
/// # Safety
///
/// `ranges` is null or has `count` pairs.
#[no_mangle]
pub unsafe extern "C" fn alongside_hdf5_test(
    device: u64,
    inode: u64,
    ranges: *const [u64; 2],
    count: usize,
) -> c_int {
    let keys = keys_of(device, inode);
    // SAFETY: the caller promised.
    let ranges = unsafe { ranges_of(ranges, count) };
    let keys = keys.as_ref().map(<[Key; 1]>::as_slice);
    c_int::from(!postponed::is_noted(keys) && opened::is_written(keys, &ranges))
}

/// Puts what went wrong into a text, a line each; if there is no room for all, how many more.
///
/// # Safety
///
/// `text` is null or has room for `size` bytes.
pub unsafe fn say(failures: &[Failed], text: *mut c_char, size: usize) {
    if text.is_null() || size == 0 {
        return;
    }
    let said = said(failures, size - 1);
    // SAFETY: the caller has so much room.
    unsafe {
        std::ptr::copy_nonoverlapping(said.as_ptr().cast(), text, said.len());
        *text.add(said.len()) = 0;
    }
}

/// What went wrong, in at most so many bytes: a line for each object, operation and cause.
pub fn said(failures: &[Failed], bytes_max: usize) -> String {
    let mut groups: Vec<(&Failed, usize, u64)> = Vec::new();
    for failed in failures {
        match groups.iter_mut().find(|(first, ..)| is_alike(first, failed)) {
            Some((_, pieces, bytes)) => (*pieces, *bytes) = (*pieces + 1, *bytes + failed.len),
            None => groups.push((failed, 1, failed.len)),
        }
    }
    let line = |(first, pieces, bytes): &(&Failed, usize, u64)| match pieces {
        1 => first.to_string(),
        _ => format!("{first}, and so in {} more places: {bytes} bytes in all", pieces - 1),
    };
    let lines = groups.iter().map(line).collect::<Vec<_>>();
    let mut said = lines.join("\n");
    let mut shown = lines.len();
    while said.len() > bytes_max && shown > 1 {
        shown -= 1;
        said = format!("{}\nand {} more", lines[..shown].join("\n"), lines.len() - shown);
    }
    let fits = |end: &usize| said.is_char_boundary(*end);
    let end = (0..=bytes_max.min(said.len())).rev().find(fits).unwrap_or(0);
    said.truncate(end);
    said
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

/// Whether two failures are of one object, and have one cause.
fn is_alike(one: &Failed, other: &Failed) -> bool {
    let of = |failed: &Failed| failed.label.object.as_ref().and_then(|name| name.get()).cloned();
    one.file == other.file
        && (one.errno, &one.why) == (other.errno, &other.why)
        && one.label.operation == other.label.operation
        && of(one) == of(other)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn ranges_are_put_in_order_and_joined() {
        let given = [[50, 10], [0, 10], [10, 5], [52, 2], [70, 0]];
        // SAFETY: so many pairs.
        let ranges = unsafe { ranges_of(given.as_ptr(), given.len()) };
        assert_eq!(ranges, [(0, 15), (50, 10)]);
        // SAFETY: null is all of it.
        assert_eq!(unsafe { ranges_of(std::ptr::null(), 0) }, [WHOLE]);
    }

    fn failed(object: &str, offset: u64) -> Failed {
        let object = Some(Arc::new(std::sync::OnceLock::from(Box::from(object))));
        Failed {
            file: Arc::from("a.h5"),
            offset,
            len: 8,
            label: Arc::new(runtime::behind::Label { operation: "write", object }),
            errno: std::io::Error::from_raw_os_error(libc::ENOSPC).into(),
            why: None,
        }
    }

    #[test]
    fn many_failures_of_one_object_do_not_hide_those_of_another() {
        let mut failures: Vec<_> = (0..100).map(|at| failed("/a", 1000 * at)).collect();
        failures.push(failed("/b", 7));
        let said = said(&failures, 1000);
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(said.contains("/a), and so in 99 more places: 800 bytes in all"), "{said}");
        assert!(said.ends_with("(write /b)"), "{said}");
    }

    #[test]
    fn failures_that_do_not_fit_are_counted() {
        let failures: Vec<_> = (0..9).map(|at| failed(&format!("/{at}"), at)).collect();
        let all = said(&failures, usize::MAX);
        assert_eq!(all.lines().count(), 9);
        let some = said(&failures, all.len() / 2);
        assert!(some.len() <= all.len() / 2);
        let shown = some.lines().count() - 1;
        assert!(shown > 1 && some.ends_with(&format!("and {} more", 9 - shown)), "{some}");
        assert!(all.starts_with(&said(&failures[..1], 10)));
    }
}
