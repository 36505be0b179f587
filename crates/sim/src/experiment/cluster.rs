//! Twelve nodes of 48 processors with a disk each, under the real scheduler and a virtual clock:
//! no faults, congested storage.

use std::sync::Arc;

use graph::{TaskId, VersionId};
use sched::{
    Config, Constraint, Event, ExecutorId, Instruction, Kind, Layer, LayerId, NodeId, Outcome,
    Sched, TaskSpec, Tuned, Tuning,
};

use super::applications::{Application, Work};
use crate::calendar::{self, Calendar, Machine};
use crate::hash::{mix_all, Map};
use crate::storage::{Curve, Disk, Weather};

/// Nodes of the machine.
pub const NODES: u32 = 12;
/// Processors of each.
pub const PROCESSORS: u32 = 48;

/// How the writing tasks are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// As compute tasks.
    Baseline,
    /// As I/O tasks that ask for nothing.
    Unconstrained,
    /// As I/O tasks that ask for so many bytes a second.
    Static(u64),
    /// As I/O tasks whose bandwidth is tuned.
    Tuned(Tuning),
    /// As adaptive ones, on disks that were measured before.
    Measured,
}

/// The storage of an experiment: a disk in each node, or one that all share.
#[derive(Clone, Debug)]
pub struct Storage {
    /// What a disk can move, as its description says, in bytes a second.
    pub bandwidth: u64,
    /// Whether there is one disk for all nodes.
    pub shared: bool,
    /// What a disk moves over how many use it.
    pub curve: Curve,
    /// How its speed changes; each disk has its own noise.
    pub weather: Weather,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcomes {
    /// When the last task ended, in nanoseconds.
    pub total_ns: u64,
    /// The mean time of a writing task.
    pub write_ns: u64,
    /// What a disk moved while it was used, bytes a second.
    pub rate: f64,
    /// What the tuner told in the end.
    pub tuned: Vec<Tuned>,
    /// Events that the scheduler handled.
    pub events: u64,
}

/// As `alongside probe` measures.
fn measured(curve: &Curve) -> Vec<(u32, u64)> {
    [1, 2, 4, 8, 16, 32, 64].map(|tasks| (tasks, curve.rate(tasks as usize) as u64)).to_vec()
}

struct Cluster<'a> {
    application: &'a Application,
    policy: Policy,
    sched: Sched,
    calendar: Calendar,
    numbers: Map<TaskId, usize>,
    outputs: Vec<Option<VersionId>>,
    /// By task: where and since when it runs.
    running: Vec<Option<(TaskId, ExecutorId, u64)>>,
    over: usize,
    writes: (u64, u128),
    events: u64,
}

