//! Writes behind the caller against a plain model of the file; failures; memory; a child.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::null_mut;
use std::time::Duration;

use engine::wrap::fault::{Fault, Faults};
use engine::{Engine, Options, Prefer};
use proptest::prelude::*;

use super::*;

const FILE_BYTES: usize = 20_000;

pub(super) fn new_file() -> File {
    let dir = std::env::temp_dir();
    let flags = libc::O_TMPFILE;
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(dir).unwrap()
}

fn faulty(faults: Faults) -> WriteBehind {
    let options = Options { depth: 8, prefer: Prefer::Threads, threads: 2 };
    let faulty = Fault::new(engine::open(&options).unwrap(), faults).unwrap();
    WriteBehind::over(|bell| {
        ring_for(faulty.fd().try_clone_to_owned()?, bell);
        Ok(Box::new(faulty))
    })
    .unwrap()
}

/// Rings for an engine that shows by its descriptor only that something has completed.
fn ring_for(fd: OwnedFd, bell: &Arc<Bell>) {
    let bell = Arc::downgrade(bell);
    std::thread::spawn(move || {
        while let Some(bell) = bell.upgrade() {
            let mut polled = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry of ours.
            if unsafe { libc::poll(&raw mut polled, 1, 10) } > 0 {
                bell.ring();
                std::thread::yield_now();
            }
        }
    });
}

fn rules(limit_bytes: usize) -> Rules {
    Rules { limit_bytes }
}

fn label() -> Arc<Label> {
    Arc::new(Label {
        operation: "write of a dataset",
        object: Some(Arc::new(OnceLock::from(Box::from("/a")))),
    })
}

#[derive(Clone, Debug)]
enum Step {
    Write {
        offset: usize,
        len: usize,
        byte: u8,
        is_lent: bool,
    },
    /// By the caller, where a copy buys nothing.
    Through {
        offset: usize,
        len: usize,
        byte: u8,
    },
    Read {
        offset: usize,
        len: usize,
    },
    Fetch {
        offset: usize,
        len: usize,
    },
    /// What is to be read ahead has begun.
    Away,
    Drain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = (0..FILE_BYTES - 1).prop_flat_map(|offset| (Just(offset), 1..FILE_BYTES - offset));
    let step = prop_oneof![
        6 => (range.clone(), any::<u8>(), any::<bool>()).prop_map(
            |((offset, len), byte, is_lent)| Step::Write { offset, len, byte, is_lent }
        ),
        3 => (range.clone(), any::<u8>())
            .prop_map(|((offset, len), byte)| Step::Through { offset, len, byte }),
        2 => range.clone().prop_map(|(offset, len)| Step::Fetch { offset, len }),
        3 => range.prop_map(|(offset, len)| Step::Read { offset, len }),
        1 => Just(Step::Away),
        1 => Just(Step::Drain),
    ];
    prop::collection::vec(step, 1..40)
}

