//! Files and directories alike: their lengths, how they are deleted, and how one is put in the
//! place of another.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What is read of two files at a time to compare them.
const COMPARE_BYTES: usize = 256 << 10;

/// What to do where somebody else's files are in the way.
const IN_THE_WAY: &str = "it is not empty, and what is there was not made by this session; move \
                          that away, then run `alongside recover`";

/// The bytes of a file, or of all files in a directory.
pub(crate) fn length(path: &Path) -> io::Result<u64> {
    let found = path.metadata()?;
    match found.is_dir() {
        true => length_below(path),
        false => Ok(found.len()),
    }
}

fn length_below(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in folder.read_dir()? {
        let entry = entry?;
        bytes += match entry.metadata()? {
            found if found.is_dir() => length_below(&entry.path())?,
            found if found.is_file() => found.len(),
            _ => 0,
        };
    }
    Ok(bytes)
}

/// Whether a path is a directory with nothing in it.
pub(crate) fn is_empty(folder: &Path) -> bool {
    folder.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}

/// Makes a directory that a task is to fill, or empties the one that is there.
pub(crate) fn make_empty(folder: &Path) -> io::Result<()> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    folder.read_dir()?.try_for_each(|entry| remove(&entry?.path()))
}

/// Deletes a file, or a directory with all that is in it, also one that may not be written to; it
/// may be missing.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                open_up(path).and_then(|()| std::fs::remove_dir_all(path))
            }
            removed => removed,
        },
        _ => std::fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Lets this user delete what is in a directory.
fn open_up(folder: &Path) -> io::Result<()> {
    let mode = folder.symlink_metadata()?.permissions().mode();
    std::fs::set_permissions(folder, Permissions::from_mode(mode | 0o700))?;
    for entry in folder.read_dir()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

/// Gives a file or directory another name, in place of a file or an empty directory. A directory
/// that has the same in it was put there before a crash; one that has something else is left.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::rename(from, to) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTEMPTY | libc::EEXIST)) => {
            match same(from, to)? {
                true => remove(from),
                false => Err(io::Error::new(error.kind(), IN_THE_WAY)),
            }
        }
        renamed => renamed,
    }
}

/// Whether two directories have the same in them.
fn same(one: &Path, other: &Path) -> io::Result<bool> {
    let mut count = 0;
    for entry in one.read_dir()? {
        let name = entry?.file_name();
        count += 1;
        if !same_entry(&one.join(&name), &other.join(&name))? {
            return Ok(false);
        }
    }
    Ok(other.read_dir()?.count() == count)
}

fn same_entry(one: &Path, other: &Path) -> io::Result<bool> {
    let (left, right): (Metadata, Metadata) = match other.symlink_metadata() {
        Ok(found) => (one.symlink_metadata()?, found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if left.file_type() != right.file_type() {
        return Ok(false);
    }
    match left {
        found if found.is_dir() => same(one, other),
        found if found.is_symlink() => Ok(one.read_link()? == other.read_link()?),
        found => Ok(found.len() == right.len() && same_bytes(one, other)?),
    }
}

fn same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    let (mut left, mut right) = (vec![0; COMPARE_BYTES], vec![0; COMPARE_BYTES]);
    loop {
        let read = one.read(&mut left)?;
        if read == 0 {
            return Ok(true);
        }
        match other.read_exact(&mut right[..read]) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        if left[..read] != right[..read] {
            return Ok(false);
        }
    }
}

/// What it gives on a thread that, unlike the super user, may not do everything with files.
#[cfg(test)]
pub(super) fn as_nobody<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    const NOBODY: libc::uid_t = 65534;
    let on_thread = || {
        let keep = libc::uid_t::MAX;
        // SAFETY: a system call without pointers. The thread has its own user, and ends with it.
        let set = unsafe { libc::syscall(libc::SYS_setresuid, keep, NOBODY, keep) };
        // SAFETY: as above.
        assert!(set == 0 || unsafe { libc::geteuid() } != 0);
        body()
    };
    std::thread::scope(|scope| scope.spawn(on_thread).join().unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_may_not_be_written_to_is_deleted() {
        as_nobody(|| {
            let folder = tree("sealed", &[("a", "1"), ("below/b", "22")]);
            let seal = |path: &Path, mode| {
                std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            };
            seal(&folder.join("below"), 0);
            seal(&folder, 0o555);
            remove(&folder).unwrap();
            assert!(!folder.exists());
        });
    }

    fn tree(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let root =
            std::env::temp_dir().join(format!("alongside-tree-{}-{name}", std::process::id()));
        remove(&root).unwrap();
        std::fs::create_dir_all(&root).unwrap();
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_directory_takes_the_place_of_an_equal_one_and_of_an_empty_one() {
        let files = [("a", "1"), ("below/b", "22")];
        let (new, old) = (tree("new", &files), tree("old", &files));
        assert_eq!(length(&new).unwrap(), 3);
        rename(&new, &old).unwrap();
        assert!(!new.exists() && length(&old).unwrap() == 3);
        let empty = tree("empty", &[]);
        rename(&old, &empty).unwrap();
        assert_eq!(std::fs::read_to_string(empty.join("below/b")).unwrap(), "22");
        remove(&empty).unwrap();
        remove(&empty).unwrap();
    }

    #[test]
    fn a_directory_is_made_empty_whether_it_is_there_or_not() {
        let folder = tree("anew", &[("a", "1"), ("below/b", "22")]);
        let beside = tree("beside", &[("c", "3")]);
        std::os::unix::fs::symlink(&beside, folder.join("link")).unwrap();
        make_empty(&folder).unwrap();
        assert!(is_empty(&folder) && length(&beside).unwrap() == 1);
        remove(&folder).unwrap();
        make_empty(&folder).unwrap();
        assert!(is_empty(&folder));
        [folder, beside].iter().for_each(|path| remove(path).unwrap());
    }

    #[test]
    fn nothing_of_somebody_else_is_replaced() {
        let mine = tree("mine", &[("a", "1"), ("b", "2")]);
        let others: [&[(&str, &str)]; 4] = [
            &[("a", "1")],
            &[("a", "1"), ("b", "3")],
            &[("a", "1"), ("b/c", "2")],
            &[("a", "1"), ("b", "2"), ("c", "")],
        ];
        for (number, files) in others.into_iter().enumerate() {
            let other = tree(&format!("other-{number}"), files);
            let before = length(&other).unwrap();
            let error = rename(&mine, &other).unwrap_err();
            assert!(error.to_string().contains("alongside recover"), "{error}");
            assert_eq!(length(&other).unwrap(), before);
            assert_eq!(length(&mine).unwrap(), 2);
            remove(&other).unwrap();
        }
        remove(&mine).unwrap();
    }
}
