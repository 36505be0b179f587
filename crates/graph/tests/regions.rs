//! The region algebra against sets of cells.

mod cells;

use cells::{cells, spans, POSITIONS_MAX};
use graph::{Region, Span, DIMENSIONS_MAX};
use proptest::prelude::*;

fn span() -> impl Strategy<Value = Span> {
    (0..POSITIONS_MAX, 0..POSITIONS_MAX)
        .prop_map(|(a, b)| Span { start: a.min(b), end: a.max(b) + 1 })
}

fn region(dimensions: usize) -> impl Strategy<Value = Region> {
    let boxed = prop::collection::vec(span(), dimensions)
        .prop_map(|spans| Region::Box(spans.into_boxed_slice()));
    let range = (Just(dimensions), span())
        .prop_filter_map("one dimension", |(dimensions, span)| {
            (dimensions == 1).then_some(Region::Range(span))
        });
    match dimensions {
        1 => prop_oneof![1 => Just(Region::Whole), 4 => range, 4 => boxed].boxed(),
        _ => prop_oneof![1 => Just(Region::Whole), 8 => boxed].boxed(),
    }
}

fn pair() -> impl Strategy<Value = (usize, Region, Region)> {
    (1usize..4).prop_flat_map(|count| (Just(count), region(count), region(count)))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn overlap_is_symmetric_and_right((dimensions, a, b) in pair()) {
        let shared = !cells(&a, dimensions).is_disjoint(&cells(&b, dimensions));
        prop_assert_eq!(a.overlaps(&b), shared);
        prop_assert_eq!(b.overlaps(&a), shared);
        prop_assert!(a.overlaps(&a));
    }

    #[test]
    fn an_intersection_is_what_both_have((dimensions, a, b) in pair()) {
        let shared = &cells(&a, dimensions) & &cells(&b, dimensions);
        match a.intersection(&b) {
            None => prop_assert!(shared.is_empty()),
            Some(both) => {
                prop_assert_eq!(cells(&both, dimensions), shared);
                prop_assert_eq!(spans(&both), spans(&b.intersection(&a).unwrap()));
                prop_assert_eq!(both.intersection(&a), Some(both.clone()));
            }
        }
    }

    #[test]
    fn a_volume_is_the_number_of_cells((dimensions, a, _) in pair()) {
        let count = cells(&a, dimensions).len() as u64;
        prop_assert_eq!(a.volume(), (a != Region::Whole).then_some(count));
    }

    #[test]
    fn a_span_covers_what_lies_inside(a in span(), b in span()) {
        let inside = (b.start..b.end).all(|at| a.start <= at && at < a.end);
        prop_assert_eq!(a.covers(b), inside);
        let shared = a.intersection(b);
        prop_assert!(shared.is_none_or(|both| a.covers(both) && b.covers(both)));
        prop_assert_eq!(shared.is_some(), a.overlaps(b));
    }
}

#[test]
fn regions_of_different_dimensions_share_nothing() {
    let span = Span { start: 0, end: 9 };
    let line = Region::Range(span);
    let square = Region::Box(vec![span; 2].into());
    assert!(!line.overlaps(&square) && !square.overlaps(&line));
    assert_eq!(line.intersection(&square), None);
    assert!(Region::Whole.overlaps(&square));
}

#[test]
fn unsound_regions_share_nothing() {
    let unsound = [
        Region::Range(Span { start: 3, end: 3 }),
        Region::Range(Span { start: 4, end: 3 }),
        Region::Box([].into()),
        Region::Box(vec![Span { start: 0, end: 1 }; DIMENSIONS_MAX + 1].into()),
    ];
    for region in unsound {
        assert!(!region.overlaps(&Region::Whole) && !Region::Whole.overlaps(&region));
        assert_eq!(region.volume(), None);
    }
}

#[test]
fn the_ends_of_the_number_line_are_positions_too() {
    let high = Span { start: u64::MAX - 1, end: u64::MAX };
    let all = Span { start: 0, end: u64::MAX };
    assert_eq!(all.intersection(high), Some(high));
    let cube = Region::Box(vec![all; 3].into());
    assert_eq!(cube.volume(), Some(u64::MAX), "as many as there are numbers for");
    assert!(cube.overlaps(&Region::Box(vec![high; 3].into())));
}
