//! The published programs (Elshazly, thesis, section 7.6.3): who hands over what, and when.
//!
//! `warc`: a parallel read task on each I/O node, of 48 processes that read 100 records each; of
//! each record the term frequencies are counted and then weighed, on compute nodes. `domains`:
//! generator tasks that cut 800 subdomains one by one, and a task that solves each. Sizes and
//! times are not published, only shapes: records have very different sizes (drawn log-normally),
//! subdomains somewhat different ones. How much the consumers compute is an option.

use crate::hash::mix_all;

/// Processors of a compute node, and processes of a read task.
pub const PROCESSORS: u32 = 48;
/// I/O nodes of the strong scaling of `warc`.
const IO_NODES: u32 = 5;
const RECORDS: u32 = 100;
const RECORD_READ_S: f64 = 0.5;
/// Spread of the logarithm of a record's size.
const RECORD_SIGMA: f64 = 1.0;
/// Compute nodes for which `--compute` is said.
const WARC_NODES: u32 = 8;
/// Generators of the strong scaling of `domains`.
const GENERATORS: u32 = 10;
const SUBDOMAINS: u32 = 800;
const GENERATOR_S: f64 = 100.0;
/// Subdomains differ by up to this share in the time that they take, up and down.
const SUBDOMAIN_SPREAD: f64 = 0.5;
const NS_PER_S: f64 = 1e9;

/// A task that hands values over, and what is done with each.
#[derive(Clone, Debug)]
pub struct Generator {
    /// The I/O node that it runs on; `None`: any processor of a compute node.
    pub io_node: Option<u32>,
    /// By value: after how many nanoseconds it is there.
    pub there_ns: Vec<u64>,
    /// By value: how long each of a chain of tasks takes, of which the first reads it.
    pub consumers: Vec<Vec<u64>>,
}

impl Generator {
    /// How long it runs.
    pub fn ns(&self) -> u64 {
        self.there_ns.iter().copied().max().unwrap_or(0)
    }
}

/// A program on a cluster.
#[derive(Clone, Debug)]
pub struct Program {
    /// Nodes that compute, of [`PROCESSORS`] each.
    pub compute_nodes: u32,
    /// Nodes that only read.
    pub io_nodes: u32,
    /// Its generators.
    pub generators: Vec<Generator>,
}

impl Program {
    /// No run can be shorter: the longest generator, or all that is computed over all processors.
    pub fn least_ns(&self) -> u64 {
        let longest = self.generators.iter().map(Generator::ns).max().unwrap_or(0);
        let computing = self.generators.iter().filter(|generator| generator.io_node.is_none());
        let generating: u64 = computing.map(Generator::ns).sum();
        let consumers = self.generators.iter().flat_map(|generator| &generator.consumers);
        let computed: u64 = consumers.flatten().sum::<u64>() + generating;
        longest.max(computed / u64::from(self.compute_nodes * PROCESSORS))
    }
}

/// Which program, and what grows with its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// The same work on more nodes.
    Strong,
    /// As much more work.
    Weak,
}

/// From 0 to 1, the same for the same numbers.
fn share(numbers: &[u64]) -> f64 {
    mix_all(numbers) as f64 / u64::MAX as f64
}

/// A draw from a log-normal distribution of mean 1.
fn log_normal(numbers: [u64; 3]) -> f64 {
    let [a, b, c] = numbers;
    let normal: f64 = (0..12).map(|at| share(&[a, b, c, at])).sum::<f64>() - 6.0;
    (RECORD_SIGMA * normal - RECORD_SIGMA * RECORD_SIGMA / 2.0).exp()
}

/// Records that are read on I/O nodes. `compute`: how long eight compute nodes need for what five
/// I/O nodes read, over how long these read.
pub fn warc(scaling: Scaling, nodes: u32, compute: f64, seed: u64) -> Program {
    let io_nodes = if scaling == Scaling::Strong { IO_NODES } else { nodes };
    let computed_s = compute * RECORD_READ_S * f64::from(WARC_NODES) / f64::from(IO_NODES);
    let generator = |io_node: u32| {
        let (mut there_ns, mut consumers) = (Vec::new(), Vec::new());
        for process in 0..PROCESSORS {
            let mut at = 0.0;
            for record in 0..RECORDS {
                let place = io_node * PROCESSORS + process;
                let size = log_normal([seed, place.into(), record.into()]);
                at += size * RECORD_READ_S;
                there_ns.push((at * NS_PER_S) as u64);
                consumers.push(vec![(size * computed_s / 2.0 * NS_PER_S) as u64; 2]);
            }
        }
        Generator { io_node: Some(io_node), there_ns, consumers }
    };
    Program { compute_nodes: nodes, io_nodes, generators: (0..io_nodes).map(generator).collect() }
}

/// Subdomains that are cut one by one. `compute`: how long a node needs for those of one generator,
/// over how long that runs.
pub fn domains(scaling: Scaling, nodes: u32, compute: f64, seed: u64) -> Program {
    let count = if scaling == Scaling::Strong { GENERATORS } else { nodes };
    let solved_s = compute * GENERATOR_S * f64::from(PROCESSORS) / f64::from(SUBDOMAINS);
    let generator = |number: u32| {
        let size = |subdomain: u32| {
            let roll = share(&[seed, number.into(), subdomain.into()]);
            1.0 + SUBDOMAIN_SPREAD * (2.0 * roll - 1.0)
        };
        let mut at = 0.0;
        let there_ns = (0..SUBDOMAINS).map(|subdomain| {
            at += size(subdomain) * GENERATOR_S / f64::from(SUBDOMAINS);
            (at * NS_PER_S) as u64
        });
        Generator {
            io_node: None,
            there_ns: there_ns.collect(),
            consumers: (0..SUBDOMAINS)
                .map(|subdomain| vec![(size(subdomain) * solved_s * NS_PER_S) as u64])
                .collect(),
        }
    };
    Program { compute_nodes: nodes, io_nodes: 0, generators: (0..count).map(generator).collect() }
}
