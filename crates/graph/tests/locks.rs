//! Locks of commutative accesses in the corners that random programs do not reach.

use graph::{Access, DatumId, DatumKind, Direction, Graph, Region, Span, Target, TaskId};

fn range(start: u64, end: u64) -> Region {
    Region::Range(Span { start, end })
}

fn submit(graph: &mut Graph<u32>, datum: DatumId, region: Region, direction: Direction) -> TaskId {
    let access = Access { target: Target::Datum(datum), region, direction };
    graph.submit(0, &[access]).expect("sound")
}

fn ready(graph: &mut Graph<u32>) -> Vec<TaskId> {
    graph.validate().expect("sound");
    core::iter::from_fn(|| graph.pop_ready()).collect()
}

#[test]
fn a_waiter_for_a_lock_outlives_the_compaction_of_its_region() {
    let mut graph: Graph<u32> = Graph::default();
    let datum = graph.add_datum(DatumKind::InPlace, None).unwrap();
    let holder = submit(&mut graph, datum, range(0, 10), Direction::Commutative);
    let waiter = submit(&mut graph, datum, range(5, 15), Direction::Commutative);
    let other = submit(&mut graph, datum, range(20, 30), Direction::Commutative);
    assert_eq!(ready(&mut graph), [holder, other]);
    submit(&mut graph, datum, Region::Whole, Direction::Out);
    for start in 0..600 {
        submit(&mut graph, datum, range(1000 + start, 1001 + start), Direction::In);
    }
    graph.finish(other, &[], 0);
    assert_eq!(ready(&mut graph), [], "the lock of the region is taken still");
    graph.finish(holder, &[], 0);
    assert_eq!(ready(&mut graph), [waiter]);
}

#[test]
fn a_lock_goes_to_all_that_fit_beside_each_other() {
    let mut graph: Graph<u32> = Graph::default();
    let datum = graph.add_datum(DatumKind::InPlace, None).unwrap();
    let whole = submit(&mut graph, datum, Region::Whole, Direction::Commutative);
    let parts: Vec<TaskId> = (0..4)
        .map(|at| submit(&mut graph, datum, range(at * 10, at * 10 + 11), Direction::Commutative))
        .collect();
    assert_eq!(ready(&mut graph), [whole]);
    graph.finish(whole, &[], 0);
    assert_eq!(ready(&mut graph), [parts[0], parts[2]]);
    graph.finish(parts[0], &[], 0);
    assert_eq!(ready(&mut graph), []);
    graph.finish(parts[2], &[], 0);
    assert_eq!(ready(&mut graph), [parts[1], parts[3]]);
}

#[test]
fn crossed_locks_are_taken_together_or_not_at_all() {
    let mut graph: Graph<u32> = Graph::default();
    let data: Vec<DatumId> =
        (0..2).map(|_| graph.add_datum(DatumKind::InPlace, None).unwrap()).collect();
    let both = |a: DatumId, b: DatumId| {
        [a, b].map(|datum| Access {
            target: Target::Datum(datum),
            region: Region::Whole,
            direction: Direction::Commutative,
        })
    };
    let first = graph.submit(0, &both(data[0], data[1])).unwrap();
    let second = graph.submit(0, &both(data[1], data[0])).unwrap();
    let third = submit(&mut graph, data[0], Region::Whole, Direction::Commutative);
    assert_eq!(ready(&mut graph), [first]);
    graph.poison(first, &1);
    graph.remove(first);
    assert_eq!(ready(&mut graph).len(), 1, "one of the two that need datum 0");
    for task in [second, third] {
        if graph.is_live(task) {
            graph.finish(task, &[], 0);
        }
        ready(&mut graph);
    }
    assert_eq!(graph.live_tasks(), 0, "both ran");
}

#[test]
fn a_task_that_waits_for_others_finds_the_locks_of_its_region_after_its_compaction() {
    let mut graph: Graph<u32> = Graph::default();
    let datum = graph.add_datum(DatumKind::InPlace, None).unwrap();
    let before = submit(&mut graph, datum, range(14, 15), Direction::Out);
    let holder = submit(&mut graph, datum, range(0, 10), Direction::Commutative);
    let waiter = submit(&mut graph, datum, range(5, 15), Direction::Commutative);
    assert_eq!(ready(&mut graph), [before, holder]);
    submit(&mut graph, datum, Region::Whole, Direction::Out);
    for start in 0..600 {
        submit(&mut graph, datum, range(1000 + start, 1001 + start), Direction::In);
    }
    graph.finish(before, &[], 0);
    assert_eq!(ready(&mut graph), [], "the lock of the region is taken");
    graph.finish(holder, &[], 0);
    assert_eq!(ready(&mut graph), [waiter]);
}
