//! From a path that the program names to a file of the table, the same for every driver.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use sched::{DatumId, Event};

use crate::files::{FileDatum, FileError, FileKey, Files, PathKind};
use crate::tiers::tree;

/// A path, as the file system has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// As it was given.
    path: PathBuf,
    key: FileKey,
    /// What is at its own path.
    is: Option<PathKind>,
    /// That is a directory with nothing in it, which a task may fill.
    is_empty: bool,
    /// The length of what is there, if it is a file.
    bytes: u64,
}

impl Named {
    /// Looks at the file system: not under a mutex.
    pub(crate) fn look(path: &Path) -> Result<Named, FileError> {
        let key = Files::key(path)?;
        let found = key.home.metadata().ok();
        let is = found.as_ref().map(|found| match found.is_dir() {
            true => PathKind::Directory,
            false => PathKind::File,
        });
        let bytes = found.filter(Metadata::is_file).map_or(0, |found| found.len());
        let is_empty = is == Some(PathKind::Directory) && tree::is_empty(&key.home);
        Ok(Named { path: path.to_path_buf(), key, is, is_empty, bytes })
    }

    pub(crate) fn key(&self) -> &FileKey {
        &self.key
    }

    /// Something is at its own path.
    pub(crate) fn exists(&self) -> bool {
        self.is.is_some()
    }
}

impl Files {
    /// The file of a path of a kind (none: of either), to be read or written; made with a `new`
    /// datum if it has none.
    pub(crate) fn name(
        &mut self,
        named: &Named,
        kind: Option<PathKind>,
        writes: bool,
        new: impl FnOnce() -> DatumId,
    ) -> Result<FileDatum, FileError> {
        let (datum, inside) = self.datum_of(named, kind, writes, new)?;
        let exists = named.exists();
        let empty = kind == Some(PathKind::Directory) && named.is_empty;
        let file = self.get_mut(datum).expect("just found or made");
        // What a task is writing there now may be only half of it.
        if !file.written && inside.as_os_str().is_empty() {
            file.stands |= exists && !empty;
            file.anew = !exists || empty;
        }
        let (known, place, anew) = (file.written || exists, file.best().place, file.anew);
        Ok(FileDatum { datum, known, place, inside, anew })
    }

    /// What the scheduler is told of a file that a task is to read and no task wrote, so that it
    /// can be copied up. Not of directories: how much is in them would have to be looked at each
    /// time.
    pub(crate) fn found(&mut self, named: &Named, datum: DatumId) -> Option<Event> {
        let file = self.get_mut(datum).filter(|file| file.managed && !file.written)?;
        let is_here = file.kind == PathKind::File && named.bytes > 0 && file.home == named.key.home;
        let (layer, bytes) = (file.home_layer.filter(|_| is_here)?, named.bytes);
        file.home_bytes = bytes;
        Some(Event::FileFound { datum, layer, bytes })
    }

    /// The datum of a path, made if it has none, and where in it the path leads.
    fn datum_of(
        &mut self,
        named: &Named,
        kind: Option<PathKind>,
        writes: bool,
        new: impl FnOnce() -> DatumId,
    ) -> Result<(DatumId, PathBuf), FileError> {
        let Named { path, key, is, .. } = named;
        let other_kind = |is| FileError::Kind { path: path.clone(), is };
        let fits = |is: PathKind| kind.is_none_or(|kind| kind == is);
        if let Some(datum) = self.find(key) {
            let known = self.get(datum).expect("just found").kind;
            return match fits(known) {
                true => Ok((datum, PathBuf::new())),
                false => Err(other_kind(known)),
            };
        }
        let overlaps = |other: &Path| {
            let (path, other) = (path.clone(), other.to_path_buf());
            Err(FileError::Overlaps { path, other })
        };
        if let Some((datum, inside)) = self.above(key) {
            let above = &self.get(datum).expect("just found").home;
            return match writes || kind == Some(PathKind::Directory) {
                true => overlaps(above),
                false => Ok((datum, inside.to_path_buf())),
            };
        }
        if let Some(is) = is.filter(|is| !fits(*is)) {
            return Err(other_kind(is));
        }
        let kind = kind.or(*is).unwrap_or(PathKind::File);
        if let (PathKind::Directory, Some(other)) = (kind, self.below(key)) {
            return overlaps(other);
        }
        let datum = new();
        self.add(datum, key, kind);
        Ok((datum, PathBuf::new()))
    }
}
