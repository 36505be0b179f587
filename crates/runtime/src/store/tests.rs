//! The store over a real heap: pins, limits, memory given back.

use std::time::{Duration, Instant};

use super::*;

fn store(max: u64, retained: u64) -> Arc<Store> {
    let pool = Pool::new(1 << 30).expect("shared memory");
    Store::new(&pool, max, retained)
}

#[test]
fn small_values_stay_out_of_the_heap() {
    let store = store(1 << 30, 0);
    let value = store.encode(b"pickle", &[b"buffer"]).unwrap();
    assert!(matches!(value, Value::Inline(_)));
    let read = block::parse(value.as_bytes()).unwrap();
    assert_eq!(read.pickle, b"pickle");
    assert_eq!(&value.as_bytes()[read.buffers[0].clone()], b"buffer");
    assert_eq!(store.bytes(), (0, 0));
}

#[test]
fn a_range_lives_as_long_as_its_last_pin() {
    let store = store(1 << 30, 1 << 30);
    let bytes = vec![7u8; 300_000];
    let value = store.encode(b"p", &[&bytes]).unwrap();
    let Value::Placed(pin) = value.clone() else { panic!("a large value is placed") };
    let copy = pin.shortened(100).unwrap();
    assert!(pin.shortened(1 << 40).is_none());
    drop((value, pin));
    let used = store.bytes().0;
    assert!(used >= 300_000, "the shortened pin keeps it");
    drop(copy);
    assert_eq!(store.bytes(), (0, used));
}

#[test]
fn full_says_what_is_in_use() {
    let store = store(1 << 20, 0);
    let kept = store.encode(b"", &[&vec![1u8; 700_000]]).unwrap();
    let error = store.encode(b"", &[&vec![1u8; 700_000]]).unwrap_err();
    assert!(error.in_use >= 700_000 && error.max == 1 << 20);
    assert!(error.to_string().starts_with("object store full: a value of 700"), "{error}");
    drop(kept);
    store.encode(b"", &[&vec![1u8; 700_000]]).unwrap();
}

#[test]
fn memory_is_given_back_beyond_what_is_retained() {
    let pool = Pool::new(1 << 30).expect("shared memory");
    let store = Store::new(&pool, 1 << 30, 8 << 20);
    let big = store.encode(b"", &[&vec![1u8; 64 << 20]]).unwrap();
    assert!(pool.heap().resident_bytes().unwrap() >= 64 << 20);
    store.trim();
    drop(big);
    assert!(pool.heap().resident_bytes().unwrap() >= 64 << 20);
    store.trim();
    let resident = pool.heap().resident_bytes().unwrap();
    assert!((8 << 20..9 << 20).contains(&resident), "{resident} bytes are kept");
    store.close();
    assert_eq!(pool.heap().resident_bytes().unwrap(), 0);
}

#[test]
fn what_is_freed_while_the_runtime_thread_sleeps_is_given_back() {
    const PATIENCE: Duration = Duration::from_secs(60);
    let pool = Pool::new(1 << 30).expect("shared memory");
    let store = Store::new(&pool, 1 << 30, 8 << 20);
    let big = store.encode(b"", &[&vec![1u8; 64 << 20]]).unwrap();
    store.trim();
    assert!(pool.poller().prepare_sleep(), "nothing to do");
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(big));
        pool.poller().wait(Some(PATIENCE), &mut Vec::new()).unwrap();
    });
    assert!(began.elapsed() < PATIENCE, "it sleeps on");
    store.trim();
    assert!(pool.heap().resident_bytes().unwrap() < 9 << 20);
}

#[test]
fn reuse_does_not_touch_new_memory() {
    let pool = Pool::new(1 << 30).expect("shared memory");
    let store = Store::new(&pool, 1 << 30, 1 << 30);
    let bytes = vec![3u8; 10 << 20];
    for _ in 0..50 {
        drop(store.encode(b"", &[&bytes]).unwrap());
    }
    assert!(pool.heap().resident_bytes().unwrap() < 12 << 20);
}

#[test]
fn many_threads_allocate_and_free() {
    let store = store(1 << 30, 16 << 20);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let store = &store;
            scope.spawn(move || {
                let bytes = vec![thread; 20_000 + usize::from(thread) * 50_000];
                for _ in 0..300 {
                    let value = store.encode(b"", &[&bytes]).unwrap();
                    let read = block::parse(value.as_bytes()).unwrap();
                    assert!(value.as_bytes()[read.buffers[0].clone()] == bytes[..]);
                    store.trim();
                }
            });
        }
    });
    assert_eq!(store.bytes().0, 0);
}
