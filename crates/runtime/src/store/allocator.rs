//! Which bytes of the heap are whose: an offset allocator that knows no memory.
//!
//! Free ranges are of two kinds. *Touched* ones had values in them and still have pages
//! behind them; they are reused first, because writing to them costs no page fault. *Bare*
//! ones have no pages: they never had, or their pages were given back. Ranges of one kind
//! coalesce with their neighbours of the same kind. Allocation is best fit, among the touched
//! ranges first; when no single range fits, everything touched is handed out to be given
//! back (see [`Allocator::surplus`]), after which neighbours of both kinds are one range.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Every range begins at a multiple of this.
pub(crate) const ALIGN_BYTES: u64 = 64;
/// Ranges of at least [`LARGE_BYTES_MIN`] begin at a multiple of this; pages are given back
/// in this unit.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// From this size on a range is aligned to pages.
pub(crate) const LARGE_BYTES_MIN: u64 = 64 * 1024;
/// How many ranges of nearly the right size are looked at for one of the right alignment.
const FIT_TRIES_MAX: usize = 32;

/// Free ranges of one kind, by position and by size.
#[derive(Debug, Default)]
struct Free {
    by_offset: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    bytes: u64,
}

impl Free {
    fn take(&mut self, offset: u64) -> u64 {
        let len = self.by_offset.remove(&offset).expect("the range is free");
        let removed = self.by_size.remove(&(len, offset));
        debug_assert!(removed, "both indexes hold every range");
        self.bytes -= len;
        len
    }

    fn put(&mut self, mut offset: u64, mut len: u64) {
        if len == 0 {
            return;
        }
        if let Some((&before, &before_len)) = self.by_offset.range(..offset).next_back() {
            debug_assert!(before + before_len <= offset, "free ranges do not overlap");
            if before + before_len == offset {
                self.take(before);
                offset = before;
                len += before_len;
            }
        }
        if let Some(&after_len) = self.by_offset.get(&(offset + len)) {
            self.take(offset + len);
            len += after_len;
        }
        self.by_offset.insert(offset, len);
        self.by_size.insert((len, offset));
        self.bytes += len;
    }

    /// The smallest range that holds `len` bytes at a multiple of `align`.
    fn best_fit(&self, len: u64, align: u64) -> Option<u64> {
        let fits = |&&(size, offset): &&(u64, u64)| {
            let start = offset.next_multiple_of(align);
            start + len <= offset + size
        };
        let near = self.by_size.range((len, 0)..).take(FIT_TRIES_MAX).find(fits);
        near.or_else(|| self.by_size.range((len + align, 0)..).next()).map(|&(_, offset)| offset)
    }
}

/// Who has which bytes of a heap of a fixed size.
#[derive(Debug)]
pub(crate) struct Allocator {
    size: u64,
    touched: Free,
    bare: Free,
    used: HashMap<u64, u64>,
    used_bytes: u64,
}

/// Bytes that a value of `len` bytes takes in the heap, and how they are aligned.
pub(crate) fn rounded(len: u64) -> (u64, u64) {
    if len >= LARGE_BYTES_MIN {
        (len.next_multiple_of(PAGE_BYTES), PAGE_BYTES)
    } else {
        (len.max(1).next_multiple_of(ALIGN_BYTES), ALIGN_BYTES)
    }
}

impl Allocator {
    /// All of a heap of `size` bytes is free and bare.
    pub(crate) fn new(size: u64) -> Allocator {
        let mut bare = Free::default();
        bare.put(0, size - size % PAGE_BYTES);
        Allocator { size, touched: Free::default(), bare, used: HashMap::new(), used_bytes: 0 }
    }

    /// Bytes in use, rounded as they are.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Free bytes that still have pages.
    pub(crate) fn touched_bytes(&self) -> u64 {
        self.touched.bytes
    }

