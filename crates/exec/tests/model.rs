//! The ring's own code in a model where every order of the two sides is tried, with memory
//! that is as weak as the orderings allow.

use exec::ring::{Consumer, Counter, Flag, Producer, Shared};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
use loom::sync::{Arc, Notify};
use loom::thread;

const CAPACITY_BYTES: usize = 32;
/// How often the model takes the processor from a thread that could go on; the environment
/// variable `LOOM_MAX_PREEMPTIONS` says otherwise.
const PREEMPTIONS_MAX: usize = 2;

struct ModelCounter(AtomicU64);

impl Counter for ModelCounter {
    fn load_acquire(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn store_release(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }
}

struct ModelFlag(AtomicU32);

impl Flag for ModelFlag {
    fn raise(&self) {
        self.0.store(1, Ordering::Relaxed);
    }

    fn lower(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn take(&self) -> bool {
        let change = || self.0.compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed);
        self.0.load(Ordering::Relaxed) != 0 && change().is_ok()
    }
}

struct Memory {
    head: ModelCounter,
    tail: ModelCounter,
    waiting: ModelFlag,
    asleep: ModelFlag,
    /// One cell for every eight bytes: the model checks that the two sides never touch one at
    /// the same time.
    data: Vec<UnsafeCell<[u8; 8]>>,
    consumer_bell: Notify,
    producer_bell: Notify,
}

#[derive(Clone)]
struct Model(Arc<Memory>);

impl Model {
    fn new() -> Self {
        Self(Arc::new(Memory {
            head: ModelCounter(AtomicU64::new(0)),
            tail: ModelCounter(AtomicU64::new(0)),
            waiting: ModelFlag(AtomicU32::new(0)),
            asleep: ModelFlag(AtomicU32::new(0)),
            data: (0..CAPACITY_BYTES / 8).map(|_| UnsafeCell::new([0; 8])).collect(),
            consumer_bell: Notify::new(),
            producer_bell: Notify::new(),
        }))
    }

    fn byte(&self, at: u64) -> u8 {
        // SAFETY: the model itself checks that no write goes on.
        self.0.data[at as usize / 8].with(|cell| unsafe { (*cell)[at as usize % 8] })
    }
}

impl Shared for Model {
    type Counter = ModelCounter;
    type Flag = ModelFlag;

    fn capacity(&self) -> u64 {
        CAPACITY_BYTES as u64
    }

    fn head(&self) -> &ModelCounter {
        &self.0.head
    }

    fn tail(&self) -> &ModelCounter {
        &self.0.tail
    }

    fn waiting(&self) -> &ModelFlag {
        &self.0.waiting
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        for (at, byte) in (at as usize..).zip(bytes) {
            // SAFETY: the model itself checks that nobody else touches the cell.
            self.0.data[at / 8].with_mut(|cell| unsafe { (*cell)[at % 8] = *byte });
        }
    }

    fn read(&self, at: u64, count: u64, into: &mut Vec<u8>) {
        into.extend((at..at + count).map(|at| self.byte(at)));
    }

    fn read_length(&self, at: u64) -> u32 {
        u32::from_le_bytes([0, 1, 2, 3].map(|byte| self.byte(at + byte)))
    }
}

/// One side sends `lengths.len()` records, the other receives them; both sleep when they must.
/// A lost wake-up is a deadlock, which the model reports.
fn exchange(lengths: &'static [usize]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(PREEMPTIONS_MAX);
    builder.check(move || {
        let model = Model::new();
        let theirs = model.clone();
        let sender = thread::spawn(move || {
            let mut producer = Producer::new(theirs.clone());
            for (number, length) in lengths.iter().enumerate() {
                let record = vec![number as u8 + 1; *length];
                while !producer.push(&record) && !producer.wait_for_room(&record) {
                    theirs.0.producer_bell.wait();
                }
                if producer.must_wake(&theirs.0.asleep) {
                    theirs.0.consumer_bell.notify();
                }
            }
        });
        let mut consumer = Consumer::new(model.clone());
        let mut buffer = Vec::new();
        for (number, length) in lengths.iter().enumerate() {
            while !consumer.pop(&mut buffer).expect("a sound ring") {
                if consumer.must_wake() {
                    model.0.producer_bell.notify();
                }
                if consumer.prepare_sleep(&model.0.asleep) {
                    model.0.consumer_bell.wait();
                    model.0.asleep.lower();
                }
            }
            assert_eq!(buffer, vec![number as u8 + 1; *length]);
        }
        sender.join().expect("no panic");
    });
}

#[test]
fn a_sleeper_is_always_woken() {
    exchange(&[1, 4]);
}

#[test]
fn a_full_ring_is_waited_out() {
    exchange(&[12, 12, 12]);
}

#[test]
fn records_skip_the_end() {
    exchange(&[4, 12, 12]);
}

/// The canary: without the fences the model has to find a lost wake-up.
#[test]
fn the_model_finds_a_lost_wake_up() {
    let result = std::panic::catch_unwind(|| {
        loom::model(|| {
            let model = Model::new();
            let theirs = model.clone();
            let sender = thread::spawn(move || {
                let mut producer = Producer::new(theirs.clone());
                assert!(producer.push(&[1]));
                if theirs.0.asleep.take() {
                    theirs.0.consumer_bell.notify();
                }
            });
            let consumer = Consumer::new(model.clone());
            model.0.asleep.raise();
            if consumer.is_empty() {
                model.0.consumer_bell.wait();
            }
            sender.join().expect("no panic");
        });
    });

    assert!(result.is_err(), "a deadlock was possible and was not found");
}
