//! Random programs: what a user could have written, with the machine that it runs on.
//!
//! A program is a row of steps, taken in order by one main thread. Steps name tasks, data and
//! handles by number, so that a program stays a program when steps are taken out of it: a step
//! whose number never came to be does nothing.

use graph::{DatumKind, Direction, Region};
use sched::{Config, Constraint, Kind, Layer, LayerId, OnFailure, Tuning};

use crate::hash::mix;

/// The machine that a program runs on.
#[derive(Clone, Debug)]
pub struct Machine {
    /// What the scheduler is told: layers, processors, pipelining.
    pub config: Config,
    /// Compute executors of each node.
    pub compute: Vec<u32>,
    /// Slots of each I/O executor of each node.
    pub io: Vec<Vec<u32>>,
    /// Slots of the engine of each node.
    pub engines: Vec<u32>,
    /// Whether data in place are files, of which the driver says where they are.
    pub files: bool,
}

/// A datum that a program uses.
#[derive(Clone, Debug)]
pub struct DatumPlan {
    /// Value or in place.
    pub kind: DatumKind,
    /// Cells in each dimension (in place only).
    pub shape: Vec<u64>,
}

/// What a program means by an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetPlan {
    /// A handle, by number.
    Handle(usize),
    /// A datum, by number.
    Datum(usize),
}

/// One access of a task.
#[derive(Clone, Debug)]
pub struct AccessPlan {
    /// Of what.
    pub target: TargetPlan,
    /// Which part.
    pub region: Region,
    /// To do what.
    pub direction: Direction,
}

/// Why a submission must be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// More processors than any node has.
    TooManyProcessors,
    /// A constraint that no layer can satisfy.
    NoLayer,
    /// Overlapping regions with a write among them.
    SelfConflict,
    /// An empty or reversed span.
    BadRegion,
    /// A datum that was dropped.
    Stale,
    /// A write to a version by name.
    BadDirection,
}

/// A task whose one return is a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPlan {
    /// What its producer may be ahead by: what values cost that are not used up, the last one
    /// apart.
    pub buffer: u64,
    /// How many values it has.
    pub values: u32,
    /// What one of them costs at most.
    pub dearest: u64,
}

impl StreamPlan {
    /// What a value costs.
    pub fn cost(&self, number: u32) -> u64 {
        1 + mix(self.buffer, number.into()) % self.dearest
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct TaskPlan {
    /// Its number.
    pub task: usize,
    /// Which function, by number.
    pub function: usize,
    /// Compute, I/O, or I/O by the engine.
    pub kind: Kind,
    /// Processors.
    pub cpus: u32,
    /// Higher first.
    pub priority: i32,
    /// Runs after a failure.
    pub retries: u32,
    /// Given up after this.
    pub timeout: Option<u64>,
    /// What its failure means.
    pub on_failure: OnFailure,
    /// What it asks of a layer.
    pub constraint: Constraint,
    /// How its bandwidth is chosen.
    pub tuning: Tuning,
    /// The only layer that will do.
    pub layer: Option<LayerId>,
    /// Bytes that it makes.
    pub produces: u64,
    /// What it uses.
    pub accesses: Vec<AccessPlan>,
    /// Handles of its returns.
    pub returns: Vec<usize>,
    /// What it returns instead is a stream.
    pub stream: Option<StreamPlan>,
    /// Returns that are handed over so many thousandths of the way through, some more than once.
    pub releases: Vec<(u32, u64)>,
    /// How long its body takes.
    pub duration: u64,
    /// That it must be refused, and how.
    pub expect: Option<Expect>,
}

impl TaskPlan {
    /// How many values it returns; a stream counts as one.
    pub fn returned(&self) -> usize {
        self.returns.len() + usize::from(self.stream.is_some())
    }
}

/// One thing that the main thread does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Puts a value into the store.
    Put {
        /// The new handle.
        handle: usize,
    },
    /// Makes a datum known; a value datum starts as what the handle names.
    Datum {
        /// Which.
        datum: usize,
        /// Its first value.
        initial: Option<usize>,
    },
    /// Calls a task.
    Submit(Box<TaskPlan>),
    /// Drops a handle.
    Forget {
        /// Which.
        handle: usize,
    },
    /// Copies a handle.
    Hold {
        /// The new handle.
        handle: usize,
        /// Of what.
        of: usize,
    },
    /// Takes a handle of the latest version of a datum.
    Current {
        /// The new handle.
        handle: usize,
        /// Of what.
        datum: usize,
    },
    /// Forgets a datum.
    Drop {
        /// Which.
        datum: usize,
    },
    /// Cancels a task, or wants no more of its stream.
    Cancel {
        /// Which.
        task: usize,
    },
    /// Does something else for a while.
    Think {
        /// Nanoseconds.
        ns: u64,
    },
    /// Waits for the next value of a task's stream and takes it.
    Next {
        /// Whose stream.
        task: usize,
        /// The new handle; it stays without a version if the stream is over.
        handle: usize,
    },
    /// Takes a handle of what comes next in a task's stream, without waiting.
    Peek {
        /// Whose stream.
        task: usize,
        /// The new handle.
        handle: usize,
    },
    /// Waits for a version.
    Wait {
        /// Which.
        handle: usize,
    },
}

/// A program, the data that it uses and the machine that it runs on.
#[derive(Clone, Debug)]
pub struct Program {
    /// The machine.
    pub machine: Machine,
    /// The data, by number.
    pub data: Vec<DatumPlan>,
    /// What the main thread does.
    pub steps: Vec<Step>,
    /// One past the highest task number.
    pub tasks: usize,
    /// One past the highest handle number.
    pub handles: usize,
    /// Whether handles are dropped as soon as the last step is done, before the tasks are.
    pub hasty: bool,
}

/// How many functions a program has.
pub const FUNCTIONS: usize = 4;

impl Program {
    /// The program that a seed stands for.
    pub fn generate(seed: u64) -> Program {
        crate::generate::Generator::new(seed).program()
    }

