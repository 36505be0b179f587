//! Ready compute tasks, by node: priority, then arrival.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use graph::TaskId;

/// The queues of one node.
#[derive(Debug, Default)]
struct Queue {
    by_priority: BTreeMap<Reverse<i32>, VecDeque<(u64, TaskId)>>,
    /// Entries, those of tasks that are not ready any more included.
    len: usize,
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
    /// Nodes with entries.
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
        let queue = &mut self.queues[node];
        if queue.len == 0 {
            self.nodes.insert(node);
        }
        queue.len += 1;
        let line = queue.by_priority.entry(Reverse(priority)).or_default();
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
        let mut lines = self.queues[node].by_priority.values();
        lines.next()?.front().map(|(_, task)| *task)
    }

    pub(crate) fn pop(&mut self, node: usize) {
        let queue = &mut self.queues[node];
        let Some(mut line) = queue.by_priority.first_entry() else { return };
        if line.get_mut().pop_front().is_some() {
            queue.len -= 1;
        }
        if line.get().is_empty() {
            line.remove();
        }
        if queue.len == 0 {
            self.nodes.remove(&node);
        }
    }
}
