//! Files that tasks write away from their own paths: given a place before a run, taken over by the
//! catalog after it, and brought to their own paths in the end.

use std::io;
use std::sync::{Arc, Weak};

use exec::limiter::Limiters;
use ops::catalog::Record;
use sched::{DatumId, Direction, Event, ExecutorId, LayerId, Outcome, TaskId};
use smallvec::SmallVec;

use super::receive::Ran;
use super::run::{runtime_error, Place};
use super::state::State;
use super::Shared;
use crate::files::Copy;
use crate::placing::{self, Unsettled};
use crate::tiers::{self, Commit, Keeper, Made};

/// A file may be so many times as large as its task's `size`.
const UNDERSIZED: u64 = 10;

/// What a session needs to keep files away from their own paths.
pub(crate) struct Tiers {
    pub(super) keeper: Arc<Keeper>,
    pub(super) shared: Weak<Shared>,
    pub(super) limiters: Limiters,
}

/// A run that is over, and not yet told to the scheduler.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) executor: ExecutorId,
    pub(super) id: TaskId,
    pub(super) attempt: u32,
    pub(super) run: Ran,
    pub(super) outcome: Outcome,
}

impl Tiers {
    pub(super) fn commit(
        &self,
        made: Vec<Made>,
        records: Vec<Record>,
        then: impl FnOnce(&Arc<Shared>, &mut State, Result<Vec<u64>, String>) + Send + 'static,
    ) {
        let then = Box::new(self.later(then));
        self.keeper.commit(Commit { made, records, then });
    }

    /// What is to be done with an answer, under the mutex, if the session is still there: one that
    /// ended has told everybody.
    pub(super) fn later<A>(
        &self,
        then: impl FnOnce(&Arc<Shared>, &mut State, A) + Send + 'static,
    ) -> impl FnOnce(A) + Send + 'static {
        let shared = Weak::clone(&self.shared);
        move |answer| {
            if let Some(shared) = shared.upgrade() {
                let _ = shared.with(|state| then(&shared, state, answer));
            }
        }
    }
}

impl State {
    /// Whether files can be kept away from their own paths.
    pub(crate) fn has_tiers(&self) -> bool {
        self.tiers.is_some()
    }

    /// From now on they can.
    pub(crate) fn add_tiers(
        &mut self,
        shared: &Arc<Shared>,
        opened: tiers::Opened,
    ) -> io::Result<()> {
        let limiters = shared.limiters().ok_or_else(|| io::Error::other("the session ended"))?;
        let weak = Arc::downgrade(shared);
        let tell = Box::new(move |free: Vec<Option<u64>>| {
            if let Some(shared) = weak.upgrade() {
                // A session that ended needs no room.
                let _ = shared.with(|state| state.tell_room(&free));
            }
        });
        let folders = opened.staging.folders().to_vec();
        let keeper = Arc::new(Keeper::start(opened.journal, folders, tell)?);
        self.files.staging = Some(opened.staging);
        self.tiers = Some(Tiers { keeper, shared: Arc::downgrade(shared), limiters });
        Ok(())
    }

    /// Others use the devices too: what is available there, and what files of the session take up
    /// already, is all that the session can use.
    fn tell_room(&mut self, free: &[Option<u64>]) {
        for told in self.files.room(free) {
            self.sched.handle(exec::now_ns(), told, &mut self.out);
        }
    }

    /// Decides where a task writes its files. For the executor that runs it: one that refuses gives
    /// the grant back, and the next may be on another layer.
    pub(super) fn place_files(&mut self, id: TaskId, layer: Option<LayerId>) {
        let task = self.tasks.get(id).expect("only live tasks run");
        let old = self.files.place(id, &task.files, layer);
        self.delete_copies(old);
    }

    /// The copy of a file that a task is to use.
    pub(super) fn copy_for(&self, id: TaskId, datum: DatumId, direction: Direction) -> Copy {
        self.files.copy_for(id, datum, direction)
    }

    /// The number of a layer whose bandwidth is emulated, if the copy is on one.
    pub(super) fn limiter_of(&self, copy: &Copy) -> Option<u32> {
        self.files.limiter_of(copy)
    }

    /// A task that changes files where they are begins when the catalog says so. `true`: it begins
    /// later.
    pub(super) fn begins_later(&mut self, id: TaskId, place: Place) -> bool {
        let task = self.tasks.get(id).expect("only live tasks run");
        let Some(tiers) = &self.tiers else { return false };
        let records = self.files.begin_changes(&task.files);
        if records.is_empty() {
            return false;
        }
        let (executor, attempt) = (place.executor, place.attempt);
        tiers.commit(Vec::new(), records, move |shared, state, done| {
            let waits = state.tasks.get(id).and_then(|task| task.deferred);
            if waits != Some((executor, attempt)) || !state.workers.all.contains_key(&executor.0) {
                return;
            }
            state.tasks.get_mut(id).expect("looked up above").deferred = None;
            match done {
                Ok(_) => state.run_now(shared, id, place),
                Err(why) => {
                    let outcome = Outcome::Raised(runtime_error(&why));
                    let ended = Event::Ended { task: id, executor, outcome, ran: 0 };
                    state.sched.handle(exec::now_ns(), ended, &mut state.out);
                }
            }
        });
        self.tasks.get_mut(id).expect("only live tasks run").deferred = Some((executor, attempt));
        true
    }

