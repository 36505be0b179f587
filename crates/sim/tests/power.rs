//! Moves of files survive loss of power and `kill -9`; every step of them is needed for that.

use std::process::ExitCode;

use sim::power::{cli, run_seed, run_seeds, Canary};

/// A canary has to be found within this many seeds.
const SEEDS_MAX: u64 = 40_000;

#[test]
fn the_first_seeds_are_clean() {
    let summary = run_seeds(0..3000, 1, &|_| ());
    if let Some(violation) = summary.violations.first() {
        panic!("{violation}");
    }
    assert_eq!(summary.seeds, 3000);
    let total = summary.total;
    let [home, half, at_home, deleted, damaged, lost] = total.fates;
    for (what, count) in [
        ("moves", total.moves),
        ("brought home", total.homes),
        ("changes in place", total.changes),
        ("kills", total.kills),
        ("losses of power", total.power_losses),
        ("recoveries stopped", total.recoveries_stopped),
        ("torn catalogs", total.torn),
        ("whole after a crash", home),
        ("half changed after a crash", half),
        ("at home after a crash", at_home),
        ("deleted after a crash", deleted),
        ("lost with memory", lost),
    ] {
        assert!(count > 20, "only {count} {what}: the sessions lost a habit");
    }
    assert_eq!(damaged, 0, "nobody else changes files here");
}

#[test]
fn a_seed_reproduces_exactly() {
    for seed in [1, 7, 42, u64::MAX] {
        assert_eq!(run_seed(seed, None).unwrap(), run_seed(seed, None).unwrap());
    }
    assert_ne!(run_seed(1, None).unwrap().log, run_seed(2, None).unwrap().log);
}

#[test]
fn every_step_is_needed() {
    for canary in Canary::ALL {
        let found = (0..SEEDS_MAX).find_map(|seed| run_seed(seed, Some(canary)).err());
        let violation = found.unwrap_or_else(|| panic!("{canary:?} was not found"));
        assert!(!violation.story.is_empty(), "told with its story: {violation}");
        let checker = violation.fault.checker;
        assert!(!["panic", "seed"].contains(&checker), "{canary:?}: {violation}");
        println!("{canary:?}: seed {}: {checker}: {}", violation.seed, violation.fault.message);
    }
}

#[test]
fn the_command_does_what_its_arguments_say() {
    let run = |line: &str| {
        let args: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        format!("{:?}", cli(&args))
    };
    assert_eq!(run("--seeds 20 --start 5"), format!("{:?}", ExitCode::SUCCESS));
    assert_eq!(run("--help"), format!("{:?}", ExitCode::SUCCESS));
    for line in ["--seed 3", "--seeds", "--seeds many", "--start 18446744073709551615"] {
        assert_eq!(run(line), format!("{:?}", ExitCode::from(2)), "{line}");
    }
}
