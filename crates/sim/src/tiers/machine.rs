//! Twelve nodes with two fast layers each above a slow one that all share, under the real scheduler
//! and a virtual clock. Tasks on a layer share its bandwidth evenly, or each moves exactly as
//! much as it was granted; moves are writes to where they go, a chunk at a time.

use std::sync::Arc;

use graph::{Access, DatumId, DatumKind, Direction, Region, Target, TaskId, VersionId};
use sched::{
    Config, Constraint, Event, ExecutorId, Instruction, Kind, Layer, LayerId, NodeId, Outcome,
    PolicyKind, Sched, TaskSpec,
};

use super::workloads::Workload;
use crate::calendar::{self, Calendar, Machine as _};
use crate::hash::{mix_all, Map};
use crate::storage::{Curve, Disk, Weather};

/// Nodes.
pub const NODES: u32 = 12;
/// Processors of each.
pub const PROCESSORS: u32 = 40;
/// I/O tasks that a node may run at once.
const SLOTS: u32 = 128;
/// Bytes a second of the layers, highest first.
pub const BANDWIDTHS: [u64; 3] = [6_026_000_000, 2_743_000_000, 900_000_000];
/// A move looks after so many bytes whether it is held.
const CHUNK_BYTES: u64 = 100_000_000;
/// Tasks of one function differ by up to this many thousandths in time, up and down.
const SPREAD_PERMILLE: u64 = 100;
const NS_PER_S: f64 = 1e9;

