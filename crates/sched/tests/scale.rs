//! Wide programs: what would take the square of their width would not end here.

mod driver;

use std::collections::VecDeque;

use driver::*;
use sched::{
    Access, Config, Constraint, DatumId, DatumKind, Direction, Event, ExecutorId, Instruction,
    Kind, Outcome, Region, Span, Target, TaskId, TaskSpec,
};

const TASKS: usize = 50_000;

/// Feeds back the end of everything that was sent.
struct Wide {
    driver: Driver,
    sent: VecDeque<(TaskId, ExecutorId)>,
    out: Vec<Instruction>,
}

impl Wide {
    fn new(bandwidth: u64, capacity: u64) -> Wide {
        let layers = vec![layer("disk", bandwidth, Some(capacity))];
        let mut driver = Driver::new(Config { layers, stealing: true, ..config() });
        driver.up(E0, Kind::Compute, 0, 1);
        driver.up(E1, Kind::Compute, 0, 1);
        driver.up(E2, Kind::Io, 0, 64);
        Wide { driver, sent: VecDeque::new(), out: Vec::new() }
    }

    fn take(&mut self) {
        for instruction in self.out.drain(..) {
            if let Instruction::Run { task, executor, .. } = instruction {
                self.sent.push_back((task, executor));
            }
        }
    }

    fn submit(&mut self, spec: TaskSpec) -> sched::Submitted {
        let taken = self.driver.sched.submit(0, &spec, &mut self.out).expect("taken");
        self.take();
        taken
    }

    fn uses(&mut self, accesses: Vec<Access>) -> TaskId {
        let spec = TaskSpec { returns: 0, accesses, ..self.driver.compute("wide") };
        self.submit(spec).task
    }

    fn end_all(&mut self) {
        while let Some((task, executor)) = self.sent.pop_front() {
            let outcome = Outcome::Done([8].into());
            let ended = Event::Ended { task, executor, outcome, ran: 1 };
            self.driver.sched.handle(0, ended, &mut self.out);
            self.take();
        }
        assert_eq!(self.driver.sched.live_tasks(), 0, "all ran");
        self.driver.sched.validate().expect("sound");
    }

    fn datum(&mut self, kind: DatumKind) -> DatumId {
        self.driver.sched.add_datum(kind, None).expect("new")
    }
}

#[test]
fn many_readers_of_a_file_and_a_writer_after_them() {
    let mut wide = Wide::new(1, 1);
    let file = wide.datum(DatumKind::InPlace);
    for _ in 0..TASKS {
        wide.uses(vec![uses(file, Direction::In)]);
    }
    wide.uses(vec![uses(file, Direction::Out)]);
    wide.end_all();
}

#[test]
fn many_members_of_a_group_and_a_reader_after_them() {
    for kind in [DatumKind::InPlace, DatumKind::Value] {
        for direction in [Direction::Commutative, Direction::Concurrent] {
            let mut wide = Wide::new(1, 1);
            let datum = wide.datum(kind);
            for _ in 0..TASKS {
                wide.uses(vec![uses(datum, direction)]);
            }
            wide.uses(vec![uses(datum, Direction::In)]);
            wide.end_all();
        }
    }
}

#[test]
fn wide_fans_of_futures_and_of_files() {
    let mut wide = Wide::new(1, 1);
    let spec = wide.driver.compute("root");
    let root = wide.submit(spec).outputs[0];
    let mut inputs = Vec::new();
    for _ in 0..TASKS {
        let file = wide.datum(DatumKind::InPlace);
        let accesses = vec![reads(root), uses(file, Direction::Out)];
        let spec = TaskSpec { accesses, ..wide.driver.compute("leaf") };
        inputs.extend([reads(wide.submit(spec).outputs[0]), uses(file, Direction::In)]);
    }
    wide.uses(inputs);
    wide.end_all();
}

#[test]
fn many_blocks_of_a_file() {
    let mut wide = Wide::new(1, 1);
    let file = wide.datum(DatumKind::InPlace);
    let block = |at: u64| Access {
        target: Target::Datum(file),
        region: Region::Range(Span { start: at * 10, end: at * 10 + 10 }),
        direction: Direction::InOut,
    };
    for at in (0..TASKS as u64 / 2).chain(0..TASKS as u64 / 2) {
        wide.uses(vec![block(at)]);
    }
    wide.uses(vec![uses(file, Direction::In)]);
    wide.end_all();
}

#[test]
fn many_ready_io_tasks_that_all_ask_for_something_else() {
    let most = TASKS as u64;
    let constraints: [&dyn Fn(u64) -> Constraint; 3] =
        [&|at| constraint(most / 3, at), &|at| constraint(1, at * 7919 % most), &|at| {
            constraint(at * 7919 % most, 1)
        }];
    for constraint in constraints {
        let mut wide = Wide::new(most, most);
        for at in 0..most {
            let constraint = constraint(at);
            let spec = TaskSpec { constraint, ..wide.driver.io("w", 0, 0) };
            wide.submit(spec);
        }
        wide.end_all();
    }
}

#[test]
fn many_writers_that_are_cancelled_behind_one_that_runs() {
    let mut wide = Wide::new(1, 1);
    let file = wide.datum(DatumKind::InPlace);
    let tasks: Vec<TaskId> =
        (0..TASKS).map(|_| wide.uses(vec![uses(file, Direction::Out)])).collect();
    for task in &tasks[1..] {
        wide.driver.sched.handle(0, Event::Cancel { task: *task }, &mut wide.out);
    }
    let last = wide.uses(vec![uses(file, Direction::Out)]);
    assert_eq!(wide.sent.len(), 1, "the last waits for the first");
    wide.end_all();
    assert_eq!(wide.driver.sched.state(last), None);
}

#[test]
fn many_executors_with_lines() {
    let stealing = Config { pipeline_tasks_max: 16, stealing: true, ..config() };
    let mut driver = Driver::new(Config { processors: vec![500], ..stealing });
    for id in 0..500 {
        let up = Event::ExecutorUp {
            executor: ExecutorId(id),
            kind: Kind::Compute,
            node: sched::NodeId(0),
            slots: 1,
            extra: 0,
        };
        driver.sched.handle(0, up, &mut Vec::new());
    }
    let mut wide = Wide { driver, sent: VecDeque::new(), out: Vec::new() };
    for _ in 0..TASKS {
        wide.uses(Vec::new());
    }
    wide.end_all();
}
