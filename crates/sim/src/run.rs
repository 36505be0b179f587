//! A seed from its program to a report or a violation.

use std::cell::RefCell;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Once;

use crate::checkers::Fault;
use crate::faults::Faults;
use crate::program::Program;
use crate::seeds::{self, Simulated};
use crate::shrink;
use crate::world::World;

/// How many lines of the end of a story are printed.
const STORY_LINES_MAX: usize = 120;

/// A driver that does one thing wrong, to prove that a checker sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// Bodies write their data in place at submission (results).
    BeginEarly,
    /// One report of an end is lost (liveness).
    LoseReport,
    /// The scheduler is told twice the bandwidth that there is (grants).
    GrantTooMuch,
    /// A task that was given back runs all the same (dead).
    RunRecalled,
    /// One forgotten task stays in the driver's books (state).
    MissForgotten,
    /// One handle is dropped without telling the scheduler (memory).
    LoseForget,
    /// Low priorities are told as high ones (order).
    SwapPriorities,
    /// Tuned tasks are told to have run a nanosecond longer (tuning).
    MisreportTime,
    /// Files are told to be a byte smaller (files).
    MisreportBytes,
    /// Producers may be ahead by one value more (streams).
    GrantAhead,
    /// The scheduler is not told what can be read and written of a layer apart (grants).
    ForgetWays,
    /// The scheduler is told higher watermarks than there are (files).
    RaiseWatermarks,
}

impl Canary {
    /// Every canary with the checker that has to see it.
    pub const ALL: [(Canary, &'static str); 12] = [
        (Canary::BeginEarly, "results"),
        (Canary::LoseReport, "liveness"),
        (Canary::GrantTooMuch, "grants"),
        (Canary::RunRecalled, "dead"),
        (Canary::MissForgotten, "state"),
        (Canary::LoseForget, "memory"),
        (Canary::SwapPriorities, "order"),
        (Canary::MisreportTime, "tuning"),
        (Canary::MisreportBytes, "files"),
        (Canary::GrantAhead, "streams"),
        (Canary::ForgetWays, "grants"),
        (Canary::RaiseWatermarks, "files"),
    ];
}

/// What a simulation was like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Tasks that were taken.
    pub tasks: u64,
    /// Events that the scheduler handled.
    pub events: u64,
    /// Runs of bodies.
    pub bodies: u64,
    /// Executors that died.
    pub deaths: u64,
    /// Tasks that failed by themselves.
    pub failed: u64,
    /// Tasks that were cancelled, by the program or with one that they need.
    pub cancelled: u64,
    /// Of these: tasks that need no failed data cell by cell, only region by region.
    pub cancelled_by_region: u64,
    /// Tasks that were sent behind another.
    pub ahead: u64,
    /// Tasks that were taken back from an executor.
    pub recalled: u64,
    /// Tasks that an engine could not do.
    pub refused_by_engines: u64,
    /// Bodies that gave their processor back midway.
    pub paused: u64,
    /// Values of streams that were handed over.
    pub yielded: u64,
    /// Bodies that stalled and went on.
    pub resumed: u64,
    /// Runs that were given up because their time was up.
    pub given_up: u64,
    /// Outputs that came before the end of their task.
    pub released: u64,
    /// Submissions that were refused, as they had to be.
    pub refused: u64,
    /// Learning epochs that ended.
    pub epochs: u64,
    /// Learning epochs that were given up.
    pub abandoned: u64,
    /// Runs within an adaptive window.
    pub adaptive: u64,
    /// Moves of files that were begun.
    pub moves: u64,
    /// Of these: copies up.
    pub prefetches: u64,
    /// Of these: begun while I/O went on, from layers above their watermarks.
    pub drained: u64,
    /// Files that were there before.
    pub found: u64,
    /// Scratch files that were removed.
    pub removed: u64,
    /// Runs that their layer failed.
    pub unplaced: u64,
    /// Runs that were over before their ends were told.
    pub settled: u64,
    /// What happened to layers.
    pub troubles: u64,
    /// A hash of every instruction in order.
    pub log: u64,
    /// Virtual nanoseconds.
    pub ns: u64,
}

/// A promise that did not hold under a seed.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The seed.
    pub seed: u64,
    /// What was seen.
    pub fault: Fault,
    /// The smallest program found that shows it.
    pub program: String,
    /// How many steps the program had, and has.
    pub steps: (usize, usize),
    /// What happened in the small program, up to the fault.
    pub story: Vec<String>,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "seed {}: {}: {}", self.seed, self.fault.checker, self.fault.message)?;
        if let Some(task) = self.fault.task {
            writeln!(f, "it is about task {task}")?;
        }
        writeln!(f, "program ({} steps, of {}):", self.steps.1, self.steps.0)?;
        f.write_str(&self.program)?;
        writeln!(f, "what happened (time in ns):")?;
        let skipped = self.story.len().saturating_sub(STORY_LINES_MAX);
        if skipped > 0 {
            writeln!(f, "({skipped} lines before)")?;
        }
        self.story[skipped..].iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

thread_local! {
    /// `Some` while a simulation runs on this thread: where a panic's message goes.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Panics inside a simulation are violations, told once with the seed, not on the spot.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let kept = PANIC.with(|cell| match &mut *cell.borrow_mut() {
                Some(message) => {
                    *message = info.to_string();
                    true
                }
                None => false,
            });
            if !kept {
                before(info);
            }
        }));
    });
}

/// What to look at in one run.
#[derive(Clone, Copy, Default)]
struct Look {
    validated: bool,
    traced: bool,
}

