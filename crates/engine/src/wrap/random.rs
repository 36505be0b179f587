//! Random numbers that a seed reproduces (SplitMix64).

use std::time::Duration;

/// A source of random numbers.
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// True this often, 0 to 1.
    pub fn chance(&mut self, share: f64) -> bool {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 <= share && share > 0.0
    }

    /// Below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "no number is below 0");
        self.next() % end
    }

    /// Up to `max`.
    pub fn duration(&mut self, max: Duration) -> Duration {
        let ns = u64::try_from(max.as_nanos()).unwrap_or(u64::MAX - 1);
        Duration::from_nanos(self.below(ns.saturating_add(1)))
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (2..=items.len()).rev() {
            items.swap(end - 1, self.below(end as u64) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_reproduces_it_and_shares_are_kept() {
        let draw = |seed| -> Vec<u64> {
            let mut random = Random::new(seed);
            (0..9).map(|_| random.next()).collect()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let mut random = Random::new(3);
        let hits = (0..10_000).filter(|_| random.chance(0.25)).count();
        assert!((2300..2700).contains(&hits), "{hits} of 10,000 at a quarter");
        assert!((0..1000).all(|_| !random.chance(0.0)));
        assert!((0..1000).all(|_| random.chance(1.0)));
    }
}
