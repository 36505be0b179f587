//! Files as data: one datum a file, and where on the layers its bytes are.
//!
//! What names a file is its own path, without links and "..". Where its bytes are is the runtime's
//! business while the session lives: a task that writes it whole is given a place on the layer of
//! its grant. A file outside all layers that was named by an absolute path stays where it is.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use ops::catalog::{bring_home, replacing, Entry, FileId, Record, Step};
use sched::{DatumId, DatumKind, Direction, LayerId, Sched, TaskId, Way};

use crate::shell::SessionError;
use crate::storage::LayerSpec;
use crate::tiers::Staging;

/// A file that tasks use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDatum {
    /// Its datum.
    pub datum: DatumId,
    /// Whether it exists, or a task of this session writes it.
    pub known: bool,
    /// Where it is.
    pub place: PathBuf,
    /// What was named is below this directory, under this path; empty: it is what was named.
    pub inside: PathBuf,
    /// Nothing is there that the tasks of this session did not make.
    pub anew: bool,
}

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A file.
    File,
    /// A directory with all that is in it.
    Directory,
}

/// Which way the bytes of a task go that uses files so. Without files nobody knows.
pub(crate) fn way(uses: impl Iterator<Item = Direction>) -> Way {
    let (mut reads, mut writes) = (false, false);
    for direction in uses {
        reads |= direction.reads();
        writes |= direction.writes();
    }
    match (reads, writes) {
        (true, false) => Way::Read,
        (false, true) => Way::Write,
        _ => Way::Both,
    }
}

/// Why a path cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileError {
    /// A path that names no file.
    Empty {
        /// As it was given.
        path: PathBuf,
    },
    /// It is of another kind than the task says.
    Kind {
        /// As it was given.
        path: PathBuf,
        /// What it is.
        is: PathKind,
    },
    /// Tasks use a directory, and a file in it, as two things.
    Overlaps {
        /// As it was given.
        path: PathBuf,
        /// The other.
        other: PathBuf,
    },
    /// Files cannot be kept on several layers.
    Staging(String),
    /// The session cannot do anything any more.
    Session(SessionError),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Empty { path } => {
                write!(f, "the path \"{}\" names no file", path.display())
            }
            FileError::Kind { path, is } => {
                let (is, other) = match is {
                    PathKind::File => ("a file", "a directory"),
                    PathKind::Directory => ("a directory", "a file"),
                };
                write!(f, "{} is {is}, and the task takes {other}", path.display())
            }
            FileError::Overlaps { path, other } => write!(
                f,
                "{} and {} lie in one another, and one of them is used as a directory: what is in \
                 it is written as a part of it",
                path.display(),
                other.display()
            ),
            FileError::Staging(text) => f.write_str(text),
            FileError::Session(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FileError {}

/// One copy of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    /// Where it is.
    pub(crate) place: PathBuf,
    /// The layer of that place.
    pub(crate) layer: Option<LayerId>,
    /// Its number in the catalog; none: it is the file at its own path.
    pub(crate) staged: Option<FileId>,
    /// Its length, as far as it is known.
    pub(crate) bytes: u64,
}

/// What is kept of a file.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Its own path.
    pub(crate) home: PathBuf,
    pub(crate) kind: PathKind,
    pub(crate) home_layer: Option<LayerId>,
    /// Whether tasks may write it elsewhere.
    pub(crate) managed: bool,
    /// It is not to be kept after the session.
    pub(crate) scratch: bool,
    /// The length of what is at its own path, as far as it is known.
    pub(crate) home_bytes: u64,
    /// The scheduler was told where it is, and counts its bytes there.
    pub(crate) counted: bool,
    /// The current version, if it is not at its own path.
    pub(crate) current: Option<Copy>,
    /// A task changes it where it is, or failed at that.
    pub(crate) changing: bool,
    /// What a task was sent to write.
    pub(crate) next: Option<(TaskId, Copy)>,
    /// Another copy of the current version on a faster layer, to be read.
    pub(crate) near: Option<Copy>,
    /// Copies that moves left behind, which tasks may still read.
    pub(crate) stale: Vec<Copy>,
    /// A task that was submitted to write it.
    pub(crate) last_writer: Option<TaskId>,
    /// Whether some task was to write it.
    pub(crate) written: bool,
    /// A whole version stands at its own path, or did: it is not written over in place, or a crash
    /// would leave neither that nor the new one.
    pub(crate) stands: bool,
    /// A directory: nothing is at its own path that tasks did not make.
    pub(crate) anew: bool,
    /// Tasks that use it and are not over.
    pub(crate) users: u32,
    /// The program cannot name it any more.
    pub(crate) forgotten: bool,
    /// What the catalog knows it by while a task changes it at its own path, or failed at that.
    pub(crate) in_place: Option<FileId>,
}

