//! Tasks through a whole session: values, order, failures, cancellation.

mod support;

use std::time::Duration;

use runtime::{
    Cause, Direction, Fault, Input, Kind, OnFailure, Overrides, Session, SpawnError, State, Value,
    WaitEnd, WaitFor,
};
use support::{entered, options, spec, text_of, value, Folder, Rig, LONG};

#[test]
fn a_value_goes_there_and_back() {
    let rig = Rig::new(1);
    let future = rig.run("echo", "hello there", &[]);
    assert_eq!(rig.text(&future), "hello there");
    assert_eq!(future.state(), State::Done);
}

#[test]
fn a_chain_of_ten_thousand() {
    let rig = Rig::new(2);
    let mut last = rig.session.put(value("0")).unwrap();
    for _ in 0..10_000 {
        last = rig.run("add", "1", &[&last]);
    }
    assert_eq!(rig.text(&last), "10000");
}

#[test]
fn fan_out_and_in() {
    let rig = Rig::new(2);
    let one = rig.session.put(value("1")).unwrap();
    let many: Vec<_> = (0..1000).map(|n| rig.run("add", &n.to_string(), &[&one])).collect();
    let inputs: Vec<_> = many.iter().collect();
    let sum = rig.run("add", "0", &inputs);
    assert_eq!(rig.text(&sum), (0..1000u64).map(|n| n + 1).sum::<u64>().to_string());
}

#[test]
fn six_thousand_placed_inputs_are_more_than_a_message_takes() {
    let rig = Rig::new(2);
    let big = rig.run("big", "20000 1", &[]);
    let inputs: Vec<_> = (0..6000).map(|_| &big).collect();
    assert_eq!(rig.text(&rig.run("add", "0", &inputs)), (6000u64 * 20_000).to_string());
    rig.drain();
    drop(big);
    rig.run("echo", "x", &[]).wait(LONG, &mut || false);
}

#[test]
fn many_returns_are_more_than_a_message_takes() {
    let rig = Rig::new(1);
    let overrides = Overrides { returns: Some(500), ..Overrides::default() };
    let call = runtime::Call { overrides, ..rig.call("many", "", vec![]) };
    let returns = rig.submit(call).returns;
    assert_eq!(returns.len(), 500);
    assert!(rig.text(&returns[499]).starts_with("499:xxx"));
}

#[test]
fn a_large_value_is_seen_by_the_next_task_and_then_freed() {
    let rig = Rig::new(2);
    let big = rig.run("big", "3000000 2", &[]);
    let sum = rig.run("add", "0", &[&big]);
    assert_eq!(rig.text(&sum), "6000000");
    let seen = rig.outcome(&big).unwrap();
    assert!(matches!(seen, Value::Placed(_)));
    assert!(rig.session.statistics().store_bytes >= 3_000_000);
    drop((seen, big));
    // The next task that is over has told the scheduler of the dropped name.
    rig.text(&rig.run("echo", "x", &[]));
    assert_eq!(rig.session.statistics().store_bytes, 0);
    assert!(rig.session.statistics().store_bytes_peak >= 3_000_000);
}

#[test]
fn what_a_worker_holds_stays() {
    let rig = Rig::new(1);
    let big = rig.run("big", "1000000 3", &[]);
    assert_eq!(rig.text(&rig.run("hold", "", &[&big])), "held");
    drop(big);
    rig.text(&rig.run("echo", "x", &[]));
    assert!(rig.session.statistics().store_bytes >= 1_000_000, "the worker looks at it");
    assert_eq!(rig.text(&rig.run("let_go", "", &[])), "let go");
    rig.text(&rig.run("echo", "x", &[]));
    assert_eq!(rig.session.statistics().store_bytes, 0);
}

#[test]
fn a_failure_cancels_those_that_need_it_and_no_others() {
    let rig = Rig::new(2);
    let bad = rig.run("fail", "out of luck", &[]);
    let next = rig.run("join", "", &[&bad]);
    let last = rig.run("join", "", &[&next]);
    let other = rig.run("echo", "fine", &[]);
    assert_eq!(rig.raised(&last), "out of luck");
    let Err(Fault::Failed(failure)) = last.peek().unwrap() else { panic!("it failed") };
    let names: Vec<&str> = std::iter::successors(Some(&failure), |f| f.from.as_ref())
        .map(|failure| &*failure.name)
        .collect();
    assert_eq!(names, ["join", "join", "fail"]);
    assert_eq!(rig.text(&other), "fine");
    // After the failure: refused futures fail at once.
    assert_eq!(rig.raised(&rig.run("join", "", &[&last])), "out of luck");
    let figures = rig.session.statistics();
    assert_eq!((figures.failed, figures.done, figures.cancelled), (4, 1, 0));
}

