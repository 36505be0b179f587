//! The steps of a move on a real file system.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use exec::limiter::{Limiters, Writer};
use ops::catalog::{Record, Step};
use parking_lot::Mutex;

use super::pace::Pace;
use super::{tree, Hold, Journal};

/// The emulated bandwidths that a copy has to keep to.
#[derive(Default)]
pub(crate) struct Limits {
    all: Option<Limiters>,
    layers: [Option<u32>; 2],
}

impl Limits {
    /// Of the layers that a copy reads and writes, those with an emulated bandwidth.
    pub(crate) fn new(all: Limiters, layers: [Option<u32>; 2]) -> Limits {
        Limits { all: Some(all), layers }
    }

    fn writers(&self) -> Vec<Writer> {
        let Some(all) = &self.all else { return Vec::new() };
        self.layers.iter().flatten().map(|layer| all.writer(*layer)).collect()
    }
}

/// What carrying out steps needs.
pub(super) struct Carrier<'a> {
    pub(super) journal: &'a Mutex<Journal>,
    pub(super) hold: &'a Hold,
    pub(super) limits: &'a Limits,
}

fn at(path: &Path, what: &str, error: &io::Error) -> io::Error {
    let text = format!("{}: it cannot be {what}: {error}", path.display());
    io::Error::new(error.kind(), text)
}

/// Flushes the names in a folder. A file system that has nothing to flush there may say so.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    match synced {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        done => done,
    }
}

/// Flushes a folder and those above it, as far as this user may look.
pub(super) fn sync_above(folder: &Path) -> io::Result<()> {
    sync_folder(folder)?;
    for above in folder.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        match sync_folder(above) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            synced => synced?,
        }
    }
    Ok(())
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the folders above a path. All are flushed, also those that were there: who made them may
/// not have done that.
fn make_folders(path: &Path) -> io::Result<()> {
    match std::fs::create_dir_all(parent(path)) {
        // Something else has the name of the folder.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(io::Error::from_raw_os_error(libc::ENOTDIR))
        }
        made => made.and_then(|()| sync_above(parent(path))),
    }
}

/// The end of a move that the program does not wait for any more.
pub(super) fn called_off() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "the program brings the file home itself")
}

/// Whether two paths are on one file system, so that a rename moves between them.
pub(crate) fn same_device(one: &Path, other: &Path) -> bool {
    let device = |path: &Path| {
        path.ancestors().find_map(|above| above.metadata().ok()).map(|found| found.dev())
    };
    device(one).is_some() && device(one) == device(other)
}

/// Brings a copy to its own path with the steps that `steps` gives for a temporary beside it
/// (`over`), or for none: by a rename alone where both seem to be on one file system. What one
/// mount, or one quota, has cannot be renamed into another, nor can a read-only directory be given
/// another folder, which only the attempt shows.
pub(crate) fn settle(
    renames: bool,
    over: &Path,
    steps: impl Fn(Option<&Path>) -> Vec<Step>,
    carry: impl Fn(&[Step]) -> io::Result<()>,
) -> io::Result<()> {
    if renames {
        match carry(&steps(None)) {
            Err(error) if needs_copy(&error) => {}
            done => return done,
        }
    }
    carry(&steps(Some(over)))
}

/// Whether what a rename cannot move may be copied.
fn needs_copy(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::CrossesDevices | io::ErrorKind::PermissionDenied)
}

/// Carries steps out over a catalog, in order, up to the first that fails.
///
/// A file that was brought home after the steps were decided (by a move that was under way then)
/// stays as it is: nothing says any more that it is away, so that a crash while it is brought
/// there a second time would be one that nobody repairs.
pub(crate) fn carry_out(
    steps: &[Step],
    journal: &Mutex<Journal>,
    hold: &Hold,
    limits: &Limits,
) -> io::Result<()> {
    let came_home = |step: &Step| match step {
        Step::Note(Record::Leaving { file, .. }) => !journal.lock().is_away(*file),
        _ => false,
    };
    if steps.iter().any(came_home) {
        return Ok(());
    }
    let done = Carrier { journal, hold, limits }.all(steps);
    if done.is_err() && journal.lock().is_whole() {
        // No record names the copy: nobody else would delete it before the end of the session.
        steps.iter().filter_map(copied).for_each(|copy| drop(tree::remove(copy)));
    }
    done
}

