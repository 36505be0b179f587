//! Bodies that give their processor back: their executor takes others, and continues them.

mod driver;

use std::collections::{BTreeMap, BTreeSet};

use driver::*;
use proptest::collection::vec;
use proptest::prelude::*;
use sched::{Config, Instruction, TaskSpec};

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

#[test]
fn a_task_whose_body_runs_already_is_at_its_executor_beside_the_one_that_was_sent() {
    let mut driver = Driver::with_compute(config(), 1);
    let spawner = driver.submit(driver.compute("spawner"));
    let begun = driver.submit_begun(driver.compute("begun"), E0);
    assert_eq!(begun.out, [], "nobody is to run it");
    let accesses = vec![reads(begun.outputs[0])];
    let dependent = driver.submit(TaskSpec { accesses, ..driver.compute("dependent") });
    assert_eq!(dependent.out, [], "it waits");
    assert_eq!(driver.done(spawner.id, E0).last(), Some(&forgotten(spawner.id)));
    assert!(driver.done(begun.id, E0).contains(&run(&dependent, E0)));
    driver.done(dependent.id, E0);
    assert_eq!(driver.sched.counts().done, 3);
}

#[test]
fn a_task_whose_body_runs_already_is_lost_with_its_executor() {
    let mut driver = Driver::with_compute(config(), 1);
    let spawner = driver.submit(driver.compute("spawner"));
    let begun = driver.submit_begun(driver.compute("begun"), E0);
    driver.lost(E0, &[spawner.id, begun.id]);
    assert_eq!(driver.sched.counts().failed, 2);
    assert_eq!(driver.sched.live_tasks(), 0);
}

#[test]
#[should_panic = "it waits for nothing"]
fn a_task_that_waits_has_not_begun() {
    let mut driver = Driver::with_compute(config(), 1);
    let spawner = driver.submit(driver.compute("spawner"));
    let accesses = vec![reads(spawner.outputs[0])];
    driver.submit_begun(TaskSpec { accesses, ..driver.compute("dependent") }, E0);
}

fn two_workers() -> Driver {
    let (processors, pipeline_ns_max) = (vec![2], 50_000);
    let config =
        Config { processors, pipeline_ns_max, pipeline_tasks_max: 64, stealing: true, ..config() };
    Driver::with_compute(config, 2)
}

#[test]
fn what_is_behind_a_task_that_went_on_is_taken_by_who_is_idle() {
    let mut driver = two_workers();
    let first = driver.submit(driver.compute("first"));
    let other = driver.submit(driver.compute("other"));
    driver.paused(first.id, E0);
    let behind = driver.submit(driver.compute("behind"));
    assert_eq!(behind.out, [run(&behind, E0)]);
    driver.done(other.id, E1);
    let recall = Instruction::Recall { task: behind.id, executor: E0 };
    assert_eq!(driver.went_on(first.id, E0), [recall]);
    assert_eq!(driver.recalled(behind.id, E0), [run_at(behind.id, E1, 2, None)]);
    // It has its processor now, until it pauses again.
    let more = driver.submit(driver.compute("more"));
    assert_eq!(more.out, [run(&more, E1)]);
    let recall = Instruction::Recall { task: more.id, executor: E1 };
    assert_eq!(driver.paused(first.id, E0), [recall]);
    assert_eq!(driver.recalled(more.id, E1), [run_at(more.id, E0, 2, None)]);
    driver.done(first.id, E0);
    assert_eq!(driver.went_on(first.id, E0), [], "it is over");
}

proptest! {
    // Whatever pauses and goes on in whatever order, and whatever begins beside it: the driver
    // looks at the scheduler after each event, everything runs, and where somebody is idle nothing
    // waits that could be taken back.
    #[test]
    fn tasks_pause_and_go_on_in_any_order(moves in vec((0..6usize, 0..5u8), 1..80)) {
        let mut driver = two_workers();
        let taken: Vec<_> = (0..6).map(|_| driver.submit(driver.compute("task"))).collect();
        let mut tasks: Vec<_> = taken.iter().map(|task| task.id).collect();
        let mut places = BTreeMap::new();
        let mut over = BTreeSet::new();
        let note = |driver: &mut Driver, mut out: Vec<Instruction>, places: &mut BTreeMap<_, _>| {
            while let Some(next) = out.pop() {
                match next {
                    Instruction::Run { task, executor, .. } => drop(places.insert(task, executor)),
                    Instruction::Recall { task, executor } => {
                        places.remove(&task);
                        out.extend(driver.recalled(task, executor));
                    }
                    _ => {}
                }
            }
        };
        taken.into_iter().for_each(|task| note(&mut driver, task.out, &mut places));
        for (task, what) in moves {
            let (at, task) = (task, tasks[task]);
            let Some(executor) = places.get(&task).copied() else { continue };
            let out = match what {
                0 | 1 => driver.paused(task, executor),
                2 => driver.went_on(task, executor),
                3 => {
                    let begun = driver.submit_begun(driver.compute("begun"), executor);
                    places.insert(begun.id, executor);
                    let before = std::mem::replace(&mut tasks[at], begun.id);
                    tasks.push(before);
                    begun.out
                }
                _ => {
                    places.remove(&task);
                    over.insert(task);
                    driver.done(task, executor)
                }
            };
            note(&mut driver, out, &mut places);
        }
        while over.len() < tasks.len() {
            let (task, executor) = places.pop_first().expect("somebody has what is left");
            over.insert(task);
            let out = driver.done(task, executor);
            note(&mut driver, out, &mut places);
        }
        prop_assert_eq!(driver.sched.live_tasks(), 0);
    }
}
