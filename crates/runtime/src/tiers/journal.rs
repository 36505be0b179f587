//! The catalog as a file that only grows.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::disk::{sync_above, sync_folder};
use crate::lock::Held;
use ops::catalog::{decode, Decoded, FileId, Record, HEADER};

const CATALOG: &str = "catalog";
const LOCK: &str = "lock";

/// The catalog of a session, for whoever adds to it. The session lives while this does.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    file: File,
    /// Files that are not at their own paths, of those that this process added records of.
    away: BTreeSet<FileId>,
    /// Where an append began that failed, and that could not be undone either.
    torn_at: Option<u64>,
    /// It says that the session lives; the kernel drops it with the process.
    _lock: Held,
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(0o600);
    options
}

/// Takes the lock of a session's folder. `None`: somebody has it.
fn lock(folder: &Path) -> io::Result<Option<Held>> {
    Held::take(options().create(true).open(folder.join(LOCK))?)
}

fn taken(folder: &Path) -> io::Error {
    io::Error::other(format!("{}: the session is still running", folder.display()))
}

impl Journal {
    fn over(folder: &Path, file: File, lock: Held) -> Journal {
        let (folder, away) = (folder.to_path_buf(), BTreeSet::new());
        Journal { folder, file, away, torn_at: None, _lock: lock }
    }

    /// Starts the catalog of a new session in its folder.
    pub(crate) fn create(folder: &Path) -> io::Result<Journal> {
        let lock = lock(folder)?.ok_or_else(|| taken(folder))?;
        let mut file = options().create_new(true).open(folder.join(CATALOG))?;
        file.write_all(HEADER.as_bytes())?;
        file.sync_all()?;
        sync_above(folder)?;
        Ok(Journal::over(folder, file, lock))
    }

    /// Goes on with the catalog of a session that is over: what it says, and the catalog. What a
    /// crash cut off is cut off for good.
    pub(crate) fn reopen(folder: &Path) -> io::Result<(Vec<Record>, Journal)> {
        let exists = folder.join(CATALOG).exists();
        let lock = exists.then(|| lock(folder)).transpose()?;
        let read = read(folder)?;
        let lock = lock.flatten().ok_or_else(|| taken(folder))?;
        let file = options().open(folder.join(CATALOG))?;
        let length = file.metadata()?.len();
        let whole = length - read.torn as u64;
        file.set_len(whole)?;
        let mut journal = Journal::over(folder, file, lock);
        if whole == 0 || length < HEADER.len() as u64 {
            journal.file.set_len(0)?;
            journal.file.write_all(HEADER.as_bytes())?;
        }
        // What was read may not have been flushed; from now on it is relied on.
        journal.file.sync_all()?;
        sync_folder(folder)?;
        Ok((read.records, journal))
    }

    /// Adds records. When this returns they are on the device.
    pub(crate) fn append(&mut self, records: &[Record]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        self.undo()?;
        let lines: String = records.iter().map(Record::encode).collect();
        let before = self.file.metadata()?.len();
        let written = self.file.write_all(lines.as_bytes()).and_then(|()| self.file.sync_data());
        if written.is_err() {
            self.torn_at = Some(before);
            let _ = self.undo();
            return written;
        }
        for record in records {
            match record {
                Record::Copy { file, .. } => drop(self.away.insert(*file)),
                Record::Home { file } | Record::Gone { file } => drop(self.away.remove(file)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Cuts off what an append that failed left: it would hide what comes after it.
    fn undo(&mut self) -> io::Result<()> {
        if let Some(before) = self.torn_at {
            self.file.set_len(before)?;
            self.file.sync_data()?;
            self.torn_at = None;
        }
        Ok(())
    }

    /// Whether it says what was added to it, and no more.
    pub(crate) fn is_whole(&self) -> bool {
        self.torn_at.is_none()
    }

    /// Whether a file is not at its own path.
    pub(crate) fn is_away(&self, file: FileId) -> bool {
        self.away.contains(&file)
    }

    /// What it says.
    pub(crate) fn records(&self) -> io::Result<Vec<Record>> {
        read(&self.folder).map(|read| read.records)
    }

    /// Deletes the folder of the session: nothing in it is needed any more.
    pub(crate) fn delete(self) -> io::Result<()> {
        std::fs::remove_file(self.folder.join(CATALOG))?;
        std::fs::remove_dir_all(&self.folder)?;
        // The folder of all sessions, if this was the last: somebody else may be quicker.
        if let Some(all) = self.folder.parent() {
            let _ = std::fs::remove_dir(all);
        }
        Ok(())
    }
}

/// What the catalog in a session's folder says.
pub(crate) fn read(folder: &Path) -> io::Result<Decoded> {
    let path = folder.join(CATALOG);
    let text = std::fs::read(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!(
            "{}: there is no catalog; give the folder of a session",
            path.display()
        )),
        _ => io::Error::new(error.kind(), format!("{}: {error}", path.display())),
    })?;
    let wrong = || io::Error::other(format!("{}: this is no catalog", path.display()));
    decode(&text).ok_or_else(wrong)
}

/// Whether the session of a folder still runs.
pub(crate) fn is_alive(folder: &Path) -> io::Result<bool> {
    Ok(lock(folder)?.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of this process that was not told that it is one, as there is between the fork and
    /// the exec of any command; it ends when nobody has the other end of the pipe.
    fn copy_of_this_process() -> (libc::pid_t, File) {
        let mut ends = [0; 2];
        // SAFETY: two descriptors are written there.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: as `fork`, without its handlers. The child makes system calls only.
        unsafe {
            let child = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
            if child == 0 {
                libc::close(ends[1]);
                libc::read(ends[0], [0u8; 1].as_mut_ptr().cast(), 1);
                libc::_exit(0);
            }
            libc::close(ends[0]);
            (child as libc::pid_t, std::os::fd::FromRawFd::from_raw_fd(ends[1]))
        }
    }

    #[test]
    fn a_session_is_over_whoever_has_a_copy_of_its_descriptors() {
        let folder = std::env::temp_dir().join(format!("alongside-over-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let journal = Journal::create(&folder).unwrap();
        assert!(is_alive(&folder).unwrap());
        let (child, end) = copy_of_this_process();
        drop(journal);
        let alive = is_alive(&folder).unwrap();
        drop(end);
        // SAFETY: a system call; the status is not asked for.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(!alive);
    }
}
