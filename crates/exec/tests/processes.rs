//! Real worker processes: round trips, full rings, allocations, pins, recalls, death.

#[path = "support/mod.rs"]
mod support;

use exec::exit::Exit;
use exec::wire::{Blob, Credit, InputMode, Price, Run, ToWorker};
use support::{run, Driver, Got};

fn done(task: u64, outputs: Vec<Vec<u8>>) -> Got {
    Got::Done { task, outputs, held: Vec::new() }
}

/// Bytes that differ from task to task.
fn bytes_of(task: u64, len: usize) -> Vec<u8> {
    (0..len).map(|at| (task as usize * 31 + at) as u8).collect()
}

fn signal(driver: &Driver, signal: i32) {
    // SAFETY: the worker is ours and was not reaped.
    assert_eq!(unsafe { libc::kill(driver.worker.pid() as i32, signal) }, 0);
}

#[test]
fn one_after_another() {
    let mut driver = Driver::start(1);
    assert_eq!(driver.next(), Got::Ready);
    for task in 0..2_000 {
        let argument = bytes_of(task, task as usize % 300);
        driver.send(task, 1, &argument);
        assert_eq!(driver.next(), done(task, vec![argument]));
    }
}

#[test]
fn bursts_that_overflow_both_rings() {
    for slots in [1, 8] {
        let mut driver = Driver::start(slots);
        assert_eq!(driver.next(), Got::Ready);
        // 4000 records of 1000 bytes: 16 rings each way, while nobody receives.
        signal(&driver, libc::SIGSTOP);
        for task in 0..4_000 {
            driver.send(task, 1, &bytes_of(task, 1_000));
        }
        assert!(driver.worker.backlog() > 0);
        signal(&driver, libc::SIGCONT);
        let mut seen = vec![false; 4_000];
        for _ in 0..4_000 {
            let Got::Done { task, outputs, .. } = driver.next() else { panic!("only ends") };
            assert_eq!(outputs, [bytes_of(task, 1_000)]);
            assert!(!std::mem::replace(&mut seen[task as usize], true), "ended twice");
        }
        assert_eq!(driver.worker.backlog(), 0);
        assert_eq!(driver.worker.sent().count(), 0);
    }
}

