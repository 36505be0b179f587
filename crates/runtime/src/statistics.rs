//! Figures that are kept up while the program runs.
//!
//! How much of the I/O was hidden is the time in which I/O ran while compute ran, over the
//! time in which I/O ran. Runs are known when they end, in no order of their starts; so the
//! unions of the runs of each kind are kept as disjoint intervals, and settled (added up and
//! thrown away) whenever there are many. What runs at that moment counts up to it; its later
//! report is clipped there.

use std::collections::BTreeMap;
use std::sync::Arc;

use sched::Kind;

use crate::tuning::TunedStatistics;

/// How many intervals are kept before they are settled.
const INTERVALS_MAX: usize = 1024;

/// What a session has done so far.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// By function, in the order of their making; functions without tasks too.
    pub functions: Vec<FunctionStatistics>,
    /// Tasks submitted.
    pub submitted: u64,
    /// Tasks that ended well.
    pub done: u64,
    /// Tasks that failed, or needed one that did.
    pub failed: u64,
    /// Tasks that the program cancelled.
    pub cancelled: u64,
    /// Tasks that are not over.
    pub live: u64,
    /// Nanoseconds since the session started (until it stopped).
    pub elapsed_ns: u64,
    /// Sum of the run times of compute tasks.
    pub compute_ns: u64,
    /// Sum of the run times of I/O tasks.
    pub io_ns: u64,
    /// Time in which at least one compute task ran.
    pub compute_active_ns: u64,
    /// Time in which at least one I/O task ran.
    pub io_active_ns: u64,
    /// Time in which at least one of each ran.
    pub hidden_ns: u64,
    /// Bytes that tasks read from files.
    pub bytes_read: u64,
    /// Bytes that tasks wrote to files.
    pub bytes_written: u64,
    /// Bytes of values now in the object store.
    pub store_bytes: u64,
    /// The most that this was.
    pub store_bytes_peak: u64,
    /// Workers that died and were replaced.
    pub workers_lost: u64,
    /// Files that were moved or copied between layers while tasks ran.
    pub files_moved: u64,
    /// Bytes of these.
    pub bytes_moved: u64,
    /// Runs that failed because of their layer, and were tried on another.
    pub displaced: u64,
    /// Moves that could not be done.
    pub moves_failed: u64,
    /// What tuning does, for each function and layer that it has met.
    pub tuned: Vec<TunedStatistics>,
}

impl Statistics {
    /// The share of the I/O time during which compute ran; `None` without I/O.
    pub fn hidden_share(&self) -> Option<f64> {
        (self.io_active_ns > 0).then(|| self.hidden_ns as f64 / self.io_active_ns as f64)
    }
}

/// What the tasks of one function did.
#[derive(Clone, Debug)]
pub struct FunctionStatistics {
    /// Its name.
    pub name: Arc<str>,
    /// Compute or I/O.
    pub kind: Kind,
    /// Tasks submitted.
    pub submitted: u64,
    /// Tasks that ended well.
    pub done: u64,
    /// Tasks that failed, or needed one that did.
    pub failed: u64,
    /// Tasks that the program cancelled.
    pub cancelled: u64,
    /// Runs of the body, retries included.
    pub runs: u64,
    /// Sum of their times.
    pub run_ns: u64,
    /// Sum of their processor times.
    pub cpu_ns: u64,
    /// Bytes that they read from files.
    pub bytes_read: u64,
    /// Bytes that they wrote to files.
    pub bytes_written: u64,
}

impl FunctionStatistics {
    /// A function that did nothing yet.
    pub(crate) fn new(name: Arc<str>, kind: Kind) -> FunctionStatistics {
        FunctionStatistics {
            name,
            kind,
            submitted: 0,
            done: 0,
            failed: 0,
            cancelled: 0,
            runs: 0,
            run_ns: 0,
            cpu_ns: 0,
            bytes_read: 0,
            bytes_written: 0,
        }
    }

    /// Mean time of a run.
    pub fn mean_ns(&self) -> Option<u64> {
        self.run_ns.checked_div(self.runs)
    }
}

/// Disjoint intervals, by start.
#[derive(Clone, Debug, Default)]
struct Union(BTreeMap<u64, u64>);

