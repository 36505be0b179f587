//! One built-in task: a small state machine, whose answers are operations for the engine.
//!
//! ```text
//! open the source -> open the target -> empty the target -> pieces -> flush -> close the target
//!   -> close the source -> flush the folders of the target -> over
//! ```
//!
//! A task leaves out what it does not need. A write empties its file by opening it; a copy does not
//! before it is sure that source and target are two files, and not two names of one. After an
//! error, or when it is to stop, it only closes what it opened. It has one operation under way at a
//! time, and owns the memory that this uses.

use std::ffi::CString;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use exec::limiter::{Limiters, Writer};
use ops::{Answer, Completion, Errno, Op};
use sched::{ExecutorId, TaskId};

use super::folders::{self, Flush, Settled};
use super::memory::{Data, Room};
use crate::pickle;
use crate::shell::run::runtime_error;
use crate::store::{Store, Value};
use crate::SYSTEM_ERROR_PREFIX;

/// What goes in one operation at most: a task that is to stop does so between two.
const PIECE_BYTES: u64 = 8 << 20;
/// How much room a file gets that does not tell its size; twice as much when that is full.
const UNTOLD_BYTES: u64 = 64 << 10;
/// Permissions of a new file, before the umask.
const PERMISSIONS: u32 = 0o666;
/// Why a copy fails that would destroy what it is to copy.
const SAME_FILE: &str = "source and target are the same file";

/// What all tasks use.
pub(super) struct Tools {
    pub(super) store: Arc<Store>,
    pub(super) limiters: Limiters,
    pub(super) settled: Settled,
    /// The session ends: no task goes on.
    pub(super) stopping: bool,
}

/// Which run of which task this is, and what ends it.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    pub(super) task: TaskId,
    pub(super) executor: ExecutorId,
    pub(super) attempt: u32,
    /// Its time was up: it is to go no further.
    pub(super) stop: Arc<AtomicBool>,
}

/// A file that a task uses.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    /// Its layer, if the bandwidth there is emulated.
    limiter: Option<u32>,
    /// There, it counts as one that reads or writes from its first transfer on.
    writer: Option<Writer>,
    fd: Option<OwnedFd>,
}

impl File {
    pub(super) fn new(path: PathBuf, limiter: Option<u32>) -> File {
        File { path, limiter, writer: None, fd: None }
    }

    /// Not to wait at the opening means not to wait for the other end of a pipe, which could not be
    /// used anyway: it has no positions.
    fn open(&self, flags: i32, waits: bool) -> Op {
        let path: CString = folders::c_path(&self.path);
        let flags = flags | libc::O_CLOEXEC | if waits { 0 } else { libc::O_NONBLOCK };
        Op::Open { path, flags, mode: PERMISSIONS }
    }

    /// It is open. From now on everything waits.
    fn opened(&mut self, fd: OwnedFd) {
        // SAFETY: our own descriptor; the call changes nothing but its flags, of which this is the
        // only one that can be changed and was set.
        unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, 0) };
        self.fd = Some(fd);
    }

    fn raw(&self) -> i32 {
        self.fd.as_ref().expect("it was opened before").as_raw_fd()
    }

    fn close(&mut self) -> Option<Op> {
        Some(Op::Close { fd: self.fd.take()?.into_raw_fd() })
    }
}

/// What a task moves.
#[derive(Debug)]
pub(super) enum Work {
    /// Bytes of a file into a value.
    Read {
        /// From where on.
        offset: u64,
        /// How many at most.
        size: Option<u64>,
    },
    /// A value into a file.
    Write(Data),
    /// A file into another.
    Copy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    OpenSource,
    OpenTarget,
    Empty,
    Move,
    Sync,
    CloseTarget,
    CloseSource,
    Folders,
    Over,
}

