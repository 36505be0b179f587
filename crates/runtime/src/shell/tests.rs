//! What is left when something inside goes wrong: no wait hangs, and the error tells of it.

use std::time::Duration;

use sched::{Constraint, ExecutorId, Instruction, Kind, OnFailure, TaskId, Tuning};

use super::*;
use crate::futures::{Fault, Handle, WaitEnd};
use crate::session::Session;
use crate::store::Value;

const LONG: Option<Duration> = Some(Duration::from_secs(60));

/// A session whose workers never say anything, and a task that waits for them.
fn silent() -> (Session, Handle) {
    let options = Options {
        workers: 1,
        worker_command: vec!["/bin/sleep".into(), "1000".into()],
        ..Options::default()
    };
    let session = Session::start(options).expect("a session");
    let spec = FunctionSpec {
        name: "never".into(),
        blob: Value::inline(*b""),
        kind: Kind::Compute,
        cpus: 1,
        priority: 0,
        retries: 0,
        timeout_ns: None,
        on_failure: OnFailure::Fail,
        constraint: Constraint::default(),
        tuning: Tuning::Static,
        durable: false,
        asynchronous: false,
        returns: 1,
        buffer: None,
    };
    let function = session.function(spec).expect("alive");
    let (arguments, overrides) = (Value::inline(*b""), Overrides::default());
    let call =
        Call { function, arguments, inputs: vec![], files: vec![], builtin: None, overrides };
    let future = session.spawn(call).expect("a good call").returns.pop().expect("one");
    (session, future)
}

fn ends_with(session: &Session, future: &Handle, part: &str) {
    assert_eq!(future.wait(LONG, &mut || false), WaitEnd::Ready);
    let Some(Err(Fault::Session(text))) = future.outcome() else { panic!("a fault was to come") };
    assert!(text.starts_with("internal error of the runtime, which ends"), "{text}");
    assert!(text.contains(part), "{text}");
    assert_eq!(session.broken(), Some(text.clone()));
    assert!(!session.is_alive());
    assert_eq!(session.drain(LONG, &mut || false), WaitEnd::Ended(text.clone()));
    assert_eq!(session.put(Value::inline(*b"")).unwrap_err().0, text);
    session.stop(false);
    assert!(session.worker_pids().is_empty());
    assert_eq!(session.next_notification(), None);
}

#[test]
fn a_panic_in_a_thread_of_the_program() {
    let (session, future) = silent();
    let failed = session.shared().with(|_| panic!("made for the test"));
    assert!(failed.unwrap_err().0.contains("made for the test"));
    ends_with(&session, &future, "made for the test");
}

#[test]
fn a_panic_in_the_runtime_thread_tells_the_story() {
    let (session, future) = silent();
    let task = TaskId::from_bits(77);
    let run = Instruction::Run { task, executor: ExecutorId(0), attempt: 1, layer: None };
    session.shared().state.lock().out.push(run);
    session.shared().wake();
    ends_with(&session, &future, "its story: []");
}

#[test]
fn a_drain_that_is_under_way_ends_too() {
    let (session, future) = silent();
    let drain = {
        let session = session.clone();
        std::thread::spawn(move || session.drain(LONG, &mut || false))
    };
    while session.shared().state.lock().drained.is_empty() {
        std::thread::yield_now();
    }
    let failed: Result<(), _> = session.shared().with(|_| panic!("while others wait"));
    let why = failed.unwrap_err().0;
    assert_eq!(drain.join().expect("no panic there"), WaitEnd::Ended(why));
    drop(future);
}

#[test]
fn a_silent_worker_is_killed_when_its_time_to_start_is_up() {
    let (session, _future) = silent();
    let mut state = session.shared().state.lock();
    let now = exec::now_ns();
    assert!(state.workers.check_starts(now).is_some_and(|at| at > now));
    assert_eq!(state.workers.check_starts(u64::MAX), None);
}
