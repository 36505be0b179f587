//! What the scheduler wants moved, or gone, of the files of native tasks.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Weak;

use graph::DatumId;
use sched::{Event, Instruction, LayerId, Sched};

use super::{Placed, Using};
use crate::files::new_file;
use crate::moving::{Moved, Moving, Removed};
use crate::native::runtime::Shared;
use crate::tiers::{Commit, Limits, Move};

impl Placed {
    /// The scheduler wants a file moved, or copied; `then` hears how that went. What the scheduler
    /// is told at once.
    pub(in crate::native) fn begin_move(
        &mut self,
        (datum, to, keep): (DatumId, Option<LayerId>, bool),
        then: impl FnOnce(&Shared, Moving, io::Result<()>) + Send + 'static,
    ) -> Option<Event> {
        let Some(moving) = self.files.plan_move(datum, to, keep) else {
            return Some(Event::MoveFailed { datum, no_room: false });
        };
        let (steps, layers) = self.files.steps_of(&moving);
        // In the end they are brought home with the rest.
        let Some(tiers) = &self.tiers else {
            return Some(Event::MoveFailed { datum, no_room: false });
        };
        let home = moving.moves_home();
        let shared = Weak::clone(&tiers.shared);
        let then = Box::new(move |done: io::Result<()>| {
            if let Some(shared) = shared.upgrade() {
                then(&shared, moving, done);
            }
        });
        let limits = Limits::new(tiers.limiters.clone(), layers);
        tiers.keeper.carry_out(Move { home, steps, limits, then });
        None
    }

    /// A move is over. What the scheduler is told.
    pub(in crate::native) fn moved(
        &mut self,
        moving: Moving,
        done: io::Result<()>,
    ) -> Option<Event> {
        let Moved { told, old, left, .. } = self.files.moved(moving, done);
        self.delete(old);
        left.into_iter().for_each(|datum| self.delete_stale(datum));
        told
    }

    /// The upper copy of a file is not needed any more.
    pub(in crate::native) fn drop_copy(&mut self, datum: DatumId) {
        let near = self.files.take_near(datum);
        self.delete(near);
    }

    /// Moves wait while I/O goes on, or go on.
    pub(in crate::native) fn hold_moves(&self, hold: bool) {
        if let Some(tiers) = &self.tiers {
            tiers.keeper.hold().set(hold);
        }
    }

    /// A path for a file that goes with the runtime. `None`: no layer takes files of tasks.
    pub(in crate::native) fn scratch(&mut self, name: &Path) -> Option<PathBuf> {
        self.files.scratch(name)
    }

    /// The program cannot name a scratch file any more: it goes when no task uses it. What the
    /// scheduler is told.
    pub(in crate::native) fn forget_file(
        &mut self,
        sched: &mut Sched,
        home: &Path,
        out: &mut Vec<Instruction>,
    ) -> Option<Event> {
        let datum = self.files.forget(home)?;
        sched.drop_datum(datum, out);
        self.files.is_unused(datum).then(|| self.remove(datum))
    }

    /// A file that nobody can name or read any more is deleted. What the scheduler is told.
    pub(in crate::native) fn remove(&mut self, datum: DatumId) -> Event {
        let Removed { copies, at_home, records } = self.files.remove_all(datum);
        if let Some(tiers) = &self.tiers {
            at_home.into_iter().for_each(|home| tiers.keeper.delete(home));
            // Nobody waits for these.
            let then = Box::new(|_| {});
            tiers.keeper.commit(Commit { made: Vec::new(), records, then });
        }
        self.delete(copies);
        Event::FileGone { datum }
    }

    /// Failures were told, and no task is left: each file is as it was, and can be used again, by
    /// another datum. What the scheduler is told.
    pub(in crate::native) fn renew(
        &mut self,
        sched: &mut Sched,
        out: &mut Vec<Instruction>,
    ) -> Vec<Event> {
        let all: Vec<DatumId> = self.files.all().map(|(datum, _)| datum).collect();
        let mut told = Vec::new();
        let (forgotten, others): (Vec<DatumId>, Vec<DatumId>) = all
            .into_iter()
            .partition(|datum| self.files.get(*datum).is_some_and(|it| it.forgotten));
        // Of one that was written the scheduler knows, and will say when it is to go.
        for datum in forgotten {
            let never = self.files.get(datum).is_some_and(|file| file.current.is_none());
            told.extend(never.then(|| self.remove(datum)));
        }
        for datum in &others {
            let new = new_file(sched);
            sched.renew_file(*datum, new);
            self.files.renew(*datum, new);
        }
        // Only now: it may have others moved, by the data that they have from now on.
        others.into_iter().for_each(|datum| sched.drop_datum(datum, out));
        told
    }

    /// Copies that were left behind are deleted when no task that was sent may read them.
    pub(super) fn delete_stale(&mut self, datum: DatumId) {
        let uses =
            |using: &Using| using.is_sent && using.uses.files.iter().any(|(it, _)| *it == datum);
        let Some(file) = self.files.get_mut(datum) else { return };
        if file.stale.is_empty() || self.using.values().any(uses) {
            return;
        }
        let stale = std::mem::take(&mut file.stale);
        self.delete(stale);
    }
}
