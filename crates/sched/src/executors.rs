//! Executors and nodes: who can take how much, and what was sent to whom.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use smallvec::SmallVec;

use graph::TaskId;

use crate::api::{ExecutorId, Kind, LayerId, NodeId};
use crate::layers::Layers;
use crate::sent::{Sent, SentLine};

#[derive(Debug)]
pub(crate) struct Executor {
    pub(crate) kind: Kind,
    pub(crate) node: NodeId,
    pub(crate) slots: u32,
    /// More slots, for tasks that something else limits.
    pub(crate) extra: u32,
    pub(crate) sent: SentLine,
    /// Tasks whose bodies gave their processor back.
    pub(crate) aside: BTreeMap<TaskId, Sent>,
    /// How many of them wait for their consumers.
    pub(crate) stalled: usize,
    /// Those among them that can go on, in order. Until then it takes no other compute task.
    pub(crate) resuming: VecDeque<TaskId>,
    /// Takes nothing new; is ended when only abandoned tasks are left.
    pub(crate) retiring: bool,
    pub(crate) killed: bool,
}

impl Executor {
    /// Everything that it holds.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter().chain(self.aside.values())
    }

    /// What it holds of a task.
    pub(crate) fn find_mut(&mut self, task: TaskId) -> Option<&mut Sent> {
        self.sent.find_mut(task).or_else(|| self.aside.get_mut(&task))
    }

    fn free_slots(&self) -> u32 {
        if self.retiring || !self.kind.is_io() {
            return 0;
        }
        self.slots.saturating_sub(self.sent.len() as u32)
    }

    /// I/O tasks that were sent to it.
    fn io_running(&self) -> u32 {
        if self.kind.is_io() {
            self.sent.len() as u32
        } else {
            0
        }
    }

    /// Tasks that do not go on.
    fn halted(&self) -> u32 {
        self.tasks().filter(|sent| sent.halted).count() as u32
    }

    /// Free slots, also those for tasks that something else limits.
    fn free_all(&self) -> u32 {
        if self.retiring || !self.kind.is_io() {
            return 0;
        }
        (self.slots + self.extra).saturating_sub(self.sent.len() as u32)
    }
}

/// The executors of a node by what they can take. Those that retire are in no list.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) processors: u32,
    pub(crate) busy: u32,
    /// I/O tasks at its executors.
    pub(crate) io_running: u32,
    /// Something changed here since tasks were last sent.
    touched: bool,
    /// Compute executors with no task, those with the fewest that stalled first: one of those can
    /// only go on where it is.
    pub(crate) idle: Sorted<(usize, ExecutorId)>,
    /// Compute executors with tasks, by how many.
    lines: Sorted<(usize, ExecutorId)>,
    /// Those among them that may be sent more, by the run time that was sent to them.
    open: Sorted<(u64, ExecutorId)>,
    /// Slots of the I/O executors that take tasks, and of the engines, free or not.
    slots: [u32; 2],
    /// Extra slots of the I/O executors, free or not.
    extra: u32,
    /// I/O executors by free slots, most first.
    io: Sorted<(Reverse<u32>, ExecutorId)>,
    /// I/O executors by free slots and extra ones, most first.
    io_extra: Sorted<(Reverse<u32>, ExecutorId)>,
    /// Engines likewise.
    engines: Sorted<(Reverse<u32>, ExecutorId)>,
}

/// A set for as many entries as a node has executors: moving them costs less than a tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sorted<T>(Vec<T>);

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Sorted(Vec::new())
    }
}

impl<T: Ord + Copy> Sorted<T> {
    pub(crate) fn first(&self) -> Option<T> {
        self.0.first().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an entry that is not there, or takes one that is.
    fn put(&mut self, entry: T, counts: bool) {
        match (self.0.binary_search(&entry), counts) {
            (Err(at), true) => self.0.insert(at, entry),
            (Ok(at), false) => drop(self.0.remove(at)),
            _ => panic!("an executor is counted once"),
        }
    }
}

impl Node {
    /// How many I/O tasks of a kind may run here at once if nothing else limits them.
    pub(crate) fn io_slots(&self, kind: Kind) -> u32 {
        self.slots[usize::from(kind == Kind::Engine)]
    }

