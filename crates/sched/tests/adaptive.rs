//! The adaptive window in the scheduler: grants, windows and neighbours.

mod driver;

use driver::*;
use sched::{
    Config, Constraint, Event, Instruction, Kind, Layer, LayerId, NodeId, Progress, TaskId,
    TaskSpec, Tuning, Way,
};

fn adaptive(driver: &Driver) -> TaskSpec {
    TaskSpec { tuning: Tuning::Adaptive, ..driver.io("write", 0, 1000) }
}

/// The tasks that instructions send.
fn runs(out: &[Instruction]) -> Vec<TaskId> {
    let run = |one: &Instruction| match one {
        Instruction::Run { task, .. } => Some(*task),
        _ => None,
    };
    out.iter().filter_map(run).collect()
}

/// One layer whose rate depends on how many tasks it serves, shared evenly.
struct Disk {
    driver: Driver,
    running: Vec<TaskId>,
    rate: fn(f64) -> f64,
}

impl Disk {
    fn new(slots: u32, rate: fn(f64) -> f64) -> Disk {
        let driver = Driver::with_io(vec![layer("disk", 1_000_000, None)], slots);
        Disk { driver, running: Vec::new(), rate }
    }

    fn submit(&mut self, spec: &TaskSpec, count: usize) {
        for _ in 0..count {
            let out = self.driver.submit(spec.clone()).out;
            self.note(&out);
        }
    }

    fn note(&mut self, out: &[Instruction]) {
        self.running.extend(runs(out));
    }

    /// Ends all that runs now at once; how many that were.
    fn generation(&mut self) -> usize {
        let all = std::mem::take(&mut self.running);
        let tasks = all.len() as f64;
        self.driver.now += (1000.0 * tasks / (self.rate)(tasks) * 1e9) as u64;
        for task in &all {
            let out = self.driver.done_with(*task, E0, &[], 1);
            self.note(&out);
        }
        all.len()
    }

    fn window(&self) -> u32 {
        let windows = self.driver.sched.tuned();
        match windows[..] {
            [sched::Tuned { progress: Progress::Window { tasks, .. }, .. }] => tasks,
            _ => panic!("{windows:?}"),
        }
    }
}

/// A layer that was measured: sixteen at once are best.
fn measured() -> Layer {
    let measured = vec![(1, 100), (4, 300), (16, 400), (64, 100)];
    Layer { measured, ..layer("disk", 1_000_000, None) }
}

#[test]
fn a_window_begins_where_the_layer_was_measured_to_be_best() {
    for (way, first) in [(Way::Both, 16), (Way::Write, 16), (Way::Read, 10)] {
        let driver = Driver::with_io(vec![measured()], 100);
        let mut disk = Disk { driver, running: Vec::new(), rate: |_| 1e6 };
        let spec = adaptive(&disk.driver);
        let constraint = Constraint { way, ..spec.constraint };
        disk.submit(&TaskSpec { constraint, ..spec }, 200);
        assert_eq!(disk.running.len(), first, "{way:?}: it was measured by writing");
    }
}

#[test]
fn a_function_that_reads_and_one_that_writes_do_not_begin_with_the_curve_of_the_other() {
    for ways in [[Way::Read, Way::Write], [Way::Write, Way::Read]] {
        let mut driver = Driver::with_io(vec![measured()], 100);
        let other = driver.sched.add_function("other".into());
        let mut begun = Vec::new();
        for (function, way) in [driver.function, other].into_iter().zip(ways) {
            let spec = TaskSpec { function, ..adaptive(&driver) };
            let spec = TaskSpec { constraint: Constraint { way, ..spec.constraint }, ..spec };
            let tasks: Vec<Taken> = (0..40).map(|_| driver.submit(spec.clone())).collect();
            let sent: Vec<TaskId> = tasks.iter().flat_map(|task| runs(&task.out)).collect();
            begun.push((way, sent.len()));
            let mut sent = sent;
            while let Some(task) = sent.pop() {
                driver.now += 1;
                sent.extend(runs(&driver.done_with(task, E0, &[], 1)));
            }
        }
        begun.sort_by_key(|(way, _)| *way != Way::Read);
        assert_eq!(begun, [(Way::Read, 10), (Way::Write, 16)], "{ways:?}");
    }
}