    /// What a task wrote, or changed where it was, and has not handed over.
    fn files_of(&self, id: TaskId) -> Vec<(DatumId, Copy)> {
        let Some(task) = self.tasks.get(id) else { return Vec::new() };
        let left = |at: &usize| !task.released.contains(&(*at as u32));
        let uses = task.files.iter().enumerate().filter(|(at, _)| left(at));
        let uses: SmallVec<[(DatumId, Direction); 2]> = uses.map(|(_, used)| *used).collect();
        self.files.written_by(id, &uses)
    }

    /// A task is done with a file that it wrote: it is in the catalog before anybody reads it.
    pub(super) fn released_file(
        &mut self,
        executor: ExecutorId,
        id: TaskId,
        attempt: u32,
        path: u32,
    ) {
        let given_up = self.sched.state(id) == Some(sched::State::Abandoned);
        if given_up || !self.is_at(executor, id, attempt) {
            return;
        }
        let task = self.tasks.get(id).expect("it is at an executor");
        let Some((datum, direction)) = task.files.get(path as usize).copied() else { return };
        if !direction.writes() || task.released.contains(&path) {
            return;
        }
        let file = (datum, self.copy_for(id, datum, direction));
        let access = task.inputs.len() as u32 + path;
        let task = self.tasks.get_mut(id).expect("looked up above");
        task.released.push(path);
        let Some((made, records)) = self.commit_for(std::slice::from_ref(&file)) else {
            self.take_over(vec![file], None);
            return self.tell_released(id, access);
        };
        self.tasks.get_mut(id).expect("looked up above").releasing += 1;
        let tiers = self.tiers.as_ref().expect("there is something to commit");
        tiers.commit(made, records, move |_, state, sizes| {
            state.file_committed((executor, id, attempt), access, file, sizes);
        });
    }

    fn file_committed(
        &mut self,
        (executor, id, attempt): (ExecutorId, TaskId, u32),
        access: u32,
        file: (DatumId, Copy),
        sizes: Result<Vec<u64>, String>,
    ) {
        let ends = |ending: &Ending| ending.attempt == attempt;
        let waits = self.tasks.get(id).and_then(|task| task.ending.as_deref()).is_some_and(ends);
        if !waits && !self.is_at(executor, id, attempt) {
            return self.outlived(file, sizes.is_ok());
        }
        let is_known = sizes.is_ok();
        if let Ok(sizes) = sizes {
            self.take_over(vec![file], Some(sizes));
            self.tell_released(id, access);
        }
        let task = self.tasks.get_mut(id).expect("it is at an executor");
        task.releasing -= 1;
        if !is_known {
            // The end of the run tells the catalog again, and says what is wrong.
            let first = task.inputs.len() as u32;
            task.released.retain(|path| first + *path != access);
        }
        if task.releasing == 0 {
            if let Some(ending) = task.ending.take() {
                self.finish(*ending);
            }
        }
    }

    /// The catalog answers for a file of a run that was lost meanwhile. For it too the version
    /// before is the current one then, or may be half changed, before a new one is deleted.
    fn outlived(&mut self, (datum, copy): (DatumId, Copy), committed: bool) {
        let is_new = !self.files.is_current(datum, &copy);
        let (true, Some(tiers)) = (committed, &self.tiers) else {
            return self.delete_copies(is_new.then_some(copy));
        };
        let (made, records) = self.files.undo(datum, &copy);
        tiers.commit(made.into_iter().collect(), records, move |_, state, undone| {
            // Else the catalog still says that it is the current one.
            if undone.is_ok() {
                state.delete_copies(is_new.then_some(copy));
            }
        });
    }

    fn tell_released(&mut self, task: TaskId, access: u32) {
        let released = Event::ReleasedInPlace { task, access };
        self.sched.handle(exec::now_ns(), released, &mut self.out);
    }

    /// What the catalog has to be told before others hear of these files; `None`: nothing.
    fn commit_for(&mut self, files: &[(DatumId, Copy)]) -> Option<(Vec<Made>, Vec<Record>)> {
        self.tiers.as_ref()?;
        self.files.commit_for(files)
    }