/// As a program whose copies buy nothing, where that is known; behind it otherwise.
fn write_directly(behind: &WriteBehind, file: FileId, on_disk: &File, at: u64, bytes: &[u8]) {
    let write = || {
        on_disk.write_all_at(bytes, at).unwrap();
        true
    };
    if !behind.write_through(file, at, bytes.len() as u64, write) {
        behind.write(file, at, bytes, &label(), None).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever overtakes what: a read sees the bytes of the writes before it, and so does the end.
    #[test]
    fn every_read_sees_the_writes_before_it(steps in steps(), seed: u64, limit in 1..50_000usize) {
        let late_max = Duration::from_micros(300);
        let faults = Faults { seed, late: 0.5, late_max, reordered: 0.5, ..Faults::default() };
        let behind = faulty(faults);
        let on_disk = new_file();
        let file = behind.add(on_disk.as_raw_fd(), "f", rules(limit));
        let mut model = vec![0; FILE_BYTES];
        on_disk.set_len(FILE_BYTES as u64).unwrap();
        let mut lent = Vec::new();
        for step in steps {
            match step {
                Step::Write { offset, len, byte, is_lent } => {
                    let bytes = vec![byte; len];
                    model[offset..offset + len].copy_from_slice(&bytes);
                    if is_lent {
                        // SAFETY: it is kept until everything is drained, and not changed.
                        let taken = unsafe {
                            behind.write_lent(file, offset as u64, &bytes, &label(), None)
                        };
                        taken.unwrap();
                        lent.push(bytes);
                    } else {
                        behind.write(file, offset as u64, &bytes, &label(), None).unwrap();
                    }
                }
                Step::Through { offset, len, byte } => {
                    let bytes = vec![byte; len];
                    model[offset..offset + len].copy_from_slice(&bytes);
                    write_directly(&behind, file, &on_disk, offset as u64, &bytes);
                }
                Step::Read { offset, len } => {
                    let mut seen = vec![0; len];
                    let read = |at, part: &mut [u8]| on_disk.read_exact_at(part, at).is_ok();
                    let answer = behind.read_into(file, offset as u64, &mut seen, read);
                    prop_assert_eq!(answer, Ok(true));
                    prop_assert_eq!(&seen, &model[offset..offset + len]);
                }
                Step::Fetch { offset, len } => {
                    behind.fetch(file, offset as u64, len as u64).unwrap();
                }
                Step::Away => {
                    let mut state = behind.shared.state.lock();
                    while state.ahead.is_holding() {
                        behind.wait(&mut state, None);
                    }
                }
                Step::Drain => prop_assert!(behind.drain(file).is_ok()),
            }
            prop_assert!(behind.copied_bytes() <= limit.max(FILE_BYTES));
        }
        prop_assert!(behind.forget(file).is_ok());
        let mut seen = vec![0; FILE_BYTES];
        on_disk.read_exact_at(&mut seen, 0).unwrap();
        prop_assert_eq!(seen, model);
        prop_assert_eq!(behind.copied_bytes(), 0);
    }
}

#[test]
fn a_failure_is_told_once_to_who_drains_and_to_every_reader_until_then() {
    let behind = faulty(Faults { enospc: 1.0, ..Faults::default() });
    let on_disk = new_file();
    let file = behind.add(on_disk.as_raw_fd(), "out.h5", rules(1 << 20));
    let ticket = Ticket::default();
    behind.write(file, 100, &[1; 50], &label(), Some(&ticket)).unwrap();
    assert!(behind.wait_for(&ticket, None));
    assert_eq!(ticket.failed().unwrap().errno, Errno(libc::ENOSPC));

    let refused = behind.read(file, 149, 1, || panic!("the bytes are not there")).unwrap_err();
    assert_eq!((refused.offset, refused.len), (100, 50));
    assert_eq!(behind.read(file, 150, 10, || 7).unwrap(), 7);

    let failures = behind.drain(file).unwrap_err();
    let text = failures[0].to_string();
    assert!(text.starts_with("out.h5: 50 bytes at 100 were not written: "), "{text}");
    assert!(text.ends_with("(write of a dataset /a)"), "{text}");
    assert_eq!(failures.len(), 1);
    assert_eq!(behind.drain(file), Ok(()));
    assert_eq!(behind.forget(file), Ok(()));
}

#[test]
fn a_range_is_waited_for_by_itself_and_told_its_own_failures() {
    let behind = faulty(Faults { enospc: 1.0, ..Faults::default() });
    let on_disk = new_file();
    let file = behind.add(on_disk.as_raw_fd(), "out.h5", rules(1 << 20));
    for offset in [100, 300] {
        behind.write(file, offset, &[1; 50], &label(), None).unwrap();
    }
    // Between them, and at their edges: nothing of it is in there.
    let around = [(0, 100), (150, 150), (350, 50)];
    assert!(behind.is_written(file, &around));
    assert_eq!(behind.drain_ranges(file, &around), Ok(()));
    assert_eq!(behind.drain_ranges(file, &[]), Ok(()));
    let told = behind.drain_ranges(file, &[(0, 10), (349, 1)]).unwrap_err();
    assert_eq!(told.iter().map(|failed| failed.offset).collect::<Vec<_>>(), [300]);
    assert!(behind.is_written(file, &[(300, 50)]));
    let told = behind.drain(file).unwrap_err();
    assert_eq!(told.iter().map(|failed| failed.offset).collect::<Vec<_>>(), [100]);
    assert_eq!(behind.forget(file), Ok(()));
}

#[test]
fn a_range_is_not_written_while_a_write_of_it_waits() {
    let late_max = Duration::from_millis(50);
    let behind = faulty(Faults { late: 1.0, late_max, ..Faults::default() });
    let on_disk = new_file();
    let file = behind.add(on_disk.as_raw_fd(), "out.h5", rules(1 << 20));
    behind.write(file, 100, &[1; 50], &label(), None).unwrap();
    // It is held until somebody waits, or the program has paused for a while.
    assert!(!behind.is_written(file, &[(149, 1)]) || behind.is_quiet(file));
    assert_eq!(behind.drain_ranges(file, &[(149, 1)]), Ok(()));
    assert!(behind.is_written(file, &[(0, u64::MAX)]));
    let mut seen = [0; 50];
    on_disk.read_exact_at(&mut seen, 100).unwrap();
    assert_eq!(seen, [1; 50]);
}

#[test]
fn nothing_is_read_ahead_of_a_change_that_goes_on() {
    let behind = faulty(Faults::default());
    let on_disk = new_file();
    on_disk.set_len(100).unwrap();
    let file = behind.add(on_disk.as_raw_fd(), "f", rules(1 << 20));
    let during = behind.change(file, || {
        let fetched = behind.fetch(file, 0, 100);
        on_disk.write_all_at(&[1; 100], 0).unwrap();
        fetched
    });
    assert_eq!(during, Some(Ok(0)));
    assert_eq!(behind.fetch(file, 0, 100), Ok(100));
    // What was read ahead before would be handed over after it.
    assert_eq!(behind.change(file, || panic!("it is not quiet")), None::<()>);
    wait_for_fetched(&behind, file);
    let mut seen = [0; 100];
    assert_eq!(behind.read_into(file, 0, &mut seen, not_by_itself), Ok(true));
    assert_eq!(seen, [1; 100]);
    assert_eq!(behind.forget(file), Ok(()));
}

#[test]
fn what_stops_in_the_middle_fails_with_the_cause_of_its_rest() {
    // SAFETY: a name that ends with a zero; the descriptor is new.
    let sealed = unsafe {
        let fd = libc::memfd_create(c"sealed".as_ptr(), libc::MFD_ALLOW_SEALING);
        File::from_raw_fd(fd)
    };
    sealed.set_len(8192).unwrap();
    // SAFETY: a descriptor and a number.
    let status = unsafe { libc::fcntl(sealed.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_GROW) };
    assert_eq!(status, 0);
    let behind = WriteBehind::new().unwrap();
    let file = behind.add(sealed.as_raw_fd(), "sealed", rules(1 << 20));
    behind.write(file, 0, &[7; 12288], &label(), None).unwrap();
    let failures = behind.drain(file).unwrap_err();
    assert_eq!(failures[0].errno, Errno(libc::EPERM));
    assert!(behind.has_failed(file));
    let mut seen = [0; 8192];
    sealed.read_exact_at(&mut seen, 0).unwrap();
    assert_eq!(seen, [7; 8192]);
    behind.forget(file).unwrap();
}

#[test]
fn writes_after_a_failed_one_go_on_and_those_elsewhere_are_not_touched() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let behind = WriteBehind::new().unwrap();
    let (good, bad) = (new_file(), behind.add(full.as_raw_fd(), "full", rules(1 << 20)));
    let file = behind.add(good.as_raw_fd(), "good", rules(1 << 20));
    for _ in 0..10 {
        behind.write(bad, 0, &[1; 1000], &label(), None).unwrap();
        behind.write(file, 0, &[2; 1000], &label(), None).unwrap();
    }
    assert_eq!(behind.drain(bad).unwrap_err().len(), 10);
    behind.write(bad, 0, &vec![1; 3 * PIECE_BYTES_MAX], &label(), None).unwrap();
    let of_one_write = behind.drain(bad).unwrap_err();
    assert!(of_one_write.len() < 3, "{of_one_write:?}");
    behind.write(bad, 0, &[1; 1000], &label(), None).unwrap();
    assert_eq!(behind.drain(bad).unwrap_err().len(), 1);
    assert_eq!(behind.drain(file), Ok(()));
    behind.forget(bad).unwrap();
    behind.forget(file).unwrap();
}

