//! Seeds are clean, and stand for the same simulation every time.

use sim::program::{Program, Step};
use sim::{run_program, run_seed, run_seeds};

#[test]
fn the_first_seeds_are_clean() {
    let summary = run_seeds(0..1_000, 1, &|_| ());
    if let Some(violation) = summary.violations.first() {
        panic!("{violation}");
    }
    assert_eq!(summary.seeds, 1_000);
    let total = summary.total;
    for (what, count) in [
        ("tasks", total.tasks),
        ("deaths", total.deaths),
        ("failed", total.failed),
        ("cancelled", total.cancelled),
        ("sent ahead", total.ahead),
        ("recalled", total.recalled),
        ("values of streams", total.yielded),
        ("resumed", total.resumed),
        ("given up", total.given_up),
        ("released", total.released),
        ("refused", total.refused),
        ("passed on by engines", total.refused_by_engines),
        ("epochs", total.epochs),
        ("in adaptive windows", total.adaptive),
        ("moves", total.moves),
        ("copies up", total.prefetches),
        ("moves beside I/O", total.drained),
        ("files found", total.found),
        ("files removed", total.removed),
        ("runs unplaced", total.unplaced),
        ("settled later", total.settled),
        ("troubles of layers", total.troubles),
    ] {
        assert!(count > 20, "only {count} {what}: the generator lost a habit");
    }
}

#[test]
fn a_seed_reproduces_exactly() {
    for seed in [1, 7, 42, u64::MAX] {
        let (a, b) = (run_seed(seed).unwrap(), run_seed(seed).unwrap());
        assert_eq!(a, b);
        let listing = Program::generate(seed).listing();
        assert_eq!(listing, Program::generate(seed).listing());
    }
    assert_ne!(run_seed(1).unwrap().log, run_seed(2).unwrap().log);
}

#[test]
fn a_program_stays_a_program_without_some_of_its_steps() {
    for seed in 0..60 {
        let mut program = Program::generate(seed);
        let mut at = 0;
        program.steps.retain(|_| {
            at += 1;
            at % 3 != seed as usize % 3
        });
        if let Err(violation) = run_program(seed, &program, None) {
            panic!("{violation}");
        }
    }
}

#[test]
fn programs_use_everything_there_is() {
    let mut listing = String::new();
    for seed in 0..200 {
        listing += &Program::generate(seed).listing();
    }
    for word in [
        "In ",
        "Out ",
        "InOut ",
        "Concurrent ",
        "Commutative ",
        "Value",
        "InPlace",
        "Io",
        "Engine",
        "cpus=",
        "priority=",
        "retries=",
        "timeout=",
        "Ignore",
        "CancelDependents",
        "releases",
        "a stream of",
        "Next {",
        "Peek {",
        "Cancel {",
        "Current {",
        "Hold {",
        "Forget {",
        "Drop {",
        "Wait {",
        "Think {",
        "must be refused",
    ] {
        assert!(listing.contains(word), "no program has {word:?}");
    }
    let largest = (0..2000).map(|seed| Program::generate(seed).tasks).max();
    assert!(largest > Some(150), "the largest program has {largest:?} tasks");
    let submits = |seed| {
        let steps = Program::generate(seed).steps;
        steps.iter().filter(|step| matches!(step, Step::Submit(_))).count()
    };
    assert!((0..200).any(|seed| submits(seed) == 1), "the smallest program is one task");
}