    /// A run is over: its files are in the catalog before anybody hears of it.
    pub(super) fn finish(&mut self, ending: Ending) {
        let id = ending.id;
        if self.tasks.get(id).is_some_and(|task| task.releasing > 0) {
            self.settling(&ending);
            self.tasks.get_mut(id).expect("looked up above").ending = Some(Box::new(ending));
            return;
        }
        let given_up = self.sched.state(id) == Some(sched::State::Abandoned);
        if given_up || matches!(ending.outcome, Outcome::Raised(_)) {
            let ending = if given_up { Some(ending) } else { self.displace(ending) };
            self.discard_next(id);
            return ending.into_iter().for_each(|ending| self.tell_end(ending));
        }
        let files = self.files_of(id);
        let Some((made, records)) = self.commit_for(&files) else {
            self.take_over(files, None);
            return self.tell_end(ending);
        };
        self.settling(&ending);
        let tiers = self.tiers.as_ref().expect("there is something to commit");
        tiers.commit(made, records, move |_, state, sizes| state.committed(ending, files, sizes));
    }

    /// A run is over, and only the catalog is waited for: what becomes of its executor meanwhile,
    /// or how long it takes, does not concern it.
    fn settling(&mut self, ending: &Ending) {
        let Ending { executor, id: task, ref run, ref outcome, .. } = *ending;
        if self.sched.state(task) != Some(sched::State::Sent) {
            return;
        }
        self.tell_moved(task, run);
        self.take_back(task);
        let ran = matches!(outcome, Outcome::Done(_)).then(|| run.ran_ns);
        let settling = Event::Settling { task, executor, ran };
        self.sched.handle(exec::now_ns(), settling, &mut self.out);
    }

    fn committed(
        &mut self,
        mut ending: Ending,
        files: Vec<(DatumId, Copy)>,
        sizes: Result<Vec<u64>, String>,
    ) {
        let id = ending.id;
        match sizes {
            Ok(sizes) => {
                self.doubt_size(id, sizes.iter().sum());
                self.take_over(files, Some(sizes));
            }
            Err(why) => {
                self.discard_next(id);
                ending.outcome = Outcome::Raised(runtime_error(&why));
            }
        }
        self.tell_end(ending);
    }

    /// A `size` that is far too small is said once for each function.
    fn doubt_size(&mut self, id: TaskId, bytes: u64) {
        let Some(task) = self.tasks.get(id) else { return };
        let (label, said) = (task.label, task.size);
        let far = said > 0 && bytes / said >= UNDERSIZED;
        if far && self.undersized.insert(label) {
            let name = &self.totals.functions[label.0 as usize].name;
            self.warnings.push(format!(
                "{name}() says size={said} bytes, and wrote {bytes}: its layer may be full sooner \
                 than planned. What was written is what counts from then on"
            ));
        }
    }

    /// What a task wrote is the current version now.
    fn take_over(&mut self, files: Vec<(DatumId, Copy)>, sizes: Option<Vec<u64>>) {
        let (events, old) = self.files.take_over(files, sizes);
        for told in events {
            self.sched.handle(exec::now_ns(), told, &mut self.out);
        }
        self.delete_copies(old);
    }

    fn tell_end(&mut self, ending: Ending) {
        let Ending { executor, id: task, run, outcome, .. } = ending;
        self.delete_left_behind(task);
        if self.sched.state(task) == Some(sched::State::Settling) {
            let settled = Event::Settled { task, outcome };
            return self.sched.handle(exec::now_ns(), settled, &mut self.out);
        }
        self.take_back(task);
        self.tell_moved(task, &run);
        let ended = Event::Ended { task, executor, outcome, ran: run.ran_ns };
        self.sched.handle(exec::now_ns(), ended, &mut self.out);
    }

    /// What a task was to write and did not is deleted.
    pub(super) fn discard_next(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(id) else { return };
        let old = self.files.discard_next(id, &task.files);
        self.delete_copies(old);
    }

    /// What moves left behind of the files of a task that has ended.
    fn delete_left_behind(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(id).filter(|_| self.tiers.is_some()) else { return };
        let files: SmallVec<[DatumId; 4]> = task.files.iter().map(|(datum, _)| *datum).collect();
        files.into_iter().for_each(|datum| self.delete_stale(datum));
    }

    /// Deletes copies; those at their own paths are the program's.
    pub(super) fn delete_copies(&self, copies: impl IntoIterator<Item = Copy>) {
        let Some(tiers) = &self.tiers else { return };
        let staged = copies.into_iter().filter(|copy| copy.staged.is_some());
        staged.for_each(|copy| tiers.keeper.delete(copy.place));
    }
}

impl Shared {
    /// Brings every file to its own path, after the end of the session; `tell` hears of each, and
    /// how many there are. What could not be brought there stays where it is.
    pub(crate) fn settle(&self, tell: &mut dyn FnMut(usize, usize)) -> Vec<Unsettled> {
        let taken = self.look(|state| {
            let tiers = state.tiers.take()?;
            Some((tiers, state.files.kept(), state.files.staging.take()?))
        });
        let Ok(Some((tiers, kept, staging))) = taken else { return Vec::new() };
        let Some(keeper) = Arc::into_inner(tiers.keeper) else { return Vec::new() };
        placing::settle(keeper, &staging, &tiers.limiters, kept, tell)
    }
}
