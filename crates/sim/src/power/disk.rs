//! File systems that keep apart what programs see and what would survive a loss of power.
//!
//! A file's content is durable once the file was flushed; a name (made, renamed, deleted, also
//! that of a folder) once the folder that it is in was. At a loss of power each change of a name
//! that is not durable survives or does not, by itself, in no order: that is harsher than ext4,
//! which keeps an order, but it is all that POSIX promises. A rename is one change, in whichever
//! of its two folders it was flushed. A file that was not flushed is cut anywhere, may have a
//! hole of zeros, and what was written over older bytes is a mix of both. A volatile file system
//! (memory) loses everything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fastrand::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File(usize),
}

#[derive(Default)]
struct Content {
    seen: Vec<u8>,
    durable: Vec<u8>,
}

enum Change {
    Add(PathBuf, Node),
    Take(PathBuf),
    Rename(PathBuf, PathBuf, Node),
}

type Names = BTreeMap<PathBuf, Node>;

struct FileSystem {
    root: PathBuf,
    volatile: bool,
    seen: Names,
    durable: Names,
    /// What was changed since `durable`, in order, and whether it was flushed.
    pending: Vec<(Change, bool)>,
}

/// All file systems of a machine.
pub(super) struct Disks {
    systems: Vec<FileSystem>,
    contents: Vec<Content>,
}

/// Why something could not be done.
pub(super) type Failed = String;

fn folder_of(path: &Path) -> &Path {
    path.parent().expect("no file system is at the root")
}

impl Change {
    fn touches(&self, folder: &Path) -> bool {
        match self {
            Change::Add(path, _) | Change::Take(path) => folder_of(path) == folder,
            Change::Rename(from, to, _) => folder_of(from) == folder || folder_of(to) == folder,
        }
    }

    /// Makes the change where its folder is (`root` always is).
    fn apply(&self, root: &Path, names: &mut Names) {
        let is_there = |names: &Names, path: &Path| {
            let folder = folder_of(path);
            folder == root || names.get(folder) == Some(&Node::Folder)
        };
        match self {
            Change::Add(path, node) => {
                if is_there(names, path) {
                    names.insert(path.clone(), *node);
                }
            }
            Change::Take(path) => {
                let mut below = names.range(path.clone()..).skip(1);
                if !below.next().is_some_and(|(next, _)| next.starts_with(path)) {
                    names.remove(path);
                }
            }
            Change::Rename(from, to, node) => {
                if is_there(names, to) {
                    names.remove(from);
                    names.insert(to.clone(), *node);
                }
            }
        }
    }
}

impl FileSystem {
    fn change(&mut self, change: Change) {
        change.apply(&self.root, &mut self.seen);
        self.pending.push((change, false));
    }

    fn flush_folder(&mut self, folder: &Path) {
        for (change, flushed) in &mut self.pending {
            *flushed |= change.touches(folder);
        }
        let settled = self.pending.iter().take_while(|(_, flushed)| *flushed).count();
        for (change, _) in self.pending.drain(..settled) {
            change.apply(&self.root, &mut self.durable);
        }
    }

    fn lose_power(&mut self, rng: &mut Rng) {
        if self.volatile {
            self.seen.clear();
            self.durable.clear();
            self.pending.clear();
            return;
        }
        // None, all up to one, or any.
        let habit = rng.u8(0..4);
        let kept = rng.usize(0..=self.pending.len());
        for (at, (change, flushed)) in self.pending.drain(..).enumerate() {
            let survives = match habit {
                0 => false,
                1 => at < kept,
                _ => rng.bool(),
            };
            if flushed || survives {
                change.apply(&self.root, &mut self.durable);
            }
        }
        self.seen = self.durable.clone();
    }
}

/// What a file that was not flushed may be after a loss of power.
fn torn(seen: &[u8], durable: &[u8], rng: &mut Rng) -> Vec<u8> {
    let common = seen.iter().zip(durable).take_while(|(a, b)| a == b).count();
    let (least, most) = (seen.len().min(durable.len()), seen.len().max(durable.len()));
    // What was only appended to, or only cut, has all of the shorter; else it was cut to nothing.
    let least = if common == least { least } else { 0 };
    let length = rng.usize(least..=most);
    let mut bytes = Vec::with_capacity(length);
    for at in 0..length {
        bytes.push(match (seen.get(at), durable.get(at)) {
            (Some(new), Some(old)) => *if rng.bool() { new } else { old },
            (Some(one), None) | (None, Some(one)) => *one,
            (None, None) => 0,
        });
    }
    // The length may be durable before the bytes: a hole of zeros.
    if rng.u8(0..4) == 0 {
        let from = rng.usize(least.min(length)..=length);
        let to = rng.usize(from..=length);
        bytes[from..to].fill(0);
    }
    bytes
}

impl Disks {
    /// File systems with these roots; `true`: volatile.
    pub(super) fn new(systems: impl IntoIterator<Item = (PathBuf, bool)>) -> Disks {
        let system = |(root, volatile)| FileSystem {
            root,
            volatile,
            seen: Names::new(),
            durable: Names::new(),
            pending: Vec::new(),
        };
        Disks { systems: systems.into_iter().map(system).collect(), contents: Vec::new() }
    }

    fn system(&self, path: &Path) -> usize {
        let on = |system: &FileSystem| path.starts_with(&system.root);
        self.systems.iter().position(on).expect("every path is on a file system of the model")
    }

