//! The disks of an experiment: as published, or as they were described or measured.

use super::cluster::Storage;
use super::MB;
use crate::storage::{Curve, Weather};

/// The speed of a disk is off by up to this share.
const NOISE: f64 = 0.03;
/// What a published disk can move, as its description says, in MB/s.
const PUBLISHED_MB: u64 = 450;
/// The sweep of the thesis, in MB/s.
const SWEEP_MB: [u64; 8] = [2, 4, 8, 16, 32, 64, 128, 256];

/// A disk as the text of the thesis lets one think of it. What is published of the disks: 450
/// MB/s; one task at a time is far from that; the rate rises to a peak at some tens of tasks,
/// and falls so far at the most tasks that no overlap makes up for it. The figures themselves
/// were not at hand. That the best run is 38 % shorter than the baseline, whose 48 tasks at once
/// write for as long as their number and the rate say, needs a rate at 48 that is lower than the
/// peak: with the peak at 48 or above 37.7 % is the most that overlap can give
/// (four rounds of computation, three of which hide I/O).
pub(super) const KNEE: [(f64, f64); 14] = [
    (1.0, 140.0),
    (2.0, 215.0),
    (4.0, 290.0),
    (8.0, 350.0),
    (16.0, 405.0),
    (28.0, 438.0),
    (34.0, 450.0),
    (40.0, 440.0),
    (48.0, 380.0),
    (56.0, 335.0),
    (112.0, 215.0),
    (225.0, 125.0),
    (325.0, 85.0),
    (500.0, 55.0),
];

/// The same with its peak at a window that the sweep has (16 MB/s: 28 tasks), which is the most
/// that a static constraint can hope for.
pub(super) const ON_GRID: [(f64, f64); 12] = [
    (1.0, 140.0),
    (4.0, 290.0),
    (8.0, 350.0),
    (16.0, 410.0),
    (28.0, 450.0),
    (40.0, 410.0),
    (48.0, 370.0),
    (56.0, 335.0),
    (112.0, 215.0),
    (225.0, 125.0),
    (325.0, 85.0),
    (500.0, 55.0),
];

/// Disks to run the applications on.
#[derive(Clone, Debug)]
pub struct Disks {
    /// What they are called.
    pub name: String,
    /// What a disk can move, as its description says, in bytes a second.
    pub bandwidth: u64,
    /// What it really moves over how many use it.
    pub curve: Curve,
    /// Whether there is one disk for all nodes.
    pub shared: bool,
}

impl Disks {
    fn published(name: &str, points: &[(f64, f64)]) -> Disks {
        let bytes: Vec<(f64, f64)> = points.iter().map(|(n, mb)| (*n, mb * MB as f64)).collect();
        let curve = Curve::new(&bytes);
        Disks { name: name.to_string(), bandwidth: PUBLISHED_MB * MB, curve, shared: false }
    }

    /// The disks of the published experiments: with the knee where it must have been, and with
    /// the knee at a constraint of the sweep.
    pub(super) fn all_published() -> Vec<Disks> {
        vec![Disks::published("", &KNEE), Disks::published(" on grid", &ON_GRID)]
    }

    /// The static constraints to try, in bytes a second: those of the thesis for a disk of 450
    /// MB/s, for others as many, the highest their whole bandwidth, each half of the next.
    pub(super) fn sweep(&self) -> [u64; 8] {
        if self.bandwidth == PUBLISHED_MB * MB {
            return SWEEP_MB.map(|mb| mb * MB);
        }
        [7, 6, 5, 4, 3, 2, 1, 0].map(|halvings| (self.bandwidth >> halvings).max(1))
    }

    /// As the simulator takes them.
    pub(super) fn storage(&self, seed: u64) -> Storage {
        Storage {
            bandwidth: self.bandwidth,
            shared: self.shared,
            curve: self.curve.clone(),
            weather: Weather { seed, noise: NOISE, change: None },
        }
    }
}
