//! Learning: which epochs there are, when they end, what they leave to others, what is chosen.

mod driver;

use std::collections::BTreeMap;

use driver::*;
use sched::{
    size_class, Bounds, Entry, Event, ExecutorId, Instruction, Kind, Layer, LayerId, NodeId,
    Progress, Refusal, TaskId, TaskSpec, Tuned, Tuning,
};

fn auto(driver: &Driver) -> TaskSpec {
    TaskSpec { tuning: Tuning::Auto { bounds: None }, ..driver.io("checkpoint", 0, 0) }
}

fn bounded(driver: &Driver, min: u64, max: u64, delta_permille: u32) -> TaskSpec {
    let bounds = Bounds::new(min, max, delta_permille);
    assert!(bounds.is_some(), "the test asks for something sound");
    TaskSpec { tuning: Tuning::Auto { bounds }, ..auto(driver) }
}

/// The tasks that instructions send.
fn runs(out: &[Instruction]) -> Vec<TaskId> {
    let run = |one: &Instruction| match one {
        Instruction::Run { task, .. } => Some(*task),
        _ => None,
    };
    out.iter().filter_map(run).collect()
}

/// A driver whose tasks take what the test says for so many at once.
struct Learning {
    driver: Driver,
    running: Vec<TaskId>,
    began: BTreeMap<TaskId, u64>,
}

impl Learning {
    fn new(bandwidth: u64, slots: u32) -> Learning {
        let driver = Driver::with_io(vec![layer("disk", bandwidth, None)], slots);
        Learning { driver, running: Vec::new(), began: BTreeMap::new() }
    }

    fn submit(&mut self, spec: &TaskSpec, count: usize) {
        for _ in 0..count {
            let out = self.driver.submit(spec.clone()).out;
            self.begin(&out);
        }
    }

    fn begin(&mut self, out: &[Instruction]) {
        let (tasks, now) = (runs(out), self.driver.now);
        self.began.extend(tasks.iter().map(|task| (*task, now)));
        self.running.extend(tasks);
    }

    /// Ends a task that has run for so long, or for longer if it is later than that.
    fn end(&mut self, task: TaskId, ran: u64) {
        self.driver.now = self.driver.now.max(self.began[&task] + ran);
        self.running.retain(|other| *other != task);
        let out = self.driver.done_with(task, E0, &[], ran);
        self.begin(&out);
    }

    /// Ends all that runs now, each after the same time; how many that were.
    fn group(&mut self, ran: u64) -> usize {
        let now = self.running.clone();
        now.iter().for_each(|task| self.end(*task, ran));
        now.len()
    }

    fn tuned(&self) -> Tuned {
        let mut tuned = self.driver.sched.tuned();
        assert_eq!(tuned.len(), 1, "{tuned:?}");
        tuned.remove(0)
    }

    fn constraint(&self) -> u64 {
        match self.tuned().progress {
            Progress::Learning { constraint, .. } | Progress::Chosen { constraint } => constraint,
            Progress::Window { .. } => panic!("not adaptive"),
        }
    }
}

fn entry(constraint: u64, most: u32, mean_ns: u64) -> Entry {
    Entry { constraint, most, tasks: most, mean_ns, bytes: 0 }
}

#[test]
fn unbounded_starts_with_all_slots_and_doubles_while_the_time_halves() {
    let mut learning = Learning::new(450, 225);
    learning.submit(&auto(&learning.driver), 2000);
    let mut groups = Vec::new();
    for (constraint, ran) in [(2, 1000), (4, 500), (8, 200), (16, 101)] {
        assert_eq!(learning.constraint(), constraint);
        groups.push(learning.group(ran));
    }
    assert_eq!(groups, [225, 112, 56, 28], "as the layer lets run at once");
    let tuned = learning.tuned();
    let registered = [entry(2, 225, 1000), entry(4, 112, 500), entry(8, 56, 200)];
    assert_eq!(tuned.registry, registered, "101 is more than half of 200: not registered");
    assert_eq!(tuned.epochs, [&registered[..], &[entry(16, 28, 101)]].concat());
    assert_eq!(tuned.progress, Progress::Chosen { constraint: 8 }, "29 x 200 beats 8 x 1000");
    assert_eq!(learning.running.len(), 56);
}