    /// How many I/O tasks of a kind may run here at once at all.
    pub(crate) fn io_slots_all(&self, kind: Kind) -> u32 {
        self.io_slots(kind) + if kind == Kind::Io { self.extra } else { 0 }
    }

    /// Counts an executor in, or out before it is changed.
    fn count(&mut self, id: ExecutorId, executor: &Executor, tasks_max: u32, counts: bool) {
        if counts {
            self.busy += executor.sent.cpus();
        } else {
            self.busy -= executor.sent.cpus();
        }
        if executor.kind.is_io() {
            let running = executor.sent.len() as u32;
            self.io_running =
                if counts { self.io_running + running } else { self.io_running - running };
        }
        if executor.retiring || (executor.kind == Kind::Compute && !executor.resuming.is_empty()) {
            return;
        }
        if executor.kind != Kind::Compute {
            let slots = &mut self.slots[usize::from(executor.kind == Kind::Engine)];
            *slots = if counts { *slots + executor.slots } else { *slots - executor.slots };
        }
        if executor.kind == Kind::Io {
            let (extra, free) = (executor.extra, executor.free_all());
            self.extra = if counts { self.extra + extra } else { self.extra - extra };
            if free > 0 {
                self.io_extra.put((Reverse(free), id), counts);
            }
        }
        match (executor.kind, executor.sent.len(), executor.free_slots()) {
            (Kind::Io | Kind::Engine, _, 0) => {}
            (Kind::Io, _, free) => self.io.put((Reverse(free), id), counts),
            (Kind::Engine, _, free) => self.engines.put((Reverse(free), id), counts),
            (Kind::Compute, 0, _) => self.idle.put((executor.stalled, id), counts),
            (Kind::Compute, length, _) => {
                self.lines.put((length, id), counts);
                if let Some(ahead) = executor.sent.open_ns(tasks_max) {
                    self.open.put((ahead, id), counts);
                }
            }
        }
    }
}

/// How far ahead tasks are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pipeline {
    pub(crate) tasks_max: u32,
    pub(crate) ns_max: u64,
}

#[derive(Debug)]
pub(crate) struct Executors {
    pub(crate) all: BTreeMap<ExecutorId, Executor>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) pipeline: Pipeline,
    /// Free slots of all I/O executors, extra ones too, and engines.
    pub(crate) io_free: u32,
    /// I/O tasks at all executors.
    pub(crate) io_running: u32,
    /// Tasks at all executors that do not go on.
    pub(crate) halted: u32,
    /// Something changed for I/O tasks since they were last looked at: one came, or one of the
    /// executors that run them, or what it holds (and with it a layer), is another.
    pub(crate) io_changed: bool,
    /// Those with tasks that stalled and can go on.
    resuming: BTreeSet<ExecutorId>,
    /// Nodes on which something changed since tasks were last sent, each once.
    touched: Vec<usize>,
    /// Nodes with an idle compute executor, where there are several nodes.
    pub(crate) idle_nodes: BTreeSet<usize>,
}

impl Executors {
    pub(crate) fn new(processors: &[u32], pipeline: Pipeline) -> Executors {
        let node = |count: &u32| Node { processors: *count, ..Node::default() };
        let nodes = processors.iter().map(node).collect();
        Executors {
            all: BTreeMap::new(),
            nodes,
            pipeline,
            io_free: 0,
            io_running: 0,
            halted: 0,
            io_changed: false,
            resuming: BTreeSet::new(),
            touched: Vec::new(),
            idle_nodes: BTreeSet::new(),
        }
    }

    pub(crate) fn add(
        &mut self,
        id: ExecutorId,
        kind: Kind,
        node: NodeId,
        (slots, extra): (u32, u32),
    ) {
        assert!((node.0 as usize) < self.nodes.len(), "the driver names a known node");
        let new = Executor {
            kind,
            node,
            slots,
            extra: if kind == Kind::Io { extra } else { 0 },
            sent: SentLine::default(),
            aside: BTreeMap::new(),
            stalled: 0,
            resuming: VecDeque::new(),
            retiring: false,
            killed: false,
        };
        let free = new.free_all();
        let old = self.all.insert(id, new);
        assert!(old.is_none(), "{id:?} is a new executor");
        let place = &mut self.nodes[node.0 as usize];
        place.count(id, &self.all[&id], self.pipeline.tasks_max, true);
        self.io_free += free;
        self.io_changed |= kind.is_io();
        self.after(node.0 as usize);
    }