impl Stage {
    fn next(self) -> Stage {
        match self {
            Stage::OpenSource => Stage::OpenTarget,
            Stage::OpenTarget => Stage::Empty,
            Stage::Empty => Stage::Move,
            Stage::Move => Stage::Sync,
            Stage::Sync => Stage::CloseTarget,
            Stage::CloseTarget => Stage::CloseSource,
            Stage::CloseSource => Stage::Folders,
            Stage::Folders | Stage::Over => Stage::Over,
        }
    }
}

/// Why a task failed.
#[derive(Debug)]
enum Trouble {
    /// The system refused something of a file.
    System(Errno, PathBuf),
    /// The target of a copy, which is its source under another name.
    SameFile(PathBuf),
    /// The runtime did.
    Runtime(String),
}

/// What a task wants now.
#[derive(Debug)]
pub(super) enum Next {
    /// An operation; [`Job::completed`] follows.
    Do(Op),
    /// To be asked again at this time.
    Wait(u64),
    /// Nothing: [`Job::finish`] it.
    Over,
}

/// How a task ended.
pub(super) struct Finished {
    pub(super) ticket: Ticket,
    pub(super) started_ns: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
    /// The error of the system that it failed of at the file that it writes; 0: none.
    pub(super) errno: i32,
    /// Its value, or the payload of its failure.
    pub(super) outcome: Result<Value, Arc<[u8]>>,
}

/// A task that the engine works on.
pub(super) struct Job {
    ticket: Ticket,
    started_ns: u64,
    source: Option<File>,
    target: Option<File>,
    work: Work,
    room: Option<Room>,
    stage: Stage,
    /// Bytes that were moved, and that are to be.
    done: u64,
    total: u64,
    /// How far `total` may grow, while it is not known.
    total_max: u64,
    /// Until when its layers are busy with what it moved.
    busy_until_ns: u64,
    /// Whether the next piece was accounted for.
    paid: bool,
    /// Whether the next opening waits.
    waits: bool,
    /// Whether the target has something that has to go first.
    empties: bool,
    /// Whether missing folders were made.
    made_folders: bool,
    flush: Option<Flush>,
    trouble: Option<Trouble>,
}

impl Job {
    pub(super) fn new(ticket: Ticket, work: Work, files: [Option<File>; 2], durable: bool) -> Job {
        let [source, target] = files;
        let total = if let Work::Write(data) = &work { data.len() } else { 0 };
        let flush = target.as_ref().filter(|_| durable).map(|file| Flush::new(&file.path));
        Job {
            ticket,
            started_ns: exec::now_ns(),
            source,
            target,
            work,
            room: None,
            stage: Stage::OpenSource,
            done: 0,
            total,
            total_max: total,
            busy_until_ns: 0,
            paid: false,
            waits: false,
            empties: false,
            made_folders: false,
            flush,
            trouble: None,
        }
    }

    /// What to do now.
    pub(super) fn next(&mut self, tools: &Tools) -> Next {
        if tools.stopping || self.ticket.stop.load(Ordering::Acquire) {
            self.trouble.get_or_insert_with(|| Trouble::Runtime("it was stopped".into()));
        }
        loop {
            let closes = matches!(self.stage, Stage::CloseTarget | Stage::CloseSource);
            let goes_on = self.trouble.is_none() || closes;
            let next = match self.stage {
                Stage::Over => Some(Next::Over),
                _ if !goes_on => None,
                Stage::OpenSource => {
                    self.source.as_ref().map(|file| Next::Do(file.open(libc::O_RDONLY, self.waits)))
                }
                Stage::OpenTarget => {
                    let empties = if let Work::Copy = self.work { 0 } else { libc::O_TRUNC };
                    let flags = libc::O_WRONLY | libc::O_CREAT | empties;
                    self.target.as_ref().map(|file| Next::Do(file.open(flags, self.waits)))
                }
                Stage::Empty => self.target.as_ref().filter(|_| self.empties).map(|file| {
                    let fd = file.raw();
                    Next::Do(Op::Truncate { fd, len: 0 })
                }),
                Stage::Move => self.piece(tools),
                Stage::Sync => self.flush.as_ref().and(self.target.as_ref()).map(|file| {
                    let fd = file.raw();
                    Next::Do(Op::Fsync { fd })
                }),
                Stage::CloseTarget => self.target.as_mut().and_then(File::close).map(Next::Do),
                Stage::CloseSource => self.source.as_mut().and_then(File::close).map(Next::Do),
                Stage::Folders => self.flush.as_mut().and_then(Flush::next).map(Next::Do),
            };
            match next {
                Some(next) => return next,
                None => self.stage = self.stage.next(),
            }
        }
    }

