//! The transition table, the story that is told by it, and that the same events give the same
//! instructions.

mod driver;

use std::collections::BTreeSet;

use driver::*;
use sched::{
    next, Config, Event, ExecutorId, Input, Instruction, Kind, LayerId, OnFailure, Outcome, State,
    Step, TaskId, TaskSpec, STEPS_MAX, TRANSITIONS,
};

const OVER: [State; 3] = [State::Done, State::Failed, State::Cancelled];

#[test]
fn every_state_can_be_reached_and_left_unless_it_is_an_end() {
    let mut reached = BTreeSet::from([State::New]);
    for _ in TRANSITIONS {
        let from = TRANSITIONS.iter().filter(|line| reached.contains(&line.from));
        let to: Vec<State> = from.map(|line| line.to).collect();
        reached.extend(to);
    }
    let named: BTreeSet<State> = TRANSITIONS.iter().flat_map(|line| [line.from, line.to]).collect();
    assert_eq!(reached, named);
    assert_eq!(named.len(), 10, "all states are in the table");
    for state in named {
        let leaves = TRANSITIONS.iter().any(|line| line.from == state);
        assert_eq!(leaves, !OVER.contains(&state), "{state}");
    }
}

#[test]
fn a_state_and_an_input_lead_to_one_state() {
    for (at, line) in TRANSITIONS.iter().enumerate() {
        assert_eq!(next(line.from, line.input), Some(line.to));
        let same =
            |other: &&sched::Transition| (other.from, other.input) == (line.from, line.input);
        assert_eq!(TRANSITIONS.iter().position(|other| same(&other)), Some(at), "{line:?} once");
    }
    assert_eq!(next(State::Done, Input::Retry), None);
}

/// Failures, retries, time-outs and cancellations in every state.
fn scenario(driver: &mut Driver) {
    let timed = |driver: &Driver, retries, on_failure| TaskSpec {
        timeout: Some(10),
        retries,
        on_failure,
        ..driver.compute("timed")
    };
    driver.up(E0, Kind::Compute, 0, 1);
    let fine = driver.submit(TaskSpec { retries: 1, ..driver.compute("fine") });
    let accesses = vec![reads(fine.outputs[0])];
    let waiting = driver.submit(TaskSpec { accesses, ..driver.compute("waiting") });
    let ready = driver.submit(driver.compute("ready"));
    driver.cancel(waiting.id);
    driver.cancel(ready.id);
    driver.recalled(fine.id, E0);
    driver.raised(fine.id, E0);
    driver.done(fine.id, E0);
    let failing = driver.submit(driver.compute("failing"));
    driver.raised(failing.id, E0);
    let late = driver.submit(timed(driver, 1, OnFailure::Fail));
    driver.tick(10);
    driver.lost(E0, &[late.id]);
    driver.up(E1, Kind::Compute, 0, 1);
    driver.tick(20);
    driver.lost(E1, &[late.id]);
    driver.up(E2, Kind::Compute, 0, 1);
    let ignored = driver.submit(timed(driver, 0, OnFailure::Ignore));
    driver.tick(30);
    driver.lost(E2, &[ignored.id]);
    let paused = paused_scenario(driver);
    let settled = settled_scenario(driver);
    let others = [fine, waiting, ready, failing, late, ignored];
    for task in others.iter().chain(&paused).chain(&settled) {
        driver.listen(task.id);
    }
}

/// Every end of a body that gave its processor back.
fn paused_scenario(driver: &mut Driver) -> [Taken; 3] {
    driver.up(E3, Kind::Compute, 0, 1);
    let failing = driver.submit(TaskSpec { retries: 1, ..driver.compute("failing") });
    for _ in 0..2 {
        driver.paused(failing.id, E3);
        driver.raised(failing.id, E3);
    }
    let fine = driver.submit(driver.compute("fine"));
    driver.paused(fine.id, E3);
    driver.resume(fine.id);
    driver.paused(fine.id, E3);
    driver.done(fine.id, E3);
    let late = driver.submit(TaskSpec { timeout: Some(10), ..driver.compute("late") });
    driver.paused(late.id, E3);
    driver.tick(40);
    driver.lost(E3, &[late.id]);
    [failing, fine, late]
}

/// Every end of a run that was over before its end was told.
fn settled_scenario(driver: &mut Driver) -> [Taken; 2] {
    driver.up(ExecutorId(4), Kind::Compute, 0, 1);
    let settles = |driver: &mut Driver, task: &Taken, outcome: Outcome| {
        let (task, executor) = (task.id, ExecutorId(4));
        driver.event(Event::Settling { task, executor, ran: Some(10) });
        driver.event(Event::Settled { task, outcome });
    };
    let failing = driver.submit(TaskSpec { retries: 1, ..driver.compute("failing") });
    for _ in 0..2 {
        settles(driver, &failing, Outcome::Raised((*b"no space").into()));
    }
    let fine = driver.submit(driver.compute("fine"));
    settles(driver, &fine, Outcome::Done([8].into()));
    [failing, fine]
}

/// Tasks that are sent elsewhere, and some that nobody takes.
fn layers_fail(driver: &mut Driver) {
    let moved = driver.submit(driver.io("moved", 10, 0));
    let failed = driver.submit(TaskSpec { layer: Some(LayerId(1)), ..driver.io("io", 10, 0) });
    let on_failure = sched::OnFailure::Ignore;
    let ignored = TaskSpec { layer: Some(LayerId(1)), on_failure, ..driver.io("io", 10, 0) };
    let ignored = driver.submit(ignored);
    driver.unplaced(moved.id, E0);
    driver.event(sched::Event::LayerDown { layer: LayerId(1) });
    driver.done(moved.id, E0);
    for task in [moved, failed, ignored] {
        driver.listen(task.id);
    }
}

