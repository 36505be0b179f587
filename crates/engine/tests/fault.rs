//! What a bad disk does, and that a seed does it again.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use engine::wrap::fault::{Fault, Faults, Lost, Survivors};
use engine::{open, Answer, Buffer, Engine, Errno, Op, Options, Prefer};

type Disk = Fault<Box<dyn Engine>>;

fn disk(faults: Faults) -> Disk {
    let options = Options { prefer: Prefer::Auto, depth: 64, threads: 2 };
    Fault::new(open(&options).expect("an engine"), faults).expect("a disk")
}

fn remembering(seed: u64) -> Disk {
    disk(Faults { seed, has_power_loss: true, ..Faults::default() })
}

/// A file that is gone with the test.
struct Scratch {
    file: File,
    path: PathBuf,
}

impl Scratch {
    fn new(name: &str, content: &[u8]) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let path = folder.join(format!("fault-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("a file for a test");
        let file = OpenOptions::new().read(true).write(true).open(&path).expect("the file");
        Self { file, path }
    }

    fn content(&self) -> Vec<u8> {
        std::fs::read(&self.path).expect("the file of a test")
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Op {
        Op::Write { fd: self.file.as_raw_fd(), buffer: Buffer::from(bytes.to_vec()), offset }
    }

    fn read(&self, len: usize) -> Op {
        Op::Read { fd: self.file.as_raw_fd(), buffer: Buffer::new(len), offset: 0 }
    }

    fn sync(&self) -> Op {
        Op::Fsync { fd: self.file.as_raw_fd() }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).expect("the file was there");
    }
}

fn one(engine: &mut Disk, op: Op) -> Result<Answer, Errno> {
    engine.submit(1, op).expect("there is room");
    let mut done = Vec::new();
    while engine.wait(&mut done, Some(Duration::from_secs(30))) == 0 {
        assert!(engine.in_flight() > 0, "a completion is lost");
    }
    done.pop().expect("a completion").result
}

fn done(engine: &mut Disk, op: Op) {
    let name = op.name();
    let result = one(engine, op);
    assert!(result.is_ok(), "{name}: {result:?}");
}

#[test]
fn errors_hit_what_they_are_for_and_do_nothing() {
    let scratch = Scratch::new("errors", b"before");
    let mut broken = disk(Faults { eio: 1.0, ..Faults::default() });
    for op in [scratch.read(3), scratch.write(b"x", 0), scratch.sync()] {
        let name = op.name();
        assert_eq!(one(&mut broken, op).err(), Some(Errno(libc::EIO)), "{name}");
    }
    let mut full = disk(Faults { enospc: 1.0, ..Faults::default() });
    let fd = scratch.file.as_raw_fd();
    let fallocate = Op::Fallocate { fd, mode: 0, offset: 0, len: 100 };
    for op in [scratch.write(b"x", 0), fallocate] {
        let name = op.name();
        assert_eq!(one(&mut full, op).err(), Some(Errno(libc::ENOSPC)), "{name}");
    }
    done(&mut full, scratch.read(3));
    done(&mut full, scratch.sync());
    assert_eq!(scratch.content(), b"before");
}

#[test]
fn short_transfers_do_and_count_the_first_part() {
    let scratch = Scratch::new("short", &[b'-'; 100]);
    let mut engine = disk(Faults { seed: 5, short: 1.0, ..Faults::default() });
    let wrote = one(&mut engine, scratch.write(&[b'x'; 50], 0)).expect("a write").bytes();
    assert!((1..50).contains(&wrote), "{wrote} of 50");
    let content = scratch.content();
    assert_eq!(content.iter().filter(|byte| **byte == b'x').count() as u64, wrote);
    let fd = scratch.file.as_raw_fd();
    let buffers = vec![Buffer::new(10), Buffer::new(80)];
    engine.submit(9, Op::ReadVectored { fd, buffers, offset: 0 }).expect("there is room");
    let mut out = Vec::new();
    while engine.wait(&mut out, None) == 0 {}
    let completion = out.pop().expect("a completion");
    let count = completion.result.expect("a read").bytes() as usize;
    assert!((1..90).contains(&count), "{count} of 90");
    let buffers = completion.op.into_buffers();
    assert_eq!(buffers.iter().map(|buffer| buffer.len()).collect::<Vec<_>>(), [10, 80]);
    let joined: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.to_vec()).collect();
    assert_eq!(joined[..count], content[..count]);
    assert!(joined[count..].iter().all(|byte| *byte == 0), "more was read than counted");
}

#[test]
fn late_completions_come_late() {
    let scratch = Scratch::new("late", b"abc");
    let late_max = Duration::from_millis(100);
    let mut engine = disk(Faults { seed: 2, late: 1.0, late_max, ..Faults::default() });
    let started = Instant::now();
    for _ in 0..5 {
        done(&mut engine, scratch.read(3));
    }
    // Five draws up to 100 ms each; the seed fixes their sum.
    assert!(started.elapsed() > Duration::from_millis(100), "{:?}", started.elapsed());
}