    fn node(&self, path: &Path) -> Option<Node> {
        let system = &self.systems[self.system(path)];
        if path == system.root {
            return Some(Node::Folder);
        }
        system.seen.get(path).copied()
    }

    fn file(&self, path: &Path) -> Result<usize, Failed> {
        match self.node(path) {
            Some(Node::File(file)) => Ok(file),
            _ => Err(format!("there is no file {path:?}")),
        }
    }

    fn change(&mut self, path: &Path, change: Change) {
        let system = self.system(path);
        self.systems[system].change(change);
    }

    /// The root of the file system that a path is on.
    pub(super) fn root(&self, path: &Path) -> &Path {
        &self.systems[self.system(path)].root
    }

    /// Whether a path is on a file system that does not survive a loss of power.
    pub(super) fn is_volatile(&self, path: &Path) -> bool {
        self.systems[self.system(path)].volatile
    }

    /// What a file has; `None`: there is none.
    pub(super) fn read(&self, path: &Path) -> Option<&[u8]> {
        self.file(path).ok().map(|file| self.contents[file].seen.as_slice())
    }

    pub(super) fn has_folder(&self, path: &Path) -> bool {
        self.node(path) == Some(Node::Folder)
    }

    /// The names in a folder.
    pub(super) fn list(&self, folder: &Path) -> Vec<PathBuf> {
        let names = &self.systems[self.system(folder)].seen;
        let below = names.range(folder.to_path_buf()..).map(|(path, _)| path);
        let below = below.take_while(|path| path.starts_with(folder));
        below.filter(|path| path.parent() == Some(folder)).cloned().collect()
    }

    fn names(&self, folders: bool) -> impl Iterator<Item = &Path> {
        let names = self.systems.iter().flat_map(|system| &system.seen);
        let names = names.filter(move |(_, node)| (**node == Node::Folder) == folders);
        names.map(|(path, _)| path.as_path())
    }

    /// Every file.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.names(false)
    }

    /// Every folder.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.names(true)
    }

    /// Makes a folder; it may be there.
    pub(super) fn make_folder(&mut self, path: &Path) -> Result<(), Failed> {
        if !self.has_folder(folder_of(path)) {
            return Err(format!("there is no folder for {path:?}"));
        }
        if self.node(path).is_none() {
            self.change(path, Change::Add(path.to_path_buf(), Node::Folder));
        }
        Ok(())
    }

    /// An empty file; one that is there is emptied.
    pub(super) fn create(&mut self, path: &Path) -> Result<(), Failed> {
        if let Ok(file) = self.file(path) {
            self.contents[file].seen.clear();
            return Ok(());
        }
        if !self.has_folder(folder_of(path)) {
            return Err(format!("there is no folder for {path:?}"));
        }
        self.contents.push(Content::default());
        let node = Node::File(self.contents.len() - 1);
        self.change(path, Change::Add(path.to_path_buf(), node));
        Ok(())
    }

    /// Writes bytes somewhere in a file, or behind its end.
    pub(super) fn write(&mut self, path: &Path, at: usize, bytes: &[u8]) -> Result<(), Failed> {
        let file = self.file(path)?;
        let seen = &mut self.contents[file].seen;
        seen.resize(seen.len().max(at + bytes.len()), 0);
        seen[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// Writes bytes behind the end of a file.
    pub(super) fn append(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Failed> {
        let file = self.file(path)?;
        self.contents[file].seen.extend(bytes);
        Ok(())
    }

    /// Cuts a file off.
    pub(super) fn cut(&mut self, path: &Path, length: usize) -> Result<(), Failed> {
        let file = self.file(path)?;
        self.contents[file].seen.truncate(length);
        Ok(())
    }

    /// Makes the content of a file durable.
    pub(super) fn flush(&mut self, path: &Path) -> Result<(), Failed> {
        let file = self.file(path)?;
        let content = &mut self.contents[file];
        content.durable.clone_from(&content.seen);
        Ok(())
    }

    /// Makes the names in a folder durable.
    pub(super) fn flush_folder(&mut self, folder: &Path) -> Result<(), Failed> {
        if !self.has_folder(folder) {
            return Err(format!("there is no folder {folder:?}"));
        }
        let system = self.system(folder);
        self.systems[system].flush_folder(folder);
        Ok(())
    }

    /// Gives a file another name, in place of the one that had it.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<(), Failed> {
        let file = self.file(from)?;
        if !self.has_folder(folder_of(to)) || self.system(from) != self.system(to) {
            return Err(format!("{from:?} cannot become {to:?}"));
        }
        let change = Change::Rename(from.to_path_buf(), to.to_path_buf(), Node::File(file));
        self.change(from, change);
        Ok(())
    }

    /// Deletes a file or an empty folder; it may be missing.
    pub(super) fn remove(&mut self, path: &Path) -> Result<(), Failed> {
        if self.has_folder(path) && !self.list(path).is_empty() {
            return Err(format!("{path:?} is not empty"));
        }
        if self.node(path).is_some() {
            self.change(path, Change::Take(path.to_path_buf()));
        }
        Ok(())
    }

    /// The machine stops, and is started again.
    pub(super) fn lose_power(&mut self, rng: &mut Rng) {
        self.systems.iter_mut().for_each(|system| system.lose_power(rng));
        for content in &mut self.contents {
            if content.seen != content.durable {
                content.durable = torn(&content.seen, &content.durable, rng);
                content.seen.clone_from(&content.durable);
            }
        }
    }
}
