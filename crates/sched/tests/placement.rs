//! Where compute tasks go: priority, locality, arrival; what is sent ahead and taken back.

mod driver;

use driver::*;
use sched::{Config, ExecutorId, Instruction, Kind, TaskId, TaskSpec};

/// Three nodes of two processors with one executor each, node by node.
fn three_nodes(stealing: bool) -> Driver {
    let processors = vec![2, 2, 2];
    Driver::new(Config { processors, stealing, ..config() })
}

fn up_on_each(driver: &mut Driver) {
    for node in 0..3 {
        driver.up(ExecutorId(node), Kind::Compute, node, 1);
    }
}

fn order(out: &[Instruction]) -> Vec<TaskId> {
    let run = |instruction: &Instruction| match instruction {
        Instruction::Run { task, .. } => Some(*task),
        _ => None,
    };
    out.iter().filter_map(run).collect()
}

#[test]
fn a_task_runs_at_once_where_an_executor_is_idle() {
    let mut driver = Driver::with_compute(config(), 1);
    let task = driver.submit(driver.compute("a"));
    assert_eq!(task.out, [run(&task, E0)]);
    let out = driver.done_with(task.id, E0, &[8], 10);
    assert_eq!(out, [resolve(task.outputs[0]), forgotten(task.id)]);
    assert_eq!(driver.forget(task.outputs[0]), [discard(task.outputs[0])]);
    assert_eq!((driver.sched.live_tasks(), driver.sched.live_versions()), (0, 0));
}

#[test]
fn priority_goes_before_arrival() {
    let mut driver = Driver::new(config());
    let tasks: Vec<TaskId> = [0, 5, -1, 5, 0]
        .map(|priority| driver.submit(TaskSpec { priority, ..driver.compute("a") }).id)
        .to_vec();
    let mut seen = order(&driver.up(E0, Kind::Compute, 0, 1));
    for _ in 0..4 {
        let out = driver.done(*seen.last().unwrap(), E0);
        seen.extend(order(&out));
    }
    assert_eq!(seen, [1, 3, 0, 4, 2].map(|at| tasks[at]));
}

#[test]
fn a_task_that_comes_back_keeps_its_arrival() {
    let mut driver = Driver::with_compute(config(), 1);
    let spec = TaskSpec { retries: 1, ..driver.compute("a") };
    let (first, second) = (driver.submit(spec.clone()), driver.submit(spec));
    assert_eq!(second.out, []);
    let out = driver.raised(first.id, E0);
    assert_eq!(out, [run_at(first.id, E0, 2, None)], "before the one that came later");
}

#[test]
fn a_task_goes_where_most_bytes_of_its_inputs_are() {
    let mut driver = three_nodes(false);
    up_on_each(&mut driver);
    let mut versions = Vec::new();
    for (node, size) in [(0, 10), (1, 30), (2, 25)] {
        let task = driver.submit(driver.compute("make"));
        let executor = ExecutorId(node);
        assert_eq!(task.out, [run(&task, executor)], "the fewest tied tasks, then the lowest");
        driver.done_with(task.id, executor, &[size], 10);
        versions.push(task.outputs[0]);
    }
    let all = versions.iter().map(|version| reads(*version)).collect();
    let task = driver.submit(TaskSpec { accesses: all, ..driver.compute("use") });
    assert_eq!(task.out, [run(&task, E1)]);
    let two = vec![reads(versions[0]), reads(versions[2])];
    let task = driver.submit(TaskSpec { accesses: two, ..driver.compute("use") });
    assert_eq!(task.out, [run(&task, E2)]);
}

#[test]
fn of_equal_bytes_the_fewest_tied_tasks_then_the_lowest_node() {
    let mut driver = three_nodes(false);
    let tasks: Vec<TaskId> = (0..4).map(|_| driver.submit(driver.compute("a")).id).collect();
    up_on_each(&mut driver);
    let at =
        |task: TaskId, driver: &Driver| driver.sched.state(task).map(|state| state.to_string());
    assert_eq!(at(tasks[3], &driver).as_deref(), Some("Ready"), "the second of node 0 waits");
    let out = driver.done(tasks[0], E0);
    assert_eq!(order(&out), [tasks[3]]);
}

#[test]
fn producers_are_spread_by_the_bytes_that_they_will_make() {
    let mut driver = three_nodes(false);
    let mut nodes = Vec::new();
    for produces in [100, 10, 10, 10, 10, 10, 90] {
        nodes.push(driver.submit(TaskSpec { produces, ..driver.compute("make") }).id);
    }
    // 100 | 10 | 10, then 10 | 10 to the other two in turn, and 90 to the least (30 | 20).
    let mut placed = vec![Vec::new(); 3];
    for node in 0..3 {
        let id = ExecutorId(node);
        let mut out = driver.up(id, Kind::Compute, node, 1);
        while let Some(task) = order(&out).first().copied() {
            placed[node as usize].push(nodes.iter().position(|other| *other == task).unwrap());
            out = driver.done(task, id);
        }
    }
    assert_eq!(placed, [vec![0], vec![1, 3, 5], vec![2, 4, 6]]);
}