#[test]
fn the_first_failure_that_nobody_saw() {
    let rig = Rig::new(1);
    assert!(rig.session.first_failure().is_none());
    let first = rig.run("fail", "one", &[]);
    let second = rig.run("fail", "two", &[]);
    let dependent = rig.run("join", "", &[&first]);
    let quiet = Overrides { on_failure: Some(OnFailure::CancelDependents), ..Overrides::default() };
    let quiet = rig.with_overrides("fail", "three", quiet);
    rig.wait_all(&[first.clone(), second.clone(), dependent.clone(), quiet.clone()]);
    let report = rig.session.first_failure().unwrap();
    assert_eq!((&*report.failure.name, report.unseen), ("fail", 2));
    dependent.outcome();
    assert_eq!(rig.session.first_failure().unwrap().unseen, 1, "its root was seen");
    second.outcome();
    assert!(rig.session.first_failure().is_none());
}

#[test]
fn a_failure_without_any_future_is_not_lost() {
    let rig = Rig::new(1);
    let overrides = Overrides { returns: Some(0), ..Overrides::default() };
    let call = runtime::Call { overrides, ..rig.call("fail", "unseen", vec![]) };
    rig.submit(call);
    rig.drain();
    assert_eq!(&*rig.session.first_failure().unwrap().failure.name, "fail");
}

#[test]
fn an_ignored_failure_gives_none() {
    let rig = Rig::new(1);
    let ignore = Overrides { on_failure: Some(OnFailure::Ignore), ..Overrides::default() };
    let bad = rig.with_overrides("fail", "never mind", ignore);
    assert_eq!(rig.text(&bad), "none");
    assert_eq!(rig.text(&rig.run("join", "", &[&bad])), "none");
    assert!(rig.session.first_failure().is_none());
}

#[test]
fn retries() {
    let rig = Rig::new(1);
    let tries = |n| Overrides { retries: Some(n), ..Overrides::default() };
    let enough = rig.with_overrides("fail_times", "3", tries(3));
    assert_eq!(rig.text(&enough), "at try 4");
    let few = rig.with_overrides("fail_times", "3", tries(2));
    assert_eq!(rig.raised(&few), "try 3");
    let figures = rig.session.statistics();
    assert_eq!(figures.functions[0].runs, 7);
}

#[test]
fn cancelling() {
    let (rig, folder) = (Rig::new(1), Folder::new());
    let pipe = folder.pipe("gate");
    let running = rig.submit(rig.call("gate", pipe.to_str().unwrap(), vec![]));
    let waiting = rig.submit(rig.call("echo", "never", vec![]));
    let needs = rig.run("join", "", &[&waiting.returns[0]]);
    let inside = entered(&pipe);
    assert_eq!(running.returns[0].state(), State::Sent);
    assert!(!rig.session.cancel(running.task), "its body has begun");
    assert!(rig.session.cancel(waiting.task));
    assert!(!rig.session.cancel(waiting.task), "it is over");
    assert_eq!(rig.cause(&waiting.returns[0]), Cause::Cancelled);
    assert_eq!(needs.state(), State::Cancelled);
    let many: Vec<_> = (0..100).map(|_| rig.run("echo", "x", &[])).collect();
    assert_eq!(rig.session.cancel_all(), 100);
    assert!(many.iter().all(|handle| handle.state() == State::Cancelled));
    drop(inside);
    assert_eq!(rig.text(&running.returns[0]), "through");
    assert!(rig.session.first_failure().is_none(), "a cancellation is no failure");
}

#[test]
fn objects_change_in_order() {
    let rig = Rig::new(2);
    let initial = rig.session.put(value("a")).unwrap();
    let object = rig.session.object(&initial).unwrap();
    let write = |word: &str, direction| {
        let overrides = Overrides { returns: Some(0), ..Overrides::default() };
        let inputs = vec![Input::Object { datum: object, direction }];
        rig.submit(runtime::Call { overrides, ..rig.call("append", word, inputs) });
    };
    write("b", Direction::InOut);
    let middle = rig.session.current(object).unwrap();
    write("c", Direction::InOut);
    assert_eq!(rig.text(&rig.session.current(object).unwrap()), "abc");
    assert_eq!(rig.text(&middle), "ab");
    assert_eq!(rig.text(&initial), "a");
    for word in ["x", "y", "z"] {
        write(word, Direction::Commutative);
    }
    let grouped = rig.text(&rig.session.current(object).unwrap());
    let mut letters: Vec<char> = grouped.chars().collect();
    letters.sort_unstable();
    assert!(grouped.starts_with("abc") && letters.iter().collect::<String>() == "abcxyz");
    write("!", Direction::Out);
    assert_eq!(rig.text(&rig.session.current(object).unwrap()), "none!");
    rig.session.forget_datum(object);
    assert!(rig.session.current(object).is_err());
}