#[test]
fn half_of_the_time_goes_on_and_a_nanosecond_more_ends_it() {
    for (second, goes_on) in [(500, true), (501, false)] {
        let mut learning = Learning::new(100, 10);
        learning.submit(&auto(&learning.driver), 100);
        learning.group(1000);
        learning.group(second);
        let learns = matches!(learning.tuned().progress, Progress::Learning { .. });
        assert_eq!(learns, goes_on, "{second}");
    }
}

#[test]
fn doubling_ends_at_the_bandwidth_of_the_layer() {
    let mut learning = Learning::new(100, 2);
    learning.submit(&auto(&learning.driver), 100);
    learning.group(1000);
    assert_eq!(learning.constraint(), 100);
    learning.group(10);
    assert_eq!(learning.tuned().registry, [entry(50, 2, 1000), entry(100, 1, 10)]);
    assert_eq!(learning.constraint(), 100, "97 x 10 beats 49 x 1000");
}

#[test]
fn bounded_goes_from_min_to_max_whatever_the_times() {
    let mut learning = Learning::new(450, 225);
    learning.submit(&bounded(&learning.driver, 2, 256, 2000), 2000);
    let mut tried = Vec::new();
    while let Progress::Learning { constraint, .. } = learning.tuned().progress {
        tried.push((constraint, learning.group(1000)));
    }
    let expected = [(2, 225), (4, 112), (8, 56), (16, 28), (32, 14), (64, 7), (128, 3), (256, 1)];
    assert_eq!(tried, expected);
    assert_eq!(learning.tuned().registry.len(), 8);
}

#[test]
fn a_step_may_be_a_fraction_and_never_stands_still() {
    let mut learning = Learning::new(100, 50);
    learning.submit(&bounded(&learning.driver, 4, 20, 1500), 2000);
    let mut tried = Vec::new();
    while let Progress::Learning { constraint, .. } = learning.tuned().progress {
        tried.push(constraint);
        learning.group(10);
    }
    assert_eq!(tried, [4, 6, 9, 13, 19]);
    let mut learning = Learning::new(100, 50);
    learning.submit(&bounded(&learning.driver, 1, 4, 1001), 2000);
    for _ in 0..4 {
        learning.group(10);
    }
    assert_eq!(learning.tuned().registry.len(), 4, "1, 2, 3, 4");
}

#[test]
fn the_mean_is_of_the_times_of_the_epoch() {
    let mut learning = Learning::new(30, 3);
    learning.submit(&auto(&learning.driver), 10);
    for ran in [50, 55, 60] {
        let task = learning.running[0];
        learning.end(task, ran);
    }
    // 55, with 3, 2 and 1 at once for 50, 5 and 5: 57 with 3 all the time.
    assert_eq!(learning.tuned().registry, [entry(10, 3, 57)]);
}

#[test]
fn means_are_compared_for_tasks_of_one_size() {
    let mut learning = Learning::new(40, 4);
    learning.submit(&auto(&learning.driver), 20);
    for (bytes, ran) in [(100, 80), (60, 24)] {
        for task in learning.running.clone() {
            let moved = Event::Moved { task, executor: E0, bytes };
            assert_eq!(learning.driver.event(moved), []);
        }
        learning.group(ran);
    }
    let half = Entry { bytes: 120, ..entry(20, 2, 40) };
    assert_eq!(learning.tuned().epochs[1], half, "24 for 60 bytes");
    assert_eq!(learning.constraint(), 40, "40 is half of 80, so it goes on");
}

#[test]
fn the_time_from_one_task_to_the_next_counts() {
    let mut learning = Learning::new(30, 3);
    learning.submit(&auto(&learning.driver), 10);
    let first = learning.running.clone();
    learning.driver.now = 52;
    first.iter().for_each(|task| learning.end(*task, 50));
    assert_eq!(learning.tuned().registry, [entry(10, 3, 52)], "the executors knew of 50");
}

