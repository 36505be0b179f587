//! The region algebra: overlap, cover and intersection of n-dimensional boxes.
//!
//! A region is kept as an [`Extent`]: one span a dimension, none at all for the whole datum.
//! A byte range is a box of one dimension, so memory, files and datasets share one algebra
//! (OmpSs@cluster, Mont-Blanc D4.2, section 1.2).

use alloc::boxed::Box;
use smallvec::SmallVec;

use crate::access::{Region, Span};

/// One span a dimension; empty is the whole datum.
pub(crate) type Extent = SmallVec<[Span; 2]>;

/// The most dimensions that a region may have.
pub const DIMENSIONS_MAX: usize = 32;

impl Span {
    /// Whether the two share a position.
    pub fn overlaps(self, other: Span) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// Whether every position of `other` is in this span.
    pub fn covers(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// What the two share.
    pub fn intersection(self, other: Span) -> Option<Span> {
        let start = self.start.max(other.start);
        let end = self.end.min(other.end);
        (start < end).then_some(Span { start, end })
    }
}

/// The spans of a region (none: the whole), or `None` where a span is empty or reversed or there
/// are too many.
pub(crate) fn spans(region: &Region) -> Option<&[Span]> {
    let spans: &[Span] = match region {
        Region::Whole => return Some(&[]),
        Region::Range(span) => core::slice::from_ref(span),
        Region::Box(spans) => spans,
    };
    let sound = !spans.is_empty()
        && spans.len() <= DIMENSIONS_MAX
        && spans.iter().all(|span| span.start < span.end);
    sound.then_some(spans)
}

/// Whether two extents of one datum share a position.
pub(crate) fn overlap(a: &[Span], b: &[Span]) -> bool {
    debug_assert!(a.is_empty() || b.is_empty() || a.len() == b.len(), "one datum, one shape");
    a.iter().zip(b).all(|(a, b)| a.overlaps(*b))
}

/// Whether `a` holds every position of `b`.
pub(crate) fn cover(a: &[Span], b: &[Span]) -> bool {
    if a.is_empty() {
        return true;
    }
    !b.is_empty() && a.iter().zip(b).all(|(a, b)| a.covers(*b))
}

impl Region {
    /// Whether the two share a position. Regions of different dimensions never do.
    pub fn overlaps(&self, other: &Region) -> bool {
        self.intersection(other).is_some()
    }

    /// What the two share: `None` where that is nothing, or where their dimensions differ.
    pub fn intersection(&self, other: &Region) -> Option<Region> {
        let (a, b) = (spans(self)?, spans(other)?);
        if a.is_empty() {
            return Some(other.clone());
        }
        if b.is_empty() {
            return Some(self.clone());
        }
        if a.len() != b.len() {
            return None;
        }
        let spans: Option<Extent> = a.iter().zip(b).map(|(a, b)| a.intersection(*b)).collect();
        let spans = spans?;
        if let (Region::Range(_), Region::Range(_)) = (self, other) {
            return Some(Region::Range(spans[0]));
        }
        Some(Region::Box(Box::from(spans.as_slice())))
    }

    /// How many positions it has; `None` for the whole datum, whose size is not known here.
    pub fn volume(&self) -> Option<u64> {
        let spans = spans(self)?;
        if spans.is_empty() {
            return None;
        }
        Some(spans.iter().map(|span| span.end - span.start).fold(1, u64::saturating_mul))
    }
}
