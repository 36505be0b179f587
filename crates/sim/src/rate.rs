//! The scheduler's own speed: events a second and the cost of an event, with executors that do
//! nothing, from 10^3 to 10^6 tasks.
//!
//! A program keeps a window of tasks in flight, as a long session does: it calls a task, the
//! executors end what they were sent at once, and the program drops its handle of every result
//! as it comes. What is counted is what goes into the scheduler: submissions, ends and forgets.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use graph::{Access, Direction, Region, Target, VersionId};
use sched::{
    Config, Constraint, Event, ExecutorId, FunctionId, Instruction, Kind, Layer, NodeId, OnFailure,
    Outcome, Sched, TaskSpec, Tuning,
};

/// What the tasks have to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing.
    Independent,
    /// Each reads the one before.
    Chain,
    /// A producer for every [`FAN_TASKS`] readers, and one task that reads all those.
    Fan,
    /// I/O tasks with a constraint on one of two layers.
    Io,
}

/// Every shape.
pub const SHAPES: [Shape; 4] = [Shape::Independent, Shape::Chain, Shape::Fan, Shape::Io];
/// Readers between one producer and one gatherer of a fan.
pub const FAN_TASKS: usize = 100;
/// How many tasks a program keeps in flight.
pub const WINDOW_TASKS: usize = 1000;
/// Rounds in which all sizes of a shape are measured.
const ROUNDS: usize = 7;
/// Smaller programs are repeated until they are so many tasks.
const ROUND_TASKS: usize = 100_000;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Submissions, ends and forgets.
    pub events: u64,
    /// How long they took, in nanoseconds.
    pub ns: u64,
}

impl Rate {
    /// Events a second.
    pub fn per_second(&self) -> f64 {
        self.events as f64 * 1e9 / self.ns as f64
    }

    /// Nanoseconds an event.
    pub fn cost_ns(&self) -> f64 {
        self.ns as f64 / self.events as f64
    }
}

struct Bench {
    sched: Sched,
    function: FunctionId,
    name: Arc<str>,
    out: Vec<Instruction>,
    /// Runs that were sent and not ended.
    sent: VecDeque<(graph::TaskId, ExecutorId)>,
    /// Handles to drop once their versions came.
    events: u64,
    now: u64,
    live: usize,
    over: usize,
}

impl Bench {
    fn new() -> Bench {
        let layer =
            |name: &str, bandwidth| Layer { name: name.into(), bandwidth, ..Layer::default() };
        let mut sched = Sched::new(Config {
            layers: vec![layer("fast", Some(4_000)), layer("slow", Some(1_000))],
            processors: vec![16],
            pipeline_tasks_max: 16,
            pipeline_ns_max: 1_000_000,
            ..Config::default()
        });
        let function = sched.add_function(Arc::from("noop"));
        let mut out = Vec::new();
        for id in 0..17 {
            let kind = if id == 16 { Kind::Io } else { Kind::Compute };
            let slots = if id == 16 { 64 } else { 1 };
            let executor = ExecutorId(id);
            let up = Event::ExecutorUp { executor, kind, node: NodeId(0), slots, extra: 0 };
            sched.handle(0, up, &mut out);
        }
        Bench {
            sched,
            function,
            name: Arc::from("noop"),
            out,
            sent: VecDeque::new(),
            events: 0,
            now: 0,
            live: 0,
            over: 0,
        }
    }

    fn submit(&mut self, kind: Kind, reads: &[VersionId]) -> VersionId {
        let accesses = reads
            .iter()
            .map(|version| Access {
                target: Target::Version(*version),
                region: Region::Whole,
                direction: Direction::In,
            })
            .collect();
        let io = kind == Kind::Io;
        let spec = TaskSpec {
            function: self.function,
            name: self.name.clone(),
            kind,
            cpus: u32::from(!io),
            priority: 0,
            retries: 0,
            timeout: None,
            on_failure: OnFailure::Fail,
            constraint: Constraint { bandwidth: if io { 100 } else { 0 }, ..Constraint::default() },
            tuning: Tuning::Static,
            returns: 1,
            accesses,
            produces: 0,
            layer: None,
        };
        self.now += 100;
        self.events += 1;
        self.live += 1;
        let submitted = self.sched.submit(self.now, &spec, &mut self.out);
        let output = submitted.expect("nothing is wrong with it").outputs[0];
        self.carry_out();
        output
    }

    fn forget(&mut self, version: VersionId) {
        self.events += 1;
        self.sched.handle(self.now, Event::Forget { version }, &mut self.out);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        for instruction in self.out.drain(..) {
            match instruction {
                Instruction::Run { task, executor, .. } => self.sent.push_back((task, executor)),
                Instruction::Forgotten { .. } => {
                    self.live -= 1;
                    self.over += 1;
                }
                _ => {}
            }
        }
    }

    /// Executors end what they have until no more than `live` tasks are in flight.
    fn end_until(&mut self, live: usize) {
        while self.live > live {
            let (task, executor) = self.sent.pop_front().expect("a live task runs or will");
            self.now += 100;
            self.events += 1;
            let outcome = Outcome::Done(Box::new([8]));
            let event = Event::Ended { task, executor, outcome, ran: 100 };
            self.sched.handle(self.now, event, &mut self.out);
            self.carry_out();
        }
    }
}