    /// A node has changed.
    fn after(&mut self, node: usize) {
        self.touch(node);
        if self.nodes.len() < 2 {
            return;
        }
        if self.nodes[node].idle.is_empty() {
            self.idle_nodes.remove(&node);
        } else {
            self.idle_nodes.insert(node);
        }
    }

    /// Tasks may be sent on a node that could not be before.
    pub(crate) fn touch(&mut self, node: usize) {
        if !core::mem::replace(&mut self.nodes[node].touched, true) {
            self.touched.push(node);
        }
    }

    /// The nodes that were touched since the last call, lowest first.
    pub(crate) fn take_touched(&mut self) -> SmallVec<[usize; 8]> {
        let mut touched: SmallVec<[usize; 8]> = SmallVec::from_slice(&self.touched);
        self.touched.clear();
        touched.sort_unstable();
        touched.iter().for_each(|node| self.nodes[*node].touched = false);
        touched
    }

    fn change(&mut self, id: ExecutorId, change: impl FnOnce(&mut Executor)) {
        let executor = self.all.get_mut(&id).expect("the caller knows it");
        let at = executor.node.0 as usize;
        let node = &mut self.nodes[at];
        self.io_free -= executor.free_all();
        self.io_running -= executor.io_running();
        node.count(id, executor, self.pipeline.tasks_max, false);
        change(executor);
        node.count(id, executor, self.pipeline.tasks_max, true);
        self.io_free += executor.free_all();
        self.io_running += executor.io_running();
        self.io_changed |= executor.kind.is_io();
        self.after(at);
    }

    /// The executor of a node that takes a task of `cpus` processors now, if one does:
    /// an idle one, or one whose line is short and known to be.
    pub(crate) fn pick(
        &self,
        node: usize,
        cpus: u32,
        estimate_ns: Option<u64>,
        alone: bool,
    ) -> Option<ExecutorId> {
        let place = &self.nodes[node];
        if let Some((_, idle)) = place.idle.first() {
            return (place.busy + cpus <= place.processors).then_some(idle);
        }
        if alone || cpus != 1 {
            return None;
        }
        let (ahead, id) = place.open.first()?;
        let fits = ahead.saturating_add(estimate_ns?) <= self.pipeline.ns_max;
        fits.then_some(id)
    }

    pub(crate) fn send(&mut self, id: ExecutorId, sent: Sent) {
        self.change(id, |executor| executor.sent.push(sent));
    }

    /// A task of an executor's line takes no processor any more; `stalls`: it waits for its
    /// consumers.
    pub(crate) fn set_aside(&mut self, id: ExecutorId, task: TaskId, stalls: bool) {
        if let Some(sent) = self.take(id, task) {
            self.halted += u32::from(sent.halted);
            let executor = self.all.get_mut(&id).expect("it held the task");
            executor.aside.insert(task, Sent { stalls, ..sent });
            if stalls {
                self.change(id, |executor| executor.stalled += 1);
            }
        }
    }

    fn take_aside(&mut self, id: ExecutorId, task: TaskId) -> Option<Sent> {
        let sent = self.all.get_mut(&id)?.aside.remove(&task)?;
        if sent.stalls {
            self.change(id, |executor| executor.stalled -= 1);
        }
        Some(Sent { stalls: false, ..sent })
    }

    /// A task that was set aside, and does not wait for its consumers, goes on before those that
    /// were sent meanwhile. `false`: it is none such, or there is no processor for it.
    pub(crate) fn take_up(&mut self, id: ExecutorId, task: TaskId) -> bool {
        let Some(executor) = self.all.get(&id) else { return false };
        let node = &self.nodes[executor.node.0 as usize];
        let fits = |sent: &&Sent| {
            let line = executor.sent.cpus();
            sent.cpus == 1 && line <= 1 && node.busy - line < node.processors
        };
        let goes = |sent: &&Sent| !sent.stalls && !sent.halted && !sent.abandoned;
        if executor.aside.get(&task).filter(fits).filter(goes).is_none() {
            return false;
        }
        let sent = self.take_aside(id, task).expect("looked at above");
        self.change(id, |executor| executor.sent.push_first(sent));
        true
    }