#[test]
fn a_node_that_is_too_small_is_not_considered() {
    let processors = vec![1, 4, 2];
    let mut driver = Driver::new(Config { processors, ..config() });
    up_on_each(&mut driver);
    let task = driver.submit(TaskSpec { cpus: 3, ..driver.compute("wide") });
    assert_eq!(task.out, [run(&task, E1)]);
}

#[test]
fn processors_are_counted() {
    let mut driver = Driver::new(Config { processors: vec![4], ..config() });
    for id in 0..4 {
        driver.up(ExecutorId(id), Kind::Compute, 0, 1);
    }
    let wide = driver.submit(TaskSpec { cpus: 3, ..driver.compute("wide") });
    let narrow = driver.submit(driver.compute("narrow"));
    let waits = driver.submit(driver.compute("waits"));
    assert_eq!(wide.out, [run(&wide, E0)]);
    assert_eq!(narrow.out, [run(&narrow, E1)]);
    assert_eq!(waits.out, [], "four of four processors are taken");
    let out = driver.done(wide.id, E0);
    assert_eq!(out[2..], [run(&waits, E0)]);
}

#[test]
fn nothing_is_sent_ahead_before_the_mean_is_known() {
    let pipeline = Config { pipeline_tasks_max: 3, ..config() };
    let mut driver = Driver::with_compute(pipeline, 1);
    let tasks: Vec<Taken> = (0..5).map(|_| driver.submit(driver.compute("a"))).collect();
    assert_eq!(tasks[0].out, [run(&tasks[0], E0)]);
    assert_eq!(tasks[1].out, [], "how long it runs is not known");
    let out = driver.done(tasks[0].id, E0);
    // The one before it was sent without an estimate, and is over; these are known to be short.
    let ahead: Vec<Instruction> = tasks[1..4].iter().map(|task| run(task, E0)).collect();
    assert_eq!(out[2..], ahead, "three at once, and no more");
    let out = driver.done(tasks[1].id, E0);
    assert_eq!(out[2..], [run(&tasks[4], E0)]);
}

#[test]
fn only_so_much_time_is_sent_ahead() {
    let pipeline = Config { pipeline_tasks_max: 9, pipeline_ns_max: 100, ..config() };
    let mut driver = Driver::with_compute(pipeline, 1);
    let first = driver.submit(driver.compute("a"));
    driver.done_with(first.id, E0, &[], 40);
    let tasks: Vec<Taken> = (0..3).map(|_| driver.submit(driver.compute("a"))).collect();
    assert_eq!(tasks[0].out, [run(&tasks[0], E0)]);
    assert_eq!(tasks[1].out, [run(&tasks[1], E0)], "80 of 100 ns");
    assert_eq!(tasks[2].out, []);
}

#[test]
fn the_shortest_line_is_chosen() {
    let pipeline = Config { pipeline_tasks_max: 9, ..config() };
    let mut driver = Driver::with_compute(pipeline, 2);
    let first = driver.submit(driver.compute("a"));
    driver.done_with(first.id, E0, &[], 40);
    let slow = driver.sched.add_function("slow".into());
    let long = driver.submit(TaskSpec { function: slow, ..driver.compute("slow") });
    assert_eq!(long.out, [run(&long, E0)]);
    driver.done_with(long.id, E0, &[], 500);
    let long = driver.submit(TaskSpec { function: slow, ..driver.compute("slow") });
    let short: Vec<Taken> = (0..3).map(|_| driver.submit(driver.compute("a"))).collect();
    assert_eq!(long.out, [run(&long, E0)]);
    let ran: Vec<Instruction> = short.iter().flat_map(|task| task.out.clone()).collect();
    let ahead: Vec<Instruction> = short.iter().map(|task| run(task, E1)).collect();
    assert_eq!(ran, ahead, "all behind each other, 120 ns against 500");
}

