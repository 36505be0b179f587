//! What the limit lets through, by a clock that the test moves and by the real one.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::wrap::throttle::{Limits, Rate, Throttle};
use engine::{open, Buffer, Completion, Engine, Op, Options, Prefer};
use ops::{Curve, Point};

const HANG: Duration = Duration::from_secs(30);

fn inner() -> Box<dyn Engine> {
    open(&Options { prefer: Prefer::Threads, depth: 64, threads: 2 }).expect("an engine")
}

/// A throttle whose time is the number that it gives, in milliseconds.
fn by_hand(limits: Limits) -> (Throttle<Box<dyn Engine>>, Arc<AtomicU64>) {
    let now_ms = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&now_ms);
    let clock = Box::new(move || Duration::from_millis(clock.load(Ordering::Relaxed)));
    (Throttle::with_clock(inner(), limits, clock).expect("a throttle"), now_ms)
}

fn read(file: &File, len: usize) -> Op {
    Op::Read { fd: file.as_raw_fd(), buffer: Buffer::new(len), offset: 0 }
}

fn zeros() -> File {
    File::open("/dev/zero").expect("a file without an end")
}

/// What has been let through by now, all of it completed.
fn through(engine: &mut Throttle<Box<dyn Engine>>, waiting: usize) -> Vec<u64> {
    let (mut done, deadline) = (Vec::new(), Instant::now() + HANG);
    while engine.in_flight() > waiting {
        engine.poll(&mut done);
        assert!(Instant::now() < deadline, "{} are in flight", engine.in_flight());
        std::thread::yield_now();
    }
    engine.poll(&mut done);
    done.iter().map(|completion: &Completion| completion.token).collect()
}

#[test]
fn bytes_pass_as_the_bucket_fills() {
    let bytes = Some(Rate { per_s: 1000.0, burst: 100.0 });
    let (mut engine, now_ms) = by_hand(Limits { bytes, ..Limits::default() });
    let file = zeros();
    for token in 0..5 {
        engine.submit(token, read(&file, 50)).expect("there is room");
    }
    assert_eq!(through(&mut engine, 3), [0, 1], "the burst is two reads");
    now_ms.store(49, Ordering::Relaxed);
    assert_eq!(through(&mut engine, 3), [], "49 bytes are not 50");
    now_ms.store(50, Ordering::Relaxed);
    assert_eq!(through(&mut engine, 2), [2]);
    now_ms.store(100_000, Ordering::Relaxed);
    assert_eq!(through(&mut engine, 0), [3, 4]);
}

/// With a curve the rate is that of the operations in flight when time passes.
#[test]
fn many_in_flight_get_less() {
    let points = [(1, 1000), (2, 500)].map(|(writers, bandwidth)| Point { writers, bandwidth });
    let curve = Some(Curve::new(points.into()).expect("a curve"));
    let bytes = Some(Rate { per_s: 1000.0, burst: 100.0 });
    let (mut engine, now_ms) = by_hand(Limits { bytes, curve, operations: None });
    let file = zeros();
    for token in 0..3 {
        engine.submit(token, read(&file, 100)).expect("there is room");
    }
    assert_eq!(through(&mut engine, 2), [0], "the burst is one read");
    now_ms.store(100, Ordering::Relaxed);
    assert_eq!(through(&mut engine, 2), [], "two in flight get 50 bytes in 100 ms");
    now_ms.store(200, Ordering::Relaxed);
    assert_eq!(through(&mut engine, 1), [1]);
    now_ms.store(299, Ordering::Relaxed);
    let early = through(&mut engine, 1);
    now_ms.store(300, Ordering::Relaxed);
    assert_eq!((early, through(&mut engine, 0)), (vec![], vec![2]), "one alone gets 100 bytes");
}

#[test]
fn operations_pass_as_the_bucket_fills_and_in_order() {
    let operations = Some(Rate { per_s: 10.0, burst: 1.0 });
    let (mut engine, now_ms) = by_hand(Limits { operations, ..Limits::default() });
    let file = zeros();
    for token in 0..4 {
        engine.submit(token, read(&file, 1000)).expect("there is room");
    }
    for token in 0..4_u64 {
        now_ms.store(token * 100, Ordering::Relaxed);
        assert_eq!(through(&mut engine, 3 - token as usize), [token]);
    }
}

#[test]
fn what_is_larger_than_the_burst_passes_and_is_owed() {
    let bytes = Some(Rate { per_s: 1000.0, burst: 100.0 });
    let (mut engine, now_ms) = by_hand(Limits { bytes, ..Limits::default() });
    let file = zeros();
    engine.submit(0, read(&file, 1100)).expect("there is room");
    engine.submit(1, read(&file, 1)).expect("there is room");
    assert_eq!(through(&mut engine, 1), [0]);
    now_ms.store(1000, Ordering::Relaxed);
    assert_eq!(through(&mut engine, 1), [], "1000 of the 1000 bytes owed are paid, not 1001");
    now_ms.store(1001, Ordering::Relaxed);
    assert_eq!(through(&mut engine, 0), [1]);
}

#[test]
fn waiting_keeps_to_the_limit_without_spinning() {
    let bytes = Some(Rate { per_s: 1e6, burst: 1e4 });
    let limits = Limits { bytes, ..Limits::default() };
    let mut engine = Throttle::new(inner(), limits).expect("a throttle");
    let file = zeros();
    let (started, cpu) = (Instant::now(), cpu_of_thread());
    for token in 0..31 {
        engine.submit(token, read(&file, 10_000)).expect("there is room");
    }
    let mut done = Vec::new();
    while engine.in_flight() > 0 {
        engine.wait(&mut done, Some(HANG));
    }
    // Of 310,000 bytes the first 10,000 are the burst.
    let (took, used) = (started.elapsed(), cpu_of_thread() - cpu);
    assert!(took >= Duration::from_millis(299), "300,000 bytes at 1 MB/s in {took:?}");
    assert!(used < Duration::from_millis(100), "{used:?} of a processor in {took:?}");
}

#[test]
fn a_wait_for_what_has_no_turn_yet_ends_in_time() {
    let operations = Some(Rate { per_s: 0.001, burst: 1.0 });
    let (mut engine, now_ms) = by_hand(Limits { operations, ..Limits::default() });
    let file = zeros();
    for token in 0..2 {
        engine.submit(token, read(&file, 1)).expect("there is room");
    }
    let mut done = Vec::new();
    while done.is_empty() {
        engine.wait(&mut done, Some(HANG));
    }
    let started = Instant::now();
    assert_eq!(engine.wait(&mut done, Some(Duration::from_millis(30))), 0);
    assert!(started.elapsed() >= Duration::from_millis(30));
    // Dropping it waits for the second, whose turn is after a thousand seconds.
    now_ms.store(1_000_000, Ordering::Relaxed);
}

#[test]
fn rates_that_are_none_are_refused() {
    for per_s in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let limits = Limits { bytes: Some(Rate { per_s, burst: 1.0 }), ..Limits::default() };
        let error = Throttle::new(inner(), limits).err().expect("an error");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{per_s}");
    }
}

fn cpu_of_thread() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is writable and lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
