//! Loss of power and `kill -9` while files move between storage layers: the steps of
//! [`ops::catalog`] on modelled file systems that lose what was not flushed.
//!
//! A seed stands for a machine (`disk`), a session on it (`session`: tasks write, change and fail,
//! files are moved and brought home, several at a time; `shell` carries the calls out), and
//! moments at which it stops, and at which recovery (`restore`) stops. Then `truth` looks at every
//! disk: each version that was reported done is at its own path, whole, unless its layer was
//! memory and the power went, and recovery said so; nothing else was touched, and nothing is left
//! over; and all that is so after one more loss of power. A [`Canary`] does one thing wrong, to
//! prove that this sees it, and that the step is needed.

mod canary;
mod disk;
mod restore;
mod session;
mod shell;
mod truth;

use std::hash::Hasher;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

pub use canary::Canary;

use crate::checkers::Fault;
use crate::hash::mix;
use crate::seeds::{self, Simulated};
use session::Session;
use shell::Shell;

/// How often recovery is stopped, at most.
const RECOVERIES_STOPPED_MAX: usize = 3;
/// Calls of a session before it is stopped, at most.
const CALLS_MAX: u64 = 250;
/// The same of those that are stopped early.
const CALLS_EARLY_MAX: u64 = 20;
/// Calls of a recovery before it is stopped, at most.
const RECOVERY_CALLS_MAX: u64 = 60;

/// What a simulation was like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Calls to a file system.
    pub calls: u64,
    /// Jobs that came to their ends.
    pub jobs: u64,
    /// Files that were being moved.
    pub moves: u64,
    /// Files that were being brought home by the session.
    pub homes: u64,
    /// Changes in place.
    pub changes: u64,
    /// Stops by `kill -9`.
    pub kills: u64,
    /// Stops by a loss of power.
    pub power_losses: u64,
    /// Recoveries that were begun again after a stop.
    pub recoveries_stopped: u64,
    /// Catalogs with a torn end.
    pub torn: u64,
    /// What recovery said of files, in the order of [`ops::catalog::Fate`].
    pub fates: [u64; 6],
    /// A hash of every call in order.
    pub log: u64,
}

/// A promise that did not hold under a seed.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The seed.
    pub seed: u64,
    /// What was seen.
    pub fault: Fault,
    /// Every call, and what became true with it.
    pub story: Vec<String>,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "seed {}: {}: {}", self.seed, self.fault.checker, self.fault.message)?;
        self.story.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// A whole simulation: the session, its stop, recovery and its stops, and what the disks show.
fn simulate(shell: &mut Shell, roots: usize) -> Result<(), Fault> {
    let mut session = Session::new(shell, roots)?;
    let mut calls_left = match shell.rng.u8(0..8) {
        0 => u64::MAX,
        1 => shell.rng.u64(0..CALLS_EARLY_MAX),
        _ => shell.rng.u64(0..CALLS_MAX),
    };
    if !session.run(shell, &mut calls_left)? {
        let power = shell.rng.bool();
        shell.stop(power);
    }
    let stops = shell.rng.usize(0..=RECOVERIES_STOPPED_MAX);
    for stop in 0..=stops {
        let most = if shell.rng.bool() { CALLS_EARLY_MAX } else { RECOVERY_CALLS_MAX };
        let calls = shell.rng.u64(0..most);
        let mut calls_left = if stop == stops { u64::MAX } else { calls };
        if restore::run(shell, &mut calls_left)? {
            break;
        }
        shell.report.recoveries_stopped += 1;
        let power = shell.rng.bool();
        shell.stop(power);
    }
    shell.truth.check(&shell.disks)?;
    shell.say(|| "one more loss of power".to_string());
    shell.lose_power();
    // Its deletion may be the one thing that is undone: it names no file then.
    let mut no_end = u64::MAX;
    restore::run(shell, &mut no_end)?;
    shell.truth.check(&shell.disks)
}

fn run_once(
    seed: u64,
    canary: Option<Canary>,
    traced: bool,
) -> (Result<Report, Fault>, Vec<String>) {
    let mut rng = fastrand::Rng::with_seed(mix(seed, 0));
    let (disks, roots) = session::machine(&mut rng);
    let mut shell = Shell::new(disks, rng, canary);
    shell.trace = traced.then(Vec::new);
    let run = AssertUnwindSafe(|| simulate(&mut shell, roots));
    let result = panic::catch_unwind(run)
        .unwrap_or_else(|_| Err(Fault::new("panic", "the simulation panicked")));
    shell.report.log = mix(shell.log.finish(), shell.rng.u64(..));
    (result.map(|()| shell.report), shell.trace.take().unwrap_or_default())
}

/// Runs the simulation of a seed twice and compares.
pub fn run_seed(seed: u64, canary: Option<Canary>) -> Result<Report, Box<Violation>> {
    let (first, _) = run_once(seed, canary, false);
    match first {
        Ok(report) => {
            let (again, story) = run_once(seed, canary, false);
            if again.as_ref() == Ok(&report) {
                return Ok(report);
            }
            let message = format!("run twice, and not the same: {report:?}, then {again:?}");
            let fault = Fault::new("seed", message);
            Err(Box::new(Violation { seed, fault, story }))
        }
        Err(fault) => {
            let (_, story) = run_once(seed, canary, true);
            Err(Box::new(Violation { seed, fault, story }))
        }
    }
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

/// `cargo xtask power`: runs seeds; the exit code tells whether every one was clean.
pub fn cli(args: &[String]) -> ExitCode {
    seeds::cli::<Report>(args)
}

impl Simulated for Report {
    const NAME: &'static str = "power";
    const PROGRESS_SEEDS: u64 = 1000;
    type Violation = Violation;

    fn run(seed: u64) -> Result<Report, Box<Violation>> {
        run_seed(seed, None)
    }

    fn add(&mut self, other: &Report) {
        self.calls += other.calls;
        self.jobs += other.jobs;
        self.moves += other.moves;
        self.homes += other.homes;
        self.changes += other.changes;
        self.kills += other.kills;
        self.power_losses += other.power_losses;
        self.recoveries_stopped += other.recoveries_stopped;
        self.torn += other.torn;
        self.fates.iter_mut().zip(other.fates).for_each(|(sum, more)| *sum += more);
        // Seeds end in any order: the sum of their logs does not depend on it.
        self.log = self.log.wrapping_add(other.log);
    }

    fn closing_words(&self) -> String {
        let [home, half, at_home, deleted, _, lost] = self.fates;
        format!(
            "{} calls, {} jobs, \
             {} moves, {} brought home, {} changes in place; {} kills, {} losses of power, \
             {} recoveries stopped, {} catalogs torn; recovery brought {home} home and {half} \
             half changed, found {at_home} there, deleted {deleted}, lost {lost} with memory; \
             log {:016x}",
            self.calls,
            self.jobs,
            self.moves,
            self.homes,
            self.changes,
            self.kills,
            self.power_losses,
            self.recoveries_stopped,
            self.torn,
            self.log,
        )
    }

    fn seed_of(violation: &Violation) -> u64 {
        violation.seed
    }
}