#[test]
fn an_epoch_takes_no_more_tasks_than_have_to_end() {
    let mut learning = Learning::new(30, 3);
    learning.submit(&auto(&learning.driver), 10);
    assert_eq!(learning.running.len(), 3);
    let task = learning.running[0];
    learning.end(task, 10);
    assert_eq!(learning.running.len(), 2, "the next epoch waits for the rest of this one");
}

#[test]
fn a_run_that_fails_counts_for_nothing_and_another_takes_its_place() {
    let mut learning = Learning::new(30, 3);
    learning.submit(&auto(&learning.driver), 5);
    let failed = learning.running.remove(0);
    let out = learning.driver.raised(failed, E0);
    assert_eq!(runs(&out).len(), 1, "another one of the epoch");
    learning.begin(&out);
    assert_eq!(learning.group(50), 3);
    assert_eq!(learning.tuned().registry, [entry(10, 3, 50)]);
}

#[test]
fn nobody_else_runs_on_a_layer_where_a_function_learns() {
    let mut learning = Learning::new(100, 4);
    let other = learning.driver.submit(learning.driver.io("other", 10, 0));
    assert_eq!(other.out, [run_at(other.id, E0, 1, Some(0))]);
    learning.submit(&auto(&learning.driver), 9);
    assert_eq!(learning.running, [], "an epoch begins on an idle layer");
    assert_eq!(learning.driver.sched.set_aside(LayerId(0)), Some(learning.driver.function));
    let waits = learning.driver.submit(learning.driver.io("waits", 10, 0));
    assert_eq!(waits.out, []);
    let out = learning.driver.done(other.id, E0);
    learning.begin(&out);
    assert_eq!(learning.running.len(), 4);
    assert!(learning.running.iter().all(|task| learning.driver.sched.is_learning(*task)));
    learning.group(100);
    learning.group(80);
    assert!(learning.running.contains(&waits.id), "learning is over: who waited goes first");
}

#[test]
fn a_layer_is_not_set_aside_for_a_function_without_tasks() {
    let mut learning = Learning::new(100, 4);
    learning.submit(&auto(&learning.driver), 3);
    let other = learning.driver.submit(learning.driver.io("other", 10, 0));
    assert_eq!(other.out, []);
    learning.end(learning.running[0], 10);
    learning.end(learning.running[0], 10);
    assert_eq!(learning.running.len(), 1, "the epoch goes on");
    learning.end(learning.running[0], 10);
    assert_eq!(learning.running, [other.id], "one task of the epoch is missing: nobody waits");
    learning.submit(&auto(&learning.driver), 1);
    assert_eq!(learning.running, [other.id], "the epoch waits for an idle layer");
    learning.end(other.id, 10);
    learning.group(10);
    let mean_of_four = Entry { tasks: 4, ..entry(33, 3, 12) };
    assert_eq!(learning.tuned().registry, [mean_of_four], "of 10, with fewer than three at once");
}

#[test]
fn an_epoch_of_few_at_once_says_nothing_about_many() {
    let mut learning = Learning::new(160, 16);
    let spec = auto(&learning.driver);
    learning.submit(&spec, 2);
    for _ in 0..14 {
        learning.submit(&spec, 1);
        learning.end(learning.running[0], 100);
    }
    learning.group(100);
    let two_at_once = Entry { tasks: 16, ..entry(53, 3, 104) };
    assert_eq!(learning.tuned().registry, [two_at_once], "three at once, nearly always");
    assert_eq!(learning.constraint(), 80, "and on above that");
}