    /// Notes whether a task goes on by itself.
    pub(crate) fn set_halted(&mut self, id: ExecutorId, task: TaskId, halted: bool) {
        let executor = self.all.get_mut(&id).expect("it holds the task");
        let sent = executor.find_mut(task).expect("it holds the task");
        self.halted -= u32::from(core::mem::replace(&mut sent.halted, halted));
        self.halted += u32::from(halted);
    }

    /// A task that was set aside can go on.
    pub(crate) fn wants_back(&mut self, id: ExecutorId, task: TaskId) {
        self.set_halted(id, task, false);
        let executor = self.all.get(&id).expect("it holds the task");
        if !executor.resuming.contains(&task) {
            self.change(id, |executor| executor.resuming.push_back(task));
            self.resuming.insert(id);
        }
    }

    /// The next task that was set aside and has a processor, or a slot, again.
    pub(crate) fn pop_resumed(&mut self) -> Option<(ExecutorId, TaskId)> {
        let found = self.resuming.iter().copied().find(|id| self.has_room_again(*id))?;
        let task = self.all[&found].resuming[0];
        let sent = self.take_aside(found, task).expect("set aside before");
        self.change(found, |executor| {
            executor.resuming.pop_front();
            executor.sent.push(sent);
        });
        self.no_longer_resuming(found);
        Some((found, task))
    }

    /// Whether the first task that wants to go on at an executor can.
    fn has_room_again(&self, id: ExecutorId) -> bool {
        let executor = &self.all[&id];
        if executor.kind.is_io() {
            return (executor.sent.len() as u32) < executor.slots + executor.extra;
        }
        let node = &self.nodes[executor.node.0 as usize];
        let cpus = executor.resuming.front().and_then(|task| executor.aside.get(task));
        executor.sent.len() == 0
            && cpus.is_some_and(|sent| node.busy + sent.cpus <= node.processors)
    }

    /// Whether a task waits for processors of a node that others would take.
    pub(crate) fn is_reserved(&self, node: usize) -> bool {
        self.resuming.iter().any(|id| {
            let executor = &self.all[id];
            let waits = executor.kind == Kind::Compute && executor.sent.len() == 0;
            waits && executor.node.0 as usize == node
        })
    }

    /// A task that was set aside will not go on.
    pub(crate) fn wants_no_more(&mut self, id: ExecutorId, task: TaskId) {
        if self.all.get(&id).is_some_and(|executor| executor.resuming.contains(&task)) {
            self.change(id, |executor| executor.resuming.retain(|other| *other != task));
            self.no_longer_resuming(id);
        }
    }

    fn no_longer_resuming(&mut self, id: ExecutorId) {
        if self.all.get(&id).is_none_or(|executor| executor.resuming.is_empty()) {
            self.resuming.remove(&id);
        }
    }

    /// Takes a task off an executor.
    pub(crate) fn take(&mut self, id: ExecutorId, task: TaskId) -> Option<Sent> {
        let mut sent = self.take_aside(id, task);
        if sent.is_some() {
            self.wants_no_more(id, task);
        } else if self.all.get(&id)?.sent.contains(task) {
            self.change(id, |executor| sent = executor.sent.take(task));
        }
        self.halted -= u32::from(sent.is_some_and(|sent| sent.halted));
        sent
    }

    /// The executor takes nothing new from now on.
    pub(crate) fn retire(&mut self, id: ExecutorId) {
        if self.all.contains_key(&id) {
            self.change(id, |executor| executor.retiring = true);
        }
    }

    pub(crate) fn remove(&mut self, id: ExecutorId) -> Option<Executor> {
        let executor = self.all.remove(&id)?;
        self.resuming.remove(&id);
        let at = executor.node.0 as usize;
        self.nodes[at].count(id, &executor, self.pipeline.tasks_max, false);
        self.io_free -= executor.free_all();
        self.io_running -= executor.io_running();
        self.halted -= executor.halted();
        self.io_changed |= executor.kind.is_io();
        self.after(at);
        Some(executor)
    }

