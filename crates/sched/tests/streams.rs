//! Streams: outputs that are handed over one by one, and producers that wait for consumers.

mod driver;

use driver::*;
use sched::{Config, Instruction, Kind, NodeId, TaskSpec};

fn resume_at(task: &Taken, executor: sched::ExecutorId) -> Instruction {
    Instruction::Resume { task: task.id, executor }
}

#[test]
fn each_value_of_a_stream_is_a_version_and_the_next_one_is_still_to_come() {
    let mut driver = Driver::with_compute(config(), 2);
    let producer = driver.submit(driver.compute("producer"));
    let first = producer.outputs[0];
    let accesses = vec![reads(first)];
    let consumer = driver.submit(TaskSpec { accesses, ..driver.compute("consumer") });
    let out = driver.yielded(producer.id);
    assert_eq!(out, [resolve(first), run(&consumer, E1)]);
    let second = driver.sched.outputs(producer.id)[0];
    assert_ne!(first, second);
    assert_eq!(driver.sched.readers(first), Some(1));
    assert_eq!(driver.sched.readers(second), Some(0));
    driver.done(consumer.id, E1);
    assert_eq!(driver.forget(first), [Instruction::Discard { version: first }]);
    assert_eq!(driver.sched.readers(first), None, "given back while the producer runs");
    assert!(driver.done(producer.id, E0).contains(&resolve(second)), "it is the end");
}

#[test]
fn what_was_handed_over_before_a_failure_stays_and_only_the_next_one_fails() {
    let mut driver = Driver::with_compute(config(), 1);
    let producer = driver.submit(driver.compute("producer"));
    driver.yielded(producer.id);
    let next = driver.sched.outputs(producer.id)[0];
    let accesses = vec![reads(next)];
    let doomed = driver.submit(TaskSpec { accesses, ..driver.compute("doomed") });
    let accesses = vec![reads(producer.outputs[0])];
    let good = driver.submit(TaskSpec { accesses, ..driver.compute("good") });
    let out = driver.raised(producer.id, E0);
    assert!(out.contains(&run(&good, E0)));
    let ends =
        |id| out.iter().any(|it| matches!(it, Instruction::Forgotten { task, .. } if *task == id));
    assert!(ends(producer.id) && ends(doomed.id));
    assert_eq!(driver.sched.counts().failed, 1);
    assert_eq!(driver.sched.counts().cancelled, 1);
}

#[test]
fn a_stalled_producer_goes_on_before_others_once_its_executor_is_free() {
    let mut driver = Driver::with_compute(config(), 1);
    let producer = driver.submit(driver.compute("producer"));
    let consumer = driver.submit(driver.compute("consumer"));
    let later = driver.submit(driver.compute("later"));
    assert_eq!(driver.stalled(producer.id, E0), [run(&consumer, E0)]);
    assert_eq!(driver.resume(producer.id), [], "a consumer runs there");
    assert_eq!(driver.resume(producer.id), [], "once is enough");
    assert!(driver.done(consumer.id, E0).contains(&resume_at(&producer, E0)));
    assert_eq!(driver.stalled(producer.id, E0), [run(&later, E0)]);
    driver.done(later.id, E0);
    assert_eq!(driver.resume(producer.id), [resume_at(&producer, E0)]);
    driver.done(producer.id, E0);
    assert_eq!(driver.sched.live_tasks(), 0);
}

#[test]
fn consumers_run_where_no_producer_waits_to_go_on() {
    let mut driver = Driver::with_compute(config(), 2);
    let producer = driver.submit(driver.compute("producer"));
    driver.stalled(producer.id, E0);
    let first = driver.submit(driver.compute("first"));
    let second = driver.submit(driver.compute("second"));
    assert_eq!((&first.out, &second.out), (&vec![run(&first, E1)], &vec![run(&second, E0)]));
    driver.done(first.id, E1);
    assert_eq!(driver.resume(producer.id), [], "the second runs there");
    assert!(driver.done(second.id, E0).contains(&resume_at(&producer, E0)));
}

#[test]
fn a_producer_that_goes_on_is_at_work_for_placement() {
    let mut driver = Driver::with_compute(config(), 2);
    let producer = driver.submit(driver.compute("producer"));
    driver.stalled(producer.id, E0);
    driver.resume(producer.id);
    let other = driver.submit(driver.compute("other"));
    assert_eq!(other.out, [run(&other, E1)]);
}

#[test]
fn a_wide_producer_gets_its_processors_back_before_others_take_them() {
    let mut driver = Driver::with_compute(Config { processors: vec![2], ..config() }, 3);
    let wide = driver.submit(TaskSpec { cpus: 2, ..driver.compute("wide") });
    driver.stalled(wide.id, E0);
    let first = driver.submit(driver.compute("first"));
    let second = driver.submit(driver.compute("second"));
    assert_eq!((&first.out, &second.out), (&vec![run(&first, E1)], &vec![run(&second, E2)]));
    assert_eq!(driver.resume(wide.id), []);
    let third = driver.submit(driver.compute("third"));
    let runs = |it: &Instruction| matches!(it, Instruction::Run { .. });
    assert!(!driver.done(first.id, E1).iter().any(runs), "the processor is kept for the wide one");
    assert!(driver.done(second.id, E2).contains(&resume_at(&wide, E0)));
    assert!(driver.done(wide.id, E0).contains(&run(&third, E0)));
}

