//! How tasks end: failures and their chains, retries, loss, cancellation, early release.

mod driver;

use std::sync::Arc;

use driver::*;
use sched::{Cause, Config, Direction, Event, Failure, Instruction, Kind, OnFailure, TaskSpec};

fn lost_failure(name: &str) -> Arc<Failure> {
    failure(name, Cause::ExecutorLost("killed".into()))
}

#[test]
fn a_failure_goes_down_the_chain_once_with_the_names() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(driver.compute("a"));
    let b = driver.submit(TaskSpec { accesses: vec![reads(a.outputs[0])], ..driver.compute("b") });
    let both = vec![reads(a.outputs[0]), reads(b.outputs[0])];
    let c = driver.submit(TaskSpec { accesses: both, ..driver.compute("c") });
    let apart = driver.submit(driver.compute("apart"));
    let out = driver.raised(a.id, E0);
    let root = raised("a");
    let second = because("b", &root);
    // c reads a and b: it is told once, by the first of the two.
    let third = because("c", &root);
    let expected = [
        resolve_failed(a.outputs[0], &root),
        forgotten_failed(a.id, &root),
        resolve_failed(b.outputs[0], &second),
        forgotten_failed(b.id, &second),
        resolve_failed(c.outputs[0], &third),
        forgotten_failed(c.id, &third),
        run(&apart, E0),
    ];
    assert_eq!(out, expected);
    let counts = driver.sched.counts();
    assert_eq!((counts.failed, counts.cancelled), (1, 2));
}

#[test]
fn names_are_told_from_the_root_to_the_end() {
    let mut driver = Driver::with_compute(config(), 1);
    let mut last = driver.submit(driver.compute("n0"));
    let first = last.id;
    for name in ["n1", "n2", "n3"] {
        let accesses = vec![reads(last.outputs[0])];
        last = driver.submit(TaskSpec { accesses, ..driver.compute(name) });
    }
    let out = driver.raised(first, E0);
    let told = out.iter().find_map(|instruction| match instruction {
        Instruction::Resolve { version, failure } if *version == last.outputs[0] => failure.clone(),
        _ => None,
    });
    let mut names = Vec::new();
    let mut link = told;
    while let Some(failure) = link {
        assert_eq!(failure.cause, Cause::Raised(Arc::from(*b"oops")), "one root cause");
        names.push(failure.name.to_string());
        link = failure.from.clone();
    }
    assert_eq!(names, ["n3", "n2", "n1", "n0"]);
}

#[test]
fn a_task_on_a_version_that_failed_is_over_as_it_is_submitted() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(driver.compute("a"));
    driver.raised(a.id, E0);
    let b = driver.submit(TaskSpec { accesses: vec![reads(a.outputs[0])], ..driver.compute("b") });
    let second = because("b", &raised("a"));
    let expected = [resolve_failed(b.outputs[0], &second), forgotten_failed(b.id, &second)];
    assert_eq!(b.out, expected);
    assert_eq!(driver.sched.state(b.id), None);
}

#[test]
fn an_ignored_failure_leaves_empty_values() {
    let mut driver = Driver::with_compute(config(), 1);
    let spec = TaskSpec { on_failure: OnFailure::Ignore, ..driver.compute("a") };
    let a = driver.submit(spec);
    let b = driver.submit(TaskSpec { accesses: vec![reads(a.outputs[0])], ..driver.compute("b") });
    let out = driver.raised(a.id, E0);
    let cause = raised("a").cause.clone();
    let (name, on_failure) = ("a".into(), OnFailure::Ignore);
    let told = Arc::new(Failure { cause, name, from: None, on_failure });
    let expected = [resolve(a.outputs[0]), forgotten_failed(a.id, &told), run(&b, E0)];
    assert_eq!(out, expected);
    assert_eq!(driver.sched.counts().done, 1);
}

#[test]
fn what_the_roots_failure_means_is_told_to_the_end() {
    let mut driver = Driver::with_compute(config(), 1);
    let spec = TaskSpec { on_failure: OnFailure::CancelDependents, ..driver.compute("a") };
    let a = driver.submit(spec);
    let b = driver.submit(TaskSpec { accesses: vec![reads(a.outputs[0])], ..driver.compute("b") });
    let out = driver.raised(a.id, E0);
    let modes: Vec<OnFailure> = out
        .iter()
        .filter_map(|instruction| match instruction {
            Instruction::Forgotten { failure: Some(failure), .. } => Some(failure.on_failure),
            _ => None,
        })
        .collect();
    assert_eq!(modes, [OnFailure::CancelDependents; 2]);
    assert_eq!(driver.sched.state(b.id), None);
}

