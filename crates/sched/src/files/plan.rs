//! What moves, and when (Elshazly, thesis, section 5.3.4, algorithm 6; decision 0018).
//!
//! *Flush*: a cold file goes to the layer of its own path, if that is lower, or outside all
//! layers, if its path is there; a scratch file goes to the lowest layer with room. *Prefetch*: a
//! warm file is copied to the highest layer with room once a task that reads it is ready and waits
//! for an executor, or waits only for what tasks make that run now.
//!
//! A move begins while no I/O task is ready, and none runs on the node of its layers (on any
//! node, if one of them is shared, or if the file goes outside). One exception: if I/O tasks are
//! ready, none runs and a slot is free, they wait for room, and only a move can make some. A move
//! that a task waits for is not held up by I/O: nobody would know when it ends.
//!
//! *Watermarks*: while a layer that has them drains (files take up more than the high one, and not
//! yet as little as the low one), cold files leave it whatever I/O goes on, and no move is held up.
//! Without `flush` they leave it only then, and when I/O tasks wait for room.

use alloc::vec::Vec;
use core::ops::Bound;

use graph::{DatumId, TaskId};

use super::{File, Moving};
use crate::api::{Instruction, Kind, LayerId};
use crate::sched::Sched;
use crate::transitions::State;

/// Moves under way at once; from one layer there is one.
pub(crate) const MOVES_MAX: usize = 16;
/// Moves of a file that may fail before it stays where it is, until it is written again.
const MOVE_TRIES_MAX: u32 = 3;
/// Warm files that are looked at after one event.
const WARM_LOOKS_MAX: usize = 16;
/// Readers of a warm file that are looked at.
const READER_LOOKS_MAX: usize = 16;

impl Sched {
    /// After everything else that an event does: begins, holds and ends what moves.
    pub(crate) fn plan_moves(&mut self, out: &mut Vec<Instruction>) {
        self.layers.review_watermarks();
        if !self.files.may_move() {
            return;
        }
        self.review_files(out);
        if core::mem::take(&mut self.files.room_came) {
            let again = core::mem::take(&mut self.files.without_room);
            for datum in &again {
                if let Some(file) = self.files.files.get_mut(datum) {
                    file.refused = false;
                }
            }
            self.files.touched.extend(again);
            self.review_files(out);
        }
        self.begin_flushes(out);
        self.begin_prefetches(out);
        self.drop_copies_for_room(out);
        self.hold_moves(out);
    }

    fn review_files(&mut self, out: &mut Vec<Instruction>) {
        while let Some(datum) = self.files.touched.pop_front() {
            self.review(datum, out);
        }
    }

    /// Which lists a file belongs to, and whether it or its copy is needed at all.
    fn review(&mut self, datum: DatumId, out: &mut Vec<Instruction>) {
        self.files.unlist(datum);
        let users = self.files.users.get(&datum);
        let (readers, writers) = users.map_or((0, 0), |users| (users.readers.len(), users.writers));
        let Some(file) = self.files.files.get(&datum) else { return };
        if file.moving.is_some() || file.removed {
            return;
        }
        if file.upper.is_some() {
            if readers == 0 {
                self.drop_copy(datum, out);
                self.files.touch(datum);
            }
            return;
        }
        let tries = file.failures < MOVE_TRIES_MAX;
        match (readers, writers) {
            (0, 0) if file.scratch && !self.graph.is_named(datum) => {
                if let Some(file) = self.files.files.get_mut(&datum) {
                    file.removed = true;
                }
                out.push(Instruction::Remove { datum });
            }
            (0, 0) if tries => {
                let sinks = file.layer.filter(|layer| self.could_sink(file, *layer));
                match sinks {
                    Some(_) if file.refused => drop(self.files.without_room.insert(datum)),
                    Some(layer) => self.files.list_cold(datum, layer),
                    None => {}
                }
            }
            (1.., 0) if self.files.prefetch && tries && self.could_rise(file) => {
                self.files.warm.insert(datum);
            }
            _ => {}
        }
    }

    /// Whether files of that layer move down, and there is a place below for this one, if it has
    /// room.
    fn could_sink(&self, file: &File, layer: LayerId) -> bool {
        let marked = self.layers.layer(layer).watermarks.is_some();
        if !self.files.flush && !marked {
            return false;
        }
        let level = self.layers.level(layer);
        match file.home.filter(|_| !file.scratch) {
            Some(home) => self.layers.level(home) > level,
            // Outside all layers there is always a place, also for those of the lowest one.
            None if marked && !file.scratch => true,
            None => self.layers.ids().any(|other| self.layers.level(other) > level),
        }
    }

