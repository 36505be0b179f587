//! One mixing function for everything that has to be a number: values, fates, the log.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Mixes two numbers into one; every bit of both counts.
pub fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.rotate_left(29) ^ b.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Mixes a row of numbers.
pub fn mix_all(numbers: &[u64]) -> u64 {
    numbers.iter().fold(numbers.len() as u64, |a, &b| mix(a, b))
}

/// A hasher without a random start: equal input gives equal output in every run.
#[derive(Clone, Default)]
pub struct Fold(u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = mix(self.0, u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = mix(self.0, u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0, number);
    }

    fn write_usize(&mut self, number: usize) {
        self.0 = mix(self.0, number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map whose behaviour is the same in every run.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Fold>>;
