//! The data model shows what a missing edge would do: a lost update, a torn read.

use graph::{Direction, Region, Span};
use sim::values::{covers, overlap, Cells, Store, Use, Used};

fn span(start: u64, end: u64) -> Span {
    Span { start, end }
}

fn used(store: &Store, direction: Direction, region: Region) -> Vec<Used> {
    let positions = store.data[0].as_ref().unwrap().positions(&region);
    vec![Used { direction, what: Use::Cells { datum: 0, positions, region } }]
}

fn store() -> Store {
    Store::new(vec![Some(Cells::new(&[4, 4]))])
}

fn square(from: u64, to: u64) -> Region {
    Region::Box(Box::new([span(from, to), span(from, to)]))
}

#[test]
fn positions_of_a_box_are_row_by_row() {
    let cells = Cells::new(&[4, 4]);
    assert_eq!(cells.positions(&square(1, 3)), [5, 6, 9, 10]);
    assert_eq!(cells.positions(&Region::Whole).len(), 16);
    assert_eq!(Cells::new(&[9]).positions(&Region::Range(span(2, 4))), [2, 3]);
}

#[test]
fn regions_overlap_and_cover() {
    assert!(overlap(&square(0, 2), &square(1, 3)) && !overlap(&square(0, 2), &square(2, 3)));
    assert!(overlap(&Region::Whole, &square(2, 3)));
    assert!(covers(&Region::Whole, &square(2, 3)) && !covers(&square(2, 3), &Region::Whole));
    assert!(covers(&square(0, 3), &square(1, 3)) && !covers(&square(1, 3), &square(0, 3)));
}

#[test]
fn commutative_updates_one_at_a_time_do_not_depend_on_their_order() {
    let run = |order: [usize; 2]| {
        let mut store = store();
        for task in order {
            let accesses = used(&store, Direction::Commutative, square(0, 2));
            let mut body = store.begin(task, &accesses).unwrap();
            store.finish(task, &accesses, &mut body, false).unwrap();
        }
        store.data
    };
    assert_eq!(run([0, 1]), run([1, 0]));
}

#[test]
fn commutative_updates_at_once_lose_one() {
    let (mut together, mut apart) = (store(), store());
    let accesses = used(&together, Direction::Commutative, square(0, 2));
    let mut first = together.begin(0, &accesses).unwrap();
    let mut second = together.begin(1, &accesses).unwrap();
    together.finish(0, &accesses, &mut first, false).unwrap();
    together.finish(1, &accesses, &mut second, false).unwrap();
    for task in [0, 1] {
        let mut body = apart.begin(task, &accesses).unwrap();
        apart.finish(task, &accesses, &mut body, false).unwrap();
    }
    assert_ne!(together.data, apart.data);
}

#[test]
fn concurrent_updates_may_be_at_once_and_are_undone_when_they_fail() {
    let mut store = store();
    let accesses = used(&store, Direction::Concurrent, square(0, 2));
    let before = store.data.clone();
    let mut first = store.begin(0, &accesses).unwrap();
    let second = store.begin(1, &accesses).unwrap();
    store.finish(0, &accesses, &mut first, false).unwrap();
    store.ruin(1, &accesses, &second);
    store.ruin(0, &accesses, &first);
    assert_eq!(store.data, before);
}

#[test]
fn a_reader_notices_a_writer_in_between() {
    let mut store = store();
    let reads = used(&store, Direction::In, square(0, 2));
    let writes = used(&store, Direction::Out, square(1, 3));
    let mut reader = store.begin(0, &reads).unwrap();
    let mut writer = store.begin(1, &writes).unwrap();
    assert!(store.finish(0, &reads, &mut reader, false).is_err());
    store.finish(1, &writes, &mut writer, false).unwrap();
}

#[test]
fn a_writer_notices_another_one_and_a_second_run_finds_what_the_first_left() {
    let mut store = store();
    let writes = used(&store, Direction::InOut, square(0, 2));
    let body = store.begin(0, &writes).unwrap();
    store.ruin(0, &writes, &body);
    let mut again = store.begin(0, &writes).unwrap();
    assert_eq!(again.digest, body.digest, "it goes on from what it read first");
    let mut other = store.begin(1, &writes).unwrap();
    assert!(store.finish(0, &writes, &mut again, false).is_err());
    store.finish(1, &writes, &mut other, false).unwrap();
    assert!(store.begin(0, &writes).is_err(), "what it left is no longer there");
}