impl<'a> Cluster<'a> {
    fn new(application: &'a Application, policy: Policy, storage: &Storage) -> Cluster<'a> {
        let disks = if storage.shared { 1 } else { NODES };
        let disk = |node| Layer {
            name: "disk".to_string(),
            bandwidth: Some(storage.bandwidth),
            node: (!storage.shared).then_some(NodeId(node)),
            measured: match policy {
                Policy::Measured => measured(&storage.curve),
                _ => Vec::new(),
            },
            ..Layer::default()
        };
        let mut sched = Sched::new(Config {
            layers: (0..disks).map(disk).collect(),
            processors: vec![PROCESSORS; NODES as usize],
            stealing: true,
            pipeline_tasks_max: 1,
            ..Config::default()
        });
        for name in &application.functions {
            sched.add_function(Arc::from(*name));
        }
        let disk = |node: u32| {
            let seed = mix_all(&[storage.weather.seed, u64::from(node)]);
            Disk::new(storage.curve.clone(), Weather { seed, ..storage.weather })
        };
        let tasks = application.tasks.len();
        Cluster {
            application,
            policy,
            sched,
            calendar: Calendar::new((0..disks).map(disk).collect()),
            numbers: Map::default(),
            outputs: vec![None; tasks],
            running: vec![None; tasks],
            over: 0,
            writes: (0, 0),
            events: 0,
        }
    }

    fn start_executors(&mut self) {
        let (constrained, unconstrained) = self.application.io_executors;
        let slots = match self.policy {
            Policy::Unconstrained => unconstrained,
            _ => constrained,
        };
        calendar::start_executors(self, NODES, PROCESSORS, slots);
    }

    fn spec(&self, number: usize) -> TaskSpec {
        let task = &self.application.tasks[number];
        let io = matches!(task.work, Work::Write(_)) && self.policy != Policy::Baseline;
        let (bandwidth, tuning) = match self.policy {
            Policy::Static(bandwidth) if io => (bandwidth, Tuning::Static),
            Policy::Tuned(tuning) if io => (0, tuning),
            Policy::Measured if io => (0, Tuning::Adaptive),
            _ => (0, Tuning::Static),
        };
        let reads = task
            .after
            .iter()
            .map(|before| calendar::reads(self.outputs[*before].expect("it was submitted before")));
        TaskSpec {
            name: Arc::from(self.application.functions[task.function]),
            constraint: Constraint { bandwidth, ..Constraint::default() },
            tuning,
            accesses: reads.collect(),
            ..calendar::task(task.function as u32, if io { Kind::Io } else { Kind::Compute })
        }
    }

    fn submit_all(&mut self) {
        for number in 0..self.application.tasks.len() {
            let spec = self.spec(number);
            let mut out = Vec::new();
            let taken =
                self.sched.submit(self.calendar.now, &spec, &mut out).expect("nothing is wrong");
            self.numbers.insert(taken.task, number);
            self.outputs[number] = Some(taken.outputs[0]);
            self.carry_out(out);
        }
    }

    fn run(&mut self, id: TaskId, executor: ExecutorId, layer: Option<LayerId>) {
        let number = self.numbers[&id];
        self.running[number] = Some((id, executor, self.calendar.now));
        match self.application.tasks[number].work {
            Work::Compute(ns) => self.calendar.ends_after(ns, number),
            Work::Write(bytes) => {
                let own =
                    executor.0 as usize / (PROCESSORS as usize + 1) % self.calendar.disks.len();
                let disk = layer.map_or(own, |layer| layer.0 as usize);
                self.calendar.begin(disk, number, bytes);
            }
        }
    }
}

impl Machine for Cluster<'_> {
    fn calendar(&mut self) -> &mut Calendar {
        &mut self.calendar
    }

    fn sched(&mut self) -> &mut Sched {
        &mut self.sched
    }

    fn carry_out(&mut self, out: Vec<Instruction>) {
        self.events += 1;
        for instruction in out {
            match instruction {
                Instruction::Run { task, executor, layer, .. } => self.run(task, executor, layer),
                Instruction::Forgotten { .. } => self.over += 1,
                _ => {}
            }
        }
    }

    fn ends(&mut self, number: usize) {
        let (task, executor, since) = self.running[number].take().expect("it runs");
        let ran = self.calendar.now - since;
        let mut size = 8;
        if let Work::Write(bytes) = self.application.tasks[number].work {
            self.writes.0 += 1;
            self.writes.1 += u128::from(ran);
            size = 0;
            if matches!(self.policy, Policy::Tuned(_) | Policy::Measured) {
                self.drive(Event::Moved { task, executor, bytes });
            }
        }
        self.drive(Event::Ended { task, executor, outcome: Outcome::Done([size].into()), ran });
    }
}

/// Runs an application; the same arguments come to the same.
pub fn run(application: &Application, policy: Policy, storage: &Storage) -> Outcomes {
    let mut cluster = Cluster::new(application, policy, storage);
    cluster.start_executors();
    cluster.submit_all();
    while cluster.over < application.tasks.len() {
        assert!(calendar::happen(&mut cluster), "{} of {:?} ended", cluster.over, policy);
    }
    let moved: f64 = cluster.calendar.disks.iter().map(|disk| disk.moved).sum();
    let busy: f64 = cluster.calendar.disks.iter().map(|disk| disk.busy_ns as f64).sum();
    Outcomes {
        total_ns: cluster.calendar.now,
        write_ns: (cluster.writes.1 / u128::from(cluster.writes.0.max(1))) as u64,
        rate: moved / busy.max(1.0) * 1e9,
        tuned: cluster.sched.tuned(),
        events: cluster.events,
    }
}
