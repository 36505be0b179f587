//! Files as data: one datum a file, and where on the layers its bytes are.
//!
//! A relative path names a file of the program; where it lies is the runtime's business: under
//! the folder of a layer, chosen by the grant of the task that writes it. An absolute path stays
//! what it is. If both mean the same place they are the same datum.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use sched::{DatumId, LayerId, TaskId};

use crate::shell::SessionError;
use crate::storage::LayerSpec;

/// A file that tasks use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDatum {
    /// Its datum.
    pub datum: DatumId,
    /// Whether it exists, or a task of this session writes it.
    pub known: bool,
    /// Where it is, if that is known.
    pub place: Option<PathBuf>,
}

/// Why a path cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileError {
    /// A relative path that leads out of the folder of its layer.
    Escapes {
        /// As it was given.
        path: PathBuf,
    },
    /// A path that names no file.
    Empty {
        /// As it was given.
        path: PathBuf,
    },
    /// The session cannot do anything any more.
    Session(SessionError),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Escapes { path } => write!(
                f,
                "the path {} leads out of its storage layer; give an absolute path, or one \
                 without \"..\" at its beginning",
                path.display()
            ),
            FileError::Empty { path } => {
                write!(f, "the path \"{}\" names no file", path.display())
            }
            FileError::Session(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FileError {}

/// What names a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FileKey {
    /// Below the folder of some layer.
    Relative(PathBuf),
    /// At one place.
    Real(PathBuf),
}

/// What is kept of a file.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) key: FileKey,
    /// Where its data are, or will be if a task was sent to write them.
    pub(crate) place: Option<PathBuf>,
    /// The layer of that place.
    pub(crate) layer: Option<LayerId>,
    /// A task that was submitted to write it.
    pub(crate) last_writer: Option<TaskId>,
    /// Whether some task was to write it.
    pub(crate) written: bool,
}

/// All files that the program named.
pub(crate) struct Files {
    layers: Vec<LayerSpec>,
    by_key: HashMap<FileKey, DatumId>,
    by_datum: HashMap<DatumId, File>,
}

/// The path without "." and with ".." resolved by name; `None`: it leads above its start.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut parts: Vec<OsString> = Vec::new();
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Prefix(_) | Component::RootDir => normal.push(component),
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::Normal(part) => parts.push(part.to_os_string()),
        }
    }
    normal.extend(parts);
    Some(normal)
}

/// The absolute path with symbolic links of its folder resolved, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let name = path.file_name();
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, name) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => normal(path).unwrap_or_else(|| path.to_path_buf()),
    }
}

impl Files {
    pub(crate) fn new(layers: &[LayerSpec]) -> Files {
        let mut layers = layers.to_vec();
        for layer in &mut layers {
            layer.path = layer.path.canonicalize().unwrap_or_else(|_| layer.path.clone());
        }
        Files { layers, by_key: HashMap::new(), by_datum: HashMap::new() }
    }

    pub(crate) fn get(&self, datum: DatumId) -> Option<&File> {
        self.by_datum.get(&datum)
    }

    pub(crate) fn get_mut(&mut self, datum: DatumId) -> Option<&mut File> {
        self.by_datum.get_mut(&datum)
    }

    /// What names the file of a path. Looks at the file system: not under the mutex.
    pub(crate) fn key(path: &Path) -> Result<FileKey, FileError> {
        if path.is_absolute() {
            return Ok(FileKey::Real(real(path)));
        }
        let given = || path.to_path_buf();
        let relative = normal(path).ok_or_else(|| FileError::Escapes { path: given() })?;
        if relative.as_os_str().is_empty() {
            return Err(FileError::Empty { path: given() });
        }
        Ok(FileKey::Relative(relative))
    }

    /// The layer that a place is on: the one with the longest path above it.
    pub(crate) fn layer_of(&self, place: &Path) -> Option<LayerId> {
        let above = self.layers.iter().enumerate().filter(|(_, it)| place.starts_with(&it.path));
        let longest = above.max_by_key(|(_, layer)| layer.path.components().count());
        longest.map(|(number, _)| LayerId(number as u32))
    }

