//! Workers that die at every stage, sessions that end in every way.

mod support;

use std::time::{Duration, Instant};

use runtime::{
    Cause, Direction, Fault, Input, Kind, Options, Overrides, Session, State, Value, WaitEnd,
};
use support::{entered, options, spec, value, Folder, Rig, LONG};

fn is_alive(pid: u32) -> bool {
    // SAFETY: signal 0 only asks whether the process is there.
    unsafe { libc::kill(pid as i32, 0) == 0 }
}

fn kill(pid: u32, signal: i32) {
    // SAFETY: the process is a worker that this test started; it may be gone already.
    unsafe { libc::kill(pid as i32, signal) };
}

fn lost(rig: &Rig, handle: &runtime::Handle) -> String {
    match rig.cause(handle) {
        Cause::ExecutorLost(text) => text.to_string(),
        other => panic!("the worker was to be lost, not {other:?}"),
    }
}

#[test]
fn a_worker_that_dies_in_a_body_says_how() {
    let rig = Rig::new(1);
    let killed = lost(&rig, &rig.run("die", "signal:9", &[]));
    assert!(killed.starts_with("worker process "), "{killed}");
    assert!(killed.contains("killed by signal 9 (SIGKILL)"), "{killed}");
    assert!(lost(&rig, &rig.run("die", "signal:11", &[])).contains("signal 11 (SIGSEGV)"));
    assert!(lost(&rig, &rig.run("die", "3", &[])).contains("exited with code 3"));
    assert!(lost(&rig, &rig.run("io:die", "3", &[])).starts_with("I/O worker process"));
    assert_eq!(rig.text(&rig.run("echo", "goes on", &[])), "goes on");
    assert_eq!(rig.session.statistics().workers_lost, 4);
}

#[test]
fn a_task_whose_worker_died_is_retried() {
    let rig = Rig::new(1);
    let retries = Overrides { retries: Some(2), ..Overrides::default() };
    let future = rig.with_overrides("die_times", "2 signal:9", retries);
    assert_eq!(rig.text(&future), "at try 3");
}

#[test]
fn tasks_that_had_not_begun_do_not_notice() {
    let (rig, folder) = (Rig::new(1), Folder::new());
    // Many short runs, so that the scheduler sends some ahead.
    for _ in 0..50 {
        rig.text(&rig.run("echo", "x", &[]));
    }
    let doomed = rig.run("die", "signal:9", &[]);
    let behind: Vec<_> = (0..50).map(|n| rig.run("echo", &n.to_string(), &[])).collect();
    assert!(lost(&rig, &doomed).contains("SIGKILL"));
    for (n, future) in behind.iter().enumerate() {
        assert_eq!(rig.text(future), n.to_string());
    }
    drop(folder);
}

#[test]
fn what_was_reported_before_a_death_counts() {
    let rig = Rig::new(1);
    for _ in 0..20 {
        assert_eq!(rig.text(&rig.run("echo", "and die", &[])), "and die");
    }
}

#[test]
fn a_death_between_ready_and_the_first_task() {
    let folder = Folder::new();
    for stage in ["UNREADY", "READY"] {
        let flag = folder.0.join(stage);
        std::fs::write(&flag, "").unwrap();
        let mut options = options(2);
        options.worker_environment =
            vec![(format!("TEST_DIE_ONCE_{stage}").into(), flag.clone().into())];
        let rig = Rig::with(options);
        let all: Vec<_> = (0..200).map(|n| rig.run("echo", &n.to_string(), &[])).collect();
        rig.wait_all(&all);
        assert!(all.iter().all(|future| future.state() == State::Done), "{stage}");
    }
}

#[test]
fn memory_of_a_dead_worker_is_free() {
    let rig = Rig::new(1);
    let big = rig.run("big", "1000000 3", &[]);
    rig.text(&rig.run("hold", "", &[&big]));
    drop(big);
    assert!(lost(&rig, &rig.run("die_with_memory", "signal:9", &[])).contains("SIGKILL"));
    rig.text(&rig.run("echo", "x", &[]));
    assert_eq!(rig.session.statistics().store_bytes, 0);
}