#[test]
fn what_was_read_ahead_is_handed_over_once_in_parts_or_whole() {
    let behind = WriteBehind::new().unwrap();
    let on_disk = new_file();
    let bytes: Vec<u8> = (0..3 * PIECE_BYTES_MAX).map(|at| (at / 999) as u8).collect();
    on_disk.write_all_at(&bytes, 0).unwrap();
    let file = behind.add(on_disk.as_raw_fd(), "f", rules(64 << 20));
    let len = bytes.len() as u64;
    assert_eq!(behind.fetch(file, 0, len), Ok(len));
    assert_eq!(behind.fetch(file, 0, len), Ok(len));
    let mut seen = vec![0; bytes.len()];
    wait_for_fetched(&behind, file);
    let (first, rest) = seen.split_at_mut(1000);
    assert_eq!(behind.read_into(file, 0, first, not_by_itself), Ok(true));
    assert_eq!(behind.read_into(file, 1000, rest, not_by_itself), Ok(true));
    assert!(seen == bytes);
    assert_eq!(behind.read_into(file, 0, &mut seen, |_, _| false), Ok(false), "it is gone");
    assert_eq!(behind.copied_bytes(), 0);

    // What does not fit into the limit is not read; past the end of the file nothing is kept.
    let small = behind.add(on_disk.as_raw_fd(), "f", rules(PIECE_BYTES_MAX));
    assert_eq!(behind.fetch(small, 0, len), Ok(PIECE_BYTES_MAX as u64));
    assert_eq!(behind.fetch(file, len - 10, 20), Ok(20));
    wait_for_fetched(&behind, file);
    assert_eq!(behind.read_into(file, len - 10, &mut [0; 20], |_, _| false), Ok(false));
    behind.forget(small).unwrap();
    behind.forget(file).unwrap();
    assert_eq!(behind.copied_bytes(), 0);
}