    /// By its layers, where their bandwidth is emulated.
    fn writers<'a>(&'a mut self, tools: &'a Tools) -> impl Iterator<Item = &'a Writer> + 'a {
        let files = [&mut self.target, &mut self.source].into_iter().flatten();
        files.filter_map(|file| {
            let layer = file.limiter?;
            Some(&*file.writer.get_or_insert_with(|| tools.limiters.writer(layer)))
        })
    }

    /// Accounts for a transfer on the layers whose bandwidth is emulated.
    fn pay(&mut self, tools: &Tools, bytes: u64) {
        let wait_ns = self.writers(tools).map(|writer| writer.acquire(bytes)).max();
        if let Some(wait_ns) = wait_ns.filter(|wait_ns| *wait_ns > 0) {
            self.busy_until_ns = exec::now_ns() + wait_ns;
        }
    }

    /// The next piece; `None`: all was moved.
    fn piece(&mut self, tools: &Tools) -> Option<Next> {
        if self.busy_until_ns > exec::now_ns() {
            return Some(Next::Wait(self.busy_until_ns));
        }
        if self.done >= self.total {
            return None;
        }
        let limit = self.writers(tools).map(Writer::piece).min();
        let (limited, most) = (limit.is_some(), limit.unwrap_or(PIECE_BYTES));
        let len = most.min(self.total - self.done);
        // Reads are paid for when it is known how much there was.
        if limited && !self.paid && !matches!(self.work, Work::Read { .. }) {
            self.paid = true;
            self.pay(tools, len);
            return self.piece(tools);
        }
        self.paid = false;
        let from = self.source.as_ref().map(File::raw);
        let to = self.target.as_ref().map(File::raw);
        Some(Next::Do(match (&self.work, from, to) {
            (Work::Read { offset, .. }, Some(fd), _) => {
                let room = self.room.as_ref().expect("made when the file was measured");
                // SAFETY: the room is part of the job, which is kept until the operation is
                // complete; there is one operation at a time.
                let buffer = unsafe { room.part(self.done, len) };
                Op::Read { fd, buffer, offset: offset + self.done }
            }
            (Work::Write(data), _, Some(fd)) => {
                // SAFETY: the data are part of the job, which is kept until the operation is
                // complete.
                let buffer = unsafe { data.part(self.done, len) };
                Op::Write { fd, buffer, offset: self.done }
            }
            (Work::Copy, Some(from), Some(to)) => {
                let at = self.done;
                Op::Copy { from, from_offset: at, to, to_offset: at, len }
            }
            (work, ..) => unreachable!("{work:?} without its files"),
        }))
    }

    /// The operation is complete.
    pub(super) fn completed(&mut self, tools: &mut Tools, completion: Completion) {
        let Completion { op, result, .. } = completion;
        let file =
            if self.stage == Stage::OpenTarget { &mut self.target } else { &mut self.source };
        match (self.stage, result) {
            (Stage::OpenSource | Stage::OpenTarget, Ok(Answer::Fd(fd))) => {
                file.as_mut().expect("it was to be opened").opened(fd);
                self.waits = false;
                match self.stage {
                    Stage::OpenSource => self.measure(tools),
                    _ => self.compare(),
                }
                self.stage = self.stage.next();
            }
            (Stage::OpenSource | Stage::OpenTarget, Err(Errno(libc::EAGAIN))) if !self.waits => {
                // Somebody has a lease on it, and was told to give it up: that is worth a wait.
                self.waits = true;
            }
            (Stage::OpenTarget, Err(Errno(libc::ENOENT))) if !self.made_folders => {
                // Made here and now: it is rare, and nothing but names.
                self.made_folders = true;
                let path = &file.as_ref().expect("it was to be opened").path;
                let made = folders::make(path, &mut tools.settled);
                self.check(made);
            }
            (Stage::Folders, result) => {
                let flush = self.flush.as_mut().expect("its operation");
                let flushed = flush.completed(result, &mut tools.settled);
                self.check(flushed);
            }
            (Stage::Move, Ok(answer)) => self.moved(tools, op, answer.bytes()),
            (stage, Ok(_)) => self.stage = stage.next(),
            (stage, Err(errno)) => {
                let path = self.path_of(stage);
                self.check(Err((errno, path)));
            }
        }
    }

    fn check(&mut self, result: Result<(), (Errno, PathBuf)>) {
        if let Err((errno, path)) = result {
            self.trouble.get_or_insert(Trouble::System(errno, path));
        }
    }

    /// The file that an error of a stage is about.
    fn path_of(&self, stage: Stage) -> PathBuf {
        let of_source = matches!(stage, Stage::OpenSource | Stage::CloseSource);
        let (first, second) = (&self.target, &self.source);
        let (first, second) = if of_source { (second, first) } else { (first, second) };
        let file = first.as_ref().or(second.as_ref());
        file.map_or_else(PathBuf::new, |file| file.path.clone())
    }

    /// A piece was moved.
    fn moved(&mut self, tools: &Tools, op: Op, count: u64) {
        if let Work::Read { .. } = self.work {
            self.pay(tools, count);
            let room = self.room.as_mut().expect("it was read into");
            for part in op.into_buffers() {
                room.arrived(&part, count);
            }
        }
        self.done += count;
        match self.work {
            _ if count > 0 => self.grow(tools),
            // The file ends here. (Less than was asked for may only mean that a device paused.)
            Work::Read { .. } | Work::Copy => self.total = self.done,
            Work::Write(_) => {
                let path = self.path_of(Stage::Move);
                self.check(Err((Errno(libc::EIO), path)));
            }
        }
    }

    /// The source is open: how much there is to do, and room for it.
    fn measure(&mut self, tools: &Tools) {
        let file = self.source.as_ref().expect("it was opened");
        let (size, is_regular) = match measured(file.raw()) {
            Ok(measured) => measured,
            Err(errno) => {
                let path = file.path.clone();
                return self.check(Err((errno, path)));
            }
        };
        let (offset, wanted) = match self.work {
            Work::Read { offset, size } => (offset, size),
            _ => (0, None),
        };
        let left = size.saturating_sub(offset);
        self.total = match wanted {
            // It is empty, or the kernel makes it up as it is read.
            _ if size == 0 && is_regular => {
                self.total_max = wanted.unwrap_or(u64::MAX);
                self.total_max.min(UNTOLD_BYTES)
            }
            // Devices do not know their size.
            Some(wanted) if size == 0 => wanted,
            Some(wanted) => left.min(wanted),
            None => left,
        };
        if let Work::Read { .. } = self.work {
            match Room::new(&tools.store, self.total) {
                Ok(room) => self.room = Some(room),
                Err(full) => self.trouble = Some(Trouble::Runtime(full.to_string())),
            }
        }
    }

    /// Makes room for more of a file that did not tell its size, if there is none left.
    fn grow(&mut self, tools: &Tools) {
        if self.done < self.total || self.total >= self.total_max {
            return;
        }
        self.total = self.total.saturating_mul(2).min(self.total_max);
        // What is copied needs none.
        let Some(room) = self.room.take() else { return };
        match room.grown(&tools.store, self.done, self.total) {
            Ok(room) => self.room = Some(room),
            Err(full) => self.trouble = Some(Trouble::Runtime(full.to_string())),
        }
    }

    /// The target is open: whether it may be emptied, and has to be.
    fn compare(&mut self) {
        let (Work::Copy, Some(source), Some(target)) = (&self.work, &self.source, &self.target)
        else {
            return;
        };
        match (status(source.raw()), status(target.raw())) {
            (Ok(from), Ok(to)) if (from.st_dev, from.st_ino) == (to.st_dev, to.st_ino) => {
                self.trouble = Some(Trouble::SameFile(target.path.clone()));
            }
            (Ok(_), Ok(to)) => self.empties = is_regular(&to) && to.st_size > 0,
            (Err(errno), _) | (_, Err(errno)) => {
                let path = target.path.clone();
                self.check(Err((errno, path)));
            }
        }
    }

    /// What came of it, once it is over.
    pub(super) fn finish(mut self, tools: &Tools) -> Finished {
        let read = if self.source.is_some() { self.done } else { 0 };
        let written = if self.target.is_some() { self.done } else { 0 };
        let value = match (self.trouble.take(), self.room.take()) {
            (Some(trouble), _) => Err(trouble),
            (None, Some(room)) => room
                .into_value(&tools.store, self.done)
                .map_err(|full| Trouble::Runtime(full.to_string())),
            (None, None) => Ok(Value::inline(pickle::number(self.done))),
        };
        let errno = self.errno(&value);
        Finished {
            ticket: self.ticket,
            started_ns: self.started_ns,
            bytes_read: read,
            bytes_written: written,
            errno,
            outcome: value.map_err(|trouble| payload(&trouble)),
        }
    }

    /// The error that a task failed of, if the file that it writes had it.
    fn errno(&self, value: &Result<Value, Trouble>) -> i32 {
        match (value, &self.target) {
            (Err(Trouble::System(errno, path)), Some(target)) if *path == target.path => errno.0,
            _ => 0,
        }
    }

    /// A task that cannot even begin.
    pub(super) fn fail(mut self, tools: &Tools, why: &str) -> Finished {
        self.trouble = Some(Trouble::Runtime(why.into()));
        self.finish(tools)
    }
}

