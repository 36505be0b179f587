//! Policies by instruction lists: who begins, who waits, and for how long at most.

mod driver;

use driver::*;
use sched::{Config, FunctionId, Instruction, Kind, Layer, LayerId, PolicyKind};
use sched::{TaskId, TaskSpec, Tuning};

fn with(policy: PolicyKind, layers: Vec<Layer>, slots: u32) -> Driver {
    let mut driver = Driver::new(Config { layers, policy, ..config() });
    driver.up(E0, Kind::Io, 0, slots);
    driver
}

fn one_disk(policy: PolicyKind) -> Driver {
    with(policy, vec![layer("disk", 100, None)], 9)
}

/// Tasks that begin, in order, with their layers.
fn begun(out: &[Instruction]) -> Vec<(TaskId, u32)> {
    let run = |instruction: &Instruction| match instruction {
        Instruction::Run { task, layer, .. } => Some((*task, layer.map_or(0, |layer| layer.0))),
        _ => None,
    };
    out.iter().filter_map(run).collect()
}

fn end(driver: &mut Driver, task: &Taken, ran: u64) -> Vec<(TaskId, u32)> {
    begun(&driver.done_with(task.id, E0, &[], ran))
}

#[test]
fn highest_bandwidth_first_and_nobody_passes_the_head() {
    let mut driver = one_disk(PolicyKind::Priority);
    let first = driver.submit(driver.io("a", 60, 0));
    let (small, smaller) =
        (driver.submit(driver.io("b", 30, 0)), driver.submit(driver.io("c", 20, 0)));
    assert_eq!(begun(&small.out), [(small.id, 0)], "it is the head, and fits");
    assert_eq!(begun(&smaller.out), []);
    let large = driver.submit(driver.io("d", 80, 0));
    let urgent = driver.submit(TaskSpec { priority: 1, ..driver.io("e", 70, 0) });
    assert_eq!(end(&mut driver, &small, 10), [], "the urgent one waits, and all with it");
    assert_eq!(end(&mut driver, &first, 10), [(urgent.id, 0)]);
    assert_eq!(end(&mut driver, &urgent, 10), [(large.id, 0), (smaller.id, 0)]);
}

#[test]
fn a_head_that_is_cancelled_holds_nobody_up() {
    let mut driver = one_disk(PolicyKind::Priority);
    driver.submit(driver.io("a", 60, 0));
    let head = driver.submit(driver.io("b", 50, 0));
    let small = driver.submit(driver.io("c", 20, 0));
    assert_eq!((begun(&head.out), begun(&small.out)), (vec![], vec![]));
    assert_eq!(begun(&driver.cancel(head.id)), [(small.id, 0)]);
}

#[test]
fn nobody_waits_behind_who_needs_something_else() {
    let layers = vec![layer("fast", 100, None), layer("slow", 50, None)];
    let mut driver = with(PolicyKind::Priority, layers, 9);
    driver.up(E1, Kind::Engine, 0, 2);
    let only = |driver: &Driver, at, bandwidth| TaskSpec {
        layer: Some(LayerId(at)),
        ..driver.io("only", bandwidth, 0)
    };
    let first = driver.submit(only(&driver, 0, 80));
    let head = driver.submit(only(&driver, 0, 60));
    assert_eq!((first.out.len(), head.out.len()), (1, 0));
    let slow = driver.submit(only(&driver, 1, 10));
    assert_eq!(begun(&slow.out), [(slow.id, 1)], "another layer by name");
    let engine = driver.submit(TaskSpec { kind: Kind::Engine, ..driver.io("engine", 10, 0) });
    assert_eq!(begun(&engine.out), [(engine.id, 0)], "another kind of slot");
    let free = driver.submit(driver.io("free", 0, 0));
    assert_eq!(begun(&free.out), [(free.id, 0)], "no bandwidth is asked for");
    let adaptive = TaskSpec { tuning: Tuning::Adaptive, ..driver.io("adaptive", 0, 0) };
    let adaptive = driver.submit(adaptive);
    assert_eq!(begun(&adaptive.out), [(adaptive.id, 0)], "one that is tuned");
}

/// A function with its mean on both layers: `fast` and `slow` nanoseconds.
fn measured(policy: PolicyKind, fast: u64, slow: u64) -> Driver {
    let layers = vec![layer("fast", 100, None), layer("slow", 50, None)];
    let mut driver = with(policy, layers, 9);
    for (at, ran) in [(0, fast), (1, slow)] {
        let task = driver.submit(TaskSpec { layer: Some(LayerId(at)), ..driver.io("m", 1, 0) });
        driver.done_with(task.id, E0, &[], ran);
    }
    driver
}

