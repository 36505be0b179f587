//! What programs ask of files on layers.

use std::ffi::{c_void, CStr, OsStr};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::io::IntoRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graph::Direction;

use super::io_task::Wants;
use super::placed::FileWanted;
use super::runtime::Runtime;
use super::say::say;
use super::task::Body;
use super::waiting::{Answer, Wait};
use super::worker;
use super::Errno;
use crate::files::{FileError, Files, PathKind};
use crate::naming::Named;
use crate::{placing, tiers};

/// A name of a scratch file has so many bytes at most.
const SCRATCH_NAME_BYTES_MAX: usize = 255;

/// What a program says of a file that a task uses: its path, whether it is a directory, and what is
/// done with it.
pub type FileUse<'a> = (&'a CStr, PathKind, Direction);

fn wanted(
    path: &Path,
    kind: Option<PathKind>,
    direction: Direction,
) -> Result<FileWanted, FileError> {
    Ok(FileWanted { named: Named::look(path)?, kind, direction })
}

fn open(place: &Path) -> Answer {
    let opened = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_CLOEXEC).open(place);
    opened.map(IntoRawFd::into_raw_fd).map_err(|error| errno_of(&error))
}

/// The number of an error; those of moves have words instead of one.
fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().unwrap_or(match error.kind() {
        ErrorKind::NotFound => libc::ENOENT,
        ErrorKind::PermissionDenied => libc::EACCES,
        ErrorKind::NotADirectory => libc::ENOTDIR,
        ErrorKind::IsADirectory => libc::EISDIR,
        ErrorKind::StorageFull => libc::ENOSPC,
        ErrorKind::QuotaExceeded => libc::EDQUOT,
        ErrorKind::ReadOnlyFilesystem => libc::EROFS,
        _ => libc::EIO,
    })
}

