//! Which ranges of the heap a worker still looks at.
//!
//! Every [`View`] counts in a table by the offset of its range. When a task ends, those of its
//! ranges that are still looked at go into `Ended::held`, and are marked as told; when the last
//! view of such a range goes, an `Unpin` follows. A range that was told already is not told again,
//! so each `held` has exactly one `Unpin`. The table stays locked while the `Ended` is pushed, so
//! that no `Unpin` comes before it.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use smallvec::smallvec;

use crate::wire::{FromWorker, List};
use crate::worker::{lock, Shared};

/// A range that is looked at.
#[derive(Debug, Default)]
struct Pin {
    views: usize,
    told: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Pins(HashMap<u64, Pin>);

impl Pins {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, offset: u64) {
        self.0.entry(offset).or_default().views += 1;
    }

    /// Takes a view away; whether an `Unpin` is due.
    fn remove(&mut self, offset: u64) -> bool {
        let pin = self.0.get_mut(&offset).expect("a view is in the table");
        assert!(pin.views > 0);
        pin.views -= 1;
        pin.views == 0 && self.0.remove(&offset).is_some_and(|pin| pin.told)
    }

    /// Those of `offsets` that are looked at and were not told before.
    pub(crate) fn tell(&mut self, offsets: &[u64]) -> List<u64> {
        let mut held = List::new();
        for offset in offsets {
            if let Some(pin) = self.0.get_mut(offset).filter(|pin| !pin.told) {
                pin.told = true;
                held.push(*offset);
            }
        }
        held
    }
}

/// A range of the heap that stays as it is while this exists. Cheap to clone.
pub struct View {
    shared: Arc<Shared>,
    offset: u64,
    len: u64,
}

impl View {
    pub(crate) fn new(shared: &Arc<Shared>, offset: u64, len: u64) -> Self {
        if !shared.is_forked() {
            lock(&shared.pins).add(offset);
        }
        Self { shared: shared.clone(), offset, len }
    }

    /// Where it begins in the heap.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Where it can be written, for inputs in mode `Shared`; other writers may be at work there.
    pub fn writer(&self) -> NonNull<u8> {
        self.shared.heap.writer(self.offset, self.len)
    }

    /// Maps all its pages at once, which is quicker than a fault each when all will be read.
    pub fn prefault(&self) {
        self.shared.heap.prefault_read(self.offset, self.len);
    }
}

impl Deref for View {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the driver keeps the range while the task that got it runs, and after that
        // while this worker holds it; values are not written once they are inputs (those in
        // mode `Shared` are the program's to synchronise, as it asked for).
        unsafe { self.shared.heap.slice(self.offset, self.len) }
    }
}

impl Clone for View {
    fn clone(&self) -> Self {
        Self::new(&self.shared, self.offset, self.len)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.shared.is_forked() {
            return;
        }
        let mut pins = lock(&self.shared.pins);
        if pins.remove(self.offset) {
            let offsets = smallvec![self.offset];
            self.shared.push(&FromWorker::Unpin { offsets });
        }
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({}..{})", self.offset, self.offset + self.len)
    }
}
