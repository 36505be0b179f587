//! In which steps a file moves: there is a whole copy that the records name, whatever the step at
//! which everything stops, and whichever of the steps that were not flushed are lost with it.

use std::path::{Path, PathBuf};

use super::{Entry, FileId, Record};

/// One step of a move. The next begins when it is done, and durable where its name says so.
///
/// What the steps rely on (`cargo xtask power` shows that each of these is needed):
///
/// - One move of a file at a time, up to its last step; the record of a new version waits for the
///   move of the old one. [`Record::Home`] does not say of which version it is.
/// - No place is used twice in a session: the last step of a move may come late.
/// - Every record is flushed before the next step, and before a task is reported done.
/// - What is seen is not therefore durable: somebody else may have made or deleted it, and have
///   been killed before it flushed that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A record is added to the catalog, and flushed.
    Note(Record),
    /// The folders above a path are made where they are missing, and the names of all of them are
    /// flushed: who made one of them may not have flushed it yet.
    MakeFolders(PathBuf),
    /// A new file is made with the content and the mode of another, and flushed. One that is
    /// there is replaced.
    Copy {
        /// Which is copied.
        from: PathBuf,
        /// The new file.
        to: PathBuf,
    },
    /// A file gets another name on the same file system, in place of the one that had it.
    Rename {
        /// The old name.
        from: PathBuf,
        /// The new name.
        to: PathBuf,
    },
    /// The names in the folder of a path are flushed.
    SyncFolder(PathBuf),
    /// A file is deleted; it may be missing.
    Remove(PathBuf),
}

/// Brings a file to its own path: copied to `temporary` beside it and renamed, or only renamed
/// (`None`: both are on one file system).
pub fn bring_home(file: FileId, entry: &Entry, temporary: Option<&Path>) -> Vec<Step> {
    let Entry { home, place, .. } = entry;
    let over = temporary.map(Path::to_path_buf);
    let mut steps = vec![
        Step::Note(Record::Leaving { file, temporary: over.clone() }),
        Step::MakeFolders(home.clone()),
    ];
    match over {
        None => steps.push(Step::Rename { from: place.clone(), to: home.clone() }),
        Some(over) => steps.extend([
            Step::Copy { from: place.clone(), to: over.clone() },
            Step::Rename { from: over, to: home.clone() },
        ]),
    }
    steps.push(Step::SyncFolder(home.clone()));
    steps.push(Step::Note(Record::Home { file }));
    steps.push(Step::Remove(place.clone()));
    steps
}

/// The steps of [`bring_home`] for a directory whose own path has an older version of the session
/// in it: that is deleted first, for nothing can be renamed over it.
pub fn replacing(mut steps: Vec<Step>) -> Vec<Step> {
    let rename = steps.iter().enumerate().find_map(|(at, step)| match step {
        Step::Rename { to, .. } => Some((at, Step::Remove(to.clone()))),
        _ => None,
    });
    if let Some((at, remove)) = rename {
        steps.insert(at, remove);
    }
    steps
}

/// Moves a file to another of the session's folders.
///
/// # Panics
///
/// If the file is being changed, or a change failed: the record of the copy would say that it is
/// whole.
pub fn move_to(file: FileId, entry: &Entry, to: &Path) -> Vec<Step> {
    let Entry { home, place, bytes, scratch, changing, .. } = entry;
    assert!(!changing, "file {} is half changed, and is not moved: {place:?}", file.0);
    let (home, bytes, scratch) = (home.clone(), *bytes, *scratch);
    vec![
        Step::MakeFolders(to.to_path_buf()),
        Step::Copy { from: place.clone(), to: to.to_path_buf() },
        Step::SyncFolder(to.to_path_buf()),
        Step::Note(Record::Copy { file, home, place: to.to_path_buf(), bytes, scratch }),
        Step::Remove(place.clone()),
    ]
}