#[test]
fn retries_run_out() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(TaskSpec { retries: 2, ..driver.compute("a") });
    assert_eq!(a.out, [run(&a, E0)]);
    assert_eq!(driver.raised(a.id, E0), [run_at(a.id, E0, 2, None)]);
    assert_eq!(driver.lost(E0, &[a.id]), []);
    assert_eq!(driver.up(E1, Kind::Compute, 0, 1), [run_at(a.id, E1, 3, None)]);
    let root = raised("a");
    let expected = [resolve_failed(a.outputs[0], &root), forgotten_failed(a.id, &root)];
    assert_eq!(driver.raised(a.id, E1), expected);
}

#[test]
fn a_retry_that_goes_well_is_well() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(TaskSpec { retries: 1, ..driver.compute("a") });
    driver.raised(a.id, E0);
    assert_eq!(driver.done(a.id, E0), [resolve(a.outputs[0]), forgotten(a.id)]);
}

#[test]
fn a_lost_executor_fails_what_had_begun_and_gives_back_the_rest() {
    let pipeline = Config { pipeline_tasks_max: 3, ..config() };
    let mut driver = Driver::with_compute(pipeline, 1);
    let first = driver.submit(driver.compute("first"));
    driver.done(first.id, E0);
    let line: Vec<Taken> = ["a", "b", "c"].map(|name| driver.submit(driver.compute(name))).into();
    assert_eq!(line[2].out, [run(&line[2], E0)]);
    let out = driver.lost(E0, &[line[0].id]);
    let root = lost_failure("a");
    let (version, id) = (line[0].outputs[0], line[0].id);
    assert_eq!(out, [resolve_failed(version, &root), forgotten_failed(id, &root)]);
    let again = [run_at(line[1].id, E1, 2, None), run_at(line[2].id, E1, 2, None)];
    assert_eq!(driver.up(E1, Kind::Compute, 0, 1), again, "they did not fail");
    assert_eq!(driver.done(line[1].id, E0), [], "the dead do not speak");
    assert_eq!(driver.lost(E0, &[]), [], "and die once");
}

#[test]
fn an_unbegun_task_of_a_lost_executor_loses_no_retry() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(TaskSpec { retries: 1, ..driver.compute("a") });
    driver.lost(E0, &[]);
    assert_eq!(driver.up(E1, Kind::Compute, 0, 1), [run_at(a.id, E1, 2, None)]);
    assert_eq!(driver.raised(a.id, E1), [run_at(a.id, E1, 3, None)]);
    assert_eq!(driver.raised(a.id, E1).len(), 2);
}

#[test]
fn a_waiting_and_a_ready_task_are_cancelled_at_once() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(driver.compute("a"));
    let ready = driver.submit(driver.compute("ready"));
    let access = vec![reads(a.outputs[0])];
    let waiting = driver.submit(TaskSpec { accesses: access, ..driver.compute("waiting") });
    let access = vec![reads(waiting.outputs[0])];
    let after = driver.submit(TaskSpec { accesses: access, ..driver.compute("after") });
    let told = failure("ready", Cause::Cancelled);
    let expected = [resolve_failed(ready.outputs[0], &told), forgotten_failed(ready.id, &told)];
    assert_eq!(driver.cancel(ready.id), expected);
    let root = failure("waiting", Cause::Cancelled);
    let next = because("after", &root);
    let expected = [
        resolve_failed(waiting.outputs[0], &root),
        forgotten_failed(waiting.id, &root),
        resolve_failed(after.outputs[0], &next),
        forgotten_failed(after.id, &next),
    ];
    assert_eq!(driver.cancel(waiting.id), expected);
    assert_eq!(driver.cancel(waiting.id), [], "once");
    assert_eq!(driver.done(a.id, E0), [resolve(a.outputs[0]), forgotten(a.id)]);
}

