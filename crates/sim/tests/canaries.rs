//! Every checker can fail: a driver with one thing wrong is found by the checker that it is
//! meant for, within few seeds, and the failing program is made small.

use sim::program::Program;
use sim::{run_program, Canary};

/// A canary has to be found within this many seeds.
const SEEDS_MAX: u64 = 1000;

#[test]
fn every_canary_is_found_by_its_checker() {
    for (canary, checker) in Canary::ALL {
        let found = (0..SEEDS_MAX).find_map(|seed| {
            let program = Program::generate(seed);
            let violation = run_program(seed, &program, Some(canary)).err()?;
            (violation.fault.checker == checker).then_some(violation)
        });
        let violation = found.unwrap_or_else(|| panic!("{canary:?} was not found by {checker}"));
        assert!(violation.steps.1 <= violation.steps.0, "made small: {violation}");
        assert!(!violation.story.is_empty(), "told with its story: {violation}");
        println!(
            "{canary:?}: seed {}, {:?} steps: {}",
            violation.seed, violation.steps, violation.fault.message
        );
    }
}