    /// A range of `len` bytes, if there is one.
    pub(crate) fn allocate(&mut self, len: u64) -> Option<u64> {
        if len > self.size {
            return None;
        }
        let (len, align) = rounded(len);
        let offset = self.carve_touched(len, align).or_else(|| self.carve_bare(len))?;
        debug_assert!(offset % align == 0 && offset + len <= self.size);
        let earlier = self.used.insert(offset, len);
        debug_assert!(earlier.is_none(), "a range is given out once");
        self.used_bytes += len;
        Some(offset)
    }

    fn carve_touched(&mut self, len: u64, align: u64) -> Option<u64> {
        let range = self.touched.best_fit(len, align)?;
        let size = self.touched.take(range);
        let start = range.next_multiple_of(align);
        self.touched.put(range, start - range);
        self.touched.put(start + len, range + size - start - len);
        Some(start)
    }

    /// Bare ranges are whole pages: what is left of the last page is touched from now on.
    fn carve_bare(&mut self, len: u64) -> Option<u64> {
        let pages = len.next_multiple_of(PAGE_BYTES);
        let start = self.bare.best_fit(pages, PAGE_BYTES)?;
        let size = self.bare.take(start);
        self.bare.put(start + pages, size - pages);
        self.touched.put(start + len, pages - len);
        Some(start)
    }

    /// Takes a range back; it stays touched.
    pub(crate) fn free(&mut self, offset: u64) {
        let len = self.used.remove(&offset).expect("only a range in use is freed");
        self.used_bytes -= len;
        self.touched.put(offset, len);
    }

    /// Takes whole pages out of the touched ranges, the largest ranges first, until no more
    /// than `keep` bytes stay touched. The caller gives their pages back and then calls
    /// [`Allocator::bared`] with each; meanwhile they belong to nobody.
    pub(crate) fn surplus(&mut self, keep: u64) -> Vec<(u64, u64)> {
        let mut taken = Vec::new();
        let mut edges = Vec::new();
        while self.touched.bytes > keep {
            let Some(&(len, offset)) = self.touched.by_size.iter().next_back() else { break };
            let end = (offset + len) / PAGE_BYTES * PAGE_BYTES;
            let wanted = (self.touched.bytes - keep).next_multiple_of(PAGE_BYTES);
            let start =
                offset.next_multiple_of(PAGE_BYTES).max(end.saturating_sub(wanted)).min(end);
            if len < PAGE_BYTES {
                break;
            }
            self.touched.take(offset);
            if start >= end {
                edges.push((offset, len));
                continue;
            }
            self.touched.put(offset, start - offset);
            self.touched.put(end, offset + len - end);
            taken.push((start, end - start));
        }
        for (offset, len) in edges {
            self.touched.put(offset, len);
        }
        taken
    }

    /// The pages of a range from [`Allocator::surplus`] are gone: it is free again.
    pub(crate) fn bared(&mut self, offset: u64, len: u64) {
        self.bare.put(offset, len);
    }

