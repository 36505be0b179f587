//! Which tasks that were submitted and have not ended use a file, and who must wait for a move.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use graph::{DatumId, Graph, Target, TaskId};

use super::Files;
use crate::api::{Instruction, TaskSpec};
use crate::sched::Sched;

/// What a task does to a datum in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) datum: DatumId,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// The tasks that are to use a datum.
#[derive(Debug, Default)]
pub(crate) struct Users {
    pub(super) readers: BTreeSet<TaskId>,
    pub(super) writers: u32,
}

impl Users {
    fn is_empty(&self) -> bool {
        self.readers.is_empty() && self.writers == 0
    }
}

impl Files {
    /// What a task that is submitted does to data in place, each datum once; `None`: to none.
    pub(crate) fn uses<F: Clone>(&self, graph: &Graph<F>, spec: &TaskSpec) -> Option<Box<[Use]>> {
        if !self.tracked || spec.accesses.is_empty() {
            return None;
        }
        let mut uses: Vec<Use> = Vec::new();
        for access in &spec.accesses {
            let Target::Datum(datum) = access.target else { continue };
            if !graph.is_in_place(datum) {
                continue;
            }
            let (reads, writes) = (access.direction.reads(), access.direction.writes());
            uses.push(Use { datum, reads, writes });
        }
        uses.sort_unstable_by_key(|used| used.datum);
        uses.dedup_by(|next, kept| {
            let same = next.datum == kept.datum;
            if same {
                kept.reads |= next.reads;
                kept.writes |= next.writes;
            }
            same
        });
        (!uses.is_empty()).then(|| uses.into_boxed_slice())
    }

    /// A task was submitted.
    pub(crate) fn will_use(&mut self, task: TaskId, uses: &[Use]) {
        for Use { datum, reads, writes } in uses.iter().copied() {
            let users = self.users.entry(datum).or_default();
            if reads {
                users.readers.insert(task);
            }
            users.writers += u32::from(writes);
            self.touch(datum);
        }
    }

    /// A task is over.
    pub(crate) fn used(&mut self, task: TaskId, uses: &[Use]) {
        for Use { datum, writes, .. } in uses.iter().copied() {
            let users = self.users.get_mut(&datum).expect("the task was counted");
            users.readers.remove(&task);
            users.writers -= u32::from(writes);
            if users.is_empty() {
                self.users.remove(&datum);
            }
            self.touch(datum);
        }
    }
}

impl Sched {
    /// Makes sure that a ready task may be sent as far as its files go: what it writes is not
    /// being moved, and has no second copy. `false`: it waits for the end of a move.
    pub(crate) fn files_are_free(&mut self, task: TaskId, out: &mut Vec<Instruction>) -> bool {
        let Some(record) = self.record_mut(task) else { return true };
        let Some(uses) = record.uses.take() else { return true };
        let writes = || uses.iter().filter(|used| used.writes).map(|used| used.datum);
        let moving = writes().find(|datum| self.files.moves.contains_key(datum));
        match moving {
            Some(datum) => self.files.parked.entry(datum).or_default().push(task),
            None => writes().for_each(|datum| self.drop_copy(datum, out)),
        }
        self.live(task).uses = Some(uses);
        moving.is_none()
    }

    /// The second copy of a file, if it has one, goes.
    pub(super) fn drop_copy(&mut self, datum: DatumId, out: &mut Vec<Instruction>) {
        let Some(file) = self.files.files.get_mut(&datum) else { return };
        let Some(layer) = file.upper.take() else { return };
        self.layers.unstore(layer, file.bytes);
        self.room_came();
        out.push(Instruction::DropCopy { datum, layer });
    }

    /// A layer has more to spare: for tasks, and for files that found no room.
    pub(crate) fn room_came(&mut self) {
        self.files.room_came |= !self.files.without_room.is_empty();
        self.executors.io_changed = true;
    }
}
