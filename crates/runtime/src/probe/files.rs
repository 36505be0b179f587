//! The files that are measured: without a name, so that nothing is left behind, whoever is killed.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::ProbeError;

/// This many times what is used must be free: as much again stays free for others.
const FREE_FACTOR: u64 = 2;

/// Open files of one length in a folder.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    files: Vec<OwnedFd>,
    /// Whether they go around the memory of the system.
    pub(super) is_direct: bool,
}

impl Files {
    /// Makes them; nothing is in them yet.
    pub(super) fn make(folder: &Path, count: u32, bytes: u64) -> Result<Files, ProbeError> {
        Files::make_by(folder, count, bytes, open)
    }

    /// The same with another way of opening: folder, number, whether direct.
    fn make_by(
        folder: &Path,
        count: u32,
        bytes: u64,
        open: impl Fn(&Path, u32, bool) -> io::Result<OwnedFd>,
    ) -> Result<Files, ProbeError> {
        check_space(folder, bytes)?;
        let mut made = Files { folder: folder.to_path_buf(), files: Vec::new(), is_direct: true };
        for number in 0..count {
            let file = open(folder, number, made.is_direct);
            let file = match file {
                // No direct I/O here: the first file finds out.
                Err(error) if made.is_direct && error.raw_os_error() == Some(libc::EINVAL) => {
                    made.is_direct = false;
                    open(folder, number, false)
                }
                file => file,
            };
            made.files.push(file.map_err(|error| made.failed("cannot make a file", error))?);
        }
        Ok(made)
    }

    pub(super) fn fd(&self, file: usize) -> RawFd {
        self.files[file].as_raw_fd()
    }

    pub(super) fn count(&self) -> usize {
        self.files.len()
    }

    pub(super) fn failed(&self, what: &'static str, error: io::Error) -> ProbeError {
        ProbeError::System { path: self.folder.clone(), what, error }
    }

    /// Takes care that nothing of these files is in memory.
    pub(super) fn forget(&self) {
        (0..self.files.len()).for_each(|file| self.forget_one(file));
    }

    /// The same for one of them.
    pub(super) fn forget_one(&self, file: usize) {
        if !self.is_direct {
            // SAFETY: a plain call on an open descriptor. It is advice: no error matters.
            unsafe { libc::posix_fadvise(self.fd(file), 0, 0, libc::POSIX_FADV_DONTNEED) };
        }
    }
}

/// Bytes that this user may still write to a file system.
pub(super) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let path = c_path(folder)?;
    // SAFETY: a plain structure of numbers; all zeros is valid.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a C string and a writable place.
    if unsafe { libc::statvfs(path.as_ptr(), &mut found) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

fn check_space(folder: &Path, bytes: u64) -> Result<(), ProbeError> {
    let failed = |error| ProbeError::System { path: folder.into(), what: "cannot look", error };
    if !folder.is_dir() {
        let error = std::fs::read_dir(folder).err();
        return Err(failed(error.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOTDIR))));
    }
    let free = free_bytes(folder).map_err(failed)?;
    if free / FREE_FACTOR < bytes {
        return Err(ProbeError::Space { path: folder.into(), free, needed: bytes * FREE_FACTOR });
    }
    Ok(())
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}

fn open(folder: &Path, number: u32, is_direct: bool) -> io::Result<OwnedFd> {
    let flags = libc::O_RDWR | libc::O_CLOEXEC | if is_direct { libc::O_DIRECT } else { 0 };
    let path = c_path(folder)?;
    match open_raw(&path, flags | libc::O_TMPFILE) {
        Err(error) if lacks_unnamed(&error) => {}
        file => return file,
    }
    open_named(folder, number, flags)
}

