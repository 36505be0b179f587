//! Which tasks are so brief that handing them over takes longer than running them.
//!
//! Of each function a worker keeps how much time it gains, or would have gained, by running its
//! tasks where they are spawned: a little for every brief one, and the loss for every other, as
//! somebody idle could have run that meanwhile. Tasks of a function are brief while that is a gain.
//! So where one task in many is long, most of them are handed over: what is lost by those that are
//! not is never more than what was gained before, and one task.

use std::cell::Cell;

use super::task::Body;

/// Nanoseconds that a task may take and be brief. Handing one over takes 700 to 1,800; under the
/// thread sanitizer all takes much longer.
const BRIEF_NS_MAX: u64 = if cfg!(watched) { 100_000 } else { 1_000 };
/// What a brief one takes at most, in nanoseconds, that is handed over.
pub(super) const HANDED_OVER_NS: u64 = 2 * BRIEF_NS_MAX;

/// What running a brief one at once gains, in nanoseconds.
const GAIN_NS: i64 = 500;
/// What is lost by any other at most, as far as it is counted: it may be the system that took the
/// processor away for so long.
const LOSS_NS_MAX: u64 = 1_000_000;
/// The gain from which on the tasks of a function are brief.
const ENOUGH_NS: i64 = 64 * GAIN_NS;
/// More is not counted.
const GAINED_NS_MAX: i64 = 2 * ENOUGH_NS;

/// Functions that are known at once: as many as spawn brief tasks by turns.
const FUNCTIONS: usize = 64;

/// What a worker knows of the functions of tasks.
#[derive(Debug)]
pub(super) struct Brief([Cell<(usize, i64)>; FUNCTIONS]);

impl Default for Brief {
    fn default() -> Self {
        Brief([const { Cell::new((0, 0)) }; FUNCTIONS])
    }
}

impl Brief {
    /// Whether tasks of this body are brief.
    pub(super) fn has(&self, body: Body) -> bool {
        let (known, gained) = self.of(body).get();
        known == body as usize && gained >= ENOUGH_NS
    }

    /// A task of this body did more than to run.
    pub(super) fn did_more(&self, body: Body) {
        self.ran(body, LOSS_NS_MAX);
    }

    /// A task of this body took so long.
    pub(super) fn ran(&self, body: Body, ns: u64) {
        let of = self.of(body);
        let (known, gained) = of.get();
        let before = if known == body as usize { gained } else { 0 };
        let after = match ns {
            ..=BRIEF_NS_MAX => before + GAIN_NS,
            long => before - long.min(LOSS_NS_MAX) as i64,
        };
        of.set((body as usize, after.clamp(-(LOSS_NS_MAX as i64), GAINED_NS_MAX)));
    }

    /// Two bodies that share a place forget each other.
    fn of(&self, body: Body) -> &Cell<(usize, i64)> {
        // Functions begin at multiples of 16 and are mostly longer.
        let address = body as usize >> 4;
        &self.0[(address ^ (address >> 6)) % FUNCTIONS]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    extern "C-unwind" fn body(_: *mut std::ffi::c_void) {}

    /// Runs tasks of these times where `Brief` says; those that ran where they were spawned.
    fn undeferred(brief: &Brief, times: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let run = |ns: u64| {
            let is_brief = brief.has(body);
            brief.ran(body, ns);
            is_brief.then_some(ns)
        };
        times.into_iter().filter_map(run).collect()
    }

    #[test]
    fn tasks_are_brief_once_many_were() {
        let brief = Brief::default();
        assert_eq!(undeferred(&brief, [20; 64]).len(), 0);
        assert_eq!(undeferred(&brief, [20; 64]).len(), 64);
    }

    #[test]
    fn one_that_is_long_ends_it_until_that_is_made_up_for() {
        let brief = Brief::default();
        undeferred(&brief, [20; 1000]);
        assert_eq!(undeferred(&brief, [50_000]), [50_000], "nobody could know");
        assert_eq!(undeferred(&brief, [20; 36]).len(), 0);
        undeferred(&brief, [20; 1000]);
        assert_eq!(undeferred(&brief, [u64::MAX]).len(), 1);
        assert_eq!(
            undeferred(&brief, [20; 1936]).len(),
            0,
            "no more is counted than a millisecond"
        );
        assert_eq!(undeferred(&brief, [20; 200]).len(), 200);
    }

    #[test]
    fn one_that_paused_is_as_one_that_is_long() {
        let brief = Brief::default();
        undeferred(&brief, [20; 1000]);
        brief.did_more(body);
        assert!(!brief.has(body));
    }

    proptest! {
        // Whatever comes in whatever order: the time of the long ones that were undeferred is at
        // most what all brief ones gained, and one of them.
        #[test]
        fn more_is_never_lost_than_gained(
            runs in proptest::collection::vec((1..400usize, 1_001..1_000_000u64), 1..60)
        ) {
            let brief = Brief::default();
            let (mut gained, mut lost, mut longest) = (0, 0, 0);
            for (briefs, long) in runs {
                undeferred(&brief, vec![100; briefs]);
                gained += briefs as u64 * GAIN_NS as u64;
                longest = longest.max(long);
                lost += undeferred(&brief, [long]).iter().sum::<u64>();
                prop_assert!(lost <= gained + longest, "{lost} > {gained} + {longest}");
            }
        }
    }
}
