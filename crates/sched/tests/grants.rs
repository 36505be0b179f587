//! I/O tasks: executor slots, grants on layers, and the policy `fcfs`.

mod driver;

use driver::*;
use sched::{
    Config, Constraint, ExecutorId, Instruction, Kind, Layer, LayerId, NodeId, Refusal, TaskSpec,
    Way,
};

fn granted(driver: &Driver, layer: u32) -> (u64, u64) {
    let granted = driver.sched.granted(LayerId(layer)).expect("known");
    (granted.bandwidth, granted.size)
}

#[test]
fn an_io_task_takes_a_slot_and_no_processor() {
    let mut driver = Driver::new(Config { processors: vec![1], ..config() });
    driver.up(E0, Kind::Compute, 0, 1);
    driver.up(E1, Kind::Io, 0, 2);
    let compute = driver.submit(driver.compute("a"));
    let io: Vec<Taken> = (0..3).map(|_| driver.submit(driver.io("w", 5, 5))).collect();
    assert_eq!(compute.out, [run(&compute, E0)]);
    assert_eq!(io[0].out, [run(&io[0], E1)], "no layers: no grant is needed");
    assert_eq!(io[1].out, [run(&io[1], E1)]);
    assert_eq!(io[2].out, [], "both slots are taken");
    assert_eq!(driver.done(io[1].id, E1)[2..], [run(&io[2], E1)]);
}