/// Measures one shape with so many tasks, of which `in_flight` are called ahead.
pub fn measure(shape: Shape, tasks: usize, in_flight: usize) -> Rate {
    let mut bench = Bench::new();
    let began = Instant::now();
    let mut readers: Vec<VersionId> = Vec::with_capacity(FAN_TASKS);
    let mut last: Option<VersionId> = None;
    let mut ahead: VecDeque<VersionId> = VecDeque::new();
    for number in 0..tasks {
        let kind = if shape == Shape::Io { Kind::Io } else { Kind::Compute };
        match shape {
            Shape::Independent | Shape::Io => ahead.push_back(bench.submit(kind, &[])),
            Shape::Chain => {
                let output = bench.submit(kind, last.as_slice());
                ahead.extend(last.replace(output));
            }
            Shape::Fan => match number % (FAN_TASKS + 2) {
                0 => last = Some(bench.submit(kind, &[])),
                at if at <= FAN_TASKS => readers.push(bench.submit(kind, last.as_slice())),
                _ => {
                    ahead.push_back(bench.submit(kind, &readers));
                    ahead.extend(last.take());
                    ahead.extend(readers.drain(..));
                }
            },
        }
        bench.end_until(in_flight);
        while ahead.len() > in_flight {
            let version = ahead.pop_front().expect("more than none");
            bench.forget(version);
        }
    }
    bench.end_until(0);
    for version in ahead.into_iter().chain(last).chain(readers) {
        bench.forget(version);
    }
    let ns = began.elapsed().as_nanos() as u64;
    assert_eq!((bench.over, bench.sched.live_versions()), (tasks, 0), "all is over and gone");
    Rate { events: bench.events, ns }
}

/// Medians over rounds of one shape: what a size costs, and what against the first in its round.
struct Row {
    tasks: usize,
    rate: Rate,
    against_first: f64,
}

/// Measures the sizes of a shape in turns: a machine that is slow for a while is so for all.
fn rows(shape: Shape, sizes: &[usize], all_at_once: bool) -> Vec<Row> {
    let rate = |tasks: usize| {
        let in_flight = if all_at_once { tasks } else { WINDOW_TASKS };
        let times = 0..(ROUND_TASKS / tasks).max(1);
        median(times.map(|_| measure(shape, tasks, in_flight)).collect(), Rate::cost_ns)
    };
    let round = || sizes.iter().map(|tasks| rate(*tasks)).collect();
    let rounds: Vec<Vec<Rate>> = (0..ROUNDS).map(|_| round()).collect();
    let against = |round: &Vec<Rate>, at: usize| round[at].cost_ns() / round[0].cost_ns();
    let row = |(at, tasks): (usize, &usize)| Row {
        tasks: *tasks,
        rate: median(rounds.iter().map(|round| round[at]).collect(), Rate::cost_ns),
        against_first: median(rounds.iter().map(|round| against(round, at)).collect(), |it| *it),
    };
    sizes.iter().enumerate().map(row).collect()
}

fn median<T: Copy>(mut values: Vec<T>, key: impl Fn(&T) -> f64) -> T {
    values.sort_by(|one, other| key(one).total_cmp(&key(other)));
    values[values.len() / 2]
}

const USAGE: &str = "usage: cargo xtask rate [--tasks-max N]
  --tasks-max N   measure from 1000 tasks up to this many, in powers of ten (default 1000000)";

fn tasks_max(args: &[String]) -> Result<usize, String> {
    match args {
        [] => Ok(1_000_000),
        [option, text] if option == "--tasks-max" => {
            let digits = text.replace('_', "");
            let number = digits.parse().map_err(|_| format!("{text:?} is not a number"))?;
            if number < 1000 {
                return Err("--tasks-max is at least 1000".to_string());
            }
            Ok(number)
        }
        _ => Err(format!("unknown arguments {args:?}")),
    }
}

/// Prints the table; the exit code tells whether the arguments were understood.
pub fn cli(args: &[String]) -> ExitCode {
    let most = match crate::command::options("rate", USAGE, args, tasks_max) {
        Ok(most) => most,
        Err(code) => return code,
    };
    println!("scheduler only, no-op executors, one thread; an event is a submission, an end or a");
    println!(
        "forget; cost/1st: against the first row of its group, in turns; medians of {ROUNDS}\n"
    );
    println!("shape        in flight      tasks     events/s   ns/event   cost/1st");
    let powers = std::iter::successors(Some(1000), |tasks| Some(tasks * 10));
    let sizes: Vec<usize> = powers.take_while(|tasks| *tasks <= most).collect();
    for all_at_once in [false, true] {
        for shape in SHAPES {
            for row in rows(shape, &sizes, all_at_once) {
                println!(
                    "{:<12} {:>9} {:>10} {:>12.0} {:>10.1} {:>10.2}",
                    format!("{shape:?}").to_lowercase(),
                    if all_at_once { "all".to_string() } else { WINDOW_TASKS.to_string() },
                    row.tasks,
                    row.rate.per_second(),
                    row.rate.cost_ns(),
                    row.against_first,
                );
            }
        }
    }
    ExitCode::SUCCESS
}
