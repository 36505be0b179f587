//! Layers that fail, are down, or full for good.

mod driver;

use std::sync::Arc;

use driver::*;
use sched::{Cause, Event, Instruction, Kind, LayerId, TaskSpec};

fn two_layers() -> Driver {
    Driver::with_io(vec![layer("fast", 1000, Some(100)), layer("slow", 100, Some(1000))], 4)
}

fn cause(out: &[Instruction]) -> Option<Cause> {
    out.iter().find_map(|instruction| match instruction {
        Instruction::Forgotten { failure: Some(failure), .. } => Some(failure.cause.clone()),
        _ => None,
    })
}

#[test]
fn a_task_that_its_layer_failed_goes_to_the_next_and_never_back() {
    let mut driver = two_layers();
    let task = driver.submit(driver.io("w", 1, 10));
    assert_eq!(task.out, [run_at(task.id, E0, 1, Some(0))]);
    assert_eq!(driver.unplaced(task.id, E0), [run_at(task.id, E0, 2, Some(1))]);
    let other = driver.submit(driver.io("w", 1, 10));
    assert_eq!(other.out, [run_at(other.id, E0, 1, Some(0))], "the others still try it");
    let out = driver.unplaced(task.id, E0);
    assert_eq!(cause(&out), Some(Cause::Raised(Arc::from(*b"no space"))));
}

#[test]
fn a_layer_that_is_down_takes_nothing_until_it_is_up() {
    let mut driver = two_layers();
    let first = driver.submit(driver.io("w", 1, 10));
    assert_eq!(driver.unplaced(first.id, E0), [run_at(first.id, E0, 2, Some(1))]);
    assert_eq!(driver.event(Event::LayerDown { layer: LayerId(0) }), []);
    let second = driver.submit(driver.io("w", 1, 10));
    assert_eq!(second.out, [run_at(second.id, E0, 1, Some(1))]);
    assert_eq!(driver.event(Event::LayerUp { layer: LayerId(0) }), []);
    let third = driver.submit(driver.io("w", 1, 10));
    assert_eq!(third.out, [run_at(third.id, E0, 1, Some(0))]);
}

#[test]
fn who_waits_fails_when_every_layer_that_could_take_it_is_down() {
    let mut driver = two_layers();
    let running = driver.submit(driver.io("w", 100, 900));
    let waiting = driver.submit(driver.io("w", 100, 900));
    assert_eq!((running.out.len(), waiting.out.len()), (1, 0));
    let out = driver.event(Event::LayerDown { layer: LayerId(1) });
    let Some(Cause::NoLayer(text)) = cause(&out) else { panic!("{out:?}") };
    assert!(text.contains("\"slow\" is down"), "{text}");
    assert!(text.contains("\"fast\" has room for 100 bytes"), "{text}");
    let late = driver.submit(TaskSpec { layer: Some(LayerId(1)), ..driver.io("w", 1, 1) });
    assert!(matches!(cause(&late.out), Some(Cause::NoLayer(_))));
    assert_eq!(cause(&driver.done(running.id, E0)), None, "what runs there may still end well");
}

#[test]
fn nobody_waits_for_ever_for_room_that_nothing_will_make() {
    let mut driver = two_layers();
    let (file, other) = (driver.file(), driver.file());
    driver.file_at(file, Some(0), 90, Some(0));
    driver.file_at(other, Some(1), 990, Some(1));
    let task = driver.submit(driver.io("w", 1, 50));
    assert_eq!(task.out, []);
    let until = driver.sched.next_deadline().expect("it does not wait for ever");
    assert_eq!(driver.tick(until - 1), []);
    let out = driver.tick(until);
    let Some(Cause::NoLayer(text)) = cause(&out) else { panic!("{out:?}") };
    assert!(text.contains("\"slow\" has room for 10 bytes"), "{text}");
    assert_eq!(driver.sched.next_deadline(), None);
}

#[test]
fn room_that_comes_in_time_is_taken() {
    let mut driver = two_layers();
    let file = driver.file();
    driver.file_at(file, Some(0), 90, Some(0));
    driver.event(Event::LayerCapacity { layer: LayerId(1), bytes: Some(10) });
    let task = driver.submit(driver.io("w", 1, 50));
    assert_eq!(task.out, []);
    let out = driver.event(Event::LayerCapacity { layer: LayerId(1), bytes: Some(60) });
    assert_eq!(out, [run_at(task.id, E0, 1, Some(1))]);
    assert_eq!(driver.sched.next_deadline(), None);
}

#[test]
fn a_producer_that_waits_for_who_finds_no_room_makes_none() {
    let mut driver = two_layers();
    let (file, other) = (driver.file(), driver.file());
    driver.file_at(file, Some(0), 90, Some(0));
    driver.file_at(other, Some(1), 990, Some(1));
    let producer = driver.submit(driver.io("producer", 1, 0));
    let task = driver.submit(driver.io("w", 1, 50));
    assert_eq!((task.out, driver.sched.next_deadline()), (vec![], None), "the producer may");
    driver.stalled(producer.id, E0);
    let until = driver.sched.next_deadline().expect("it does not wait for ever");
    assert!(matches!(cause(&driver.tick(until)), Some(Cause::NoLayer(_))));
    driver.resume(producer.id);
    driver.submit(driver.io("w", 1, 50));
    assert_eq!(driver.sched.next_deadline(), None, "it goes on, and may again");
}

#[test]
fn what_was_given_up_and_waits_for_its_executor_makes_no_room() {
    let mut driver = two_layers();
    let (file, other) = (driver.file(), driver.file());
    driver.file_at(file, Some(0), 90, Some(0));
    driver.file_at(other, Some(1), 990, Some(1));
    let producer = driver.submit(driver.io("producer", 1, 0));
    let late = driver.submit(TaskSpec { timeout: Some(10), ..driver.io("late", 1, 0) });
    driver.stalled(producer.id, E0);
    assert!(driver.tick(10).contains(&Instruction::Retire { executor: E0 }));
    driver.up(E1, Kind::Io, 0, 4);
    driver.submit(driver.io("w", 1, 50));
    let until = driver.sched.next_deadline().expect("it does not wait for ever");
    assert!(matches!(cause(&driver.tick(until)), Some(Cause::NoLayer(_))));
    driver.lost(E0, &[producer.id, late.id]);
    assert_eq!(driver.sched.live_tasks(), 0);
}