fn run_once(
    program: &Program,
    faults: &Faults,
    canary: Option<Canary>,
    look: Look,
) -> (Result<Report, Fault>, Vec<String>) {
    PANIC.with(|cell| *cell.borrow_mut() = Some(String::new()));
    let mut world = World::new(program, faults, canary);
    world.validated = look.validated;
    world.trace = look.traced.then(Vec::new);
    let result = panic::catch_unwind(AssertUnwindSafe(|| world.run()));
    let panicked = PANIC.with(|cell| cell.borrow_mut().take()).unwrap_or_default();
    let result = match result {
        Ok(result) => result,
        Err(_) => Err(Fault::new("panic", panicked)),
    };
    (result.map(|()| world.report), world.trace.take().unwrap_or_default())
}

/// Runs a program under the faults of a seed, once, with every check.
pub fn run_program(
    seed: u64,
    program: &Program,
    canary: Option<Canary>,
) -> Result<Report, Box<Violation>> {
    keep_panics();
    let faults = Faults::new(seed);
    let checked = Look { validated: true, traced: false };
    let (result, _) = run_once(program, &faults, canary, checked);
    result.map_err(|fault| explain(seed, program, &faults, canary, fault))
}

/// Makes the program small and tells its story.
fn explain(
    seed: u64,
    program: &Program,
    faults: &Faults,
    canary: Option<Canary>,
    fault: Fault,
) -> Box<Violation> {
    let checked = Look { validated: true, traced: false };
    let small = shrink::shrink(program, |candidate| {
        run_once(candidate, faults, canary, checked)
            .0
            .is_err_and(|other| other.checker == fault.checker)
    });
    let (result, story) = run_once(&small, faults, canary, Look { traced: true, ..checked });
    let fault = result.err().unwrap_or(fault);
    let steps = (program.steps.len(), small.steps.len());
    Box::new(Violation { seed, fault, program: small.listing(), steps, story })
}

/// Runs the simulation of a seed twice and compares.
pub fn run_seed(seed: u64) -> Result<Report, Box<Violation>> {
    let program = Program::generate(seed);
    let report = run_program(seed, &program, None)?;
    let faults = Faults::new(seed);
    let (again, _) = run_once(&program, &faults, None, Look::default());
    if again.as_ref() == Ok(&report) {
        return Ok(report);
    }
    let message = format!("run twice, and not the same: {report:?}, then {again:?}");
    let steps = (program.steps.len(), program.steps.len());
    let fault = Fault::new("seed", message);
    let program = program.listing();
    Err(Box::new(Violation { seed, fault, program, steps, story: Vec::new() }))
}

/// What many seeds came to.
pub type Summary = seeds::Summary<Report>;

/// Runs seeds on two threads; `progress` hears how many are done now and then.
pub fn run_seeds(
    seeds: Range<u64>,
    violations_max: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Summary {
    seeds::run_seeds(seeds, violations_max, progress)
}

/// `cargo xtask sim`: runs seeds; the exit code tells whether every one was clean.
pub fn cli(args: &[String]) -> ExitCode {
    seeds::cli::<Report>(args)
}

impl Simulated for Report {
    const NAME: &'static str = "sim";
    const PROGRESS_SEEDS: u64 = 100;
    type Violation = Violation;

    fn run(seed: u64) -> Result<Report, Box<Violation>> {
        run_seed(seed)
    }

    fn add(&mut self, other: &Report) {
        self.tasks += other.tasks;
        self.events += other.events;
        self.bodies += other.bodies;
        self.deaths += other.deaths;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.cancelled_by_region += other.cancelled_by_region;
        self.ahead += other.ahead;
        self.recalled += other.recalled;
        self.refused_by_engines += other.refused_by_engines;
        self.paused += other.paused;
        self.yielded += other.yielded;
        self.resumed += other.resumed;
        self.given_up += other.given_up;
        self.released += other.released;
        self.refused += other.refused;
        self.epochs += other.epochs;
        self.abandoned += other.abandoned;
        self.adaptive += other.adaptive;
        self.moves += other.moves;
        self.prefetches += other.prefetches;
        self.drained += other.drained;
        self.found += other.found;
        self.removed += other.removed;
        self.unplaced += other.unplaced;
        self.settled += other.settled;
        self.troubles += other.troubles;
        // Seeds end in any order: the sum of their logs does not depend on it.
        self.log = self.log.wrapping_add(other.log);
        self.ns = self.ns.saturating_add(other.ns);
    }

    fn closing_words(&self) -> String {
        format!(
            "{} tasks, {} bodies, \
             {} events, {} executors died, {} tasks failed, {} cancelled ({} by region), \
             {} sent ahead, {} recalled, {} paused, {} yielded, {} resumed, {} given up, \
             {} outputs released, {} refused, {} passed on by engines; \
             {} epochs ({} abandoned), {} in adaptive windows; \
             {} moves ({} up, {} beside I/O), {} files found, {} removed, {} runs unplaced, \
             {} settled later, {} troubles; \
             log {:016x}",
            self.tasks,
            self.bodies,
            self.events,
            self.deaths,
            self.failed,
            self.cancelled,
            self.cancelled_by_region,
            self.ahead,
            self.recalled,
            self.paused,
            self.yielded,
            self.resumed,
            self.given_up,
            self.released,
            self.refused,
            self.refused_by_engines,
            self.epochs,
            self.abandoned,
            self.adaptive,
            self.moves,
            self.prefetches,
            self.drained,
            self.found,
            self.removed,
            self.unplaced,
            self.settled,
            self.troubles,
            self.log,
        )
    }

    fn seed_of(violation: &Violation) -> u64 {
        violation.seed
    }
}