#[test]
fn every_line_is_used() {
    let mut driver = Driver::new(config());
    scenario(&mut driver);
    let layers = vec![layer("disk", 100, None), layer("flash", 300, None)];
    let mut other = Driver::with_io(layers, 1);
    layers_fail(&mut other);
    driver.steps.extend(other.steps);
    for line in TRANSITIONS {
        let used =
            |step: &Step| (step.from, step.input, step.to) == (line.from, line.input, line.to);
        assert!(driver.steps.iter().any(used), "{line:?} is not exercised");
    }
    for step in &driver.steps {
        assert_eq!(next(step.from, step.input), Some(step.to), "{step:?} is in the table");
    }
}

#[test]
fn a_story_is_told_in_order_and_for_so_long() {
    let mut driver = Driver::with_compute(config(), 1);
    driver.now = 5;
    let task = driver.submit(driver.compute("a"));
    driver.now = 7;
    driver.done(task.id, E0);
    let step = |at, from, input, to| Step { at, task: task.id, from, input, to };
    let expected = [
        step(5, State::New, Input::Submit, State::Waiting),
        step(5, State::Waiting, Input::Unblock, State::Ready),
        step(5, State::Ready, Input::Dispatch, State::Sent),
        step(7, State::Sent, Input::Finish, State::Done),
    ];
    assert_eq!(driver.sched.story(task.id), expected);
    for _ in 0..STEPS_MAX / 4 {
        let next = driver.submit(driver.compute("a"));
        driver.done(next.id, E0);
    }
    assert_eq!(driver.sched.story(task.id), [], "forgotten");
}

#[test]
fn time_never_goes_back() {
    let mut driver = Driver::with_compute(config(), 1);
    driver.tick(100);
    driver.now = 50;
    let task = driver.submit(TaskSpec { timeout: Some(10), ..driver.compute("a") });
    assert_eq!(driver.sched.story(task.id)[0].at, 100);
    assert_eq!(driver.sched.next_deadline(), Some(110));
}

#[test]
fn all_that_was_counted_adds_up() {
    let mut driver = Driver::new(config());
    scenario(&mut driver);
    let counts = driver.sched.counts();
    assert_eq!((counts.waiting, counts.ready, counts.sent), (0, 0, 0));
    assert_eq!((counts.done, counts.failed, counts.cancelled), (4, 5, 2));
    assert_eq!(driver.sched.live_tasks(), 0);
}

/// A small generator of the test's own, so that a seed is a program.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % sides as u64) as usize
    }
}

fn random_program(seed: u64, stealing: bool) -> Vec<Instruction> {
    let layers = vec![layer("disk", 100, None), layer("flash", 300, Some(100))];
    let processors = vec![2, 3];
    let pipeline_tasks_max = 3;
    let mut driver =
        Driver::new(Config { layers, processors, stealing, pipeline_tasks_max, ..config() });
    let mut dice = Dice(seed);
    for id in 0..5 {
        driver.up(ExecutorId(id), Kind::Compute, id % 2, 1);
    }
    (5..7).for_each(|id| drop(driver.up(ExecutorId(id), Kind::Io, id % 2, 3)));
    let file = driver.file();
    let mut all = Vec::new();
    let mut running: Vec<(TaskId, ExecutorId)> = Vec::new();
    let mut made = Vec::new();
    for now in 0..400 {
        driver.now = now;
        let out = match (dice.roll(5), running.len()) {
            (0 | 1, _) | (_, 0) => {
                let mut spec = match dice.roll(3) {
                    0 => driver.io("io", dice.roll(300) as u64, dice.roll(50) as u64),
                    _ => driver.compute("compute"),
                };
                spec.retries = dice.roll(2) as u32;
                spec.priority = dice.roll(2) as i32;
                spec.layer =
                    (dice.roll(9) == 0 && spec.constraint.bandwidth < 100).then_some(LayerId(0));
                for _ in 0..dice.roll(3).min(made.len()) {
                    spec.accesses.push(reads(made[dice.roll(made.len())]));
                }
                if dice.roll(4) == 0 {
                    let how = [sched::Direction::In, sched::Direction::Commutative];
                    spec.accesses.push(uses(file, how[dice.roll(2)]));
                }
                let taken = driver.submit(spec);
                made.extend(taken.outputs);
                taken.out
            }
            (2, _) => driver.cancel(running[dice.roll(running.len())].0),
            _ => {
                let (task, executor) = running.remove(dice.roll(running.len()));
                let bytes = dice.roll(100) as u64;
                let outcome = match dice.roll(8) {
                    0 => Outcome::Raised(std::sync::Arc::from(*b"oops")),
                    _ => Outcome::Done([bytes].into()),
                };
                driver.event(Event::Ended { task, executor, outcome, ran: 5 })
            }
        };
        running.extend(out.iter().filter_map(|one| match one {
            Instruction::Run { task, executor, .. } => Some((*task, *executor)),
            _ => None,
        }));
        all.extend(out);
    }
    all
}

#[test]
fn the_same_events_give_the_same_instructions() {
    for seed in 0..20 {
        let first = random_program(seed, seed % 2 == 0);
        assert!(first.len() > 300, "the program does something");
        assert_eq!(first, random_program(seed, seed % 2 == 0));
    }
}