fn copied(step: &Step) -> Option<&Path> {
    match step {
        Step::Copy { to, .. } => Some(to),
        _ => None,
    }
}

impl Carrier<'_> {
    /// Carries steps out, in order, up to the first that fails. The last one deletes what the
    /// records do not name any more: what cannot be deleted now is found when the session's
    /// folders are swept.
    pub(super) fn all(&self, steps: &[Step]) -> io::Result<()> {
        match steps {
            [others @ .., last @ Step::Remove(_)] => {
                others.iter().try_for_each(|step| self.step(step))?;
                let _ = self.step(last);
                Ok(())
            }
            all => all.iter().try_for_each(|step| self.step(step)),
        }
    }

    fn step(&self, step: &Step) -> io::Result<()> {
        match step {
            Step::Note(record) => self.journal.lock().append(std::slice::from_ref(record)),
            Step::MakeFolders(path) => {
                make_folders(path).map_err(|error| at(parent(path), "made", &error))
            }
            Step::Copy { from, to } => self.copy(from, to).map_err(|error| {
                // What is half made helps nobody.
                let _ = tree::remove(to);
                let text = format!("{} to {}: {error}", from.display(), to.display());
                io::Error::new(error.kind(), text)
            }),
            Step::Rename { from, to } => {
                // What is copied by now is not copied in vain.
                let _ = self.hold.pass();
                keep_mode(from, to)?;
                tree::rename(from, to)
                    .map_err(|error| at(from, &format!("renamed to {}", to.display()), &error))
            }
            Step::SyncFolder(path) => {
                let folder = parent(path);
                sync_folder(folder).map_err(|error| at(folder, "flushed", &error))
            }
            Step::Remove(path) => tree::remove(path).map_err(|error| at(path, "deleted", &error)),
        }
    }

    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        tree::remove(to)?;
        match from.metadata()?.is_dir() {
            true => self.copy_folder(from, to),
            false => self.copy_file(from, to),
        }
    }

    fn copy_folder(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::DirBuilder::new().mode(super::FOLDER_MODE).create(to)?;
        for entry in from.read_dir()? {
            let entry = entry?;
            let (one, copy) = (entry.path(), to.join(entry.file_name()));
            match entry.file_type()? {
                kind if kind.is_dir() => self.copy_folder(&one, &copy)?,
                kind if kind.is_file() => self.copy_file(&one, &copy)?,
                kind if kind.is_symlink() => std::os::unix::fs::symlink(one.read_link()?, copy)?,
                _ => {
                    let text = "neither a file, a directory nor a link: it cannot be copied";
                    let error = io::Error::new(io::ErrorKind::Unsupported, text);
                    return Err(at(&one, "copied", &error));
                }
            }
        }
        std::fs::set_permissions(to, from.metadata()?.permissions())?;
        sync_folder(to)
    }

    fn copy_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut source = File::open(from)?;
        let mut options = OpenOptions::new();
        let mut copy = options.write(true).create_new(true).mode(0o600).open(to)?;
        self.content(&mut source, &mut copy)?;
        copy.set_permissions(source.metadata()?.permissions())?;
        copy.sync_all()
    }

    /// By the kernel where it can, which shares blocks where the file system can.
    fn content(&self, source: &mut File, copy: &mut File) -> io::Result<()> {
        let writers = self.limits.writers();
        let mut pace = Pace::new(writers.iter().map(Writer::piece).min());
        let mut by_kernel = true;
        let mut buffer = Vec::new();
        loop {
            if !self.hold.pass() {
                return Err(called_off());
            }
            let (began_ns, chunk) = (exec::now_ns(), pace.chunk());
            let moved = match by_kernel {
                true => match copy_range(source, copy, chunk) {
                    Err(error) if cannot(&error) => {
                        by_kernel = false;
                        continue;
                    }
                    // Some file systems say that there is nothing where there is something.
                    Ok(0) => {
                        by_kernel = false;
                        continue;
                    }
                    moved => moved?,
                },
                false => copy_through(source, copy, chunk, &mut buffer)?,
            };
            if moved == 0 {
                return Ok(());
            }
            pace.moved(copy, moved, began_ns);
            for writer in &writers {
                let wait_ns = writer.acquire(moved as u64);
                if wait_ns > 0 {
                    emulate(Duration::from_nanos(wait_ns));
                }
            }
        }
    }
}

