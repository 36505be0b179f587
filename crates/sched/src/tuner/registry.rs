//! What was learned of a function on a layer: constraint to mean task time.

use alloc::vec::Vec;

use super::learning::{most, Ground};
use super::words::{Bounds, Entry};

/// Tasks whose bytes differ by this factor are not one kind of task.
const VARIES_FACTOR: u64 = 4;

/// The lines of a registry, lowest constraint first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    entries: Vec<Entry>,
}

impl Registry {
    /// A registry that was saved, as far as it is about what may be tried now: what is out of
    /// bounds is left out, and so is what let another number of tasks run at once than it would
    /// here. Without bounds it is this number that was learned: its constraint is a share of the
    /// layer's bandwidth, which may have been measured anew since.
    pub(crate) fn loaded(entries: &[Entry], ground: &Ground, bounds: Option<Bounds>) -> Registry {
        let mut registry = Registry::default();
        let fits = |entry: &Entry| {
            (1..=ground.bandwidth).contains(&entry.constraint)
                && entry.most == most(ground, entry.constraint)
        };
        for mut entry in entries.iter().copied().filter(|entry| entry.tasks > 0) {
            if bounds.is_none() && !fits(&entry) {
                entry.constraint = ground.bandwidth / u64::from(entry.most.max(1));
            }
            let within = |bounds: Bounds| (bounds.min..=bounds.max).contains(&entry.constraint);
            if fits(&entry) && bounds.is_none_or(within) {
                registry.add(entry);
            }
        }
        registry
    }

    /// Adds a line; it replaces one of the same constraint.
    pub(crate) fn add(&mut self, entry: Entry) {
        match self.entries.binary_search_by_key(&entry.constraint, |entry| entry.constraint) {
            Ok(at) => self.entries[at] = entry,
            Err(at) => self.entries.insert(at, entry),
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// The least and the most bytes that tasks of an epoch moved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread {
    least: u64,
    most: u64,
}

impl Spread {
    pub(crate) fn note(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.least = if self.least == 0 { bytes } else { self.least.min(bytes) };
        self.most = self.most.max(bytes);
    }

    /// Whether a mean over these tasks says little about any of them.
    pub(crate) fn varies(&self) -> bool {
        self.most / VARIES_FACTOR > self.least
    }
}
