//! Built-in tasks: files and values without a worker, errors of the system, and what is left to
//! the workers.

mod support;

use std::ffi::CString;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use runtime::{
    block, Builtin, Call, Cause, Constraint, Direction, Fault, FileUse, Handle, Input, Options,
    Overrides, Storage, Value, SYSTEM_ERROR_PREFIX,
};
use support::{entered, options, Folder, Rig, LONG};

const READ: Builtin = Builtin::Read { offset: 0, size: None };

/// A call of a built-in task on these files.
fn call(rig: &Rig, builtin: Builtin, files: &[(&Path, Direction)]) -> Call {
    let name = match builtin {
        Builtin::Read { .. } => "io:read",
        Builtin::Write => "io:write",
        Builtin::Copy | Builtin::Persist => "io:copy",
    };
    let mut call = Call { builtin: Some(builtin), ..rig.call(name, "unused", vec![]) };
    for (path, direction) in files {
        let datum = rig.session.path(path, true, None).unwrap().datum;
        call.files.push(FileUse { datum, direction: *direction });
    }
    call
}

fn only(rig: &Rig, call: Call) -> Handle {
    rig.submit(call).returns.pop().expect("one value")
}

fn read(rig: &Rig, path: &Path) -> Handle {
    only(rig, call(rig, READ, &[(path, Direction::In)]))
}

fn write_call(rig: &Rig, path: &Path, data: &[u8]) -> Call {
    let arguments = rig.session.encode(b"not looked at", &[data]).unwrap();
    Call { arguments, ..call(rig, Builtin::Write, &[(path, Direction::Out)]) }
}

fn write(rig: &Rig, path: &Path, data: &[u8]) -> Handle {
    only(rig, write_call(rig, path, data))
}

fn write_value(rig: &Rig, path: &Path, value: &Handle) -> Handle {
    let inputs = vec![Input::Handle(value.clone())];
    only(rig, Call { inputs, ..call(rig, Builtin::Write, &[(path, Direction::Out)]) })
}

/// The bytes that a pickled `bytes` holds: of the plainest form, which is what readers give.
fn bytes_of(value: &Value) -> Vec<u8> {
    let pickle = block::parse(value.as_bytes()).expect("a block").pickle;
    let at = 48;
    let len = u64::from_le_bytes(pickle[at - 8..at].try_into().unwrap()) as usize;
    assert_eq!((pickle[at - 9], pickle.len()), (0x8e, at + len + 1));
    pickle[at..at + len].to_vec()
}

fn number_of(value: &Value) -> u64 {
    let pickle = block::parse(value.as_bytes()).expect("a block").pickle;
    assert_eq!(pickle[..4], [0x80, 5, 0x8a, 8]);
    u64::from_le_bytes(pickle[4..12].try_into().unwrap())
}

