//! Files of native tasks: which task uses which, and what this driver does about what
//! [`crate::placing`] decides. What [`crate::moving`] decides is done in [`moves`].
//!
//! A task with files goes this way: its grant; the catalog, if it changes one in place; its places
//! ([`Placed::place`]); its body; the catalog again ([`Placed::commit`]); then the scheduler is
//! told. Only whoever holds the core's lock comes here, and nothing here waits for a disk: the
//! keeper's threads do, and report to the core.

mod moves;

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use exec::limiter::Limiters;
use graph::{Access, Direction, Region, Target, TaskId};
use sched::{DatumId, Event, LayerId, Sched};
use smallvec::SmallVec;

use super::io_task::{Places, Told};
use super::runtime::Shared;
use super::task::{Report, TaskRef};
use crate::files::{new_file, Copy, FileKey, Files, PathKind};
use crate::naming::Named;
use crate::placing::Kept;
use crate::storage::LayerSpec;
use crate::tiers::{Commit, Keeper, Limits, Move, Opened, Staging};

/// A file that a task is to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileWanted {
    pub(super) named: Named,
    /// What it has to be; none: either.
    pub(super) kind: Option<PathKind>,
    pub(super) direction: Direction,
}

/// The files that a task uses, in its order.
#[derive(Debug, Default)]
pub(super) struct Uses {
    files: SmallVec<[(DatumId, Direction); 2]>,
    /// Of those that lie in a directory, which is what the task uses: the position, and where.
    inside: Vec<(usize, PathBuf)>,
}

impl Uses {
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The path of a file, in a copy of what is used.
    fn path(&self, number: usize, copy: PathBuf) -> PathBuf {
        match self.inside.iter().find(|(at, _)| *at == number) {
            Some((_, inside)) => copy.join(inside),
            None => copy,
        }
    }
}

/// The files of a task that is not over.
#[derive(Debug)]
struct Using {
    uses: Uses,
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
    /// Files that tasks are about to read are copied up.
    prefetches: bool,
}

impl Placed {
    pub(super) fn new(layers: &[LayerSpec], prefetches: bool) -> Placed {
        Placed { files: Files::new(layers), tiers: None, using: HashMap::new(), prefetches }
    }

    pub(super) fn layers(&self) -> &[LayerSpec] {
        self.files.layers()
    }

    /// Whether a catalog has to be made before a task can use these.
    pub(super) fn wants_tiers(&self, wanted: &[FileWanted]) -> bool {
        let away = |file: &FileWanted| {
            let may_move = file.direction.writes() || self.prefetches;
            may_move && self.files.is_managed(file.named.key())
        };
        !self.has_tiers() && wanted.iter().any(away)
    }

    /// Whether there is a catalog.
    pub(super) fn has_tiers(&self) -> bool {
        self.tiers.is_some()
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

    /// The data of files that a task is to use, and what the scheduler is told of them. `Err` says
    /// which file cannot be used.
    pub(super) fn bind(
        &mut self,
        sched: &mut Sched,
        wanted: &[FileWanted],
    ) -> Result<(Uses, Vec<Event>), String> {
        let (mut uses, mut told) = (Uses::default(), Vec::new());
        for (number, FileWanted { named, kind, direction }) in wanted.iter().enumerate() {
            let wrong = |why: &str| format!("file {number}: {why}");
            let found = self.files.name(named, *kind, direction.writes(), || new_file(sched));
            let found = found.map_err(|error| wrong(&error.to_string()))?;
            let path = named.key().home.display();
            if *direction != Direction::Out && !found.known {
                return Err(wrong(&format!(
                    "{path} is not there, and no task writes it; spawn the task that writes it \
                     first"
                )));
            }
            let replaces = *direction == Direction::Out && *kind == Some(PathKind::Directory);
            if replaces && !found.anew {
                return Err(wrong(&format!(
                    "the directory {path} has something in it that no task made, and would be \
                     replaced; delete it first, or use AL_DIR_INOUT"
                )));
            }
            if self.prefetches && !direction.writes() {
                told.extend(self.files.found(named, found.datum));
            }
            uses.files.push((found.datum, *direction));
            if !found.inside.as_os_str().is_empty() {
                uses.inside.push((number, found.inside));
            }
        }
        Ok((uses, told))
    }

    /// A task uses these whole.
    pub(super) fn accesses(uses: &Uses) -> impl Iterator<Item = Access> + '_ {
        uses.files.iter().map(|(datum, direction)| Access {
            target: Target::Datum(*datum),
            region: Region::Whole,
            direction: *direction,
        })
    }