impl Union {
    fn add(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some((&before, &before_end)) = self.0.range(..=end).next_back() {
            if before_end < start {
                break;
            }
            self.0.remove(&before);
            start = start.min(before);
            end = end.max(before_end);
        }
        self.0.insert(start, end);
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    fn common(&self, other: &Union) -> u64 {
        let mut sum = 0;
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(&(a, a_end)), Some(&(b, b_end))) = (mine.peek(), theirs.peek()) {
            sum += a_end.min(b_end).saturating_sub(*a.max(b));
            if a_end <= b_end {
                mine.next();
            } else {
                theirs.next();
            }
        }
        sum
    }
}

/// Measures how long each kind ran, and how long both did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlap {
    compute: Union,
    io: Union,
    settled_until: u64,
    compute_ns: u64,
    io_ns: u64,
    both_ns: u64,
}

impl Overlap {
    /// A run ended.
    pub(crate) fn ran(&mut self, kind: Kind, start: u64, end: u64) {
        let start = start.max(self.settled_until);
        match kind {
            Kind::Compute => self.compute.add(start, end),
            Kind::Io | Kind::Engine => self.io.add(start, end),
        }
    }

    /// Whether [`Overlap::settle`] should be called.
    pub(crate) fn is_full(&self) -> bool {
        self.compute.0.len() + self.io.0.len() >= INTERVALS_MAX
    }

    /// Adds up what was until `now`; `running` are the kinds and starts of what runs.
    pub(crate) fn settle(&mut self, now: u64, running: impl Iterator<Item = (Kind, u64)>) {
        for (kind, start) in running {
            self.ran(kind, start, now);
        }
        self.compute_ns += self.compute.total();
        self.io_ns += self.io.total();
        self.both_ns += self.compute.common(&self.io);
        self.compute.0.clear();
        self.io.0.clear();
        self.settled_until = self.settled_until.max(now);
    }

    /// Writes the figures down, as they are at `now`.
    pub(crate) fn report(
        &self,
        now: u64,
        running: impl Iterator<Item = (Kind, u64)>,
        into: &mut Statistics,
    ) {
        let mut settled = self.clone();
        settled.settle(now, running);
        into.compute_active_ns = settled.compute_ns;
        into.io_active_ns = settled.io_ns;
        into.hidden_ns = settled.both_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn figures(overlap: &Overlap, now: u64) -> (u64, u64, u64) {
        let mut into = Statistics::default();
        overlap.report(now, std::iter::empty(), &mut into);
        (into.compute_active_ns, into.io_active_ns, into.hidden_ns)
    }

    #[test]
    fn half_hidden() {
        let mut overlap = Overlap::default();
        overlap.ran(Kind::Io, 50, 150);
        overlap.ran(Kind::Compute, 0, 60);
        overlap.ran(Kind::Compute, 40, 100);
        assert_eq!(figures(&overlap, 200), (100, 100, 50));
    }

    #[test]
    fn what_runs_counts_until_now_and_only_once() {
        let mut overlap = Overlap::default();
        overlap.ran(Kind::Io, 10, 20);
        overlap.settle(50, [(Kind::Compute, 0)].into_iter());
        assert_eq!(figures(&overlap, 50), (50, 10, 10));
        overlap.ran(Kind::Compute, 0, 70);
        assert_eq!(figures(&overlap, 70), (70, 10, 10));
    }

    proptest! {
        #[test]
        fn agrees_with_a_clock_that_ticks(
            runs in proptest::collection::vec((any::<bool>(), 0u64..200, 0u64..40), 0..60)
        ) {
            let mut overlap = Overlap::default();
            let mut ticks = [[false; 2]; 240];
            for (io, start, length) in runs {
                let kind = if io { Kind::Io } else { Kind::Compute };
                overlap.ran(kind, start, start + length);
                for tick in &mut ticks[start as usize..(start + length) as usize] {
                    tick[usize::from(io)] = true;
                }
            }
            let count = |what: fn(&[bool; 2]) -> bool| {
                ticks.iter().filter(|t| what(t)).count() as u64
            };
            let expected = (count(|t| t[0]), count(|t| t[1]), count(|t| t[0] && t[1]));
            prop_assert_eq!(figures(&overlap, 240), expected);
        }
    }
}