/// What is known of an open file. It is in memory since the file was opened.
fn status(fd: i32) -> Result<libc::stat, Errno> {
    // SAFETY: all of its fields are integers.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `status` is a valid place for the answer, and the descriptor is open.
    if unsafe { libc::fstat(fd, &mut status) } < 0 {
        return Err(Errno::last());
    }
    Ok(status)
}

fn is_regular(status: &libc::stat) -> bool {
    status.st_mode & libc::S_IFMT == libc::S_IFREG
}

/// Bytes of an open file, and whether it is a regular one; folders and pipes have none.
fn measured(fd: i32) -> Result<(u64, bool), Errno> {
    let status = status(fd)?;
    match status.st_mode & libc::S_IFMT {
        libc::S_IFDIR => Err(Errno(libc::EISDIR)),
        libc::S_IFIFO => Err(Errno(libc::ESPIPE)),
        _ => Ok((u64::try_from(status.st_size).unwrap_or(0), is_regular(&status))),
    }
}

fn payload(trouble: &Trouble) -> Arc<[u8]> {
    match trouble {
        Trouble::System(errno, path) => system_error(*errno, path, ""),
        Trouble::SameFile(path) => system_error(Errno(libc::EINVAL), path, SAME_FILE),
        Trouble::Runtime(text) => runtime_error(text),
    }
}