    /// Whether there is a place above a file.
    fn could_rise(&self, file: &File) -> bool {
        file.layer.is_some_and(|layer| self.layers.level(layer) > 0)
    }

    /// Whether I/O tasks are ready and not sent.
    pub(crate) fn io_is_ready(&self) -> bool {
        !self.policy.groups().is_empty() || self.tuner.has_ready()
    }

    /// Whether I/O goes on that a move between these layers would disturb.
    fn io_is_active(&self, from: LayerId, to: Option<LayerId>) -> bool {
        let running = self.executors.io_running;
        if self.io_is_ready() && (running > 0 || self.executors.io_free == 0) {
            return true;
        }
        let node = |layer: LayerId| self.layers.layer(layer).node;
        match (node(from), to.and_then(node)) {
            (Some(one), Some(other)) => {
                [one, other].iter().any(|node| self.executors.nodes[node.0 as usize].io_running > 0)
            }
            _ => running > 0,
        }
    }

    /// Whether some node reaches both layers.
    fn connects(&self, one: LayerId, other: LayerId) -> bool {
        let (one, other) = (self.layers.layer(one).node, self.layers.layer(other).node);
        one.is_none() || other.is_none() || one == other
    }

    fn has_room(&self, layer: LayerId, bytes: u64) -> bool {
        !self.layers.is_down(layer) && self.layers.spare(layer).size >= bytes
    }

    /// Where a cold file goes now: `None`: nowhere.
    fn sinks_to(&self, file: &File, from: LayerId) -> Option<Option<LayerId>> {
        if self.layers.is_down(from) {
            return None;
        }
        let takes = |to: LayerId| self.connects(from, to) && self.has_room(to, file.bytes);
        if !file.scratch {
            let Some(home) = file.home else { return Some(None) };
            return takes(home).then_some(Some(home));
        }
        let level = self.layers.level(from);
        let below = |to: &&LayerId| self.layers.level(**to) > level && takes(**to);
        self.layers.ranked().iter().rev().find(below).map(|to| Some(*to))
    }

    fn moves_from(&self, layer: LayerId) -> bool {
        self.files.moves.values().any(|moving| moving.from == layer)
    }

    fn begin_flushes(&mut self, out: &mut Vec<Instruction>) {
        if self.files.cold.is_empty() {
            return;
        }
        for at in 0..self.layers.ranked().len() {
            let from = self.layers.ranked()[at];
            let drains = self.layers.drains(from);
            if !self.files.flush && !drains && !self.io_is_ready() {
                continue;
            }
            while self.files.moves.len() < MOVES_MAX && !self.moves_from(from) {
                let Some(datum) = self.files.coldest(from) else { break };
                let Some(to) = self.sinks_to(&self.files.files[&datum], from) else {
                    // Looked at again when room came to be.
                    self.files.unlist(datum);
                    self.files.without_room.insert(datum);
                    continue;
                };
                if !drains && self.io_is_active(from, to) {
                    break;
                }
                self.begin_move(datum, from, to, false, out);
            }
        }
    }

    fn begin_move(
        &mut self,
        datum: DatumId,
        from: LayerId,
        to: Option<LayerId>,
        keep: bool,
        out: &mut Vec<Instruction>,
    ) {
        self.files.unlist(datum);
        let file = self.files.files.get_mut(&datum).expect("the caller looked");
        let moving = Moving { from, to, keep, bytes: file.bytes };
        file.moving = Some(moving);
        self.files.moves.insert(datum, moving);
        if let Some(to) = to {
            self.layers.expect(to, moving.bytes);
        }
        out.push(Instruction::Move { datum, from, to, keep });
    }