/// The errno and the path of a task that the system refused something.
fn refused(rig: &Rig, handle: &Handle) -> (i32, String) {
    let Cause::Raised(payload) = rig.cause(handle) else { panic!("the system was to refuse") };
    let told = payload.strip_prefix(SYSTEM_ERROR_PREFIX).expect("an error of the system");
    let (errno, path) = told.split_at(4);
    let errno = i32::from_le_bytes(errno.try_into().unwrap());
    (errno, String::from_utf8(path.to_vec()).unwrap())
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

#[test]
fn what_is_written_is_read_and_copied() {
    let (folder, rig) = (Folder::new(), Rig::new(1));
    // Nothing; little enough for a message; one piece; several, the last of them short.
    for len in [0, 100, 1_000_000, 20_000_001] {
        let (one, two) = (folder.0.join(format!("{len}")), folder.0.join(format!("{len}-copy")));
        let data = pattern(len);
        let wrote = write(&rig, &one, &data);
        let copied = call(&rig, Builtin::Copy, &[(&one, Direction::In), (&two, Direction::Out)]);
        let copied = only(&rig, copied);
        assert_eq!(bytes_of(&rig.outcome(&read(&rig, &two)).unwrap()), data);
        assert_eq!(number_of(&rig.outcome(&wrote).unwrap()), len as u64);
        assert_eq!(number_of(&rig.outcome(&copied).unwrap()), len as u64);
        assert_eq!(fs::read(&one).unwrap(), data);
    }
    let figures = rig.session.statistics();
    assert_eq!(figures.bytes_read, 2 * 21_000_101);
    assert_eq!(figures.bytes_written, 2 * 21_000_101);
}

#[test]
fn a_part_is_read_and_less_where_the_file_ends() {
    let (folder, rig) = (Folder::new(), Rig::new(1));
    let path = folder.0.join("file");
    fs::write(&path, pattern(100_000)).unwrap();
    for (offset, size, expected) in [
        (10, Some(5), 10..15),
        (99_990, Some(100), 99_990..100_000),
        (0, Some(u64::MAX), 0..100_000),
        (50_000, None, 50_000..100_000),
        (100_000, None, 0..0),
        (u64::MAX / 2, Some(3), 0..0),
    ] {
        let part = call(&rig, Builtin::Read { offset, size }, &[(&path, Direction::In)]);
        let value = rig.outcome(&only(&rig, part)).unwrap();
        assert_eq!(bytes_of(&value), pattern(100_000)[expected], "{offset} {size:?}");
    }
    let endless = Builtin::Read { offset: 0, size: Some(70_000) };
    let zeros = call(&rig, endless, &[(Path::new("/dev/zero"), Direction::In)]);
    assert_eq!(bytes_of(&rig.outcome(&only(&rig, zeros)).unwrap()), [0; 70_000]);
}

#[test]
fn what_was_read_is_written_again_without_a_worker() {
    let (folder, rig) = (Folder::new(), Rig::new(1));
    let (one, two) = (folder.0.join("one"), folder.0.join("a/b/two"));
    fs::write(&one, pattern(200_000)).unwrap();
    rig.outcome(&write_value(&rig, &two, &read(&rig, &one))).unwrap();
    assert_eq!(fs::read(&two).unwrap(), pattern(200_000), "its folders were made");
}

#[test]
fn a_value_that_only_its_function_understands_goes_to_a_worker() {
    let (folder, rig) = (Folder::new(), Rig::new(1));
    let path = folder.0.join("file");
    let made = rig.run("echo", "of the worker's making", &[]);
    let wrote = write_value(&rig, &path, &made);
    // The worker's function of this name writes its arguments, and gives the place.
    assert_eq!(rig.text(&wrote), path.canonicalize().unwrap().to_str().unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"unused");
    let figures = rig.session.statistics();
    let write = figures.functions.iter().find(|function| &*function.name == "write").unwrap();
    assert_eq!((write.submitted, write.runs, write.done), (1, 1, 1), "one task, run once");
}

#[test]
fn errors_are_those_of_the_system_with_the_file() {
    let (folder, rig) = (Folder::new(), Rig::new(1));
    let root = folder.0.canonicalize().unwrap();
    let (missing, inner) = (root.join("missing"), root.join("file/inner"));
    let below = root.join("folder");
    fs::create_dir(&below).unwrap();
    fs::write(root.join("file"), "x").unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_string();
    assert_eq!(refused(&rig, &read(&rig, &missing)), (libc::ENOENT, text(&missing)));
    assert_eq!(refused(&rig, &read(&rig, &below)), (libc::EISDIR, text(&below)));
    assert_eq!(refused(&rig, &write(&rig, &below, b"x")), (libc::EISDIR, text(&below)));
    assert_eq!(refused(&rig, &write(&rig, &inner, b"x")), (libc::ENOTDIR, text(&inner)));
    let full = Path::new("/dev/full");
    assert_eq!(refused(&rig, &write(&rig, full, b"x")), (libc::ENOSPC, text(full)));
    let copy = [(&*root.join("file"), Direction::In), (full, Direction::Out)];
    let copied = only(&rig, call(&rig, Builtin::Copy, &copy));
    assert_eq!(refused(&rig, &copied), (libc::ENOSPC, text(full)));
    let needs = write_value(&rig, &root.join("target"), &copied);
    let Err(Fault::Failed(failure)) = rig.outcome(&needs) else { panic!("it needs the copy") };
    assert_eq!((&*failure.name, &*failure.from.as_ref().unwrap().name), ("write", "copy"));
    assert!(!root.join("target").exists());
}

#[test]
fn a_failure_is_tried_again_as_often_as_it_may_be() {
    let rig = Rig::new(1);
    let overrides = Overrides { retries: Some(3), ..Overrides::default() };
    let full = Path::new("/dev/full");
    let wrote = only(&rig, Call { overrides, ..write_call(&rig, full, b"x") });
    assert_eq!(refused(&rig, &wrote).0, libc::ENOSPC);
    let figures = rig.session.statistics();
    assert_eq!((figures.failed, figures.functions[0].runs), (1, 4));
}

#[test]
fn a_value_that_the_store_has_no_room_for_fails_the_task() {
    let rig = Rig::with(Options { store_bytes_max: Some(1 << 20), ..options(1) });
    let much = Builtin::Read { offset: 0, size: Some(2 << 20) };
    let zeros = call(&rig, much, &[(Path::new("/dev/zero"), Direction::In)]);
    let raised = rig.raised(&only(&rig, zeros));
    assert!(raised.contains("object store full"), "{raised}");
}

/// A file whose opening waits as long as this lives.
struct Leased(fs::File);

impl Leased {
    fn new(path: &Path) -> Leased {
        let file = fs::File::create(path).unwrap();
        // SAFETY: a valid signal, ignored: it says that somebody waits.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
        let lease = Leased(file);
        lease.set(libc::F_WRLCK);
        lease
    }

    fn set(&self, kind: i32) {
        // SAFETY: an open descriptor and a number.
        let set = unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETLEASE, kind) };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        self.set(libc::F_UNLCK);
    }
}

