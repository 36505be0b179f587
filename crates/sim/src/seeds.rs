//! Many seeds of one simulation: run on two threads, added up, and told in a closing line.
//!
//! [`Simulated`] says what differs from simulation to simulation.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::Instant;

/// How many threads run seeds.
const THREADS: usize = 2;
/// How many seeds are run when nobody says.
const SEEDS_DEFAULT: u64 = 2000;

/// The report of a seed, and how it is made.
pub trait Simulated: Default + Send {
    /// What `cargo xtask` calls it.
    const NAME: &'static str;
    /// The progress line is written again after this many seeds.
    const PROGRESS_SEEDS: u64;
    /// A promise that did not hold under a seed.
    type Violation: fmt::Display + Send;

    /// Runs the simulation of a seed twice and compares.
    ///
    /// # Errors
    /// A promise did not hold, or the two runs differ.
    fn run(seed: u64) -> Result<Self, Box<Self::Violation>>;

    /// Adds the report of another seed; the order of the seeds does not matter.
    fn add(&mut self, other: &Self);

    /// What a sum of reports says, for the end of the closing line.
    fn closing_words(&self) -> String;

    /// The seed of a violation.
    fn seed_of(violation: &Self::Violation) -> u64;
}

/// What many seeds came to.
#[derive(Clone, Debug)]
pub struct Summary<R: Simulated> {
    /// How many seeds were run.
    pub seeds: u64,
    /// The sum of their reports.
    pub total: R,
    /// What did not hold, by seed; no more seeds are begun after the first few.
    pub violations: Vec<R::Violation>,
}

/// Runs seeds on two threads; `progress` hears how many are done now and then.
pub fn run_seeds<R: Simulated>(
    seeds: Range<u64>,
    violations_max: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Summary<R> {
    let (next, done) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let summary = Summary { seeds: 0, total: R::default(), violations: Vec::new() };
    let summary = Mutex::new(summary);
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= seeds.end {
            return;
        }
        let result = R::run(seed);
        let mut summary = summary.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        summary.seeds += 1;
        match result {
            Ok(report) => summary.total.add(&report),
            Err(violation) => summary.violations.push(*violation),
        }
        if summary.violations.len() >= violations_max {
            next.store(seeds.end, Ordering::Relaxed);
        }
        drop(summary);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    let mut summary = summary.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    summary.violations.sort_by_key(R::seed_of);
    summary
}

struct Options {
    seeds: u64,
    start: u64,
    violations_max: usize,
}

fn usage(name: &str) -> String {
    format!(
        "usage: cargo xtask {name} [--seeds N] [--start S] [--keep-going N]
  --seeds N       how many seeds to run, each twice (default {SEEDS_DEFAULT})
  --start S       the first seed (default 0)
  --keep-going N  stop after N violations (default 1)"
    )
}

fn options(args: &[String]) -> Result<Option<Options>, String> {
    let mut options = Options { seeds: SEEDS_DEFAULT, start: 0, violations_max: 1 };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--help" || arg == "-h" {
            return Ok(None);
        }
        let mut number = || {
            let text = args.next().ok_or_else(|| format!("{arg} needs a number"))?;
            let digits = text.replace('_', "");
            digits.parse::<u64>().map_err(|_| format!("{arg}: {text:?} is not a number"))
        };
        match arg.as_str() {
            "--seeds" => options.seeds = number()?,
            "--start" => options.start = number()?,
            "--keep-going" => options.violations_max = number()?.max(1) as usize,
            other => return Err(format!("unknown option {other:?}")),
        }
    }
    if options.start.checked_add(options.seeds).is_none() {
        return Err("--start plus --seeds is more than 2^64".to_string());
    }
    Ok(Some(options))
}

/// Runs what the arguments say, with progress on a terminal and a closing line; the exit code
/// tells whether every seed was clean.
pub fn cli<R: Simulated>(args: &[String]) -> ExitCode {
    let name = R::NAME;
    let options = match options(args) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{}", usage(name));
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("{name}: {message}\n{}", usage(name));
            return ExitCode::from(2);
        }
    };
    let began = Instant::now();
    let terminal = std::io::stderr().is_terminal();
    let progress = |done: u64| {
        if terminal && (done % R::PROGRESS_SEEDS == 0 || done == options.seeds) {
            let rate = done as f64 / began.elapsed().as_secs_f64();
            eprint!("\r{name}: {done} of {} seeds, {rate:.0} a second ", options.seeds);
            let _ = std::io::stderr().flush();
        }
    };
    let seeds = options.start..options.start + options.seeds;
    let summary = run_seeds::<R>(seeds, options.violations_max, &progress);
    if terminal {
        eprintln!();
    }
    for violation in &summary.violations {
        println!("{violation}");
    }
    println!("{}", closing_line(&summary, options.start, began.elapsed().as_secs_f64()));
    match summary.violations.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn closing_line<R: Simulated>(summary: &Summary<R>, start: u64, seconds: f64) -> String {
    let seeds: Vec<String> =
        summary.violations.iter().map(|violation| R::seed_of(violation).to_string()).collect();
    let verdict = match seeds.is_empty() {
        true => "clean".to_string(),
        false => {
            format!("VIOLATED by {} (run again with --start SEED --seeds 1)", seeds.join(", "))
        }
    };
    format!(
        "{}: {} seeds from {start}, each twice, in {seconds:.1} s: {verdict}; {}",
        R::NAME,
        summary.seeds,
        summary.total.closing_words(),
    )
}