#[test]
fn stop_ends_all_threads_after_what_was_sent() {
    for slots in [1, 4, 64] {
        let mut driver = Driver::start(slots);
        for task in 0..100 {
            driver.send(task, 0, &[]);
        }
        driver.worker.send(&ToWorker::Stop).expect("short");
        let mut ends = 0;
        loop {
            match driver.next() {
                Got::Ready => {}
                Got::Done { .. } => ends += 1,
                Got::End(1) => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(ends, 100);
        assert_eq!(driver.worker.reap(), Some(Exit::Code(0)));
    }
}

#[test]
fn large_results_are_placed() {
    for slots in [1, 6] {
        let mut driver = Driver::start(slots);
        assert_eq!(driver.next(), Got::Ready);
        for task in 0..64 {
            driver.send(task, 6, &(100_000 + task).to_le_bytes());
        }
        for _ in 0..64 {
            let Got::Done { task, outputs, .. } = driver.next() else { panic!("only ends") };
            assert_eq!(outputs, [vec![7; 100_000 + task as usize]]);
        }
    }
}

#[test]
fn memory_asked_for_ahead_is_used_where_it_fits_and_else_given_back() {
    let mut driver = Driver::start(1);
    assert_eq!(driver.next(), Got::Ready);
    let numbers = |all: &[u64]| all.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>();
    for (task, asked, len, is_used) in [
        (1, 80_000, 80_000, true),
        (2, 80_000, 70_000, true),
        (3, 80_000, 69_999, false),
        (4, 80_000, 80_001, false),
        (5, 80_000, 100, false),
        (6, 100, 80_000, true), // so little is not asked for
    ] {
        driver.send(task, 16, &numbers(&[asked, len]));
        if !is_used {
            assert!(matches!(driver.next(), Got::Free(_)), "task {task}");
        }
        assert_eq!(driver.next(), done(task, vec![vec![9; len as usize]]));
    }
    driver.send(7, 16, &numbers(&[80_000]));
    assert!(matches!(driver.next(), Got::Free(_)), "no value came");
    assert_eq!(driver.next(), done(7, Vec::new()));
    driver.full_at = 0;
    driver.send(8, 16, &numbers(&[80_000, 100]));
    assert_eq!(driver.next(), done(8, vec![vec![9; 100]]));
}

#[test]
fn a_full_store_is_told_to_the_task() {
    let mut driver = Driver::start(1);
    assert_eq!(driver.next(), Got::Ready);
    driver.full_at = 0;
    driver.send(5, 6, &50_000u64.to_le_bytes());
    let exception = b"the object store is full: there is no room for 50000 more bytes".to_vec();
    assert_eq!(driver.next(), Got::Raised { task: 5, exception, held: Vec::new() });
}

#[test]
fn an_end_too_long_for_a_ring_goes_by_the_heap() {
    let mut driver = Driver::start(1);
    assert_eq!(driver.next(), Got::Ready);
    let mut long = run(1, 10, &[]);
    long.returns = 200;
    driver.worker.send_run(&mut long).expect("room");
    assert_eq!(driver.next(), done(1, vec![vec![1; 1000]; 200]));
    assert!(matches!(driver.next(), Got::Free(_)), "the record's own place is given back");
}

#[test]
fn a_run_too_long_for_a_ring_goes_by_the_heap() {
    let mut driver = Driver::start(1);
    assert_eq!(driver.next(), Got::Ready);
    let value = [3; 100];
    let mut long = run(1, 12, &[]);
    long.inputs = (0..10_000).map(|_| (InputMode::Read, Blob::Inline(&value))).collect();
    let Err(exec::process::SendError::TooLarge(large)) = driver.worker.send_run(&mut long) else {
        panic!("it is too long");
    };
    let room = large.bytes as u64;
    // SAFETY: nothing else in this test uses the heap.
    unsafe { driver.worker.send_run_placed(&mut long, 4096, room).expect("room") };
    assert_eq!(driver.next(), done(1, vec![1_000_000u64.to_le_bytes().to_vec()]));
}

#[test]
fn exceptions_and_runs_without_an_end_are_told() {
    let mut driver = Driver::start(1);
    assert_eq!(driver.next(), Got::Ready);
    driver.send(1, 5, b"oops");
    driver.send(2, 9, &[]);
    let raised = |task, text: &[u8]| Got::Raised { task, exception: text.into(), held: vec![] };
    assert_eq!(driver.next(), raised(1, b"oops"));
    assert_eq!(driver.next(), raised(2, b""));
}

#[test]
fn a_worker_that_cannot_tell_how_a_run_ended_ends() {
    let mut driver = Driver::start(1);
    assert_eq!(driver.next(), Got::Ready);
    let offset = driver.place(&[5; 100]);
    let room_offset = driver.place(&[0; 1 << 20]);
    driver.full_at = 0;
    let mut dropped = run(1, 9, &[]);
    let input = (InputMode::Read, Blob::Placed { offset, len: 100 });
    dropped.inputs = std::iter::repeat_n(input, 10_000).collect();
    // SAFETY: a range of its own, which stays until the end.
    unsafe { driver.worker.send_run_placed(&mut dropped, room_offset, 1 << 20).expect("room") };
    assert_eq!(driver.next(), Got::End(1));
    assert_eq!(driver.worker.reap(), Some(Exit::Code(exec::worker::EXIT_UNTOLD)));
    assert_eq!(driver.worker.begun().len(), 1, "and the driver knows whose run it was");
}

#[test]
fn a_child_that_a_task_forked_leaves_the_rings_alone() {
    for slots in [1, 4] {
        let mut driver = Driver::start(slots);
        assert_eq!(driver.next(), Got::Ready);
        // What it comes back with fits into a record, or needs memory of the driver.
        for (task, len) in [(1, 8_u64), (2, 50_000)] {
            driver.send(task, 15, &len.to_le_bytes());
            let code = exec::worker::EXIT_FORKED as u8;
            assert_eq!(driver.next(), done(task, vec![vec![code]]));
        }
        driver.send(3, 1, b"goes on");
        assert_eq!(driver.next(), done(3, vec![b"goes on".to_vec()]));
    }
}

#[test]
fn functions_come_before_their_runs() {
    let mut driver = Driver::start(4);
    assert_eq!(driver.next(), Got::Ready);
    let body = vec![9; 20_000];
    let offset = driver.place(&body);
    let blob = Blob::Placed { offset, len: 20_000 };
    let function = ToWorker::Function { id: 11, name: "it", asynchronous: false, blob };
    driver.worker.send(&function).expect("short");
    driver.send(1, 11, &[]);
    assert_eq!(driver.next(), done(1, vec![body]));
    driver.worker.send(&ToWorker::ForgetFunction { id: 11 }).expect("short");
    driver.send(2, 0, &[]);
    assert_eq!(driver.next(), done(2, Vec::new()));
}

#[test]
fn views_that_outlive_their_task_are_held_once_and_unpinned_once() {
    let mut driver = Driver::start(1);
    assert_eq!(driver.next(), Got::Ready);
    let offset = driver.place(&[5; 70_000]);
    let blob = Blob::Placed { offset, len: 70_000 };
    for (task, expected) in [(1, vec![offset]), (2, Vec::new())] {
        let mut keep = run(task, 3, &[]);
        keep.inputs = [(InputMode::Read, blob)].into_iter().collect();
        driver.worker.send_run(&mut keep).expect("room");
        assert_eq!(driver.next(), Got::Done { task, outputs: Vec::new(), held: expected });
    }
    driver.send(3, 4, &[]);
    assert_eq!(driver.next(), Got::Unpin(vec![offset]));
    assert_eq!(driver.next(), done(3, Vec::new()));
    let mut reads = run(4, 1, &[]);
    reads.arguments = blob;
    driver.worker.send_run(&mut reads).expect("room");
    assert_eq!(driver.next(), done(4, vec![vec![5; 70_000]]));
}

#[test]
fn each_run_is_either_recalled_or_ended() {
    for slots in [1, 4] {
        let mut driver = Driver::start(slots);
        assert_eq!(driver.next(), Got::Ready);
        let (mut ended, mut recalled) = (Vec::new(), Vec::new());
        for round in 0..200 {
            let tasks: Vec<u64> = (round * 20..round * 20 + 20).collect();
            let claims: Vec<_> = tasks.iter().map(|task| driver.send(*task, 0, &[])).collect();
            if round % 2 == 1 {
                let Got::Done { task, .. } = driver.next() else { panic!("only ends") };
                ended.push(task);
            }
            // From the back, against a worker that takes from the front.
            for (task, claim) in tasks.iter().zip(claims).rev() {
                if driver.worker.recall(claim) {
                    recalled.push(*task);
                }
                assert!(!driver.worker.recall(claim), "only once");
            }
            while ended.len() + recalled.len() < round as usize * 20 + 20 {
                let Got::Done { task, .. } = driver.next() else { panic!("only ends") };
                ended.push(task);
            }
        }
        assert!(!recalled.is_empty() && !ended.is_empty(), "both sides win some");
        let mut all = [ended, recalled].concat();
        all.sort_unstable();
        assert_eq!(all, (0..4_000).collect::<Vec<_>>());
    }
}

#[test]
fn a_stream_is_granted_more_before_its_run_is_begun() {
    for placed in [false, true] {
        let mut driver = Driver::start(1);
        assert_eq!(driver.next(), Got::Ready);
        signal(&driver, libc::SIGSTOP);
        let price = Price { least: 1, most: 1 };
        let stream = Some(Credit { made: 3, spent: 3, granted: 3, closed: false, price });
        let mut run = Run { stream, ..run(1, 13, b"") };
        let claim = if placed {
            let offset = driver.place(&[0; 4096]);
            // SAFETY: a range of its own, which stays until the end.
            unsafe { driver.worker.send_run_placed(&mut run, offset, 4096) }
        } else {
            driver.worker.send_run(&mut run)
        };
        let claim = claim.expect("room for a task").0;
        let granted = ToWorker::Granted { claim, granted: 5, closed: false };
        driver.worker.send(&granted).expect("short");
        signal(&driver, libc::SIGCONT);
        assert_eq!(driver.next(), done(1, vec![5_u64.to_le_bytes().to_vec()]), "{placed}");
    }
}

#[test]
fn what_a_producer_waits_for_its_consumers_is_no_time_that_it_runs() {
    let mut driver = Driver::start(1);
    assert_eq!(driver.next(), Got::Ready);
    let price = Price { least: 1, most: 1 };
    let stream = Some(Credit { made: 3, spent: 3, granted: 3, closed: false, price });
    let claim = driver.worker.send_run(&mut Run { stream, ..run(1, 14, b"") }).expect("room").0;
    let Got::Stalled { granted: 3, until_ns } = driver.next() else { panic!("it waits") };
    let goes_on_ns = exec::now_ns();
    assert!(until_ns <= goes_on_ns);
    driver.worker.send(&ToWorker::Granted { claim, granted: 5, closed: false }).expect("short");
    assert_eq!(driver.next(), done(1, Vec::new()));
    assert!(driver.last_since_ns >= goes_on_ns);
}

#[test]
fn the_begun_are_known_after_a_kill() {
    let mut driver = Driver::start(1);
    assert_eq!(driver.next(), Got::Ready);
    driver.send(1, 0, &[]);
    driver.send(2, 2, &[]);
    driver.send(3, 0, &[]);
    let recalled = driver.send(4, 0, &[]);
    assert_eq!(driver.next(), done(1, Vec::new()));
    assert_eq!(driver.next(), Got::Released { task: 2 });
    assert!(driver.worker.recall(recalled));
    driver.worker.kill();
    assert_eq!(driver.next(), Got::End(1));
    assert_eq!(driver.worker.reap(), Some(Exit::Signal(libc::SIGKILL)));
    let begun: Vec<u64> = driver.worker.begun().iter().map(|sent| sent.task).collect();
    let sent: Vec<u64> = driver.worker.sent().map(|sent| sent.task).collect();
    assert_eq!((begun, sent), (vec![2], vec![2, 3]));
}

#[test]
fn a_crash_in_the_middle_of_many_says_which_had_begun() {
    for slots in [1, 4] {
        let mut driver = Driver::start(slots);
        assert_eq!(driver.next(), Got::Ready);
        for task in 0..500 {
            driver.send(task, u64::from(task == 250) * 7, &[]);
        }
        let mut ended = std::collections::BTreeSet::new();
        loop {
            match driver.next() {
                Got::Done { task, .. } => assert!(ended.insert(task)),
                Got::End(1) => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(driver.worker.wait(), Exit::Signal(libc::SIGABRT));
        let begun: Vec<u64> = driver.worker.begun().iter().map(|sent| sent.task).collect();
        assert!(begun.contains(&250) && begun.len() <= slots as usize, "{begun:?}");
        assert!(begun.iter().all(|task| !ended.contains(task)));
        assert_eq!(ended.len() + driver.worker.sent().count(), 500);
    }
}

#[test]
fn areas_are_used_again_and_many_workers_share_a_driver() {
    let mut driver = Driver::start(1);
    assert_eq!(driver.next(), Got::Ready);
    for round in 0..5 {
        driver.send(round, 2, &[]);
        assert_eq!(driver.next(), Got::Released { task: round });
        driver.worker.kill();
        assert_eq!(driver.next(), Got::End(1));
        driver.worker = driver.pool.spawn(&support::spec(1), 1).expect("a worker");
        assert_eq!(driver.next(), Got::Ready);
        assert_eq!(driver.worker.sent().count(), 0);
    }
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let driver = Driver::start(1);
    let mut spec = support::spec(1);
    spec.command = vec!["/no/such/program".into()];
    let error = driver.pool.spawn(&spec, 2).expect_err("it is not there").to_string();
    assert!(error.starts_with("cannot start a worker: starting the program: No such"), "{error}");
}

#[test]
fn limiters_and_names_reach_the_worker() {
    let driver = Driver::start(1);
    let limiters = driver.pool.limiters();
    let limit = ops::Curve::flat(1_000_000);
    limiters.set(3, Some(&limit));
    assert_eq!((limiters.limit(3), limiters.limit(4)), (Some(limit), None));
    assert_eq!(limiters.writer(4).acquire(u64::MAX), 0);
    assert!(limiters.writer(3).acquire(1_000_000) > 900_000_000);
    let error = exec::worker::Worker::from_env().expect_err("a test is not a worker");
    assert!(error.to_string().contains("ALONGSIDE_WORKER is not set"));
}

#[test]
fn many_threads_wait_for_room_memory_and_runs_at_once() {
    let mut driver = Driver::start(16);
    assert_eq!(driver.next(), Got::Ready);
    signal(&driver, libc::SIGSTOP);
    // Large results (allocations), short ones that fill the ring, and empty ones, mixed.
    for task in 0..3_000 {
        match task % 3 {
            0 => driver.send(task, 6, &20_000u64.to_le_bytes()),
            1 => driver.send(task, 1, &[1; 5_000]),
            _ => driver.send(task, 0, &[]),
        };
    }
    signal(&driver, libc::SIGCONT);
    let mut lengths = [0; 3];
    for _ in 0..3_000 {
        let Got::Done { task, outputs, .. } = driver.next() else { panic!("only ends") };
        lengths[task as usize % 3] += outputs.iter().map(Vec::len).sum::<usize>();
    }
    assert_eq!(lengths, [20_000_000, 5_000_000, 0]);
}
