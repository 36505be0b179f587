//! Which pages of the heap this process has mapped for writing, as far as it knows.
//!
//! Mapping the pages of a range in one go is much quicker than one fault a page, but asking for
//! pages that are mapped already costs nearly as much as a third of the copy itself.

use crate::memory::PAGE_BYTES;

/// One bit a page, as far as pages were ever written.
#[derive(Debug, Default)]
pub struct Mapped(Vec<u64>);

impl Mapped {
    fn words(offset: u64, len: u64) -> impl Iterator<Item = (usize, u64)> {
        let (first, last) = (offset / PAGE_BYTES, (offset + len).div_ceil(PAGE_BYTES));
        (first / 64..last.div_ceil(64)).map(move |word| {
            let from = first.saturating_sub(word * 64).min(64);
            let to = (last - word * 64).min(64);
            let ones = |bits: u64| if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            (word as usize, ones(to) & !ones(from))
        })
    }

    /// Notes that a range is mapped; `true`: all of it was.
    pub fn set(&mut self, offset: u64, len: u64) -> bool {
        let mut was = true;
        for (word, bits) in Self::words(offset, len) {
            if word >= self.0.len() {
                self.0.resize(word + 1, 0);
            }
            was &= self.0[word] & bits == bits;
            self.0[word] |= bits;
        }
        was
    }

    /// Notes that the pages of a range are gone.
    pub fn clear(&mut self, offset: u64, len: u64) {
        for (word, bits) in Self::words(offset, len) {
            if let Some(word) = self.0.get_mut(word) {
                *word &= !bits;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_one_flag_a_page(
            steps in proptest::collection::vec((any::<bool>(), 0u64..300, 1u64..200), 1..40)
        ) {
            let (mut mapped, mut flags) = (Mapped::default(), [false; 512]);
            for (set, first, count) in steps {
                let range = &mut flags[first as usize..(first + count) as usize];
                // A range within the pages, to see that parts count as the whole.
                let (offset, len) = (first * PAGE_BYTES + 64, count * PAGE_BYTES - 128);
                if set {
                    let was = range.iter().all(|flag| *flag);
                    prop_assert_eq!(mapped.set(offset, len), was);
                } else {
                    mapped.clear(offset, len);
                }
                range.fill(set);
            }
        }
    }
}
