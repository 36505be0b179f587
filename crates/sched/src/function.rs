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
        let over = self.runs.min(MEAN_RUNS);
        self.mean_ns = (self.mean_ns / over).saturating_mul(over - 1).saturating_add(ns / over);
    }

    pub(crate) fn mean_ns(&self) -> Option<u64> {
        (self.runs > 0).then_some(self.mean_ns)
    }
}
