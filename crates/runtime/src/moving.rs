//! Files that the scheduler wants elsewhere, or gone: what is decided over the table of files, for
//! every driver. Who calls this has the keeper carry the steps out, deletes the copies that it
//! gives back, and tells the scheduler the events.

use std::io;
use std::path::PathBuf;

use ops::catalog::{move_to, Record, Step};
use sched::{DatumId, Direction, Event, LayerId};

use crate::files::{Copy, File, Files};

/// A move that is under way.
#[derive(Debug)]
pub(crate) struct Moving {
    datum: DatumId,
    /// The file's own path: it may have another datum when the move is over (`renew_file`).
    home: PathBuf,
    /// What is moved, by its number where it has one.
    pub(crate) from: Copy,
    /// Where it goes.
    pub(crate) to: Copy,
    /// The original stays.
    keep: bool,
}

impl Moving {
    /// The own path of the file, if it is away from where it was when the move is over.
    pub(crate) fn moves_home(&self) -> Option<PathBuf> {
        (!self.keep).then(|| self.home.clone())
    }
}

/// What a move came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MoveEnd {
    /// The file is there.
    Done,
    /// It could not be moved.
    Failed,
    /// Nobody needs it there any more.
    Void,
}

/// A move is over.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) end: MoveEnd,
    /// What the scheduler is told. `None`: it knows nothing of this move any more, as it heard
    /// where the file is; by now another one may be under way, which this is no answer to.
    pub(crate) told: Option<Event>,
    /// Copies that are old.
    pub(crate) old: Vec<Copy>,
    /// The file that left a copy behind, which tasks may still read.
    pub(crate) left: Option<DatumId>,
}

/// What is left of a file that nobody can read any more.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    /// Its copies.
    pub(crate) copies: Vec<Copy>,
    /// It is at its own path, which is in a folder of the session.
    pub(crate) at_home: Option<PathBuf>,
    /// What the catalog is told.
    pub(crate) records: Vec<Record>,
}

