//! The published experiments at their size: which policy for the I/O of an application ends it
//! first. `cargo xtask experiment` prints the table and writes the rows.

pub mod applications;
pub mod cluster;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sched::{Bounds, Progress, Tuned, Tuning};

use self::applications::Application;
use self::cluster::{Outcomes, Policy, Storage};
use crate::storage::{Curve, Weather};

/// The sweep of the thesis, in MB/s.
const SWEEP_MB: [u64; 8] = [2, 4, 8, 16, 32, 64, 128, 256];
const MB: u64 = 1_000_000;
/// The speed of a disk is off by up to this share.
const NOISE: f64 = 0.03;

/// A disk as the text of the thesis lets one think of it. What is published of the disks: 450
/// MB/s; one task at a time is far from that; the rate rises to a peak at some tens of tasks,
/// and falls so far at the most tasks that no overlap makes up for it. The figures themselves
/// were not at hand. That the best run is 38 % shorter than the baseline, whose 48 tasks at once
/// write for as long as their number and the rate say, needs a rate at 48 that is lower than the
/// peak: with the peak at 48 or above 37.7 % is the most that overlap can give
/// (four rounds of computation, three of which hide I/O).
const KNEE: [(f64, f64); 14] = [
    (1.0, 140.0),
    (2.0, 215.0),
    (4.0, 290.0),
    (8.0, 350.0),
    (16.0, 405.0),
    (28.0, 438.0),
    (34.0, 450.0),
    (40.0, 440.0),
    (48.0, 380.0),
    (56.0, 335.0),
    (112.0, 215.0),
    (225.0, 125.0),
    (325.0, 85.0),
    (500.0, 55.0),
];

/// The same with its peak at a window that the sweep has (16 MB/s: 28 tasks), which is the most
/// that a static constraint can hope for.
const ON_GRID: [(f64, f64); 12] = [
    (1.0, 140.0),
    (4.0, 290.0),
    (8.0, 350.0),
    (16.0, 410.0),
    (28.0, 450.0),
    (40.0, 410.0),
    (48.0, 370.0),
    (56.0, 335.0),
    (112.0, 215.0),
    (225.0, 125.0),
    (325.0, 85.0),
    (500.0, 55.0),
];

fn curve(points: &[(f64, f64)]) -> Curve {
    let bytes: Vec<(f64, f64)> = points.iter().map(|(n, mb)| (*n, mb * MB as f64)).collect();
    Curve::new(&bytes)
}

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

fn policies() -> Vec<(String, Policy)> {
    let bounds = Bounds::new(2 * MB, 256 * MB, 2000);
    let mut all = vec![
        ("baseline".to_string(), Policy::Baseline),
        ("unconstrained".to_string(), Policy::Unconstrained),
    ];
    all.extend(SWEEP_MB.map(|mb| (format!("static {mb} MB/s"), Policy::Static(mb * MB))));
    all.extend([
        ("auto".to_string(), Policy::Tuned(Tuning::Auto { bounds: None })),
        ("auto(2,256,2)".to_string(), Policy::Tuned(Tuning::Auto { bounds })),
        ("adaptive".to_string(), Policy::Tuned(Tuning::Adaptive)),
    ]);
    all
}

impl Case {
    fn run(name: String, application: &Application, storage: &Storage) -> Case {
        let lines = policies().into_iter().map(|(name, policy)| {
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
        text +=
            "  policy            total s  of baseline  of best static   write s   MB/s  found\n";
        for Line { name, outcomes } in &self.lines {
            let total = outcomes.total_ns as f64 / 1e9;
            let _ = writeln!(
                text,
                "  {name:<16} {total:>8.1} {:>12.3} {:>15.3} {:>9.1} {:>6.0}  {}",
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
            tuned("bounded", "auto(2,256,2)", "null"),
            tuned("adaptive", "adaptive", "1.0"),
        ]
    }
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

/// Every case: as published, with the peak on the sweep's grid, and with disks that halve
/// their speed midway.
fn cases(seed: u64, only: &[String], tell: &mut dyn FnMut(&Case)) -> Vec<String> {
    let weather = Weather { seed, noise: NOISE, change: None };
    let wanted = |name: &str| only.is_empty() || only.iter().any(|app| name.starts_with(&**app));
    let mut rows = Vec::new();
    for application in applications::all(seed) {
        if !wanted(application.name) {
            continue;
        }
        for (suffix, points) in [("", &KNEE[..]), (" on grid", &ON_GRID[..])] {
            let storage = Storage { curve: curve(points), weather };
            let name = format!("{}{suffix}", application.name);
            let case = Case::run(name.clone(), &application, &storage);
            tell(&case);
            rows.extend(case.rows());
            let halfway = case.best_static().outcomes.total_ns / 2;
            let weather = Weather { change: Some((halfway, 0.5)), ..weather };
            let storage = Storage { weather, ..storage };
            let case = Case::run(format!("{name} halving"), &application, &storage);
            tell(&case);
            rows.extend(case.rows());
        }
    }
    rows
}

const USAGE: &str = "usage: cargo xtask experiment [APPLICATION...] [--seed N] [--out FOLDER]
  APPLICATION  hmmer, variants, kmeans (default: all)
  --seed N     what noise and run times are drawn from (default 1)
  --out DIR    write experiment.json there";

struct Options {
    seed: u64,
    out: Option<PathBuf>,
    only: Vec<String>,
}

fn options(args: &[String]) -> Result<Options, String> {
    let mut options = Options { seed: 1, out: None, only: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--seed" => {
                let text = value()?;
                options.seed = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
            }
            "--out" => options.out = Some(PathBuf::from(value()?)),
            "hmmer" | "variants" | "kmeans" => options.only.push(arg.clone()),
            other => return Err(format!("unknown argument {other:?}")),
        }
    }
    Ok(options)
}

fn write_rows(folder: &Path, rows: &[String]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let text = format!("[\n  {}\n]\n", rows.join(",\n  "));
    std::fs::write(folder.join("experiment.json"), text)
}

/// Runs the experiments; the exit code tells whether the arguments were understood and the rows
/// were written.
pub fn cli(args: &[String]) -> ExitCode {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let options = match options(args) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("experiment: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    println!(
        "simulated: {} nodes, {} processors and a disk of {} MB/s each; seed {}; virtual time\n",
        cluster::NODES,
        cluster::PROCESSORS,
        cluster::BANDWIDTH / MB,
        options.seed
    );
    let rows = cases(options.seed, &options.only, &mut |case| println!("{}", case.table()));
    match options.out.map_or(Ok(()), |folder| write_rows(&folder, &rows)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("experiment: experiment.json cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}
