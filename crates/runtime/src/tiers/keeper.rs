//! The threads that look after files away from their own paths: one commits what tasks made (short,
//! many together), one moves files (long, one after the other), one brings files home that
//! the program waits for, one deletes old copies.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ops::catalog::{FileId, Record, Step};
use parking_lot::{Condvar, Mutex};

use super::disk::{available, called_off, carry_out, is_full, takes_files};
use super::{tree, Hold, Journal, Limits};

/// A copy that a task made.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// Its number; none: it was made at its own path.
    pub(crate) file: Option<FileId>,
    pub(crate) home: PathBuf,
    pub(crate) place: PathBuf,
    pub(crate) scratch: bool,
    /// It was to be a directory.
    pub(crate) directory: bool,
}

/// What comes after a commit: the lengths of the copies, or why it failed.
type AfterCommit = Box<dyn FnOnce(Result<Vec<u64>, String>) + Send>;
/// What comes after a layer was tried.
type AfterTry = Box<dyn FnOnce() + Send>;
/// What comes after a move.
type AfterMove = Box<dyn FnOnce(io::Result<()>) + Send>;

/// What is to be in the catalog before it is relied on.
pub(crate) struct Commit {
    pub(crate) made: Vec<Made>,
    pub(crate) records: Vec<Record>,
    pub(crate) then: AfterCommit,
}

/// Steps to carry out.
pub(crate) struct Move {
    /// The own path of the file that is moved; none: the original stays, and nobody minds how many
    /// copies are made of it.
    pub(crate) home: Option<PathBuf>,
    pub(crate) steps: Vec<Step>,
    pub(crate) limits: Limits,
    pub(crate) then: AfterMove,
}

struct Queue<T> {
    waiting: Mutex<(VecDeque<T>, bool)>,
    changed: Condvar,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { waiting: Mutex::new((VecDeque::new(), true)), changed: Condvar::new() }
    }
}

impl<T> Queue<T> {
    fn push(&self, one: T) {
        self.waiting.lock().0.push_back(one);
        self.changed.notify_one();
    }

    /// Before all that wait.
    fn push_first(&self, one: T) {
        self.waiting.lock().0.push_front(one);
        self.changed.notify_one();
    }

    fn close(&self) {
        self.waiting.lock().1 = false;
        self.changed.notify_all();
    }

    /// The next one, which begins before anybody else looks at what waits. `None`: closed.
    fn take_one(&self, begin: impl FnOnce(&T)) -> Option<T> {
        let mut waiting = self.waiting.lock();
        while waiting.0.is_empty() && waiting.1 {
            self.changed.wait(&mut waiting);
        }
        let one = waiting.0.pop_front()?;
        begin(&one);
        Some(one)
    }

    /// Takes those out that are such; `then` is called before anything else begins.
    fn take_out(&self, is_such: impl Fn(&T) -> bool, then: impl FnOnce()) -> Vec<T> {
        let mut waiting = self.waiting.lock();
        let (such, others) = waiting.0.drain(..).partition(is_such);
        waiting.0 = others;
        then();
        Vec::from_iter::<VecDeque<T>>(such)
    }

    /// The next ones, at most `max`; empty: none came within a time. `None`: closed, and nothing is
    /// left.
    fn take(&self, max: usize, within: Duration) -> Option<Vec<T>> {
        let mut waiting = self.waiting.lock();
        if waiting.0.is_empty() && waiting.1 {
            self.changed.wait_for(&mut waiting, within);
        }
        let many = waiting.0.len().min(max);
        (many > 0 || waiting.1).then(|| waiting.0.drain(..many).collect())
    }
}

/// What is told of layers: the bytes that are available on each, if that can be found out.
type Tell = Box<dyn Fn(Vec<Option<u64>>) + Send + Sync>;

/// A layer that failed is tried after so long, then after twice as long, up to the most.
const TRY_FIRST: Duration = Duration::from_millis(500);
const TRY_MOST: Duration = Duration::from_secs(30);

