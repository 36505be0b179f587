//! Bodies that give their processor back: their executor takes others, and continues them.

mod driver;

use driver::*;
use sched::{Config, TaskSpec};

#[test]
fn an_executor_whose_task_pauses_takes_the_next() {
    let mut driver = Driver::with_compute(config(), 1);
    let first = driver.submit(driver.compute("first"));
    let second = driver.submit(driver.compute("second"));
    assert_eq!(first.out, [run(&first, E0)]);
    assert_eq!(second.out, [], "the executor is taken");
    assert_eq!(driver.paused(first.id, E0), [run(&second, E0)]);
    assert_eq!(driver.paused(first.id, E0), [], "once is enough");
    assert_eq!(driver.sched.counts().sent, 2);
}

#[test]
fn dependents_wait_for_the_end_and_not_for_the_pause() {
    let mut driver = Driver::with_compute(config(), 1);
    let first = driver.submit(driver.compute("first"));
    let accesses = vec![reads(first.outputs[0])];
    let dependent = driver.submit(TaskSpec { accesses, ..driver.compute("dependent") });
    assert_eq!(driver.paused(first.id, E0), []);
    assert!(driver.done(first.id, E0).contains(&run(&dependent, E0)));
}

#[test]
fn a_paused_task_takes_no_processor_of_its_node() {
    let mut driver = Driver::with_compute(Config { processors: vec![2], ..config() }, 2);
    let wide = driver.submit(TaskSpec { cpus: 2, ..driver.compute("wide") });
    let narrow = driver.submit(driver.compute("narrow"));
    assert_eq!(narrow.out, []);
    assert_eq!(driver.paused(wide.id, E0), [run(&narrow, E0)]);
}

#[test]
fn what_paused_on_an_executor_that_is_lost_fails() {
    let mut driver = Driver::with_compute(config(), 1);
    let first = driver.submit(driver.compute("first"));
    driver.paused(first.id, E0);
    driver.lost(E0, &[first.id]);
    assert_eq!(driver.sched.counts().failed, 1);
    assert_eq!(driver.sched.live_tasks(), 0);
}

#[test]
fn a_paused_task_can_run_out_of_time() {
    let mut driver = Driver::with_compute(config(), 1);
    let late = driver.submit(TaskSpec { timeout: Some(10), ..driver.compute("late") });
    driver.paused(late.id, E0);
    assert_eq!(driver.sched.next_deadline(), Some(10));
    driver.tick(10);
    driver.lost(E0, &[late.id]);
    assert_eq!(driver.sched.counts().failed, 1);
}

#[test]
fn io_tasks_have_no_processor_to_give_back() {
    let mut driver = Driver::with_io(vec![layer("disk", 100, None)], 1);
    let first = driver.submit(driver.io("first", 10, 0));
    let second = driver.submit(driver.io("second", 10, 0));
    assert_eq!(driver.paused(first.id, E0), []);
    assert_eq!(driver.done(first.id, E0).len(), 3, "resolved, forgotten, and the next runs");
    assert_eq!(second.out, []);
}