#[test]
fn members_of_a_group_share_one_copy() {
    let rig = Rig::new(2);
    let base = rig.session.encode(b"", &[&[0u8; 8]]).unwrap();
    assert!(matches!(base, Value::Inline(_)), "small, and placed for the group all the same");
    let initial = rig.session.put(base).unwrap();
    let object = rig.session.object(&initial).unwrap();
    for at in 0..8 {
        let inputs = vec![Input::Object { datum: object, direction: Direction::Concurrent }];
        let overrides = Overrides { returns: Some(0), ..Overrides::default() };
        let call = rig.call("poke", &format!("{at} {}", at + 1), inputs);
        rig.submit(runtime::Call { overrides, ..call });
    }
    let sum = rig.run("add", "0", &[&rig.session.current(object).unwrap()]);
    assert_eq!(rig.text(&sum), "36");
    assert_eq!(rig.text(&rig.run("add", "0", &[&initial])), "0", "the base is as it was");
}

#[test]
fn an_early_output_frees_its_readers() {
    let (rig, folder) = (Rig::new(2), Folder::new());
    let pipe = folder.pipe("gate");
    let early = rig.run("release", pipe.to_str().unwrap(), &[]);
    assert_eq!(rig.text(&rig.run("join", "", &[&early])), "early");
    assert_eq!(rig.session.statistics().live, 1, "the producer runs on");
    drop(entered(&pipe));
    rig.drain();
    assert_eq!(rig.text(&early), "early");
}

#[test]
fn waits_end_when_they_should() {
    let (rig, folder) = (Rig::new(2), Folder::new());
    let pipe = folder.pipe("gate");
    let slow = rig.run("gate", pipe.to_str().unwrap(), &[]);
    let quick = rig.run("echo", "quick", &[]);
    let both = [slow.clone(), quick.clone()];
    let wait = |until, timeout| rig.session.wait(&both, until, timeout, &mut || false);
    assert_eq!(wait(WaitFor::Any, LONG), WaitEnd::Ready);
    assert_eq!(rig.text(&quick), "quick");
    assert_eq!(wait(WaitFor::All, Some(Duration::from_millis(1))), WaitEnd::TimedOut);
    assert_eq!(wait(WaitFor::All, Some(Duration::ZERO)), WaitEnd::TimedOut);
    assert_eq!(rig.session.drain(Some(Duration::from_millis(1)), &mut || false), WaitEnd::TimedOut);
    drop(entered(&pipe));
    assert_eq!(wait(WaitFor::All, LONG), WaitEnd::Ready);
    rig.drain();
    assert_eq!(rig.session.wait(&[], WaitFor::All, None, &mut || false), WaitEnd::Ready);
}

#[test]
fn a_signal_interrupts_a_wait() {
    extern "C" fn nothing(_: i32) {}
    let (rig, folder) = (Rig::new(1), Folder::new());
    // SAFETY: the handler does nothing; without SA_RESTART the wait is interrupted.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
    let pipe = folder.pipe("gate");
    let slow = rig.run("gate", pipe.to_str().unwrap(), &[]);
    // SAFETY: gives the identifier of this thread.
    let me = unsafe { libc::pthread_self() } as usize;
    let over = std::sync::atomic::AtomicBool::new(false);
    let mut asked = 0;
    let end = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Acquire) {
                // SAFETY: the thread is waited for by this scope, so it exists.
                unsafe { libc::pthread_kill(me as libc::pthread_t, libc::SIGUSR1) };
                std::thread::yield_now();
            }
        });
        let end = slow.wait(LONG, &mut || {
            asked += 1;
            asked == 3
        });
        over.store(true, std::sync::atomic::Ordering::Release);
        end
    });
    assert_eq!((end, asked), (WaitEnd::Interrupted, 3));
    drop(entered(&pipe));
    assert_eq!(rig.text(&slow), "through");
}

