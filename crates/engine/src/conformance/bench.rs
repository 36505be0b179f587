//! What a case works with: engines, files in a folder, and completions within a time.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{Answer, Buffer, Completion, Engine, Errno, Op};

/// An operation of these cases that takes longer hangs.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(30);

/// The surroundings of one case. Its files are removed with it.
pub struct Bench<'a> {
    make: &'a mut dyn FnMut() -> Box<dyn Engine>,
    folder: PathBuf,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        make: &'a mut dyn FnMut() -> Box<dyn Engine>,
        folder: &Path,
        name: &str,
    ) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let own = format!("conformance-{process}-{count}-{}", name.replace(' ', "-"));
        let folder = folder.join(own);
        std::fs::create_dir_all(&folder).expect("a folder for the files of a case");
        Self { make, folder }
    }

    /// A new engine.
    pub(super) fn engine(&mut self) -> Box<dyn Engine> {
        (self.make)()
    }

    /// A path in the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A path in the folder, as operations have it.
    pub(super) fn c_path(&self, name: &str) -> CString {
        c_path(&self.path(name))
    }

    /// A new file with this content, open for reading and writing.
    pub(super) fn file(&self, name: &str, content: &[u8]) -> File {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file for a case");
        OpenOptions::new().read(true).write(true).open(&path).expect("the file for a case")
    }

    /// What a file holds.
    pub(super) fn content(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("the file of a case")
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        // What cannot be removed is in a folder of the caller's, who removes it.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

pub(super) fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no zero in a path")
}

/// Bytes that differ from place to place.
pub(super) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Does one operation on an engine that has no others.
pub(super) fn one(engine: &mut dyn Engine, op: Op) -> Completion {
    all(engine, vec![op]).pop().expect("a completion")
}

/// Does one operation; what came of it.
pub(super) fn result(engine: &mut dyn Engine, op: Op) -> Result<Answer, Errno> {
    one(engine, op).result
}

/// Does one operation that must fail; how.
pub(super) fn errno(engine: &mut dyn Engine, op: Op) -> Errno {
    let name = op.name();
    match result(engine, op) {
        Err(errno) => errno,
        Ok(answer) => panic!("{name} must fail, and gave {answer:?}"),
    }
}

/// Does one operation that must move bytes; how many.
pub(super) fn bytes(engine: &mut dyn Engine, op: Op) -> u64 {
    let name = op.name();
    match result(engine, op) {
        Ok(Answer::Bytes(count)) => count,
        other => panic!("{name} must move bytes, and gave {other:?}"),
    }
}

/// Does operations together, as many at once as the engine takes; the completions in their order.
pub(super) fn all(engine: &mut dyn Engine, ops: Vec<Op>) -> Vec<Completion> {
    let (count, deadline) = (ops.len(), Instant::now() + WAIT_MAX);
    let mut done = Vec::with_capacity(count);
    for (token, mut op) in (0..).zip(ops) {
        while let Err(crate::Full(back)) = engine.submit(token, op) {
            op = back;
            wait_some(engine, &mut done, deadline);
        }
    }
    while done.len() < count {
        wait_some(engine, &mut done, deadline);
    }
    assert_eq!(engine.in_flight(), 0, "all are done, and something is in flight");
    done.sort_by_key(|completion| completion.token);
    let tokens: Vec<_> = done.iter().map(|completion| completion.token).collect();
    assert_eq!(tokens, (0..count as u64).collect::<Vec<_>>(), "each token comes back once");
    done
}

/// Waits until there is a completion more.
pub(super) fn wait_some(engine: &mut dyn Engine, done: &mut Vec<Completion>, deadline: Instant) {
    let before = done.len();
    while done.len() == before {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "{} operations hang", engine.in_flight());
        let count = engine.wait(done, Some(left));
        assert_eq!(count, done.len() - before, "`wait` says how many it appended");
    }
}

pub(super) fn read(file: &impl AsRawFd, len: usize, offset: u64) -> Op {
    Op::Read { fd: file.as_raw_fd(), buffer: Buffer::new(len), offset }
}

pub(super) fn write(file: &impl AsRawFd, content: &[u8], offset: u64) -> Op {
    let mut buffer = Buffer::new(content.len());
    buffer.copy_from_slice(content);
    Op::Write { fd: file.as_raw_fd(), buffer, offset }
}

/// The content of the only buffer that an operation has.
pub(super) fn content(op: Op) -> Vec<u8> {
    let buffers = op.into_buffers();
    assert_eq!(buffers.len(), 1, "one buffer comes back");
    buffers[0].to_vec()
}

/// A descriptor that is not open.
pub(super) const NOT_OPEN: RawFd = 1 << 20;

/// Two ends of a pipe: to read from, to write to.
pub(super) fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends = [0; 2];
    // SAFETY: two numbers, which live through the call.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0, "a pipe");
    // SAFETY: the kernel just made these descriptors for us.
    ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }).into()
}

/// The file under a high number, which nobody gets again soon: for cases that close it.
pub(super) fn high(file: std::fs::File) -> OwnedFd {
    /// Above what programs have, below the usual limit of 1024.
    const NUMBERS: std::ops::Range<u64> = 500..980;
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed) % (NUMBERS.end - NUMBERS.start);
    let above = (NUMBERS.start + count) as RawFd;
    // SAFETY: takes no memory.
    let fd = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, above) };
    assert!(fd >= above, "a descriptor above {above}");
    // SAFETY: the kernel just made this descriptor for us.
    unsafe { OwnedFd::from_raw_fd(fd) }
}