    /// The place of a file on a layer.
    pub(crate) fn place_on(&self, key: &FileKey, layer: Option<LayerId>) -> PathBuf {
        match key {
            FileKey::Real(path) => path.clone(),
            FileKey::Relative(path) => {
                // Without a grant (compute tasks): the first layer of the description.
                let layer = layer.map_or(0, |layer| layer.0 as usize);
                self.layers[layer].path.join(path)
            }
        }
    }

    /// The datum of a file, if it has one.
    pub(crate) fn find(&self, key: &FileKey) -> Option<DatumId> {
        if let Some(datum) = self.by_key.get(key) {
            return Some(*datum);
        }
        match key {
            FileKey::Real(path) => self.layers.iter().find_map(|layer| {
                let relative = path.strip_prefix(&layer.path).ok()?.to_path_buf();
                let datum = *self.by_key.get(&FileKey::Relative(relative))?;
                let place = self.by_datum[&datum].place.as_ref();
                place.is_none_or(|place| place == path).then_some(datum)
            }),
            FileKey::Relative(path) => self
                .layers
                .iter()
                .find_map(|layer| self.by_key.get(&FileKey::Real(layer.path.join(path))).copied()),
        }
    }

    /// Where a file is that no task has written yet. Looks at the file system.
    pub(crate) fn look_for(layers: &[LayerSpec], key: &FileKey) -> Option<PathBuf> {
        match key {
            FileKey::Real(path) => path.exists().then(|| path.clone()),
            FileKey::Relative(path) => {
                let places = layers.iter().map(|layer| layer.path.join(path));
                places.into_iter().find(|place| place.exists())
            }
        }
    }

    pub(crate) fn layers(&self) -> &[LayerSpec] {
        &self.layers
    }

    /// Adds a file.
    pub(crate) fn add(&mut self, datum: DatumId, key: FileKey, found: Option<PathBuf>) {
        let place = match &key {
            FileKey::Real(path) => Some(path.clone()),
            FileKey::Relative(_) => found,
        };
        let layer = place.as_ref().and_then(|place| self.layer_of(place));
        self.by_key.insert(key.clone(), datum);
        let file = File { key, place, layer, last_writer: None, written: false };
        self.by_datum.insert(datum, file);
    }

    /// Drops a file.
    pub(crate) fn remove(&mut self, datum: DatumId) {
        if let Some(file) = self.by_datum.remove(&datum) {
            self.by_key.remove(&file.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_normal() {
        let key = |path: &str| Files::key(Path::new(path));
        assert_eq!(key("a/./b/../c"), Ok(FileKey::Relative("a/c".into())));
        assert!(matches!(key("../c"), Err(FileError::Escapes { .. })));
        assert!(matches!(key("a/../../c"), Err(FileError::Escapes { .. })));
        assert!(matches!(key("a/.."), Err(FileError::Empty { .. })));
        assert_eq!(key("/no/such/folder/../x"), Ok(FileKey::Real("/no/such/x".into())));
    }

    #[test]
    fn the_same_place_is_the_same_file() {
        let storage = crate::storage::Storage::default();
        let folder = storage.layers[0].path.canonicalize().unwrap();
        let mut files = Files::new(&storage.layers);
        let (one, two) = (DatumId::from_bits(1), DatumId::from_bits(2));
        files.add(one, FileKey::Relative("out/x".into()), None);
        assert_eq!(files.find(&FileKey::Real(folder.join("out/x"))), Some(one));
        files.add(two, FileKey::Real(folder.join("y")), None);
        assert_eq!(files.find(&FileKey::Relative("y".into())), Some(two));
        assert_eq!(files.layer_of(&folder.join("y")), Some(LayerId(0)));
        assert_eq!(files.layer_of(Path::new("/")), None);
        files.remove(two);
        assert_eq!(files.find(&FileKey::Relative("y".into())), None);
    }
}
