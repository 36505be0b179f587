//! The published experiments on storage layers: which policy, with flush or without, ends which
//! program first. `cargo xtask tiers` prints the table and writes the rows.

pub mod machine;
pub mod workloads;

use std::path::PathBuf;
use std::process::ExitCode;

use sched::PolicyKind;

use self::machine::{Figures, Way};
use self::workloads::Workload;
use crate::command;

const USAGE: &str = "usage: cargo xtask tiers [WORKLOAD...] [options]
  WORKLOAD     hmmer, references, synthetic (default: all)
  --seed N     what run times are drawn from (default 1)
  --nvram GB   capacity of the highest layer of a node (default 1000)
  --ssd GB     capacity of the second layer of a node (default 300)
  --compute X  computation over the time that the shared layer needs for all writes (default 0.667)
  --pfs X      what the shared layer really moves over what it is said to (default 1)
  --out DIR    write tiers-simulated.json there";

/// Not `tiers.json`: that is of `bench/tiers`, on real layers.
const ROWS: &str = "tiers-simulated.json";

const GB: u64 = 1_000_000_000;

struct Options {
    seed: u64,
    capacities: [u64; 2],
    compute: f64,
    shared_speed: f64,
    out: Option<PathBuf>,
    only: Vec<String>,
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        seed: 1,
        capacities: [1000 * GB, 300 * GB],
        compute: 0.667,
        shared_speed: 1.0,
        out: None,
        only: Vec::new(),
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        let number = |text: &String| {
            let number = text.parse::<u64>();
            number.map_err(|_| format!("{arg}: {text:?} is not a whole number"))
        };
        match arg.as_str() {
            "--seed" => options.seed = number(value()?)?,
            "--nvram" => options.capacities[0] = number(value()?)?.saturating_mul(GB),
            "--ssd" => options.capacities[1] = number(value()?)?.saturating_mul(GB),
            "--compute" => {
                let text = value()?;
                let share = text.parse::<f64>().ok().filter(|share| *share >= 0.0);
                options.compute = share.ok_or_else(|| format!("{text:?} is not a share"))?;
            }
            "--pfs" => {
                let text = value()?;
                let speed = text.parse::<f64>().ok().filter(|speed| *speed > 0.0);
                options.shared_speed = speed.ok_or_else(|| format!("{text:?} is not a share"))?;
            }
            "--out" => options.out = Some(PathBuf::from(value()?)),
            "hmmer" | "references" | "synthetic" => options.only.push(arg.clone()),
            other => return Err(format!("unknown argument {other:?}")),
        }
    }
    Ok(options)
}

const POLICIES: [(&str, PolicyKind); 3] = [
    ("fcfs", PolicyKind::Fcfs),
    ("priority", PolicyKind::Priority),
    ("backfilling", PolicyKind::Backfilling),
];

fn line(name: &str, figures: &Figures, baseline: &Figures) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let [high, middle, low] = figures.tasks;
    format!(
        "  {name:<18} {:>9.0} {:>8.3} {:>9.0} {:>8.2} {high:>8} {middle:>7} {low:>7} {:>9}",
        seconds(figures.total_ns),
        figures.total_ns as f64 / baseline.total_ns as f64,
        seconds(figures.io_ns),
        baseline.io_ns as f64 / figures.io_ns as f64,
        figures.flushed / GB,
    )
}

fn row(name: &str, ours: f64, baseline: f64, ratio: f64) -> String {
    format!(
        "{{\"row\": \"{name}\", \"unit\": \"s\", \"ours\": {ours:.1}, \"against\": \
         {{\"shared layer only\": {baseline:.1}}}, \"ratio\": {ratio:.4}, \"target\": null}}"
    )
}

/// Every way on one program: prints as it goes, gives the rows.
fn case(workload: &Workload, granted: bool, options: &Options) -> Vec<String> {
    println!(
        "{}{}: {} iterations of {} tasks a node, {} GB written a node",
        workload.name,
        if granted { ", at the granted rate" } else { "" },
        workload.iterations,
        workload.writes.len(),
        workload.bytes() / GB
    );
    println!(
        "  {:<18} {:>9} {:>8} {:>9} {:>8} {:>8} {:>7} {:>7} {:>9}",
        "way", "total s", "ratio", "I/O s", "speedup", "nvram", "ssd", "pfs", "GB moved"
    );
    let Options { capacities, compute, shared_speed, seed, .. } = *options;
    let way = |policy, flush, only_shared| Way {
        only_shared,
        policy,
        flush,
        capacities,
        compute,
        granted,
        shared_speed,
        seed,
    };
    let baseline = machine::run(workload, way(PolicyKind::Fcfs, false, true));
    println!("{}", line("shared layer only", &baseline, &baseline));
    let mut rows = Vec::new();
    for flush in [false, true] {
        for (name, policy) in POLICIES {
            let figures = machine::run(workload, way(policy, flush, false));
            let name = format!("{name}{}", if flush { " flush" } else { "" });
            println!("{}", line(&name, &figures, &baseline));
            let model = if granted { "_granted" } else { "" };
            let name = format!("{}{model}_{}", workload.name, name.replace(' ', "_"));
            let seconds = |ns: u64| ns as f64 / 1e9;
            let io = (seconds(figures.io_ns), seconds(baseline.io_ns));
            let total = (seconds(figures.total_ns), seconds(baseline.total_ns));
            rows.push(row(&format!("{name}_io"), io.0, io.1, io.1 / io.0));
            rows.push(row(&format!("{name}_total"), total.0, total.1, total.0 / total.1));
        }
    }
    println!();
    rows
}

/// Runs the experiments; the exit code tells whether the arguments were understood and the rows
/// were written.
pub fn cli(args: &[String]) -> ExitCode {
    let options = match command::options("tiers", USAGE, args, parse) {
        Ok(options) => options,
        Err(code) => return code,
    };
    println!(
        "simulated: {} nodes of {} processors; nvram of {} GB and ssd of {} GB in each, a shared \
         pfs, which moves {} of what is said; computation {} of the pfs' I/O; seed {}; virtual \
         time\n",
        machine::NODES,
        machine::PROCESSORS,
        options.capacities[0] / GB,
        options.capacities[1] / GB,
        options.shared_speed,
        options.compute,
        options.seed
    );
    let wanted = |workload: &Workload| {
        options.only.is_empty() || options.only.iter().any(|name| name == workload.name)
    };
    let workloads = workloads::all().into_iter().filter(wanted);
    let mut rows = Vec::new();
    for workload in workloads {
        for granted in [false, true] {
            rows.extend(case(&workload, granted, &options));
        }
    }
    command::write_rows("tiers", options.out.as_deref(), ROWS, &rows)
}
