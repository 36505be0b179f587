//! What is known of a function: how long its bodies run.

use alloc::sync::Arc;

/// How many runs back the mean looks, about.
const MEAN_RUNS: u64 = 8;

/// A function and the moving mean of its run times.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    runs: u64,
    mean_ns: u64,
}

impl Function {
    pub(crate) fn new(name: Arc<str>) -> Function {
        Function { name, runs: 0, mean_ns: 0 }
    }

    pub(crate) fn ran(&mut self, ns: u64) {
        self.runs += 1;
        // A division by a constant costs a tenth of one by a number.
        self.mean_ns = match self.runs {
            MEAN_RUNS.. => mean(self.mean_ns, ns, MEAN_RUNS),
            few => mean(self.mean_ns, ns, few),
        };
    }

    pub(crate) fn mean_ns(&self) -> Option<u64> {
        (self.runs > 0).then_some(self.mean_ns)
    }
}

#[inline]
fn mean(before: u64, ns: u64, over: u64) -> u64 {
    (before / over).saturating_mul(over - 1).saturating_add(ns / over)
}
