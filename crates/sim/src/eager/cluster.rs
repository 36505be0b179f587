//! A cluster that runs a program of generators and consumers, under the real scheduler and a
//! virtual clock. Values are there when their generator hands them over (eager), or all of them
//! when it ends (lazy). Nothing else differs, and the runtime itself takes no time.

use std::sync::Arc;

use sched::{
    Config, Event, ExecutorId, Instruction, Kind, NodeId, Outcome, Sched, TaskId, TaskSpec,
    VersionId,
};

use super::workloads::{Generator, Program, PROCESSORS};
use crate::calendar::{self, Calendar, Machine as _};
use crate::hash::Map;

/// Bytes of every value: what matters here is when it is there.
const VALUE_BYTES: u64 = 8;
/// In the calendar, generators' next values have numbers from here on.
const VALUES_FROM: usize = 1 << 40;

/// A task: how long it takes, how many values it has, and which generator it is.
#[derive(Clone, Copy, Debug)]
struct Task {
    ns: u64,
    returns: u32,
    generator: Option<usize>,
    running: Option<(TaskId, ExecutorId, u64)>,
}

/// A generator that runs: its values in the order in which they come.
#[derive(Debug)]
struct Handing {
    task: usize,
    order: Vec<u32>,
    next: usize,
}

struct Machine<'a> {
    program: &'a Program,
    eager: bool,
    sched: Sched,
    calendar: Calendar,
    tasks: Vec<Task>,
    numbers: Map<TaskId, usize>,
    handing: Vec<Option<Handing>>,
    over: usize,
}

impl<'a> Machine<'a> {
    fn new(program: &'a Program, eager: bool) -> Machine<'a> {
        let nodes = (program.compute_nodes + program.io_nodes) as usize;
        let mut sched = Sched::new(Config {
            processors: vec![PROCESSORS; nodes],
            stealing: true,
            pipeline_tasks_max: 1,
            ..Config::default()
        });
        for name in ["generate", "consume"] {
            sched.add_function(Arc::from(name));
        }
        Machine {
            program,
            eager,
            sched,
            calendar: Calendar::new(Vec::new()),
            tasks: Vec::new(),
            numbers: Map::default(),
            handing: program.generators.iter().map(|_| None).collect(),
            over: 0,
        }
    }

    /// An executor for each processor of the compute nodes, one slot on each I/O node.
    fn start_executors(&mut self) {
        let compute = self.program.compute_nodes;
        for number in 0..compute * PROCESSORS {
            let node = NodeId(number / PROCESSORS);
            self.executor(number, Kind::Compute, node);
        }
        for node in 0..self.program.io_nodes {
            self.executor(compute * PROCESSORS + node, Kind::Io, NodeId(compute + node));
        }
    }

    fn executor(&mut self, number: u32, kind: Kind, node: NodeId) {
        let executor = ExecutorId(number);
        self.drive(Event::ExecutorUp { executor, kind, node, slots: 1, extra: 0 });
    }

    fn submit(&mut self, kind: Kind, task: Task, after: Option<VersionId>) -> Vec<VersionId> {
        let spec = TaskSpec {
            returns: task.returns,
            accesses: after.into_iter().map(calendar::reads).collect(),
            ..calendar::task(u32::from(task.generator.is_none()), kind)
        };
        let mut out = Vec::new();
        let taken = self.sched.submit(0, &spec, &mut out).expect("nothing is wrong");
        self.numbers.insert(taken.task, self.tasks.len());
        self.tasks.push(task);
        self.carry_out(out);
        taken.outputs.to_vec()
    }

    /// All generators first, as a program would call them, then what is done with their values.
    fn submit_all(&mut self) {
        let program = self.program;
        let mut call = |(number, generator): (usize, &Generator)| {
            let kind = if generator.io_node.is_some() { Kind::Io } else { Kind::Compute };
            let (ns, returns) = (generator.ns(), generator.there_ns.len() as u32);
            let task = Task { ns, returns, generator: Some(number), running: None };
            self.submit(kind, task, None)
        };
        let called: Vec<_> = program.generators.iter().enumerate().map(&mut call).collect();
        for (generator, values) in program.generators.iter().zip(called) {
            for (value, chain) in values.into_iter().zip(&generator.consumers) {
                chain.iter().fold(value, |before, ns| {
                    let task = Task { ns: *ns, returns: 1, generator: None, running: None };
                    self.submit(Kind::Compute, task, Some(before))[0]
                });
            }
        }
    }

    fn run(&mut self, id: TaskId, executor: ExecutorId) {
        let number = self.numbers[&id];
        let task = &mut self.tasks[number];
        task.running = Some((id, executor, self.calendar.now));
        let Task { ns, generator, .. } = *task;
        if let Some(generator) = generator.filter(|_| self.eager) {
            let there_ns = &self.program.generators[generator].there_ns;
            let mut order: Vec<u32> = (0..there_ns.len() as u32).collect();
            order.sort_by_key(|value| there_ns[*value as usize]);
            self.handing[generator] = Some(Handing { task: number, order, next: 0 });
            self.next_value(generator, 0);
        }
        self.calendar.ends_after(ns, number);
    }

    /// The value after those that came in the first `after` nanoseconds comes.
    fn next_value(&mut self, generator: usize, after: u64) {
        let handing = self.handing[generator].as_ref().expect("it runs");
        let Some(value) = handing.order.get(handing.next) else { return };
        let at = self.program.generators[generator].there_ns[*value as usize];
        self.calendar.ends_after(at - after, VALUES_FROM + generator);
    }

    fn value_comes(&mut self, generator: usize) {
        let handing = self.handing[generator].as_mut().expect("it runs");
        let output = handing.order[handing.next];
        handing.next += 1;
        let task = self.tasks[handing.task].running.map(|(task, ..)| task);
        let at = self.program.generators[generator].there_ns[output as usize];
        self.next_value(generator, at);
        // The last one may come at the very end.
        if let Some(task) = task {
            self.drive(Event::Released { task, output, size: VALUE_BYTES });
        }
    }
}

impl calendar::Machine for Machine<'_> {
    fn calendar(&mut self) -> &mut Calendar {
        &mut self.calendar
    }

    fn sched(&mut self) -> &mut Sched {
        &mut self.sched
    }

    fn carry_out(&mut self, out: Vec<Instruction>) {
        for instruction in out {
            match instruction {
                Instruction::Run { task, executor, .. } => self.run(task, executor),
                Instruction::Forgotten { failure, .. } => {
                    assert!(failure.is_none(), "nothing fails");
                    self.over += 1;
                }
                _ => {}
            }
        }
    }

    fn ends(&mut self, number: usize) {
        if number >= VALUES_FROM {
            self.value_comes(number - VALUES_FROM);
            return;
        }
        let Task { returns, ref mut running, .. } = self.tasks[number];
        let (task, executor, since) = running.take().expect("it runs");
        let sizes = std::iter::repeat_n(VALUE_BYTES, returns as usize).collect();
        let ran = self.calendar.now - since;
        self.drive(Event::Ended { task, executor, outcome: Outcome::Done(sizes), ran });
    }
}

/// Runs a program; virtual nanoseconds to the end of its last task. The same arguments come to
/// the same.
pub fn run(program: &Program, eager: bool) -> u64 {
    let mut machine = Machine::new(program, eager);
    machine.submit_all();
    machine.start_executors();
    while machine.over < machine.tasks.len() {
        let happens = calendar::happen(&mut machine);
        assert!(happens, "{} of {} ended", machine.over, machine.tasks.len());
    }
    machine.calendar.now
}