#[test]
fn workers_that_cannot_start_end_the_session() {
    for (stage, command) in [("UNREADY", None), ("READY", None), ("", Some("/bin/false"))] {
        let mut options = options(2);
        options.worker_environment = vec![(format!("TEST_DIE_{stage}").into(), "1".into())];
        if let Some(command) = command {
            options.worker_command = vec![command.into()];
        }
        let session = Session::start(options).expect("the workers are started");
        let function = session.function(spec("echo"));
        let future = function.ok().and_then(|function| {
            let (arguments, inputs, files) = (value("x"), vec![], vec![]);
            let overrides = Overrides::default();
            let call =
                runtime::Call { function, arguments, inputs, files, builtin: None, overrides };
            session.spawn(call).ok()
        });
        if let Some(spawned) = future {
            let future = &spawned.returns[0];
            assert_eq!(future.wait(LONG, &mut || false), WaitEnd::Ready);
            let Some(Err(Fault::Session(text))) = future.outcome() else { panic!("no fault") };
            assert!(text.starts_with("workers cannot work: 5 in a row"), "{text}");
            assert!(text.contains("exited with code"), "{text}");
        }
        assert_ne!(session.drain(LONG, &mut || false), WaitEnd::TimedOut);
        session.stop(true);
        assert!(!session.is_alive());
        assert!(session.broken().is_some(), "{stage}");
    }
}

#[test]
fn killing_idle_workers_is_not_their_fault() {
    let rig = Rig::new(1);
    for _ in 0..12 {
        rig.session.worker_pids().into_iter().for_each(|pid| kill(pid, libc::SIGKILL));
        // The next task finds a new worker, or waits for one.
        assert_eq!(rig.text(&rig.run("io:echo", "x", &[])), "x");
    }
    // Without any task in between.
    let mut killed = std::collections::HashSet::new();
    while killed.len() < 24 {
        for pid in rig.session.worker_pids() {
            if killed.insert(pid) {
                kill(pid, libc::SIGKILL);
            }
        }
    }
    assert_eq!(rig.text(&rig.run("echo", "x", &[])), "x");
}

#[test]
fn a_task_that_takes_too_long_is_given_up() {
    let (rig, folder) = (Rig::new(1), Folder::new());
    for kind in ["gate", "io:gate"] {
        let pipe = folder.pipe(&kind.replace(':', "-"));
        let timeout = Overrides { timeout_ns: Some(Some(20_000_000)), ..Overrides::default() };
        let slow = rig.with_overrides(kind, pipe.to_str().unwrap(), timeout);
        assert_eq!(rig.cause(&slow), Cause::TimedOut(20_000_000));
        rig.drain();
        assert_eq!(rig.text(&rig.run(&kind.replace("gate", "echo"), "next", &[])), "next");
    }
}

#[test]
fn a_time_out_does_not_disturb_the_neighbours() {
    let (rig, folder) = (Rig::new(1), Folder::new());
    let (stuck, fine) = (folder.pipe("stuck"), folder.pipe("fine"));
    let neighbour = rig.run("io:gate", fine.to_str().unwrap(), &[]);
    let inside = entered(&fine);
    let timeout = Overrides { timeout_ns: Some(Some(20_000_000)), ..Overrides::default() };
    let slow = rig.with_overrides("io:gate", stuck.to_str().unwrap(), timeout);
    assert_eq!(rig.cause(&slow), Cause::TimedOut(20_000_000));
    // The other executor process takes new tasks while the old one still has the neighbour.
    assert_eq!(rig.text(&rig.run("io:echo", "next", &[])), "next");
    assert_eq!(neighbour.state(), State::Sent);
    drop(inside);
    assert_eq!(rig.text(&neighbour), "through");
    rig.drain();
}

#[test]
fn a_run_that_was_given_up_counts_for_nothing() {
    let (rig, folder) = (Rig::new(1), Folder::new());
    let (slow, fine) = (folder.pipe("slow"), folder.pipe("fine"));
    // The neighbour keeps the executor alive, so that the late run ends in its own time.
    let neighbour = rig.run("io:gate", fine.to_str().unwrap(), &[]);
    let beside = entered(&fine);
    let object = rig.session.object(&rig.session.put(value("a")).unwrap()).unwrap();
    let direction = Direction::Commutative;
    let word = format!("x {}", slow.to_str().unwrap());
    let inputs = vec![Input::Object { datum: object, direction }];
    let (timeout_ns, retries, returns) = (Some(Some(20_000_000)), Some(1), Some(0));
    let overrides = Overrides { timeout_ns, retries, returns, ..Overrides::default() };
    rig.submit(runtime::Call { overrides, ..rig.call("io:slow_append", &word, inputs) });
    let late = entered(&slow);
    while rig.session.worker_pids().len() == 2 {
        std::thread::yield_now(); // Until the time is up and the executor is replaced.
    }
    drop(late);
    assert_eq!(rig.text(&rig.session.current(object).unwrap()), "ax");
    drop(beside);
    assert_eq!(rig.text(&neighbour), "through");
    rig.drain();
}