    /// The layer that a task has to use, if these decide.
    pub(super) fn layer_for(&self, uses: &Uses) -> Option<LayerId> {
        self.files.layer_for(uses.files.iter().copied())
    }

    /// The scheduler took a task that uses these.
    pub(super) fn keep(&mut self, task: TaskId, uses: Uses) {
        self.files.begin_uses(&uses.files);
        self.using.insert(task, Using { uses, is_sent: false });
    }

    fn uses(&self, task: TaskId) -> &[(DatumId, Direction)] {
        self.using.get(&task).map_or(&[], |using| &using.uses.files)
    }

    /// A task that changes files where they are begins when the catalog says so. `true`: it begins
    /// later, with `Report::Announced`.
    pub(super) fn announces(&mut self, id: TaskId, task: TaskRef) -> bool {
        let uses = self.using.get(&id).map_or(&[][..], |using| &using.uses.files);
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
        let uses = &using.uses;
        let old = self.files.place(id, &uses.files, layer);
        let mut places = Places::default();
        for (number, (datum, way)) in uses.files.iter().enumerate() {
            let Copy { place, staged, .. } = self.files.copy_for(id, *datum, *way);
            let kind = self.files.get(*datum).map(|file| file.kind);
            if staged.is_none() && *way == Direction::Out {
                places.folders.extend(place.parent().map(Path::to_path_buf));
            }
            if kind == Some(PathKind::Directory) && *way == Direction::Out {
                places.anew.push(place.clone());
            }
            let path = uses.path(number, place).into_os_string().into_vec();
            places.paths.push(CString::new(path).expect("paths have no zeros"));
        }
        self.delete(old);
        places
    }

    /// Where a file is for a task that uses it.
    pub(super) fn place_of(&self, id: TaskId, key: &FileKey) -> Option<PathBuf> {
        let own = self.files.find(key).map(|datum| (datum, Path::new("")));
        let (datum, inside) = own.or_else(|| self.files.above(key))?;
        let (_, way) = self.uses(id).iter().find(|(used, _)| *used == datum)?;
        let place = self.files.copy_for(id, datum, *way).place;
        // A path with nothing joined to it would end with a slash.
        Some(if inside.as_os_str().is_empty() { place } else { place.join(inside) })
    }

    /// Whether another layer may do what this one could not.
    pub(super) fn may_go_elsewhere(&self, id: TaskId, layer: LayerId) -> bool {
        self.files.writes_on(id, self.uses(id), layer)
    }

    /// A task failed on a layer, which need not be to blame: if it is, it is down until it works
    /// again.
    pub(super) fn doubt(&self, layer: LayerId) {
        let Some(tiers) = &self.tiers else { return };
        let tell = |down: bool| {
            let shared = Weak::clone(&tiers.shared);
            Box::new(move || {
                if let Some(shared) = shared.upgrade() {
                    shared.with_core(|core| core.layer_is(layer, down));
                }
            })
        };
        tiers.keeper.doubt(layer.0 as usize, tell(true), tell(false));
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
        let uses = &using.uses.files;
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

    /// The scheduler does not know a task any more. What it is told of files.
    pub(super) fn forget(&mut self, id: TaskId) -> Vec<Event> {
        let Some(using) = self.using.remove(&id) else { return Vec::new() };
        let unused = self.files.end_uses(&using.uses.files);
        unused.into_iter().map(|datum| self.remove(datum)).collect()
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
        let home = self.files.get(datum).map(|file| file.home.clone());
        tiers.keeper.carry_out_now(Move { home, steps, limits, then });
        true
    }

    /// A file was brought to its own path.
    pub(super) fn came_home(&mut self, datum: DatumId, copy: Copy) -> Option<Event> {
        let told = self.files.came_home(datum, copy);
        self.delete_stale(datum);
        told
    }

    /// The end: what is left to be done, outside of the core's lock.
    pub(super) fn close(&mut self) -> Option<Rest> {
        let Tiers { keeper, limiters, .. } = self.tiers.take()?;
        let kept = self.files.kept();
        Some(Rest { keeper, staging: self.files.staging.take()?, limiters, kept })
    }

    /// Deletes copies; those at their own paths are the program's.
    fn delete(&self, copies: impl IntoIterator<Item = Copy>) {
        let Some(tiers) = &self.tiers else { return };
        let staged = copies.into_iter().filter(|copy| copy.staged.is_some());
        staged.for_each(|copy| tiers.keeper.delete(copy.place));
    }
}
