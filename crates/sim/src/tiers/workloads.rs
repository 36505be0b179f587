//! The published programs (Elshazly, thesis, section 5.5.2): how many tasks, how much each writes.
//!
//! All three alternate: a phase of computation, then a phase of writing, so many times. How long
//! the computation takes is not published. Here all of it together is a share of the time that
//! the shared layer alone needs for all that is written (`--compute`, 0.667: with that, five times
//! less I/O time is 53 % of the total time, about what is published).

const MB: u64 = 1_000_000;

/// A program.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its name, for tables and rows.
    pub name: &'static str,
    /// How often it computes and then writes.
    pub iterations: u32,
    /// What each node computes and writes in an iteration: bytes of each task, in order.
    pub writes: Vec<u64>,
}

fn alternating(count: usize, mb: [u64; 2]) -> Vec<u64> {
    (0..count).map(|at| mb[at % 2] * MB).collect()
}

/// All of them: of 48 sequences a node, 96 fragments each are checkpointed; 2,400 files a node are
/// aligned to two references; 2,400 tasks a node write what they made.
pub fn all() -> Vec<Workload> {
    vec![
        Workload { name: "hmmer", iterations: 48, writes: vec![400 * MB; 96] },
        Workload { name: "references", iterations: 20, writes: alternating(240, [200, 800]) },
        Workload { name: "synthetic", iterations: 20, writes: alternating(120, [800, 500]) },
    ]
}

impl Workload {
    /// Bytes that each node writes.
    pub fn bytes(&self) -> u64 {
        self.writes.iter().sum::<u64>() * u64::from(self.iterations)
    }
}
