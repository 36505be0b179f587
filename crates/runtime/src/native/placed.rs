//! Files of native tasks: which task uses which, and what this driver does about what
//! [`crate::placing`] decides.
//!
//! A task with files goes this way: its grant; the catalog, if it changes one in place; its places
//! ([`Placed::place`]); its body; the catalog again ([`Placed::commit`]); then the scheduler is
//! told. Only whoever holds the core's lock comes here, and nothing here waits for a disk: the
//! keeper's threads do, and report to the core.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use exec::limiter::Limiters;
use graph::{Access, DatumKind, Direction, Region, Target, TaskId};
use sched::{DatumId, Event, Instruction, LayerId, Sched};
use smallvec::SmallVec;

use super::io_task::{Places, Told};
use super::runtime::Shared;
use super::task::{Report, TaskRef};
use crate::files::{Copy, FileKey, Files, PathKind};
use crate::placing::Kept;
use crate::storage::LayerSpec;
use crate::tiers::{Commit, Keeper, Limits, Move, Opened, Staging};

/// A file that a task is to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileWanted {
    pub(super) key: FileKey,
    /// It is at its own path.
    pub(super) exists: bool,
    pub(super) direction: Direction,
}

/// The files of a task that is not over.
#[derive(Debug)]
struct Using {
    files: SmallVec<[(DatumId, Direction); 2]>,
    /// It has its places.
    is_sent: bool,
}

/// Where copies are kept, and who moves them.
struct Tiers {
    keeper: Keeper,
    limiters: Limiters,
    shared: Weak<Shared>,
}

/// What is left to be done in the end.
pub(super) struct Rest {
    pub(super) keeper: Keeper,
    pub(super) staging: Staging,
    pub(super) limiters: Limiters,
    pub(super) kept: Vec<Kept>,
}

/// All files that the program named.
pub(super) struct Placed {
    files: Files,
    tiers: Option<Tiers>,
    using: HashMap<TaskId, Using>,
}

impl Placed {
    pub(super) fn new(layers: &[LayerSpec]) -> Placed {
        Placed { files: Files::new(layers), tiers: None, using: HashMap::new() }
    }

    pub(super) fn layers(&self) -> &[LayerSpec] {
        self.files.layers()
    }

    /// Whether a catalog has to be made before a task can use these.
    pub(super) fn wants_tiers(&self, wanted: &[FileWanted]) -> bool {
        let away = |file: &FileWanted| file.direction.writes() && self.files.is_managed(&file.key);
        self.tiers.is_none() && wanted.iter().any(away)
    }

    /// From now on files can be away from their own paths.
    pub(super) fn open(
        &mut self,
        opened: Opened,
        limiters: Limiters,
        shared: &Arc<Shared>,
    ) -> io::Result<()> {
        let weak = Arc::downgrade(shared);
        let tell = Box::new(move |free: Vec<Option<u64>>| {
            if let Some(shared) = weak.upgrade() {
                shared.with_core(|core| core.tell_room(&free));
            }
        });
        let folders = opened.staging.folders().to_vec();
        let keeper = Keeper::start(opened.journal, folders, tell)?;
        self.files.staging = Some(opened.staging);
        self.tiers = Some(Tiers { keeper, limiters, shared: Arc::downgrade(shared) });
        Ok(())
    }

    /// What the scheduler is told of the room that there is.
    pub(super) fn room(&self, free: &[Option<u64>]) -> Vec<Event> {
        self.files.room(free)
    }

    /// The data of files that a task is to use. `Err` says which file cannot be used.
    pub(super) fn bind(
        &mut self,
        sched: &mut Sched,
        wanted: &[FileWanted],
    ) -> Result<SmallVec<[(DatumId, Direction); 2]>, String> {
        let data = wanted.iter().enumerate().map(|(number, wanted)| {
            let known = self.files.find(&wanted.key);
            let written =
                known.and_then(|datum| self.files.get(datum)).is_some_and(|it| it.written);
            if wanted.direction != Direction::Out && !written && !wanted.exists {
                return Err(format!(
                    "file {number}: {} is not there, and no task writes it; spawn the task that \
                     writes it first",
                    wanted.key.home.display()
                ));
            }
            let datum = known.unwrap_or_else(|| {
                let datum = sched.add_datum(DatumKind::InPlace, None);
                let datum = datum.expect("a datum without a version can always be made");
                self.files.add(datum, &wanted.key, PathKind::File);
                datum
            });
            let file = self.files.get_mut(datum).expect("just found or made");
            // What a task is writing there now may be only half of it.
            file.stands |= wanted.exists && !file.written;
            Ok((datum, wanted.direction))
        });
        data.collect()
    }