/// Whether there was no room where a file was to go.
fn no_room(error: &io::Error) -> bool {
    [libc::ENOSPC, libc::EDQUOT].into_iter().any(|code| error.raw_os_error() == Some(code))
        || matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl Files {
    /// Decides where a file is moved, or copied (`keep`), that the scheduler wants on a layer, or
    /// at its own path outside all layers. `None`: it cannot be moved now.
    pub(crate) fn plan_move(
        &mut self,
        datum: DatumId,
        to: Option<LayerId>,
        keep: bool,
    ) -> Option<Moving> {
        // Half changed in place by a task that failed: it is not moved as if it were whole.
        let file = self.get(datum).filter(|file| !file.changing)?;
        let home = file.home.clone();
        let from = file.current.clone().unwrap_or_else(|| file.at_home());
        let homewards = !keep && !file.scratch && (to.is_none() || to == file.home_layer);
        if homewards {
            let to = file.at_home();
            return from.staged.is_some().then_some(Moving { datum, home, from, to, keep });
        }
        let layer = to?;
        if from.staged.is_none() && !keep {
            return None;
        }
        let staging = self.staging.as_mut()?;
        let (number, place) = staging.place(layer.0 as usize, &home)?;
        // A file keeps its number when it moves: the catalog knows it by that.
        let staged = Some(from.staged.filter(|_| !keep).unwrap_or(number));
        let to = Copy { place, layer: Some(layer), staged, bytes: from.bytes };
        Some(Moving { datum, home, from, to, keep })
    }

    /// The steps of a move, but for the last (the original is deleted when nobody reads it any
    /// more), and the emulated bandwidths on the way.
    pub(crate) fn steps_of(&self, moving: &Moving) -> (Vec<Step>, [Option<u32>; 2]) {
        let Moving { datum, from, to, keep, .. } = moving;
        let limited = [self.limiter_of(from), self.limiter_of(to)];
        if *keep {
            let (from, to) = (from.place.clone(), to.place.clone());
            return (vec![Step::MakeFolders(to.clone()), Step::Copy { from, to }], limited);
        }
        let file = self.get(*datum).expect("planned with it");
        let mut steps = match (from.staged, to.staged) {
            (Some(number), None) => {
                // A rename would take the original from those who read it now.
                let staging = self.staging.as_ref();
                let over = staging.map(|staging| staging.temporary(number, &file.home));
                file.steps_home(from, over.as_deref())
            }
            (Some(number), Some(_)) => move_to(number, &file.entry(from), &to.place),
            (None, _) => Vec::new(),
        };
        steps.pop();
        (steps, limited)
    }

    /// A move is over, well or not.
    pub(crate) fn moved(&mut self, moving: Moving, done: io::Result<()>) -> Moved {
        let Moving { datum, home, from, to, keep } = moving;
        let datum = self.of_home(&home).unwrap_or(datum);
        let failed = |no_room| Some(Event::MoveFailed { datum, no_room });
        let Some(file) = self.get_mut(datum) else {
            return Moved { end: MoveEnd::Void, told: None, old: vec![to], left: None };
        };
        // It came home meanwhile, because the program asked for that.
        let is_current = match &file.current {
            Some(current) => *current == from,
            None => from.staged.is_none(),
        };
        let is_off = done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted);
        if !is_current || is_off {
            let told = failed(false).filter(|_| is_current);
            return Moved { end: MoveEnd::Void, told, old: vec![to], left: None };
        }
        if let Err(error) = done {
            let told = failed(no_room(&error));
            return Moved { end: MoveEnd::Failed, told, old: Vec::new(), left: None };
        }
        let bytes = from.bytes;
        let told = Some(Event::MoveDone { datum, bytes });
        if keep {
            file.near = Some(to);
            return Moved { end: MoveEnd::Done, told, old: Vec::new(), left: None };
        }
        if to.staged.is_none() {
            (file.stands, file.home_bytes) = (true, bytes);
        }
        file.current = to.staged.is_some().then_some(to);
        file.stale.push(from);
        Moved { end: MoveEnd::Done, told, old: Vec::new(), left: Some(datum) }
    }

    /// The upper copy of a file is not needed any more.
    pub(crate) fn take_near(&mut self, datum: DatumId) -> Option<Copy> {
        self.get_mut(datum)?.near.take()
    }

    /// A task that was taken uses these.
    pub(crate) fn begin_uses(&mut self, uses: &[(DatumId, Direction)]) {
        for (datum, direction) in uses {
            let file = self.get_mut(*datum).expect("bound before");
            file.users += 1;
            file.written |= direction.writes();
        }
    }

    /// A task that had these is over. Gives those that nobody can read any more, and that the
    /// scheduler knows nothing of.
    pub(crate) fn end_uses(&mut self, uses: &[(DatumId, Direction)]) -> Vec<DatumId> {
        for (datum, _) in uses {
            if let Some(file) = self.get_mut(*datum) {
                file.users -= 1;
            }
        }
        uses.iter().map(|(datum, _)| *datum).filter(|datum| self.is_unused(*datum)).collect()
    }

    /// The program cannot name the scratch file of a path any more. Its datum, if it has one: the
    /// scheduler is told to drop it.
    pub(crate) fn forget(&mut self, home: &std::path::Path) -> Option<DatumId> {
        let datum = self.of_home(home)?;
        let file = self.get_mut(datum).filter(|file| file.scratch)?;
        file.forgotten = true;
        Some(datum)
    }

    /// Whether nobody can read a file any more and the scheduler will not say so, as it could be
    /// nowhere else, or was never written.
    pub(crate) fn is_unused(&self, datum: DatumId) -> bool {
        let unknown = |file: &File| !file.managed || !file.written;
        let unused = |file: &File| file.forgotten && file.users == 0 && unknown(file);
        self.get(datum).is_some_and(unused)
    }

    /// Nobody can read a file any more: it is dropped.
    pub(crate) fn remove_all(&mut self, datum: DatumId) -> Removed {
        let Some(file) = self.remove(datum) else { return Removed::default() };
        let at_home = file.current.is_none().then_some(file.home);
        let copies = [file.current, file.near].into_iter().flatten().chain(file.stale);
        let copies: Vec<Copy> = copies.collect();
        let gone = copies.iter().filter_map(|copy| copy.staged);
        let records = gone.map(|file| Record::Gone { file }).collect();
        Removed { copies, at_home, records }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ops::catalog::FileId;

    use super::*;
    use crate::files::PathKind;

    fn file() -> DatumId {
        DatumId::from_bits(1)
    }

    fn copy(place: &str, layer: u32, number: u64) -> Copy {
        let (layer, staged) = (Some(LayerId(layer)), Some(FileId(number)));
        Copy { place: place.into(), layer, staged, bytes: 5 }
    }

    /// A file that is on the first of three layers.
    fn away() -> (Files, Copy) {
        let mut files = Files::new(&[]);
        files.add(file(), &Files::key(Path::new("/slow/file")).unwrap(), PathKind::File);
        let current = copy("/0/1-file", 0, 1);
        files.get_mut(file()).unwrap().current = Some(current.clone());
        (files, current)
    }

    fn moving(from: &Copy, to: Copy, keep: bool) -> Moving {
        Moving { datum: file(), home: "/slow/file".into(), from: from.clone(), to, keep }
    }

    #[test]
    fn a_file_that_was_moved_while_it_was_brought_home_leaves_no_copy_there() {
        let (mut files, before) = away();
        let after = copy("/1/2-file", 1, 1);
        files.moved(moving(&before, after.clone(), false), Ok(()));
        assert_eq!(files.get(file()).unwrap().current, Some(after.clone()));
        files.came_home(file(), before.clone());
        let it = files.get(file()).unwrap();
        assert_eq!((&it.current, &it.stale), (&None, &vec![before, after]));
    }

    /// It would be taken for the answer to the next move, whose room would be given back while it
    /// is under way, and whose copy nobody would know of.
    #[test]
    fn the_end_of_a_move_that_the_scheduler_forgot_is_not_told() {
        let (mut files, before) = away();
        let near = copy("/2/3-file", 2, 3);
        files.came_home(file(), before.clone());
        let Moved { end, told, old, .. } = files.moved(moving(&before, near.clone(), true), Ok(()));
        assert_eq!((end, told, old), (MoveEnd::Void, None, vec![near]));
    }
}
