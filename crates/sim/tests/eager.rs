//! Simulated clusters of generators and consumers: what a run cannot be shorter than, and that
//! values which are there early are used early.

use sim::eager::cluster::run;
use sim::eager::workloads::{domains, warc, Generator, Program, Scaling};

/// One value: read on an I/O node, then a chain of tasks.
fn one_value(there_ns: u64, chain: Vec<u64>) -> Program {
    let generator =
        Generator { io_node: Some(0), there_ns: vec![there_ns], consumers: vec![chain] };
    Program { compute_nodes: 1, io_nodes: 1, generators: vec![generator] }
}

#[test]
fn a_single_value_is_the_same_both_ways() {
    for eager in [false, true] {
        assert_eq!(run(&one_value(100, vec![20, 3]), eager), 123);
    }
}

#[test]
fn eager_consumers_run_beside_their_generator_and_lazy_ones_after_it() {
    let generator = Generator {
        io_node: None,
        there_ns: vec![30, 10, 100],
        consumers: vec![vec![5], vec![200], vec![7]],
    };
    let program = Program { compute_nodes: 1, io_nodes: 0, generators: vec![generator] };
    assert_eq!((run(&program, true), run(&program, false)), (10 + 200, 100 + 200));
}

#[test]
fn no_run_is_shorter_than_its_work_and_eager_ones_are_not_longer() {
    for seed in 0..6 {
        let (nodes, compute) = (1 + seed as u32, 0.3 * (1 + seed) as f64);
        for scaling in [Scaling::Strong, Scaling::Weak] {
            for make in [warc, domains] {
                let program = make(scaling, nodes, compute, seed);
                let (eager, lazy) = (run(&program, true), run(&program, false));
                assert_eq!(run(&program, true), eager, "the same comes to the same");
                assert!(program.least_ns() <= eager, "{} > {eager}", program.least_ns());
                // List scheduling: what is better now may be worse at the end, by a task or two.
                let tasks = program.generators.iter().flat_map(|one| &one.consumers).flatten();
                assert!(eager <= lazy + 2 * tasks.max().unwrap(), "{eager} > {lazy}");
            }
        }
    }
}

#[test]
fn weak_scaling_grows_with_its_nodes_and_strong_scaling_does_not() {
    for make in [warc, domains] {
        let values = |scaling, nodes| {
            let program = make(scaling, nodes, 1.0, 1);
            program.generators.iter().map(|one| one.there_ns.len()).sum::<usize>()
        };
        assert_eq!(values(Scaling::Strong, 1), values(Scaling::Strong, 4));
        assert_eq!(4 * values(Scaling::Weak, 1), values(Scaling::Weak, 4));
    }
}
