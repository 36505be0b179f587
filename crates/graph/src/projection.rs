//! One projection map a dimension: which boxes touch a position (Mont-Blanc D4.2, section 1.2).
//!
//! A map cuts its axis into cells at every start and end of a span; a cell lists the boxes
//! over it. The boxes that overlap a query are the intersection, over the dimensions, of the
//! union of the cells that the query's span touches.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::access::Span;

/// The cells of one axis: from each key up to the next, the boxes over it, ascending.
#[derive(Debug, Default)]
struct Axis {
    cells: BTreeMap<u64, Vec<u32>>,
}

impl Axis {
    fn cut(&mut self, at: u64) {
        if self.cells.contains_key(&at) {
            return;
        }
        let before = self.cells.range(..at).next_back();
        let over = before.map(|(_, boxes)| boxes.clone()).unwrap_or_default();
        self.cells.insert(at, over);
    }

    fn insert(&mut self, id: u32, span: Span) {
        self.cut(span.start);
        self.cut(span.end);
        for (_, boxes) in self.cells.range_mut(span.start..span.end) {
            boxes.push(id);
        }
    }

    fn touched(&self, span: Span, out: &mut Vec<u32>) {
        out.clear();
        if let Some((_, boxes)) = self.cells.range(..=span.start).next_back() {
            out.extend_from_slice(boxes);
        }
        if let Some(next) = span.start.checked_add(1) {
            if next < span.end {
                for (_, boxes) in self.cells.range(next..span.end) {
                    out.extend_from_slice(boxes);
                }
            }
        }
        out.sort_unstable();
        out.dedup();
    }
}

/// Which of the boxes that were put in overlap another box.
#[derive(Debug, Default)]
pub(crate) struct Projections {
    axes: Vec<Axis>,
}

impl Projections {
    /// Adds a box under an identifier that is greater than those before.
    pub(crate) fn insert(&mut self, id: u32, spans: &[Span]) {
        if self.axes.is_empty() {
            self.axes.resize_with(spans.len(), Axis::default);
        }
        assert_eq!(self.axes.len(), spans.len(), "one datum, one number of dimensions");
        for (axis, span) in self.axes.iter_mut().zip(spans) {
            axis.insert(id, *span);
        }
    }

    /// The boxes that overlap `spans`, ascending.
    pub(crate) fn overlapping(&self, spans: &[Span]) -> Vec<u32> {
        let mut found = Vec::new();
        let mut touched = Vec::new();
        for (dimension, (axis, span)) in self.axes.iter().zip(spans).enumerate() {
            axis.touched(*span, &mut touched);
            if dimension == 0 {
                core::mem::swap(&mut found, &mut touched);
            } else {
                found.retain(|id| touched.binary_search(id).is_ok());
            }
            if found.is_empty() {
                break;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    //! The maps against a look at every pair.

    use alloc::vec::Vec;

    use super::{Projections, Span};

    fn boxes(dimensions: usize, count: usize) -> Vec<Vec<Span>> {
        let mut state = 7u64;
        let mut roll = |sides: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % sides
        };
        let mut span = || {
            let start = roll(40);
            Span { start, end: start + 1 + roll(12) }
        };
        (0..count).map(|_| (0..dimensions).map(|_| span()).collect()).collect()
    }

    #[test]
    fn every_pair_is_found_and_no_other() {
        for dimensions in 1..4 {
            let boxes = boxes(dimensions, 120);
            let mut maps = Projections::default();
            for (at, own) in boxes.iter().enumerate() {
                let overlaps =
                    |other: &Vec<Span>| own.iter().zip(other).all(|(a, b)| a.overlaps(*b));
                let before = boxes[..at].iter().enumerate();
                let expected: Vec<u32> =
                    before.filter(|(_, other)| overlaps(other)).map(|(at, _)| at as u32).collect();
                assert_eq!(maps.overlapping(own), expected, "{own:?} in {dimensions} dimensions");
                maps.insert(at as u32, own);
            }
        }
    }

    #[test]
    fn the_whole_axis_is_searched() {
        let mut maps = Projections::default();
        let all = [Span { start: 0, end: u64::MAX }];
        let last = [Span { start: u64::MAX - 1, end: u64::MAX }];
        maps.insert(0, &last);
        maps.insert(1, &all);
        assert_eq!(maps.overlapping(&all), [0, 1]);
        assert_eq!(maps.overlapping(&last), [0, 1]);
        assert_eq!(maps.overlapping(&[Span { start: 0, end: u64::MAX - 1 }]), [1]);
    }
}
