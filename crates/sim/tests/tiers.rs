//! Layers in simulation: what must hold of the published experiments whatever the numbers.

use sched::PolicyKind;
use sim::tiers::machine::{run, Figures, Way};
use sim::tiers::workloads::Workload;

const GB: u64 = 1_000_000_000;

fn way(policy: PolicyKind, flush: bool, only_shared: bool) -> Way {
    let capacities = [20 * GB, 10 * GB];
    let (compute, granted, shared_speed, seed) = (0.667, false, 1.0, 1);
    Way { only_shared, policy, flush, capacities, compute, granted, shared_speed, seed }
}

fn workload() -> Workload {
    let writes = [GB / 5, GB * 4 / 5].repeat(12);
    Workload { name: "small", iterations: 4, writes }
}

#[test]
fn every_policy_beats_the_shared_layer_alone_and_flush_helps() {
    let workload = workload();
    let run = |way| -> Figures { run(&workload, way) };
    let baseline = run(way(PolicyKind::Fcfs, false, true));
    assert_eq!((baseline.tasks[0], baseline.tasks[1]), (0, 0));
    for policy in [PolicyKind::Fcfs, PolicyKind::Priority, PolicyKind::Backfilling] {
        let plain = run(way(policy, false, false));
        let flushed = run(way(policy, true, false));
        let tasks = 12 * 24 * 4;
        assert_eq!(plain.tasks.iter().sum::<u64>(), tasks, "{policy:?}");
        assert_eq!(flushed.tasks.iter().sum::<u64>(), tasks, "{policy:?}");
        assert!(plain.total_ns < baseline.total_ns, "{policy:?}: {plain:?} {baseline:?}");
        assert!(flushed.io_ns < plain.io_ns, "{policy:?}: {flushed:?} {plain:?}");
        assert!(plain.flushed == 0 && flushed.flushed > 0, "{policy:?}");
    }
}
