//! Executors and nodes: who can take how much, and what was sent to whom.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroUsize;
use core::ops::Index;

use graph::TaskId;

use crate::api::{ExecutorId, Kind, LayerId, NodeId};
use crate::layers::Layers;
use crate::node::{Listing, Node, Turn};
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
    /// As its node counts it.
    listed: Listing,
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

    /// Tasks that do not go on.
    fn halted(&self) -> u32 {
        self.tasks().filter(|sent| sent.halted).count() as u32
    }

    /// What its node counts of it.
    fn listing(&self, tasks_max: u32) -> Listing {
        let (busy, length) = (self.sent.cpus(), self.sent.len());
        if self.kind == Kind::Compute {
            if self.retiring || !self.resuming.is_empty() {
                return Listing { busy, ..Listing::default() };
            }
            let turn = match length {
                0 => Some(Turn::idle(self.stalled)),
                _ => self.sent.open_ns(tasks_max).map(Turn::open),
            };
            // Of one that has a single task nothing is asked back.
            let line = NonZeroUsize::new(length).filter(|_| length > 1);
            return Listing { busy, turn, line, ..Listing::default() };
        }
        let io_running = length as u32;
        if self.retiring {
            return Listing { busy, io_running, ..Listing::default() };
        }
        let (slots, extra) = (self.slots, self.extra);
        let free = slots.saturating_sub(io_running);
        let free_all = (slots + extra).saturating_sub(io_running);
        Listing { busy, io_running, slots, extra, free, free_all, ..Listing::default() }
    }
}

/// Executors by identifier. Drivers number them from 0, and none comes twice.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<Option<Box<Executor>>>);

impl Table {
    pub(crate) fn get(&self, id: ExecutorId) -> Option<&Executor> {
        self.0.get(id.0 as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, id: ExecutorId) -> Option<&mut Executor> {
        self.0.get_mut(id.0 as usize)?.as_deref_mut()
    }

    /// All of them, lowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ExecutorId, &Executor)> {
        let numbered = self.0.iter().enumerate();
        numbered.filter_map(|(at, entry)| Some((ExecutorId(at as u32), entry.as_deref()?)))
    }

    fn insert(&mut self, id: ExecutorId, executor: Executor) {
        let at = id.0 as usize;
        if at >= self.0.len() {
            self.0.resize_with(at + 1, || None);
        }
        let old = self.0[at].replace(Box::new(executor));
        assert!(old.is_none(), "{id:?} is a new executor");
    }

    fn remove(&mut self, id: ExecutorId) -> Option<Executor> {
        self.0.get_mut(id.0 as usize)?.take().map(|executor| *executor)
    }
}

impl Index<ExecutorId> for Table {
    type Output = Executor;