#[test]
fn a_full_store_is_an_error_and_not_the_end() {
    let mut options = options(2);
    options.store_bytes_max = Some(4 << 20);
    let rig = Rig::with(options);
    let kept = rig.run("big", "3000000 1", &[]);
    rig.text(&kept);
    let refused = rig.raised(&rig.run("big", "3000000 1", &[]));
    assert!(refused.contains("the object store is full"), "{refused}");
    let error = rig.session.encode(b"", &[&vec![0; 3_000_000]]).unwrap_err();
    assert!(error.to_string().starts_with("object store full"), "{error}");
    // A record that is too long for a message, and no room for it either.
    let inputs: Vec<_> = (0..100_000).map(|_| &kept).collect();
    let refused = rig.raised(&rig.run("add", "0", &inputs));
    assert!(refused.starts_with("alongside-runtime-error\0object store full"), "{refused}");
    drop(inputs);
    drop(kept);
    rig.text(&rig.run("echo", "x", &[]));
    rig.wait_all(&[rig.run("big", "3000000 1", &[])]);
}

#[test]
fn a_session_may_stop_while_tasks_run() {
    let (rig, folder) = (Rig::new(2), Folder::new());
    let pipe = folder.pipe("gate");
    let running = rig.run("gate", pipe.to_str().unwrap(), &[]);
    let waiting = rig.run("join", "", &[&running]);
    let _inside = entered(&pipe);
    let pids = rig.session.worker_pids();
    assert_eq!(pids.len(), 3);
    let began = Instant::now();
    rig.session.stop(true);
    assert!(began.elapsed() < Duration::from_secs(30), "nobody waited for the gate");
    assert!(pids.iter().all(|pid| !is_alive(*pid)), "every process was ended and reaped");
    let Some(Err(Fault::Session(text))) = running.outcome() else { panic!("it was killed") };
    assert_eq!(&*text, "the session was closed before this task ended");
    assert_eq!(rig.cause(&waiting), Cause::Cancelled);
    rig.session.stop(true);
    rig.session.stop(false);
    assert_eq!(
        rig.session.drain(LONG, &mut || false),
        WaitEnd::Ended("the session is closed".into())
    );
}

#[test]
fn a_session_may_finish_its_tasks_first() {
    let rig = Rig::new(2);
    let all: Vec<_> = (0..300).map(|n| rig.run("echo", &n.to_string(), &[])).collect();
    rig.session.stop(false);
    assert!(all.iter().all(|future| future.state() == State::Done));
}

#[test]
fn nothing_is_left_of_a_session() {
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let mappings = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.contains("alongside-")).count()
    };
    if std::env::var("ALONGSIDE_TEST_ALONE").is_err() {
        // In a process of its own: other tests of this file have sessions, too.
        let program = std::env::current_exe().unwrap();
        let mut command = std::process::Command::new(program);
        command.args(["--exact", "nothing_is_left_of_a_session", "--test-threads=1"]);
        let run = command.env("ALONGSIDE_TEST_ALONE", "1").output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
        return;
    }
    let round = |own_threads| {
        let rig = Rig::new(2);
        let small = rig.run("echo", "x", &[]);
        rig.text(&small);
        let big = rig.run("big", "3000000 2", &[]);
        let outcome = rig.outcome(&big).unwrap();
        rig.text(&rig.run("add", "0", &[&big]));
        rig.session.stop(true);
        assert_eq!(outcome.as_bytes().iter().map(|b| u64::from(*b == 2)).sum::<u64>() / 1000, 3000);
        assert!(mappings() >= 1, "a value that is kept keeps its memory");
        drop((outcome, big));
        // A session that was closed and a future of it keep nothing but themselves.
        assert_eq!((mappings(), threads()), (0, own_threads));
        assert!(small.is_resolved() && !rig.session.is_alive());
    };
    let own_threads = threads();
    let round = || round(own_threads);
    round();
    let before = (descriptors(), threads(), mappings());
    assert_eq!(before.2, 0);
    for _ in 0..5 {
        round();
    }
    assert_eq!((descriptors(), threads(), mappings()), before);
}