#[test]
fn a_stalled_io_task_gives_back_its_slot_and_its_grant() {
    let mut driver = Driver::with_io(vec![layer("disk", 10, None)], 1);
    let producer = driver.submit(driver.io("producer", 10, 0));
    let consumer = driver.submit(driver.io("consumer", 10, 0));
    assert_eq!(driver.stalled(producer.id, E0).len(), 1, "the consumer runs");
    assert_eq!(driver.resume(producer.id), [], "there is one slot");
    assert!(driver.done(consumer.id, E0).contains(&resume_at(&producer, E0)));
    driver.done(producer.id, E0);
    assert_eq!(driver.sched.live_tasks(), 0);
}

#[test]
fn what_stalled_on_an_executor_that_is_lost_runs_again() {
    let mut driver = Driver::with_compute(config(), 1);
    let producer = driver.submit(TaskSpec { retries: 1, ..driver.compute("producer") });
    driver.yielded(producer.id);
    let next = driver.sched.outputs(producer.id).to_vec();
    driver.stalled(producer.id, E0);
    driver.resume(producer.id);
    driver.stalled(producer.id, E0);
    let waits = driver.submit(driver.compute("waits"));
    driver.resume(producer.id);
    driver.lost(E0, &[producer.id, waits.id]);
    driver.up(E1, Kind::Compute, NodeId(0).0, 1);
    assert_eq!(driver.sched.outputs(producer.id), next, "it goes on with the version to come");
    driver.done(producer.id, E1);
    assert_eq!(driver.sched.counts().done, 1);
}

#[test]
fn a_stalled_run_that_was_given_up_holds_up_nobody_at_its_executor() {
    let mut driver = Driver::with_compute(config(), 1);
    let producer = driver.submit(driver.compute("producer"));
    let late = driver.submit(TaskSpec { timeout: Some(10), ..driver.compute("late") });
    driver.stalled(producer.id, E0);
    driver.resume(producer.id);
    assert!(driver.tick(10).contains(&Instruction::Retire { executor: E0 }));
    assert_eq!(driver.stalled(late.id, E0), [resume_at(&producer, E0)]);
    let out = driver.done(producer.id, E0);
    assert!(out.contains(&Instruction::Kill { executor: E0 }), "only the late one is left");
}

#[test]
fn a_value_that_comes_late_counts_and_the_version_after_it_is_known() {
    let mut driver = Driver::with_compute(config(), 1);
    let producer = TaskSpec { timeout: Some(10), ..driver.compute("producer") };
    let producer = driver.submit(producer);
    let first = producer.outputs[0];
    driver.now = 10;
    let out = driver.yielded(producer.id);
    let next = driver.sched.outputs(producer.id)[0];
    assert_ne!(first, next);
    assert!(out.contains(&resolve(first)));
    let fails = |it: &Instruction| match it {
        Instruction::Resolve { version, failure } => *version == next && failure.is_some(),
        _ => false,
    };
    assert!(out.iter().any(fails), "the driver has somebody to tell");
    driver.lost(E0, &[producer.id]);
    assert_eq!(driver.sched.counts().failed, 1);
}

#[test]
fn a_producer_that_is_given_up_while_it_wants_to_go_on_does_not() {
    let mut driver = Driver::with_compute(config(), 1);
    let late = driver.submit(TaskSpec { timeout: Some(10), ..driver.compute("late") });
    driver.stalled(late.id, E0);
    let other = driver.submit(driver.compute("other"));
    driver.resume(late.id);
    driver.tick(10);
    let out = driver.done(other.id, E0);
    assert!(out.contains(&Instruction::Kill { executor: E0 }));
    assert!(!out.contains(&resume_at(&late, E0)));
}

#[test]
fn a_task_that_comes_back_after_its_time_holds_up_nobody_at_its_executor() {
    let mut driver = Driver::with_compute(config(), 1);
    let producer = driver.submit(driver.compute("producer"));
    driver.stalled(producer.id, E0);
    let late = driver.submit(TaskSpec { timeout: Some(10), ..driver.compute("late") });
    assert_eq!(driver.cancel(late.id), [Instruction::Recall { task: late.id, executor: E0 }]);
    assert!(driver.tick(10).contains(&Instruction::Retire { executor: E0 }));
    driver.recalled(late.id, E0);
    assert_eq!(driver.sched.counts().failed, 1, "it is over");
    assert_eq!(driver.resume(producer.id), [resume_at(&producer, E0)]);
    let out = driver.done(producer.id, E0);
    assert!(out.contains(&Instruction::Kill { executor: E0 }));
}