#[test]
fn a_head_waits_for_a_higher_layer_if_that_is_sooner() {
    let mut driver = measured(PolicyKind::Priority, 100, 300);
    let first = driver.submit(driver.io("a", 60, 0));
    let second = driver.submit(driver.io("b", 50, 0));
    assert_eq!(begun(&first.out), [(first.id, 0)]);
    assert_eq!(begun(&second.out), [], "100 to wait and 100 there: less than 300 here");
    let third = driver.submit(driver.io("c", 40, 0));
    assert_eq!(begun(&third.out), [], "it waits with the head");
    driver.now = 100;
    assert_eq!(end(&mut driver, &first, 100), [(second.id, 0), (third.id, 0)]);
    let mut driver = measured(PolicyKind::Priority, 100, 150);
    driver.submit(driver.io("a", 60, 0));
    let second = driver.submit(driver.io("b", 50, 0));
    assert_eq!(begun(&second.out), [(second.id, 1)], "150 here is less");
}

#[test]
fn nobody_waits_for_one_that_hangs() {
    let mut driver = measured(PolicyKind::Priority, 100, 300);
    driver.submit(driver.io("hangs", 60, 0));
    let second = driver.submit(driver.io("b", 50, 0));
    assert_eq!(begun(&driver.tick(200)), [], "it is late, by no more than its time");
    assert_eq!(driver.sched.next_deadline(), Some(201));
    assert_eq!(begun(&driver.tick(201)), [(second.id, 1)]);
    assert_eq!(driver.sched.next_deadline(), None);
}

#[test]
fn who_ends_before_the_head_can_begin_goes_first() {
    let mut driver = one_disk(PolicyKind::Backfilling);
    let short = FunctionId(1);
    driver.sched.add_function("short".into());
    let quick = |driver: &Driver| TaskSpec { function: short, ..driver.io("q", 10, 0) };
    for (spec, ran) in [(driver.io("m", 80, 0), 1000), (quick(&driver), 300)] {
        let task = driver.submit(spec);
        driver.done_with(task.id, E0, &[], ran);
    }
    let running = driver.submit(driver.io("a", 80, 0));
    let head = driver.submit(driver.io("b", 60, 0));
    assert_eq!((begun(&running.out).len(), begun(&head.out)), (1, vec![]));
    let long = driver.submit(driver.io("c", 10, 0));
    assert_eq!(begun(&long.out), [], "1000 is not less than 1000");
    let one = driver.submit(quick(&driver));
    assert_eq!(begun(&one.out), [(one.id, 0)], "300 is");
    driver.now = 800;
    let two = driver.submit(quick(&driver));
    assert_eq!(begun(&two.out), [], "the head can begin in 200, or when the first quick one ends");
    driver.done_with(one.id, E0, &[], 300);
    driver.now = 1000;
    let begun = end(&mut driver, &running, 1000);
    assert_eq!(begun, [(head.id, 0), (long.id, 0), (two.id, 0)]);
}

#[test]
fn estimates_come_from_sizes_until_there_are_measurements() {
    let mut driver = one_disk(PolicyKind::Backfilling);
    let s = 1_000_000_000;
    let running = driver.submit(driver.io("a", 80, 800));
    driver.submit(driver.io("head", 60, 600));
    assert_eq!(begun(&driver.submit(driver.io("c", 10, 100)).out), [], "10 s are not less");
    let short = driver.submit(driver.io("d", 20, 100));
    assert_eq!(begun(&short.out), [(short.id, 0)], "5 s are less than 10");
    driver.now = 10 * s;
    driver.done_with(running.id, E0, &[], 10 * s);
}

#[test]
fn a_head_that_files_leave_no_room_for_holds_nobody_up() {
    for policy in [PolicyKind::Priority, PolicyKind::Backfilling] {
        let mut driver = with(policy, vec![layer("disk", 100, Some(100))], 9);
        let file = driver.file();
        let first = driver.submit(driver.io("a", 10, 10));
        driver.file_at(file, Some(0), 50, Some(0));
        let head = driver.submit(driver.io("b", 90, 60));
        let other = driver.submit(driver.io("c", 10, 10));
        assert_eq!((begun(&head.out), begun(&other.out)), (vec![], vec![(other.id, 0)]));
        driver.done(other.id, E0);
        driver.done(first.id, E0);
        let out = driver.event(sched::Event::FileGone { datum: file });
        assert_eq!(begun(&out), [(head.id, 0)]);
    }
}

#[test]
fn a_request_that_was_passed_too_often_is_passed_no_more() {
    let mut driver = one_disk(PolicyKind::Fcfs);
    let mut running: Vec<Taken> = (0..2).map(|_| driver.submit(driver.io("a", 40, 0))).collect();
    let large = driver.submit(driver.io("large", 100, 0));
    let mut passed = 0;
    loop {
        let next = driver.submit(driver.io("small", 40, 0));
        let begun = end(&mut driver, &running.remove(0), 10);
        if begun.is_empty() {
            break;
        }
        assert_eq!(begun, [(next.id, 0)]);
        running.push(next);
        passed += 1;
        assert!(passed < 1000, "it is passed for ever");
    }
    assert_eq!(passed, 256, "first come, first served, but the next is tried");
    assert_eq!(end(&mut driver, &running[0], 10), [(large.id, 0)]);
    assert_eq!(driver.sched.granted(LayerId(0)), Some(constraint(100, 0)));
}