#[test]
fn an_epoch_of_fewer_is_followed_by_what_would_have_followed_anyway() {
    for (four, is_registered) in [(160, true), (161, false)] {
        let mut learning = Learning::new(160, 16);
        let spec = auto(&learning.driver);
        learning.submit(&spec, 16);
        assert_eq!(learning.group(1000), 16);
        learning.submit(&spec, 6);
        assert_eq!(learning.constraint(), 20, "eight may run");
        for _ in 0..2 {
            learning.end(learning.running[0], 200);
            learning.submit(&spec, 1);
        }
        learning.group(200);
        learning.submit(&spec, 100);
        assert_eq!(learning.constraint(), 40);
        assert_eq!(learning.group(four), 4);
        let five = Entry { tasks: 8, ..entry(32, 5, 200) };
        let tried = [entry(10, 16, 1000), five, entry(40, 4, four)];
        let tuned = learning.tuned();
        assert_eq!(tuned.epochs, tried, "five at once, on average");
        let registered = if is_registered { &tried[..] } else { &tried[..2] };
        assert_eq!(tuned.registry, registered, "four take at most four fifths of the time");
    }
}

/// A function whose tasks came so slowly that it learned with three at once, of sixteen.
fn learned_with_few() -> Learning {
    let mut learning = Learning::new(160, 16);
    let spec = auto(&learning.driver);
    learning.submit(&spec, 2);
    for _ in 0..14 {
        learning.submit(&spec, 1);
        learning.end(learning.running[0], 100);
    }
    learning.group(100);
    learning.submit(&spec, 2);
    learning.group(90);
    assert_eq!(learning.tuned().progress, Progress::Chosen { constraint: 53 });
    learning.submit(&spec, 300);
    assert_eq!(learning.constraint(), 26, "many wait: twice as many at once are tried");
    assert_eq!(learning.group(100), 3, "when those before are through");
    learning
}

#[test]
fn when_many_wait_at_last_more_at_once_are_tried_while_it_gains() {
    let mut learning = learned_with_few();
    for (at_once, constraint) in [(6, 26), (12, 13), (16, 10)] {
        assert_eq!(learning.constraint(), constraint);
        assert_eq!(learning.group(110), at_once);
    }
    assert_eq!(learning.tuned().progress, Progress::Chosen { constraint: 10 }, "what all may");
}

#[test]
fn more_at_once_that_do_not_gain_are_not_tried_further() {
    let mut learning = learned_with_few();
    assert_eq!(learning.group(209), 6);
    for _ in 0..40 {
        learning.submit(&auto(&learning.driver), 1);
        assert_eq!(learning.tuned().progress, Progress::Chosen { constraint: 53 });
        learning.group(100);
    }
    let tried: Vec<u64> = learning.tuned().registry.iter().map(|e| e.constraint).collect();
    assert_eq!(tried, [26, 53]);
}

#[test]
fn other_layers_and_lower_ones_go_on() {
    let layers = vec![layer("fast", 400, None), layer("slow", 100, None)];
    let mut driver = Driver::with_io(layers, 4);
    let first = driver.submit(auto(&driver));
    assert_eq!(first.out, [run_at(first.id, E0, 1, Some(0))]);
    let other = driver.submit(driver.io("other", 10, 0));
    assert_eq!(other.out, [run_at(other.id, E0, 1, Some(1))], "fast is set aside");
}

#[test]
fn an_epoch_that_is_quiet_is_given_up_and_its_tasks_are_not() {
    let mut learning = Learning::new(100, 4);
    learning.submit(&auto(&learning.driver), 6);
    let at = learning.driver.sched.next_deadline().expect("it is looked after");
    assert_eq!(learning.driver.tick(at - 1), []);
    assert_eq!(learning.tuned().abandoned, 0);
    let other = learning.driver.submit(learning.driver.io("other", 0, 0));
    assert_eq!(other.out, []);
    learning.driver.tick(at);
    let tuned = learning.tuned();
    assert_eq!((tuned.abandoned, tuned.progress), (1, Progress::Chosen { constraint: 25 }));
    assert_eq!(learning.driver.sched.set_aside(LayerId(0)), None);
    let stuck = learning.running.clone();
    stuck.iter().for_each(|task| learning.end(*task, 5));
    assert_eq!(learning.tuned().registry, [], "what ends late counts for nothing");
    assert_eq!(learning.running.len(), 3, "the two others and the one of another function");
    learning.group(5);
    assert_eq!(learning.driver.sched.live_tasks(), 0);
}