    /// The I/O executor, or engine, of a node with the most free slots; the lowest of equals.
    pub(crate) fn io_slot(&self, node: usize, kind: Kind) -> Option<ExecutorId> {
        let node = &self.nodes[node];
        let list = if kind == Kind::Engine { &node.engines } else { &node.io };
        list.first().map(|(_, id)| id)
    }

    /// The nodes that reach a layer.
    pub(crate) fn reaching<'a>(
        &'a self,
        layers: &'a Layers,
        layer: LayerId,
    ) -> impl Iterator<Item = &'a Node> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter(move |(at, _)| layers.reaches_from(layer, *at)).map(|(_, node)| node)
    }

    /// The I/O executor of a node with the most slots for a task that something else limits.
    pub(crate) fn extra_slot(&self, node: usize, kind: Kind) -> Option<ExecutorId> {
        let list = &self.nodes[node].io_extra;
        list.first().map(|(_, id)| id).filter(|_| kind == Kind::Io)
    }

    /// Which unbegun tasks to ask back for an executor that has nothing to do: half the line
    /// of the longest on its node, from the end.
    pub(crate) fn steal_for(&mut self, idle: ExecutorId) -> Vec<(TaskId, ExecutorId)> {
        let Some(executor) = self.all.get(&idle) else { return Vec::new() };
        let node = &self.nodes[executor.node.0 as usize];
        let Some((_, longest)) = node.lines.0.last().copied() else { return Vec::new() };
        let line = &mut self.all.get_mut(&longest).expect("listed").sent;
        let mut asked = Vec::new();
        for sent in line.later_half_mut().filter(|sent| !sent.recalling) {
            sent.recalling = true;
            asked.push((sent.task, longest));
        }
        asked
    }

    /// Whether every executor is in the lists that it belongs to, and in no other.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let mut again = Executors::new(&[], self.pipeline);
        again.nodes = self.nodes.iter().map(|_| Node::default()).collect();
        for (id, executor) in &self.all {
            executor.sent.validate()?;
            let listed = self.resuming.contains(id);
            let stalled = executor.aside.values().filter(|sent| sent.stalls).count();
            let aside = executor.resuming.iter().all(|task| executor.aside.contains_key(task));
            if listed == executor.resuming.is_empty() || !aside || stalled != executor.stalled {
                return Err(format!("{id:?} is listed for {:?}: {listed}", executor.resuming));
            }
            let at = executor.node.0 as usize;
            again.nodes[at].count(*id, executor, self.pipeline.tasks_max, true);
            again.io_free += executor.free_all();
            again.io_running += executor.io_running();
            again.halted += executor.halted();
            again.after(at);
        }
        if again.io_running != self.io_running {
            return Err(format!("{} I/O tasks run, {} noted", again.io_running, self.io_running));
        }
        if again.halted != self.halted {
            return Err(format!("{} tasks halt, {} noted", again.halted, self.halted));
        }
        if again.io_free != self.io_free || again.idle_nodes != self.idle_nodes {
            return Err(format!("{} I/O slots are free, {} noted", again.io_free, self.io_free));
        }
        for (at, (node, other)) in self.nodes.iter().zip(&again.nodes).enumerate() {
            if (node.slots, node.extra) != (other.slots, other.extra) {
                return Err(format!("node {at} notes {:?} I/O slots", node.slots));
            }
            if node.io_running != other.io_running {
                return Err(format!("node {at} notes {} I/O tasks", node.io_running));
            }
            if node.busy != other.busy || node.busy > node.processors {
                return Err(format!("node {at} notes {} busy of {}", node.busy, other.busy));
            }
            let lists = (&node.idle, &node.lines, &node.open, &node.io, &node.engines);
            if lists != (&other.idle, &other.lines, &other.open, &other.io, &other.engines) {
                return Err(format!("the lists of node {at} are {lists:?}, should be {other:?}"));
            }
        }
        Ok(())
    }
}
