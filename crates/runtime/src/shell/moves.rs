//! What the scheduler wants moved is moved, between its tasks.

use std::io;
use std::path::Path;

use ops::catalog::{move_to, FileId, Record, Step};
use sched::{DatumId, Direction, Event, LayerId};

use super::staged::Tiers;
use super::state::State;
use crate::files::{Copy, File};
use crate::tiers::{Limits, Move};
use crate::trace::{Record as Traced, RecordKind, NOTHING};

/// A move that is under way.
struct Moving {
    datum: DatumId,
    /// What is moved, by its number where it has one.
    from: Copy,
    /// Where it goes.
    to: Copy,
    /// The original stays.
    keep: bool,
}

/// Whether there was no room where a file was to go.
fn no_room(error: &io::Error) -> bool {
    [libc::ENOSPC, libc::EDQUOT].into_iter().any(|code| error.raw_os_error() == Some(code))
        || matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The steps of a move, but for the last: the original is deleted when nobody reads it any more.
fn steps(moving: &Moving, file: &File, over: Option<&Path>) -> Vec<Step> {
    let Moving { from, to, keep, .. } = moving;
    if *keep {
        let (from, to) = (from.place.clone(), to.place.clone());
        return vec![Step::MakeFolders(to.clone()), Step::Copy { from, to }];
    }
    let mut steps = match (from.staged, to.staged) {
        (Some(_), None) => {
            // A rename would take the original from those who read it now.
            file.steps_home(from, over)
        }
        (Some(number), Some(_)) => move_to(number, &file.entry(from), &to.place),
        (None, _) => Vec::new(),
    };
    steps.pop();
    steps
}

impl State {
    /// The scheduler wants a file moved, or copied.
    pub(super) fn begin_move(&mut self, datum: DatumId, to: Option<LayerId>, keep: bool) {
        match self.plan_move(datum, to, keep) {
            Some(moving) => self.carry_move(moving),
            None => {
                let failed = Event::MoveFailed { datum, no_room: false };
                self.sched.handle(exec::now_ns(), failed, &mut self.out);
            }
        }
    }

    fn plan_move(&mut self, datum: DatumId, to: Option<LayerId>, keep: bool) -> Option<Moving> {
        // Half changed in place by a task that failed: it is not moved as if it were whole.
        let file = self.files.get(datum).filter(|file| !file.changing)?;
        let from = file.current.clone().unwrap_or_else(|| file.at_home());
        let homewards = !keep && !file.scratch && (to.is_none() || to == file.home_layer);
        if homewards {
            let to = file.at_home();
            return from.staged.is_some().then_some(Moving { datum, from, to, keep });
        }
        let layer = to?;
        if from.staged.is_none() && !keep {
            return None;
        }
        let home = file.home.clone();
        let staging = self.files.staging.as_mut()?;
        let (number, place) = staging.place(layer.0 as usize, &home)?;
        // A file keeps its number when it moves: the catalog knows it by that.
        let staged = Some(from.staged.filter(|_| !keep).unwrap_or(number));
        let to = Copy { place, layer: Some(layer), staged, bytes: from.bytes };
        Some(Moving { datum, from, to, keep })
    }

    fn carry_move(&self, moving: Moving) {
        let file = self.files.get(moving.datum).expect("planned with it");
        let over = match (moving.from.staged, &self.files.staging) {
            (Some(number), Some(staging)) => Some(staging.temporary(number, &file.home)),
            _ => None,
        };
        let layers = [self.limiter_of(&moving.from), self.limiter_of(&moving.to)];
        let tiers = self.tiers.as_ref().expect("the files were written with them");
        let limits = Limits::new(tiers.limiters.clone(), layers);
        let steps = steps(&moving, file, over.as_deref());
        let began_ns = exec::now_ns();
        tiers.carry_out(steps, limits, false, move |state, done| {
            state.moved(moving, began_ns, done);
        });
    }

    fn moved(&mut self, moving: Moving, began_ns: u64, done: io::Result<()>) {
        let Moving { datum, from, to, keep } = moving;
        let now = exec::now_ns();
        let number = |copy: &Copy| copy.layer.map_or(NOTHING, |layer| layer.0);
        let mut record = Traced::new(began_ns, RecordKind::Moved);
        (record.layer, record.executor) = (number(&from), number(&to));
        (record.amount, record.other) = (now.saturating_sub(began_ns), from.bytes);
        self.trace.push(record);
        let file = self.files.get_mut(datum);
        let answer = match (done, file) {
            // It came home meanwhile, because the program asked for that.
            (_, Some(file)) if !keep && file.current.as_ref() != Some(&from) => {
                self.delete_copies([to]);
                Event::MoveFailed { datum, no_room: false }
            }
            (Ok(()), Some(file)) => {
                self.totals.files_moved += 1;
                self.totals.bytes_moved += from.bytes;
                let bytes = from.bytes;
                if keep {
                    file.near = Some(to);
                } else {
                    file.stands |= to.staged.is_none();
                    file.current = to.staged.is_some().then_some(to);
                    file.stale.push(from);
                    self.delete_stale(datum);
                }
                Event::MoveDone { datum, bytes }
            }
            (Err(error), Some(_)) => {
                self.totals.moves_failed += 1;
                Event::MoveFailed { datum, no_room: no_room(&error) }
            }
            (_, None) => Event::MoveFailed { datum, no_room: false },
        };
        self.sched.handle(now, answer, &mut self.out);
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
        if let Some(near) = self.files.get_mut(datum).and_then(|file| file.near.take()) {
            self.delete_copies([near]);
        }
    }

    /// The program cannot name a scratch file any more: it goes when no task uses it.
    pub(crate) fn forget_file(&mut self, datum: DatumId) {
        let Some(file) = self.files.get_mut(datum).filter(|file| file.scratch) else { return };
        file.forgotten = true;
        self.sched.drop_datum(datum, &mut self.out);
        self.remove_unused(datum);
    }

    /// A task that had these files is over.
    pub(super) fn unuse_files(&mut self, files: &[(DatumId, Direction)]) {
        for (datum, _) in files {
            if let Some(file) = self.files.get_mut(*datum) {
                file.users -= 1;
            }
            self.remove_unused(*datum);
        }
    }

    /// The scheduler knows of files that could be elsewhere, and says when they are to go.
    fn remove_unused(&mut self, datum: DatumId) {
        let unknown = |file: &File| !file.managed || !file.written;
        let unused = |file: &File| file.forgotten && file.users == 0 && unknown(file);
        if self.files.get(datum).is_some_and(unused) {
            self.remove_file(datum);
        }
    }

    /// A file that nobody can name or read any more is deleted.
    pub(super) fn remove_file(&mut self, datum: DatumId) {
        let copies = self.files.get_mut(datum).map(|file| {
            if let (None, Some(tiers)) = (&file.current, &self.tiers) {
                tiers.keeper.delete(file.home.clone()); // it is in a folder of the session
            }
            let copies = [file.current.take(), file.near.take()];
            copies.into_iter().flatten().chain(std::mem::take(&mut file.stale))
        });
        let copies: Vec<Copy> = copies.into_iter().flatten().collect();
        let gone = copies.iter().filter_map(|copy| copy.staged);
        let records: Vec<Record> = gone.map(|file: FileId| Record::Gone { file }).collect();
        if let Some(tiers) = &self.tiers {
            tiers.note(records);
        }
        self.delete_copies(copies);
        self.files.remove(datum);
        self.sched.handle(exec::now_ns(), Event::FileGone { datum }, &mut self.out);
    }

    pub(super) fn hold_moves(&self, hold: bool) {
        if let Some(tiers) = &self.tiers {
            tiers.hold(hold);
        }
    }
}

impl Tiers {
    /// Carries steps out when the mover comes to them; those that the program waits for at once.
    pub(super) fn carry_out(
        &self,
        steps: Vec<Step>,
        limits: Limits,
        now: bool,
        then: impl FnOnce(&mut State, io::Result<()>) + Send + 'static,
    ) {
        let then = Box::new(self.later(|_, state, done| then(state, done)));
        let wanted = Move { steps, limits, then };
        match now {
            true => self.keeper.carry_out_now(wanted),
            false => self.keeper.carry_out(wanted),
        }
    }

    /// Records that nobody waits for.
    fn note(&self, records: Vec<Record>) {
        self.commit(Vec::new(), records, |_, _, _| {});
    }

    fn hold(&self, hold: bool) {
        self.keeper.hold().set(hold);
    }
}