    /// The layers of the machine.
    pub fn layers(&self) -> &[Layer] {
        &self.machine.config.layers
    }

    /// The program as a user would read it, a line a step.
    pub fn listing(&self) -> String {
        let mut text = format!(
            "machine: processors {:?}, compute executors {:?}, I/O slots {:?}, engines {:?}, \
             stealing {}, pipeline {} tasks {} ns, {:?}, flush {}, prefetch {}, files {}\n",
            self.machine.config.processors,
            self.machine.compute,
            self.machine.io,
            self.machine.engines,
            self.machine.config.stealing,
            self.machine.config.pipeline_tasks_max,
            self.machine.config.pipeline_ns_max,
            self.machine.config.policy,
            self.machine.config.flush,
            self.machine.config.prefetch,
            self.machine.files,
        );
        for (index, layer) in self.layers().iter().enumerate() {
            text += &format!("layer {index}: {layer:?}\n");
        }
        for step in &self.steps {
            text += &match step {
                Step::Submit(plan) => describe_task(plan),
                Step::Datum { datum, initial } => {
                    format!("d{datum} = {:?} from {initial:?}", self.data[*datum])
                }
                other => format!("{other:?}"),
            };
            text.push('\n');
        }
        text
    }
}

fn describe_task(plan: &TaskPlan) -> String {
    let mut text = format!("submit t{} {:?} {} ns", plan.task, plan.kind, plan.duration);
    if plan.kind == Kind::Compute && plan.cpus != 1 {
        text += &format!(" cpus={}", plan.cpus);
    }
    if plan.priority != 0 {
        text += &format!(" priority={}", plan.priority);
    }
    if plan.retries != 0 {
        text += &format!(" retries={}", plan.retries);
    }
    if let Some(timeout) = plan.timeout {
        text += &format!(" timeout={timeout}");
    }
    if plan.on_failure != OnFailure::Fail {
        text += &format!(" on_failure={:?}", plan.on_failure);
    }
    if plan.kind.is_io() {
        text += &format!(
            " bandwidth={} {:?} size={} layer={:?}",
            plan.constraint.bandwidth, plan.constraint.way, plan.constraint.size, plan.layer
        );
        if plan.tuning != Tuning::Static {
            text += &format!(" {:?}", plan.tuning);
        }
    }
    for access in &plan.accesses {
        text += &format!("; {:?} {:?} {}", access.direction, access.target, part(&access.region));
    }
    text += &format!("; returns {:?}", plan.returns);
    if let Some(StreamPlan { buffer, values, dearest }) = plan.stream {
        text += &format!("; a stream of {values} values of cost 1..{dearest}, buffer={buffer}");
    }
    for (output, at) in &plan.releases {
        text += &format!("; releases {output} at {at}/1000");
    }
    if let Some(expect) = plan.expect {
        text += &format!("; must be refused: {expect:?}");
    }
    text
}

fn part(region: &Region) -> String {
    match region {
        Region::Whole => String::new(),
        Region::Range(span) => format!("[{}..{}]", span.start, span.end),
        Region::Box(spans) => {
            let spans: Vec<_> = spans.iter().map(|s| format!("{}..{}", s.start, s.end)).collect();
            format!("[{}]", spans.join(", "))
        }
    }
}
