//! A ring between two real threads, full speed, with records of all lengths; and nonsense in it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use exec::ring::{Consumer, Corrupt, Counter, Flag, Header, Mapped, Producer, Shared};
use exec::wire::RECORD_BYTES_MAX;

const CAPACITY_BYTES: u64 = 256 << 10;

/// Memory for a ring, like a mapping of another process's.
struct Memory {
    header: Box<Header>,
    data: NonNull<u64>,
    words: usize,
}

// SAFETY: the header is atomic, the data are used as the ring's protocol says.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        let data = std::ptr::slice_from_raw_parts_mut(self.data.as_ptr(), self.words);
        // SAFETY: made from a box of this length in `memory`.
        drop(unsafe { Box::from_raw(data) });
    }
}

type Ring = Mapped<Arc<Memory>>;

fn memory() -> Arc<Memory> {
    let words = CAPACITY_BYTES as usize / 8;
    let data = Box::leak(vec![0u64; words].into_boxed_slice());
    let data = NonNull::from(data).cast();
    Arc::new(Memory { header: Box::default(), data, words })
}

fn ring(memory: &Arc<Memory>) -> Ring {
    let header = NonNull::from(&*memory.header);
    // SAFETY: the keeper owns both parts; every test makes one producer and one consumer.
    unsafe { Mapped::new(header, memory.data.cast(), CAPACITY_BYTES, memory.clone()) }
}

/// A doorbell between threads.
#[derive(Default)]
struct Bell(Mutex<bool>, Condvar);

impl Bell {
    fn ring(&self) {
        *self.0.lock().expect("no panics") = true;
        self.1.notify_one();
    }

    fn wait(&self) {
        let rung = self.0.lock().expect("no panics");
        *self.1.wait_while(rung, |rung| !*rung).expect("no panics") = false;
    }
}

/// A sequence that both sides can compute: the length of each record.
fn length(number: u64) -> usize {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    match mixed % 100 {
        0 => RECORD_BYTES_MAX - (mixed % 9) as usize,
        1..=9 => (mixed % 5_000) as usize,
        _ => (mixed % 200) as usize,
    }
}

#[test]
fn two_threads_exchange_records_of_all_lengths() {
    const RECORDS: u64 = 300_000;
    let memory = memory();
    let (asleep, woken, room) = (AtomicU32::new(0), Bell::default(), Bell::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut producer = Producer::new(ring(&memory));
            let mut record = Vec::new();
            for number in 0..RECORDS {
                record.clear();
                record.resize(length(number), number as u8);
                while !producer.push(&record) && !producer.wait_for_room(&record) {
                    room.wait();
                }
                if producer.must_wake(&asleep) {
                    woken.ring();
                }
            }
        });
        let mut consumer = Consumer::new(ring(&memory));
        let mut record = Vec::new();
        for number in 0..RECORDS {
            while !consumer.pop(&mut record).expect("a sound ring") {
                if consumer.must_wake() {
                    room.ring();
                }
                if consumer.prepare_sleep(&asleep) {
                    woken.wait();
                    asleep.lower();
                }
            }
            assert_eq!(record.len(), length(number));
            assert!(record.iter().all(|byte| *byte == number as u8), "record {number}");
        }
        assert!(consumer.is_empty());
    });
    assert_eq!(asleep.load(Ordering::Relaxed), 0);
}

#[test]
fn a_full_ring_refuses_and_goes_on_later() {
    let memory = memory();
    let (mut producer, mut consumer) = (Producer::new(ring(&memory)), Consumer::new(ring(&memory)));
    let record = vec![1; 1000];
    let mut pushed = 0;
    while producer.push(&record) {
        pushed += 1;
    }
    assert_eq!(pushed, CAPACITY_BYTES / 1008);
    assert!(!consumer.must_wake() && !producer.wait_for_room(&record));
    let mut buffer = Vec::new();
    assert_eq!(consumer.pop(&mut buffer), Ok(true));
    assert!(consumer.must_wake() && !consumer.must_wake());
    assert!(producer.push(&record));
    (0..pushed).for_each(|_| assert_eq!(consumer.pop(&mut buffer), Ok(true)));
    assert_eq!(consumer.pop(&mut buffer), Ok(false));
}

#[test]
fn nonsense_is_found() {
    let corrupt = |spoil: fn(&Ring)| {
        let memory = memory();
        let mut producer = Producer::new(ring(&memory));
        assert!(producer.push(&[1; 10]));
        spoil(producer.shared());
        Consumer::new(ring(&memory)).pop(&mut Vec::new())
    };
    let long = Corrupt { found: "a record is longer than what was written" };
    let full = Corrupt { found: "a ring holds more than its capacity" };
    let skip = Corrupt { found: "nothing follows a skip" };
    assert_eq!(corrupt(|_| ()), Ok(true));
    assert_eq!(corrupt(|ring| ring.write(0, &100u32.to_le_bytes())), Err(long));
    assert_eq!(corrupt(|ring| ring.write(0, &0x7fff_ffffu32.to_le_bytes())), Err(long));
    assert_eq!(corrupt(|ring| ring.write(0, &u32::MAX.to_le_bytes())), Err(skip));
    assert_eq!(corrupt(|ring| ring.tail().store_release(u64::MAX - 7)), Err(full));
    assert_eq!(corrupt(|ring| ring.tail().store_release(CAPACITY_BYTES + 8)), Err(full));
    assert_eq!(corrupt(|ring| ring.tail().store_release(3)), Err(full));
}

#[test]
fn a_head_that_makes_no_sense_is_no_room() {
    let memory = memory();
    let mut producer = Producer::new(ring(&memory));
    while producer.push(&[1; 1000]) {}
    producer.shared().head().store_release(u64::MAX);
    assert!(!producer.push(&[1; 1000]));
}