#[test]
fn a_sent_task_is_cancelled_if_it_comes_back() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(driver.compute("a"));
    let recall = [Instruction::Recall { task: a.id, executor: E0 }];
    assert_eq!(driver.cancel(a.id), recall);
    let told = failure("a", Cause::Cancelled);
    let expected = [resolve_failed(a.outputs[0], &told), forgotten_failed(a.id, &told)];
    assert_eq!(driver.recalled(a.id, E0), expected);
    let b = driver.submit(driver.compute("b"));
    driver.cancel(b.id);
    assert_eq!(driver.done(b.id, E0), [resolve(b.outputs[0]), forgotten(b.id)], "it had begun");
}

#[test]
fn a_cancelled_task_is_not_tried_again() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(TaskSpec { retries: 5, ..driver.compute("a") });
    driver.cancel(a.id);
    let root = raised("a");
    let expected = [resolve_failed(a.outputs[0], &root), forgotten_failed(a.id, &root)];
    assert_eq!(driver.raised(a.id, E0), expected);

    let b = driver.submit(TaskSpec { retries: 5, ..driver.compute("b") });
    driver.cancel(b.id);
    let told = failure("b", Cause::Cancelled);
    let expected = [resolve_failed(b.outputs[0], &told), forgotten_failed(b.id, &told)];
    assert_eq!(driver.lost(E0, &[]), expected, "it had not begun");

    let mut driver = Driver::with_compute(config(), 1);
    let c = driver.submit(TaskSpec { retries: 5, ..driver.compute("c") });
    driver.cancel(c.id);
    let told = failure("c", Cause::Cancelled);
    let expected = [resolve_failed(c.outputs[0], &told), forgotten_failed(c.id, &told)];
    assert_eq!(
        driver.lost(E0, &[c.id]),
        expected,
        "nobody wants it: it is not lost, but cancelled"
    );
}

#[test]
fn a_released_version_frees_its_readers_and_outlives_a_failure() {
    let mut driver = Driver::with_compute(config(), 2);
    let a = driver.submit(TaskSpec { returns: 2, ..driver.compute("a") });
    let b = driver.submit(TaskSpec { accesses: vec![reads(a.outputs[0])], ..driver.compute("b") });
    let c = driver.submit(TaskSpec { accesses: vec![reads(a.outputs[1])], ..driver.compute("c") });
    let release = Event::Released { task: a.id, output: 0, size: 8 };
    let out = driver.event(release.clone());
    assert_eq!(out, [resolve(a.outputs[0]), run(&b, E1)]);
    assert_eq!(driver.event(release), [], "once");
    assert_eq!(driver.event(Event::Released { task: a.id, output: 9, size: 8 }), []);
    let root = raised("a");
    let third = because("c", &root);
    let expected = [
        resolve_failed(a.outputs[1], &root),
        forgotten_failed(a.id, &root),
        resolve_failed(c.outputs[0], &third),
        forgotten_failed(c.id, &third),
    ];
    assert_eq!(driver.raised(a.id, E0), expected, "what was released stays good");
    assert_eq!(driver.done(b.id, E1), [resolve(b.outputs[0]), forgotten(b.id)]);
}

#[test]
fn a_version_is_discarded_after_its_last_name_and_reader() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(driver.compute("a"));
    let b = driver.submit(TaskSpec { accesses: vec![reads(a.outputs[0])], ..driver.compute("b") });
    assert_eq!(driver.forget(a.outputs[0]), [], "b will read it");
    let out = driver.done(a.id, E0);
    assert_eq!(out, [resolve(a.outputs[0]), forgotten(a.id), run(&b, E0)]);
    let out = driver.done(b.id, E0);
    assert_eq!(out, [resolve(b.outputs[0]), forgotten(b.id), discard(a.outputs[0])]);
    assert_eq!(driver.forget(a.outputs[0]), [], "its identifier is dead");
}

#[test]
fn an_updated_value_discards_the_one_before() {
    let mut driver = Driver::with_compute(config(), 1);
    let datum = driver.value_datum();
    let update = || vec![uses(datum, Direction::InOut)];
    let spec = TaskSpec { returns: 0, accesses: update(), ..driver.compute("update") };
    let first = driver.submit(spec.clone());
    let second = driver.submit(spec);
    let base = driver.sched.bound(first.id)[0].read.unwrap();
    let out = driver.done(first.id, E0);
    let expected =
        [resolve(first.outputs[0]), forgotten(first.id), discard(base), run(&second, E0)];
    assert_eq!(out, expected);
    let latest = driver.sched.current(datum).unwrap();
    assert_eq!(latest, second.outputs[0]);
    let out = driver.done(second.id, E0);
    assert_eq!(out, [resolve(latest), forgotten(second.id), discard(first.outputs[0])]);
    let mut out = Vec::new();
    driver.sched.drop_datum(datum, &mut out);
    assert_eq!(out, [], "the program has its name still");
    assert_eq!(driver.forget(latest), [discard(latest)]);
}