/// Until what is to be read ahead was read, or not.
fn wait_for_fetched(behind: &WriteBehind, file: FileId) {
    let mut state = behind.shared.state.lock();
    while state.files[&file].fetched.under_way() > 0 {
        behind.wait(&mut state, None);
    }
}

/// For a read of what was read ahead.
fn not_by_itself(at: u64, part: &mut [u8]) -> bool {
    panic!("{} bytes at {at} were read ahead", part.len())
}

/// Does something while a program reads by itself, for which nothing begins to be read ahead.
fn while_it_reads(behind: &WriteBehind, act: impl FnOnce()) {
    let on_disk = new_file();
    on_disk.set_len(2).unwrap();
    let file = behind.add(on_disk.as_raw_fd(), "another", rules(1));
    behind.fetch(file, 0, 1).unwrap();
    wait_for_fetched(behind, file);
    let mut act = Some(act);
    let read = |_, _: &mut [u8]| {
        act.take().expect("one byte is not there")();
        true
    };
    assert_eq!(behind.read_into(file, 0, &mut [0; 2], read), Ok(true));
    assert_eq!(behind.forget(file), Ok(()));
}

#[test]
fn a_read_takes_back_what_has_not_begun_and_reads_it_by_itself() {
    let behind = WriteBehind::new().unwrap();
    let on_disk = new_file();
    let bytes: Vec<u8> = (0..4 * PIECE_BYTES_MAX).map(|at| (at / 999) as u8).collect();
    on_disk.write_all_at(&bytes, 0).unwrap();
    let file = behind.add(on_disk.as_raw_fd(), "f", rules(64 << 20));
    let (piece, len) = (PIECE_BYTES_MAX as u64, bytes.len() as u64);
    while_it_reads(&behind, || {
        assert_eq!(behind.fetch(file, piece, len - piece), Ok(len - piece));
        let mut seen = vec![0; bytes.len()];
        let (first, rest) = seen.split_at_mut(PIECE_BYTES_MAX + 1000);
        let read = |at, part: &mut [u8]| on_disk.read_exact_at(part, at).is_ok();
        assert_eq!(behind.read_into(file, 0, first, read), Ok(true));
        // A piece stays whose end was not read.
        assert_eq!(behind.copied_bytes() as u64, len - piece + 1);
        assert_eq!(behind.read_into(file, piece + 1000, rest, read), Ok(true));
        assert!(seen == bytes);
        assert_eq!(behind.copied_bytes(), 1);
    });
    assert_eq!(behind.forget(file), Ok(()));
    assert_eq!(behind.copied_bytes(), 0);
}