#[test]
fn notifications_come_once_each() {
    let rig = Rig::new(2);
    let futures: Vec<_> = (0..50u64).map(|tag| (tag, rig.run("echo", "x", &[]))).collect();
    for (tag, future) in &futures {
        rig.session.notify(future, *tag);
    }
    rig.session.notify(&futures[0].1, 50);
    let mut tags: Vec<u64> =
        (0..51).map(|_| rig.session.next_notification().expect("alive")).collect();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..51));
    let listener = {
        let session = rig.session.clone();
        std::thread::spawn(move || session.next_notification())
    };
    rig.session.stop(true);
    assert_eq!(listener.join().unwrap(), None);
}

#[test]
fn functions_can_be_forgotten() {
    let rig = Rig::new(1);
    let id = rig.session.function(spec("echo")).unwrap();
    let call = runtime::Call { function: id, ..rig.call("echo", "last", vec![]) };
    let future = rig.submit(call.clone()).returns.pop().unwrap();
    rig.session.forget_function(id);
    assert_eq!(rig.text(&future), "last");
    assert_eq!(rig.session.spawn(call).unwrap_err(), SpawnError::UnknownFunction(id));
}

#[test]
fn calls_that_make_no_sense() {
    let (rig, other) = (Rig::new(1), Rig::new(1));
    let foreign = other.session.put(value("x")).unwrap();
    let call = rig.call("join", "", vec![Input::Handle(foreign)]);
    assert_eq!(rig.session.spawn(call).unwrap_err(), SpawnError::OtherSession { input: 0 });
    let overrides = Overrides { cpus: Some(2), ..Overrides::default() };
    let call = runtime::Call { overrides, ..rig.call("echo", "", vec![]) };
    assert!(matches!(rig.session.spawn(call), Err(SpawnError::Refused(_))));
    rig.session.stop(false);
    let call = runtime::Call { function: 1, ..other.call("echo", "", vec![]) };
    let Err(SpawnError::Session(error)) = rig.session.spawn(call) else { panic!("it is closed") };
    assert_eq!(error.to_string(), "the session is closed");
}

#[test]
fn options_that_make_no_sense() {
    let refused = |change: fn(&mut runtime::Options)| {
        let mut options = options(1);
        change(&mut options);
        Session::start(options).map(|_| ()).unwrap_err().to_string()
    };
    assert!(refused(|o| o.workers = 0).contains("workers is 0; it must be from 1 to"));
    assert!(refused(|o| o.io_executors = 1 << 20).contains("io_executors"));
    assert!(refused(|o| o.worker_command.clear()).contains("worker_command"));
    assert!(refused(|o| o.store_bytes_max = Some(0)).contains("limit is 0"));
    let nowhere = |o: &mut runtime::Options| o.storage.layers[0].path = "/no/such/folder".into();
    assert!(refused(nowhere).contains("layer \"default\": /no/such/folder"));
    let missing = |o: &mut runtime::Options| o.worker_command = vec!["/no/such/program".into()];
    assert!(refused(missing).contains("/no/such/program") || refused(missing).contains("starting"));
}

#[test]
fn io_tasks_and_compute_tasks_overlap() {
    let rig = Rig::new(1);
    let folder = Folder::new();
    let pipes: Vec<_> = (0..4).map(|n| folder.pipe(&n.to_string())).collect();
    let waiting: Vec<_> =
        pipes.iter().map(|pipe| rig.run("io:gate", pipe.to_str().unwrap(), &[])).collect();
    let inside: Vec<_> = pipes.iter().map(|pipe| entered(pipe)).collect();
    assert_eq!(rig.text(&rig.run("echo", "meanwhile", &[])), "meanwhile");
    drop(inside);
    rig.wait_all(&waiting);
    let figures = rig.session.statistics();
    assert!(figures.hidden_ns > 0 && figures.hidden_ns <= figures.io_active_ns);
    assert!(figures.io_ns >= figures.io_active_ns, "four at a time");
    let io = figures.functions.iter().find(|function| function.kind == Kind::Io).unwrap();
    assert_eq!((io.done, &*io.name), (4, "gate"));
}

#[test]
fn threads_of_the_program_may_all_submit() {
    let rig = Rig::new(2);
    rig.function("echo");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let rig = &rig;
            scope.spawn(move || {
                for n in 0..500 {
                    let word = format!("{thread}-{n}");
                    assert_eq!(rig.text(&rig.run("echo", &word, &[])), word);
                }
            });
        }
    });
    let value = rig.outcome(&rig.run("echo", "end", &[])).unwrap();
    assert_eq!(text_of(&value), "end");
}