    /// The pages of a range from [`Allocator::surplus`] could not be given back.
    pub(crate) fn kept(&mut self, offset: u64, len: u64) {
        self.touched.put(offset, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAP: u64 = 4 << 20;

    /// The slow and obvious way: one owner a unit of 64 bytes.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Unit {
        Bare,
        Touched,
        Used(u32),
    }

    struct Naive(Vec<Unit>);

    impl Naive {
        fn set(&mut self, offset: u64, len: u64, from: impl Fn(Unit) -> bool, to: Unit) {
            for unit in &mut self.0[(offset / 64) as usize..((offset + len) / 64) as usize] {
                assert!(from(*unit), "{unit:?} becomes {to:?}");
                *unit = to;
            }
        }

        fn count(&self, what: impl Fn(Unit) -> bool) -> u64 {
            self.0.iter().filter(|u| what(**u)).count() as u64 * 64
        }

        /// Whether some run of units of one kind holds `len` bytes at `align`.
        fn fits(&self, len: u64, align: u64, kind: Unit) -> bool {
            let mut start = 0;
            while start + len <= HEAP {
                let units = &self.0[(start / 64) as usize..((start + len) / 64) as usize];
                if units.iter().all(|u| *u == kind) {
                    return true;
                }
                start += align;
            }
            false
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Allocate(u64),
        Free(usize),
        Trim(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => prop_oneof![1u64..3000, 60_000u64..70_000, 1u64..900_000].prop_map(Step::Allocate),
            3 => (0usize..64).prop_map(Step::Free),
            1 => prop_oneof![Just(0u64), 0u64..HEAP].prop_map(Step::Trim),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
        #[test]
        fn agrees_with_one_owner_a_unit(steps in proptest::collection::vec(step(), 1..120)) {
            let mut real = Allocator::new(HEAP);
            let mut naive = Naive(vec![Unit::Bare; (HEAP / 64) as usize]);
            let mut live: Vec<(u64, u64, u32)> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                let number = number as u32;
                match step {
                    Step::Allocate(asked) => {
                        let (len, align) = rounded(asked);
                        match real.allocate(asked) {
                            Some(offset) => {
                                prop_assert_eq!(offset % align, 0);
                                let first = naive.0[(offset / 64) as usize];
                                let reuse = naive.fits(len, align, Unit::Touched);
                                // Touched memory first, when the bounded search found it.
                                prop_assert!(first == Unit::Touched || !reuse || align > 64);
                                naive.set(offset, len, |u| u == first, Unit::Used(number));
                                if first == Unit::Bare {
                                    let end = offset + len;
                                    let rest = end.next_multiple_of(PAGE_BYTES) - end;
                                    naive.set(end, rest, |u| u == first, Unit::Touched);
                                }
                                live.push((offset, len, number));
                            }
                            None => {
                                prop_assert!(!naive.fits(len, align, Unit::Bare));
                                prop_assert!(align > 64 || !naive.fits(len, align, Unit::Touched));
                            }
                        }
                    }
                    Step::Free(at) if !live.is_empty() => {
                        let (offset, len, owner) = live.swap_remove(at % live.len());
                        real.free(offset);
                        naive.set(offset, len, |u| u == Unit::Used(owner), Unit::Touched);
                    }
                    Step::Free(_) => {}
                    Step::Trim(keep) => {
                        for (offset, len) in real.surplus(keep) {
                            prop_assert!(offset % PAGE_BYTES == 0 && len % PAGE_BYTES == 0);
                            naive.set(offset, len, |u| u == Unit::Touched, Unit::Bare);
                            real.bared(offset, len);
                        }
                        let whole_page = real.touched.by_offset.iter().any(|(o, l)| {
                            o.next_multiple_of(PAGE_BYTES) + PAGE_BYTES <= o + l
                        });
                        prop_assert!(real.touched_bytes() <= keep || !whole_page);
                    }
                }
                let used = |u| matches!(u, Unit::Used(_));
                prop_assert_eq!(real.used_bytes(), naive.count(used));
                prop_assert_eq!(real.touched_bytes(), naive.count(|u| u == Unit::Touched));
            }
            for (offset, _, _) in live {
                real.free(offset);
            }
            for (offset, len) in real.surplus(0) {
                real.bared(offset, len);
            }
            prop_assert_eq!(real.bare.by_offset.len(), 1, "everything coalesced");
            prop_assert_eq!(real.bare.bytes, HEAP);
        }
    }

    #[test]
    fn a_freed_range_is_the_next_one_of_its_size() {
        let mut allocator = Allocator::new(1 << 30);
        let first = allocator.allocate(100 << 20).unwrap();
        let _other = allocator.allocate(1 << 20).unwrap();
        allocator.free(first);
        assert_eq!(allocator.allocate(100 << 20), Some(first));
    }

    #[test]
    fn surplus_keeps_what_may_be_kept() {
        let mut allocator = Allocator::new(1 << 30);
        let all: Vec<u64> = (0..10).map(|_| allocator.allocate(1 << 20).unwrap()).collect();
        all.into_iter().for_each(|offset| allocator.free(offset));
        let taken = allocator.surplus(3 << 20);
        assert_eq!(taken.iter().map(|t| t.1).sum::<u64>(), 7 << 20);
        assert_eq!(allocator.touched_bytes(), 3 << 20);
    }
}
