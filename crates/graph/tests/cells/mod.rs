//! Regions as sets of cells: what overlaps is what has a cell in common.

use std::collections::BTreeSet;

use graph::{Region, Span};

/// Positions along one axis go from 0 to here.
pub const POSITIONS_MAX: u64 = 6;
/// A cell that only the whole datum has.
const OUTSIDE: [u64; 3] = [u64::MAX; 3];

pub fn spans(region: &Region) -> Vec<Span> {
    match region {
        Region::Whole => Vec::new(),
        Region::Range(span) => vec![*span],
        Region::Box(spans) => spans.to_vec(),
    }
}

/// The cells of a region; the whole has them all and one more.
pub fn cells(region: &Region, dimensions: usize) -> BTreeSet<[u64; 3]> {
    let mut spans = spans(region);
    let whole = spans.is_empty();
    let count = if whole { dimensions } else { spans.len() };
    let axis = Span { start: 0, end: if whole { POSITIONS_MAX } else { 1 } };
    let fill = if whole { count } else { 3 };
    spans.resize(fill.max(spans.len()), axis);
    spans.resize(3, Span { start: 0, end: 1 });
    let mut cells = BTreeSet::new();
    for x in spans[0].start..spans[0].end {
        for y in spans[1].start..spans[1].end {
            cells.extend((spans[2].start..spans[2].end).map(|z| [x, y, z]));
        }
    }
    if whole {
        cells.insert(OUTSIDE);
    }
    cells
}
