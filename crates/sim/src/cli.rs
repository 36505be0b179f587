//! `cargo xtask sim`: runs seeds, with progress on a terminal and a closing line.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;

use crate::run::{run_seeds, Summary};

const USAGE: &str = "usage: cargo xtask sim [--seeds N] [--start S] [--keep-going N]
  --seeds N       how many seeds to run, each twice (default 2000)
  --start S       the first seed (default 0)
  --keep-going N  stop after N violations (default 1)";

/// How many seeds are run when nobody says.
const SEEDS_DEFAULT: u64 = 2000;
/// The progress line is written again after this many seeds.
const PROGRESS_SEEDS: u64 = 100;

struct Options {
    seeds: u64,
    start: u64,
    violations_max: usize,
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

/// Runs what the arguments say; the exit code tells whether every seed was clean.
pub fn cli(args: &[String]) -> ExitCode {
    let options = match options(args) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("sim: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let began = Instant::now();
    let terminal = std::io::stderr().is_terminal();
    let progress = |done: u64| {
        if terminal && (done % PROGRESS_SEEDS == 0 || done == options.seeds) {
            let rate = done as f64 / began.elapsed().as_secs_f64();
            eprint!("\rsim: {done} of {} seeds, {rate:.0} a second ", options.seeds);
            let _ = std::io::stderr().flush();
        }
    };
    let seeds = options.start..options.start + options.seeds;
    let summary = run_seeds(seeds, options.violations_max, &progress);
    if terminal {
        eprintln!();
    }
    for violation in &summary.violations {
        println!("{violation}");
    }
    println!("{}", closing_line(&summary, &options, began.elapsed().as_secs_f64()));
    match summary.violations.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn closing_line(summary: &Summary, options: &Options, seconds: f64) -> String {
    let total = &summary.total;
    let seeds: Vec<String> =
        summary.violations.iter().map(|violation| violation.seed.to_string()).collect();
    let verdict = match seeds.is_empty() {
        true => "clean".to_string(),
        false => {
            format!("VIOLATED by {} (run again with --start SEED --seeds 1)", seeds.join(", "))
        }
    };
    format!(
        "sim: {} seeds from {}, each twice, in {seconds:.1} s: {verdict}; {} tasks, {} bodies, \
         {} events, {} executors died, {} tasks failed, {} cancelled ({} by region), \
         {} sent ahead, {} recalled, {} paused, {} resumed, {} given up, \
         {} outputs released, {} refused, {} passed on by engines; \
         {} epochs ({} abandoned), {} in adaptive windows; \
         {} moves ({} up), {} files removed, {} runs unplaced, {} troubles; log {:016x}",
        summary.seeds,
        options.start,
        total.tasks,
        total.bodies,
        total.events,
        total.deaths,
        total.failed,
        total.cancelled,
        total.cancelled_by_region,
        total.ahead,
        total.recalled,
        total.paused,
        total.resumed,
        total.given_up,
        total.released,
        total.refused,
        total.refused_by_engines,
        total.epochs,
        total.abandoned,
        total.adaptive,
        total.moves,
        total.prefetches,
        total.removed,
        total.unplaced,
        total.troubles,
        total.log,
    )
}