#[test]
fn nobody_waits_for_what_is_held_while_the_program_reads() {
    let behind = WriteBehind::new().unwrap();
    let on_disk = new_file();
    on_disk.set_len(100).unwrap();
    while_it_reads(&behind, || {
        let left = behind.add(on_disk.as_raw_fd(), "left", rules(1 << 20));
        assert_eq!(behind.fetch(left, 0, 100), Ok(100));
        assert_eq!(behind.drain(left), Ok(()));
        // A write over it is not kept waiting either.
        behind.write(left, 50, &[7; 10], &label(), None).unwrap();
        assert_eq!(behind.drain(left), Ok(()));
        assert_eq!(behind.fetch(left, 0, 100), Ok(100));
        assert_eq!(behind.forget(left), Ok(()));
    });
    assert_eq!(behind.copied_bytes(), 0);
}

#[test]
fn a_write_over_the_limit_waits_for_the_ones_before_it() {
    let behind = WriteBehind::new().unwrap();
    let on_disk = new_file();
    let file = behind.add(on_disk.as_raw_fd(), "f", rules(PIECE_BYTES_MAX));
    let bytes: Vec<u8> = (0..5 * PIECE_BYTES_MAX + 17).map(|at| (at / 1000) as u8).collect();
    behind.write(file, 3, &bytes, &label(), None).unwrap();
    assert!(behind.copied_bytes() <= PIECE_BYTES_MAX);
    behind.forget(file).unwrap();
    let mut seen = vec![0; bytes.len()];
    on_disk.read_exact_at(&mut seen, 3).unwrap();
    assert!(seen == bytes);
}

#[test]
fn large_writes_that_two_threads_copy_arrive_in_the_order_of_their_calls() {
    let behind = WriteBehind::new().unwrap();
    let on_disk = new_file();
    let file = behind.add(on_disk.as_raw_fd(), "f", rules(usize::MAX));
    let len = HELPED_BYTES_MIN + 2 * PIECE_BYTES_MAX + 5;
    let mut expected = vec![0; 3 * len];
    for turn in 0..6u8 {
        let offset = usize::from(turn) * (len / 4) + 3;
        let bytes: Vec<u8> = (0..len).map(|at| (at / 1000) as u8 ^ (turn * 40)).collect();
        behind.write(file, offset as u64, &bytes, &label(), None).unwrap();
        expected[offset..offset + len].copy_from_slice(&bytes);
    }
    behind.forget(file).unwrap();
    let written = 5 * (len / 4) + 3 + len;
    let mut seen = vec![0; written];
    on_disk.read_exact_at(&mut seen, 0).unwrap();
    assert!(seen == expected[..written]);
    assert_eq!(behind.write(file, 0, &expected, &label(), None), Err(Refused::Forgotten));
}