    fn index(&self, id: ExecutorId) -> &Executor {
        self.get(id).expect("the caller knows it")
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
    pub(crate) all: Table,
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
        Executors {
            all: Table::default(),
            nodes: processors.iter().map(|count| Node::new(*count)).collect(),
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
        let mut new = Executor {
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
            listed: Listing::default(),
        };
        let listing = new.listing(self.pipeline.tasks_max);
        new.listed = listing;
        self.all.insert(id, new);
        let place = &mut self.nodes[node.0 as usize];
        place.relist(id, kind, &Listing::default(), &listing);
        self.io_free += listing.free_all;
        self.io_changed |= kind.is_io();
        self.after(node.0 as usize);
    }

    /// A node has changed.
    fn after(&mut self, node: usize) {
        self.touch(node);
        if self.nodes.len() < 2 {
            return;
        }
        if self.nodes[node].idle().is_none() {
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

    /// The nodes that were touched since the last call, lowest first. Each counts as touched until
    /// [`Executors::looked_at`]; the list is given back ([`Executors::keep_memory`]).
    pub(crate) fn take_touched(&mut self) -> Vec<usize> {
        let mut touched = core::mem::take(&mut self.touched);
        if touched.len() > 1 {
            touched.sort_unstable();
        }
        touched
    }

    /// All was sent on a node that could be.
    pub(crate) fn looked_at(&mut self, node: usize) {
        self.nodes[node].touched = false;
    }

    /// A list that was taken, for the nodes that are touched next.
    pub(crate) fn keep_memory(&mut self, mut list: Vec<usize>) {
        if self.touched.is_empty() {
            list.clear();
            self.touched = list;
        }
    }

    /// Whether a task that was set aside wants to go on.
    pub(crate) fn some_resume(&self) -> bool {
        !self.resuming.is_empty()
    }

    /// Whether there is something that tasks could be sent for, or go on.
    pub(crate) fn has_news(&self) -> bool {
        self.io_changed || !self.touched.is_empty() || !self.resuming.is_empty()
    }

    fn change(&mut self, id: ExecutorId, change: impl FnOnce(&mut Executor)) {
        let tasks_max = self.pipeline.tasks_max;
        let executor = self.all.get_mut(id).expect("the caller knows it");
        let (at, kind) = (executor.node.0 as usize, executor.kind);
        change(executor);
        let after = executor.listing(tasks_max);
        let before = core::mem::replace(&mut executor.listed, after);
        self.nodes[at].relist(id, kind, &before, &after);
        if kind.is_io() {
            self.io_free = self.io_free - before.free_all + after.free_all;
            self.io_running = self.io_running - before.io_running + after.io_running;
            self.io_changed = true;
        }
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
        let (turn, id) = place.first()?;
        let takes = match turn.ahead_ns() {
            None => place.busy + cpus <= place.processors,
            Some(_) if alone || cpus != 1 => false,
            Some(ahead) => ahead.saturating_add(estimate_ns?) <= self.pipeline.ns_max,
        };
        takes.then_some(id)
    }

    pub(crate) fn send(&mut self, id: ExecutorId, sent: Sent) {
        self.change(id, |executor| executor.sent.push(sent));
    }

    /// A task of an executor's line takes no processor any more; `stalls`: it waits for its
    /// consumers.
    pub(crate) fn set_aside(&mut self, id: ExecutorId, task: TaskId, stalls: bool) {
        if let Some(sent) = self.take(id, task) {
            self.halted += u32::from(sent.halted);
            let executor = self.all.get_mut(id).expect("it held the task");
            executor.aside.insert(task, Sent { stalls, ..sent });
            if stalls {
                self.change(id, |executor| executor.stalled += 1);
            }
        }
    }

    fn take_aside(&mut self, id: ExecutorId, task: TaskId) -> Option<Sent> {
        let sent = self.all.get_mut(id)?.aside.remove(&task)?;
        if sent.stalls {
            self.change(id, |executor| executor.stalled -= 1);
        }
        Some(Sent { stalls: false, ..sent })
    }

    /// A task that was set aside, and does not wait for its consumers, goes on before those that
    /// were sent meanwhile. `false`: it is none such, or there is no processor for it.
    pub(crate) fn take_up(&mut self, id: ExecutorId, task: TaskId) -> bool {
        let Some(executor) = self.all.get(id) else { return false };
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
        let executor = self.all.get_mut(id).expect("it holds the task");
        let sent = executor.find_mut(task).expect("it holds the task");
        self.halted -= u32::from(core::mem::replace(&mut sent.halted, halted));
        self.halted += u32::from(halted);
    }

    /// A task that was set aside can go on.
    pub(crate) fn wants_back(&mut self, id: ExecutorId, task: TaskId) {
        self.set_halted(id, task, false);
        let executor = self.all.get(id).expect("it holds the task");
        if !executor.resuming.contains(&task) {
            self.change(id, |executor| executor.resuming.push_back(task));
            self.resuming.insert(id);
        }
    }

    /// The next task that was set aside and has a processor, or a slot, again.
    pub(crate) fn pop_resumed(&mut self) -> Option<(ExecutorId, TaskId)> {
        if self.resuming.is_empty() {
            return None;
        }
        let found = self.resuming.iter().copied().find(|id| self.has_room_again(*id))?;
        let task = self.all[found].resuming[0];
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
        let executor = &self.all[id];
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
            let executor = &self.all[*id];
            let waits = executor.kind == Kind::Compute && executor.sent.len() == 0;
            waits && executor.node.0 as usize == node
        })
    }

    /// A task that was set aside will not go on.
    pub(crate) fn wants_no_more(&mut self, id: ExecutorId, task: TaskId) {
        if self.all.get(id).is_some_and(|executor| executor.resuming.contains(&task)) {
            self.change(id, |executor| executor.resuming.retain(|other| *other != task));
            self.no_longer_resuming(id);
        }
    }

    fn no_longer_resuming(&mut self, id: ExecutorId) {
        if self.all.get(id).is_none_or(|executor| executor.resuming.is_empty()) {
            self.resuming.remove(&id);
        }
    }

    /// Takes a task off an executor.
    pub(crate) fn take(&mut self, id: ExecutorId, task: TaskId) -> Option<Sent> {
        let executor = self.all.get(id)?;
        let mut sent = None;
        if !executor.aside.contains_key(&task) {
            self.change(id, |executor| sent = executor.sent.take(task));
        } else {
            sent = self.take_aside(id, task);
            self.wants_no_more(id, task);
        }
        self.halted -= u32::from(sent.is_some_and(|sent| sent.halted));
        sent
    }

    /// The executor takes nothing new from now on.
    pub(crate) fn retire(&mut self, id: ExecutorId) {
        if self.all.get(id).is_some() {
            self.change(id, |executor| executor.retiring = true);
        }
    }

    pub(crate) fn remove(&mut self, id: ExecutorId) -> Option<Executor> {
        let executor = self.all.remove(id)?;
        self.resuming.remove(&id);
        let (at, kind) = (executor.node.0 as usize, executor.kind);
        let listing = executor.listed;
        self.nodes[at].relist(id, kind, &listing, &Listing::default());
        self.io_free -= listing.free_all;
        self.io_running -= listing.io_running;
        self.halted -= executor.halted();
        self.io_changed |= kind.is_io();
        self.after(at);
        Some(executor)
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

    /// Which unbegun tasks to ask back for an executor that has nothing to do: half the line
    /// of the longest on its node, from the end.
    pub(crate) fn steal_for(&mut self, idle: ExecutorId) -> Vec<(TaskId, ExecutorId)> {
        let Some(executor) = self.all.get(idle) else { return Vec::new() };
        let node = &self.nodes[executor.node.0 as usize];
        let Some(longest) = node.longest() else { return Vec::new() };
        let line = &mut self.all.get_mut(longest).expect("listed").sent;
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
        for (id, executor) in self.all.iter() {
            executor.sent.validate()?;
            let listed = self.resuming.contains(&id);
            let stalled = executor.aside.values().filter(|sent| sent.stalls).count();
            let aside = executor.resuming.iter().all(|task| executor.aside.contains_key(task));
            if listed == executor.resuming.is_empty() || !aside || stalled != executor.stalled {
                return Err(format!("{id:?} is listed for {:?}: {listed}", executor.resuming));
            }
            let at = executor.node.0 as usize;
            let listing = executor.listing(self.pipeline.tasks_max);
            again.nodes[at].relist(id, executor.kind, &Listing::default(), &listing);
            again.io_free += listing.free_all;
            again.io_running += listing.io_running;
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
        let nodes = self.nodes.iter().zip(&again.nodes).enumerate();
        nodes.into_iter().try_for_each(|(at, (node, other))| node.validate(other, at))
    }
}
