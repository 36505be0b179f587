//! The generator of random programs. Every habit of a program (files, priorities, retries ...)
//! is switched off in some seeds, so that rare mixtures come up too.

use graph::{DatumKind, Direction, Region, Span};
use sched::{
    Bounds, Config, Constraint, Kind, Layer, LayerId, NodeId, OnFailure, PolicyKind, Tuning,
    Watermarks, Way,
};

use crate::hash::mix_all;
use crate::program::{
    AccessPlan, DatumPlan, Expect, Machine, Program, Step, StreamPlan, TargetPlan, TaskPlan,
    FUNCTIONS,
};

/// The most tasks of a program.
const TASKS_MAX: u64 = 400;
/// The most data of a program.
const DATA_MAX: usize = 6;

/// How likely this program is to do each thing, in percent.
struct Habits {
    io: u32,
    engine: u32,
    in_place: u32,
    regions: u32,
    read: u32,
    grouped: u32,
    wide: u32,
    priority: u32,
    retry: u32,
    timeout: u32,
    ignore: u32,
    release: u32,
    stream: u32,
    take: u32,
    forget: u32,
    hold: u32,
    current: u32,
    cancel: u32,
    drop: u32,
    think: u32,
    wait: u32,
    refused: u32,
    chain: u32,
    task_ns_bits: u32,
}

impl Habits {
    fn new(rng: &mut fastrand::Rng) -> Habits {
        let mut some = |most: u32| match rng.u32(0..4) {
            0 => 0,
            1 => most.div_ceil(8),
            _ => rng.u32(0..=most),
        };
        Habits {
            io: some(80),
            engine: some(100),
            in_place: some(100),
            regions: some(100),
            read: some(98),
            grouped: some(90),
            wide: some(40),
            priority: some(80),
            retry: some(80),
            timeout: some(25),
            ignore: some(50),
            release: some(30),
            stream: some(30),
            take: some(90),
            forget: some(60),
            hold: some(20),
            current: some(30),
            cancel: some(8),
            drop: some(8),
            think: some(60),
            wait: some(15),
            refused: some(6),
            chain: some(80),
            task_ns_bits: 10 + some(13),
        }
    }
}