#[test]
fn a_task_of_an_epoch_whose_time_is_up_ends_the_epoch() {
    let mut learning = Learning::new(100, 2);
    let spec = TaskSpec { timeout: Some(10), ..auto(&learning.driver) };
    learning.submit(&spec, 2);
    learning.driver.tick(10);
    assert_eq!(learning.tuned().abandoned, 1);
    learning.driver.lost(E0, &learning.running.clone());
    learning.driver.up(E1, Kind::Io, 0, 2);
    learning.running.clear();
    let next = learning.driver.submit(auto(&learning.driver));
    assert!(learning.driver.sched.is_learning(next.id), "the layer is idle: it begins again");
}

#[test]
fn the_constraint_is_chosen_again_with_every_task_that_comes() {
    let mut learning = Learning::new(100, 10);
    learning.submit(&bounded(&learning.driver, 10, 50, 5000), 12);
    assert_eq!((learning.group(100), learning.group(40)), (10, 2));
    assert_eq!(learning.tuned().registry, [entry(10, 10, 100), entry(50, 2, 40)]);
    let mut chosen = Vec::new();
    for _ in 0..9 {
        learning.submit(&bounded(&learning.driver, 10, 50, 5000), 1);
        chosen.push(learning.constraint());
    }
    // Two run at once under 50; from the fifth on the ready ones take three groups of 40.
    assert_eq!(chosen, [50, 50, 50, 50, 50, 50, 10, 10, 10]);
}

#[test]
fn what_was_learned_is_not_learned_again() {
    let mut learning = Learning::new(100, 4);
    learning.submit(&auto(&learning.driver), 40);
    learning.group(100);
    learning.group(80);
    let learned = learning.driver.sched.learned();
    assert_eq!(learned.len(), 1);
    assert_eq!((&*learned[0].function, &*learned[0].layer), ("work", "disk"));
    let mut second = Learning::new(100, 4);
    second.driver.sched.load(learned.clone());
    second.submit(&auto(&second.driver), 40);
    assert_eq!(second.tuned().progress, Progress::Chosen { constraint: 25 });
    assert_eq!(second.tuned().epochs, []);
    assert_eq!(second.driver.sched.learned(), learned);
}

#[test]
fn how_many_at_once_was_learned_holds_for_another_measurement_of_the_layer() {
    let mut learning = Learning::new(100, 4);
    learning.submit(&auto(&learning.driver), 40);
    for mean in [100, 50, 40] {
        learning.group(mean);
    }
    let learned = learning.driver.sched.learned();
    assert_eq!(learned[0].entries, [entry(25, 4, 100), entry(50, 2, 50)]);
    for (bandwidth, constraints) in [(99, [24, 49]), (101, [25, 50]), (20, [5, 10])] {
        let mut again = Learning::new(bandwidth, 4);
        again.driver.sched.load(learned.clone());
        again.submit(&auto(&again.driver), 40);
        let [four, two] = constraints;
        assert_eq!(again.tuned().registry, [entry(four, 4, 100), entry(two, 2, 50)]);
        assert_eq!(again.tuned().epochs, []);
    }
    let mut fewer = Learning::new(100, 2);
    fewer.driver.sched.load(learned);
    fewer.submit(&auto(&fewer.driver), 40);
    assert_eq!(fewer.tuned().registry, [entry(50, 2, 50)], "four cannot run at once");
}

#[test]
fn what_was_learned_outside_of_the_bounds_or_for_other_slots_is_not_used() {
    let mut learning = Learning::new(100, 4);
    learning.submit(&bounded(&learning.driver, 10, 20, 2000), 40);
    learning.group(100);
    learning.group(80);
    let learned = learning.driver.sched.learned();
    let tried: Vec<u64> = learned[0].entries.iter().map(|entry| entry.constraint).collect();
    assert_eq!(tried, [10, 20]);
    let mut higher = Learning::new(100, 4);
    higher.driver.sched.load(learned.clone());
    higher.submit(&bounded(&higher.driver, 20, 50, 2500), 4);
    assert_eq!(higher.tuned().registry, learned[0].entries[1..], "10 is out of bounds");
    let mut wider = Learning::new(100, 8);
    wider.driver.sched.load(learned);
    wider.submit(&bounded(&wider.driver, 10, 20, 2000), 8);
    let learns = matches!(wider.tuned().progress, Progress::Learning { constraint: 10, .. });
    assert!(learns, "four ran at once under either then; eight and five would now");
}

