//! Files that tasks write away from their own paths: what is decided over the table of files, for
//! every driver. Who calls this deletes the copies that it gives back, tells the scheduler the
//! events, and has the keeper write the records.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use exec::limiter::Limiters;
use ops::catalog::{Catalog, Entry, FileId, Record, Step};
use parking_lot::Mutex;
use sched::{DatumId, Direction, Event, LayerId, TaskId};

use crate::files::{Copy, File, Files, PathKind};
use crate::tiers::{self, Hold, Journal, Keeper, Limits, Made, Staging};

/// What a storage layer fails of, that another may not.
const OF_LAYER: [i32; 4] = [libc::ENOSPC, libc::EDQUOT, libc::EIO, libc::EROFS];

/// Whether a layer may be the reason of an error of the system.
pub(crate) fn is_of_layer(errno: i32) -> bool {
    OF_LAYER.contains(&errno)
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

/// A copy that may have to go to the own path of its file, with the emulated bandwidths on its way.
pub(crate) struct Kept {
    number: FileId,
    file: File,
    copy: Copy,
    limited: [Option<u32>; 2],
}

/// What one task does with files.
pub(crate) type Uses = [(DatumId, Direction)];

impl Files {
    /// The layer that an I/O task has to use: where a file is that it changes in place, or else
    /// where one is that it reads, unless it writes others, which go to any layer.
    pub(crate) fn layer_for(
        &self,
        uses: impl Iterator<Item = (DatumId, Direction)> + Clone,
    ) -> Option<LayerId> {
        let tied = |(datum, direction): &(DatumId, Direction)| {
            *direction != Direction::Out || !self.get(*datum).is_some_and(|file| file.managed)
        };
        let layer_of = |(datum, _): (DatumId, Direction)| {
            let file = self.get(datum)?;
            let nowhere = file.written && file.current.is_none() && file.managed;
            file.best().layer.filter(|_| !nowhere)
        };
        let mut written = uses.clone().filter(|(_, direction)| direction.writes()).peekable();
        if written.peek().is_some() {
            return written.filter(tied).find_map(layer_of);
        }
        let mut uses = uses;
        uses.find_map(layer_of)
    }

    /// Decides where a task writes its files, on the layer of its grant (none: a compute task).
    /// Gives what an earlier run of a task was to write.
    pub(crate) fn place(&mut self, task: TaskId, uses: &Uses, layer: Option<LayerId>) -> Vec<Copy> {
        let mut old = Vec::new();
        for (datum, _) in uses.iter().filter(|(_, direction)| *direction == Direction::Out) {
            let Some(copy) = self.place_for(*datum, layer) else { continue };
            let file = self.get_mut(*datum).expect("it was given a place");
            old.extend(file.next.replace((task, copy)).map(|(_, copy)| copy));
        }
        old
    }

    /// The copy of a file that a task is to use.
    pub(crate) fn copy_for(&self, task: TaskId, datum: DatumId, direction: Direction) -> Copy {
        let file = self.get(datum).expect("kept while tasks use it");
        match (&file.next, direction) {
            (Some((writer, copy)), Direction::Out) if *writer == task => copy.clone(),
            (_, Direction::In) => file.best(),
            _ => file.current.clone().unwrap_or_else(|| file.at_home()),
        }
    }

    /// The number of a layer whose bandwidth is emulated, if the copy is on one.
    pub(crate) fn limiter_of(&self, copy: &Copy) -> Option<u32> {
        let limited = |layer: &LayerId| self.layers()[layer.0 as usize].limit.is_some();
        copy.layer.filter(limited).map(|layer| layer.0)
    }

    /// What the catalog is told before a task changes files where they are; nothing: it does not.
    pub(crate) fn begin_changes(&mut self, uses: &Uses) -> Vec<Record> {
        let in_place = |(_, direction): &&(DatumId, Direction)| {
            direction.writes() && *direction != Direction::Out
        };
        uses.iter().filter(in_place).flat_map(|(datum, _)| self.begin_change(*datum)).collect()
    }

    /// What a task wrote, or changed where it was.
    pub(crate) fn written_by(&self, task: TaskId, uses: &Uses) -> Vec<(DatumId, Copy)> {
        let written = uses.iter().filter(|(_, direction)| direction.writes());
        written.map(|(datum, way)| (*datum, self.copy_for(task, *datum, *way))).collect()
    }

    /// Whether a task writes a file on a layer, and there are others.
    pub(crate) fn writes_on(&self, task: TaskId, uses: &Uses, layer: LayerId) -> bool {
        let mut written = uses.iter().filter(|(_, direction)| direction.writes());
        let here = |datum| self.copy_for(task, datum, Direction::Out).layer == Some(layer);
        self.layers().len() > 1 && written.any(|(datum, _)| here(*datum))
    }

    /// What has to be in the catalog before anybody hears that a task wrote these. `None`: nothing,
    /// all of them are where they always are.
    pub(crate) fn commit_for(
        &mut self,
        files: &[(DatumId, Copy)],
    ) -> Option<(Vec<Made>, Vec<Record>)> {
        let managed = |datum: &DatumId| self.get(*datum).is_some_and(|file| file.managed);
        if !files.iter().any(|(datum, _)| managed(datum)) {
            return None;
        }
        let made = files.iter().filter_map(|(datum, copy)| Some(self.get(*datum)?.made(copy)));
        let replaced = files.iter().filter_map(|(datum, copy)| {
            let before = self.get(*datum)?.current.as_ref()?.staged?;
            (copy.staged != Some(before)).then_some(Record::Gone { file: before })
        });
        // What was changed at its own path is whole there, or replaced.
        let changed = files.iter().filter_map(|(datum, _)| self.get(*datum)?.in_place);
        let changed = changed.map(|file| Record::Home { file });
        let (made, mut records): (_, Vec<Record>) =
            (made.collect(), replaced.chain(changed).collect());
        for (datum, copy) in files {
            let file = self.get(*datum);
            let directory = file.is_some_and(|file| file.kind == PathKind::Directory && file.anew);
            if directory && copy.staged.is_none() {
                records.extend(self.stands_now(*datum));
            }
        }
        Some((made, records))
    }

    /// Whether a copy is the current version, which a task changed where it is.
    pub(crate) fn is_current(&self, datum: DatumId, copy: &Copy) -> bool {
        let current = self.get(datum).and_then(|file| file.current.as_ref());
        current.map_or(copy.staged.is_none(), |current| current.staged == copy.staged)
    }

    /// What the catalog is told of a file that it has as written by a run that counts for nothing:
    /// the version before is the current one, or what it changed may be half changed.
    pub(crate) fn undo(&mut self, datum: DatumId, copy: &Copy) -> (Option<Made>, Vec<Record>) {
        let is_new = !self.is_current(datum, copy);
        let Some(file) = self.get_mut(datum) else { return (None, Vec::new()) };
        if is_new {
            let before = file.current.as_ref().map(|before| file.made(before));
            return (before, copy.staged.map(|file| Record::Gone { file }).into_iter().collect());
        }
        let was_told = file.in_place.take().is_some();
        match was_told || file.changing {
            true => (None, self.begin_change(datum)),
            false => (None, Vec::new()),
        }
    }

    /// What a task wrote is the current version now. Gives what the scheduler is told, and the
    /// copies that are old.
    pub(crate) fn take_over(
        &mut self,
        files: Vec<(DatumId, Copy)>,
        sizes: Option<Vec<u64>>,
    ) -> (Vec<Event>, Vec<Copy>) {
        let mut sizes = sizes.unwrap_or_default().into_iter();
        let (mut events, mut old) = (Vec::new(), Vec::new());
        for (datum, mut copy) in files {
            let Some(file) = self.get_mut(datum) else { continue };
            file.next = None;
            file.changing = false;
            file.in_place = None;
            let staged = copy.staged;
            file.stands |= staged.is_none() && !file.scratch;
            file.counted |= file.managed;
            copy.bytes = sizes.next().unwrap_or_default();
            let (layer, bytes) = (copy.layer, copy.bytes);
            if staged.is_none() {
                file.home_bytes = bytes;
            }
            let new = staged.map(|_| copy);
            let before = std::mem::replace(&mut file.current, new);
            old.extend(before.filter(|before| before.staged != staged));
            old.extend(file.near.take());
            events.extend(file.managed.then(|| file.is_at(datum, layer, bytes)));
        }
        (events, old)
    }

    /// Gives what a task was to write and did not.
    pub(crate) fn discard_next(&mut self, task: TaskId, uses: &Uses) -> Vec<Copy> {
        let mut old = Vec::new();
        for (datum, _) in uses {
            let Some(file) = self.get_mut(*datum) else { continue };
            let next = file.next.take_if(|(writer, _)| *writer == task);
            old.extend(next.map(|(_, copy)| copy));
        }
        old
    }

    /// The steps that bring a file to its own path while tasks may read it where it is, but for the
    /// last, and the emulated bandwidths on the way. `None`: it is there.
    pub(crate) fn steps_home(
        &self,
        datum: DatumId,
        copy: &Copy,
    ) -> Option<(Vec<Step>, [Option<u32>; 2])> {
        let file = self.get(datum).expect("kept while tasks use it");
        let (staging, number) = (self.staging.as_ref()?, copy.staged?);
        // A move of its own may be under way to the same place, over another name.
        let mut over = staging.temporary(number, &file.home).into_os_string();
        over.push("-persist");
        let mut steps = file.steps_home(copy, Some(over.as_ref()));
        steps.pop(); // the original is deleted when nobody reads it any more
        Some((steps, [self.limiter_of(copy), self.limiter_of(&file.at_home())]))
    }

    /// A file stands at its own path. Gives what the scheduler is told.
    pub(crate) fn came_home(&mut self, datum: DatumId, copy: Copy) -> Option<Event> {
        let file = self.get_mut(datum)?;
        let bytes = copy.bytes;
        // A move of it may have ended just before, which has left the copy behind already.
        let moved = file.current.take_if(|current| current.staged == copy.staged);
        (file.stands, file.home_bytes) = (true, bytes);
        for old in [moved, Some(copy), file.near.take()].into_iter().flatten() {
            if !file.stale.contains(&old) {
                file.stale.push(old);
            }
        }
        Some(file.is_at(datum, file.home_layer, bytes))
    }

    /// Others use the devices too: what is available there, and what files of the session take up
    /// already, is all that the session can use. Those at their own paths are among them once the
    /// scheduler counts them.
    pub(crate) fn room(&self, free: &[Option<u64>]) -> Vec<Event> {
        let mut own = vec![0u64; free.len()];
        for (_, file) in self.all() {
            let home = (file.counted && file.current.is_none()).then(|| file.at_home());
            let away = file.current.iter().chain(&file.near).chain(&file.stale);
            for copy in away.chain(&home) {
                if let Some(layer) = copy.layer {
                    own[layer.0 as usize] += copy.bytes;
                }
            }
        }
        let room = |(number, free): (usize, &Option<u64>)| {
            let declared = self.layers()[number].capacity;
            let usable = free.map(|free| free.saturating_add(own[number]));
            let bytes = [declared, usable].into_iter().flatten().min();
            Event::LayerCapacity { layer: LayerId(number as u32), bytes }
        };
        free.iter().enumerate().map(room).collect()
    }

    /// Copies that may have to go to the own paths of their files: the current versions, and what
    /// tasks were to write, of which the catalog may have heard first.
    pub(crate) fn kept(&self) -> Vec<Kept> {
        let kept = |file: &File, copy: &Copy| {
            let limited = [copy, &file.at_home()].map(|copy| self.limiter_of(copy));
            Some(Kept { number: copy.staged?, file: file.clone(), copy: copy.clone(), limited })
        };
        let files = self.all().map(|(_, file)| file).filter(|file| !file.scratch);
        let copies = files.flat_map(|file| {
            let next = file.next.as_ref().map(|(_, copy)| copy);
            file.current.iter().chain(next).filter_map(move |copy| kept(file, copy))
        });
        copies.collect()
    }
}

impl File {
    /// A copy, as the catalog is told of it.
    fn made(&self, copy: &Copy) -> Made {
        let (home, scratch) = (self.home.clone(), self.scratch);
        let (place, directory) = (copy.place.clone(), self.kind == PathKind::Directory);
        Made { file: copy.staged, home, place, scratch, directory }
    }

    /// What the scheduler is told of where the current version is.
    pub(crate) fn is_at(&self, datum: DatumId, layer: Option<LayerId>, bytes: u64) -> Event {
        let (home, scratch) = (self.home_layer, self.scratch);
        Event::FileAt { datum, layer, bytes, home, scratch }
    }
}

/// So many files are brought to their own paths at a time: while one is flushed, others are copied.
const HOMEWARDS_MAX: usize = 4;

impl Kept {
    fn bring_home(
        &self,
        journal: &Mutex<Journal>,
        staging: &Staging,
        limiters: &Limiters,
    ) -> Result<(), Unsettled> {
        let Kept { number, file, copy, limited } = self;
        self.note_away(journal)?;
        let limits = Limits::new(limiters.clone(), *limited);
        let over = staging.temporary(*number, &file.home);
        let renamed = tiers::same_device(&copy.place, &file.home);
        let carry = |steps: &[Step]| tiers::carry_out(steps, journal, &Hold::default(), &limits);
        let steps = |over: Option<&Path>| file.steps_home(copy, over);
        tiers::settle(renamed, &over, steps, carry).map_err(|error| self.unsettled(&error))
    }

    /// The catalog says that the copy is the one which is away from its own path.
    fn note_away(&self, journal: &Mutex<Journal>) -> Result<(), Unsettled> {
        let mut journal = journal.lock();
        if journal.is_away(self.number) {
            return Ok(());
        }
        let Entry { home, place, bytes, scratch, .. } = self.file.entry(&self.copy);
        let copy = Record::Copy { file: self.number, home, place, bytes, scratch };
        journal.append(&[copy]).map_err(|error| self.unsettled(&error))
    }

    fn unsettled(&self, error: &io::Error) -> Unsettled {
        let (home, place) = (self.file.home.clone(), self.copy.place.clone());
        Unsettled { home, place, why: error.to_string() }
    }
}

/// Of the copies of each file the one that goes to its own path, in the order in which they were
/// made: the latest that the catalog has, of which nobody may have heard before the session ended;
/// else the current version, unless it came there already.
fn latest(kept: Vec<Kept>, catalog: &Catalog) -> Vec<Kept> {
    let (latest, mut chosen) = (catalog.latest(), BTreeMap::new());
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    for mut one in kept {
        let home = one.file.home.clone();
        let is_latest = latest.get(home.as_path()) == Some(&one.number);
        if let Some(entry) = catalog.get(one.number).filter(|_| is_latest) {
            one.copy.place.clone_from(&entry.place);
            if is_there(&entry.place) || !chosen.contains_key(&home) {
                chosen.insert(home, one);
            }
            continue;
        }
        let is_current = one.file.current.as_ref() == Some(&one.copy);
        if is_current && is_there(&one.copy.place) {
            chosen.insert(home, one);
        }
    }
    let mut chosen: Vec<Kept> = chosen.into_values().collect();
    chosen.sort_by_key(|kept| kept.number);
    chosen
}

/// Brings every file to its own path, after the last task; `tell` hears how many are there, of how
/// many. What could not be brought there stays where it is, and so does the catalog.
pub(crate) fn settle(
    keeper: Keeper,
    staging: &Staging,
    limiters: &Limiters,
    kept: Vec<Kept>,
    tell: &mut dyn FnMut(usize, usize),
) -> Vec<Unsettled> {
    let Some(journal) = keeper.stop() else { return Vec::new() };
    let kept = latest(kept, &Catalog::replay(journal.records().unwrap_or_default()));
    let (journal, next) = (Mutex::new(journal), AtomicUsize::new(0));
    let bring = || {
        let one = kept.get(next.fetch_add(1, Ordering::Relaxed))?;
        Some(one.bring_home(&journal, staging, limiters))
    };
    let mut unsettled = Vec::new();
    let mut done = 0;
    let mut note = |result: Result<(), Unsettled>| {
        unsettled.extend(result.err());
        done += 1;
        tell(done, kept.len());
    };
    std::thread::scope(|scope| {
        let (say, hear) = mpsc::sync_channel(HOMEWARDS_MAX);
        for _ in 1..kept.len().min(HOMEWARDS_MAX) {
            let say = say.clone();
            let work = move || while bring().is_some_and(|result| say.send(result).is_ok()) {};
            // Without the thread it takes longer.
            let _ =
                std::thread::Builder::new().name("alongside-home".into()).spawn_scoped(scope, work);
        }
        drop(say);
        while let Some(result) = bring() {
            note(result);
            hear.try_iter().for_each(&mut note);
        }
        hear.iter().for_each(&mut note);
    });
    unsettled.sort_by(|one, other| one.home.cmp(&other.home));
    if unsettled.is_empty() {
        let journal = journal.into_inner();
        let records = journal.records().unwrap_or_default();
        // What cannot be deleted is left for `recover`.
        let swept = tiers::recovery::sweep(&Catalog::replay(records));
        let _ = swept.and_then(|()| journal.delete());
    }
    unsettled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Storage;

    const SLOW: Option<LayerId> = Some(LayerId(1));

    fn layered() -> Files {
        let text = "[[layer]]\nname='fast'\npath='/fast'\nbandwidth='2MB/s'\n\
                    [[layer]]\nname='slow'\npath='/slow'\nbandwidth='1MB/s'\n";
        Files::new(&Storage::parse(text, Path::new("/storage.toml")).unwrap().layers)
    }

    fn file(files: &mut Files, number: u64, home: &str) -> DatumId {
        let (datum, key) = (DatumId::from_bits(number), Files::key(Path::new(home)).unwrap());
        files.add(datum, &key, PathKind::File);
        datum
    }

    fn usable(files: &Files, free: u64) -> Option<u64> {
        let told = files.room(&[None, Some(free)]);
        let [_, Event::LayerCapacity { layer, bytes }] = told[..] else { panic!("{told:?}") };
        assert_eq!(Some(layer), SLOW);
        bytes
    }

    #[test]
    fn what_came_home_is_not_counted_twice() {
        let mut files = layered();
        let made = file(&mut files, 1, "/slow/made");
        let moved = file(&mut files, 2, "/slow/moved");
        // What was there before is not counted at all.
        let found = file(&mut files, 3, "/slow/found");
        files.get_mut(found).unwrap().home_bytes = 50;
        let copy = |place: &str, layer, staged, bytes| Copy {
            place: place.into(),
            layer,
            staged: Some(FileId(staged)),
            bytes,
        };
        let fast = copy("/fast/2", Some(LayerId(0)), 2, 0);
        let at_home = files.get(made).unwrap().at_home();
        let wrote = vec![(made, at_home), (moved, fast)];
        files.take_over(wrote, Some(vec![200, 30]));
        assert_eq!(usable(&files, 400), Some(600));
        let current = files.get(moved).unwrap().current.clone().unwrap();
        assert!(files.came_home(moved, current).is_some());
        assert_eq!(usable(&files, 370), Some(600));
        // A newer version elsewhere: the old one at home is in the way as others' files are.
        files.take_over(vec![(made, copy("/fast/4", Some(LayerId(0)), 4, 0))], Some(vec![1]));
        assert_eq!(usable(&files, 370), Some(400));
    }
}
