//! A driver for tests: events in by method, instructions out as a list; the state is validated
//! after every event.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::sync::Arc;

use sched::{
    Access, Cause, Config, Constraint, DatumId, DatumKind, Direction, Event, ExecutorId, Failure,
    FunctionId, Instruction, Kind, Layer, LayerId, NodeId, OnFailure, Outcome, Refusal, Region,
    Sched, Step, Target, TaskId, TaskSpec, Tuning, VersionId,
};

pub const E0: ExecutorId = ExecutorId(0);
pub const E1: ExecutorId = ExecutorId(1);
pub const E2: ExecutorId = ExecutorId(2);
pub const E3: ExecutorId = ExecutorId(3);

pub struct Driver {
    pub sched: Sched,
    pub now: u64,
    pub function: FunctionId,
    /// The moves of all tasks, as their stories told them.
    pub steps: Vec<Step>,
}

pub fn config() -> Config {
    Config {
        processors: vec![2],
        pipeline_tasks_max: 1,
        pipeline_ns_max: 1_000_000,
        ..Config::default()
    }
}

/// Asks for that much, reading and writing.
pub fn constraint(bandwidth: u64, size: u64) -> Constraint {
    Constraint { bandwidth, size, ..Constraint::default() }
}

/// A layer.
pub fn layer(name: &str, bandwidth: u64, capacity: Option<u64>) -> Layer {
    Layer { name: name.into(), bandwidth: Some(bandwidth), capacity, ..Layer::default() }
}

pub fn reads(version: VersionId) -> Access {
    Access { target: Target::Version(version), region: Region::Whole, direction: Direction::In }
}

pub fn uses(datum: DatumId, direction: Direction) -> Access {
    Access { target: Target::Datum(datum), region: Region::Whole, direction }
}

/// A task, its outputs, and what the submission had the driver do.
pub struct Taken {
    pub id: TaskId,
    pub outputs: Vec<VersionId>,
    pub out: Vec<Instruction>,
}

impl Driver {
    pub fn new(config: Config) -> Driver {
        let mut sched = Sched::new(config);
        let function = sched.add_function("work".into());
        Driver { sched, now: 0, function, steps: Vec::new() }
    }

    /// With as many compute executors on node 0.
    pub fn with_compute(config: Config, count: u32) -> Driver {
        let mut driver = Driver::new(config);
        for id in 0..count {
            assert_eq!(driver.up(ExecutorId(id), Kind::Compute, 0, 1), []);
        }
        driver
    }

    /// With one I/O executor of so many slots on node 0.
    pub fn with_io(layers: Vec<Layer>, slots: u32) -> Driver {
        let mut driver = Driver::new(Config { layers, ..config() });
        assert_eq!(driver.up(E0, Kind::Io, 0, slots), []);
        driver
    }

    pub fn compute(&self, name: &str) -> TaskSpec {
        TaskSpec {
            function: self.function,
            name: name.into(),
            kind: Kind::Compute,
            cpus: 1,
            priority: 0,
            retries: 0,
            timeout: None,
            on_failure: OnFailure::Fail,
            constraint: Constraint::default(),
            tuning: Tuning::Static,
            returns: 1,
            accesses: Vec::new(),
            produces: 0,
            layer: None,
        }
    }

    pub fn io(&self, name: &str, bandwidth: u64, size: u64) -> TaskSpec {
        let constraint = constraint(bandwidth, size);
        TaskSpec { kind: Kind::Io, cpus: 0, constraint, ..self.compute(name) }
    }

    pub fn try_submit(&mut self, spec: TaskSpec) -> Result<Taken, Refusal> {
        let mut out = Vec::new();
        let taken = self.sched.submit(self.now, &spec, &mut out);
        self.sched.validate().expect("sound after a submission");
        let taken = taken?;
        Ok(Taken { id: taken.task, outputs: taken.outputs.to_vec(), out })
    }

    /// Submits a task whose body runs already.
    pub fn submit_begun(&mut self, spec: TaskSpec, executor: ExecutorId) -> Taken {
        let mut out = Vec::new();
        let taken = self.sched.submit_begun(self.now, &spec, executor, &mut out).expect("taken");
        self.sched.validate().expect("sound after a submission");
        Taken { id: taken.task, outputs: taken.outputs.to_vec(), out }
    }

    pub fn submit(&mut self, spec: TaskSpec) -> Taken {
        self.try_submit(spec).expect("taken")
    }

    pub fn event(&mut self, event: Event) -> Vec<Instruction> {
        let mut out = Vec::new();
        self.sched.handle(self.now, event, &mut out);
        self.sched.validate().expect("sound after an event");
        out
    }

    pub fn up(&mut self, id: ExecutorId, kind: Kind, node: u32, slots: u32) -> Vec<Instruction> {
        self.event(Event::ExecutorUp { executor: id, kind, node: NodeId(node), slots, extra: 0 })
    }

    pub fn lost(&mut self, executor: ExecutorId, started: &[TaskId]) -> Vec<Instruction> {
        let started = started.to_vec();
        self.event(Event::ExecutorLost { executor, started, reason: "killed".into() })
    }

    pub fn done(&mut self, task: TaskId, executor: ExecutorId) -> Vec<Instruction> {
        self.done_with(task, executor, &[], 10)
    }