/// How a program is run.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Only the shared layer is used.
    pub only_shared: bool,
    /// The order of grants.
    pub policy: PolicyKind,
    /// Whether files are flushed.
    pub flush: bool,
    /// Bytes of the two upper layers of each node.
    pub capacities: [u64; 2],
    /// Computation over the time that the shared layer alone needs for all writes.
    pub compute: f64,
    /// Whether a task moves what it was granted, and no more if more is there.
    pub granted: bool,
    /// What the shared layer really moves over what its description says.
    pub shared_speed: f64,
    /// What run times are drawn from.
    pub seed: u64,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Nanoseconds to the end of the last task.
    pub total_ns: u64,
    /// Nanoseconds in which an I/O task ran.
    pub io_ns: u64,
    /// I/O tasks on each kind of layer, highest first.
    pub tasks: [u64; 3],
    /// Bytes that were flushed.
    pub flushed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// What it writes, or how long it computes.
    bytes: u64,
    ns: u64,
    file: Option<DatumId>,
    running: Option<(TaskId, ExecutorId, Option<LayerId>, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Moving {
    to: usize,
    bytes: u64,
    left: u64,
}

struct Machine {
    way: Way,
    sched: Sched,
    calendar: Calendar,
    tasks: Vec<Task>,
    numbers: Map<TaskId, usize>,
    over: usize,
    /// I/O tasks that run, and since when there is one.
    io: (u32, u64),
    /// By number on the disks: those from the number of tasks on are moves.
    moves: Vec<(DatumId, Moving)>,
    bytes: Map<DatumId, u64>,
    held: bool,
    paused: Vec<usize>,
    figures: Figures,
}

/// The layers of a way: the upper ones of each node, then the shared one.
fn layers(way: &Way) -> Vec<Layer> {
    let mut layers = Vec::new();
    if !way.only_shared {
        for (at, name) in ["nvram", "ssd"].into_iter().enumerate() {
            layers.extend((0..NODES).map(|node| Layer {
                name: name.to_string(),
                bandwidth: Some(BANDWIDTHS[at]),
                capacity: Some(way.capacities[at]),
                node: Some(NodeId(node)),
                ..Layer::default()
            }));
        }
    }
    let name = "pfs".to_string();
    layers.push(Layer { name, bandwidth: Some(BANDWIDTHS[2]), ..Layer::default() });
    layers
}

impl Machine {
    fn new(way: Way) -> Machine {
        let layers = layers(&way);
        let disk = |layer: &Layer| {
            let speed = if layer.node.is_none() { way.shared_speed } else { 1.0 };
            let rate = layer.bandwidth.unwrap_or(1) as f64 * speed;
            Disk::new(Curve::new(&[(1.0, rate), (2.0, rate)]), Weather::default())
        };
        let disks: Vec<Disk> = layers.iter().map(disk).collect();
        let mut sched = Sched::new(Config {
            layers,
            policy: way.policy,
            flush: way.flush,
            processors: vec![PROCESSORS; NODES as usize],
            stealing: true,
            pipeline_tasks_max: 1,
            ..Config::default()
        });
        for name in ["compute", "write", "write other", "phase"] {
            sched.add_function(Arc::from(name));
        }
        Machine {
            way,
            sched,
            calendar: Calendar::new(disks),
            tasks: Vec::new(),
            numbers: Map::default(),
            over: 0,
            io: (0, 0),
            moves: Vec::new(),
            bytes: Map::default(),
            held: false,
            paused: Vec::new(),
            figures: Figures::default(),
        }
    }

    /// A move goes on, unless it is held.
    fn next_chunk(&mut self, at: usize) {
        if self.held {
            self.paused.push(at);
            return;
        }
        let Moving { to, left, .. } = self.moves[at].1;
        self.calendar.begin(to, self.tasks.len() + at, left.min(CHUNK_BYTES));
    }

    fn chunk_ends(&mut self, at: usize) {
        let (datum, moving) = &mut self.moves[at];
        moving.left -= moving.left.min(CHUNK_BYTES);
        if moving.left > 0 {
            self.next_chunk(at);
            return;
        }
        let (datum, bytes) = (*datum, moving.bytes);
        self.figures.flushed += bytes;
        self.drive(Event::MoveDone { datum, bytes });
    }

    fn run(&mut self, id: TaskId, executor: ExecutorId, layer: Option<LayerId>) {
        let number = self.numbers[&id];
        let now = self.calendar.now;
        let task = &mut self.tasks[number];
        task.running = Some((id, executor, layer, now));
        let (bytes, ns) = (task.bytes, task.ns);
        let Some(LayerId(layer)) = layer else {
            self.calendar.ends_after(ns, number);
            return;
        };
        if self.io.0 == 0 {
            self.io.1 = now;
        }
        self.io.0 += 1;
        if self.way.granted {
            // As much bandwidth as there are bytes: a second.
            let shared = layer as usize + 1 == self.calendar.disks.len();
            let speed = if shared { self.way.shared_speed } else { 1.0 };
            let ns = self.spread(NS_PER_S / speed, number);
            self.calendar.ends_after(ns, number);
            return;
        }
        self.calendar.begin(layer as usize, number, bytes);
    }

    /// Lets the next thing happen: the scheduler's clock comes first.
    fn happen(&mut self) -> bool {
        let next = self.calendar.next();
        let deadline = self.sched.next_deadline();
        if let Some(deadline) = deadline.filter(|at| next.is_none_or(|next| *at < next)) {
            self.calendar.now = deadline.max(self.calendar.now);
            self.drive(Event::Tick);
            return true;
        }
        calendar::happen(self)
    }

    /// The time of a task that takes so long on average.
    fn spread(&self, mean_ns: f64, number: usize) -> u64 {
        let roll = mix_all(&[self.way.seed, number as u64]) % (2 * SPREAD_PERMILLE + 1);
        (mean_ns * (1000 - SPREAD_PERMILLE + roll) as f64 / 1000.0) as u64
    }

    /// A task that reads versions, and computes or writes.
    fn submit(&mut self, function: u32, ns: u64, bytes: u64, after: &[VersionId]) -> VersionId {
        let io = bytes > 0;
        let mut accesses: Vec<Access> =
            after.iter().map(|version| calendar::reads(*version)).collect();
        let file = io.then(|| self.sched.add_datum(DatumKind::InPlace, None).expect("a new one"));
        accesses.extend(file.map(|file| Access {
            target: Target::Datum(file),
            region: Region::Whole,
            direction: Direction::Out,
        }));
        let spec = TaskSpec {
            // As published: as much bandwidth as there are bytes to write.
            constraint: Constraint { bandwidth: bytes, size: bytes, ..Constraint::default() },
            accesses,
            ..calendar::task(function, if io { Kind::Io } else { Kind::Compute })
        };
        let mut out = Vec::new();
        let taken = self.sched.submit(0, &spec, &mut out).expect("nothing is wrong");
        self.numbers.insert(taken.task, self.tasks.len());
        self.tasks.push(Task { bytes, ns, file, running: None });
        self.carry_out(out);
        taken.outputs[0]
    }

    /// All tasks of a program: each phase waits for the end of the one before.
    fn submit_all(&mut self, workload: &Workload) {
        let all = workload.bytes() * u64::from(NODES);
        let seconds = all as f64 / BANDWIDTHS[2] as f64 * self.way.compute;
        let tasks = workload.writes.len() * workload.iterations as usize;
        let mean_ns = seconds * NS_PER_S * f64::from(PROCESSORS) / tasks as f64;
        let mut before: Vec<VersionId> = Vec::new();
        for _ in 0..workload.iterations {
            let mut made = Vec::new();
            for _ in 0..workload.writes.len() * NODES as usize {
                let ns = self.spread(mean_ns, self.tasks.len());
                made.push(self.submit(0, ns, 0, &before));
            }
            let computed = self.submit(3, 0, 0, &made);
            let mut written = Vec::new();
            for (at, made) in made.into_iter().enumerate() {
                let bytes = workload.writes[at % workload.writes.len()];
                let function = 1 + u32::from(bytes != workload.writes[0]);
                written.push(self.submit(function, 0, bytes, &[made, computed]));
            }
            before = vec![self.submit(3, 0, 0, &written)];
        }
    }
}

impl calendar::Machine for Machine {
    fn calendar(&mut self) -> &mut Calendar {
        &mut self.calendar
    }

    fn sched(&mut self) -> &mut Sched {
        &mut self.sched
    }

    fn carry_out(&mut self, out: Vec<Instruction>) {
        for instruction in out {
            match instruction {
                Instruction::Run { task, executor, layer, .. } => self.run(task, executor, layer),
                Instruction::Forgotten { failure, .. } => {
                    assert!(failure.is_none(), "nothing fails");
                    self.over += 1;
                }
                Instruction::Move { datum, to, .. } => {
                    let to = to.expect("homes are on the shared layer").0 as usize;
                    let bytes = self.bytes[&datum];
                    self.moves.push((datum, Moving { to, bytes, left: bytes }));
                    self.next_chunk(self.moves.len() - 1);
                }
                Instruction::HoldMoves { hold } => {
                    self.held = hold;
                    let paused = if hold { Vec::new() } else { std::mem::take(&mut self.paused) };
                    paused.into_iter().for_each(|at| self.next_chunk(at));
                }
                _ => {}
            }
        }
    }

    fn ends(&mut self, number: usize) {
        if number >= self.tasks.len() {
            self.chunk_ends(number - self.tasks.len());
            return;
        }
        let Task { bytes, file, ref mut running, .. } = self.tasks[number];
        let (task, executor, layer, since) = running.take().expect("it runs");
        if let Some(layer) = layer {
            self.io.0 -= 1;
            if self.io.0 == 0 {
                self.figures.io_ns += self.calendar.now - self.io.1;
            }
            let shared = self.calendar.disks.len() as u32 - 1;
            let kind = if layer.0 == shared { 2 } else { layer.0 / NODES };
            self.figures.tasks[kind as usize] += 1;
            let (datum, home) = (file.expect("it writes one"), Some(LayerId(shared)));
            self.bytes.insert(datum, bytes);
            let layer = Some(layer);
            self.drive(Event::FileAt { datum, layer, bytes, home, scratch: false });
        }
        let ran = self.calendar.now - since;
        self.drive(Event::Ended { task, executor, outcome: Outcome::Done([8].into()), ran });
    }
}

/// Runs a program; the same arguments come to the same.
pub fn run(workload: &Workload, way: Way) -> Figures {
    let mut machine = Machine::new(way);
    machine.submit_all(workload);
    calendar::start_executors(&mut machine, NODES, PROCESSORS, SLOTS);
    while machine.over < machine.tasks.len() {
        assert!(machine.happen(), "{} of {} ended", machine.over, machine.tasks.len());
    }
    machine.figures.total_ns = machine.calendar.now;
    machine.figures
}
