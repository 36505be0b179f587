//! Time-outs: what is given up, when an executor is ended, and what its tasks do then.

mod driver;

use std::sync::Arc;

use driver::*;
use sched::{Cause, Direction, Event, Failure, Instruction, Kind, OnFailure, TaskSpec};

fn retire() -> Instruction {
    Instruction::Retire { executor: E0 }
}

fn kill() -> Instruction {
    Instruction::Kill { executor: E0 }
}

fn timed(driver: &Driver, name: &str, retries: u32) -> TaskSpec {
    TaskSpec { timeout: Some(100), retries, ..driver.compute(name) }
}

fn timed_io(driver: &Driver, name: &str, retries: u32) -> TaskSpec {
    TaskSpec { timeout: Some(100), retries, ..driver.io(name, 10, 0) }
}

fn too_long(name: &str) -> Arc<Failure> {
    failure(name, Cause::TimedOut(100))
}

#[test]
fn a_compute_task_that_takes_too_long_ends_its_executor_at_once() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(timed(&driver, "a", 0));
    let b = driver.submit(TaskSpec { accesses: vec![reads(a.outputs[0])], ..driver.compute("b") });
    assert_eq!(driver.sched.next_deadline(), Some(100));
    assert_eq!(driver.tick(99), []);
    let root = too_long("a");
    let next = because("b", &root);
    let out = driver.tick(100);
    let expected = [
        retire(),
        kill(),
        resolve_failed(a.outputs[0], &root),
        resolve_failed(b.outputs[0], &next),
        forgotten_failed(b.id, &next),
    ];
    assert_eq!(out, expected, "the dependents need not wait");
    assert_eq!(driver.tick(200), [], "once");
    assert_eq!(driver.lost(E0, &[a.id]), [forgotten_failed(a.id, &root)]);
    assert_eq!(driver.sched.next_deadline(), None);
    assert_eq!(driver.sched.live_tasks(), 0);
}

#[test]
fn a_retry_waits_until_the_executor_is_lost() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(timed(&driver, "a", 1));
    assert_eq!(driver.tick(100), [retire(), kill()]);
    assert_eq!(driver.up(E1, Kind::Compute, 0, 1), [], "two runs of a body never overlap");
    assert_eq!(driver.lost(E0, &[a.id]), [run_at(a.id, E1, 2, None)]);
    assert_eq!(driver.sched.next_deadline(), Some(200));
    let root = too_long("a");
    let expected = [
        Instruction::Retire { executor: E1 },
        Instruction::Kill { executor: E1 },
        resolve_failed(a.outputs[0], &root),
    ];
    assert_eq!(driver.tick(200), expected);
    assert_eq!(driver.lost(E1, &[a.id]), [forgotten_failed(a.id, &root)]);
}

#[test]
fn a_run_that_released_a_file_when_its_time_was_up_does_not_run_again() {
    let mut driver = Driver::with_compute(config(), 1);
    let accesses = vec![uses(driver.file(), Direction::Out)];
    let a = driver.submit(TaskSpec { accesses, ..timed(&driver, "a", 2) });
    assert_eq!(driver.tick(100), [retire(), kill()], "it has retries left");
    driver.event(Event::ReleasedInPlace { task: a.id, access: 0 });
    driver.up(E1, Kind::Compute, 0, 1);
    let out = driver.lost(E0, &[a.id]);
    assert!(out.contains(&forgotten_failed(a.id, &too_long("a"))), "{out:?}");
}

#[test]
fn an_io_executor_ends_when_its_other_tasks_are_over() {
    let mut driver = Driver::with_io(vec![], 3);
    let late = driver.submit(timed_io(&driver, "late", 0));
    let other = driver.submit(driver.io("other", 10, 0));
    let root = too_long("late");
    assert_eq!(driver.tick(100), [retire(), resolve_failed(late.outputs[0], &root)]);
    let next = driver.submit(driver.io("next", 10, 0));
    assert_eq!(next.out, [], "it takes nothing new");
    let out = driver.done(other.id, E0);
    assert_eq!(out, [kill(), resolve(other.outputs[0]), forgotten(other.id)].sorted(&out));
    assert_eq!(driver.up(E1, Kind::Io, 0, 3), [run(&next, E1)]);
    assert_eq!(driver.lost(E0, &[late.id]), [forgotten_failed(late.id, &root)]);
}

/// The same instructions in another order, where the order is free.
trait Sorted {
    fn sorted(self, like: &[Instruction]) -> Vec<Instruction>;
}

impl<const N: usize> Sorted for [Instruction; N] {
    fn sorted(self, like: &[Instruction]) -> Vec<Instruction> {
        let mut sorted = self.to_vec();
        sorted.sort_by_key(|one| like.iter().position(|other| other == one));
        sorted
    }
}

#[test]
fn a_late_end_frees_the_executor_without_a_result() {
    let mut driver = Driver::with_io(vec![], 3);
    let late = driver.submit(timed_io(&driver, "late", 0));
    let other = driver.submit(driver.io("other", 10, 0));
    driver.tick(100);
    let root = too_long("late");
    assert_eq!(driver.done(late.id, E0), [forgotten_failed(late.id, &root)], "too late");
    let out = driver.done(other.id, E0);
    assert!(out.contains(&kill()), "an executor with nothing left: {out:?}");
    assert_eq!(driver.lost(E0, &[]), []);
    assert_eq!(driver.sched.live_tasks(), 0);
}

