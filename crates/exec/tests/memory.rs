//! The heap: one memory by two mappings, taken when touched, given back when punched.

use exec::process::Pool;

const MIB: u64 = 1 << 20;

#[test]
fn what_is_written_is_read_and_what_is_punched_is_gone() {
    let pool = Pool::new(64 << 30).expect("address space is free");
    let heap = pool.heap();
    assert_eq!((heap.bytes(), heap.resident_bytes().expect("known")), (64 << 30, 0));
    let (offset, len) = (40 << 30, 8 * MIB);
    assert!(heap.prefault_write(offset, len));
    // SAFETY: nobody else knows this heap, and the slices do not live at the same time.
    unsafe {
        heap.slice_mut(offset, len).fill(3);
        assert!(heap.slice(offset, len).iter().all(|byte| *byte == 3));
        assert!(heap.resident_bytes().expect("known") >= len);
        heap.prefault_read(offset, len);
        heap.punch(offset, len).expect("memory files can do that");
        assert!(heap.slice(offset, len).iter().all(|byte| *byte == 0));
    }
    assert_ne!(heap.reader(offset, 1), heap.writer(offset, 1));
}

#[test]
fn ranges_outside_are_refused() {
    let pool = Pool::new(2 * MIB).expect("shared memory");
    let heap = pool.heap();
    assert!(heap.contains(0, 2 * MIB) && heap.contains(2 * MIB, 0));
    assert!(!heap.contains(1, 2 * MIB) && !heap.contains(u64::MAX, 2));
    let outside = std::panic::AssertUnwindSafe(|| heap.reader(2 * MIB, 1));
    assert!(std::panic::catch_unwind(outside).is_err());
}