/// Layers are looked at again after so long when something was written since, or after so long when
/// nothing was: others use the devices too, and tasks may wait for what they give back.
const LOOK: Duration = Duration::from_millis(200);
const LOOK_IDLE: Duration = Duration::from_secs(1);

struct Inner {
    folders: Vec<Option<PathBuf>>,
    tell: Tell,
    commits: Queue<Commit>,
    moves: Queue<Move>,
    urgent: Queue<Move>,
    deletes: Queue<PathBuf>,
    journal: Mutex<Journal>,
    hold: Hold,
    /// Layers that are tried again, and whether nobody needs them any more.
    down: Mutex<(BTreeSet<usize>, bool)>,
    stopped: Condvar,
}

impl Inner {
    fn close(&self) {
        self.commits.close();
        // What was not begun is moved with the rest, in the end.
        self.moves.waiting.lock().0.clear();
        self.moves.close();
        self.urgent.close();
        self.deletes.close();
    }
}

type Body = fn(&Inner);

/// The threads, and how to reach them.
pub(crate) struct Keeper {
    inner: Arc<Inner>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Keeper {
    /// Starts the threads over a catalog; `tell` hears what is available in the folders.
    pub(crate) fn start(
        journal: Journal,
        folders: Vec<Option<PathBuf>>,
        tell: Tell,
    ) -> io::Result<Keeper> {
        let inner = Arc::new(Inner {
            folders,
            tell,
            commits: Queue::default(),
            moves: Queue::default(),
            urgent: Queue::default(),
            deletes: Queue::default(),
            journal: Mutex::new(journal),
            hold: Hold::default(),
            down: Mutex::default(),
            stopped: Condvar::new(),
        });
        let spawn = |name: &str, body: fn(&Inner)| {
            let inner = Arc::clone(&inner);
            std::thread::Builder::new().name(name.into()).spawn(move || body(&inner))
        };
        let bodies: [(&str, Body); 4] = [
            ("alongside-commit", commit_all),
            ("alongside-move", move_all),
            ("alongside-persist", persist_all),
            ("alongside-delete", delete_all),
        ];
        let started: Vec<_> = bodies.map(|(name, body)| spawn(name, body)).into();
        if started.iter().any(Result::is_err) {
            inner.close();
        }
        let threads = Mutex::new(started.into_iter().collect::<io::Result<_>>()?);
        Ok(Keeper { inner, threads })
    }

    pub(crate) fn commit(&self, commit: Commit) {
        self.inner.commits.push(commit);
    }

    /// Carries steps out when the mover comes to them. A copy for tasks that are about to read it
    /// comes before what is only moved out of the way.
    pub(crate) fn carry_out(&self, wanted: Move) {
        match wanted.home {
            None => self.inner.moves.push_first(wanted),
            Some(_) => self.inner.moves.push(wanted),
        }
    }

    /// As `carry_out`, for a move that the program waits for: nothing holds it up.
    pub(crate) fn carry_out_now(&self, wanted: Move) {
        self.inner.urgent.push(wanted);
    }

    /// Deletes a copy that nobody needs, when there is time.
    pub(crate) fn delete(&self, place: PathBuf) {
        self.inner.deletes.push(place);
    }

    /// A layer may have failed: it is tried. If no file can be written there `down` is told, and it
    /// is tried again and again until one can: `up` is told.
    pub(crate) fn doubt(&self, layer: usize, down: AfterTry, up: AfterTry) {
        let inner = Arc::clone(&self.inner);
        if !inner.down.lock().0.insert(layer) {
            return; // somebody is at it
        }
        let body = move || try_layer(&inner, layer, down, up);
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        match std::thread::Builder::new().name("alongside-try".into()).spawn(body) {
            Ok(thread) => threads.push(thread),
            // The next task that it fails asks again.
            Err(_) => drop(self.inner.down.lock().0.remove(&layer)),
        }
    }

    pub(crate) fn hold(&self) -> &Hold {
        &self.inner.hold
    }

    /// Ends the threads after what was asked for, and gives the catalog back.
    pub(crate) fn stop(self) -> Option<Journal> {
        self.inner.hold.set(false);
        self.inner.down.lock().1 = true;
        self.inner.stopped.notify_all();
        self.inner.close();
        for thread in self.threads.lock().drain(..) {
            // A panic there was told where it happened.
            let _ = thread.join();
        }
        Arc::into_inner(self.inner).map(|inner| inner.journal.into_inner())
    }
}

/// Commits that are made durable together, at most.
const COMMITS_AT_ONCE: usize = 256;

fn commit_all(inner: &Inner) {
    let (mut looked, mut due) = (Instant::now(), Duration::ZERO);
    loop {
        if looked.elapsed() >= due {
            (looked, due) = (Instant::now(), LOOK_IDLE);
            let free = inner.folders.iter().map(|folder| available(folder.as_ref()?).ok());
            (inner.tell)(free.collect());
        }
        let within = due.saturating_sub(looked.elapsed());
        let Some(commits) = inner.commits.take(COMMITS_AT_ONCE, within) else { return };
        if commits.is_empty() {
            continue;
        }
        due = LOOK;
        let mut records: Vec<Record> = Vec::new();
        let mut done: Vec<(AfterCommit, Result<Vec<u64>, String>)> = Vec::new();
        for commit in commits {
            let looked = look(&commit.made);
            if let Ok(sizes) = &looked {
                let copies = commit.made.iter().zip(sizes);
                records.extend(copies.filter_map(|(made, bytes)| copy_record(made, *bytes)));
                records.extend(commit.records);
            }
            done.push((commit.then, looked));
        }
        let written =
            inner.journal.lock().append(&records).map_err(|error| {
                format!("the catalog of the session cannot be written to: {error}")
            });
        for (then, looked) in done {
            then(written.clone().and(looked));
        }
    }
}

fn copy_record(made: &Made, bytes: u64) -> Option<Record> {
    let Made { file, home, place, scratch, .. } = made.clone();
    Some(Record::Copy { file: file?, home, place, bytes, scratch })
}

/// The lengths of copies.
fn look(made: &[Made]) -> Result<Vec<u64>, String> {
    let length = |made: &Made| {
        let home = made.home.display();
        let missing = |error: io::Error| format!("the task did not write {home}: {error}");
        let is_directory = made.place.metadata().map_err(missing)?.is_dir();
        if is_directory != made.directory {
            let (is, has) = match is_directory {
                true => ("directory", "file"),
                false => ("file", "directory"),
            };
            return Err(format!("the task made {home} a {is}, and has it as a {has}"));
        }
        tree::length(&made.place).map_err(missing)
    };
    made.iter().map(length).collect()
}

fn delete_all(inner: &Inner) {
    while let Some(place) = inner.deletes.take_one(|_| ()) {
        // What cannot be deleted now is found when the session's folders are swept.
        let _ = tree::remove(&place);
    }
}

/// Whether a layer works, as far as can be seen. One that is full does.
fn works(inner: &Inner, layer: usize) -> bool {
    let folder = inner.folders.get(layer).and_then(Option::as_ref);
    let failed = folder.and_then(|folder| takes_files(folder).err());
    failed.is_none_or(|error| error.raw_os_error().is_some_and(is_full))
}

fn try_layer(inner: &Inner, layer: usize, down: AfterTry, up: AfterTry) {
    if works(inner, layer) {
        inner.down.lock().0.remove(&layer);
        return;
    }
    down();
    let mut pause = TRY_FIRST;
    loop {
        let mut down = inner.down.lock();
        if !down.1 {
            inner.stopped.wait_for(&mut down, pause);
        }
        if down.1 {
            return;
        }
        drop(down);
        pause = (pause * 2).min(TRY_MOST);
        if works(inner, layer) {
            inner.down.lock().0.remove(&layer);
            return up();
        }
    }
}

fn persist_all(inner: &Inner) {
    let hold = Hold::default();
    while let Some(wanted) = inner.urgent.take_one(|_| ()) {
        if let Some(home) = &wanted.home {
            have_alone(inner, home);
        }
        carry(wanted, &inner.journal, &hold);
    }
}

/// Two moves of one file are not under way at a time: the later version could be overwritten by the
/// older one.
fn have_alone(inner: &Inner, home: &Path) {
    let same = |wanted: &Move| wanted.home.as_deref() == Some(home);
    for wanted in inner.moves.take_out(same, || inner.hold.call_off(home)) {
        (wanted.then)(Err(called_off()));
    }
    inner.hold.wait_for_end(home);
}

fn move_all(inner: &Inner) {
    while let Some(wanted) = inner.moves.take_one(|one| inner.hold.begin(one.home.as_deref())) {
        carry(wanted, &inner.journal, &inner.hold);
        inner.hold.end();
    }
}

fn carry(wanted: Move, journal: &Mutex<Journal>, hold: &Hold) {
    let Move { steps, limits, then, .. } = wanted;
    then(carry_out(&steps, journal, hold, &limits));
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use ops::catalog::{bring_home, move_to, replacing, Entry};

    use super::super::settle;
    use super::*;

    const FILE: FileId = FileId(7);

    /// What the catalog of a session is told of a copy.
    fn told(entry: &Entry) -> Record {
        let Entry { home, place, bytes, scratch, .. } = entry.clone();
        Record::Copy { file: FILE, home, place, bytes, scratch }
    }

    /// A folder with a session's catalog, and with a layer on which a copy is about to be made.
    fn away(name: &str) -> (PathBuf, Entry, Mutex<Journal>) {
        let name = format!("alongside-keeper-{}-{name}", std::process::id());
        let root = std::env::temp_dir().join(name);
        tree::remove(&root).unwrap();
        let (session, layer) = (root.join("session"), root.join("layer"));
        [&session, &layer].iter().for_each(|path| std::fs::create_dir_all(path).unwrap());
        let (home, place) = (root.join("home"), layer.join("7-home"));
        let (bytes, scratch, changing, leaving) = (3, false, false, None);
        let entry = Entry { home, place, bytes, scratch, changing, leaving };
        let mut journal = Journal::create(&session).unwrap();
        journal.append(&[told(&entry)]).unwrap();
        (root, entry, Mutex::new(journal))
    }

    fn seal(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A move that was decided while another one of the file was under way does nothing once that
    /// has ended: the catalog would not know where the file is while it is replaced by itself.
    #[test]
    fn what_came_home_meanwhile_is_not_brought_there_again() {
        let (root, entry, journal) = away("again");
        let Entry { home, place, .. } = &entry;
        [home, place].iter().for_each(|path| std::fs::create_dir(path).unwrap());
        std::fs::write(home.join("old"), "old").unwrap();
        std::fs::write(place.join("new"), "new").unwrap();
        let mut steps = replacing(bring_home(FILE, &entry, Some(&root.join("over"))));
        steps.pop();
        let carry = || carry_out(&steps, &journal, &Hold::default(), &Limits::default());
        let records = || journal.lock().records().unwrap();
        carry().unwrap();
        let before = records();
        assert_eq!(before.last(), Some(&Record::Home { file: FILE }));
        carry().unwrap();
        assert_eq!(records(), before);
        assert_eq!(std::fs::read_to_string(home.join("new")).unwrap(), "new");
        // It is away again: made anew under the same number.
        journal.lock().append(&[told(&entry)]).unwrap();
        carry().unwrap();
        assert_eq!(records().len(), before.len() + 3);
        tree::remove(&root).unwrap();
    }

    #[test]
    fn a_copy_that_cannot_be_deleted_is_at_home_all_the_same() {
        tree::as_nobody(|| {
            let (root, entry, journal) = away("kept");
            std::fs::write(&entry.place, "new").unwrap();
            let layer = root.join("layer");
            seal(&layer, 0o555);
            let steps = bring_home(FILE, &entry, Some(&root.join("over")));
            carry_out(&steps, &journal, &Hold::default(), &Limits::default()).unwrap();
            let records = journal.lock().records().unwrap();
            assert_eq!(records.last(), Some(&Record::Home { file: FILE }));
            assert_eq!(std::fs::read_to_string(&entry.home).unwrap(), "new");
            seal(&layer, 0o755);
            tree::remove(&root).unwrap();
        });
    }

    /// A rename into another folder writes to the directory itself, as `..` changes.
    #[test]
    fn a_directory_that_may_not_be_written_to_comes_home() {
        tree::as_nobody(|| {
            let (root, entry, journal) = away("sealed");
            let below = entry.place.join("below");
            std::fs::create_dir_all(&below).unwrap();
            std::fs::write(below.join("new"), "new").unwrap();
            [&below, &entry.place].iter().for_each(|path| seal(path, 0o555));
            let steps = |over: Option<&Path>| bring_home(FILE, &entry, over);
            let carry =
                |steps: &[Step]| carry_out(steps, &journal, &Hold::default(), &Limits::default());
            settle(true, &root.join("over"), steps, carry).unwrap();
            assert_eq!(std::fs::read_to_string(entry.home.join("below/new")).unwrap(), "new");
            let mode = entry.home.metadata().unwrap().permissions().mode();
            assert_eq!((mode & 0o777, entry.place.exists()), (0o555, false));
            tree::remove(&root).unwrap();
        });
    }

    #[test]
    fn a_move_that_fails_after_its_copy_leaves_none() {
        tree::as_nobody(|| {
            let (root, entry, journal) = away("failed");
            std::fs::write(&entry.place, "new").unwrap();
            let (lower, to) = (root.join("lower"), root.join("lower/7-home"));
            std::fs::create_dir(&lower).unwrap();
            // It takes files, and cannot be flushed.
            seal(&lower, 0o300);
            let steps = &move_to(FILE, &entry, &to)[1..];
            carry_out(steps, &journal, &Hold::default(), &Limits::default()).unwrap_err();
            assert!(!to.exists() && entry.place.exists());
            tree::remove(&root).unwrap();
        });
    }

    #[test]
    fn what_is_available_is_told_again_also_while_nothing_is_written() {
        let (root, _, journal) = away("room");
        let (say, hear) = std::sync::mpsc::sync_channel(8);
        let tell = Box::new(move |free: Vec<Option<u64>>| drop(say.try_send(free)));
        let layer = Some(root.join("layer"));
        let keeper = Keeper::start(journal.into_inner(), vec![layer, None], tell).unwrap();
        for _ in 0..2 {
            let free = hear.recv_timeout(Duration::from_secs(60)).unwrap();
            assert!(free[0].is_some() && free[1].is_none());
        }
        assert!(keeper.stop().is_some());
        tree::remove(&root).unwrap();
    }

    #[test]
    fn a_file_system_that_does_not_say_how_large_it_is_is_not_full() {
        assert!(available(Path::new("/proc")).is_err());
        assert!(available(Path::new("/")).is_ok());
    }

    #[test]
    fn what_is_about_to_be_read_comes_first_and_what_is_taken_out_does_not_come() {
        let queue = Queue::default();
        (1..4).for_each(|one| queue.push(one));
        queue.push_first(9);
        assert_eq!(queue.take_out(|one| *one == 2, || ()), [2]);
        queue.close();
        let mut begun = Vec::new();
        while let Some(one) = queue.take_one(|one| begun.push(*one)) {
            assert_eq!(begun.last(), Some(&one));
        }
        assert_eq!(begun, [9, 1, 3]);
    }
}
