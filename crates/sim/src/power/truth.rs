//! What is true of each file, whatever the catalog says; and whether the disks show it once
//! everything is recovered.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ops::catalog::{Catalog, Entry, Fate, Record};

use super::disk::Disks;
use super::session::FOLDER;
use crate::checkers::Fault;

/// A file as those know it who write and read it.
#[derive(Default)]
pub(super) struct File {
    pub home: PathBuf,
    pub scratch: bool,
    /// The content of every version; of the first on at the file's own path: `original`.
    pub versions: Vec<Vec<u8>>,
    pub original: bool,
    /// The last version that a task reported done.
    pub reported: Option<usize>,
    /// The version that is known to be durable at the file's own path.
    pub at_home: Option<usize>,
    /// Where its current copy may be said to be: more than one while a record is on its way.
    pub places: Vec<PathBuf>,
    /// A task is changing it in place, or failed in doing so.
    pub changing: bool,
    /// A scratch file that somebody asked to keep, and that was reported kept.
    pub asked: bool,
    pub kept: bool,
    /// The power went while its current copy may have been in memory, or its own path was.
    pub excused: bool,
    pub home_lost: bool,
    /// Recovery said that it is lost, or half changed.
    pub told_lost: bool,
    pub told_half: bool,
}

/// Something that is so from now on.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// A record is in the catalog.
    Added(Record),
    /// It was flushed.
    Flushed(Record),
    /// A task reported a version done.
    Reported(usize, usize),
    /// A scratch file is to be kept.
    Asked(usize),
    /// A scratch file was reported to be at its own path.
    Kept(usize),
}

/// All files, and those that nobody may touch.
#[derive(Default)]
pub(super) struct Truth {
    pub files: Vec<File>,
    pub others: Vec<(PathBuf, Vec<u8>)>,
}

impl File {
    fn version_of(&self, content: &[u8]) -> Option<usize> {
        self.versions.iter().position(|version| version == content)
    }

    /// Whether every byte is one that some version has there.
    fn is_mixed(&self, content: &[u8]) -> bool {
        let known = |at: usize, byte: u8| self.versions.iter().any(|v| v.get(at) == Some(&byte));
        content.iter().enumerate().all(|(at, byte)| *byte == 0 || known(at, *byte))
    }

    fn power_lost(&mut self, disks: &Disks) {
        self.excused |= self.places.iter().any(|place| disks.is_volatile(place));
        if disks.is_volatile(&self.home) {
            self.home_lost |= self.at_home.is_some() || self.places.contains(&self.home);
            self.at_home = None;
        }
    }

    fn fault(&self, content: Option<&[u8]>) -> Option<&'static str> {
        let version = content.and_then(|content| self.version_of(content));
        if self.scratch {
            return match content {
                None if self.kept && !self.excused && !self.home_lost => {
                    Some("it was kept, and is gone")
                }
                None => None,
                Some(_) if !self.asked => Some("a scratch file was left at its own path"),
                Some(_) if version.is_none() => Some("it is not whole"),
                Some(_) => None,
            };
        }
        let excused = self.excused && (self.told_lost || self.home_lost);
        match (content, version) {
            (None, _) if self.reported.is_none() || excused && self.at_home.is_none() => None,
            (None, _) => Some("it is gone"),
            (Some(_), Some(version)) if Some(version) >= self.reported => None,
            (Some(_), Some(version)) if excused && Some(version) >= self.at_home => None,
            (Some(_), Some(_)) => Some("it is an older version, and nobody said so"),
            (Some(content), None) => match self.told_half && self.is_mixed(content) {
                true => None,
                false => Some("it is not whole"),
            },
        }
    }
}

impl Truth {
    /// Notes what is so from now on.
    pub(super) fn hear(&mut self, news: &News, disks: &Disks) {
        match news {
            News::Added(record) => match record {
                Record::Copy { file, place, .. } => {
                    self.files[file.0 as usize].places.push(place.clone());
                }
                Record::Home { file } => {
                    let file = &mut self.files[file.0 as usize];
                    file.places.push(file.home.clone());
                }
                Record::Changing { file } => self.files[file.0 as usize].changing = true,
                _ => {}
            },
            News::Flushed(record) => match record {
                Record::Copy { file, place, .. } => {
                    let file = &mut self.files[file.0 as usize];
                    file.places = vec![place.clone()];
                    file.changing = false;
                }
                Record::Home { file } => {
                    let file = &mut self.files[file.0 as usize];
                    file.places = vec![file.home.clone()];
                    let content = disks.read(&file.home);
                    file.at_home = content.and_then(|content| file.version_of(content));
                }
                _ => {}
            },
            News::Reported(file, version) => self.files[*file].reported = Some(*version),
            News::Asked(file) => self.files[*file].asked = true,
            News::Kept(file) => self.files[*file].kept = true,
        }
    }

    /// The catalog as recovery read and flushed it: it is known again where every file is.
    pub(super) fn read_again(&mut self, catalog: &Catalog) {
        for (at, file) in self.files.iter_mut().enumerate() {
            let entry = catalog.get(ops::catalog::FileId(at as u64));
            let place = entry.map_or(&file.home, |entry| &entry.place);
            file.places = vec![place.clone()];
        }
    }

    /// The machine lost power.
    pub(super) fn power_lost(&mut self, disks: &Disks) {
        self.files.iter_mut().for_each(|file| file.power_lost(disks));
        self.others.retain(|(path, _)| !disks.is_volatile(path));
    }

    /// What recovery says of a file: `Err` if it is not so.
    pub(super) fn told(&mut self, at: usize, entry: &Entry, fate: Fate) -> Result<(), Fault> {
        let file = &mut self.files[at];
        let wrong = match fate {
            Fate::Lost if !file.excused && !file.scratch => "lost",
            Fate::HalfChanged if !file.changing => "half changed",
            Fate::Damaged => "damaged",
            _ => {
                file.told_lost |= fate == Fate::Lost;
                file.told_half |= fate == Fate::HalfChanged;
                return Ok(());
            }
        };
        Err(Fault::of_task("fates", at, format!("{entry:?} is said to be {wrong}")))
    }

    /// Whether the disks show what is true: nothing is missing, half, twice, or left over.
    pub(super) fn check(&self, disks: &Disks) -> Result<(), Fault> {
        let mut known: BTreeSet<_> = self.others.iter().map(|(path, _)| path.as_path()).collect();
        for (at, file) in self.files.iter().enumerate() {
            let content = disks.read(&file.home);
            if let Some(what) = file.fault(content) {
                let (home, reported) = (&file.home, file.reported);
                let version = content.map(|content| file.version_of(content));
                let what = format!(
                    "{home:?}: {what}; version {version:?} is there, {reported:?} was reported"
                );
                return Err(Fault::of_task("files", at, what));
            }
            known.insert(&file.home);
        }
        for (path, content) in &self.others {
            if disks.read(path) != Some(content) {
                return Err(Fault::new("others", format!("{path:?} was changed")));
            }
        }
        let is_known = |path: &&Path| known.contains(path);
        let mut left = disks
            .files()
            .filter(|path| !is_known(path))
            .chain(disks.folders().filter(|path| path.ends_with(FOLDER)));
        match left.next() {
            Some(path) => Err(Fault::new("strays", format!("{path:?} was left"))),
            None => Ok(()),
        }
    }
}
