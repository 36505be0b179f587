//! Ready compute tasks, by node: priority, then arrival.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use graph::TaskId;

type Line = VecDeque<(u64, TaskId)>;

/// The queues of one node.
#[derive(Debug, Default)]
struct Queue {
    /// Tasks of the usual priority, 0: no map has to be asked for them.
    usual: Line,
    /// The lines of the other priorities; none is empty.
    others: BTreeMap<Reverse<i32>, Line>,
    /// Entries, those of tasks that are not ready any more included.
    len: usize,
}

impl Queue {
    fn line(&mut self, priority: i32) -> &mut Line {
        match priority {
            0 => &mut self.usual,
            other => self.others.entry(Reverse(other)).or_default(),
        }
    }

    /// Whether the first of the other lines goes before the usual one.
    fn others_first(&self) -> bool {
        let Some((Reverse(priority), _)) = self.others.first_key_value() else { return false };
        *priority > 0 || self.usual.is_empty()
    }

    fn first(&self) -> Option<&(u64, TaskId)> {
        match self.others_first() {
            true => self.others.values().next()?.front(),
            false => self.usual.front(),
        }
    }

    fn pop(&mut self) {
        if !self.others_first() {
            self.len -= usize::from(self.usual.pop_front().is_some());
            return;
        }
        let Some(mut line) = self.others.first_entry() else { return };
        self.len -= usize::from(line.get_mut().pop_front().is_some());
        if line.get().is_empty() {
            line.remove();
        }
    }
}

/// What placement counts of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tied {
    /// Tasks that were tied to it.
    pub(crate) tasks: u64,
    /// Bytes that producers tied to it will make.
    pub(crate) produced: u64,
}

#[derive(Debug)]
pub(crate) struct Ready {
    queues: Vec<Queue>,
    /// Nodes with entries, where there are several nodes.
    pub(crate) nodes: BTreeSet<usize>,
    pub(crate) tied: Vec<Tied>,
}

impl Ready {
    pub(crate) fn new(nodes: usize) -> Ready {
        let queues = (0..nodes).map(|_| Queue::default()).collect();
        let tied = (0..nodes).map(|_| Tied::default()).collect();
        Ready { queues, nodes: BTreeSet::new(), tied }
    }

    /// Puts a task where its arrival says: a task that comes back keeps its place.
    pub(crate) fn push(&mut self, node: usize, priority: i32, serial: u64, task: TaskId) {
        let several = self.queues.len() > 1;
        let queue = &mut self.queues[node];
        if several && queue.len == 0 {
            self.nodes.insert(node);
        }
        queue.len += 1;
        let line = queue.line(priority);
        if line.back().is_none_or(|(last, _)| *last < serial) {
            line.push_back((serial, task));
            return;
        }
        let at = line.partition_point(|(other, _)| *other < serial);
        line.insert(at, (serial, task));
    }

    pub(crate) fn is_empty(&self, node: usize) -> bool {
        self.queues[node].len == 0
    }

    pub(crate) fn len(&self, node: usize) -> usize {
        self.queues[node].len
    }

    pub(crate) fn first(&self, node: usize) -> Option<TaskId> {
        let queue = &self.queues[node];
        if queue.len == 0 {
            return None;
        }
        queue.first().map(|(_, task)| *task)
    }

    pub(crate) fn pop(&mut self, node: usize) {
        let queue = &mut self.queues[node];
        queue.pop();
        if queue.len == 0 && self.queues.len() > 1 {
            self.nodes.remove(&node);
        }
    }
}