    fn begin_prefetches(&mut self, out: &mut Vec<Instruction>) {
        if self.files.warm.is_empty() || self.files.moves.len() >= MOVES_MAX || self.io_is_ready() {
            return;
        }
        for datum in self.files.next_warm() {
            let File { layer, bytes, .. } = self.files.files[&datum];
            let Some(from) = layer else { continue };
            if self.layers.is_down(from) || self.moves_from(from) {
                continue;
            }
            let Some(reader) = self.reader_at_hand(datum) else { continue };
            let level = self.layers.level(from);
            let rises = |to: &&LayerId| {
                self.layers.level(**to) < level
                    && self.has_room(**to, bytes)
                    && !self.layers.would_drain(**to, bytes)
                    && self.connects(from, **to)
                    && self.is_near(**to, reader)
            };
            let to = self.layers.ranked().iter().find(rises).copied();
            let Some(to) = to.filter(|to| !self.io_is_active(from, Some(*to))) else { continue };
            if self.files.moves.len() < MOVES_MAX {
                self.begin_move(datum, from, Some(to), true, out);
            }
        }
    }

    /// A reader of a file that is about to run.
    fn reader_at_hand(&self, datum: DatumId) -> Option<TaskId> {
        let readers = &self.files.users.get(&datum)?.readers;
        readers.iter().copied().take(READER_LOOKS_MAX).find(|task| self.is_at_hand(*task))
    }

    /// Whether a task is ready, or waits only for what tasks make that run.
    fn is_at_hand(&self, task: TaskId) -> bool {
        let runs = |producer: TaskId| {
            let state = self.record(producer).map(|record| record.state);
            matches!(state, Some(State::Sent | State::Paused | State::Settling))
        };
        match self.record(task).map(|record| record.state) {
            Some(State::Ready) => true,
            Some(State::Waiting) => self.graph.awaited(task).is_some_and(|mut it| it.all(runs)),
            _ => false,
        }
    }

    /// Whether a task will reach a layer, as far as can be told.
    fn is_near(&self, layer: LayerId, task: TaskId) -> bool {
        let Some(node) = self.layers.layer(layer).node else { return true };
        let record = self.record(task);
        let tied = record.filter(|it| it.kind == Kind::Compute && it.state == State::Ready);
        self.executors.nodes.len() == 1 || tied.is_some_and(|record| record.node == node.0)
    }

    /// I/O tasks wait for room: second copies that nobody has open go.
    fn drop_copies_for_room(&mut self, out: &mut Vec<Instruction>) {
        if !self.io_is_ready() || self.executors.io_running > 0 || !self.files.prefetch {
            return;
        }
        let copies = self.files.files.iter().filter(|(_, file)| file.upper.is_some());
        let copies: Vec<DatumId> = copies.map(|(datum, _)| *datum).collect();
        for datum in copies {
            let readers = self.files.users.get(&datum).map(|users| &users.readers);
            let at_work = |task: &TaskId| {
                let state = self.record(*task).map(|record| record.state);
                matches!(state, Some(State::Sent | State::Paused | State::Abandoned))
            };
            if !readers.is_some_and(|readers| readers.iter().any(at_work)) {
                self.drop_copy(datum, out);
                // It is not copied up again at once for the same reader.
                if let Some(file) = self.files.files.get_mut(&datum) {
                    file.failures += 1;
                }
            }
        }
        self.dispatch(out);
    }

    fn hold_moves(&mut self, out: &mut Vec<Instruction>) {
        let moves = || self.files.moves.values();
        let hold = self.files.parked.is_empty()
            && moves().any(|moving| self.io_is_active(moving.from, moving.to))
            && !moves().any(|moving| !moving.keep && self.layers.drains(moving.from));
        if hold != self.files.held {
            self.files.held = hold;
            out.push(Instruction::HoldMoves { hold });
        }
    }
}

impl super::Files {
    /// The file that has been cold longest on a layer.
    fn coldest(&self, layer: LayerId) -> Option<DatumId> {
        let first = (Bound::Included(((layer, 0), least())), Bound::Unbounded);
        let ((at, _), datum) = self.cold.range(first).next()?;
        (*at == layer).then_some(*datum)
    }

    /// The next few warm files, in turn.
    fn next_warm(&mut self) -> Vec<DatumId> {
        let from = self.warm_after.map_or(Bound::Unbounded, Bound::Excluded);
        let until = self.warm_after.map_or(Bound::Unbounded, Bound::Included);
        let after = self.warm.range((from, Bound::Unbounded));
        let before =
            self.warm.range((Bound::Unbounded, until)).filter(|_| self.warm_after.is_some());
        let found: Vec<DatumId> = after.chain(before).copied().take(WARM_LOOKS_MAX).collect();
        self.warm_after = found.last().copied();
        found
    }
}

/// Before every datum.
fn least() -> DatumId {
    DatumId(graph::slab::Key { index: 0, generation: 0 })
}
