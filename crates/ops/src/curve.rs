//! What storage takes in all, over how many write to it at once.

use std::fmt;

/// Points of a curve at most.
pub const POINTS_MAX: usize = 16;

/// One point of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// So many write at once.
    pub writers: u32,
    /// Bytes a second that they get together.
    pub bandwidth: u64,
}

/// Aggregate bandwidth over concurrent writers: straight lines between its points, and constant
/// before the first and after the last. A single point is a plain rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve(Vec<Point>);

/// Why points are no curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveError {
    /// There are none.
    Empty,
    /// There are more than [`POINTS_MAX`].
    TooMany,
    /// The point with this number has no writers, or no more of them than the one before.
    Writers(usize),
    /// The point with this number has no bandwidth.
    Bandwidth(usize),
}

impl CurveError {
    /// The number of the point that is wrong, if it is one.
    pub fn point(&self) -> Option<usize> {
        match self {
            CurveError::Empty | CurveError::TooMany => None,
            CurveError::Writers(point) | CurveError::Bandwidth(point) => Some(*point),
        }
    }
}

impl fmt::Display for CurveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CurveError::Empty => write!(f, "a curve needs at least one point"),
            CurveError::TooMany => write!(f, "a curve has at most {POINTS_MAX} points"),
            CurveError::Writers(_) => {
                write!(f, "writers must be at least 1, and more than at the point before")
            }
            CurveError::Bandwidth(_) => write!(f, "bandwidth must be more than 0"),
        }
    }
}

impl std::error::Error for CurveError {}

impl Curve {
    /// From its points.
    ///
    /// # Errors
    /// Writers must ascend from 1, and every bandwidth be more than 0.
    pub fn new(points: Vec<Point>) -> Result<Curve, CurveError> {
        if points.is_empty() {
            return Err(CurveError::Empty);
        }
        if points.len() > POINTS_MAX {
            return Err(CurveError::TooMany);
        }
        let mut before = 0;
        for (number, point) in points.iter().enumerate() {
            if point.writers <= before {
                return Err(CurveError::Writers(number));
            }
            if point.bandwidth == 0 {
                return Err(CurveError::Bandwidth(number));
            }
            before = point.writers;
        }
        Ok(Curve(points))
    }

    /// A plain rate, in bytes a second; at least 1.
    pub fn flat(bandwidth: u64) -> Curve {
        Curve(vec![Point { writers: 1, bandwidth: bandwidth.max(1) }])
    }

    /// Its points, by writers.
    pub fn points(&self) -> &[Point] {
        &self.0
    }

    /// Its points as (writers, bytes a second), by writers.
    pub fn pairs(&self) -> Vec<(u32, u64)> {
        self.0.iter().map(|point| (point.writers, point.bandwidth)).collect()
    }

    /// Whether it is a plain rate.
    pub fn is_flat(&self) -> bool {
        self.0.iter().all(|point| point.bandwidth == self.0[0].bandwidth)
    }

    /// What so many writers get together, in bytes a second.
    pub fn at(&self, writers: u32) -> u64 {
        bandwidth_at(&self.0, writers)
    }

    /// The highest point; of several as high, the one with the fewest writers.
    pub fn best(&self) -> Point {
        let better = |best: Point, point: &Point| match point.bandwidth > best.bandwidth {
            true => *point,
            false => best,
        };
        self.0[1..].iter().fold(self.0[0], better)
    }
}

/// What so many writers get together by the points of a curve, of which there is at least one.
pub fn bandwidth_at(points: &[Point], writers: u32) -> u64 {
    let after = points.partition_point(|point| point.writers < writers);
    let Some(above) = points.get(after) else { return points[points.len() - 1].bandwidth };
    if after == 0 || above.writers == writers {
        return above.bandwidth;
    }
    let below = points[after - 1];
    let width = i128::from(above.writers - below.writers);
    let rise = i128::from(above.bandwidth) - i128::from(below.bandwidth);
    let part = rise * i128::from(writers - below.writers) / width;
    (i128::from(below.bandwidth) + part) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u32, u64)]) -> Result<Curve, CurveError> {
        let point = |&(writers, bandwidth)| Point { writers, bandwidth };
        Curve::new(points.iter().map(point).collect())
    }

    #[test]
    fn lines_between_points_and_constant_beyond() {
        let curve = curve(&[(2, 100), (4, 300), (14, 50)]).unwrap();
        let got: Vec<_> = [0, 1, 2, 3, 4, 8, 9, 14, 15, u32::MAX].map(|n| curve.at(n)).into();
        assert_eq!(got, [100, 100, 100, 200, 300, 200, 175, 50, 50, 50]);
        assert_eq!(curve.best(), Point { writers: 4, bandwidth: 300 });
        assert!(!curve.is_flat());
    }

    #[test]
    fn a_rate_is_the_same_for_all() {
        let rate = Curve::flat(7);
        assert_eq!([1, 2, 1000].map(|n| rate.at(n)), [7; 3]);
        assert!(rate.is_flat());
        let best = curve(&[(1, 5), (2, 9), (4, 9)]).unwrap().best();
        assert_eq!(best.writers, 2, "the fewest writers of those that are as fast");
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        let curve = curve(&[(1, u64::MAX), (u32::MAX, 1)]).unwrap();
        let middle = curve.at(u32::MAX / 2);
        assert!(middle > u64::MAX / 3 && middle < u64::MAX / 3 * 2, "{middle}");
    }

    #[test]
    fn what_is_no_curve_is_refused() {
        assert_eq!(curve(&[]), Err(CurveError::Empty));
        assert_eq!(curve(&[(0, 5)]), Err(CurveError::Writers(0)));
        assert_eq!(curve(&[(1, 5), (4, 6), (4, 7)]), Err(CurveError::Writers(2)));
        assert_eq!(curve(&[(1, 5), (3, 0)]), Err(CurveError::Bandwidth(1)));
        let many: Vec<_> = (1..=17).map(|n| (n, 1)).collect();
        assert_eq!(curve(&many), Err(CurveError::TooMany));
        assert_eq!(CurveError::Writers(2).point(), Some(2));
        assert!(CurveError::TooMany.to_string().contains("16"));
    }
}