    /// A task uses these whole.
    pub(super) fn accesses(uses: &[(DatumId, Direction)]) -> impl Iterator<Item = Access> + '_ {
        uses.iter().map(|(datum, direction)| Access {
            target: Target::Datum(*datum),
            region: Region::Whole,
            direction: *direction,
        })
    }

    /// The layer that a task has to use, if these decide.
    pub(super) fn layer_for(&self, uses: &[(DatumId, Direction)]) -> Option<LayerId> {
        self.files.layer_for(uses.iter().copied())
    }

    /// The scheduler took a task that uses these.
    pub(super) fn keep(&mut self, task: TaskId, files: SmallVec<[(DatumId, Direction); 2]>) {
        for (datum, _) in files.iter().filter(|(_, direction)| direction.writes()) {
            self.files.get_mut(*datum).expect("bound before").written = true;
        }
        self.using.insert(task, Using { files, is_sent: false });
    }

    fn uses(&self, task: TaskId) -> &[(DatumId, Direction)] {
        self.using.get(&task).map_or(&[], |using| &using.files)
    }

    /// A task that changes files where they are begins when the catalog says so. `true`: it begins
    /// later, with `Report::Announced`.
    pub(super) fn announces(&mut self, id: TaskId, task: TaskRef) -> bool {
        let uses = self.using.get(&id).map_or(&[][..], |using| &using.files);
        let Some(tiers) = &self.tiers else { return false };
        let records = self.files.begin_changes(uses);
        if records.is_empty() {
            return false;
        }
        let shared = Weak::clone(&tiers.shared);
        let then = Box::new(move |done: Result<Vec<u64>, String>| {
            if let Some(shared) = shared.upgrade() {
                if let Err(why) = done {
                    task.get().files().expect("it has some").tell(Told::Refused(why));
                }
                shared.report(Report::Announced(task));
            }
        });
        tiers.keeper.commit(Commit { made: Vec::new(), records, then });
        true
    }

    /// The places of a task's files, in their order, on the layer of its grant.
    pub(super) fn place(&mut self, id: TaskId, layer: Option<LayerId>) -> Places {
        let using = self.using.get_mut(&id).expect("it has files");
        using.is_sent = true;
        let uses = &using.files;
        let old = self.files.place(id, uses, layer);
        let copies = uses.iter().map(|(datum, way)| (self.files.copy_for(id, *datum, *way), *way));
        let copies: SmallVec<[(Copy, Direction); 2]> = copies.collect();
        let new =
            |(copy, way): &&(Copy, Direction)| copy.staged.is_none() && *way == Direction::Out;
        let folders = copies.iter().filter(new).filter_map(|(copy, _)| copy.place.parent());
        let folders = folders.map(Path::to_path_buf).collect();
        let text = |(copy, _): (Copy, Direction)| {
            CString::new(copy.place.into_os_string().into_vec()).expect("paths have no zeros")
        };
        let paths = copies.into_iter().map(text).collect();
        self.delete(old);
        Places { paths, folders }
    }

    /// Where a file is for a task that uses it.
    pub(super) fn place_of(&self, id: TaskId, key: &FileKey) -> Option<PathBuf> {
        let datum = self.files.find(key)?;
        let (_, way) = self.uses(id).iter().find(|(used, _)| *used == datum)?;
        Some(self.files.copy_for(id, datum, *way).place)
    }

    /// Whether another layer may do what this one could not.
    pub(super) fn may_go_elsewhere(&self, id: TaskId, layer: LayerId) -> bool {
        self.files.writes_on(id, self.uses(id), layer)
    }

    /// A layer is down: it is tried until it works again.
    pub(super) fn layer_failed(&self, layer: LayerId) {
        let Some(tiers) = &self.tiers else { return };
        let shared = Weak::clone(&tiers.shared);
        let up = move || {
            if let Some(shared) = shared.upgrade() {
                shared.with_core(|core| core.layer_up(layer));
            }
        };
        tiers.keeper.try_again(layer.0 as usize, Box::new(up));
    }

    /// A body is over: what it wrote goes into the catalog, and then the task is finished. `false`:
    /// nothing of it belongs there.
    pub(super) fn commit(&mut self, id: TaskId, task: TaskRef) -> bool {
        let written = self.files.written_by(id, self.uses(id));
        let commit = self.files.commit_for(&written);
        let (Some(tiers), Some((made, records))) = (&self.tiers, commit) else {
            return false;
        };
        let shared = Weak::clone(&tiers.shared);
        let then = Box::new(move |sizes: Result<Vec<u64>, String>| {
            if let Some(shared) = shared.upgrade() {
                let told = sizes.map_or_else(Told::Refused, Told::Sizes);
                task.get().files().expect("it has some").tell(told);
                shared.finish(task);
                shared.settle_rest();
            }
        });
        tiers.keeper.commit(Commit { made, records, then });
        true
    }

    /// A task is over, and the scheduler is about to hear it: what it wrote counts from now on, or
    /// for nothing. What the scheduler is told of files.
    pub(super) fn end(&mut self, id: TaskId, sizes: Option<Option<Vec<u64>>>) -> Vec<Event> {
        let using = self.using.get_mut(&id).expect("it has files");
        using.is_sent = false;
        let uses = &using.files;
        let (events, old) = match sizes {
            Some(sizes) => {
                let written = self.files.written_by(id, uses);
                self.files.take_over(written, sizes)
            }
            None => (Vec::new(), self.files.discard_next(id, uses)),
        };
        let data: SmallVec<[DatumId; 2]> = uses.iter().map(|(datum, _)| *datum).collect();
        self.delete(old);
        data.into_iter().for_each(|datum| self.delete_stale(datum));
        events
    }

    /// The scheduler does not know a task any more.
    pub(super) fn forget(&mut self, id: TaskId) {
        self.using.remove(&id);
    }

    /// Brings the only file of a task to its own path; `then` hears how that went. `false`: it is
    /// there.
    pub(super) fn bring(
        &mut self,
        id: TaskId,
        then: impl FnOnce(&Shared, io::Result<(DatumId, Copy)>) + Send + 'static,
    ) -> bool {
        let (datum, _) = self.uses(id)[0];
        let away = self.files.get(datum).and_then(|file| file.current.clone());
        let (Some(tiers), Some(copy)) = (&self.tiers, away) else { return false };
        let Some((steps, layers)) = self.files.steps_home(datum, &copy) else { return false };
        let shared = Weak::clone(&tiers.shared);
        let then = Box::new(move |done: io::Result<()>| {
            if let Some(shared) = shared.upgrade() {
                then(&shared, done.map(|()| (datum, copy)));
            }
        });
        let limits = Limits::new(tiers.limiters.clone(), layers);
        tiers.keeper.carry_out_now(Move { steps, limits, then });
        true
    }

    /// A file was brought to its own path.
    pub(super) fn came_home(&mut self, datum: DatumId, copy: Copy) -> Option<Event> {
        let told = self.files.came_home(datum, copy);
        self.delete_stale(datum);
        told
    }

    /// Failures were told, and no task is left: each file is as it was, and can be used again.
    pub(super) fn renew(&mut self, sched: &mut Sched, now: u64, out: &mut Vec<Instruction>) {
        let all: Vec<DatumId> = self.files.all().map(|(datum, _)| datum).collect();
        for datum in all {
            let new = sched.add_datum(DatumKind::InPlace, None).expect("it has no version");
            sched.drop_datum(datum, out);
            if let Some(told) = self.files.renew(datum, new) {
                sched.handle(now, told, out);
            }
        }
    }

    /// The end: what is left to be done, outside of the core's lock.
    pub(super) fn close(&mut self) -> Option<Rest> {
        let Tiers { keeper, limiters, .. } = self.tiers.take()?;
        let kept = self.files.kept();
        Some(Rest { keeper, staging: self.files.staging.take()?, limiters, kept })
    }

    /// Copies that were left behind are deleted when no task that was sent may read them.
    fn delete_stale(&mut self, datum: DatumId) {
        let uses = |using: &Using| using.is_sent && using.files.iter().any(|(it, _)| *it == datum);
        let Some(file) = self.files.get_mut(datum) else { return };
        if file.stale.is_empty() || self.using.values().any(uses) {
            return;
        }
        let stale = std::mem::take(&mut file.stale);
        self.delete(stale);
    }

    /// Deletes copies; those at their own paths are the program's.
    fn delete(&self, copies: Vec<Copy>) {
        let Some(tiers) = &self.tiers else { return };
        let staged = copies.into_iter().filter(|copy| copy.staged.is_some());
        staged.for_each(|copy| tiers.keeper.delete(copy.place));
    }
}
