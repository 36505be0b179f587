//! The folders of files that are written: made where they are missing, and flushed where the file
//! is to be durable.
//!
//! A new file's name is in its folder, and a new folder's name in the one above. Those above are
//! flushed once a session: up to the top, or to where this user may not look.

use std::collections::HashSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ops::{Answer, Errno, Op};

/// Folders whose names were flushed in this session.
pub(super) type Settled = HashSet<PathBuf>;

/// A path for the kernel. Paths with a zero in them never get here: no file has such a name.
pub(super) fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

/// The folder that a file is in.
fn folder_of(file: &Path) -> PathBuf {
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    whole.parent().unwrap_or(Path::new("/")).to_path_buf()
}

/// Makes the folders of a file that are missing; an error names the folder.
pub(super) fn make(file: &Path, settled: &mut Settled) -> Result<(), (Errno, PathBuf)> {
    let folder = folder_of(file);
    let missing: Vec<&Path> =
        folder.ancestors().take_while(|folder| folder.symlink_metadata().is_err()).collect();
    for new in missing.into_iter().rev() {
        settled.remove(new);
        match std::fs::create_dir(new) {
            // Another task was quicker.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(|error| (Errno::from(error), new.to_path_buf()))?,
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Sync,
    Close,
    Over,
}

/// Flushes the folders of one file, one operation after the other.
#[derive(Debug)]
pub(super) struct Flush {
    folder: PathBuf,
    /// What `folder` holds the name of; `None`: the file.
    below: Option<PathBuf>,
    stage: Stage,
    fd: Option<OwnedFd>,
    failed: Option<Errno>,
}

impl Flush {
    pub(super) fn new(file: &Path) -> Flush {
        let folder = folder_of(file);
        Flush { folder, below: None, stage: Stage::Open, fd: None, failed: None }
    }

    /// The next operation; `None`: all is done.
    pub(super) fn next(&mut self) -> Option<Op> {
        match self.stage {
            Stage::Open => {
                let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
                Some(Op::Open { path: c_path(&self.folder), flags, mode: 0 })
            }
            Stage::Sync => self.fd.as_ref().map(|fd| Op::Fsync { fd: fd.as_raw_fd() }),
            Stage::Close => self.fd.take().map(|fd| Op::Close { fd: fd.into_raw_fd() }),
            Stage::Over => None,
        }
    }

    /// The operation is complete; an error names the folder.
    pub(super) fn completed(
        &mut self,
        result: Result<Answer, Errno>,
        settled: &mut Settled,
    ) -> Result<(), (Errno, PathBuf)> {
        match (self.stage, result) {
            (Stage::Open, Ok(Answer::Fd(fd))) => {
                self.fd = Some(fd);
                self.stage = Stage::Sync;
            }
            (Stage::Open, Err(Errno(libc::EACCES | libc::EPERM))) if self.below.is_some() => {
                settled.extend(self.below.take());
                self.stage = Stage::Over;
            }
            (Stage::Sync, result) => {
                // Some file systems have nothing to flush there.
                let nothing = |errno: &Errno| [libc::EINVAL, libc::EROFS].contains(&errno.0);
                self.failed = result.err().filter(|errno| !nothing(errno));
                self.stage = Stage::Close;
            }
            (Stage::Close, _) => match self.failed.take() {
                Some(errno) => return Err((errno, self.folder.clone())),
                None => self.go_up(settled),
            },
            (_, Err(errno)) => return Err((errno, self.folder.clone())),
            (stage, Ok(answer)) => panic!("{answer:?} in stage {stage:?} of {self:?}"),
        }
        Ok(())
    }

    fn go_up(&mut self, settled: &mut Settled) {
        settled.extend(self.below.take());
        let above = self.folder.parent().map(Path::to_path_buf);
        match above.filter(|_| !settled.contains(&self.folder)) {
            Some(above) => {
                self.below = Some(std::mem::replace(&mut self.folder, above));
                self.stage = Stage::Open;
            }
            None => {
                settled.insert(self.folder.clone());
                self.stage = Stage::Over;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folders that are opened for a file, with what their opening gives.
    fn opened(file: &str, settled: &mut Settled, answer: impl Fn(&Path) -> i32) -> Vec<String> {
        let mut flush = Flush::new(Path::new(file));
        let mut opened = Vec::new();
        while let Some(op) = flush.next() {
            let result = match op {
                Op::Open { .. } => {
                    opened.push(flush.folder.display().to_string());
                    match answer(&flush.folder) {
                        0 => Ok(Answer::Fd(std::fs::File::open("/dev/null").unwrap().into())),
                        errno => Err(Errno(errno)),
                    }
                }
                Op::Fsync { .. } => Err(Errno(libc::EINVAL)),
                Op::Close { fd } => {
                    // SAFETY: the descriptor belongs to the operation.
                    unsafe { libc::close(fd) };
                    Ok(Answer::Nothing)
                }
                other => panic!("{other:?}"),
            };
            flush.completed(result, settled).unwrap();
        }
        opened
    }

    #[test]
    fn folders_above_are_flushed_once() {
        let mut settled = Settled::new();
        assert_eq!(opened("/a/b/c", &mut settled, |_| 0), ["/a/b", "/a", "/"]);
        assert_eq!(opened("/a/b/d", &mut settled, |_| 0), ["/a/b"], "its own always");
        assert_eq!(opened("/a/x/y", &mut settled, |_| 0), ["/a/x", "/a"]);
    }

    #[test]
    fn where_this_user_may_not_look_is_the_end() {
        let mut settled = Settled::new();
        let forbidden = |folder: &Path| match folder.to_str() {
            Some("/a") => libc::EACCES,
            _ => 0,
        };
        assert_eq!(opened("/a/b/c", &mut settled, forbidden), ["/a/b", "/a"]);
        assert_eq!(opened("/a/b/c", &mut settled, forbidden), ["/a/b"]);
    }

    #[test]
    fn an_error_names_the_folder() {
        let (mut flush, mut settled) = (Flush::new(Path::new("/a/b")), Settled::new());
        flush.next();
        let failed = flush.completed(Err(Errno(libc::EACCES)), &mut settled);
        assert_eq!(failed, Err((Errno(libc::EACCES), "/a".into())));
    }
}