#[test]
fn a_wait_with_a_time_ends_when_it_is_up() {
    let late_max = Duration::from_secs(2);
    let behind = faulty(Faults { seed: 3, late: 1.0, late_max, ..Faults::default() });
    let on_disk = new_file();
    let file = behind.add(on_disk.as_raw_fd(), "f", rules(1 << 20));
    let ticket = Ticket::default();
    behind.write(file, 0, &[1; 10], &label(), Some(&ticket)).unwrap();
    if !behind.wait_for(&ticket, Some(Duration::from_millis(1))) {
        assert_eq!(ticket.left(), 1);
    }
    assert!(behind.wait_for(&ticket, None));
    assert_eq!(ticket.left(), 0);
    behind.forget(file).unwrap();
}

#[test]
fn a_child_is_refused_and_finds_what_was_written_before() {
    let behind = global().unwrap();
    let on_disk = new_file();
    let file = behind.add(on_disk.as_raw_fd(), "f", rules(64 << 20));
    behind.write(file, 0, &vec![7; 8 << 20], &label(), None).unwrap();
    // SAFETY: the child only uses what is made for children, and leaves without a destructor.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = behind.write(file, 0, &[1], &label(), None) == Err(Refused::Child);
        let mut seen = [0; 1];
        let read = || on_disk.read_exact_at(&mut seen, (8 << 20) - 1).is_ok();
        let is_there = behind.read(file, 0, 1, read) == Ok(true) && seen == [7];
        let drained = behind.forget(file).is_ok();
        let code = i32::from(!(refused && is_there && drained));
        // SAFETY: ends the child.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    behind.write(file, 0, &[9], &label(), None).unwrap();
    behind.forget(file).unwrap();
    let mut seen = [0; 2];
    on_disk.read_exact_at(&mut seen, 0).unwrap();
    assert_eq!(seen, [9, 7]);
}

#[test]
fn a_child_gets_the_lock_whoever_waited_for_it_at_the_fork() {
    let behind = global().unwrap();
    let on_disk = new_file();
    let file = behind.add(on_disk.as_raw_fd(), "f", rules(1 << 20));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    behind.copied_bytes();
                }
            });
        }
        let forks: Vec<i32> = (0..50)
            .map(|_| {
                behind.write(file, 0, &[5; 100], &label(), None).unwrap();
                // SAFETY: as in the test above.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    let own = behind.add(on_disk.as_raw_fd(), "own", rules(1));
                    let is_quiet = behind.is_quiet(own) && behind.forget(own).is_ok();
                    // SAFETY: ends the child.
                    unsafe { libc::_exit(i32::from(!is_quiet)) };
                }
                let mut status = 0;
                // SAFETY: waits for the child made above.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                status
            })
            .collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(forks.iter().all(|status| *status == 0), "{forks:?}");
    });
    behind.forget(file).unwrap();
}

#[test]
fn a_fork_does_not_wait_for_what_is_held() {
    let behind = global().unwrap();
    let on_disk = new_file();
    on_disk.set_len(100).unwrap();
    let file = behind.add(on_disk.as_raw_fd(), "f", rules(1 << 20));
    // As if another thread read, for as long as this one forks.
    behind.shared.state.lock().ahead.begins();
    assert_eq!(behind.fetch(file, 0, 100), Ok(100));
    // SAFETY: the child only ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, null_mut(), 0) }, child);
    behind.shared.state.lock().ahead.ends();
    behind.forget(file).unwrap();
}

/// A file whose writes need no device: nothing but the state decides when they begin.
fn into_nothing() -> (State, File, FileId) {
    let options = Options { depth: 128, prefer: Prefer::Threads, threads: 1 };
    let mut state = State::new(engine::open(&options).unwrap());
    let nothing = OpenOptions::new().write(true).open("/dev/null").unwrap();
    let file = state.add(nothing.as_raw_fd(), "f", rules(usize::MAX));
    (state, nothing, file)
}