#[test]
fn the_executor_with_the_most_free_slots_is_chosen() {
    let mut driver = Driver::new(config());
    driver.up(E0, Kind::Io, 0, 2);
    driver.up(E1, Kind::Io, 0, 3);
    let picked: Vec<Instruction> =
        (0..5).flat_map(|_| driver.submit(driver.io("w", 0, 0)).out).collect();
    let executors: Vec<ExecutorId> = picked
        .iter()
        .map(|run| match run {
            Instruction::Run { executor, .. } => *executor,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(executors, [E1, E0, E1, E0, E1]);
}

#[test]
fn a_task_waits_for_bandwidth_and_the_next_that_fits_is_tried() {
    let mut driver = Driver::with_io(vec![layer("disk", 100, None)], 9);
    let first = driver.submit(driver.io("a", 60, 0));
    let head = driver.submit(driver.io("b", 50, 0));
    let small = driver.submit(driver.io("c", 40, 0));
    let last = driver.submit(driver.io("d", 50, 0));
    assert_eq!(first.out, [run_at(first.id, E0, 1, Some(0))]);
    assert_eq!(head.out, []);
    assert_eq!(small.out, [run_at(small.id, E0, 1, Some(0))], "the head does not fit; this does");
    assert_eq!(last.out, []);
    assert_eq!(granted(&driver, 0), (100, 0));
    let out = driver.done(first.id, E0);
    assert_eq!(out[2..], [run_at(head.id, E0, 1, Some(0))]);
    let out = driver.done(small.id, E0);
    assert_eq!(out[2..], [run_at(last.id, E0, 1, Some(0))]);
    driver.done(head.id, E0);
    driver.done(last.id, E0);
    assert_eq!(granted(&driver, 0), (0, 0));
}

#[test]
fn one_end_may_let_many_start() {
    let mut driver = Driver::with_io(vec![layer("disk", 100, None)], 9);
    let big = driver.submit(driver.io("big", 100, 0));
    let small: Vec<Taken> = (0..3).map(|_| driver.submit(driver.io("small", 30, 0))).collect();
    let out = driver.done(big.id, E0);
    let runs: Vec<Instruction> = small.iter().map(|task| run_at(task.id, E0, 1, Some(0))).collect();
    assert_eq!(out[2..], runs);
}

#[test]
fn the_highest_layer_with_both_to_spare() {
    let layers = vec![
        layer("disk", 100, None),
        layer("memory", 1000, Some(50)),
        layer("flash", 500, Some(500)),
    ];
    let mut driver = Driver::with_io(layers, 9);
    let mut on = |bandwidth: u64, size: u64| {
        let task = driver.submit(driver.io("w", bandwidth, size));
        match task.out[..] {
            [Instruction::Run { layer, .. }] => layer.map(|layer| layer.0),
            _ => None,
        }
    };
    assert_eq!(on(10, 40), Some(1), "memory has both");
    assert_eq!(on(10, 40), Some(2), "memory has 10 bytes left");
    assert_eq!(on(990, 10), Some(1), "just fits");
    assert_eq!(on(10, 1), Some(2), "no bandwidth is left in memory");
    assert_eq!(on(490, 0), None, "480 left of flash, 100 of disk");
    assert_eq!(on(10, 480), Some(0), "flash has 459 bytes left");
}

#[test]
fn of_equal_bandwidth_the_smaller_layer_goes_first() {
    let layers = vec![layer("large", 100, Some(900)), layer("small", 100, Some(90))];
    let mut driver = Driver::with_io(layers, 9);
    let task = driver.submit(driver.io("w", 10, 10));
    assert_eq!(task.out, [run_at(task.id, E0, 1, Some(1))]);
    let layers = vec![layer("endless", 100, None), layer("large", 100, Some(900))];
    let mut driver = Driver::with_io(layers, 9);
    let task = driver.submit(driver.io("w", 10, 10));
    assert_eq!(task.out, [run_at(task.id, E0, 1, Some(1))]);
}

#[test]
fn a_layer_without_limit_is_the_highest_and_takes_all() {
    let endless = Layer { name: "endless".into(), ..Layer::default() };
    let mut driver = Driver::with_io(vec![layer("disk", 1 << 60, None), endless], 9);
    for _ in 0..2 {
        let task = driver.submit(driver.io("w", 1 << 62, 1 << 62));
        assert_eq!(task.out, [run_at(task.id, E0, 1, Some(1))]);
    }
}

#[test]
fn a_task_that_names_its_layer_waits_for_that_one() {
    let layers = vec![layer("disk", 100, None), layer("flash", 500, None)];
    let mut driver = Driver::with_io(layers, 9);
    let spec = TaskSpec { layer: Some(LayerId(0)), ..driver.io("w", 100, 0) };
    let first = driver.submit(spec.clone());
    let second = driver.submit(spec);
    assert_eq!(first.out, [run_at(first.id, E0, 1, Some(0))]);
    assert_eq!(second.out, [], "though flash is idle");
    let free = driver.submit(driver.io("w", 100, 0));
    assert_eq!(free.out, [run_at(free.id, E0, 1, Some(1))]);
    assert_eq!(driver.done(first.id, E0)[2..], [run_at(second.id, E0, 1, Some(0))]);
}

#[test]
fn a_layer_of_a_node_is_reached_from_there_only() {
    let local = Layer { node: Some(NodeId(1)), ..layer("local", 500, None) };
    let layers = vec![layer("shared", 100, None), local];
    let mut driver = Driver::new(Config { layers, processors: vec![1, 1], ..config() });
    driver.up(E0, Kind::Io, 0, 9);
    let shared = driver.submit(driver.io("w", 10, 0));
    assert_eq!(shared.out, [run_at(shared.id, E0, 1, Some(0))], "no executor on node 1");
    driver.up(E1, Kind::Io, 1, 1);
    let local = driver.submit(driver.io("w", 10, 0));
    assert_eq!(local.out, [run_at(local.id, E1, 1, Some(1))], "the higher one, from node 1");
    let full = driver.submit(driver.io("w", 10, 0));
    assert_eq!(full.out, [run_at(full.id, E0, 1, Some(0))], "no slot is left on node 1");
}

#[test]
fn the_programs_priority_goes_before_arrival() {
    let mut driver = Driver::with_io(vec![layer("disk", 100, None)], 9);
    let first = driver.submit(driver.io("a", 100, 0));
    let low = driver.submit(driver.io("b", 100, 0));
    let high = driver.submit(TaskSpec { priority: 1, ..driver.io("c", 100, 0) });
    assert_eq!(driver.done(first.id, E0)[2..], [run_at(high.id, E0, 1, Some(0))]);
    assert_eq!(driver.done(high.id, E0)[2..], [run_at(low.id, E0, 1, Some(0))]);
}

#[test]
fn a_retry_keeps_its_arrival_and_its_grant_is_given_back() {
    let mut driver = Driver::with_io(vec![layer("disk", 100, None)], 9);
    let spec = TaskSpec { retries: 1, ..driver.io("a", 100, 7) };
    let first = driver.submit(spec.clone());
    let second = driver.submit(spec);
    assert_eq!(driver.raised(first.id, E0), [run_at(first.id, E0, 2, Some(0))]);
    assert_eq!(granted(&driver, 0), (100, 7));
    assert_eq!(second.out, []);
    driver.raised(first.id, E0);
    assert_eq!(driver.sched.granted(LayerId(0)), Some(constraint(100, 7)));
    driver.lost(E0, &[]);
    assert_eq!(granted(&driver, 0), (0, 0));
    assert_eq!(driver.up(E1, Kind::Io, 0, 1), [run_at(second.id, E1, 2, Some(0))]);
}

#[test]
fn a_cancelled_request_is_passed_over() {
    let mut driver = Driver::with_io(vec![layer("disk", 100, None)], 9);
    let tasks: Vec<Taken> = (0..3).map(|_| driver.submit(driver.io("a", 100, 0))).collect();
    driver.cancel(tasks[1].id);
    assert_eq!(driver.done(tasks[0].id, E0)[2..], [run_at(tasks[2].id, E0, 1, Some(0))]);
}

#[test]
fn a_cancelled_head_lets_nobody_of_its_class_overtake() {
    let layers = vec![layer("disk", 100, None), layer("flash", 500, Some(50))];
    let mut driver = Driver::new(Config { layers, ..config() });
    let here = TaskSpec { layer: Some(LayerId(0)), ..driver.io("here", 100, 60) };
    let head = driver.submit(here.clone());
    let any = driver.submit(driver.io("any", 100, 60));
    let after = driver.submit(here);
    driver.cancel(head.id);
    let out = driver.up(E0, Kind::Io, 0, 9);
    assert_eq!(out, [run_at(any.id, E0, 1, Some(0))], "it came before the other");
    assert_eq!(driver.done(any.id, E0)[2..], [run_at(after.id, E0, 1, Some(0))]);
}

/// 600 bytes a second can be read, 450 written, 800 together.
fn both_ways() -> Driver {
    let disk =
        Layer { read_bandwidth: Some(600), write_bandwidth: Some(450), ..layer("disk", 800, None) };
    Driver::with_io(vec![disk], 9)
}

fn goes(driver: &mut Driver, way: Way, bandwidth: u64) -> Taken {
    let constraint = Constraint { way, ..constraint(bandwidth, 0) };
    driver.submit(TaskSpec { constraint, ..driver.io("io", 0, 0) })
}

#[test]
fn what_is_read_and_what_is_written_are_granted_apart() {
    let mut driver = both_ways();
    let write = goes(&mut driver, Way::Write, 400);
    let second = goes(&mut driver, Way::Write, 100);
    let read = goes(&mut driver, Way::Read, 400);
    let more = goes(&mut driver, Way::Read, 100);
    assert_eq!(write.out, [run_at(write.id, E0, 1, Some(0))]);
    assert_eq!(second.out, [], "450 can be written");
    assert_eq!(read.out, [run_at(read.id, E0, 1, Some(0))], "and 600 read");
    assert_eq!(more.out, [], "800 are granted, all there is");
    assert_eq!(granted(&driver, 0), (800, 0));
    let out = driver.done(write.id, E0);
    let runs = [run_at(second.id, E0, 1, Some(0)), run_at(more.id, E0, 1, Some(0))];
    assert_eq!(out[2..], runs);
    for task in [second, read, more] {
        driver.done(task.id, E0);
    }
    assert_eq!(granted(&driver, 0), (0, 0));
}

#[test]
fn a_task_that_may_do_both_takes_of_both() {
    let mut driver = both_ways();
    let both = goes(&mut driver, Way::Both, 400);
    let write = goes(&mut driver, Way::Write, 100);
    let read = goes(&mut driver, Way::Read, 201);
    let less = goes(&mut driver, Way::Read, 200);
    assert_eq!(both.out, [run_at(both.id, E0, 1, Some(0))]);
    assert_eq!((&write.out[..], &read.out[..]), (&[][..], &[][..]));
    assert_eq!(less.out, [run_at(less.id, E0, 1, Some(0))]);
}

#[test]
fn what_can_never_be_granted_one_way_is_refused() {
    let mut driver = both_ways();
    let mut refused = |way, bandwidth| {
        let constraint = Constraint { way, ..constraint(bandwidth, 0) };
        let spec = TaskSpec { constraint, ..driver.io("io", 0, 0) };
        match driver.sched.submit(0, &spec, &mut Vec::new()) {
            Err(Refusal::NoLayer { asked, nearest }) => Some((asked == constraint, nearest)),
            _ => None,
        }
    };
    assert_eq!(refused(Way::Read, 600), None);
    let nearest = |text: &str| Some((true, text.to_string()));
    assert_eq!(refused(Way::Read, 601), nearest("disk (bandwidth to read, bytes/s: 600)"));
    assert_eq!(refused(Way::Write, 451), nearest("disk (bandwidth to write, bytes/s: 450)"));
    assert_eq!(refused(Way::Both, 451), nearest("disk (bandwidth, bytes/s: 450)"));
}
