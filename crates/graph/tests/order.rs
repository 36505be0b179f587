//! Order on data in place in programs that are longer than the random ones: lists are searched
//! for what ended, and regions that nobody uses are dropped.

use graph::{Access, DatumId, DatumKind, Direction, Graph, Region, Span, Target, TaskId};

struct File {
    graph: Graph<u32>,
    datum: DatumId,
}

impl File {
    fn new() -> File {
        let mut graph: Graph<u32> = Graph::default();
        let datum = graph.add_datum(DatumKind::InPlace, None).unwrap();
        File { graph, datum }
    }

    fn whole(&mut self, direction: Direction) -> TaskId {
        self.submit(Region::Whole, direction)
    }

    fn part(&mut self, start: u64, end: u64, direction: Direction) -> TaskId {
        self.submit(Region::Range(Span { start, end }), direction)
    }

    fn submit(&mut self, region: Region, direction: Direction) -> TaskId {
        let access = Access { target: Target::Datum(self.datum), region, direction };
        self.graph.submit(0, &[access]).unwrap()
    }

    fn ready(&mut self) -> Vec<TaskId> {
        while self.graph.pop_settled().is_some() {}
        while self.graph.pop_obsolete().is_some() {}
        self.graph.validate().unwrap();
        std::iter::from_fn(|| self.graph.pop_ready()).collect()
    }

    fn finish(&mut self, tasks: &[TaskId]) {
        tasks.iter().for_each(|task| self.graph.finish(*task, &[], 0));
    }
}

#[test]
fn a_writer_comes_after_the_readers_that_are_left_of_many() {
    let mut file = File::new();
    let readers: Vec<TaskId> = (0..200).map(|_| file.whole(Direction::In)).collect();
    assert_eq!(file.ready(), readers);
    file.finish(&readers[1..]);
    let member = file.part(0, 10, Direction::Concurrent);
    let writer = file.part(5, 15, Direction::Out);
    assert_eq!(file.ready(), []);
    file.finish(&readers[..1]);
    assert_eq!(file.ready(), [member]);
    file.finish(&[member]);
    assert_eq!(file.ready(), [writer]);
}

#[test]
fn members_of_a_large_group_run_together_after_those_before_them() {
    for direction in [Direction::Concurrent, Direction::Commutative] {
        let mut file = File::new();
        let before = file.part(0, 10, Direction::Out);
        let members: Vec<TaskId> = (0..200).map(|_| file.part(5, 15, direction)).collect();
        let after = file.part(14, 20, Direction::In);
        assert_eq!(file.ready(), [before]);
        file.finish(&[before]);
        let mut ran = Vec::new();
        loop {
            let ready = file.ready();
            if ready.is_empty() || ready == [after] {
                assert_eq!(ready, [after]);
                break;
            }
            assert_eq!(ready.len(), if direction == Direction::Concurrent { 200 } else { 1 });
            file.finish(&ready);
            ran.extend(ready);
        }
        assert_eq!(ran, members);
    }
}

#[test]
fn a_group_comes_after_a_group_of_the_other_direction() {
    let mut file = File::new();
    let first: Vec<TaskId> = (0..50).map(|_| file.whole(Direction::Concurrent)).collect();
    let second: Vec<TaskId> = (0..50).map(|_| file.whole(Direction::Commutative)).collect();
    let third = file.whole(Direction::Concurrent);
    assert_eq!(file.ready(), first);
    file.finish(&first);
    for task in second {
        assert_eq!(file.ready(), [task]);
        file.finish(&[task]);
    }
    assert_eq!(file.ready(), [third]);
}

#[test]
fn order_outlives_the_dropping_of_many_regions() {
    let mut file = File::new();
    let slow = file.part(0, 10, Direction::InOut);
    assert_eq!(file.ready(), [slow]);
    for block in 1..2000 {
        let task = file.part(block * 10, block * 10 + 10, Direction::InOut);
        assert_eq!(file.ready(), [task]);
        file.finish(&[task]);
    }
    let reader = file.part(9, 30, Direction::In);
    assert_eq!(file.ready(), []);
    file.finish(&[slow]);
    assert_eq!(file.ready(), [reader]);
    file.finish(&[reader]);
    assert_eq!(file.ready(), []);
    assert_eq!(file.graph.live_versions(), 0);
}

#[test]
fn a_failure_is_remembered_until_it_is_covered() {
    let mut file = File::new();
    let failed = file.part(0, 10, Direction::Out);
    assert_eq!(file.ready(), [failed]);
    file.graph.poison(failed, &7);
    file.graph.remove(failed);
    for block in 1..1000 {
        let task = file.part(block * 10, block * 10 + 10, Direction::Out);
        assert_eq!(file.ready(), [task]);
        file.finish(&[task]);
    }
    let doomed = file.part(5, 6, Direction::In);
    assert_eq!(file.graph.pop_doomed(), Some((doomed, 7)));
    file.graph.poison(doomed, &7);
    file.graph.remove(doomed);
    let cover = file.part(0, 20, Direction::Out);
    let reader = file.part(5, 6, Direction::In);
    assert_eq!(file.ready(), [cover]);
    file.finish(&[cover]);
    assert_eq!(file.ready(), [reader]);
}
