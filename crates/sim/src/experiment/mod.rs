//! The published experiments at their size: which policy for the I/O of an application ends it
//! first. `cargo xtask experiment` prints the table and writes the rows.

pub mod applications;
pub mod cluster;
pub mod disks;
mod options;

use std::fmt::Write as _;
use std::process::ExitCode;

use sched::{Bounds, Progress, Tuned, Tuning};

use self::applications::Application;
use self::cluster::{Outcomes, Policy, Storage};
use self::disks::Disks;
pub use self::options::Given;
use crate::command;
use crate::storage::Weather;

const MB: u64 = 1_000_000;

/// One policy and what it came to.
struct Line {
    name: String,
    outcomes: Outcomes,
}

/// All policies on one application and one storage.
struct Case {
    name: String,
    lines: Vec<Line>,
}

fn policies(sweep: [u64; 8]) -> Vec<(String, Policy)> {
    let bounds = Bounds::new(sweep[0], sweep[7], 2000);
    let mut all = vec![
        ("baseline".to_string(), Policy::Baseline),
        ("unconstrained".to_string(), Policy::Unconstrained),
    ];
    all.extend(sweep.map(|bytes| (format!("static {} MB/s", in_mb(bytes)), Policy::Static(bytes))));
    all.extend([
        ("auto".to_string(), Policy::Tuned(Tuning::Auto { bounds: None })),
        ("bounded".to_string(), Policy::Tuned(Tuning::Auto { bounds })),
        ("adaptive".to_string(), Policy::Tuned(Tuning::Adaptive)),
        ("adaptive, measured".to_string(), Policy::Measured),
    ]);
    all
}

impl Case {
    fn run(name: String, application: &Application, sweep: [u64; 8], storage: &Storage) -> Case {
        let lines = policies(sweep).into_iter().map(|(name, policy)| {
            let outcomes = cluster::run(application, policy, storage);
            Line { name, outcomes }
        });
        Case { name, lines: lines.collect() }
    }

    fn total_s(&self, policy: &str) -> f64 {
        let line = self.lines.iter().find(|line| line.name == policy);
        line.map_or(f64::NAN, |line| line.outcomes.total_ns as f64 / 1e9)
    }

    fn best_static(&self) -> &Line {
        let fixed = self.lines.iter().filter(|line| line.name.starts_with("static"));
        fixed.min_by_key(|line| line.outcomes.total_ns).expect("the sweep has lines")
    }

    fn table(&self) -> String {
        let best = self.best_static();
        let mut text = format!("{}\n", self.name);
        text += "  policy                total s  of baseline  of best static   write s   MB/s  ";
        text += "found\n";
        for Line { name, outcomes } in &self.lines {
            let total = outcomes.total_ns as f64 / 1e9;
            let _ = writeln!(
                text,
                "  {name:<20} {total:>8.1} {:>12.3} {:>15.3} {:>9.1} {:>6.0}  {}",
                total / self.total_s("baseline"),
                outcomes.total_ns as f64 / best.outcomes.total_ns as f64,
                outcomes.write_ns as f64 / 1e9,
                outcomes.rate / 1e6,
                found(&outcomes.tuned),
            );
        }
        text
    }

    /// The rows of the JSON file: what is compared with what, and the target.
    fn rows(&self) -> Vec<String> {
        let best = self.best_static().outcomes.total_ns as f64 / 1e9;
        let baseline = self.total_s("baseline");
        let unconstrained = self.total_s("unconstrained");
        let row = |what: &str, ours: f64, peer: &str, theirs: f64, target: &str| {
            format!(
                "{{\"row\": \"{}_{what}\", \"unit\": \"s\", \"ours\": {ours:.3}, \"against\": \
                 {{\"{peer}\": {theirs:.3}}}, \"ratio\": {:.4}, \"target\": {target}}}",
                self.name.replace(' ', "_"),
                ours / theirs
            )
        };
        let tuned =
            |what, policy, target| row(what, self.total_s(policy), "best static", best, target);
        vec![
            row("best_static", best, "baseline", baseline, "1.0"),
            row("unconstrained", unconstrained, "baseline", baseline, "null"),
            tuned("auto", "auto", "null"),
            tuned("bounded", "bounded", "null"),
            tuned("adaptive", "adaptive", "1.0"),
            tuned("adaptive_measured", "adaptive, measured", "1.0"),
        ]
    }
}

/// Bytes as MB, with as many digits as matter.
fn in_mb(bytes: u64) -> f64 {
    (bytes as f64 / MB as f64 * 1e3).round() / 1e3
}

/// What the tuner ended with, in a few words.
fn found(tuned: &[Tuned]) -> String {
    let mut windows: Vec<u32> = Vec::new();
    let mut constraints: Vec<String> = Vec::new();
    for told in tuned {
        match told.progress {
            Progress::Window { tasks, .. } => windows.push(tasks),
            Progress::Chosen { constraint } => constraints.push(format!(
                "{} MB/s after {} epochs",
                constraint / MB,
                told.epochs.len()
            )),
            Progress::Learning { constraint, ended, most, .. } => {
                constraints.push(format!("{} MB/s: {ended} of {most} learned", constraint / MB));
            }
        }
    }
    windows.sort_unstable();
    if let (Some(least), Some(most)) = (windows.first(), windows.last()) {
        constraints.push(format!("windows {least} to {most}"));
    }
    constraints.join(", ")
}

/// Every case: each application on each kind of disk, and with disks that halve their speed
/// midway.
fn cases(options: &options::Options, disks: &[Disks], tell: &mut dyn FnMut(&Case)) -> Vec<String> {
    let wanted = |name: &str| options.only.iter().any(|only| name.starts_with(&**only));
    let mut rows = Vec::new();
    for application in applications::all(options.seed) {
        if !options.only.is_empty() && !wanted(application.name) {
            continue;
        }
        for disks in disks {
            let storage = disks.storage(options.seed);
            let name = format!("{}{}", application.name, disks.name);
            let case = Case::run(name.clone(), &application, disks.sweep(), &storage);
            tell(&case);
            rows.extend(case.rows());
            let halfway = case.best_static().outcomes.total_ns / 2;
            let weather = Weather { change: Some((halfway, 0.5)), ..storage.weather };
            let storage = Storage { weather, ..storage };
            let name = format!("{name} halving");
            let case = Case::run(name, &application, disks.sweep(), &storage);
            tell(&case);
            rows.extend(case.rows());
        }
    }
    rows
}

/// Runs the experiments; the exit code tells whether the arguments were understood and the rows
/// were written. `read` finds the disks that a file describes, or says why it cannot.
pub fn cli(args: &[String], read: &dyn Fn(&Given) -> Result<Disks, String>) -> ExitCode {
    let options = match command::options("experiment", options::USAGE, args, options::parse) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let disks = match options.given.as_ref().map(read) {
        None => Disks::all_published(),
        Some(Ok(disks)) => vec![disks],
        Some(Err(message)) => {
            eprintln!("experiment: {message}");
            return ExitCode::from(2);
        }
    };
    println!(
        "simulated: {} nodes of {} processors, {} of {} MB/s; seed {}; virtual time\n",
        cluster::NODES,
        cluster::PROCESSORS,
        if disks[0].shared { "one disk" } else { "each with a disk" },
        in_mb(disks[0].bandwidth),
        options.seed
    );
    let rows = cases(&options, &disks, &mut |case| println!("{}", case.table()));
    command::write_rows("experiment", options.out.as_deref(), "experiment.json", &rows)
}
