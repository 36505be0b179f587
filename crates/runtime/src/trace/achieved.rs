//! What each layer moved, from the runs on it: the bytes of a run spread evenly over its time.

use std::collections::BTreeMap;

use super::{Record, RecordKind, NOTHING};

/// From this time on a layer moves so many bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Achieved {
    pub(super) time_ns: u64,
    pub(super) layer: u32,
    pub(super) bytes_s: f64,
}

/// The rates of all layers whenever one changes, by layer and time.
pub(super) fn achieved<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<Achieved> {
    let moves = |run: &&Record| {
        let moved = run.layer != NOTHING && run.other > 0 && run.amount > 0;
        run.kind == RecordKind::Ran && moved
    };
    // Bytes a second that come or go, and runs that come or go.
    let mut changes: BTreeMap<(u32, u64), (f64, i64)> = BTreeMap::new();
    for run in records.filter(moves) {
        let bytes_s = run.other as f64 * 1e9 / run.amount as f64;
        for (time, by, runs) in
            [(run.time_ns, bytes_s, 1), (run.time_ns + run.amount, -bytes_s, -1)]
        {
            let change = changes.entry((run.layer, time)).or_default();
            *change = (change.0 + by, change.1 + runs);
        }
    }
    let (mut layer, mut bytes_s, mut runs) = (NOTHING, 0.0, 0);
    let mut rates = Vec::with_capacity(changes.len());
    for ((at, time_ns), (by, came)) in changes {
        if at != layer {
            (layer, bytes_s, runs) = (at, 0.0, 0);
        }
        runs += came;
        // Sums of fractions do not come back to zero by themselves.
        bytes_s = if runs == 0 { 0.0 } else { bytes_s + by };
        rates.push(Achieved { time_ns, layer, bytes_s });
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(layer: u32, start: u64, ns: u64, bytes: u64) -> Record {
        let record = Record::new(start, RecordKind::Ran);
        Record { layer, amount: ns, other: bytes, ..record }
    }

    #[test]
    fn runs_at_once_add_up_and_end_at_nothing() {
        let runs = [run(0, 10, 100, 30), run(0, 60, 100, 10), run(1, 0, 7, 7), run(0, 5, 0, 9)];
        let told: Vec<(u32, u64, f64)> =
            achieved(runs.iter()).iter().map(|at| (at.layer, at.time_ns, at.bytes_s)).collect();
        let expected =
            [(0, 10, 3e8), (0, 60, 4e8), (0, 110, 1e8), (0, 160, 0.0), (1, 0, 1e9), (1, 7, 0.0)];
        assert_eq!(told, expected);
    }

    #[test]
    fn the_area_is_what_was_moved() {
        let runs: Vec<Record> =
            (0..50).map(|at| run(0, at * 37 % 400, 10 + at * 13 % 90, at)).collect();
        let rates = achieved(runs.iter());
        let area: f64 = rates
            .windows(2)
            .map(|pair| pair[0].bytes_s * (pair[1].time_ns - pair[0].time_ns) as f64 / 1e9)
            .sum();
        assert!((area - (0..50).sum::<u64>() as f64).abs() < 1e-6, "{area}");
    }
}
