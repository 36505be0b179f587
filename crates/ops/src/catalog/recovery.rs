//! What is to be done after a crash, by what the catalog knows and the disks still have.

use std::path::Path;

use super::{Catalog, Entry, FileId};

/// The length of the file at a path; `None`: there is none.
pub type Look<'a> = dyn FnMut(&Path) -> Option<u64> + 'a;

/// What is to become of a file that was not at its own path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is whole where the catalog says: it is to be brought to its own path.
    BringHome,
    /// As `BringHome`, but a task was changing it in place: it may be half changed.
    HalfChanged,
    /// It stands at its own path already.
    AtHome,
    /// It was not to be kept.
    Delete,
    /// Its copy has another length than it should: somebody else changed it. It is left alone.
    Damaged,
    /// Its copy is gone, as in memory after a restart of the machine.
    Lost,
}

fn fate(entry: &Entry, look: &mut Look<'_>) -> Fate {
    let found = look(&entry.place);
    match found {
        _ if entry.scratch => Fate::Delete,
        Some(_) if entry.changing => Fate::HalfChanged,
        Some(bytes) if bytes == entry.bytes => Fate::BringHome,
        Some(_) => Fate::Damaged,
        // Only a rename takes a copy away before the record that it is at home.
        None if entry.leaving == Some(None) && look(&entry.home) == Some(entry.bytes) => {
            Fate::AtHome
        }
        None => Fate::Lost,
    }
}

/// What is to become of each file.
pub fn recover(catalog: &Catalog, look: &mut Look<'_>) -> Vec<(FileId, Entry, Fate)> {
    let entries = catalog.entries();
    entries.map(|(file, entry)| (file, entry.clone(), fate(entry, look))).collect()
}
