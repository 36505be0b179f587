//! From measurements to figures: medians, the best block, the curve, its knee and its fall.

use ops::{Curve, Point};

use super::plan::{Cell, Kind, Plan};

/// The knee is where this share of the best bandwidth is reached; below it, the curve has fallen.
pub const KNEE_SHARE: f64 = 0.95;

/// A block with which the storage gives so much of the most is as good as the best.
const EQUAL_SHARE: f64 = 0.95;

/// What was measured of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// What was done.
    pub cell: Cell,
    /// Bytes a second, all together; the median of the rounds.
    pub bandwidth: f64,
    /// Operations a second, all together.
    pub iops: f64,
    /// The largest difference of a round from the median, as a share of it.
    pub spread: f64,
    /// Rounds that counted.
    pub rounds: usize,
}

/// How many should write (or read) at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// The block with which the storage gives most.
    pub block_bytes: u64,
    /// The fewest that get 95 % of the best bandwidth.
    pub writers: u32,
    /// Who gets the best, and how much that is.
    pub best: Point,
    /// The fewest from which on it is less than 95 % again.
    pub falls_at: Option<u32>,
}

/// The figures of all cells that were measured, in the order of the plan. A sample is bytes and
/// nanoseconds.
pub(super) fn figures(plan: &Plan, samples: &[Vec<(u64, u64)>]) -> Vec<Figure> {
    let pairs = plan.cells.iter().zip(samples);
    pairs.filter_map(|(cell, samples)| figure(*cell, samples)).collect()
}

fn figure(cell: Cell, samples: &[(u64, u64)]) -> Option<Figure> {
    let rate = |(bytes, ns): &(u64, u64)| *bytes as f64 * 1e9 / (*ns).max(1) as f64;
    let mut rates: Vec<f64> = samples.iter().map(rate).collect();
    rates.sort_by(f64::total_cmp);
    let middle = rates.len() / 2;
    let bandwidth = match rates.len() {
        0 => return None,
        count if count % 2 == 1 => rates[middle],
        _ => (rates[middle - 1] + rates[middle]) / 2.0,
    };
    let off = (bandwidth - rates[0]).max(rates[rates.len() - 1] - bandwidth);
    let iops = bandwidth / cell.block_bytes as f64;
    Some(Figure { cell, bandwidth, iops, spread: off / bandwidth, rounds: rates.len() })
}

/// The block with which the storage gives most, in the mean over the numbers of writers: of the
/// best of all figures, it is too often chance that it is the best. Of blocks with which it gives
/// as good as the most ([`EQUAL_SHARE`]), the smallest.
pub fn best_block(figures: &[Figure], kind: Kind) -> Option<u64> {
    let of_kind = || figures.iter().filter(|figure| figure.cell.kind == kind);
    let mean = |block: &u64| {
        let of_block = of_kind().filter(|figure| figure.cell.block_bytes == *block);
        let bandwidths: Vec<f64> = of_block.map(|figure| figure.bandwidth).collect();
        bandwidths.iter().sum::<f64>() / bandwidths.len() as f64
    };
    let blocks = || of_kind().map(|figure| figure.cell.block_bytes);
    let most = blocks().map(|block| mean(&block)).max_by(f64::total_cmp)?;
    blocks().filter(|block| mean(block) >= EQUAL_SHARE * most).min()
}

/// The curve of a block.
pub fn curve(figures: &[Figure], kind: Kind, block_bytes: u64) -> Option<Curve> {
    let is_its = |cell: &Cell| (cell.kind, cell.block_bytes) == (kind, block_bytes);
    let its = figures.iter().filter(|figure| is_its(&figure.cell));
    let point = |figure: &Figure| Point {
        writers: figure.cell.writers,
        bandwidth: (figure.bandwidth.round() as u64).max(1),
    };
    let mut points: Vec<Point> = its.map(point).collect();
    points.sort_by_key(|point| point.writers);
    Curve::new(points).ok()
}

/// Where a curve has its knee, and where it falls.
pub fn knee(block_bytes: u64, curve: &Curve) -> Knee {
    let best = curve.best();
    let is_high = |point: &&Point| point.bandwidth as f64 >= KNEE_SHARE * best.bandwidth as f64;
    let points = curve.points();
    let first = points.iter().find(is_high).unwrap_or(&best);
    let last_high = points.iter().rposition(|point| is_high(&point));
    let falls = last_high.and_then(|at| points.get(at + 1));
    Knee { block_bytes, writers: first.writers, best, falls_at: falls.map(|point| point.writers) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve_of(points: &[(u32, u64)]) -> Curve {
        let point = |&(writers, bandwidth)| Point { writers, bandwidth };
        Curve::new(points.iter().map(point).collect()).unwrap()
    }

    #[test]
    fn the_knee_is_the_fewest_that_are_nearly_as_fast() {
        let rising = knee(4096, &curve_of(&[(1, 50), (2, 95), (4, 99), (8, 100)]));
        assert_eq!((rising.writers, rising.best.writers, rising.falls_at), (2, 8, None));
        let falling = knee(1, &curve_of(&[(1, 100), (2, 94), (4, 96), (8, 90), (16, 20)]));
        assert_eq!((falling.writers, falling.falls_at), (1, Some(8)), "a dip is no fall");
    }

    #[test]
    fn medians_of_the_rounds() {
        let cell = Cell { kind: Kind::Write, block_bytes: 100, writers: 1 };
        let second = 1_000_000_000;
        let odd = figure(cell, &[(900, second), (1000, second), (5000, second)]).unwrap();
        assert_eq!((odd.bandwidth, odd.iops, odd.spread, odd.rounds), (1000.0, 10.0, 4.0, 3));
        let even = figure(cell, &[(900, second), (1100, second)]).unwrap();
        assert_eq!((even.bandwidth, even.spread), (1000.0, 0.1));
        assert!(figure(cell, &[]).is_none());
    }

    #[test]
    fn the_curve_is_that_of_the_best_block() {
        let figure = |kind, block_bytes, writers, bandwidth| Figure {
            cell: Cell { kind, block_bytes, writers },
            bandwidth,
            iops: 0.0,
            spread: 0.0,
            rounds: 1,
        };
        let (read, write) = (Kind::Read, Kind::Write);
        let all = [
            figure(write, 10, 2, 5.0),
            figure(write, 10, 1, 9.4),
            figure(write, 20, 1, 7.0),
            figure(read, 20, 1, 50.0),
        ];
        assert_eq!(best_block(&all, write), Some(10));
        assert_eq!(best_block(&[all[2], figure(write, 10, 1, 6.7)], write), Some(10), "equal");
        assert_eq!(best_block(&[all[2], figure(write, 10, 1, 6.6)], write), Some(20));
        assert_eq!(curve(&all, write, 10), Some(curve_of(&[(1, 9), (2, 5)])));
        assert_eq!(best_block(&all, read), Some(20));
        assert_eq!(best_block(&all[..3], read), None);
        assert_eq!(curve(&all, read, 10), None);
    }
}