/// Makes one program.
pub(crate) struct Generator {
    rng: fastrand::Rng,
    habits: Habits,
    machine: Machine,
    /// By function.
    tunings: [Tuning; FUNCTIONS],
    data: Vec<DatumPlan>,
    alive: Vec<bool>,
    steps: Vec<Step>,
    /// Handles that the program still has.
    handles: Vec<usize>,
    /// Tasks with streams, and how many values the program has not come for.
    streams: Vec<(usize, u32)>,
    handles_made: usize,
    tasks_made: usize,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        let mut rng = fastrand::Rng::with_seed(mix_all(&[seed, 0x9e]));
        let mut habits = Habits::new(&mut rng);
        let mut machine = machine(&mut rng);
        tiers(seed, &mut machine, &mut habits);
        let tunings = tunings(seed, &machine);
        Generator {
            rng,
            habits,
            machine,
            tunings,
            data: Vec::new(),
            alive: Vec::new(),
            steps: Vec::new(),
            handles: Vec::new(),
            streams: Vec::new(),
            handles_made: 0,
            tasks_made: 0,
        }
    }

    pub(crate) fn program(mut self) -> Program {
        let (least, most) = match self.rng.u32(0..200) {
            0..90 => (1, 14),
            90..170 => (1, 50),
            170..194 => (1, 120),
            194..198 => (1, TASKS_MAX),
            _ => (TASKS_MAX / 2, TASKS_MAX),
        };
        let crowd = least > 1;
        let tasks = self.rng.u64(least..=most) as usize;
        for _ in 0..self.rng.usize(0..=2) {
            self.put();
        }
        if crowd {
            self.crowd();
        } else {
            for _ in 0..self.rng.usize(0..=DATA_MAX) {
                self.datum();
            }
        }
        while self.tasks_made < tasks {
            self.submit(None);
            self.between();
        }
        Program {
            machine: self.machine,
            data: self.data,
            steps: self.steps,
            tasks: self.tasks_made,
            handles: self.handles_made,
            hasty: self.rng.bool(),
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(0..100) < percent
    }

    fn handle(&mut self) -> usize {
        self.handles.push(self.handles_made);
        self.handles_made += 1;
        self.handles_made - 1
    }

    fn any_handle(&mut self) -> Option<usize> {
        if self.handles.is_empty() {
            return None;
        }
        if self.chance(self.habits.chain) {
            return self.handles.last().copied();
        }
        Some(self.handles[self.rng.usize(0..self.handles.len())])
    }

    fn put(&mut self) -> usize {
        let handle = self.handle();
        self.steps.push(Step::Put { handle });
        handle
    }

    fn datum(&mut self) {
        let datum = self.data.len();
        let in_place = self.chance(self.habits.in_place);
        let shape = match self.rng.u32(0..16) {
            0..7 => vec![12],
            7..11 => vec![4, 4],
            11..14 => vec![3, 2, 3],
            14 => vec![64],
            _ => vec![8, 8],
        };
        let kind = if in_place { DatumKind::InPlace } else { DatumKind::Value };
        self.data.push(DatumPlan { kind, shape });
        self.alive.push(true);
        let from = (!in_place && self.chance(80)).then(|| match self.any_handle() {
            Some(handle) if self.rng.bool() => handle,
            _ => self.put(),
        });
        self.steps.push(Step::Datum { datum, initial: from });
    }

    /// Many tasks on one datum meet the limits of what the graph keeps of it: many regions,
    /// or many readers of one.
    fn crowd(&mut self) {
        let many_readers = self.rng.bool();
        self.habits.in_place = 100;
        self.habits.grouped = 10;
        self.habits.regions = if many_readers { 5 } else { 100 };
        self.habits.read = if many_readers { 97 } else { 50 };
        self.habits.drop = 0;
        self.habits.cancel = self.habits.cancel.min(1);
        self.data.push(DatumPlan { kind: DatumKind::InPlace, shape: vec![64] });
        self.alive.push(true);
        self.steps.push(Step::Datum { datum: 0, initial: None });
    }

    /// What the program does between two calls.
    fn between(&mut self) {
        if self.chance(self.habits.think) {
            let ns = self.rng.u64(0..1 << self.rng.clone().u32(1..18));
            self.steps.push(Step::Think { ns });
        }
        while self.handles.len() > 40 || self.chance(self.habits.forget) {
            if self.handles.is_empty() {
                break;
            }
            let at = self.rng.usize(0..self.handles.len());
            let handle = self.handles.swap_remove(at);
            self.steps.push(Step::Forget { handle });
        }
        if self.chance(self.habits.hold) {
            if let Some(of) = self.any_handle() {
                let handle = self.handle();
                self.steps.push(Step::Hold { handle, of });
            }
        }
        if self.chance(self.habits.current) {
            if let Some(datum) = self.any_datum() {
                let handle = self.handle();
                self.steps.push(Step::Current { handle, datum });
            }
        }
        if self.tasks_made > 0 && self.chance(self.habits.cancel) {
            let task = self.rng.usize(0..self.tasks_made);
            self.steps.push(Step::Cancel { task });
        }
        if self.chance(self.habits.drop) {
            if let Some(datum) = self.any_datum() {
                self.alive[datum] = false;
                self.steps.push(Step::Drop { datum });
            }
        }
        if self.data.len() < DATA_MAX && self.chance(self.habits.drop) {
            self.datum();
        }
        if self.chance(self.habits.wait) {
            if let Some(handle) = self.any_handle() {
                self.steps.push(Step::Wait { handle });
            }
        }
        if !self.streams.is_empty() && self.chance(self.habits.take) {
            self.take_from_stream();
        }
    }

    /// A few values of a stream, or all that are left: passed to tasks, kept, forgotten; now and
    /// then nobody wants the rest.
    fn take_from_stream(&mut self) {
        let at = self.rng.usize(0..self.streams.len());
        let (task, left) = self.streams[at];
        if self.rng.u32(0..8) == 0 {
            let handle = self.handle();
            self.steps.push(Step::Peek { task, handle });
        }
        // One more than there are: the end.
        let some = if self.rng.bool() { left + 1 } else { self.rng.u32(0..=left) };
        let (maps, keeps) = (self.rng.bool(), self.rng.u32(0..4) == 0);
        for _ in 0..some {
            let handle = self.handle();
            self.steps.push(Step::Next { task, handle });
            if maps {
                self.submit(Some(handle));
            }
            if !keeps {
                self.handles.retain(|other| *other != handle);
                self.steps.push(Step::Forget { handle });
            }
        }
        match left.checked_sub(some) {
            Some(left) => self.streams[at].1 = left,
            None => drop(self.streams.swap_remove(at)),
        }
        if self.rng.u32(0..8) == 0 {
            self.steps.push(Step::Cancel { task });
        }
    }

    fn any_datum(&mut self) -> Option<usize> {
        let alive: Vec<_> = (0..self.data.len()).filter(|at| self.alive[*at]).collect();
        (!alive.is_empty()).then(|| alive[self.rng.usize(0..alive.len())])
    }

    /// Calls a task; one that reads this version, if any.
    fn submit(&mut self, reads: Option<usize>) {
        let task = self.tasks_made;
        self.tasks_made += 1;
        let kind = match self.chance(self.habits.io) {
            true if self.chance(self.habits.engine) => Kind::Engine,
            true => Kind::Io,
            false => Kind::Compute,
        };
        let processors_max = self.machine.config.processors.iter().copied().max().unwrap_or(1);
        let mut plan = TaskPlan {
            task,
            function: self.rng.usize(0..FUNCTIONS),
            kind,
            cpus: u32::from(!kind.is_io()),
            priority: 0,
            retries: 0,
            timeout: None,
            on_failure: OnFailure::Fail,
            constraint: Constraint::default(),
            tuning: Tuning::Static,
            layer: None,
            produces: if self.rng.bool() { self.rng.u64(0..1000) } else { 0 },
            accesses: self.accesses(),
            returns: Vec::new(),
            stream: None,
            releases: Vec::new(),
            duration: self.rng.u64(1..1 << self.habits.task_ns_bits),
            expect: None,
        };
        if kind.is_io() {
            self.constrain(&mut plan);
            plan.tuning = self.tunings[plan.function];
        } else if self.chance(self.habits.wide) {
            plan.cpus = self.rng.u32(1..=processors_max);
        }
        let read = reads.map(TargetPlan::Handle).map(|target| AccessPlan {
            target,
            region: Region::Whole,
            direction: Direction::In,
        });
        plan.accesses.extend(read);
        self.options(&mut plan);
        if self.chance(self.habits.refused) {
            self.spoil(&mut plan, processors_max);
        }
        self.results(&mut plan);
        self.steps.push(Step::Submit(Box::new(plan)));
    }

    /// What a task hands over: values at its end or before, or a stream of them.
    fn results(&mut self, plan: &mut TaskPlan) {
        if self.chance(self.habits.stream) && plan.kind != Kind::Engine {
            let (buffer, values) = (self.rng.u64(1..=4), self.rng.u32(0..=12));
            let dearest = if self.rng.bool() { 1 } else { self.rng.u64(2..=5) };
            plan.stream = Some(StreamPlan { buffer, values, dearest });
            if plan.expect.is_none() {
                self.streams.push((plan.task, values));
            }
            return;
        }
        let releases = self.chance(self.habits.release);
        let most = if releases { 9 } else { 3 };
        let returns = self.rng.usize(0..=most).saturating_sub(1);
        plan.returns = (0..returns).map(|_| self.handle()).collect();
        for _ in 0..if releases { returns } else { 0 } {
            plan.releases.push((self.rng.u32(0..returns as u32), self.rng.u64(0..1000)));
        }
    }

    fn options(&mut self, plan: &mut TaskPlan) {
        if self.chance(self.habits.priority) {
            plan.priority = self.rng.i32(-2..=2);
        }
        if self.chance(self.habits.retry) {
            plan.retries = self.rng.u32(1..=3);
        }
        if self.chance(self.habits.timeout) {
            plan.timeout = Some(self.rng.u64(1..=plan.duration * 8));
        }
        if self.chance(self.habits.ignore) {
            plan.on_failure =
                if self.rng.bool() { OnFailure::Ignore } else { OnFailure::CancelDependents };
        }
    }

    /// A constraint that at least one layer can satisfy.
    fn constrain(&mut self, plan: &mut TaskPlan) {
        let at = self.rng.usize(0..self.machine.config.layers.len());
        let layer = self.machine.config.layers[at].clone();
        if self.chance(70) {
            plan.constraint.way = Way::ALL[self.rng.usize(0..3)];
            let limit = layer.limit(plan.constraint.way);
            plan.constraint.bandwidth = self.rng.u64(0..=limit.unwrap_or(1000));
        }
        if self.chance(40) {
            plan.constraint.size = self.rng.u64(0..=layer.capacity.unwrap_or(1000));
        }
        if self.chance(25) {
            plan.layer = Some(LayerId(at as u32));
        }
    }

    /// Makes a call that has to be refused.
    fn spoil(&mut self, plan: &mut TaskPlan, processors_max: u32) {
        let access = |target, region, direction| AccessPlan { target, region, direction };
        let dropped = (0..self.data.len()).find(|at| !self.alive[*at]);
        let in_place =
            (0..self.data.len()).find(|at| self.alive[*at] && self.data[*at].shape.len() == 1);
        match self.rng.u32(0..6) {
            0 if plan.kind == Kind::Compute => {
                plan.cpus = processors_max + 1;
                plan.expect = Some(Expect::TooManyProcessors);
            }
            1 if plan.kind.is_io() => {
                let way = plan.constraint.way;
                let widths = self.machine.config.layers.iter().map(|layer| layer.limit(way));
                let Some(widest) = widths.collect::<Option<Vec<_>>>() else { return };
                plan.tuning = Tuning::Static;
                plan.constraint.bandwidth = widest.into_iter().max().unwrap_or(0) + 1;
                plan.expect = Some(Expect::NoLayer);
            }
            2 => {
                let Some(datum) = self.any_datum() else { return };
                let target = TargetPlan::Datum(datum);
                plan.accesses = vec![
                    access(target, Region::Whole, Direction::In),
                    access(target, Region::Whole, Direction::InOut),
                ];
                plan.expect = Some(Expect::SelfConflict);
            }
            3 => {
                let Some(datum) = in_place else { return };
                let region = Region::Range(Span { start: 3, end: self.rng.u64(0..=3) });
                plan.accesses = vec![access(TargetPlan::Datum(datum), region, Direction::Out)];
                plan.expect = Some(Expect::BadRegion);
            }
            4 => {
                let Some(datum) = dropped else { return };
                let target = TargetPlan::Datum(datum);
                plan.accesses = vec![access(target, Region::Whole, Direction::In)];
                plan.expect = Some(Expect::Stale);
            }
            _ => {
                let Some(handle) = self.any_handle() else { return };
                let target = TargetPlan::Handle(handle);
                plan.accesses = vec![access(target, Region::Whole, Direction::InOut)];
                plan.expect = Some(Expect::BadDirection);
            }
        }
    }

    fn accesses(&mut self) -> Vec<AccessPlan> {
        let mut accesses: Vec<AccessPlan> = Vec::new();
        for _ in 0..self.rng.usize(0..=4) {
            let target = match (self.any_datum(), self.any_handle()) {
                (Some(datum), _) if self.chance(70) => TargetPlan::Datum(datum),
                (_, Some(handle)) => TargetPlan::Handle(handle),
                (Some(datum), None) => TargetPlan::Datum(datum),
                (None, None) => return accesses,
            };
            let mut access = AccessPlan { target, region: Region::Whole, direction: Direction::In };
            if let TargetPlan::Datum(datum) = target {
                access.direction = self.direction();
                if self.data[datum].kind == DatumKind::InPlace && self.chance(self.habits.regions) {
                    access.region = self.region(datum);
                }
            }
            let conflict = accesses.iter().any(|other| {
                other.target == access.target
                    && (other.direction.writes() || access.direction.writes())
                    && crate::values::overlap(&other.region, &access.region)
            });
            if !conflict {
                accesses.push(access);
            }
        }
        accesses
    }

    fn direction(&mut self) -> Direction {
        if self.chance(self.habits.read) {
            return Direction::In;
        }
        if self.chance(self.habits.grouped) {
            return if self.rng.bool() { Direction::Concurrent } else { Direction::Commutative };
        }
        match self.rng.u32(0..4) {
            0 => Direction::Out,
            1 => Direction::InOut,
            _ => Direction::In,
        }
    }

    fn region(&mut self, datum: usize) -> Region {
        let shape = self.data[datum].shape.clone();
        let spans: Vec<Span> = shape
            .iter()
            .map(|&cells| {
                let start = self.rng.u64(0..cells);
                Span { start, end: self.rng.u64(start + 1..=cells) }
            })
            .collect();
        match spans.len() {
            1 if self.rng.bool() => Region::Range(spans[0]),
            _ => Region::Box(spans.into_boxed_slice()),
        }
    }
}

