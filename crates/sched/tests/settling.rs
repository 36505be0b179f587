//! Tasks whose bodies are over while what they wrote is not safe yet.

mod driver;

use std::sync::Arc;

use driver::*;
use sched::{Cause, Direction, Event, Instruction, Kind, Outcome, State, TaskSpec};

/// A task that appends to a file, with its time, and its reader.
fn append_and_read(driver: &mut Driver) -> (Taken, Taken) {
    let file = driver.file();
    let accesses = vec![uses(file, Direction::InOut)];
    let append = TaskSpec { accesses, timeout: Some(100), ..driver.io("append", 10, 0) };
    let append = driver.submit(append);
    let accesses = vec![uses(file, Direction::In)];
    let read = driver.submit(TaskSpec { accesses, ..driver.io("read", 10, 0) });
    assert_eq!((&append.out[..], &read.out[..]), (&[run(&append, E0)][..], &[][..]));
    (append, read)
}

fn settling(driver: &mut Driver, task: &Taken, ran: Option<u64>) -> Vec<Instruction> {
    driver.event(Event::Settling { task: task.id, executor: E0, ran })
}

fn settled(driver: &mut Driver, task: &Taken, outcome: Outcome) -> Vec<Instruction> {
    driver.event(Event::Settled { task: task.id, outcome })
}

fn well() -> Outcome {
    Outcome::Done([8].into())
}

#[test]
fn neither_its_executor_nor_its_time_concerns_it() {
    let mut driver = Driver::with_io(vec![], 2);
    let (append, read) = append_and_read(&mut driver);
    assert_eq!(settling(&mut driver, &append, Some(10)), [], "its readers wait");
    assert_eq!(driver.sched.state(append.id), Some(State::Settling));
    assert_eq!(driver.sched.next_deadline(), None);
    assert_eq!(driver.lost(E0, &[]), []);
    assert_eq!(driver.tick(200), []);
    assert_eq!(driver.up(E1, Kind::Io, 0, 2), [], "it does not run again");
    let out = settled(&mut driver, &append, well());
    assert!(out.contains(&forgotten(append.id)) && out.contains(&run(&read, E1)), "{out:?}");
    assert_eq!(settled(&mut driver, &append, well()), [], "once");
}

#[test]
fn what_it_held_is_free() {
    let mut driver = Driver::with_io(vec![layer("disk", 10, None)], 1);
    let append = driver.submit(driver.io("append", 10, 0));
    let next = driver.submit(driver.io("next", 10, 0));
    assert_eq!(settling(&mut driver, &append, Some(10)), [run_at(next.id, E0, 1, Some(0))]);
}

#[test]
fn it_may_still_fail_and_run_again() {
    let mut driver = Driver::with_io(vec![], 1);
    let append = driver.submit(TaskSpec { retries: 1, ..driver.io("append", 10, 0) });
    settling(&mut driver, &append, Some(10));
    let raised = || Outcome::Raised(Arc::from(*b"no space"));
    assert_eq!(settled(&mut driver, &append, raised()), [run_at(append.id, E0, 2, None)]);
    settling(&mut driver, &append, None);
    let out = settled(&mut driver, &append, raised());
    let root = failure("append", Cause::Raised(Arc::from(*b"no space")));
    assert!(out.contains(&forgotten_failed(append.id, &root)), "{out:?}");
}

#[test]
fn it_is_over_although_the_program_cancels_it() {
    let mut driver = Driver::with_io(vec![], 1);
    let append = driver.submit(driver.io("append", 10, 0));
    settling(&mut driver, &append, Some(10));
    assert_eq!(driver.cancel(append.id), []);
    assert!(settled(&mut driver, &append, well()).contains(&forgotten(append.id)));
    assert_eq!(driver.sched.counts().done, 1);
}

#[test]
fn a_run_that_is_given_up_already_cannot_settle() {
    let mut driver = Driver::with_io(vec![], 1);
    let (append, _) = append_and_read(&mut driver);
    driver.tick(100);
    assert_eq!(settling(&mut driver, &append, Some(100)), []);
    assert_eq!(driver.sched.state(append.id), Some(State::Abandoned));
}