/// The order of completions and their results, of 40 reads on a disk with everything.
fn history(seed: u64) -> Vec<(u64, String)> {
    let scratch = Scratch::new(&format!("history-{seed}"), &[7; 4096]);
    let mut engine = disk(Faults { seed, eio: 0.3, short: 0.3, ..Faults::default() });
    let mut story = Vec::new();
    for token in 0..40 {
        story.push((token, format!("{:?}", one(&mut engine, scratch.read(1000)))));
    }
    story
}

#[test]
fn a_seed_reproduces_the_faults() {
    let first = history(11);
    assert_eq!(first, history(11));
    assert_ne!(first, history(12));
    let failed = first.iter().filter(|(_, result)| result.contains("EIO")).count();
    assert!((4..24).contains(&failed), "{failed} of 40 failed");
}

#[test]
fn reordered_operations_overtake_each_other() {
    let scratch = Scratch::new("order", b"abc");
    let mut engine = disk(Faults { seed: 3, reordered: 1.0, ..Faults::default() });
    for token in 0..40 {
        engine.submit(token, scratch.read(3)).expect("there is room");
    }
    let mut out = Vec::new();
    while engine.in_flight() > 0 {
        engine.wait(&mut out, None);
    }
    let order: Vec<u64> = out.iter().map(|completion| completion.token).collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..40).collect::<Vec<_>>());
    assert_ne!(order, sorted);
}

#[test]
fn power_loss_takes_what_no_sync_covered() {
    let scratch = Scratch::new("loss", b"0000000000");
    let mut engine = remembering(1);
    done(&mut engine, scratch.write(b"11", 0));
    done(&mut engine, scratch.sync());
    done(&mut engine, scratch.write(b"22", 1));
    done(&mut engine, scratch.write(b"3333", 9000));
    let fd = scratch.file.as_raw_fd();
    done(&mut engine, Op::Truncate { fd, len: 5 });
    assert_eq!(scratch.content(), b"12200");
    let lost = engine.power_loss(Survivors::Nothing).expect("a power loss");
    assert_eq!(lost, Lost { changes: 3, survived: 0 });
    assert_eq!(scratch.content(), b"1100000000");
    let again = engine.power_loss(Survivors::Nothing).expect("a power loss");
    assert_eq!(again, Lost::default(), "what is lost is not lost again");
}

#[test]
fn a_copy_and_an_appended_write_can_be_lost_too() {
    let (from, to) = (Scratch::new("from", &[5; 9000]), Scratch::new("to", b"abc"));
    let appending = OpenOptions::new().append(true).open(&to.path).expect("the file");
    let mut engine = remembering(1);
    let copy = |to_offset| Op::Copy {
        from: from.file.as_raw_fd(),
        from_offset: 0,
        to: to.file.as_raw_fd(),
        to_offset,
        len: 9000,
    };
    done(&mut engine, copy(1));
    done(&mut engine, to.sync());
    let durable = to.content();
    assert_eq!(durable.len(), 9001);
    done(&mut engine, copy(3));
    let buffer = Buffer::from(b"tail".to_vec());
    done(&mut engine, Op::Write { fd: appending.as_raw_fd(), buffer, offset: 0 });
    assert_eq!(to.content().len(), 9007);
    assert_eq!(engine.power_loss(Survivors::Nothing).expect("a power loss").changes, 2);
    assert!(to.content() == durable);
}

#[test]
fn a_sync_that_failed_is_not_made_good_by_one_that_succeeds() {
    let scratch = Scratch::new("doomed", b"0000");
    // The seed's draws decide which of the syncs fails; find one where the first of two does.
    let survived = (0..200).find_map(|seed| {
        let faults = Faults { seed, eio: 0.5, has_power_loss: true, ..Faults::default() };
        let mut engine = disk(faults);
        let wrote = one(&mut engine, scratch.write(b"1", 0)).is_ok();
        let syncs = [one(&mut engine, scratch.sync()), one(&mut engine, scratch.sync())];
        let is_it = wrote && syncs[0].is_err() && syncs[1].is_ok();
        engine.power_loss(Survivors::Nothing).expect("a power loss");
        let content = scratch.content();
        std::fs::write(&scratch.path, b"0000").expect("the file");
        is_it.then_some(content)
    });
    assert_eq!(survived.expect("a seed with that story"), b"0000");
}

#[test]
fn survivors_are_whole_sectors_of_what_was_not_durable() {
    const BYTES: usize = 64 << 10;
    let mut torn = 0;
    for seed in 0..30 {
        let scratch = Scratch::new(&format!("survivors-{seed}"), &[b'0'; BYTES]);
        let mut engine = remembering(seed);
        done(&mut engine, scratch.write(&[b'1'; BYTES], 0));
        let lost = engine.power_loss(Survivors::Some).expect("a power loss");
        assert_eq!(lost.changes, 1);
        let content = scratch.content();
        assert_eq!(content.len(), BYTES);
        for sector in content.chunks(512) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "half a sector survived");
        }
        let ones = content.iter().filter(|byte| **byte == b'1').count();
        assert_eq!(lost.survived == 0, ones == 0);
        torn += usize::from(ones > 0 && ones < BYTES);
    }
    assert!((1..30).contains(&torn), "{torn} of 30 are torn");
}

#[test]
fn without_a_memory_there_is_no_power_loss() {
    let error = disk(Faults::default()).power_loss(Survivors::Nothing).expect_err("an error");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}