/// The payload of a failure that the system told, or could have told; `text` stands for its own
/// words, if it is not empty.
pub(super) fn system_error(errno: Errno, path: &Path, text: &str) -> Arc<[u8]> {
    let path = path.as_os_str().as_bytes();
    let end = if text.is_empty() { "" } else { "\0" };
    let (errno, end, text) = (errno.0.to_le_bytes(), end.as_bytes(), text.as_bytes());
    [SYSTEM_ERROR_PREFIX, &errno, path, end, text].concat().into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use engine::{Engine, Options, Prefer};
    use ops::Curve;

    use super::*;

    struct Bench {
        folder: PathBuf,
        tools: Tools,
        engine: Box<dyn Engine>,
        stop: Arc<AtomicBool>,
    }

    impl Drop for Bench {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    impl Bench {
        fn new(name: &str) -> Bench {
            let name = format!("alongside-work-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().canonicalize().unwrap().join(name);
            fs::create_dir(&folder).unwrap();
            let pool = exec::process::Pool::new(64 << 20).unwrap();
            let store = Store::new(&pool, 64 << 20, 0);
            let (limiters, settled) = (pool.limiters(), Settled::from([folder.clone()]));
            let tools = Tools { store, limiters, settled, stopping: false };
            let options = Options { prefer: Prefer::Threads, ..Options::default() };
            let engine = engine::open(&options).unwrap();
            Bench { folder, tools, engine, stop: Arc::default() }
        }

        fn job(&self, work: Work, files: [Option<&str>; 2], durable: bool) -> Job {
            let (task, executor) = (TaskId::from_bits(0), ExecutorId(0));
            let stop = Arc::clone(&self.stop);
            let file = |name: &str| File::new(self.folder.join(name), Some(0));
            let files = files.map(|name| name.map(file));
            Job::new(Ticket { task, executor, attempt: 1, stop }, work, files, durable)
        }

        fn write(&self, name: &str, data: &[u8], durable: bool) -> Job {
            let value = Value::inline(data);
            self.job(Work::Write(Data::new(value, 0..data.len())), [None, Some(name)], durable)
        }

        /// Does all of it; the names of the operations, and what came of it.
        fn work(&mut self, mut job: Job, mut before: impl FnMut(usize)) -> (String, Finished) {
            let mut names = Vec::new();
            let mut completions = Vec::new();
            loop {
                before(names.len());
                match job.next(&self.tools) {
                    Next::Do(op) => {
                        names.push(op.name());
                        assert!(self.engine.submit(0, op).is_ok());
                        self.engine.wait(&mut completions, None);
                        let completion = completions.pop().expect("the only one");
                        job.completed(&mut self.tools, completion);
                    }
                    Next::Wait(until) => assert!(until > 0),
                    Next::Over => return (names.join(" "), job.finish(&self.tools)),
                }
            }
        }
    }

    #[test]
    fn a_durable_file_is_flushed_before_it_is_closed_and_its_folders_after() {
        let mut bench = Bench::new("durable");
        let job = bench.write("file", b"data", true);
        let (names, finished) = bench.work(job, |_| ());
        assert_eq!(names, "open write fsync close open fsync close");
        assert!(finished.outcome.is_ok());
        let job = bench.write("new/file", b"data", true);
        let (names, _) = bench.work(job, |_| ());
        let folders = "open fsync close open fsync close";
        assert_eq!(names, format!("open open write fsync close {folders}"), "and the one above");
        let job = bench.write("file", b"data", false);
        assert_eq!(bench.work(job, |_| ()).0, "open write close");
    }

    #[test]
    fn a_task_that_is_to_stop_only_closes_what_it_opened() {
        let mut bench = Bench::new("stop");
        let data = vec![7; PIECE_BYTES as usize * 3];
        for (after, expected) in [
            (0, ""),
            (1, "open close"),
            (2, "open write close"),
            (4, "open write write write close"),
        ] {
            bench.stop.store(false, Ordering::Release);
            let (job, stop) = (bench.write("file", &data, true), Arc::clone(&bench.stop));
            let stops = |done| stop.store(done >= after, Ordering::Release);
            let (names, finished) = bench.work(job, stops);
            assert_eq!(names, expected);
            assert!(finished.outcome.is_err(), "stopped after {after}");
        }
    }

    #[test]
    fn a_file_that_does_not_tell_its_size_gets_room_as_it_comes() {
        let mut bench = Bench::new("untold");
        fs::write(bench.folder.join("empty"), "").unwrap();
        std::os::unix::fs::symlink("/proc/version", bench.folder.join("made-up")).unwrap();
        for size in [Some(u64::MAX), None] {
            let job = bench.job(Work::Read { offset: 0, size }, [Some("empty"), None], false);
            let (names, finished) = bench.work(job, |_| ());
            assert_eq!((&*names, finished.bytes_read), ("open read close", 0));
            assert!(finished.outcome.is_ok());
        }
        let read = Work::Read { offset: 0, size: Some(50) };
        let mut job = bench.job(read, [Some("made-up"), None], false);
        let Next::Do(op) = job.next(&bench.tools) else { panic!("it was to be opened") };
        assert!(bench.engine.submit(0, op).is_ok());
        let mut completions = Vec::new();
        bench.engine.wait(&mut completions, None);
        job.completed(&mut bench.tools, completions.pop().unwrap());
        // As if the first room were smaller.
        job.total = 10;
        let (names, finished) = bench.work(job, |_| ());
        assert_eq!(names, "read read read read close", "10, 10, 20 and 10 bytes");
        let value = finished.outcome.unwrap();
        let range = pickle::raw_bytes(value.as_bytes()).expect("bytes");
        assert_eq!(value.as_bytes()[range], fs::read("/proc/version").unwrap()[..50]);
    }

    #[test]
    fn an_error_closes_both_files_and_is_the_first_one() {
        let mut bench = Bench::new("error");
        fs::write(bench.folder.join("source"), "data").unwrap();
        fs::create_dir(bench.folder.join("folder")).unwrap();
        let job = bench.job(Work::Copy, [Some("source"), Some("folder")], true);
        let (names, finished) = bench.work(job, |_| ());
        assert_eq!(names, "open open close");
        let expected = system_error(Errno(libc::EISDIR), &bench.folder.join("folder"), "");
        assert_eq!(finished.outcome.unwrap_err(), expected);
    }

    #[test]
    fn a_copy_empties_its_target_only_if_it_is_another_file() {
        let mut bench = Bench::new("same");
        let path = |name: &str| bench.folder.join(name);
        let (data, soft, hard, other) = (path("data"), path("soft"), path("hard"), path("other"));
        fs::write(&data, "data").unwrap();
        std::os::unix::fs::symlink(&data, &soft).unwrap();
        fs::hard_link(&data, &hard).unwrap();
        fs::write(&other, "longer than that").unwrap();
        for [from, to] in [["soft", "data"], ["data", "soft"], ["hard", "data"]] {
            let job = bench.job(Work::Copy, [Some(from), Some(to)], true);
            let (names, finished) = bench.work(job, |_| ());
            assert_eq!(names, "open open close close");
            let expected = system_error(Errno(libc::EINVAL), &bench.folder.join(to), SAME_FILE);
            assert_eq!(finished.outcome.unwrap_err(), expected);
            assert_eq!(fs::read(&data).unwrap(), b"data", "{from} to {to}");
        }
        for (target, expected) in [
            ("other", "open open truncate copy close close"),
            ("new", "open open copy close close"),
        ] {
            let job = bench.job(Work::Copy, [Some("data"), Some(target)], false);
            let (names, finished) = bench.work(job, |_| ());
            assert_eq!((&*names, finished.bytes_written), (expected, 4));
            assert_eq!(fs::read(bench.folder.join(target)).unwrap(), b"data");
        }
    }

    #[test]
    fn an_emulated_limit_makes_small_pieces_and_waits_between_them() {
        let mut bench = Bench::new("limit");
        bench.tools.limiters.set(0, Some(&Curve::flat(100_000_000)));
        let piece = bench.tools.limiters.writer(0).piece();
        let data = vec![7; piece as usize * 8 + 1];
        let job = bench.write("file", &data, false);
        let began = exec::now_ns();
        let (names, finished) = bench.work(job, |_| ());
        assert_eq!(names.split(' ').filter(|name| *name == "write").count(), 9);
        assert_eq!(finished.bytes_written, data.len() as u64);
        let least = data.len() as u64 * 10 - exec::limiter::BURST_NS;
        assert!(exec::now_ns() - began >= least, "{least} ns are the least");
    }
}
