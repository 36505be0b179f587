//! A slab whose keys are never reused: index for speed, generation for truth.
//!
//! An entry with memory of its own can leave that to the next one in its position: it is *retired*
//! instead of removed, and the next is *begun* with what it left.

use alloc::vec::Vec;

use crate::chunks::Chunks;

/// Where an entry is, and which of the entries that ever were there it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// Position in the slab.
    pub index: u32,
    /// How many entries had been in this position before.
    pub generation: u32,
}

impl Key {
    /// The key as one number.
    pub fn to_bits(self) -> u64 {
        (u64::from(self.generation) << 32) | u64::from(self.index)
    }

    /// The key that [`Key::to_bits`] gave.
    pub fn from_bits(bits: u64) -> Key {
        Key { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    /// Whether the key of this generation was given out and not taken back.
    live: bool,
    /// The entry of a live key (unless it was begun and not put yet), or what a retired one left.
    entry: Option<T>,
}

/// Entries by key; insertion, removal and look-up take constant time.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Chunks<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { slots: Chunks::default(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds an entry; its key was never given out before.
    pub fn insert(&mut self, entry: T) -> Key {
        let (key, _) = self.begin();
        self.put(key, entry);
        key
    }

    /// A new key, whose entry is [`Slab::put`] soon, and what a retired entry left there.
    pub fn begin(&mut self) -> (Key, Option<T>) {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            debug_assert!(!slot.live, "a free slot holds nothing");
            slot.live = true;
            return (Key { index, generation: slot.generation }, slot.entry.take());
        }
        let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 entries at once");
        self.slots.push(Slot { generation: 0, live: true, entry: None });
        (Key { index, generation: 0 }, None)
    }

    /// The entry of a key that was begun.
    pub fn put(&mut self, key: Key, entry: T) {
        let slot = &mut self.slots[key.index as usize];
        assert!(slot.live && slot.generation == key.generation, "{key:?} was begun");
        slot.entry = Some(entry);
    }

    /// Takes an entry out that is [`Slab::put`] back, or [`Slab::retire`], soon.
    pub fn lend(&mut self, key: Key) -> Option<T> {
        self.live_slot(key)?.entry.take()
    }

    fn live_slot(&mut self, key: Key) -> Option<&mut Slot<T>> {
        let slot = self.slots.get_mut(key.index as usize)?;
        (slot.generation == key.generation && slot.live).then_some(slot)
    }

    fn free(&mut self, key: Key) -> Option<&mut Option<T>> {
        self.live_slot(key)?;
        self.free.push(key.index);
        let slot = &mut self.slots[key.index as usize];
        slot.live = false;
        slot.generation = slot.generation.wrapping_add(1);
        Some(&mut slot.entry)
    }

    /// Takes an entry out, if it is there still.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.free(key)?.take()
    }

    /// Ends an entry that was lent, and leaves its memory to the next one.
    pub fn retire(&mut self, key: Key, memory: T) {
        if let Some(entry) = self.free(key) {
            *entry = Some(memory);
        }
    }

    /// Whether a key was begun and is not over.
    pub fn contains(&self, key: Key) -> bool {
        let slot = self.slots.get(key.index as usize);
        slot.is_some_and(|slot| slot.generation == key.generation && slot.live)
    }

    /// The entry of a key, unless it was removed.
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index as usize)?;
        if slot.generation != key.generation || !slot.live {
            return None;
        }
        slot.entry.as_ref()
    }

    /// As [`Slab::get`], to change it.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.live_slot(key)?.entry.as_mut()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All entries with their keys, in order of position.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        let live = self.slots.iter().enumerate().filter(|(_, slot)| slot.live);
        live.filter_map(|(index, slot)| {
            let key = Key { index: index as u32, generation: slot.generation };
            slot.entry.as_ref().map(|entry| (key, entry))
        })
    }
}