#[test]
fn a_task_whose_time_is_up_fails_although_the_kernel_still_has_it() {
    let (folder, rig) = (Folder::new(), Rig::new(1));
    let (held, file) = (folder.0.join("held"), folder.0.join("file"));
    let lease = Leased::new(&held);
    let soon = Some(Some(50_000_000));
    let overrides = Overrides { timeout_ns: soon, ..Overrides::default() };
    let stuck = call(&rig, READ, &[(&held, Direction::In)]);
    let stuck = only(&rig, Call { overrides, ..stuck });
    assert!(matches!(rig.cause(&stuck), Cause::TimedOut(50_000_000)));
    rig.outcome(&write(&rig, &file, b"others go on")).unwrap();
    assert_eq!(rig.session.statistics().live, 1, "it is not over: it may still touch its file");
    drop(lease);
    rig.drain();
    assert_eq!(bytes_of(&rig.outcome(&read(&rig, &file)).unwrap()), b"others go on");
    assert_eq!(bytes_of(&rig.outcome(&read(&rig, &held)).unwrap()), b"");
}

#[test]
fn a_file_of_a_task_that_the_engine_refuses_is_where_the_grant_of_the_worker_is() {
    let folder = Folder::new();
    for layer in ["fast", "slow"] {
        fs::create_dir(folder.0.join(layer)).unwrap();
    }
    let toml = folder.0.join("storage.toml");
    let text = "[[layer]]\nname='fast'\npath='fast'\nbandwidth='100MB/s'\n\
                [[layer]]\nname='slow'\npath='slow'\nbandwidth='10MB/s'\n";
    fs::write(&toml, text).unwrap();
    let storage = Storage::read(&toml).unwrap();
    let one = Options { io_executors: 1, io_executors_extra: 0, ..options(1) };
    let rig = Rig::with(Options { storage, ..one });
    let asks = |bandwidth, call| {
        let constraint = Some(Constraint { bandwidth, ..Constraint::default() });
        Call { overrides: Overrides { constraint, ..Overrides::default() }, ..call }
    };
    let made = rig.run("echo", "of the worker's making", &[]);
    rig.outcome(&made).unwrap();
    let pipe = folder.pipe("gate");
    let gate = rig.run("io:gate", pipe.to_str().unwrap(), &[]);
    let gate_open = entered(&pipe);
    // The fast layer is free: the engine gets the task there, and refuses it. No worker is free.
    let inputs = vec![Input::Handle(made)];
    let out = call(&rig, Builtin::Write, &[(&folder.0.join("slow/out"), Direction::Out)]);
    let refused = only(&rig, asks(8_000_000, Call { inputs, ..out }));
    rig.outcome(&write(&rig, &folder.0.join("after it"), b"x")).unwrap();
    // Meanwhile another takes all of the fast layer, and keeps it.
    let held = folder.0.join("fast/held");
    let lease = Leased::new(&held);
    let holds = call(&rig, READ, &[(&held, Direction::In)]);
    let holds = only(&rig, asks(100_000_000, holds));
    rig.outcome(&write(&rig, &folder.0.join("after that"), b"x")).unwrap();
    drop(gate_open);
    let place = folder.0.canonicalize().unwrap().join("slow/out");
    assert_eq!(rig.text(&refused), place.to_str().unwrap());
    drop(lease);
    rig.outcome(&holds).unwrap();
    rig.text(&gate);
}

#[test]
fn a_session_ends_although_the_kernel_does_not_give_an_operation_back() {
    let (folder, rig) = (Folder::new(), Rig::new(1));
    let (held, file) = (folder.0.join("held"), folder.0.join("file"));
    let lease = Leased::new(&held);
    let stuck = read(&rig, &held);
    rig.outcome(&write(&rig, &file, b"x")).unwrap();
    let began = Instant::now();
    rig.session.stop(true);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(matches!(rig.outcome(&stuck), Err(Fault::Session(_))));
    drop(lease);
}