impl File {
    /// Where it is at its own path.
    pub(crate) fn at_home(&self) -> Copy {
        let (place, layer) = (self.home.clone(), self.home_layer);
        Copy { place, layer, staged: None, bytes: self.home_bytes }
    }

    /// What the catalog knows of a copy that is whole.
    pub(crate) fn entry(&self, copy: &Copy) -> Entry {
        Entry {
            home: self.home.clone(),
            place: copy.place.clone(),
            bytes: copy.bytes,
            scratch: self.scratch,
            changing: false,
            leaving: None,
        }
    }

    /// The steps that bring a copy to the file's own path; `over` as for
    /// [`bring_home`](ops::catalog::bring_home).
    pub(crate) fn steps_home(&self, copy: &Copy, over: Option<&Path>) -> Vec<Step> {
        let Some(number) = copy.staged else { return Vec::new() };
        let steps = bring_home(number, &self.entry(copy), over);
        match self.kind == PathKind::Directory && self.stands {
            true => replacing(steps),
            false => steps,
        }
    }

    /// The current version, where it is quickest to read.
    pub(crate) fn best(&self) -> Copy {
        let staged = self.near.as_ref().or(self.current.as_ref());
        staged.cloned().unwrap_or_else(|| self.at_home())
    }
}

/// A datum for a file.
pub(crate) fn new_file(sched: &mut Sched) -> DatumId {
    sched.add_datum(DatumKind::InPlace, None).expect("it has no version that could be stale")
}

/// All files that the program named.
pub(crate) struct Files {
    layers: Vec<LayerSpec>,
    by_home: HashMap<PathBuf, DatumId>,
    by_datum: HashMap<DatumId, File>,
    /// Where copies go; none: nothing is written away from its own path.
    pub(crate) staging: Option<Staging>,
}

/// What names a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileKey {
    /// Its own path.
    pub(crate) home: PathBuf,
    /// It was named without a folder to begin at.
    pub(crate) relative: bool,
}

/// The path without "." and with ".." resolved by name.
fn normal(path: &Path) -> PathBuf {
    let mut parts: Vec<OsString> = Vec::new();
    for component in path.components() {
        match component {
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(part) => parts.push(part.to_os_string()),
        }
    }
    let mut normal = PathBuf::from("/");
    normal.extend(parts);
    normal
}

/// So many links to what does not exist are followed, as many as the system does.
const LINKS_MAX: usize = 40;

/// The absolute path with symbolic links resolved, also those to what does not exist yet: it is the
/// same file before a task makes it and after.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let mut path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for _ in 0..LINKS_MAX {
        // The longest part that exists is resolved by the system, the rest by name.
        let mut above = path.ancestors();
        let found = above.find_map(|above| Some((above, above.canonicalize().ok()?)));
        let Some((above, real)) = found else { break };
        let mut rest = path.strip_prefix(above).unwrap_or(Path::new("")).components();
        let whole = real.join(rest.as_path());
        let link = rest.next().and_then(|first| real.join(first).read_link().ok());
        let Some(target) = link else { return normal(&whole) };
        path = real.join(target).join(rest.as_path());
    }
    normal(&path)
}

impl Files {
    pub(crate) fn new(layers: &[LayerSpec]) -> Files {
        let mut layers = layers.to_vec();
        for layer in &mut layers {
            layer.path = layer.path.canonicalize().unwrap_or_else(|_| layer.path.clone());
        }
        Files { layers, by_home: HashMap::new(), by_datum: HashMap::new(), staging: None }
    }

    pub(crate) fn get(&self, datum: DatumId) -> Option<&File> {
        self.by_datum.get(&datum)
    }