/// How the functions of a seed choose their bandwidth; bounds are within every layer.
fn tunings(seed: u64, machine: &Machine) -> [Tuning; FUNCTIONS] {
    let mut rng = fastrand::Rng::with_seed(mix_all(&[seed, 0x70]));
    let tuned = [0, 0, 50, 100][rng.usize(0..4)];
    let widths = machine.config.layers.iter().filter_map(|layer| layer.limit(Way::Both));
    let narrowest = widths.min().unwrap_or(1000);
    std::array::from_fn(|_| {
        if rng.u32(0..100) >= tuned {
            return Tuning::Static;
        }
        match rng.u32(0..4) {
            0 => Tuning::Auto { bounds: None },
            1 => {
                let min = rng.u64(1..=narrowest);
                let bounds = Bounds::new(min, rng.u64(min..=narrowest), rng.u32(1001..=4000));
                Tuning::Auto { bounds }
            }
            _ => Tuning::Adaptive,
        }
    })
}

/// How a seed uses its layers.
fn tiers(seed: u64, machine: &mut Machine, habits: &mut Habits) {
    let mut rng = fastrand::Rng::with_seed(mix_all(&[seed, 0x71]));
    let policies = [PolicyKind::Fcfs, PolicyKind::Priority, PolicyKind::Backfilling];
    machine.config.policy = policies[rng.usize(0..3)];
    machine.files = rng.u32(0..3) > 0;
    machine.config.flush = machine.files && rng.bool();
    machine.config.prefetch = machine.files && rng.bool();
    let mut marks = fastrand::Rng::with_seed(mix_all(&[seed, 0x72]));
    machine.config.layers.iter_mut().for_each(|layer| {
        let most = [200, 1000][marks.usize(0..2)];
        let high = marks.u32(1..=most);
        let watermarks = Watermarks { high, low: marks.u32(0..=high) };
        layer.watermarks = marks.bool().then_some(watermarks);
    });
    if !machine.files || rng.bool() {
        return;
    }
    habits.in_place = 100;
    if rng.u32(0..3) == 0 {
        return inputs(&mut rng, machine, habits);
    }
    if marks.bool() {
        return checkpoints(&mut marks, machine, habits);
    }
    // Programs of files: few regions, much I/O, time to move something.
    habits.regions = rng.u32(0..30);
    habits.grouped = rng.u32(0..30);
    habits.read = rng.u32(20..70);
    habits.io = rng.u32(20..90);
    habits.think = 80;
    habits.drop = rng.u32(0..8);
    machine.config.layers.iter_mut().for_each(|layer| {
        layer.capacity = (rng.u32(0..3) > 0).then(|| rng.u64(300..=2000));
    });
}

