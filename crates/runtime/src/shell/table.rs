//! Entries by the identifiers of the scheduler.

use sched::{TaskId, VersionId};

/// An identifier with a position that is small and a generation that tells it from others.
pub(crate) trait Id: Copy + PartialEq {
    /// The position.
    fn index(self) -> usize;
}

impl Id for TaskId {
    fn index(self) -> usize {
        self.0.index as usize
    }
}

impl Id for VersionId {
    fn index(self) -> usize {
        self.0.index as usize
    }
}

/// Entries by identifier; the scheduler gives positions of dead identifiers out again.
#[derive(Debug)]
pub(crate) struct Table<K, T> {
    slots: Vec<Option<(K, T)>>,
    len: usize,
}

impl<K, T> Default for Table<K, T> {
    fn default() -> Self {
        Table { slots: Vec::new(), len: 0 }
    }
}

impl<K: Id, T> Table<K, T> {
    pub(crate) fn insert(&mut self, id: K, entry: T) -> &mut T {
        if id.index() >= self.slots.len() {
            self.slots.resize_with(id.index() + 1, || None);
        }
        let slot = &mut self.slots[id.index()];
        assert!(slot.is_none(), "the entry of a dead identifier was removed");
        self.len += 1;
        &mut slot.insert((id, entry)).1
    }

    pub(crate) fn get(&self, id: K) -> Option<&T> {
        let (owner, entry) = self.slots.get(id.index())?.as_ref()?;
        (*owner == id).then_some(entry)
    }

    pub(crate) fn get_mut(&mut self, id: K) -> Option<&mut T> {
        let (owner, entry) = self.slots.get_mut(id.index())?.as_mut()?;
        (*owner == id).then_some(entry)
    }

    pub(crate) fn remove(&mut self, id: K) -> Option<T> {
        let slot = self.slots.get_mut(id.index())?;
        if slot.as_ref()?.0 != id {
            return None;
        }
        self.len -= 1;
        slot.take().map(|(_, entry)| entry)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|(_, entry)| entry)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.slots.iter().flatten().map(|(id, entry)| (*id, entry))
    }

    pub(crate) fn clear(&mut self) -> impl Iterator<Item = T> {
        self.len = 0;
        std::mem::take(&mut self.slots).into_iter().flatten().map(|(_, entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_identifier_finds_nothing() {
        let id = |generation: u64| TaskId::from_bits(generation << 32 | 3);
        let mut table: Table<TaskId, &str> = Table::default();
        table.insert(id(0), "first");
        assert_eq!(table.remove(id(1)), None);
        assert_eq!(table.remove(id(0)), Some("first"));
        table.insert(id(1), "second");
        assert_eq!((table.get(id(0)), table.get(id(1))), (None, Some(&"second")));
        assert_eq!((table.len(), table.iter().count()), (1, 1));
        assert_eq!(table.clear().count(), 1);
        assert_eq!(table.len(), 0);
    }
}
