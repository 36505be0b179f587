//! A node: what its executors take, and lists of them by what more they can.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::num::{NonZeroU64, NonZeroUsize};

use crate::api::{ExecutorId, Kind};

/// Where a compute executor stands among those that take tasks: the first is asked first. One
/// number, as it is compared several times for every task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn(NonZeroU64);

/// The turns from here on are those of executors that have tasks.
const OPEN: NonZeroU64 = NonZeroU64::new(1 << 63).unwrap();

impl Turn {
    /// It has no task; and so many that stalled, which can only go on where they are.
    pub(crate) fn idle(stalled: usize) -> Turn {
        Turn(NonZeroU64::MIN.saturating_add(stalled as u64))
    }

    /// It may be sent more behind what it has: run time in nanoseconds.
    pub(crate) fn open(ahead_ns: u64) -> Turn {
        Turn(OPEN | ahead_ns.min(!OPEN.get()))
    }

    /// The run time of what it has in nanoseconds; `None`: it has no task.
    pub(crate) fn ahead_ns(self) -> Option<u64> {
        (self.0 >= OPEN).then(|| self.0.get() & !OPEN.get())
    }
}

/// What a node counts of an executor, and its place in the lists. One that retires is in none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// Processors that its tasks take.
    pub(crate) busy: u32,
    /// I/O tasks that were sent to it.
    pub(crate) io_running: u32,
    /// Of a compute executor that can be sent a task.
    pub(crate) turn: Option<Turn>,
    /// Tasks in its line, if some of them can be asked back.
    pub(crate) line: Option<NonZeroUsize>,
    /// Slots of an I/O executor or engine, free or not.
    pub(crate) slots: u32,
    /// Likewise, for tasks that something else limits.
    pub(crate) extra: u32,
    /// Slots that are free.
    pub(crate) free: u32,
    /// Slots and extra ones that are free.
    pub(crate) free_all: u32,
}

/// The executors of a node by what they can take.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) processors: u32,
    pub(crate) busy: u32,
    /// I/O tasks at its executors.
    pub(crate) io_running: u32,
    /// Something changed here since tasks were last sent.
    pub(crate) touched: bool,
    /// Compute executors that can be sent a task.
    turns: Sorted<Turn>,
    /// Compute executors with several tasks, by how many.
    lines: Sorted<NonZeroUsize>,
    /// Slots of the I/O executors that take tasks, and of the engines, free or not.
    slots: [u32; 2],
    /// Extra slots of the I/O executors, free or not.
    extra: u32,
    /// I/O executors by free slots, most first.
    io: Sorted<Reverse<u32>>,
    /// I/O executors by free slots and extra ones, most first.
    io_extra: Sorted<Reverse<u32>>,
    /// Engines likewise.
    engines: Sorted<Reverse<u32>>,
}

/// Executors by a key. A node has as many as it has processors, or fewer: moving entries costs less
/// than a tree.
#[derive(Debug, PartialEq, Eq)]
struct Sorted<K>(Vec<(K, ExecutorId)>);

impl<K> Default for Sorted<K> {
    fn default() -> Self {
        Sorted(Vec::new())
    }
}

impl<K: Ord + Copy> Sorted<K> {
    fn first(&self) -> Option<(K, ExecutorId)> {
        self.0.first().copied()
    }

    fn last(&self) -> Option<ExecutorId> {
        self.0.last().map(|(_, id)| *id)
    }

    /// The key of an executor changes; without one it is not in the list.
    fn change(&mut self, id: ExecutorId, before: Option<K>, after: Option<K>) {
        match (before, after) {
            (None, None) => {}
            (None, Some(key)) => {
                self.0.push((key, id));
                self.settle(self.0.len() - 1);
            }
            (Some(key), None) => {
                self.0.remove(self.position(key, id));
            }
            (Some(old), Some(new)) if old != new => {
                let at = self.position(old, id);
                self.0[at].0 = new;
                self.settle(at);
            }
            _ => {}
        }
    }

    fn position(&self, key: K, id: ExecutorId) -> usize {
        let at = self.0.iter().position(|(_, listed)| *listed == id);
        at.filter(|at| self.0[*at].0 == key).expect("an executor is listed as it was counted")
    }

    /// Moves one entry to where its key says.
    fn settle(&mut self, mut at: usize) {
        while at > 0 && self.0[at - 1] > self.0[at] {
            self.0.swap(at - 1, at);
            at -= 1;
        }
        while at + 1 < self.0.len() && self.0[at + 1] < self.0[at] {
            self.0.swap(at, at + 1);
            at += 1;
        }
    }
}

/// Free slots as a key; an executor without any is in no list.
fn slots_key(free: u32) -> Option<Reverse<u32>> {
    (free > 0).then_some(Reverse(free))
}

impl Node {
    pub(crate) fn new(processors: u32) -> Node {
        Node { processors, ..Node::default() }
    }