    pub(crate) fn get_mut(&mut self, datum: DatumId) -> Option<&mut File> {
        self.by_datum.get_mut(&datum)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (DatumId, &File)> {
        self.by_datum.iter().map(|(datum, file)| (*datum, file))
    }

    /// What names the file of a path. Looks at the file system: not under the mutex.
    pub(crate) fn key(path: &Path) -> Result<FileKey, FileError> {
        let names = path.components().any(|part| matches!(part, Component::Normal(_)));
        if !names {
            return Err(FileError::Empty { path: path.to_path_buf() });
        }
        Ok(FileKey { home: real(path), relative: path.is_relative() })
    }

    /// The layer that a place is on: the one with the longest path above it.
    pub(crate) fn layer_of(&self, place: &Path) -> Option<LayerId> {
        let above = self.layers.iter().enumerate().filter(|(_, it)| place.starts_with(&it.path));
        let longest = above.max_by_key(|(_, layer)| layer.path.components().count());
        longest.map(|(number, _)| LayerId(number as u32))
    }

    /// Whether tasks may write a file elsewhere than at its own path.
    pub(crate) fn is_managed(&self, key: &FileKey) -> bool {
        let home = self.layer_of(&key.home);
        let elsewhere = |number| home != Some(LayerId(number as u32));
        (key.relative || home.is_some()) && (0..self.layers.len()).any(elsewhere)
    }

    /// Whether a path is in a folder of the session: nobody asked for it.
    fn is_scratch(&self, home: &Path) -> bool {
        let own = self.staging.iter().flat_map(Staging::folders).flatten();
        home.parent().is_some_and(|above| own.into_iter().any(|folder| folder == above))
    }

    /// A path for a file that goes with the session, on the layer that is granted last.
    pub(crate) fn scratch(&mut self, name: &Path) -> Option<PathBuf> {
        let staging = self.staging.as_mut()?;
        let usable = (0..self.layers.len()).filter(|layer| staging.folders()[*layer].is_some());
        let slowest =
            usable.min_by_key(|layer| self.layers[*layer].least_bandwidth().unwrap_or(0))?;
        Some(staging.place(slowest, name)?.1)
    }

    /// The datum of the file with this own path, if it has one.
    pub(crate) fn of_home(&self, home: &Path) -> Option<DatumId> {
        self.by_home.get(home).copied()
    }

    /// The datum of a file, if it has one.
    pub(crate) fn find(&self, key: &FileKey) -> Option<DatumId> {
        self.of_home(&key.home)
    }

    /// The directory that tasks use and a path lies in, and where in it.
    pub(crate) fn above<'a>(&self, key: &'a FileKey) -> Option<(DatumId, &'a Path)> {
        key.home.ancestors().skip(1).find_map(|above| {
            let datum = *self.by_home.get(above)?;
            let directory = self.by_datum[&datum].kind == PathKind::Directory;
            directory.then(|| (datum, key.home.strip_prefix(above).expect("it is above")))
        })
    }

    /// A file or directory that tasks use and that lies in a directory.
    pub(crate) fn below(&self, key: &FileKey) -> Option<&Path> {
        let below = |home: &&PathBuf| **home != key.home && home.starts_with(&key.home);
        self.by_home.keys().find(below).map(PathBuf::as_path)
    }

    pub(crate) fn layers(&self) -> &[LayerSpec] {
        &self.layers
    }

    /// Adds a file.
    pub(crate) fn add(&mut self, datum: DatumId, key: &FileKey, kind: PathKind) {
        let home = key.home.clone();
        self.by_home.insert(home.clone(), datum);
        let file = File {
            home_layer: self.layer_of(&home),
            managed: self.is_managed(key),
            scratch: self.is_scratch(&home),
            home,
            home_bytes: 0,
            counted: false,
            current: None,
            changing: false,
            next: None,
            near: None,
            stale: Vec::new(),
            last_writer: None,
            written: false,
            stands: false,
            anew: false,
            users: 0,
            forgotten: false,
            kind,
            in_place: None,
        };
        self.by_datum.insert(datum, file);
    }

    /// The place that a task is to write a file to, on the layer of its grant (none: a compute
    /// task).
    pub(crate) fn place_for(&mut self, datum: DatumId, layer: Option<LayerId>) -> Option<Copy> {
        let file = self.by_datum.get(&datum)?;
        let layer = layer.or(file.home_layer.filter(|_| file.stands));
        let away = |layer: &LayerId| file.stands || file.home_layer != Some(*layer);
        let staged = layer.filter(|layer| file.managed && away(layer));
        let staged = staged.and_then(|layer| {
            let staging = self.staging.as_mut()?;
            let (number, place) = staging.place(layer.0 as usize, &file.home)?;
            Some(Copy { place, layer: Some(layer), staged: Some(number), bytes: 0 })
        });
        Some(staged.unwrap_or_else(|| file.at_home()))
    }