/// With a name that is gone again at once.
fn open_named(folder: &Path, number: u32, flags: i32) -> io::Result<OwnedFd> {
    let name = format!(".alongside-probe-{}-{number}", std::process::id());
    let path = c_path(&folder.join(name))?;
    let file = open_raw(&path, flags | libc::O_CREAT | libc::O_EXCL);
    // Also after an error: a file system may refuse direct I/O when the file is made already.
    // SAFETY: a C string; the name is this process's own.
    unsafe { libc::unlink(path.as_ptr()) };
    file
}

/// What file systems answer that have no files without a name.
fn lacks_unnamed(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT))
}

fn open_raw(path: &CString, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: a C string; the mode is given because the flags may create.
    let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::plan::{Cell, Kind};
    use super::super::sample::Sampler;
    use super::*;

    /// As on a file system that has neither direct I/O nor files without a name.
    fn open_poorly(folder: &Path, number: u32, is_direct: bool) -> io::Result<OwnedFd> {
        if is_direct {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        open_named(folder, number, libc::O_RDWR | libc::O_CLOEXEC)
    }

    #[test]
    fn without_direct_io_and_unnamed_files_it_measures_too() {
        let folder = std::env::temp_dir().join(format!("alongside-probe-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let files = Files::make_by(&folder, 2, 16_384, open_poorly).unwrap();
        assert!(!files.is_direct);
        assert_eq!(files.count(), 2);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "no file has a name");
        let mut sampler = Sampler::new(files, 8192).unwrap();
        (0..2).for_each(|file| sampler.lay_out(file, 0, 8192).unwrap());
        for kind in [Kind::Write, Kind::Read] {
            let cell = Cell { kind, block_bytes: 4096, writers: 2 };
            let (bytes, ns) = sampler.sample(cell, 65_536, Duration::from_secs(60), 1).unwrap();
            assert!(bytes == 65_536 && ns > 0);
        }
        std::fs::remove_dir(&folder).unwrap();
    }

    /// Pages of a file that are in memory.
    fn resident(fd: RawFd, pages: usize) -> usize {
        let (len, none) = (pages * 4096, std::ptr::null_mut());
        let mut found = vec![0; pages];
        // SAFETY: a new mapping of an open file, and a byte for each of its pages.
        unsafe {
            let map = libc::mmap(none, len, libc::PROT_READ, libc::MAP_SHARED, fd, 0);
            assert_ne!(map, libc::MAP_FAILED);
            assert_eq!(libc::mincore(map, len, found.as_mut_ptr()), 0);
            libc::munmap(map, len);
        }
        found.iter().filter(|page| **page & 1 == 1).count()
    }

    #[test]
    fn a_second_pass_over_a_file_does_not_find_it_in_memory() {
        const PAGES: usize = 32;
        let folder = std::env::temp_dir().join(format!("alongside-pass-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let bytes = PAGES as u64 * 4096;
        let files = Files::make_by(&folder, 1, bytes, open_poorly).unwrap();
        std::fs::remove_dir(&folder).unwrap();
        let fd = files.fd(0);
        // SAFETY: a plain call on an open descriptor: nothing is to be read ahead.
        unsafe { libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_RANDOM) };
        let mut sampler = Sampler::new(files, bytes).unwrap();
        sampler.lay_out(0, 0, bytes).unwrap();
        sampler.files.forget();
        if resident(fd, PAGES) > 0 {
            return; // a file system in memory: there is no other place for it
        }
        let cell = Cell { kind: Kind::Read, block_bytes: 4096, writers: 1 };
        sampler.sample(cell, bytes + 4096, Duration::from_secs(60), 0).unwrap();
        assert_eq!(resident(fd, PAGES), 1, "the first block of the second pass");
    }

    #[test]
    fn other_errors_are_the_systems() {
        let no = |_: &Path, _: u32, _: bool| Err(io::Error::from_raw_os_error(libc::EROFS));
        let error = Files::make_by(Path::new("/"), 1, 4096, no).unwrap_err().to_string();
        assert!(error.starts_with("/: cannot make a file: Read-only file system"), "{error}");
    }
}
