//! The published applications (Elshazly, thesis, section 4.5.3): which tasks, after which, how
//! much each writes. How long their computation takes is not published; see [`Application`].

use crate::hash::mix_all;

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Computes for so many nanoseconds.
    Compute(u64),
    /// Writes so many bytes to a node-local disk, flushed.
    Write(u64),
}

/// One task: it runs when all those before it (by number) have ended.
#[derive(Clone, Debug)]
pub struct Task {
    /// Which function.
    pub function: usize,
    /// What it does.
    pub work: Work,
    /// What it waits for.
    pub after: Vec<usize>,
}

/// An application of tasks in the order of their calls.
#[derive(Clone, Debug)]
pub struct Application {
    /// Its name, for tables and rows.
    pub name: &'static str,
    /// The names of its functions.
    pub functions: Vec<&'static str>,
    /// Its tasks.
    pub tasks: Vec<Task>,
    /// I/O executors of a node in the runs with constraints, and in the one without.
    pub io_executors: (u32, u32),
}

const MB: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;
/// Tasks of one function differ by up to this many thousandths in time, up and down.
const SPREAD_PERMILLE: u64 = 100;

/// One `hmmpfam` task.
const HMMER_S: u64 = 25;
/// Each of the five phases of one sample.
const VARIANTS_S: u64 = 45;
/// `generate_fragment` and `partial_sum`.
const KMEANS_S: u64 = 15;

struct Builder {
    seed: u64,
    tasks: Vec<Task>,
}

impl Builder {
    fn new(seed: u64) -> Builder {
        Builder { seed, tasks: Vec::new() }
    }

    fn add(&mut self, function: usize, work: Work, after: &[usize]) -> usize {
        self.tasks.push(Task { function, work, after: after.to_vec() });
        self.tasks.len() - 1
    }

    fn compute(&mut self, function: usize, seconds: u64, after: &[usize]) -> usize {
        let roll = mix_all(&[self.seed, 0xc0, self.tasks.len() as u64]) % (2 * SPREAD_PERMILLE + 1);
        let permille = 1000 - SPREAD_PERMILLE + roll;
        self.add(function, Work::Compute(seconds * NS_PER_S / 1000 * permille), after)
    }

    fn write(&mut self, function: usize, mb: u64, after: usize) -> usize {
        self.add(function, Work::Write(mb * MB), &[after])
    }
}

/// 48 x 48 fragments: a search, then a checkpoint of 290 MB.
pub fn hmmer(seed: u64) -> Application {
    let mut builder = Builder::new(seed);
    let searches: Vec<usize> = (0..2304).map(|_| builder.compute(0, HMMER_S, &[])).collect();
    for search in searches {
        builder.write(1, 290, search);
    }
    let functions = vec!["hmmpfam", "checkpointFrag"];
    Application { name: "hmmer", functions, tasks: builder.tasks, io_executors: (225, 500) }
}

/// 1,728 samples through five phases, each with a checkpoint of its own size.
pub fn variants(seed: u64) -> Application {
    let phases = [162, 290, 330, 596, 615];
    let mut builder = Builder::new(seed);
    for _ in 0..1728 {
        let mut last: Option<usize> = None;
        for (phase, mb) in phases.into_iter().enumerate() {
            let step = builder.compute(phase, VARIANTS_S, last.as_slice());
            builder.write(phases.len() + phase, mb, step);
            last = Some(step);
        }
    }
    let functions = vec![
        "preprocess",
        "map",
        "merge",
        "mark",
        "group",
        "checkpoint_fastq",
        "checkpoint_mapped",
        "checkpoint_merged",
        "checkpoint_marked",
        "checkpoint_grouped",
    ];
    Application { name: "variants", functions, tasks: builder.tasks, io_executors: (225, 325) }
}

/// 500 fragments; in each iteration a partial sum and a checkpoint of 109 MB for each fragment, and
/// the next iteration after all sums.
pub fn kmeans(seed: u64, iterations: usize) -> Application {
    let mut builder = Builder::new(seed);
    let mut before: Vec<Vec<usize>> =
        (0..500).map(|_| vec![builder.compute(0, KMEANS_S, &[])]).collect();
    for _ in 0..iterations {
        let sums: Vec<usize> =
            before.iter().map(|after| builder.compute(1, KMEANS_S, after)).collect();
        for sum in &sums {
            builder.write(2, 109, *sum);
        }
        let centres = builder.compute(3, 1, &sums);
        before = vec![vec![centres]; 500];
    }
    let functions = vec!["generate_fragment", "partial_sum", "checkpointCenters", "merge"];
    let name = match iterations {
        1 => "kmeans-1",
        3 => "kmeans-3",
        _ => "kmeans-6",
    };
    Application { name, functions, tasks: builder.tasks, io_executors: (225, 500) }
}

/// All of them, as published.
pub fn all(seed: u64) -> Vec<Application> {
    vec![hmmer(seed), variants(seed), kmeans(seed, 1), kmeans(seed, 3), kmeans(seed, 6)]
}
