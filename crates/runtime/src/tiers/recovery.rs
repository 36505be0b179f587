//! After a crash: what a session left, and how it is finished or undone.

use std::io;
use std::path::{Path, PathBuf};

use ops::catalog::{recover as fates, replacing, settle, Catalog, Entry, Fate, FileId};
use parking_lot::Mutex;

use super::disk::{same_device, sync_folder, Carrier};
use super::{disk, journal, temporary, tree, Hold, Journal, Limits};

/// A file that is not at its own path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its own path.
    pub home: PathBuf,
    /// Where it is.
    pub place: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// It is not to be kept.
    pub scratch: bool,
    /// It is there, as long as it should be.
    pub whole: bool,
}

/// A session that has files away from their own paths, or had some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its folder.
    pub folder: PathBuf,
    /// It still runs.
    pub alive: bool,
    /// The files.
    pub files: Vec<Listed>,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Its own path.
    pub home: PathBuf,
    /// Where it was.
    pub place: PathBuf,
    /// What was to be done.
    pub fate: Fate,
    /// Why it could not be done.
    pub error: Option<String>,
}

/// What the sessions whose folders are below a working directory left, oldest first.
///
/// # Errors
/// A folder or a catalog cannot be read.
pub fn sessions(working: &Path) -> io::Result<Vec<Left>> {
    let mut left = Vec::new();
    for all in super::choices(working).iter().filter(|all| super::is_own(all)) {
        let entries = match std::fs::read_dir(all) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            entries => entries?,
        };
        for entry in entries {
            let folder = entry?.path();
            if folder.join("catalog").exists() {
                left.push(list(&folder)?);
            }
        }
    }
    left.sort_by(|one, other| one.folder.cmp(&other.folder));
    Ok(left)
}

/// The files of one session.
///
/// # Errors
/// The catalog cannot be read.
pub fn list(folder: &Path) -> io::Result<Left> {
    let catalog = Catalog::replay(journal::read(folder)?.records);
    let alive = journal::is_alive(folder)?;
    let latest = catalog.latest();
    let listed = |(_, entry): (FileId, &Entry)| Listed {
        home: entry.home.clone(),
        place: entry.place.clone(),
        bytes: entry.bytes,
        scratch: entry.scratch,
        whole: tree::length(&entry.place).is_ok_and(|bytes| entry.changing || bytes == entry.bytes),
    };
    let current = |(file, entry): &(FileId, &Entry)| latest[entry.home.as_path()] == *file;
    let files = catalog.entries().filter(current).map(listed).collect();
    Ok(Left { folder: folder.to_path_buf(), alive, files })
}

/// Finishes or undoes what a session that crashed left: every whole file goes to its own path,
/// what is half made is deleted. What is lost or damaged is told and left as it is, and so is the
/// session's folder then, unless `discard`. `tell` hears of files that may be half changed before
/// the catalog forgets that: this recovery may be killed too.
///
/// # Errors
/// The session still runs, or its catalog cannot be read or written to.
pub fn recover(
    folder: &Path,
    discard: bool,
    tell: &mut dyn FnMut(&Path),
) -> io::Result<Vec<Recovered>> {
    if was_not_begun(folder) {
        std::fs::remove_dir_all(folder)?;
        // The folder of all sessions, if this was the last.
        let _ = folder.parent().map(std::fs::remove_dir);
        return Ok(Vec::new());
    }
    let (records, journal) = Journal::reopen(folder)?;
    let catalog = Catalog::replay(records);
    let journal = Mutex::new(journal);
    let (hold, limits) = (Hold::default(), Limits::default());
    let carrier = Carrier { journal: &journal, hold: &hold, limits: &limits };
    let mut look = |path: &Path| tree::length(path).ok();
    let latest = catalog.latest();
    let mut recovered = Vec::new();
    for (file, entry, fate) in fates(&catalog, &mut look) {
        if fate == Fate::HalfChanged {
            tell(&entry.home);
        }
        let done = carry_fate(&carrier, folder, catalog.stands(&entry.home), (file, &entry, fate));
        let error = done.err().map(|error| error.to_string());
        if latest[entry.home.as_path()] == file {
            let Entry { home, place, .. } = entry;
            recovered.push(Recovered { home, place, fate, error });
        }
    }
    let open =
        |one: &Recovered| one.error.is_some() || matches!(one.fate, Fate::Lost | Fate::Damaged);
    if discard || !recovered.iter().any(open) {
        sweep(&catalog)?;
        journal.into_inner().delete()?;
    }
    Ok(recovered)
}

/// Whether a session's folder has no catalog yet, or no longer: nothing is to be done for it.
fn was_not_begun(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    folder.parent().is_some_and(super::is_of_sessions)
        && entries.flatten().all(|entry| entry.file_name() == "lock")
        && matches!(journal::is_alive(folder), Ok(false))
}

/// What is to be done for a version of a file is done.
fn carry_fate(
    carrier: &Carrier<'_>,
    folder: &Path,
    replaces: bool,
    (file, entry, fate): (FileId, &Entry, Fate),
) -> io::Result<()> {
    if matches!(fate, Fate::Lost | Fate::Damaged) {
        return Ok(()); // the user decides
    }
    let beside = temporary(file, &entry.home, folder.file_name().unwrap_or_default());
    let renamed = same_device(&entry.place, &entry.home) && fate != Fate::HalfChanged;
    let replaces = replaces && entry.place.is_dir();
    let steps = |over: Option<&Path>| match settle(file, entry, fate, over) {
        steps if replaces => replacing(steps),
        steps => steps,
    };
    disk::settle(renamed, &beside, steps, |steps| carrier.all(steps))
}

/// Deletes what is left in the folders of a session that has no files there any more.
pub(crate) fn sweep(catalog: &Catalog) -> io::Result<()> {
    for path in catalog.temporaries() {
        remove(path)?;
        let folder = path.parent().filter(|folder| folder.exists());
        folder.map_or(Ok(()), sync_folder)?;
    }
    // Below a link, or what is another user's, nothing was made, and anything could be by now.
    let is_own = |folder: &&Path| folder.parent().is_some_and(super::is_own);
    for folder in catalog.folders().filter(is_own) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let ours = ["catalog", "lock"].iter().any(|name| entry.file_name() == *name);
            if !ours {
                remove(&entry.path())?;
            }
        }
        // The catalog goes next: what was deleted must not come back without it.
        if folder.exists() {
            sync_folder(folder)?;
        }
        let _ = std::fs::remove_dir(folder);
        // The folder of all sessions on this layer, if this was the last.
        if let Some(all) = folder.parent() {
            let _ = std::fs::remove_dir(all);
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    tree::remove(path).map_err(|error| {
        let text = format!("{}: it cannot be deleted: {error}", path.display());
        io::Error::new(error.kind(), text)
    })
}