/// Programs of checkpoints: I/O goes on all the time, and layers are soon too full.
fn checkpoints(rng: &mut fastrand::Rng, machine: &mut Machine, habits: &mut Habits) {
    habits.regions = rng.u32(0..30);
    habits.read = rng.u32(10..40);
    habits.io = rng.u32(70..=100);
    habits.think = 10;
    habits.refused = 0;
    machine.config.layers.iter_mut().for_each(|layer| {
        layer.capacity = Some(rng.u64(500..=3000));
        layer.watermarks = Some(Watermarks { high: rng.u32(1..=100), low: 0 });
    });
}

/// Programs of inputs: tasks that compute wait for processors and read what seldom changes, while
/// hardly any I/O goes on.
fn inputs(rng: &mut fastrand::Rng, machine: &mut Machine, habits: &mut Habits) {
    machine.config.prefetch = true;
    habits.regions = rng.u32(0..30);
    habits.read = rng.u32(80..=100);
    habits.io = rng.u32(0..20);
    habits.refused = 0;
    machine.config.layers.iter_mut().for_each(|layer| {
        layer.capacity = (rng.u32(0..2) > 0).then(|| rng.u64(300..=2000));
    });
}

fn machine(rng: &mut fastrand::Rng) -> Machine {
    let nodes = if rng.u32(0..4) == 0 { rng.usize(2..=3) } else { 1 };
    let processors: Vec<u32> = (0..nodes).map(|_| rng.u32(1..=4)).collect();
    let layers = (0..rng.u32(1..=3)).map(|at| {
        let bandwidth = (rng.u32(0..4) > 0).then(|| rng.u64(1..=1000));
        let capacity = (rng.u32(0..3) == 0).then(|| rng.u64(1..=1000));
        let node = (nodes > 1 && rng.u32(0..3) == 0).then(|| NodeId(rng.u32(0..nodes as u32)));
        let mut apart = || (rng.u32(0..4) == 0).then(|| rng.u64(1..=1000));
        let (read_bandwidth, write_bandwidth) = (apart(), apart());
        let name = format!("layer{at}");
        let mut layer = Layer { name, bandwidth, capacity, node, ..Layer::default() };
        (layer.read_bandwidth, layer.write_bandwidth) = (read_bandwidth, write_bandwidth);
        if rng.u32(0..4) == 0 {
            layer.measured = [1, 3, 9].map(|tasks| (tasks, rng.u64(1..=1000))).to_vec();
        }
        layer
    });
    let config = Config {
        layers: layers.collect(),
        processors: processors.clone(),
        stealing: rng.bool(),
        pipeline_tasks_max: [1, 1, 2, 4, 16][rng.usize(0..5)],
        pipeline_ns_max: [0, 1_000, 100_000, 10_000_000][rng.usize(0..4)],
        ..Config::default()
    };
    let io = (0..nodes).map(|_| (0..rng.usize(1..=2)).map(|_| rng.u32(1..=6)).collect()).collect();
    let engines = (0..nodes).map(|_| rng.u32(1..=6)).collect();
    Machine { config, compute: processors, io, engines, files: false }
}
