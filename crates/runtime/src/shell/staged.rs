//! Files that tasks write away from their own paths: given a place before a run, taken over by the
//! catalog after it, and brought to their own paths in the end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use exec::limiter::Limiters;
use ops::catalog::{bring_home, Catalog, Entry, FileId, Record};
use parking_lot::Mutex;
use sched::{DatumId, Direction, Event, ExecutorId, LayerId, Outcome, TaskId};
use smallvec::SmallVec;

use super::receive::Ran;
use super::run::{runtime_error, Place};
use super::state::State;
use super::Shared;
use crate::files::{Copy, File};
use crate::tiers::{self, Commit, Hold, Keeper, Limits, Made};

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

/// A file that could not be brought to its own path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// Its own path.
    pub home: PathBuf,
    /// Where it is.
    pub place: PathBuf,
    /// Why.
    pub why: String,
}

impl Tiers {
    pub(super) fn commit(
        &self,
        made: Vec<Made>,
        records: Vec<Record>,
        then: impl FnOnce(&Arc<Shared>, &mut State, Result<Vec<u64>, String>) + Send + 'static,
    ) {
        let shared = Weak::clone(&self.shared);
        let then = Box::new(move |sizes| {
            if let Some(shared) = shared.upgrade() {
                // A session that ended has told everybody.
                let _ = shared.with(|state| then(&shared, state, sizes));
            }
        });
        self.keeper.commit(Commit { made, records, then });
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
        let mut own = vec![0u64; free.len()];
        for (_, file) in self.files.all() {
            for copy in file.current.iter().chain(&file.near).chain(&file.stale) {
                if let Some(layer) = copy.layer {
                    own[layer.0 as usize] += copy.bytes;
                }
            }
        }
        for (number, free) in free.iter().enumerate() {
            let declared = self.files.layers()[number].capacity;
            let usable = free.map(|free| free.saturating_add(own[number]));
            let bytes = [declared, usable].into_iter().flatten().min();
            let told = Event::LayerCapacity { layer: LayerId(number as u32), bytes };
            self.sched.handle(exec::now_ns(), told, &mut self.out);
        }
    }

    /// Decides where a task writes its files. For the executor that runs it: one that refuses gives
    /// the grant back, and the next may be on another layer.
    pub(super) fn place_files(&mut self, id: TaskId, layer: Option<LayerId>) {
        let task = self.tasks.get(id).expect("only live tasks run");
        let whole: SmallVec<[DatumId; 2]> = task
            .files
            .iter()
            .filter(|(_, direction)| *direction == Direction::Out)
            .map(|(datum, _)| *datum)
            .collect();
        for datum in whole {
            let Some(copy) = self.files.place_for(datum, layer) else { continue };
            let file = self.files.get_mut(datum).expect("it was given a place");
            let before = file.next.replace((id, copy));
            self.delete_copies(before.map(|(_, copy)| copy));
        }
    }

    /// The copy of a file that a task is to use.
    pub(super) fn copy_for(&self, id: TaskId, datum: DatumId, direction: Direction) -> Copy {
        let file = self.files.get(datum).expect("kept while tasks use it");
        match (&file.next, direction) {
            (Some((task, copy)), Direction::Out) if *task == id => copy.clone(),
            (_, Direction::In) => file.best(),
            _ => file.current.clone().unwrap_or_else(|| file.at_home()),
        }
    }

    /// The number of a layer whose bandwidth is emulated, if the copy is on one.
    pub(super) fn limiter_of(&self, copy: &Copy) -> Option<u32> {
        let layers = self.files.layers();
        let limited = |layer: &LayerId| layers[layer.0 as usize].limit.is_some();
        copy.layer.filter(limited).map(|layer| layer.0)
    }