impl Runtime {
    /// Files that an I/O task is to use, in this order. `Err` says what is wrong with one.
    pub fn with_files<'a>(
        mut wants: Wants,
        files: impl Iterator<Item = Result<FileUse<'a>, String>>,
    ) -> Result<Wants, String> {
        let files = files.enumerate().map(|(number, file)| {
            let file = file.and_then(|(path, kind, direction)| {
                let path = Path::new(OsStr::from_bytes(path.to_bytes()));
                wanted(path, Some(kind), direction).map_err(|error| error.to_string())
            });
            file.map_err(|why| format!("file {number}: {why}"))
        });
        wants.files = files.collect::<Result<_, _>>()?;
        Ok(wants)
    }

    /// Makes the folders for files away from their own paths, and the catalog, once a runtime, if
    /// such a task (none: somebody) needs them.
    pub(super) fn open_tiers(&self, wants: Option<&Wants>) -> Result<(), String> {
        let _one = self.0.opening.lock();
        let (needed, layers) = self.0.with_core(|core| {
            let needed = wants.map_or(!core.has_tiers(), |wants| core.wants_tiers(wants));
            (needed, core.layers())
        });
        if !needed {
            return Ok(());
        }
        let text = |error: io::Error| {
            format!(
                "the catalog of the session cannot be made in the working directory, so files \
                 cannot be kept on several layers: {error}"
            )
        };
        // A flush there must not pause the caller's task, whose worker could come here again.
        let opened = worker::outside_of_tasks(|| tiers::open(&layers)).map_err(text)?;
        for (layer, error) in &opened.problems {
            say(&format!("layer \"{}\" takes no files of tasks: {error}", layers[*layer].name));
        }
        self.0.with_core(|core| core.open_tiers(opened, &self.0)).map_err(text)
    }

    /// Calls `look` with where a file of the calling task is, by its position. `None`: the caller
    /// is in no task with such a file.
    pub fn with_place<T>(file: usize, look: impl FnOnce(&CStr) -> T) -> Option<T> {
        let (_, task) = worker::here()?;
        Some(look(task.get().files()?.place(file)?))
    }

    /// The calling task fails of this. EINVAL: it has no files, or that is no error.
    pub fn fail(errno: Errno) -> Result<(), Errno> {
        let (_, task) = worker::here().ok_or(libc::EINVAL)?;
        let files = task.get().files().filter(|_| errno > 0).ok_or(libc::EINVAL)?;
        files.fail(errno);
        Ok(())
    }

    /// Opens the best copy of a file for reading: in a task one of its own, else after the tasks
    /// that write it. A descriptor.
    pub fn open_file(&self, path: &Path) -> Answer {
        if let Some((_, task)) = worker::here() {
            let key = Files::key(path).map_err(|_| libc::EINVAL)?;
            let place = self.0.with_core(|core| core.place_of(task, &key));
            return open(&place.ok_or(libc::EINVAL)?);
        }
        self.ask(path, open_best)
    }

    /// Brings a file to its own path, after the tasks that write it, and waits until it is there.
    pub fn persist(&self, path: &Path) -> Result<(), Errno> {
        if worker::here().is_some() {
            return Err(libc::EDEADLK);
        }
        self.ask(path, bring_home).map(drop)
    }

    /// A path for a file or directory that goes with the runtime.
    pub fn scratch(&self, name: &OsStr) -> Result<PathBuf, Errno> {
        let is_plain = Path::new(name).file_name() == Some(name);
        if !is_plain || name.len() > SCRATCH_NAME_BYTES_MAX {
            say(&format!("al_scratch: {name:?} is no name without folders, such as \"part.bin\""));
            return Err(libc::EINVAL);
        }
        self.open_tiers(None).map_err(|why| {
            say(&format!("al_scratch: {why}"));
            libc::EIO
        })?;
        self.0.with_core(|core| core.scratch(Path::new(name))).ok_or_else(|| {
            say("al_scratch: no layer takes files of tasks");
            libc::ENOSPC
        })
    }

    /// The program will not name a scratch file any more. EINVAL: it is none.
    pub fn forget_file(&self, path: &Path) -> Result<(), Errno> {
        let key = Files::key(path).map_err(|_| libc::EINVAL)?;
        self.0.with_core(|core| core.forget_file(&key.home));
        Ok(())
    }

    /// Runs a task of the library's own that reads a file, and waits for its answer.
    fn ask(&self, path: &Path, body: Body) -> Answer {
        if worker::is_one() {
            return Err(libc::EDEADLK);
        }
        let file = wanted(path, None, Direction::In).map_err(|_| libc::EINVAL)?;
        let refused = if file.named.exists() { libc::EINVAL } else { libc::ENOENT };
        let wants = Wants { files: vec![file], anywhere: true, ..Wants::default() };
        let asked = Wait::ask(body, |task| self.spawn(task, Some(&wants), std::iter::empty()));
        asked.map_err(|_| refused)?
    }

    /// After the last task: brings every file to its own path. EIO: some could not be.
    pub(super) fn settle_files(&self) -> Result<(), Errno> {
        let Some(rest) = self.0.with_core(|core| core.close_files()) else { return Ok(()) };
        let mut quiet = |_, _| {};
        let unsettled =
            placing::settle(rest.keeper, &rest.staging, &rest.limiters, rest.kept, &mut quiet);
        for file in &unsettled {
            say(&format!(
                "{} could not be brought to its own path: {}; it is at {}, and `alongside recover` \
                 brings it home later",
                file.home.display(),
                file.why,
                file.place.display()
            ));
        }
        unsettled.is_empty().then_some(()).ok_or(libc::EIO)
    }
}

extern "C-unwind" fn open_best(wait: *mut c_void) {
    // SAFETY: the argument of a task of this body.
    let wait = unsafe { Wait::of(wait) };
    let at = |place: &CStr| open(Path::new(OsStr::from_bytes(place.to_bytes())));
    wait.put(Runtime::with_place(0, at).unwrap_or(Err(libc::EINVAL)));
}

extern "C-unwind" fn bring_home(wait: *mut c_void) {
    // SAFETY: the argument of a task of this body.
    let wait = unsafe { Wait::of(wait) };
    let Some((local, task)) = worker::here() else { return wait.put(Err(libc::EINVAL)) };
    // The task is not over before its file is there, so that nobody writes it meanwhile.
    task.get().expect(1);
    let answers = Arc::clone(&wait);
    let begun = local.shared().with_core(|core| {
        core.bring(task, move |shared, done| {
            answers.put(done.map(|()| 0).map_err(|error| {
                say(&format!("al_persist: {error}"));
                errno_of(&error)
            }));
            shared.came(task);
        })
    });
    if !begun {
        wait.put(Ok(0));
        local.shared().came(task);
    }
}
