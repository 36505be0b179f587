//! What `cargo xtask sim` and `cargo xtask rate` do with their arguments.

use std::process::ExitCode;

use sim::experiment::Given;
use sim::rate::{measure, FAN_TASKS, SHAPES};

fn args(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_string).collect()
}

fn same(a: ExitCode, b: ExitCode) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

#[test]
fn sim_runs_the_seeds_that_it_is_told() {
    assert!(same(sim::cli(&args("--seeds 20 --start 5")), ExitCode::SUCCESS));
    assert!(same(sim::cli(&args("--help")), ExitCode::SUCCESS));
}

#[test]
fn sim_refuses_what_it_does_not_know() {
    for line in ["--seed 3", "--seeds", "--seeds many", "--start 18446744073709551615"] {
        assert!(same(sim::cli(&args(line)), ExitCode::from(2)), "{line}");
    }
}

#[test]
fn rate_counts_every_event() {
    for shape in SHAPES {
        let tasks = 10 * (FAN_TASKS + 2);
        for in_flight in [100, tasks] {
            let rate = measure(shape, tasks, in_flight);
            assert_eq!(rate.events, 3 * tasks as u64, "{shape:?}: called, ended, forgotten");
            assert!(rate.cost_ns() > 0.0 && rate.per_second() > 0.0);
        }
    }
    assert!(same(sim::rate::cli(&args("--tasks 3")), ExitCode::from(2)));
    assert!(same(sim::rate::cli(&args("--tasks-max 10")), ExitCode::from(2)));
}

#[test]
fn tiers_refuses_what_it_does_not_know() {
    for line in ["blast", "--seed", "--ssd many", "--compute -1", "--out"] {
        assert!(same(sim::tiers::cli(&args(line)), ExitCode::from(2)), "{line}");
    }
    assert!(same(sim::tiers::cli(&args("--help")), ExitCode::SUCCESS));
}

#[test]
fn eager_refuses_what_it_does_not_know_and_writes_its_rows() {
    for line in ["blast", "--seed", "--seed x", "--nodes 0", "--compute -1", "--out"] {
        assert!(same(sim::eager::cli(&args(line)), ExitCode::from(2)), "{line}");
    }
    assert!(same(sim::eager::cli(&args("--help")), ExitCode::SUCCESS));
    let folder = std::env::temp_dir().join(format!("alongside-eager-{}", std::process::id()));
    let line = format!("domains --nodes 2 --out {}", folder.display());
    assert!(same(sim::eager::cli(&args(&line)), ExitCode::SUCCESS));
    let rows = std::fs::read_to_string(folder.join("eager-simulated.json")).expect("written");
    std::fs::remove_dir_all(&folder).expect("made above");
    for row in ["domains_strong_1", "domains_strong_2", "domains_weak_1", "domains_weak_2"] {
        assert!(rows.contains(&format!("\"{row}\"")), "{rows}");
    }
}

#[test]
fn experiment_refuses_what_it_does_not_know() {
    let none = |_: &Given| Err("there is no such file".to_string());
    let run = |line: &str| sim::experiment::cli(&args(line), &none);
    let wrong = [
        "blast",
        "--seed",
        "--seed many",
        "--out",
        "--layer disk",
        "--storage a.toml --probe b.json",
        "--storage missing.toml",
    ];
    for line in wrong {
        assert!(same(run(line), ExitCode::from(2)), "{line}");
    }
    assert!(same(run("--help"), ExitCode::SUCCESS));
}