    /// A task that changes files where they are begins when the catalog says so. `true`: it begins
    /// later.
    pub(super) fn begins_later(&mut self, id: TaskId, place: Place) -> bool {
        let task = self.tasks.get(id).expect("only live tasks run");
        let in_place = task
            .files
            .iter()
            .filter(|(_, direction)| direction.writes() && *direction != Direction::Out);
        let changed: SmallVec<[DatumId; 2]> = in_place.map(|(datum, _)| *datum).collect();
        let Some(tiers) = &self.tiers else { return false };
        let files = &mut self.files;
        let records: Vec<Record> =
            changed.into_iter().flat_map(|datum| files.begin_change(datum)).collect();
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
        let written = task.files.iter().enumerate().filter(|(at, _)| left(at));
        let written = written.filter(|(_, (_, direction))| direction.writes());
        let copies = written.map(|(_, (datum, way))| (*datum, self.copy_for(id, *datum, *way)));
        copies.collect()
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
        let files = vec![(datum, self.copy_for(id, datum, direction))];
        let access = task.inputs.len() as u32 + path;
        let task = self.tasks.get_mut(id).expect("looked up above");
        task.released.push(path);
        let Some((made, records)) = self.to_commit(&files) else {
            self.take_over(files, None);
            return self.tell_released(id, access);
        };
        self.tasks.get_mut(id).expect("looked up above").releasing += 1;
        let tiers = self.tiers.as_ref().expect("there is something to commit");
        tiers.commit(made, records, move |_, state, sizes| {
            state.file_committed((executor, id, attempt), access, files, sizes);
        });
    }