    /// The compute executor without a task that is to be sent one first.
    pub(crate) fn idle(&self) -> Option<ExecutorId> {
        let (turn, id) = self.turns.first()?;
        turn.ahead_ns().is_none().then_some(id)
    }

    /// The compute executor that is to be sent a task first.
    pub(crate) fn first(&self) -> Option<(Turn, ExecutorId)> {
        self.turns.first()
    }

    /// The compute executor with the longest line.
    pub(crate) fn longest(&self) -> Option<ExecutorId> {
        self.lines.last()
    }

    /// The I/O executor, or engine, with the most free slots; the lowest of equals.
    pub(crate) fn io_slot(&self, kind: Kind) -> Option<ExecutorId> {
        let list = if kind == Kind::Engine { &self.engines } else { &self.io };
        list.first().map(|(_, id)| id)
    }

    /// The I/O executor with the most slots for a task that something else limits.
    pub(crate) fn extra_slot(&self, kind: Kind) -> Option<ExecutorId> {
        self.io_extra.first().map(|(_, id)| id).filter(|_| kind == Kind::Io)
    }

    /// How many I/O tasks of a kind may run here at once if nothing else limits them.
    pub(crate) fn io_slots(&self, kind: Kind) -> u32 {
        self.slots[usize::from(kind == Kind::Engine)]
    }

    /// How many I/O tasks of a kind may run here at once at all.
    pub(crate) fn io_slots_all(&self, kind: Kind) -> u32 {
        self.io_slots(kind) + if kind == Kind::Io { self.extra } else { 0 }
    }

    /// Counts an executor as it is now, which was counted as it was before.
    pub(crate) fn relist(&mut self, id: ExecutorId, kind: Kind, before: &Listing, after: &Listing) {
        self.busy = self.busy - before.busy + after.busy;
        if kind == Kind::Compute {
            self.turns.change(id, before.turn, after.turn);
            self.lines.change(id, before.line, after.line);
            return;
        }
        self.io_running = self.io_running - before.io_running + after.io_running;
        let slots = &mut self.slots[usize::from(kind == Kind::Engine)];
        *slots = *slots - before.slots + after.slots;
        self.extra = self.extra - before.extra + after.extra;
        let (free, free_now) = (slots_key(before.free), slots_key(after.free));
        if kind == Kind::Engine {
            self.engines.change(id, free, free_now);
            return;
        }
        self.io.change(id, free, free_now);
        self.io_extra.change(id, slots_key(before.free_all), slots_key(after.free_all));
    }

    /// Whether another count of the same executors came to the same; `at`: which node it is.
    pub(crate) fn validate(&self, again: &Node, at: usize) -> Result<(), String> {
        if (self.slots, self.extra) != (again.slots, again.extra) {
            return Err(format!("node {at} notes {:?} I/O slots", self.slots));
        }
        if self.io_running != again.io_running {
            return Err(format!("node {at} notes {} I/O tasks", self.io_running));
        }
        if self.busy != again.busy || self.busy > self.processors {
            return Err(format!("node {at} notes {} busy of {}", self.busy, again.busy));
        }
        let lists = |node: &Node| format!("{:?} {:?}", (&node.turns, &node.lines), node.io_lists());
        let same = self.turns == again.turns && self.lines == again.lines;
        if !same || self.io_lists() != again.io_lists() {
            let (noted, counted) = (lists(self), lists(again));
            return Err(format!("the lists of node {at} are {noted}, should be {counted}"));
        }
        Ok(())
    }

    fn io_lists(&self) -> [&Sorted<Reverse<u32>>; 3] {
        [&self.io, &self.io_extra, &self.engines]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_in_order_and_tell_what_is_ahead() {
        let turns = [Turn::idle(0), Turn::idle(7), Turn::open(0), Turn::open(9)];
        assert!(turns.is_sorted());
        let ahead: Vec<_> = turns.iter().map(|turn| turn.ahead_ns()).collect();
        assert_eq!(ahead, [None, None, Some(0), Some(9)]);
        assert_eq!(Turn::open(u64::MAX).ahead_ns(), Some(u64::MAX >> 1));
    }

    #[test]
    fn entries_stay_in_order_however_their_keys_change() {
        let mut state = 1u64;
        let mut roll = |sides: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % sides
        };
        let mut list = Sorted::default();
        let mut keys = [None; 7];
        for _ in 0..2000 {
            let at = roll(7) as usize;
            let key = (roll(3) > 0).then(|| roll(5));
            list.change(ExecutorId(at as u32), keys[at], key);
            keys[at] = key;
            let listed = keys.iter().enumerate();
            let listed = listed.filter_map(|(at, key)| Some(((*key)?, ExecutorId(at as u32))));
            let mut expected: Vec<_> = listed.collect();
            expected.sort_unstable();
            assert_eq!(list.0, expected);
        }
    }
}