#[test]
fn the_engine_has_slots_of_its_own_that_others_do_not_learn_with() {
    let mut learning = Learning::new(800, 8);
    let engine = Event::ExecutorUp {
        executor: ExecutorId(9),
        kind: Kind::Engine,
        node: NodeId(0),
        slots: 128,
        extra: 0,
    };
    learning.driver.event(engine);
    learning.submit(&auto(&learning.driver), 8);
    assert_eq!(learning.constraint(), 100, "a share for each of the eight");
    let adaptive = TaskSpec { tuning: Tuning::Adaptive, ..auto(&learning.driver) };
    let mut following = Learning::new(800, 8);
    following.driver.event(Event::ExecutorUp {
        executor: ExecutorId(9),
        kind: Kind::Engine,
        node: NodeId(0),
        slots: 128,
        extra: 0,
    });
    following.submit(&adaptive, 40);
    match following.tuned().progress {
        Progress::Window { tasks, .. } => assert!((1..=8).contains(&tasks), "{tasks} at once"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_function_size_and_layer_learns_for_itself() {
    let layers = vec![layer("fast", 400, None), layer("slow", 100, None)];
    let mut driver = Driver::with_io(layers, 20);
    let other = driver.sched.add_function("other".into());
    let on = |spec: TaskSpec, layer| TaskSpec { layer: Some(LayerId(layer)), ..spec };
    let sized = |size| TaskSpec { constraint: constraint(0, size), ..auto(&driver) };
    let specs = [
        on(sized(100), 0),
        on(sized(127), 0),
        on(sized(128), 0),
        on(sized(100), 1),
        on(TaskSpec { function: other, ..sized(100) }, 1),
    ];
    for spec in specs {
        let task = driver.submit(spec);
        for run in runs(&task.out) {
            driver.done(run, E0);
        }
    }
    let mut of: Vec<_> = driver
        .sched
        .tuned()
        .iter()
        .map(|t| (t.function.0, t.size_class, t.layer.clone()))
        .collect();
    of.sort();
    let (fast, slow) = (String::from("fast"), String::from("slow"));
    assert_eq!(of, [(0, 7, fast.clone()), (0, 7, slow.clone()), (0, 8, fast), (1, 7, slow)]);
    assert_eq!([0, 1, 127, 128].map(size_class), [0, 1, 7, 8]);
}

/// Two nodes, each with a disk of its own.
fn two_disks() -> Driver {
    let local = |node| Layer { node: Some(NodeId(node)), ..layer("disk", 100, None) };
    let layers = vec![local(0), local(1)];
    let mut driver = Driver::new(sched::Config { layers, processors: vec![1, 1], ..config() });
    driver.up(E0, Kind::Io, 0, 2);
    driver.up(E1, Kind::Io, 1, 2);
    driver
}

#[test]
fn disks_alike_on_different_nodes_learn_once() {
    let mut driver = two_disks();
    let tasks: Vec<Taken> = (0..9).map(|_| driver.submit(auto(&driver))).collect();
    let sent = |taken: &[Taken]| taken.iter().flat_map(|task| runs(&task.out)).count();
    assert_eq!(sent(&tasks), 3, "an epoch on one of them, and one task meanwhile on the other");
    let learns = |driver: &Driver, task: usize| driver.sched.is_learning(tasks[task].id);
    assert!(learns(&driver, 0) && !learns(&driver, 1) && learns(&driver, 2));
    let out = driver.done_with(tasks[1].id, E1, &[], 1);
    assert_eq!(runs(&out), [tasks[3].id], "as many there as the middle of what could be: one");
    driver.now = 100;
    driver.done_with(tasks[0].id, E0, &[], 100);
    driver.done_with(tasks[2].id, E0, &[], 100);
    driver.now = 160;
    driver.done_with(tasks[4].id, E0, &[], 60);
    let tuned = driver.sched.tuned();
    assert_eq!(tuned.len(), 1);
    assert_eq!(tuned[0].progress, Progress::Chosen { constraint: 50 });
    assert_eq!(driver.sched.granted(LayerId(0)).map(|granted| granted.bandwidth), Some(100));
    assert_eq!(tuned[0].registry, [entry(50, 2, 100)], "what ran meanwhile counts for nothing");
}

#[test]
fn tasks_that_name_the_other_disk_take_the_epoch_there() {
    let mut driver = two_disks();
    let first = driver.submit(auto(&driver));
    let there = TaskSpec { layer: Some(LayerId(1)), ..auto(&driver) };
    let second = driver.submit(there.clone());
    assert_eq!(runs(&second.out), [second.id]);
    assert!(!driver.sched.is_learning(second.id), "the epoch is on the first disk");
    driver.done_with(second.id, E1, &[], 1);
    driver.now = 100;
    driver.done_with(first.id, E0, &[], 100);
    let third = driver.submit(there);
    assert!(driver.sched.is_learning(third.id), "nothing more to run on the first");
    driver.now = 150;
    driver.done_with(third.id, E1, &[], 50);
    let alone = Entry { tasks: 2, ..entry(100, 1, 75) };
    assert_eq!(driver.sched.tuned()[0].registry, [alone]);
}

#[test]
fn of_equal_layers_the_one_with_the_fewest_tasks() {
    let mut driver = two_disks();
    let on: Vec<_> = (0..4)
        .map(|_| match driver.submit(driver.io("w", 1, 0)).out[..] {
            [Instruction::Run { layer, .. }] => layer.map(|layer| layer.0),
            _ => None,
        })
        .collect();
    assert_eq!(on, [Some(0), Some(1), Some(0), Some(1)]);
}

#[test]
fn bytes_that_vary_are_told() {
    let mut learning = Learning::new(100, 2);
    learning.submit(&auto(&learning.driver), 2);
    for (at, bytes) in [(0, 100), (1, 400)] {
        let task = learning.running[at];
        let moved = sched::Event::Moved { task, executor: E0, bytes };
        assert_eq!(learning.driver.event(moved), []);
    }
    learning.group(10);
    let tuned = learning.tuned();
    assert_eq!(tuned.registry[0].bytes, 500);
    assert!(!tuned.varies, "four times is one kind of task");
    learning.submit(&auto(&learning.driver), 1);
    let task = learning.running[0];
    learning.driver.event(sched::Event::Moved { task, executor: E0, bytes: 404 });
    learning.group(10);
    assert!(learning.tuned().varies);
}

#[test]
fn bounds_beyond_every_layer_are_refused() {
    let mut driver = Driver::with_io(vec![layer("disk", 100, None)], 4);
    let refused = driver.try_submit(bounded(&driver, 10, 101, 2000));
    assert!(matches!(refused, Err(Refusal::NoLayer { asked, .. }) if asked.bandwidth == 101));
    let unsound = [(0, 10, 2000), (11, 10, 2000), (1, 10, 1000)];
    assert!(unsound.iter().all(|(min, max, delta)| Bounds::new(*min, *max, *delta).is_none()));
}

#[test]
fn without_a_limit_there_is_nothing_to_learn() {
    let endless = Layer { bandwidth: None, ..layer("endless", 0, None) };
    for layers in [vec![endless], vec![]] {
        let mut driver = Driver::with_io(layers, 3);
        let sent: usize = (0..5).map(|_| runs(&driver.submit(auto(&driver)).out).len()).sum();
        assert_eq!(sent, 3, "all slots are used");
        assert_eq!(driver.sched.tuned(), []);
    }
}

#[test]
fn a_cancelled_task_waits_no_more() {
    let mut learning = Learning::new(100, 1);
    let tasks: Vec<Taken> =
        (0..3).map(|_| learning.driver.submit(auto(&learning.driver))).collect();
    learning.driver.cancel(tasks[1].id);
    let out = learning.driver.done_with(tasks[0].id, E0, &[], 10);
    assert_eq!(runs(&out), [tasks[2].id]);
}
