//! Makes a failing program small: takes steps out as long as it still fails.

use crate::program::{Program, Step};

/// How many steps all candidates together may have: a bound on the time that it takes.
const STEPS_TRIED_MAX: usize = 200_000;

/// The smallest program found for which `fails` still says so.
pub(crate) fn shrink(program: &Program, mut fails: impl FnMut(&Program) -> bool) -> Program {
    let mut best = program.clone();
    let mut tried = 0;
    let mut chunk = best.steps.len().div_ceil(2);
    while chunk > 0 {
        let mut at = 0;
        let mut smaller = false;
        while at < best.steps.len() {
            if tried > STEPS_TRIED_MAX {
                return best;
            }
            tried += best.steps.len();
            let mut candidate = best.clone();
            let end = (at + chunk).min(candidate.steps.len());
            candidate.steps.drain(at..end);
            if fails(&candidate) {
                best = candidate;
                smaller = true;
            } else {
                at = end;
            }
        }
        if chunk == 1 && !smaller {
            break;
        }
        if chunk > 1 || !smaller {
            chunk /= 2;
        }
    }
    simplify(&mut best, &mut fails);
    best
}

/// Takes accesses and values of streams out of the tasks that are left.
fn simplify(best: &mut Program, fails: &mut impl FnMut(&Program) -> bool) {
    for step in 0..best.steps.len() {
        let mut access = 0;
        loop {
            let mut candidate = best.clone();
            let Step::Submit(plan) = &mut candidate.steps[step] else { break };
            if access >= plan.accesses.len() || plan.expect.is_some() {
                break;
            }
            plan.accesses.remove(access);
            if fails(&candidate) {
                *best = candidate;
            } else {
                access += 1;
            }
        }
        while let Some(candidate) = with_fewer_values(best, step).filter(|it| fails(it)) {
            *best = candidate;
        }
    }
}

/// With one value less in the stream of a task.
fn with_fewer_values(best: &Program, step: usize) -> Option<Program> {
    let mut candidate = best.clone();
    let Step::Submit(plan) = &mut candidate.steps[step] else { return None };
    let stream = plan.stream.as_mut()?;
    stream.values = stream.values.checked_sub(1)?;
    Some(candidate)
}