#[test]
fn a_pipe_is_refused_at_once() {
    let (folder, rig) = (Folder::new(), Rig::new(1));
    let pipe = |name: &str| {
        let path = folder.0.canonicalize().unwrap().join(name);
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: a valid name.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        (path.clone(), path.to_str().unwrap().to_string())
    };
    let ((one, one_name), (two, two_name)) = (pipe("one"), pipe("two"));
    assert_eq!(refused(&rig, &read(&rig, &one)), (libc::ESPIPE, one_name));
    assert_eq!(refused(&rig, &write(&rig, &two, b"x")), (libc::ENXIO, two_name));
}

#[test]
fn a_task_whose_time_is_up_stops_where_it_waits_for_a_limited_layer() {
    let folder = Folder::new();
    fs::create_dir(folder.0.join("disk")).unwrap();
    let file = folder.0.join("storage.toml");
    fs::write(&file, "[[layer]]\nname='disk'\npath='disk'\nlimit='100kB/s'\n").unwrap();
    let storage = Storage::read(&file).unwrap();
    let rig = Rig::with(Options { storage, ..options(1) });
    let overrides = Overrides { timeout_ns: Some(Some(1_000_000)), ..Overrides::default() };
    let began = Instant::now();
    let slow = write_call(&rig, Path::new("file"), &[1; 10_000_000]);
    let slow = only(&rig, Call { overrides, ..slow });
    assert!(matches!(rig.cause(&slow), Cause::TimedOut(_)));
    rig.drain();
    assert!(began.elapsed() < Duration::from_secs(50), "all of it would take twice as long");
}

/// Threads of this process with this name: their numbers.
fn threads(name: &str) -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let paths = tasks.map(|task| task.unwrap().path());
    let named = paths.filter(|path| {
        fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    });
    named.map(|path| path.to_str().unwrap().to_string()).collect()
}

fn switches(thread: &str) -> u64 {
    let status = fs::read_to_string(format!("{thread}/status")).unwrap();
    let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
    counts.map(|line| line.split_whitespace().last().unwrap().parse::<u64>().unwrap()).sum()
}

/// In a process of its own: other tests have threads of that name too.
#[test]
fn many_tasks_need_one_thread_which_sleeps_when_they_are_over() {
    const MARK: &str = "ALONGSIDE_TEST_ALONE";
    const NAME: &str = "many_tasks_need_one_thread_which_sleeps_when_they_are_over";
    if std::env::var_os(MARK).is_none() {
        let this = std::env::current_exe().unwrap();
        let mut alone = std::process::Command::new(this);
        let ended = alone.args([NAME, "--exact", "--nocapture"]).env(MARK, "1").status();
        assert!(ended.unwrap().success());
        return;
    }
    let (folder, rig) = (Folder::new(), Rig::new(1));
    rig.text(&rig.run("echo", "up", &[]));
    assert!(threads("alongside-files").is_empty(), "nobody has called a built-in task");
    let data = pattern(20_000);
    let wrote: Vec<Handle> =
        (0..1000).map(|at| write(&rig, &folder.0.join(format!("{at}")), &data)).collect();
    rig.wait_all(&wrote);
    assert!((0..1000).all(|at| fs::read(folder.0.join(format!("{at}"))).unwrap() == data));
    let [thread] = &threads("alongside-files")[..] else { panic!("one was to be") };
    // It falls asleep after its last report, which nobody can wait for.
    let state = || fs::read_to_string(format!("{thread}/stat")).unwrap();
    let until = Instant::now() + LONG.unwrap();
    while !state().contains(") S ") {
        assert!(Instant::now() < until, "{}", state());
        std::thread::yield_now();
    }
    let before = switches(thread);
    for _ in 0..200 {
        rig.text(&rig.run("echo", "others work", &[]));
    }
    assert!(switches(thread) - before <= 1, "it does not wake up");
}

#[test]
fn an_emulated_limit_holds_for_reads_and_writes() {
    let folder = Folder::new();
    fs::create_dir(folder.0.join("disk")).unwrap();
    let file = folder.0.join("storage.toml");
    fs::write(&file, "[[layer]]\nname='disk'\npath='disk'\nlimit='10MB/s'\n").unwrap();
    let storage = Storage::read(&file).unwrap();
    let rig = Rig::with(Options { storage, ..options(1) });
    let begin = Instant::now();
    let home = folder.0.join("disk/file");
    rig.outcome(&write(&rig, &home, &[1; 1_000_000])).unwrap();
    let wrote = begin.elapsed();
    rig.outcome(&read(&rig, &home)).unwrap();
    let read = begin.elapsed() - wrote;
    // A tenth of a second each, less what an idle layer gives at once (5 ms).
    for time in [wrote, read] {
        assert!(time >= Duration::from_millis(94), "{time:?}");
    }
    assert!(home.exists());
}