#[test]
fn dropping_the_last_session_stops_it() {
    let rig = Rig::new(1);
    let value = rig.outcome(&rig.run("big", "100000 5", &[])).unwrap();
    let future = rig.run("echo", "x", &[]);
    let pids = rig.session.worker_pids();
    let second = rig.session.clone();
    drop(rig);
    assert!(second.is_alive());
    drop(second);
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
    assert!(future.is_resolved());
    assert_eq!(value.as_bytes().last(), Some(&5));
}

#[test]
fn a_forked_child_is_left_alone() {
    let rig = Rig::new(1);
    let done = rig.run("echo", "x", &[]);
    let big = rig.outcome(&rig.run("big", "100000 5", &[])).unwrap();
    rig.text(&done);
    let session = rig.session.clone();
    // SAFETY: the child only uses what this test says that it may use, and ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = session.spawn(rig.call("echo", "y", vec![])).is_err();
        let inert = !session.is_alive() && session.put(value("x")).is_err();
        let private = session.encode(b"", &[&vec![1; 1 << 20]]);
        let inert = inert && matches!(private, Ok(Value::Inline(_)));
        let read = big.as_bytes().last() == Some(&5) && done.is_resolved();
        session.stop(true);
        drop((done, big, session, rig));
        // SAFETY: ends the child without running the test harness.
        unsafe { libc::_exit(i32::from(!(refused && inert && read))) };
    }
    let mut status = 0;
    // SAFETY: the child was started above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(rig.text(&rig.run("echo", "still here", &[])), "still here");
}

#[test]
fn workers_take_signals_although_the_runtime_thread_does_not() {
    let rig = Rig::new(1);
    let status = rig.text(&rig.run("blocked_signals", "", &[]));
    let blocked = status.lines().find(|line| line.starts_with("SigBlk")).unwrap();
    assert_eq!(blocked.split_whitespace().nth(1), Some("0000000000000000"));
}

#[test]
fn workers_are_killed_at_random_and_nothing_is_lost() {
    let rig = Rig::new(2);
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    let mut all = Vec::new();
    let retries = || Overrides { retries: Some(1000), ..Overrides::default() };
    for round in 0..60 {
        for n in 0..50 {
            let name = if n % 3 == 0 { "io:add" } else { "add" };
            let call = rig.call(name, "1", vec![]);
            let mut call = runtime::Call { overrides: retries(), ..call };
            let big = rig.with_overrides("big", "20000 1", retries());
            call.inputs.push(runtime::Input::Handle(big));
            all.push(rig.submit(call).returns.pop().unwrap());
        }
        let pids = rig.session.worker_pids();
        if !pids.is_empty() {
            kill(pids[random(pids.len())], libc::SIGKILL);
        }
        if round % 10 == 9 {
            rig.wait_all(&all);
        }
    }
    rig.wait_all(&all);
    for future in &all {
        assert_eq!(rig.text(future), "20001");
    }
    drop(all);
    rig.text(&rig.with_overrides("echo", "x", retries()));
    rig.drain();
    assert!(rig.session.is_alive());
    assert_eq!(rig.session.statistics().store_bytes, 0);
}

#[test]
fn a_stopped_worker_is_not_a_dead_one() {
    let rig = Rig::new(1);
    rig.text(&rig.run("echo", "x", &[]));
    let pids = rig.session.worker_pids();
    pids.iter().for_each(|pid| kill(*pid, libc::SIGSTOP));
    let future = rig.run("echo", "later", &[]);
    assert_eq!(future.wait(Some(Duration::from_millis(1)), &mut || false), WaitEnd::TimedOut);
    pids.iter().for_each(|pid| kill(*pid, libc::SIGCONT));
    assert_eq!(rig.text(&future), "later");
}

#[test]
fn default_options_are_good() {
    let options = Options::default();
    assert!(options.workers >= 1 && options.io_executors >= 8);
    assert_eq!(options.storage.layers[0].name, "default");
    let value = Value::inline(&b"x"[..]);
    assert!(!value.is_empty());
    assert_eq!(spec("x").kind, Kind::Compute);
}