#[test]
fn a_late_end_lets_the_retry_run_elsewhere() {
    let mut driver = Driver::with_io(vec![], 3);
    let late = driver.submit(timed_io(&driver, "late", 1));
    let other = driver.submit(driver.io("other", 10, 0));
    assert_eq!(driver.tick(100), [retire()], "no failure is known yet");
    driver.up(E1, Kind::Io, 0, 3);
    assert_eq!(driver.done(late.id, E0), [run_at(late.id, E1, 2, None)]);
    assert_eq!(driver.done(late.id, E1), [resolve(late.outputs[0]), forgotten(late.id)]);
    assert!(driver.done(other.id, E0).contains(&kill()));
}

#[test]
fn an_end_that_is_reported_late_is_still_an_end() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(timed(&driver, "a", 0));
    driver.now = 500;
    assert_eq!(driver.done(a.id, E0), [resolve(a.outputs[0]), forgotten(a.id)]);
    assert_eq!(driver.tick(600), [], "its deadline is gone with it");
}

#[test]
fn two_that_are_late_retire_an_executor_once() {
    let mut driver = Driver::with_io(vec![], 3);
    let first = driver.submit(timed_io(&driver, "first", 0));
    let second = driver.submit(timed_io(&driver, "second", 0));
    let told = [too_long("first"), too_long("second")];
    let out = driver.tick(100);
    let expected = [
        retire(),
        kill(),
        resolve_failed(first.outputs[0], &told[0]),
        resolve_failed(second.outputs[0], &told[1]),
    ];
    assert_eq!(out, expected);
    let expected = [forgotten_failed(first.id, &told[0]), forgotten_failed(second.id, &told[1])];
    assert_eq!(driver.lost(E0, &[first.id, second.id]), expected);
}

#[test]
fn an_ignored_time_out_gives_empty_values_when_the_executor_is_gone() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(TaskSpec { on_failure: OnFailure::Ignore, ..timed(&driver, "a", 0) });
    assert_eq!(driver.tick(100), [retire(), kill()]);
    let out = driver.lost(E0, &[a.id]);
    assert_eq!(out[0], resolve(a.outputs[0]));
    assert!(matches!(out[1], Instruction::Forgotten { failure: Some(_), .. }), "{out:?}");
}

#[test]
fn a_grant_lasts_until_the_executor_is_lost() {
    let mut driver = Driver::with_io(vec![layer("disk", 10, None)], 3);
    let late = driver.submit(timed_io(&driver, "late", 0));
    driver.tick(100);
    driver.up(E1, Kind::Io, 0, 3);
    let next = driver.submit(driver.io("next", 10, 0));
    assert_eq!(next.out, [], "the body still writes");
    let out = driver.lost(E0, &[late.id]);
    assert_eq!(out.last(), Some(&run_at(next.id, E1, 1, Some(0))));
}

#[test]
fn a_task_that_was_cancelled_is_not_tried_again_after_its_time_out() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(timed(&driver, "a", 3));
    driver.cancel(a.id);
    let root = too_long("a");
    let expected = [retire(), kill(), resolve_failed(a.outputs[0], &root)];
    assert_eq!(driver.tick(100), expected);
    assert_eq!(driver.lost(E0, &[a.id]), [forgotten_failed(a.id, &root)]);

    let b = driver.submit(timed(&driver, "b", 3));
    assert_eq!(driver.up(E1, Kind::Compute, 0, 1), [run(&b, E1)]);
    driver.tick(200);
    assert_eq!(driver.cancel(b.id), [], "it has begun, and is being ended");
    let out = driver.lost(E1, &[b.id]);
    let told = failure("b", Cause::Cancelled);
    assert_eq!(out, [resolve_failed(b.outputs[0], &told), forgotten_failed(b.id, &told)]);
}

#[test]
fn a_stale_deadline_does_not_touch_a_later_attempt() {
    let mut driver = Driver::with_compute(config(), 1);
    let a = driver.submit(timed(&driver, "a", 1));
    driver.now = 60;
    assert_eq!(driver.raised(a.id, E0), [run_at(a.id, E0, 2, None)]);
    assert_eq!(driver.tick(100), [], "the deadline of the first attempt");
    assert_eq!(driver.sched.next_deadline(), Some(160));
    assert_eq!(driver.tick(160)[..2], [retire(), kill()]);
}

#[test]
fn deadlines_of_tasks_that_ended_are_not_kept() {
    let mut driver = Driver::with_io(vec![], 2);
    let spec = TaskSpec { timeout: Some(1000), ..driver.io("long", 0, 0) };
    driver.submit(spec);
    for now in 1..50 {
        driver.now = now;
        let spec = TaskSpec { timeout: Some(1000), ..driver.io("short", 0, 0) };
        let short = driver.submit(spec);
        driver.done(short.id, E0);
    }
    driver.event(Event::Tick);
    assert_eq!(driver.sched.next_deadline(), Some(1000));
    driver.sched.validate().unwrap();
}