    /// What the catalog is told of a directory that was made at its own path: whoever recovers may
    /// replace it by a later version.
    pub(crate) fn stands_now(&mut self, datum: DatumId) -> Vec<Record> {
        let Some(File { home, scratch, .. }) = self.by_datum.get(&datum) else { return Vec::new() };
        let Some(staging) = &mut self.staging else { return Vec::new() };
        let file = staging.number();
        let (place, bytes, scratch) = (home.clone(), 0, *scratch);
        let home = home.clone();
        vec![Record::Copy { file, home, place, bytes, scratch }, Record::Home { file }]
    }

    /// What the catalog is told before a task changes a file where it is.
    pub(crate) fn begin_change(&mut self, datum: DatumId) -> Vec<Record> {
        let Some(file) = self.by_datum.get_mut(&datum) else { return Vec::new() };
        if let Some(copy) = &file.current {
            file.changing = true;
            return copy.staged.map(|file| Record::Changing { file }).into_iter().collect();
        }
        let (true, None, Some(staging)) = (file.managed, file.in_place, &mut self.staging) else {
            return Vec::new();
        };
        // A copy that is at its own path: there is nothing to be moved, only to be told of.
        let number = staging.number();
        file.in_place = Some(number);
        let (home, place) = (file.home.clone(), file.home.clone());
        let scratch = file.scratch;
        vec![
            Record::Copy { file: number, home, place, bytes: 0, scratch },
            Record::Changing { file: number },
        ]
    }

    /// A file gets a new datum: what the graph knew of the old one is forgotten.
    pub(crate) fn renew(&mut self, old: DatumId, new: DatumId) {
        let Some(mut file) = self.by_datum.remove(&old) else { return };
        self.by_home.insert(file.home.clone(), new);
        file.written = file.current.is_some();
        self.by_datum.insert(new, file);
    }

    /// Drops a file; what was kept of it.
    pub(crate) fn remove(&mut self, datum: DatumId) -> Option<File> {
        let file = self.by_datum.remove(&datum)?;
        self.by_home.remove(&file.home);
        Some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_real_paths() {
        let key = |path: &str| Files::key(Path::new(path)).map(|key| (key.home, key.relative));
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(key("a/./b/../c"), Ok((here.join("a/c"), true)));
        assert_eq!(key("../c"), Ok((here.parent().unwrap().join("c"), true)));
        assert!(matches!(key("/.."), Err(FileError::Empty { .. })));
        assert!(matches!(key(""), Err(FileError::Empty { .. })));
        assert_eq!(key("/no/such/folder/../x"), Ok(("/no/such/x".into(), false)));
    }

    #[test]
    fn links_lead_to_the_same_file() {
        let folder = std::env::temp_dir().join(format!("alongside-links-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("real")).unwrap();
        std::os::unix::fs::symlink(folder.join("real"), folder.join("link")).unwrap();
        std::fs::write(folder.join("real/x"), b"").unwrap();
        std::os::unix::fs::symlink("x", folder.join("real/y")).unwrap();
        let home = |name: &str| Files::key(&folder.join(name)).unwrap().home;
        assert_eq!(home("link/x"), home("real/x"));
        assert_eq!(home("real/y"), home("real/x"), "the last part too");
        assert_eq!(home("link/new/z"), home("real/new/z"));
        for (link, target) in [("latest", "next"), ("next", "link/run/7"), ("on", "real/gone")] {
            std::os::unix::fs::symlink(target, folder.join(link)).unwrap();
        }
        assert_eq!(home("latest"), home("real/run/7"), "before it is there");
        assert_eq!(home("on/../below"), home("real/below"));
        assert_eq!(home("on/below"), home("real/gone/below"));
        std::fs::create_dir(folder.join("real/run")).unwrap();
        std::fs::write(folder.join("real/run/7"), b"").unwrap();
        assert_eq!(home("latest"), home("real/run/7"), "and after");
        std::os::unix::fs::symlink("round", folder.join("round")).unwrap();
        assert_eq!(home("round"), home("./round"), "it leads nowhere");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_same_place_is_the_same_file() {
        let storage = crate::storage::Storage::default();
        let folder = storage.layers[0].path.canonicalize().unwrap();
        let mut files = Files::new(&storage.layers);
        let one = DatumId::from_bits(1);
        let key = Files::key(Path::new("out/x")).unwrap();
        files.add(one, &key, PathKind::File);
        assert_eq!(files.find(&Files::key(&folder.join("out/x")).unwrap()), Some(one));
        assert_eq!(files.layer_of(&folder.join("y")), Some(LayerId(0)));
        assert_eq!(files.layer_of(Path::new("/")), None);
        assert!(!files.get(one).unwrap().managed, "there is one layer, and it is there");
        files.remove(one);
        assert_eq!(files.find(&key), None);
    }
}