    fn file_committed(
        &mut self,
        (executor, id, attempt): (ExecutorId, TaskId, u32),
        access: u32,
        files: Vec<(DatumId, Copy)>,
        sizes: Result<Vec<u64>, String>,
    ) {
        if !self.is_at(executor, id, attempt) {
            return self.delete_copies(files.into_iter().map(|(_, copy)| copy));
        }
        let is_known = sizes.is_ok();
        if let Ok(sizes) = sizes {
            self.take_over(files, Some(sizes));
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

    fn tell_released(&mut self, task: TaskId, access: u32) {
        let released = Event::ReleasedInPlace { task, access };
        self.sched.handle(exec::now_ns(), released, &mut self.out);
    }

    /// What the catalog has to be told before others hear of these files; `None`: nothing.
    fn to_commit(&self, files: &[(DatumId, Copy)]) -> Option<(Vec<Made>, Vec<Record>)> {
        let managed =
            |(datum, _): &(DatumId, Copy)| self.files.get(*datum).is_some_and(|file| file.managed);
        if self.tiers.is_none() || !files.iter().any(managed) {
            return None;
        }
        let made = files.iter().filter_map(|(datum, copy)| {
            let file = self.files.get(*datum)?;
            let (home, scratch) = (file.home.clone(), file.scratch);
            Some(Made { file: copy.staged, home, place: copy.place.clone(), scratch })
        });
        let replaced = files.iter().filter_map(|(datum, copy)| {
            let before = self.files.get(*datum)?.current.as_ref()?.staged?;
            (copy.staged != Some(before)).then_some(Record::Gone { file: before })
        });
        // What was changed at its own path is whole there, or replaced.
        let changed = files.iter().filter_map(|(datum, _)| self.files.get(*datum)?.in_place);
        let changed = changed.map(|file| Record::Home { file });
        Some((made.collect(), replaced.chain(changed).collect()))
    }

    /// A run is over: its files are in the catalog before anybody hears of it.
    pub(super) fn finish(&mut self, ending: Ending) {
        let id = ending.id;
        if let Some(task) = self.tasks.get_mut(id).filter(|task| task.releasing > 0) {
            task.ending = Some(Box::new(ending));
            return;
        }
        let given_up = self.sched.state(id) == Some(sched::State::Abandoned);
        if given_up || matches!(ending.outcome, Outcome::Raised(_)) {
            let ending = if given_up { Some(ending) } else { self.displace(ending) };
            self.discard_next(id);
            return ending.into_iter().for_each(|ending| self.tell_end(ending));
        }
        let files = self.files_of(id);
        let Some((made, records)) = self.to_commit(&files) else {
            self.take_over(files, None);
            return self.tell_end(ending);
        };
        let tiers = self.tiers.as_ref().expect("there is something to commit");
        tiers.commit(made, records, move |_, state, sizes| state.committed(ending, files, sizes));
    }

    fn committed(
        &mut self,
        mut ending: Ending,
        files: Vec<(DatumId, Copy)>,
        sizes: Result<Vec<u64>, String>,
    ) {
        let Ending { executor, id, attempt, .. } = ending;
        if !self.is_at(executor, id, attempt) {
            // It runs again, or was given up: what it made counts for nothing.
            self.delete_copies(files.into_iter().map(|(_, copy)| copy));
            return;
        }
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
        let mut sizes = sizes.unwrap_or_default().into_iter();
        let mut old: Vec<Copy> = Vec::new();
        for (datum, mut copy) in files {
            let Some(file) = self.files.get_mut(datum) else { continue };
            file.next = None;
            file.changing = false;
            file.in_place = None;
            let staged = copy.staged;
            file.stands |= staged.is_none();
            copy.bytes = sizes.next().unwrap_or_default();
            let at = Event::FileAt {
                datum,
                layer: copy.layer,
                bytes: copy.bytes,
                home: file.home_layer,
                scratch: file.scratch,
            };
            let new = staged.map(|_| copy);
            let before = std::mem::replace(&mut file.current, new);
            old.extend(before.filter(|before| before.staged != staged));
            old.extend(file.near.take());
            if file.managed {
                self.sched.handle(exec::now_ns(), at, &mut self.out);
            }
        }
        self.delete_copies(old);
    }

    fn tell_end(&mut self, ending: Ending) {
        let Ending { executor, id, run, outcome, .. } = ending;
        self.take_back(id);
        self.delete_left_behind(id);
        self.tell_moved(id, &run);
        let ended = Event::Ended { task: id, executor, outcome, ran: run.ns() };
        self.sched.handle(exec::now_ns(), ended, &mut self.out);
    }

    /// What a task was to write and did not is deleted.
    pub(super) fn discard_next(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(id) else { return };
        let mut old: Vec<Copy> = Vec::new();
        for (datum, _) in &task.files {
            let Some(file) = self.files.get_mut(*datum) else { continue };
            let next = file.next.take_if(|(task, _)| *task == id);
            old.extend(next.map(|(_, copy)| copy));
        }
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

/// The files that are to go to their own paths.
fn kept(state: &State) -> Vec<(FileId, Entry)> {
    let entry = |file: &File| {
        let copy = file.current.as_ref().filter(|_| !file.scratch)?;
        let entry = Entry {
            home: file.home.clone(),
            place: copy.place.clone(),
            bytes: copy.bytes,
            scratch: false,
            changing: false,
            leaving: None,
        };
        Some((copy.staged?, entry))
    };
    let mut kept: Vec<_> = state.files.all().filter_map(|(_, file)| entry(file)).collect();
    kept.sort_by_key(|(file, _)| *file);
    kept
}

impl Shared {
    /// Brings every file to its own path, after the end of the session; `tell` hears of each, and
    /// how many there are. What could not be brought there stays where it is.
    pub(crate) fn settle(&self, tell: &mut dyn FnMut(usize, usize)) -> Vec<Unsettled> {
        let taken = self.look(|state| {
            let tiers = state.tiers.take()?;
            Some((tiers, kept(state), state.files.staging.take()?))
        });
        let Ok(Some((tiers, kept, staging))) = taken else { return Vec::new() };
        let layers = |entry: &Entry| {
            let found = self.look(|state| {
                let layer = |path: &Path| {
                    let layer = state.files.layer_of(path)?;
                    let (place, staged, bytes) = (path.to_path_buf(), None, 0);
                    state.limiter_of(&Copy { place, layer: Some(layer), staged, bytes })
                };
                [layer(&entry.place), layer(&entry.home)]
            });
            found.unwrap_or_default()
        };
        let Some(keeper) = Arc::into_inner(tiers.keeper) else { return Vec::new() };
        let Some(journal) = keeper.stop() else { return Vec::new() };
        let (journal, hold) = (Mutex::new(journal), Hold::default());
        let mut unsettled = Vec::new();
        for (number, (file, entry)) in kept.iter().enumerate() {
            tell(number, kept.len());
            let limits = Limits::new(tiers.limiters.clone(), layers(entry));
            let over = staging.temporary(*file, &entry.home);
            let renamed = tiers::same_device(&entry.place, &entry.home);
            let steps = bring_home(*file, entry, (!renamed).then_some(&*over));
            if let Err(error) = tiers::carry_out(&steps, &journal, &hold, &limits) {
                let (home, place) = (entry.home.clone(), entry.place.clone());
                unsettled.push(Unsettled { home, place, why: error.to_string() });
            }
        }
        tell(kept.len(), kept.len());
        if unsettled.is_empty() {
            let journal = journal.into_inner();
            let records = journal.records().unwrap_or_default();
            // What cannot be deleted is left for `recover`.
            let swept = tiers::recovery::sweep(&Catalog::replay(records));
            let _ = swept.and_then(|()| journal.delete());
        }
        unsettled
    }
}
