//! Files that are not at their own paths: where a session keeps them, what its catalog says of
//! them, who moves them, and what is done after a crash.
//!
//! ```text
//! layer folder/.alongside/SESSION/12-name      a staged copy
//! working directory/.alongside/SESSION/catalog what is where; `lock` is held while it lives
//! ```
//!
//! Whoever owns `.alongside` can exchange what is in it, so it is used by its owner only: where it
//! is another user's, or no directory, a session has `.alongside-UID` instead.
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
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ops::catalog::{FileId, Record};

use crate::storage::LayerSpec;
pub(crate) use disk::{carry_out, is_full, same_device, settle, Limits};
pub(crate) use hold::Hold;
pub(crate) use journal::Journal;
pub(crate) use keeper::{Commit, Keeper, Made, Move};

/// The folder of all sessions of a user below the working directory, and below the folder of a
/// layer; with a user's number where it is another user's.
const FOLDER: &str = ".alongside";
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

/// Where a session may have its folder in one that several users may share: the first of these that
/// is this user's.
fn choices(above: &Path) -> [PathBuf; 2] {
    // SAFETY: a system call that cannot fail.
    let user = unsafe { libc::geteuid() };
    [above.join(FOLDER), above.join(format!("{FOLDER}-{user}"))]
}

/// Whether a folder has such a name, of whichever user.
fn is_of_sessions(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().as_bytes();
    let user = name.strip_prefix(FOLDER.as_bytes()).map(|rest| rest.strip_prefix(b"-"));
    name == FOLDER.as_bytes()
        || user.flatten().is_some_and(|user| user.iter().all(u8::is_ascii_digit))
}

/// Whether a folder of sessions is there, and this user's. Some file systems know of one owner
/// only: whoever owns the folder above could exchange this one too.
fn is_own(all: &Path) -> bool {
    let owner = |found: Metadata| found.is_dir().then_some(found.uid());
    let found = all.symlink_metadata().ok().and_then(owner);
    let above = all.parent().and_then(|above| above.metadata().ok()).and_then(owner);
    // SAFETY: a system call that cannot fail.
    let user = unsafe { libc::geteuid() };
    found.is_some_and(|owner| owner == user || above == Some(owner))
}

/// Makes a folder of a session, for this user only, in one that is this user's.
fn make_folder(path: &Path) -> io::Result<()> {
    let all = path.parent().unwrap_or(path);
    let text = || format!("{}: it belongs to another user, or is no directory", all.display());
    let refused = || io::Error::new(io::ErrorKind::PermissionDenied, text());
    if all.symlink_metadata().is_ok() && !is_own(all) {
        return Err(refused());
    }
    std::fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)?;
    // Somebody may have been quicker.
    match is_own(all) {
        true => disk::sync_above(path),
        false => std::fs::remove_dir(path).and_then(|()| Err(refused())),
    }
}

/// Makes the folders of a session, and its catalog in the working directory.
///
/// # Errors
/// The catalog cannot be made.
pub(crate) fn open(layers: &[LayerSpec]) -> io::Result<Opened> {
    open_below(&std::env::current_dir()?, layers)
}

fn open_below(working: &Path, layers: &[LayerSpec]) -> io::Result<Opened> {
    let session = session_name();
    let [own, other] = choices(working).map(|all| all.join(&session));
    let own = match make_folder(&own) {
        Ok(()) => own,
        Err(_) => make_folder(&other).map(|()| other)?,
    };
    let mut journal = Journal::create(&own)?;
    let paths: Vec<[PathBuf; 2]> =
        layers.iter().map(|layer| choices(&layer.path).map(|all| all.join(&session))).collect();
    // They are known before they are there, so that they are removed whatever happens.
    let record = |path: &PathBuf| Record::Folder { path: path.clone() };
    journal.append(&paths.iter().map(|[first, _]| record(first)).collect::<Vec<_>>())?;
    let mut problems = Vec::new();
    let mut folders = Vec::new();
    for (number, [first, second]) in paths.into_iter().enumerate() {
        let made = match make_folder(&first) {
            Ok(()) => Ok(first),
            Err(_) => {
                journal.append(&[record(&second)])?;
                make_folder(&second).map(|()| second)
            }
        };
        let (path, problem) = match made {
            Ok(path) => (Some(path), None),
            Err(error) => (None, Some((number, error))),
        };
        folders.push(path);
        problems.extend(problem);
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::storage::Storage;

    /// A folder that all users may write to, with a layer in it that they all may write to.
    fn shared(name: &str) -> (PathBuf, Vec<LayerSpec>) {
        let name = format!("alongside-shared-{}-{name}", std::process::id());
        let root = std::env::temp_dir().join(name);
        tree::remove(&root).unwrap();
        std::fs::create_dir_all(root.join("fast")).unwrap();
        for folder in [&root, &root.join("fast")] {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o1777)).unwrap();
        }
        let text = "[[layer]]\nname='fast'\npath='fast'\nbandwidth='1MB/s'\n";
        let layers = Storage::parse(text, &root.join("storage.toml")).unwrap().layers;
        (root, layers)
    }

    /// A session ends, and another process finds what it left.
    fn ends(opened: Opened, root: &Path) {
        let Opened { staging, journal, problems } = opened;
        let folder = staging.folders[0].clone().unwrap();
        assert!(problems.is_empty() && folder.is_dir(), "{problems:?}");
        drop(journal);
        let left = recovery::sessions(root).unwrap();
        let ours = |left: &&recovery::Left| left.folder.file_name() == Some(&staging.session);
        let left = left.iter().find(ours).unwrap();
        recovery::recover(&left.folder, false, &mut |_| {}).unwrap();
        assert!(!left.folder.exists() && !folder.exists());
    }

    #[test]
    fn several_users_have_sessions_in_folders_that_they_share() {
        let (root, layers) = shared("users");
        let first = open_below(&root, &layers).unwrap();
        tree::as_nobody(|| ends(open_below(&root, &layers).unwrap(), &root));
        ends(first, &root);
        tree::remove(&root).unwrap();
    }

    #[test]
    fn no_session_follows_a_link_that_another_user_may_have_put_there() {
        let (root, layers) = shared("link");
        let elsewhere = root.join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        for folder in [&root, &root.join("fast")] {
            std::os::unix::fs::symlink(&elsewhere, folder.join(FOLDER)).unwrap();
        }
        let opened = open_below(&root, &layers).unwrap();
        assert!(tree::is_empty(&elsewhere));
        let precious = elsewhere.join(&opened.staging.session).join("precious");
        std::fs::create_dir_all(precious.parent().unwrap()).unwrap();
        std::fs::write(&precious, "").unwrap();
        ends(opened, &root);
        assert!(precious.exists());
        tree::remove(&root).unwrap();
    }
}