#[test]
fn a_window_may_begin_with_slots_that_are_only_for_limited_tasks() {
    let mut driver = Driver::new(Config { layers: vec![measured()], ..config() });
    driver.event(Event::ExecutorUp {
        executor: E0,
        kind: Kind::Io,
        node: NodeId(0),
        slots: 4,
        extra: 60,
    });
    let mut disk = Disk { driver, running: Vec::new(), rate: |_| 1e6 };
    let spec = adaptive(&disk.driver);
    disk.submit(&spec, 100);
    assert_eq!(disk.running.len(), 16);
}

#[test]
fn the_window_finds_the_peak_and_grants_are_shares_of_the_layer() {
    let mut disk = Disk::new(64, |tasks| 1e6 * if tasks < 8.0 { tasks / 8.0 } else { 8.0 / tasks });
    disk.submit(&adaptive(&disk.driver), 3000);
    assert_eq!(disk.running.len(), 8, "the middle between one task and all slots");
    let sizes: Vec<usize> = (0..40).map(|_| disk.generation()).collect();
    let at_peak = sizes[10..].iter().filter(|tasks| **tasks == 8).count();
    assert!(at_peak >= 25, "{sizes:?}");
    let granted = disk.driver.sched.granted(LayerId(0)).expect("known").bandwidth;
    assert!((900_000..=1_000_000).contains(&granted), "{granted}");
    while !disk.running.is_empty() {
        disk.generation();
    }
    assert_eq!(disk.driver.sched.granted(LayerId(0)).expect("known").bandwidth, 0);
}

#[test]
fn a_window_that_grows_is_filled_at_once() {
    let mut disk = Disk::new(64, |tasks| 1e4 * tasks);
    disk.submit(&adaptive(&disk.driver), 2000);
    let mut sizes: Vec<usize> = (0..10).map(|_| disk.generation()).collect();
    sizes.dedup();
    assert_eq!(sizes[..4], [8, 16, 32, 64]);
    for task in &disk.running {
        let (_, grant) = disk.driver.sched.grant_of(*task).expect("it runs");
        assert_eq!(grant.bandwidth, 1_000_000 / u64::from(disk.window()));
    }
}

#[test]
fn tasks_with_a_constraint_of_their_own_are_left_their_bandwidth() {
    let mut disk = Disk::new(64, |_| 1e6);
    let half = disk.driver.submit(disk.driver.io("static", 500_000, 0));
    assert_eq!(half.out, [run_at(half.id, E0, 1, Some(0))]);
    disk.submit(&adaptive(&disk.driver), 20);
    assert_eq!(disk.running.len(), 4, "half of the window of eight");
    let out = disk.driver.done(half.id, E0);
    disk.note(&out);
    assert_eq!(disk.running.len(), 8);
}

#[test]
fn functions_share_the_window_and_each_may_run_one() {
    let mut disk = Disk::new(64, |_| 1e6);
    let other = disk.driver.sched.add_function("other".into());
    disk.submit(&adaptive(&disk.driver), 20);
    assert_eq!(disk.running.len(), 8);
    let spec = TaskSpec { function: other, priority: 1, ..adaptive(&disk.driver) };
    disk.submit(&spec, 3);
    assert_eq!(disk.running.len(), 8, "no bandwidth is left");
    let first = disk.running.remove(0);
    let out = disk.driver.done_with(first, E0, &[], 1);
    disk.note(&out);
    assert_eq!(disk.running.len(), 8, "the one of the higher priority");
    assert_eq!(disk.driver.sched.tuned().len(), 2);
}

#[test]
fn what_the_driver_reports_goes_before_what_was_declared() {
    let mut disk = Disk::new(4, |_| 1e6);
    disk.submit(&adaptive(&disk.driver), 8);
    for _ in 0..3 {
        for task in disk.running.clone() {
            disk.driver.event(Event::Moved { task, executor: E0, bytes: 5000 });
        }
        disk.generation();
    }
    let tuned = disk.driver.sched.tuned();
    let Progress::Window { rate, .. } = tuned[0].progress else { panic!("{tuned:?}") };
    assert_eq!(rate, 5_000_000, "five times what was declared, at the declared rate");
}

#[test]
fn tasks_are_counted_where_bytes_are_not_known() {
    let mut disk = Disk::new(4, |_| 1e6);
    let spec = TaskSpec { tuning: Tuning::Adaptive, ..disk.driver.io("write", 0, 0) };
    disk.submit(&spec, 8);
    for _ in 0..2 {
        disk.generation();
    }
    let tuned = disk.driver.sched.tuned();
    let Progress::Window { rate, .. } = tuned[0].progress else { panic!("{tuned:?}") };
    assert_eq!(rate, 1_000_000, "a thousand a second, in tasks a thousand seconds");
}
