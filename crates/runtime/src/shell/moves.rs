//! What the scheduler wants moved is moved, between its tasks.

use std::io;
use std::path::Path;

use ops::catalog::Record;
use sched::{DatumId, Direction, Event, LayerId};

use super::staged::Tiers;
use super::state::State;
use crate::files::Copy;
use crate::moving::{MoveEnd, Moved, Moving, Removed};
use crate::tiers::{Limits, Move};
use crate::trace::{Record as Traced, RecordKind, NOTHING};

impl State {
    /// The scheduler wants a file moved, or copied.
    pub(super) fn begin_move(&mut self, datum: DatumId, to: Option<LayerId>, keep: bool) {
        match self.files.plan_move(datum, to, keep) {
            Some(moving) => self.carry_move(moving),
            None => {
                let failed = Event::MoveFailed { datum, no_room: false };
                self.sched.handle(exec::now_ns(), failed, &mut self.out);
            }
        }
    }

    fn carry_move(&self, moving: Moving) {
        let (steps, layers) = self.files.steps_of(&moving);
        let tiers = self.tiers.as_ref().expect("the files were written with them");
        let limits = Limits::new(tiers.limiters.clone(), layers);
        let (home, began_ns) = (moving.moves_home(), exec::now_ns());
        let then = move |state: &mut State, done| state.moved(moving, began_ns, done);
        let then = Box::new(tiers.later(|_, state, done| then(state, done)));
        tiers.keeper.carry_out(Move { home, steps, limits, then });
    }

    fn moved(&mut self, moving: Moving, began_ns: u64, done: io::Result<()>) {
        let now = exec::now_ns();
        let number = |copy: &Copy| copy.layer.map_or(NOTHING, |layer| layer.0);
        let (from, to) = (number(&moving.from), number(&moving.to));
        let bytes = moving.from.bytes;
        let mut record = Traced::new(began_ns, RecordKind::Moved);
        (record.layer, record.executor) = (from, to);
        (record.amount, record.other) = (now.saturating_sub(began_ns), bytes);
        self.trace.push(record);
        let Moved { end, told, old, left } = self.files.moved(moving, done);
        match end {
            MoveEnd::Done => {
                self.totals.files_moved += 1;
                self.totals.bytes_moved += bytes;
            }
            MoveEnd::Failed => self.totals.moves_failed += 1,
            MoveEnd::Void => {}
        }
        self.delete_copies(old);
        left.into_iter().for_each(|datum| self.delete_stale(datum));
        told.into_iter().for_each(|told| self.sched.handle(now, told, &mut self.out));
    }

    /// Copies that were left behind by moves are deleted when no task that was sent may read them.
    pub(super) fn delete_stale(&mut self, datum: DatumId) {
        if self.files.get(datum).is_none_or(|file| file.stale.is_empty()) {
            return;
        }
        let uses = |task: &super::state::Task| {
            task.sent.is_some() && task.files.iter().any(|(used, _)| *used == datum)
        };
        if !self.tasks.values().any(uses) {
            let file = self.files.get_mut(datum).expect("looked up above");
            let stale = std::mem::take(&mut file.stale);
            self.delete_copies(stale);
        }
    }

    /// The upper copy of a file is not needed any more.
    pub(super) fn drop_copy(&mut self, datum: DatumId) {
        let near = self.files.take_near(datum);
        self.delete_copies(near);
    }

    /// The program cannot name a scratch file any more: it goes when no task uses it.
    pub(crate) fn forget_file(&mut self, home: &Path) {
        let Some(datum) = self.files.forget(home) else { return };
        self.sched.drop_datum(datum, &mut self.out);
        if self.files.is_unused(datum) {
            self.remove_file(datum);
        }
    }

    /// A task that had these files is over.
    pub(super) fn unuse_files(&mut self, files: &[(DatumId, Direction)]) {
        let unused = self.files.end_uses(files);
        unused.into_iter().for_each(|datum| self.remove_file(datum));
    }

    /// A file that nobody can name or read any more is deleted.
    pub(super) fn remove_file(&mut self, datum: DatumId) {
        let Removed { copies, at_home, records } = self.files.remove_all(datum);
        if let Some(tiers) = &self.tiers {
            at_home.into_iter().for_each(|home| tiers.keeper.delete(home));
            tiers.note(records);
        }
        self.delete_copies(copies);
        self.sched.handle(exec::now_ns(), Event::FileGone { datum }, &mut self.out);
    }

    pub(super) fn hold_moves(&self, hold: bool) {
        if let Some(tiers) = &self.tiers {
            tiers.hold(hold);
        }
    }
}

impl Tiers {
    /// Records that nobody waits for.
    fn note(&self, records: Vec<Record>) {
        self.commit(Vec::new(), records, |_, _, _| {});
    }

    fn hold(&self, hold: bool) {
        self.keeper.hold().set(hold);
    }
}
