//! From a path that the program names to a file of the table, the same for every driver.

use std::path::{Path, PathBuf};

use sched::DatumId;

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
}

impl Named {
    /// Looks at the file system: not under a mutex.
    pub(crate) fn look(path: &Path) -> Result<Named, FileError> {
        let key = Files::key(path)?;
        let is = key.home.metadata().ok().map(|found| match found.is_dir() {
            true => PathKind::Directory,
            false => PathKind::File,
        });
        let is_empty = is == Some(PathKind::Directory) && tree::is_empty(&key.home);
        Ok(Named { path: path.to_path_buf(), key, is, is_empty })
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