#[test]
fn a_commutative_group_runs_one_at_a_time_and_settles_at_its_end() {
    let mut driver = Driver::with_compute(config(), 2);
    let datum = driver.value_datum();
    let accesses = vec![uses(datum, Direction::Commutative)];
    let spec = TaskSpec { returns: 0, accesses, ..driver.compute("add") };
    let members: Vec<Taken> = (0..3).map(|_| driver.submit(spec.clone())).collect();
    let after = vec![uses(datum, Direction::In)];
    let reader = driver.submit(TaskSpec { accesses: after, ..driver.compute("read") });
    let base = driver.sched.bound(members[0].id)[0].read.unwrap();
    let version = members[0].outputs[0];
    assert_eq!(members[1].outputs, [version], "one version for all");
    assert_eq!(driver.done(members[0].id, E0), [forgotten(members[0].id), run(&members[1], E0)]);
    assert_eq!(driver.done(members[1].id, E0), [forgotten(members[1].id), run(&members[2], E0)]);
    let out = driver.done(members[2].id, E0);
    let expected = [resolve(version), forgotten(members[2].id), discard(base), run(&reader, E0)];
    assert_eq!(out, expected);
}

#[test]
fn tasks_on_a_file_run_in_order_and_a_cancelled_one_keeps_them_so() {
    let mut driver = Driver::with_compute(config(), 2);
    let file = driver.file();
    let on = |direction| TaskSpec {
        returns: 0,
        accesses: vec![uses(file, direction)],
        ..Driver::new(config()).compute("f")
    };
    let reader = driver.submit(on(Direction::In));
    let cancelled = driver.submit(on(Direction::Out));
    let writer = driver.submit(on(Direction::Out));
    assert_eq!(reader.out, [run(&reader, E0)]);
    let told = failure("f", Cause::Cancelled);
    let out = driver.cancel(cancelled.id);
    assert!(out.contains(&forgotten_failed(cancelled.id, &told)), "{out:?}");
    assert!(!out.contains(&run(&writer, E1)), "not beside the reader");
    let late = driver.submit(on(Direction::Out));
    assert_eq!(late.out, []);
    assert_eq!(driver.done(reader.id, E0), [forgotten(reader.id), run(&writer, E0)]);
}

#[test]
fn a_long_chain_is_cancelled_and_forgotten_without_recursion() {
    const TASKS: usize = 100_000;
    let mut driver = Driver::with_compute(config(), 1);
    let mut out = Vec::new();
    let mut specs = driver.compute("link");
    let first = driver.submit(specs.clone());
    let mut last = first.outputs[0];
    for _ in 1..TASKS {
        specs.accesses = vec![reads(last)];
        last = driver.sched.submit(0, &specs, &mut out).unwrap().outputs[0];
    }
    let outcome = sched::Outcome::Raised(Arc::from(*b"oops"));
    let ended = Event::Ended { task: first.id, executor: E0, outcome, ran: 1 };
    driver.sched.handle(0, ended, &mut out);
    let over = out.iter().filter(|one| matches!(one, Instruction::Forgotten { .. }));
    assert_eq!(over.count(), TASKS);
    driver.sched.validate().unwrap();
    drop(driver);
    drop(out);
}

#[test]
fn an_io_task_is_cancelled_while_it_is_ready_and_while_it_is_sent() {
    let mut driver = Driver::with_io(vec![layer("disk", 100, None)], 9);
    let sent = driver.submit(driver.io("sent", 100, 0));
    let ready = driver.submit(driver.io("ready", 100, 0));
    let next = driver.submit(driver.io("next", 100, 0));
    assert_eq!(driver.cancel(ready.id).len(), 2);
    assert_eq!(driver.cancel(sent.id), [Instruction::Recall { task: sent.id, executor: E0 }]);
    let told = failure("sent", Cause::Cancelled);
    let expected = [
        resolve_failed(sent.outputs[0], &told),
        forgotten_failed(sent.id, &told),
        run_at(next.id, E0, 1, Some(0)),
    ];
    assert_eq!(driver.recalled(sent.id, E0), expected);
}
