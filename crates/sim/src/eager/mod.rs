//! The published scaling experiments on eager release: the same work, and as much more, on 1 to 64
//! nodes. `cargo xtask eager` prints the tables and writes the rows.

pub mod cluster;
pub mod workloads;

use std::path::PathBuf;
use std::process::ExitCode;

use self::workloads::{domains, warc, Program, Scaling, PROCESSORS};
use crate::command;

const USAGE: &str = "usage: cargo xtask eager [WORKLOAD...] [options]
  WORKLOAD     warc, domains (default: both)
  --nodes N    up to so many compute nodes, in powers of two (default 64)
  --seed N     what sizes are drawn from (default 1)
  --compute X  how much is computed, over the default of each workload (default 1)
  --out DIR    write eager-simulated.json there";

/// Not `eager.json`: that is of `bench/eager`, on this machine.
const ROWS: &str = "eager-simulated.json";

/// With it eight compute nodes gain what is published of them: 35 % (36 % here).
const WARC_COMPUTE: f64 = 0.9;
/// A node solves what a generator cuts in the time that cutting takes: half can be gained.
const DOMAINS_COMPUTE: f64 = 1.0;

type Make = fn(Scaling, u32, f64, u64) -> Program;

const WORKLOADS: [(&str, Make, f64); 2] =
    [("warc", warc, WARC_COMPUTE), ("domains", domains, DOMAINS_COMPUTE)];

struct Options {
    nodes: u32,
    seed: u64,
    compute: f64,
    out: Option<PathBuf>,
    only: Vec<String>,
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options { nodes: 64, seed: 1, compute: 1.0, out: None, only: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--nodes" => {
                let text = value()?;
                let nodes = text.parse::<u32>().ok().filter(|nodes| (1..=1024).contains(nodes));
                options.nodes = nodes.ok_or_else(|| format!("{text:?} is not from 1 to 1024"))?;
            }
            "--seed" => {
                let text = value()?;
                let seed = text.parse::<u64>();
                options.seed = seed.map_err(|_| format!("{text:?} is not a whole number"))?;
            }
            "--compute" => {
                let text = value()?;
                let times = text.parse::<f64>().ok().filter(|times| *times > 0.0);
                options.compute = times.ok_or_else(|| format!("{text:?} is not a share"))?;
            }
            "--out" => options.out = Some(PathBuf::from(value()?)),
            name if WORKLOADS.iter().any(|workload| workload.0 == name) => {
                options.only.push(arg.clone());
            }
            other => return Err(format!("unknown argument {other:?}")),
        }
    }
    Ok(options)
}

/// One table: prints as it goes, gives the rows.
fn table(name: &str, make: Make, compute: f64, scaling: Scaling, options: &Options) -> Vec<String> {
    let word = if scaling == Scaling::Strong { "strong" } else { "weak" };
    println!("{name}, {word} scaling");
    println!(
        "  {:>5} {:>9} {:>9} {:>9} {:>8} {:>9} {:>12} {:>12}",
        "nodes",
        "values",
        "lazy s",
        "eager s",
        "gain %",
        "over best",
        "lazy scales",
        "eager scales"
    );
    let powers = std::iter::successors(Some(1u32), |nodes| nodes.checked_mul(2));
    let mut first = None;
    let mut rows = Vec::new();
    for nodes in powers.take_while(|nodes| *nodes <= options.nodes) {
        let program = make(scaling, nodes, compute * options.compute, options.seed);
        let values: usize = program.generators.iter().map(|one| one.there_ns.len()).sum();
        let [lazy, eager] = [false, true].map(|eager| cluster::run(&program, eager) as f64 / 1e9);
        let (first_lazy, first_eager) = *first.get_or_insert((lazy, eager));
        let least = program.least_ns() as f64 / 1e9;
        println!(
            "  {nodes:>5} {values:>9} {lazy:>9.1} {eager:>9.1} {:>8.1} {:>9.2} {:>12.2} {:>12.2}",
            100.0 * (1.0 - eager / lazy),
            eager / least,
            first_lazy / lazy,
            first_eager / eager,
        );
        rows.push(format!(
            "{{\"row\": \"{name}_{word}_{nodes}\", \"unit\": \"s\", \"ours\": {eager:.1}, \
             \"against\": {{\"lazy\": {lazy:.1}, \"least\": {least:.1}}}, \"ratio\": {:.4}, \
             \"target\": null}}",
            eager / lazy
        ));
    }
    println!();
    rows
}

/// Runs the experiments; the exit code tells whether the arguments were understood and the rows
/// were written.
pub fn cli(args: &[String]) -> ExitCode {
    let options = match command::options("eager", USAGE, args, parse) {
        Ok(options) => options,
        Err(code) => return code,
    };
    println!(
        "simulated: nodes of {PROCESSORS} processors; `over best`: eager over its generators or \
         all work over all processors, whichever is longer; `scales`: time on one node over this; \
         seed {}; virtual time\n",
        options.seed
    );
    let mut rows = Vec::new();
    for (name, make, compute) in WORKLOADS {
        if options.only.is_empty() || options.only.iter().any(|only| only == name) {
            for scaling in [Scaling::Strong, Scaling::Weak] {
                rows.extend(table(name, make, compute, scaling, &options));
            }
        }
    }
    command::write_rows("eager", options.out.as_deref(), ROWS, &rows)
}
