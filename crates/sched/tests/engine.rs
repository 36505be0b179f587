//! I/O tasks that the engine does: slots of their own, one order and one set of layers with the
//! others, and the way back for what the engine cannot do.

mod driver;

use driver::*;
use sched::{Constraint, Event, ExecutorId, Instruction, Kind, LayerId, Outcome, TaskId, TaskSpec};

fn engine(driver: &Driver, name: &str, bandwidth: u64) -> TaskSpec {
    TaskSpec { kind: Kind::Engine, ..driver.io(name, bandwidth, 0) }
}

/// A layer of 100, an I/O executor (E0) and an engine (E1), of one slot each.
fn both() -> Driver {
    let mut driver = Driver::with_io(vec![layer("disk", 100, None)], 1);
    assert_eq!(driver.up(E1, Kind::Engine, 0, 1), []);
    driver
}

fn refused(driver: &mut Driver, task: TaskId, executor: ExecutorId) -> Vec<Instruction> {
    driver.event(Event::Refused { task, executor })
}

#[test]
fn each_kind_waits_for_its_own_slots_only() {
    let mut driver = both();
    let io = driver.submit(driver.io("io", 1, 0));
    let more_io = driver.submit(driver.io("io", 1, 0));
    let built_in = driver.submit(engine(&driver, "built-in", 1));
    let more_built_in = driver.submit(engine(&driver, "built-in", 1));
    assert_eq!(io.out, [run_at(io.id, E0, 1, Some(0))]);
    assert_eq!(more_io.out, []);
    assert_eq!(built_in.out, [run_at(built_in.id, E1, 1, Some(0))], "not behind the other kind");
    assert_eq!(more_built_in.out, []);
    let out = driver.done(built_in.id, E1);
    assert_eq!(out[2..], [run_at(more_built_in.id, E1, 1, Some(0))]);
    assert_eq!(driver.done(io.id, E0)[2..], [run_at(more_io.id, E0, 1, Some(0))]);
}

#[test]
fn both_kinds_get_the_bandwidth_in_the_order_of_their_arrival() {
    let mut driver = both();
    let first = driver.submit(engine(&driver, "first", 100));
    assert_eq!(first.out.len(), 1);
    let io = driver.submit(driver.io("io", 60, 0));
    let built_in = driver.submit(engine(&driver, "built-in", 60));
    assert_eq!(driver.done(first.id, E1)[2..], [run_at(io.id, E0, 1, Some(0))]);
    assert_eq!(driver.done(io.id, E0)[2..], [run_at(built_in.id, E1, 1, Some(0))]);
    let urgent = TaskSpec { priority: 1, ..engine(&driver, "urgent", 60) };
    let (later_io, urgent) = (driver.submit(driver.io("io", 60, 0)), driver.submit(urgent));
    assert_eq!(driver.done(built_in.id, E1)[2..], [run_at(urgent.id, E1, 1, Some(0))]);
    assert_eq!(driver.done(urgent.id, E1)[2..], [run_at(later_io.id, E0, 1, Some(0))]);
}

#[test]
fn what_the_engine_cannot_do_goes_to_an_io_executor() {
    let mut driver = both();
    let task = driver.submit(TaskSpec { retries: 1, ..engine(&driver, "odd", 60) });
    assert_eq!(refused(&mut driver, task.id, E1), [run_at(task.id, E0, 2, Some(0))]);
    assert_eq!(refused(&mut driver, task.id, E0), [], "an I/O executor refuses nothing");
    assert_eq!(driver.raised(task.id, E0), [run_at(task.id, E0, 3, Some(0))], "and stays there");
    driver.done(task.id, E0);
    let granted = driver.sched.granted(LayerId(0));
    assert_eq!(granted, Some(Constraint::default()));
}

#[test]
fn a_refused_task_that_was_cancelled_is_over() {
    let mut driver = both();
    let task = driver.submit(engine(&driver, "odd", 0));
    assert_eq!(driver.cancel(task.id), [Instruction::Recall { task: task.id, executor: E1 }]);
    let cancelled = failure("odd", sched::Cause::Cancelled);
    let out = refused(&mut driver, task.id, E1);
    let failed = resolve_failed(task.outputs[0], &cancelled);
    assert_eq!(out, [failed, forgotten_failed(task.id, &cancelled)]);
}

#[test]
fn a_refusal_after_the_time_was_up_ends_the_run() {
    let mut driver = both();
    let timed = TaskSpec { timeout: Some(5), retries: 1, ..engine(&driver, "late", 0) };
    let task = driver.submit(timed);
    let (retire, kill) = (Instruction::Retire { executor: E1 }, Instruction::Kill { executor: E1 });
    assert_eq!(driver.tick(5), [retire, kill]);
    let again = [run_at(task.id, E0, 2, Some(0))];
    assert_eq!(refused(&mut driver, task.id, E1), again, "tried again, as an I/O task");
    assert_eq!(driver.lost(E1, &[]), []);
    let outcome = Outcome::Done([].into());
    driver.event(Event::Ended { task: task.id, executor: E0, outcome, ran: 1 });
    assert_eq!(driver.sched.live_tasks(), 0);
}