fn write_copied(state: &mut State, file: FileId, number: u64) {
    const LEN: usize = 100;
    let memory = state.reserve(file, LEN).unwrap().unwrap().empty(LEN);
    state.submit_write(file, number * LEN as u64, memory, &label(), None).unwrap();
}

fn end_all(state: &mut State) {
    let mut done = Vec::new();
    while !state.is_idle() {
        state.poll(&mut done);
        state.end(&mut done);
    }
}

#[test]
fn a_program_that_never_pauses_is_not_waited_for() {
    let (mut state, _nothing, file) = into_nothing();
    write_copied(&mut state, file, 0);
    let mut number = 0;
    while state.is_holding() {
        number += 1;
        write_copied(&mut state, file, number);
    }
    write_copied(&mut state, file, number + 1);
    assert!(!state.is_holding(), "others are under way");
    end_all(&mut state);
    write_copied(&mut state, file, 0);
    assert!(state.is_holding());
}

#[test]
fn held_writes_begin_when_the_program_pauses_also_those_of_lent_bytes() {
    let (mut state, _nothing, file) = into_nothing();
    let mut lent = vec![1; 100];
    for is_lent in [false, true] {
        if is_lent {
            // SAFETY: it outlives the write, and nobody changes it.
            let memory = unsafe { state::Memory::lent(lent.as_mut_ptr(), lent.len()) };
            state.submit_write(file, 0, memory, &label(), None).unwrap();
        } else {
            write_copied(&mut state, file, 0);
        }
        assert!(state.is_holding() && state.is_writing(file, &[(0, 1)]));
        while state.begin_after_pause().is_some() {
            assert!(state.is_holding());
        }
        assert!(!state.is_holding());
        end_all(&mut state);
    }
}

#[test]
fn memory_for_as_much_again_is_made_while_nothing_goes_on() {
    let (mut state, _nothing, file) = into_nothing();
    let a_piece_that_is_written_at_once = |state: &mut State| {
        let memory = state.reserve(file, PIECE_BYTES_MAX).unwrap().unwrap().empty(PIECE_BYTES_MAX);
        state.submit_write(file, 0, memory, &label(), None).unwrap();
        state.begin();
        end_all(state);
    };
    a_piece_that_is_written_at_once(&mut state);
    assert!(!state.wants_spare(), "it was one piece, and there is one block");

    (0..8).for_each(|_| a_piece_that_is_written_at_once(&mut state));
    assert!(state.wants_spare(), "eight pieces have shared one block");
    let held = state.reserve(file, PIECE_BYTES_MAX).unwrap().unwrap().empty(PIECE_BYTES_MAX);
    state.submit_write(file, 0, held, &label(), None).unwrap();
    assert!(!state.wants_spare(), "something goes on");
    state.begin();
    end_all(&mut state);

    (0..8).for_each(|_| a_piece_that_is_written_at_once(&mut state));
    assert!(state.wants_spare());
    state.add_spare(blocks::populated());
    assert!(!state.wants_spare(), "at most as many again as there were");
    (0..8).for_each(|_| a_piece_that_is_written_at_once(&mut state));
    assert!(state.wants_spare());
    state.add_spare(None);
    assert!(!state.wants_spare(), "the system has none to give");
    let blocks = (0..10).take_while(|_| {
        state.drop_block();
        assert!(!state.wants_spare(), "it was not needed for long");
        state.blocks_used_at().is_some()
    });
    assert_eq!(blocks.count(), 1, "two blocks are given back one after the other");
}

