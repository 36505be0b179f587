//! Where the files of a session are while they are not at their own paths: what a catalog knows,
//! in which steps a file moves so that a crash at any of them leaves a whole copy, and what is to
//! be done after a crash.
//!
//! Plain values, as everything here: whoever has a disk (or a model of one) carries the steps out,
//! and keeps the records in a file that only grows.

mod record;
mod recovery;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub use record::{decode, Decoded, Record, HEADER};
pub use recovery::{recover, settle, Fate, Look};
pub use steps::{bring_home, move_to, replacing, Step};

/// A file of the session, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u64);

/// The one current, whole copy of a file that is not at its own path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its own path: where the program thinks it is.
    pub home: PathBuf,
    /// Where it is.
    pub place: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// It is not to be kept after the session.
    pub scratch: bool,
    /// It is being changed where it is: after a crash it may be half changed.
    pub changing: bool,
    /// It is on its way to its own path, over this file beside it; none: by its name alone.
    pub leaving: Option<Option<PathBuf>>,
}

/// What the records of a catalog come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    entries: BTreeMap<FileId, Entry>,
    homes: BTreeSet<PathBuf>,
    folders: Vec<PathBuf>,
    temporaries: Vec<PathBuf>,
}

impl Catalog {
    /// What records say, in their order.
    pub fn replay(records: impl IntoIterator<Item = Record>) -> Catalog {
        let mut catalog = Catalog::default();
        records.into_iter().for_each(|record| catalog.apply(record));
        catalog
    }

    /// One more record.
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::Folder { path } => self.folders.push(path),
            Record::Copy { file, home, place, bytes, scratch } => {
                let (changing, leaving) = (false, None);
                let entry = Entry { home, place, bytes, scratch, changing, leaving };
                self.entries.insert(file, entry);
            }
            Record::Changing { file } => {
                self.entries.entry(file).and_modify(|entry| entry.changing = true);
            }
            Record::Leaving { file, temporary } => {
                self.temporaries.extend(temporary.clone());
                let temporary = Some(temporary);
                self.entries.entry(file).and_modify(|entry| entry.leaving = temporary);
            }
            Record::Home { file } => {
                self.homes.extend(self.entries.remove(&file).map(|entry| entry.home));
            }
            Record::Gone { file } => {
                self.entries.remove(&file);
            }
        }
    }

    /// The files that are not at their own paths.
    pub fn entries(&self) -> impl Iterator<Item = (FileId, &Entry)> {
        self.entries.iter().map(|(file, entry)| (*file, entry))
    }

    /// Of several versions of one file the latest, which has the highest number.
    pub fn latest(&self) -> BTreeMap<&Path, FileId> {
        self.entries().map(|(file, entry)| (entry.home.as_path(), file)).collect()
    }

    /// Whether a version of this session came to stand at an own path.
    pub fn stands(&self, home: &Path) -> bool {
        self.homes.contains(home)
    }

    /// One of them.
    pub fn get(&self, file: FileId) -> Option<&Entry> {
        self.entries.get(&file)
    }

    /// Folders that only this session uses. What lies there and is no entry's place is nobody's.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(PathBuf::as_path)
    }

    /// Files beside own paths that a crash may have left half made.
    pub fn temporaries(&self) -> impl Iterator<Item = &Path> {
        self.temporaries.iter().map(PathBuf::as_path)
    }
}