/// A file that replaces another has its mode; else what the task gave it.
fn keep_mode(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(before) = to.symlink_metadata() else { return Ok(()) };
    let mode = before.permissions().mode() & 0o7777;
    if before.is_file() || before.is_dir() {
        std::fs::set_permissions(from, std::fs::Permissions::from_mode(mode))
            .map_err(|error| at(from, "given the mode of the file that it replaces", &error))?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "an emulated limit takes its time")]
fn emulate(time: Duration) {
    std::thread::sleep(time);
}

fn copy_range(source: &File, copy: &File, bytes: usize) -> io::Result<usize> {
    let (from, to) = (source.as_raw_fd(), copy.as_raw_fd());
    // SAFETY: a system call on two descriptors that are open; no offsets are passed.
    let moved = unsafe {
        libc::copy_file_range(from, std::ptr::null_mut(), to, std::ptr::null_mut(), bytes, 0)
    };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// Whether the kernel cannot copy between these two at all.
fn cannot(error: &io::Error) -> bool {
    let codes = [libc::EXDEV, libc::ENOSYS, libc::EINVAL, libc::EOPNOTSUPP, libc::EPERM];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

fn copy_through(
    source: &mut File,
    copy: &mut File,
    bytes: usize,
    buffer: &mut Vec<u8>,
) -> io::Result<usize> {
    buffer.resize(bytes, 0);
    let read = loop {
        match source.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    copy.write_all(&buffer[..read])?;
    Ok(read)
}

/// The bytes that a user may still write to the file system of a path. Some say nothing of their
/// size, which does not mean that they are full.
pub(super) fn available(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: zeros are a valid value of this plain structure.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends in a zero, and the structure is there to be filled.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut found) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if found.f_blocks == 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok((found.f_bavail as u64).saturating_mul(found.f_frsize as u64))
}

/// Whether an error of the system says that there is no room, and nothing else is wrong.
pub(crate) fn is_full(errno: i32) -> bool {
    [libc::ENOSPC, libc::EDQUOT].contains(&errno)
}

/// Whether files can be written in a folder: tries it.
pub(super) fn takes_files(folder: &Path) -> io::Result<()> {
    let path = folder.join(".try");
    let written = File::create(&path).and_then(|mut file| {
        file.write_all(&[0; 4096])?;
        file.sync_all()
    });
    let removed = std::fs::remove_file(&path);
    written.and(removed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::fd::{FromRawFd, OwnedFd};

    use super::*;

    /// How many of the folders are opened, as whoever flushes them has to.
    fn opened(folders: &[&Path], body: impl FnOnce()) -> usize {
        // SAFETY: a system call without pointers, which gives a descriptor of our own.
        let mut watch = unsafe {
            let made = libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK);
            File::from(OwnedFd::from_raw_fd(made))
        };
        for path in folders {
            let path = CString::new(path.as_os_str().as_bytes()).unwrap();
            // SAFETY: the path ends in a zero.
            let added =
                unsafe { libc::inotify_add_watch(watch.as_raw_fd(), path.as_ptr(), libc::IN_OPEN) };
            assert!(added >= 0, "{}", io::Error::last_os_error());
        }
        body();
        let mut events = [0; 4096];
        let length = watch.read(&mut events).unwrap_or(0);
        let mut events = &events[..length];
        let mut found = BTreeSet::new();
        // The number of its watch, three others, and a name where it is of what is in the folder.
        while let Some((event, rest)) = events.split_first_chunk::<16>() {
            let name = usize::from(event[12]);
            found.extend((name == 0).then_some(event[0]));
            events = &rest[name..];
        }
        found.len()
    }

    #[test]
    fn folders_that_others_made_and_may_not_have_flushed_are_flushed() {
        let root = std::env::temp_dir().join(format!("alongside-disk-{}", std::process::id()));
        let (above, session) = (root.join("above"), root.join("session"));
        let folder = above.join("folder");
        [&folder, &session].iter().for_each(|path| std::fs::create_dir_all(path).unwrap());
        let journal = Mutex::new(Journal::create(&session).unwrap());
        let steps = [Step::MakeFolders(folder.join("file"))];
        let flushed = opened(&[&root, &above, &folder], || {
            carry_out(&steps, &journal, &Hold::default(), &Limits::default()).unwrap();
        });
        tree::remove(&root).unwrap();
        assert_eq!(flushed, 3);
    }
}
