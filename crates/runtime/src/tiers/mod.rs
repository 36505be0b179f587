//! Files that are not at their own paths: where a session keeps them, what its catalog says of
//! them, who moves them, and what is done after a crash.
//!
//! ```text
//! layer folder/.alongside/SESSION/12-name      a staged copy
//! working directory/.alongside/SESSION/catalog what is where; `lock` is held while it lives
//! ```
//!
//! The records and the steps of a move are those of [`ops::catalog`]; here they meet a disk.

mod disk;
mod hold;
mod journal;
mod keeper;
mod pace;
pub mod recovery;
pub(crate) mod tree;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ops::catalog::{FileId, Record};

use crate::storage::LayerSpec;
pub(crate) use disk::{carry_out, same_device, settle, Limits};
pub(crate) use hold::Hold;
pub(crate) use journal::Journal;
pub(crate) use keeper::{Commit, Keeper, Made, Move};

/// The folder of all sessions below the working directory, and below the folder of a layer.
pub const FOLDER: &str = ".alongside";
/// A copy has its file's name after its number, at most so many bytes of it.
const NAME_BYTES_MAX: usize = 200;
/// Folders of sessions are for this user only.
const FOLDER_MODE: u32 = 0o700;

/// Where a session may keep copies.
#[derive(Clone, Debug)]
pub(crate) struct Staging {
    session: OsString,
    /// By layer; `None`: no folder could be made there.
    folders: Vec<Option<PathBuf>>,
    made: u64,
}

/// What opening came to: where copies go, the catalog, and why a layer takes none.
pub(crate) struct Opened {
    pub(crate) staging: Staging,
    pub(crate) journal: Journal,
    pub(crate) problems: Vec<(usize, io::Error)>,
}

fn session_name() -> OsString {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("session-{}.{:09}-{}", since.as_secs(), since.subsec_nanos(), std::process::id()).into()
}

/// Makes a folder of a session, for this user only.
fn make_folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Makes the folders of a session, and its catalog in the working directory.
///
/// # Errors
/// The catalog cannot be made.
pub(crate) fn open(layers: &[LayerSpec]) -> io::Result<Opened> {
    let session = session_name();
    let own = std::env::current_dir()?.join(FOLDER).join(&session);
    make_folder(&own)?;
    let mut journal = Journal::create(&own)?;
    let paths = layers.iter().map(|layer| layer.path.join(FOLDER).join(&session));
    let paths: Vec<PathBuf> = paths.collect();
    // They are known before they are there, so that they are removed whatever happens.
    let records = paths.iter().map(|path| Record::Folder { path: path.clone() });
    journal.append(&records.collect::<Vec<_>>())?;
    let mut problems = Vec::new();
    let mut folders = Vec::new();
    for (number, path) in paths.into_iter().enumerate() {
        let made = make_folder(&path).and_then(|()| disk::sync_above(&path));
        folders.push(made.is_ok().then_some(path));
        problems.extend(made.err().map(|error| (number, error)));
    }
    Ok(Opened { staging: Staging { session, folders, made: 0 }, journal, problems })
}

impl Staging {
    /// By layer, the folder for copies.
    pub(crate) fn folders(&self) -> &[Option<PathBuf>] {
        &self.folders
    }

    /// The place of a new copy on a layer; `None`: the layer takes none.
    pub(crate) fn place(&mut self, layer: usize, home: &Path) -> Option<(FileId, PathBuf)> {
        let folder = self.folders.get(layer)?.clone()?;
        let number = self.number();
        Some((number, folder.join(copy_name(number.0, home))))
    }

    /// A number that no other copy has.
    pub(crate) fn number(&mut self) -> FileId {
        self.made += 1;
        FileId(self.made)
    }

    /// The file beside its own path that a copy is made to first.
    pub(crate) fn temporary(&self, file: FileId, home: &Path) -> PathBuf {
        temporary(file, home, &self.session)
    }
}

fn temporary(file: FileId, home: &Path, session: &OsStr) -> PathBuf {
    let mut name = OsString::from(format!(".{}-", file.0));
    name.push(session);
    home.with_file_name(name)
}

/// The number, and the end of the file's name: what a name ends with often means something.
fn copy_name(number: u64, home: &Path) -> OsString {
    let name = home.file_name().unwrap_or_default().as_bytes();
    let mut full = OsString::from(format!("{number}-"));
    full.push(OsStr::from_bytes(&name[name.len().saturating_sub(NAME_BYTES_MAX)..]));
    full
}