#[test]
fn who_waits_for_all_is_told_of_a_read_that_ended_by_a_failure() {
    for seed in 0..50 {
        let late_max = Duration::from_millis(2);
        let behind = faulty(Faults { seed, enospc: 1.0, late: 1.0, late_max, ..Faults::default() });
        let on_disk = new_file();
        let file = behind.add(on_disk.as_raw_fd(), "out.h5", rules(1 << 20));
        behind.write(file, 0, &[1; 50], &label(), None).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| behind.settle(file));
            assert!(behind.read(file, 49, 1, || panic!("the bytes are not there")).is_err());
        });
        assert_eq!(behind.drain(file).unwrap_err().len(), 1);
        behind.forget(file).unwrap();
    }
}

#[test]
fn a_failure_that_was_told_is_over_while_others_are_under_way() {
    let full = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
    let options = Options { depth: 8, prefer: Prefer::Threads, threads: 1 };
    let mut state = State::new(engine::open(&options).unwrap());
    let file = state.add(full.as_raw_fd(), "full", rules(1 << 20));
    let elsewhere = state.submit_read(file, 5000, 10).unwrap();
    write_copied(&mut state, file, 0);
    let waits = state.submit_read(file, 50, 10).unwrap();
    state.begin();
    let mut done = Vec::new();
    while state.failure_in(file, 0, 100).is_none() {
        state.poll(&mut done);
        state.end(&mut done);
    }
    assert_eq!(state.is_ready(waits).unwrap_err().errno, Errno(libc::ENOSPC));
    assert_eq!(state.take_failures_in(file, &[(0, 10)]).len(), 1);
    let after = state.submit_read(file, 50, 10).unwrap();
    assert_eq!(state.is_ready(after), Ok(true));
    state.end_read(after);
    state.end_read(elsewhere);
    assert!(state.is_idle());
}

/// Writes until a copy is known to buy nothing: this test may be kept waiting itself.
fn hurry(behind: &WriteBehind, file: FileId) {
    while !behind.shared.state.lock().pace.is_direct(Instant::now()) {
        behind.write(file, 0, &[1; 50], &label(), None).unwrap();
        behind.drain(file).unwrap();
    }
}

#[test]
fn who_waits_right_after_its_writes_does_the_next_ones_itself() {
    let behind = WriteBehind::new().unwrap();
    let on_disk = new_file();
    let file = behind.add(on_disk.as_raw_fd(), "f", rules(1 << 20));
    assert!(!behind.write_through(file, 0, 1, || panic!("nothing is known")));
    hurry(&behind, file);
    let mut was_called = false;
    let fails = || {
        was_called = true;
        false
    };
    let is_written = behind.write_through(file, 0, 1 << 20, fails);
    assert_eq!((was_called, is_written), (true, false), "it is to be taken as any other");
    assert_eq!(behind.drain(file), Ok(()));
    hurry(&behind, file);
    let bytes = vec![7; 1 << 20];
    let mut fetched = None;
    let during = || {
        on_disk.write_all_at(&bytes, 0).unwrap();
        fetched = Some(behind.fetch(file, 0, 100));
        true
    };
    assert!(behind.write_through(file, 0, 1 << 20, during));
    assert_eq!(fetched, Some(Ok(0)), "nothing is read ahead of a write that goes on");
    assert_eq!(behind.forget(file), Ok(()), "what the device is handed is waited for");
}

#[test]
fn a_direct_write_waits_behind_others_as_any_does() {
    let late_max = Duration::from_millis(20);
    let behind = faulty(Faults { late: 1.0, late_max, ..Faults::default() });
    let on_disk = new_file();
    let file = behind.add(on_disk.as_raw_fd(), "f", rules(1 << 20));
    hurry(&behind, file);
    behind.write(file, 0, &[1; 50], &label(), None).unwrap();
    write_directly(&behind, file, &on_disk, 25, &[2; 50]);
    assert_eq!(behind.forget(file), Ok(()));
    let mut seen = [0; 75];
    on_disk.read_exact_at(&mut seen, 0).unwrap();
    assert_eq!((&seen[..25], &seen[25..]), (&[1; 25][..], &[2; 50][..]));
}