    pub fn done_with(
        &mut self,
        task: TaskId,
        executor: ExecutorId,
        sizes: &[u64],
        ran: u64,
    ) -> Vec<Instruction> {
        let outcome = Outcome::Done(sizes.into());
        self.event(Event::Ended { task, executor, outcome, ran })
    }

    pub fn raised(&mut self, task: TaskId, executor: ExecutorId) -> Vec<Instruction> {
        let outcome = Outcome::Raised(Arc::from(*b"oops"));
        self.event(Event::Ended { task, executor, outcome, ran: 10 })
    }

    pub fn unplaced(&mut self, task: TaskId, executor: ExecutorId) -> Vec<Instruction> {
        let failure = Arc::from(*b"no space");
        self.event(Event::Unplaced { task, executor, ran: 5, failure })
    }

    pub fn file_at(
        &mut self,
        datum: DatumId,
        layer: Option<u32>,
        bytes: u64,
        home: Option<u32>,
    ) -> Vec<Instruction> {
        let (layer, home) = (layer.map(LayerId), home.map(LayerId));
        self.event(Event::FileAt { datum, layer, bytes, home, scratch: false })
    }

    pub fn scratch_at(&mut self, datum: DatumId, layer: u32, bytes: u64) -> Vec<Instruction> {
        let (layer, home, scratch) = (Some(LayerId(layer)), None, true);
        self.event(Event::FileAt { datum, layer, bytes, home, scratch })
    }

    pub fn drop_datum(&mut self, datum: DatumId) -> Vec<Instruction> {
        let mut out = Vec::new();
        self.sched.drop_datum(datum, &mut out);
        self.sched.validate().expect("sound after a datum is dropped");
        out
    }

    pub fn yielded(&mut self, task: TaskId) -> Vec<Instruction> {
        self.event(Event::Yielded { task, size: 8 })
    }

    pub fn stalled(&mut self, task: TaskId, executor: ExecutorId) -> Vec<Instruction> {
        self.event(Event::Stalled { task, executor })
    }

    pub fn resume(&mut self, task: TaskId) -> Vec<Instruction> {
        self.event(Event::Resume { task })
    }

    pub fn paused(&mut self, task: TaskId, executor: ExecutorId) -> Vec<Instruction> {
        self.event(Event::Paused { task, executor })
    }

    pub fn went_on(&mut self, task: TaskId, executor: ExecutorId) -> Vec<Instruction> {
        self.event(Event::WentOn { task, executor })
    }

    pub fn recalled(&mut self, task: TaskId, executor: ExecutorId) -> Vec<Instruction> {
        self.event(Event::Recalled { task, executor })
    }

    pub fn cancel(&mut self, task: TaskId) -> Vec<Instruction> {
        self.event(Event::Cancel { task })
    }

    pub fn forget(&mut self, version: VersionId) -> Vec<Instruction> {
        self.event(Event::Forget { version })
    }

    pub fn tick(&mut self, now: u64) -> Vec<Instruction> {
        self.now = now;
        self.event(Event::Tick)
    }

    pub fn value_datum(&mut self) -> DatumId {
        self.sched.add_datum(DatumKind::Value, None).expect("a new one")
    }

    pub fn file(&mut self) -> DatumId {
        self.sched.add_datum(DatumKind::InPlace, None).expect("a new one")
    }

    /// Notes what the story tells of a task.
    pub fn listen(&mut self, task: TaskId) {
        self.steps.extend(self.sched.story(task));
    }
}

pub fn run(task: &Taken, executor: ExecutorId) -> Instruction {
    run_at(task.id, executor, 1, None)
}

pub fn run_at(task: TaskId, executor: ExecutorId, attempt: u32, layer: Option<u32>) -> Instruction {
    Instruction::Run { task, executor, attempt, layer: layer.map(LayerId) }
}

pub fn moves(datum: DatumId, from: u32, to: Option<u32>, keep: bool) -> Instruction {
    Instruction::Move { datum, from: LayerId(from), to: to.map(LayerId), keep }
}

pub fn resolve(version: VersionId) -> Instruction {
    Instruction::Resolve { version, failure: None }
}

pub fn resolve_failed(version: VersionId, failure: &Arc<Failure>) -> Instruction {
    Instruction::Resolve { version, failure: Some(failure.clone()) }
}

pub fn discard(version: VersionId) -> Instruction {
    Instruction::Discard { version }
}

pub fn forgotten(task: TaskId) -> Instruction {
    Instruction::Forgotten { task, failure: None }
}

pub fn forgotten_failed(task: TaskId, failure: &Arc<Failure>) -> Instruction {
    Instruction::Forgotten { task, failure: Some(failure.clone()) }
}

pub fn failure(name: &str, cause: Cause) -> Arc<Failure> {
    let on_failure = match cause {
        Cause::Cancelled => OnFailure::CancelDependents,
        _ => OnFailure::Fail,
    };
    Arc::new(Failure { cause, name: name.into(), from: None, on_failure })
}

pub fn raised(name: &str) -> Arc<Failure> {
    failure(name, Cause::Raised(Arc::from(*b"oops")))
}

/// The failure of a task that needed what the task of `from` did not make.
pub fn because(name: &str, from: &Arc<Failure>) -> Arc<Failure> {
    Arc::new(Failure {
        cause: from.cause.clone(),
        name: name.into(),
        from: Some(from.clone()),
        on_failure: from.on_failure,
    })
}