#[test]
fn a_task_with_a_timeout_is_alone_at_its_executor() {
    let pipeline = Config { pipeline_tasks_max: 9, ..config() };
    let mut driver = Driver::with_compute(pipeline, 1);
    let first = driver.submit(driver.compute("a"));
    driver.done(first.id, E0);
    let timed = TaskSpec { timeout: Some(50), ..driver.compute("timed") };
    let timed = [driver.submit(timed.clone()), driver.submit(timed)];
    let plain = driver.submit(driver.compute("a"));
    assert_eq!(timed[0].out, [run(&timed[0], E0)]);
    assert_eq!((&timed[1].out[..], &plain.out[..]), (&[][..], &[][..]));
    let out = driver.done(timed[0].id, E0);
    assert_eq!(out[2..], [run(&timed[1], E0)]);
    assert_eq!(driver.done(timed[1].id, E0)[2..], [run(&plain, E0)]);
}

#[test]
fn an_idle_executor_takes_half_of_the_longest_line_back() {
    let pipeline = Config { pipeline_tasks_max: 9, stealing: true, ..config() };
    let mut driver = Driver::with_compute(pipeline, 1);
    let first = driver.submit(driver.compute("a"));
    driver.done(first.id, E0);
    let line: Vec<Taken> = (0..5).map(|_| driver.submit(driver.compute("a"))).collect();
    let recall = |at: usize| Instruction::Recall { task: line[at].id, executor: E0 };
    assert_eq!(driver.up(E1, Kind::Compute, 0, 1), [recall(4), recall(3)]);
    assert_eq!(driver.tick(1), [], "each is asked back once");
    assert_eq!(driver.recalled(line[4].id, E0), [run_at(line[4].id, E1, 2, None)]);
    let out = driver.recalled(line[3].id, E0);
    assert_eq!(out, [run_at(line[3].id, E1, 2, None)], "the shortest line again");
    assert_eq!(driver.recalled(line[3].id, E0), [], "a second answer changes nothing");
}

#[test]
fn without_stealing_lines_stay_and_so_do_nodes() {
    let pipeline = Config { pipeline_tasks_max: 9, ..config() };
    let mut driver = Driver::with_compute(pipeline, 1);
    let first = driver.submit(driver.compute("a"));
    driver.done(first.id, E0);
    (0..5).for_each(|_| drop(driver.submit(driver.compute("a"))));
    assert_eq!(driver.up(E1, Kind::Compute, 0, 1), []);

    let mut driver = three_nodes(false);
    let first = driver.submit(driver.compute("a"));
    assert_eq!(driver.up(E1, Kind::Compute, 1, 1), [], "tied to node 0");
    assert_eq!(driver.up(E0, Kind::Compute, 0, 1), [run(&first, E0)]);
}

#[test]
fn stealing_takes_from_the_richest_node() {
    let mut driver = three_nodes(true);
    let tasks: Vec<Taken> = (0..4).map(|_| driver.submit(driver.compute("a"))).collect();
    let out = driver.up(E1, Kind::Compute, 1, 1);
    assert_eq!(out, [run(&tasks[1], E1)], "its own first");
    let out = driver.done(tasks[1].id, E1);
    assert_eq!(out[2..], [run(&tasks[0], E1)], "then of node 0, which has two");
}

#[test]
fn stealing_leaves_a_task_to_its_own_node_if_that_is_idle() {
    let mut driver = three_nodes(true);
    up_on_each(&mut driver);
    let first = driver.submit(driver.compute("a"));
    let made = driver.submit(driver.compute("make"));
    assert_eq!((&first.out, &made.out), (&vec![run(&first, E0)], &vec![run(&made, E1)]));
    driver.done(first.id, E0);
    driver.done_with(made.id, E1, &[100], 10);
    let access = vec![reads(made.outputs[0])];
    let near = driver.submit(TaskSpec { accesses: access.clone(), ..driver.compute("use") });
    assert_eq!(near.out, [run(&near, E1)], "its bytes are on node 1, and so is an idle executor");
    let next = driver.submit(TaskSpec { accesses: access, ..driver.compute("use") });
    assert_eq!(next.out, [run(&next, E0)], "node 1 is at work: another takes it");
}

#[test]
fn a_cancelled_task_at_the_head_does_not_hide_those_behind_it_from_a_thief() {
    let processors = vec![2, 2, 2];
    let mut driver = Driver::new(Config { processors, stealing: true, ..config() });
    let tasks: Vec<Taken> = (0..6).map(|_| driver.submit(driver.compute("a"))).collect();
    // Node 0 has two dead entries, node 1 two live ones.
    driver.cancel(tasks[0].id);
    driver.cancel(tasks[3].id);
    let out = driver.up(E2, Kind::Compute, 2, 1);
    assert_eq!(out, [run(&tasks[2], E2)]);
    let out = driver.done(tasks[2].id, E2);
    assert_eq!(out[2..], [run(&tasks[5], E2)]);
    let out = driver.done(tasks[5].id, E2);
    assert_eq!(out[2..], [run(&tasks[1], E2)]);
}
