//! Data in place that a task hands over before its end.

mod driver;

use driver::*;
use sched::{Config, Direction, Event, Instruction, TaskSpec};

fn released(driver: &mut Driver, task: &Taken, access: u32) -> Vec<Instruction> {
    driver.event(Event::ReleasedInPlace { task: task.id, access })
}

/// A task that writes two files, a reader and a writer of the first, and what all are.
fn writer_and_users(driver: &mut Driver) -> (Taken, Taken, Taken) {
    let files = [driver.file(), driver.file()];
    let accesses = files.map(|file| uses(file, Direction::Out)).to_vec();
    let producer = TaskSpec { accesses, retries: 2, returns: 0, ..driver.compute("producer") };
    let producer = driver.submit(producer);
    let accesses = vec![uses(files[0], Direction::In)];
    let reader = driver.submit(TaskSpec { accesses, ..driver.compute("reader") });
    let accesses = vec![uses(files[0], Direction::InOut)];
    let writer = driver.submit(TaskSpec { accesses, ..driver.compute("writer") });
    (producer, reader, writer)
}

#[test]
fn readers_of_released_data_run_and_writers_wait_for_the_end() {
    let mut driver = Driver::with_compute(Config { processors: vec![3], ..config() }, 3);
    let (producer, reader, writer) = writer_and_users(&mut driver);
    let out = released(&mut driver, &producer, 0);
    assert!(out.contains(&run(&reader, E1)));
    assert_eq!(released(&mut driver, &producer, 0), [], "once");
    assert_eq!(released(&mut driver, &producer, 7), [], "there is no such access");
    let runs = |it: &Instruction| matches!(it, Instruction::Run { .. });
    assert!(!driver.done(reader.id, E1).iter().any(runs), "the producer still has it");
    assert!(driver.done(producer.id, E0).contains(&run(&writer, E0)));
}

#[test]
fn a_task_that_released_data_in_place_does_not_run_again_and_they_stay() {
    let mut driver = Driver::with_compute(Config { processors: vec![2], ..config() }, 2);
    let (producer, reader, writer) = writer_and_users(&mut driver);
    released(&mut driver, &producer, 0);
    let out = driver.raised(producer.id, E0);
    let over = |it: &Instruction| match it {
        Instruction::Forgotten { task, failure } => *task == producer.id && failure.is_some(),
        _ => false,
    };
    assert!(out.iter().any(over), "with two retries left");
    driver.done(reader.id, E1);
    driver.done(writer.id, E0);
    let counts = driver.sched.counts();
    assert_eq!((counts.done, counts.failed, counts.cancelled), (2, 1, 0));
}
