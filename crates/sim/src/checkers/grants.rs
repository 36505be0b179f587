//! No grant exceeds its layer in bandwidth, either way or both, or in size; executors get no more
//! than their slots and nodes no more than their processors; I/O tasks take no processor.
//!
//! A grant counts from the `Run` to the event that ends it. Processors count where bodies really
//! run; an executor that was told to end no longer counts, its replacement does.

use sched::{Constraint, ExecutorId, Kind, Layer, LayerId, NodeId, Tuning, Way};

use super::Fault;
use crate::hash::Map;
use crate::program::TaskPlan;

#[derive(Debug)]
struct Executor {
    kind: Kind,
    node: NodeId,
    slots: usize,
    extra: usize,
    sent: usize,
    closed: bool,
}

/// What is granted of a layer: bytes a second of tasks that may read, that may write, and of all.
#[derive(Clone, Copy, Debug, Default)]
struct Granted {
    read: u64,
    write: u64,
    all: u64,
    size: u64,
}

impl Granted {
    /// A task holds that much more.
    fn add(&mut self, Constraint { bandwidth, size, way }: Constraint) {
        self.read += if way == Way::Write { 0 } else { bandwidth };
        self.write += if way == Way::Read { 0 } else { bandwidth };
        (self.all, self.size) = (self.all + bandwidth, self.size + size);
    }

    /// A task holds that much less.
    fn take(&mut self, Constraint { bandwidth, size, way }: Constraint) {
        self.read -= if way == Way::Write { 0 } else { bandwidth };
        self.write -= if way == Way::Read { 0 } else { bandwidth };
        (self.all, self.size) = (self.all - bandwidth, self.size - size);
    }

    fn exceeds(&self, layer: &Layer) -> bool {
        let over = |used: u64, most: Option<u64>| most.is_some_and(|most| used > most);
        over(self.all, layer.bandwidth)
            || over(self.read, layer.read_bandwidth)
            || over(self.write, layer.write_bandwidth)
            || over(self.size, layer.capacity)
    }
}

#[derive(Debug)]
struct Sent {
    executor: ExecutorId,
    grant: Option<(LayerId, Constraint)>,
    /// Its body gave its processor back: it takes no place at its executor.
    paused: bool,
}

/// The account.
#[derive(Debug)]
pub struct Grants {
    layers: Vec<Layer>,
    granted: Vec<Granted>,
    processors: Vec<u32>,
    busy: Vec<u32>,
    ahead_max: usize,
    executors: Map<ExecutorId, Executor>,
    sent: Map<usize, Sent>,
    /// Tasks that an engine could not do.
    refused: Map<usize, ()>,
    bodies: Map<usize, (ExecutorId, u32)>,
}

fn fault(plan: &TaskPlan, message: String) -> Fault {
    Fault::of_task("grants", plan.task, message)
}

impl Grants {
    /// Nothing is granted yet.
    pub fn new(layers: &[Layer], processors: &[u32], ahead_max: u32) -> Grants {
        Grants {
            layers: layers.to_vec(),
            granted: vec![Granted::default(); layers.len()],
            processors: processors.to_vec(),
            busy: vec![0; processors.len()],
            ahead_max: ahead_max.max(1) as usize,
            executors: Map::default(),
            sent: Map::default(),
            refused: Map::default(),
            bodies: Map::default(),
        }
    }

    /// An executor came up.
    pub fn up(&mut self, id: ExecutorId, kind: Kind, node: NodeId, (slots, extra): (u32, u32)) {
        let (slots, extra) = (slots as usize, extra as usize);
        self.executors.insert(id, Executor { kind, node, slots, extra, sent: 0, closed: false });
    }

    /// An executor may get nothing more; its bodies count no more.
    pub fn close(&mut self, id: ExecutorId) {
        if let Some(executor) = self.executors.get_mut(&id) {
            executor.closed = true;
        }
        let bodies: Vec<usize> = self
            .bodies
            .iter()
            .filter(|(_, (executor, _))| *executor == id)
            .map(|(task, _)| *task)
            .collect();
        bodies.into_iter().for_each(|task| self.body_over(task));
    }

    /// The scheduler sends a task.
    pub fn run(
        &mut self,
        plan: &TaskPlan,
        id: ExecutorId,
        layer: Option<LayerId>,
        granted: Constraint,
    ) -> Result<(), Fault> {
        let Some(executor) = self.executors.get_mut(&id) else {
            return Err(fault(plan, format!("sent to {id:?}, which is not up")));
        };
        if executor.closed {
            return Err(fault(plan, format!("sent to {id:?}, which was ended")));
        }
        let refused = self.refused.contains_key(&plan.task);
        if executor.kind != if refused { Kind::Io } else { plan.kind } {
            return Err(fault(plan, format!("a {:?} task on {:?}", plan.kind, executor.kind)));
        }
        let bandwidth = layer.and_then(|id| self.layers[id.0 as usize].limit(granted.way));
        let limited = granted.bandwidth > 0 && plan.tuning == Tuning::Static && bandwidth.is_some();
        let most = match plan.kind {
            Kind::Compute => self.ahead_max,
            _ if limited || plan.tuning == Tuning::Adaptive => executor.slots + executor.extra,
            _ => executor.slots,
        };
        executor.sent += 1;
        if executor.sent > most {
            return Err(fault(plan, format!("{id:?} has {} of {most}", executor.sent)));
        }
        let node = executor.node;
        let grant = match (plan.kind, layer) {
            (Kind::Io | Kind::Engine, Some(layer)) => Some(self.grant(plan, node, layer, granted)?),
            (Kind::Compute, None) => None,
            _ => return Err(fault(plan, format!("{:?} with layer {layer:?}", plan.kind))),
        };
        self.sent.insert(plan.task, Sent { executor: id, grant, paused: false });
        Ok(())
    }

    /// How many tasks are at an executor.
    pub fn sent_to(&self, id: ExecutorId) -> usize {
        self.executors.get(&id).map_or(0, |executor| executor.sent)
    }

    /// I/O tasks at executors of a node, or of all.
    pub fn io_running(&self, node: Option<NodeId>) -> usize {
        let here = |executor: &&Executor| {
            executor.kind.is_io() && node.is_none_or(|node| executor.node == node)
        };
        self.executors.values().filter(here).map(|executor| executor.sent).sum()
    }

    /// Bytes that are granted of a layer.
    pub fn granted_size(&self, layer: LayerId) -> u64 {
        self.granted[layer.0 as usize].size
    }

    /// The tasks at an executor, in no order.
    pub fn tasks_at(&self, id: ExecutorId) -> impl Iterator<Item = usize> + '_ {
        let here = move |entry: &(&usize, &Sent)| entry.1.executor == id;
        self.sent.iter().filter(here).map(|(task, _)| *task)
    }

    fn grant(
        &mut self,
        plan: &TaskPlan,
        node: NodeId,
        id: LayerId,
        asked: Constraint,
    ) -> Result<(LayerId, Constraint), Fault> {
        let layer = &self.layers[id.0 as usize];
        if layer.node.is_some_and(|own| own != node) {
            return Err(fault(plan, format!("{node:?} does not reach {id:?}")));
        }
        if plan.layer.is_some_and(|only| only != id) {
            return Err(fault(plan, format!("granted {id:?}, only {:?} will do", plan.layer)));
        }
        let granted = &mut self.granted[id.0 as usize];
        granted.add(asked);
        if granted.exceeds(layer) {
            return Err(fault(plan, format!("{granted:?} granted of {layer:?}")));
        }
        let Constraint { size, way, .. } = plan.constraint;
        if (asked.size, asked.way) != (size, way)
            || (plan.tuning == Tuning::Static && asked != plan.constraint)
        {
            return Err(fault(plan, format!("granted {asked:?}, not what it asked for")));
        }
        Ok((id, asked))
    }

    /// What a task holds now: less than before, or the same.
    pub fn holds(&mut self, task: usize, now: Constraint) -> Result<(), Fault> {
        let Some(Sent { grant: Some((layer, held)), .. }) = self.sent.get_mut(&task) else {
            return Ok(());
        };
        if now.bandwidth > held.bandwidth || (now.size, now.way) != (held.size, held.way) {
            let message = format!("held {held:?} and now {now:?}");
            return Err(Fault::of_task("grants", task, message));
        }
        let less = Constraint { bandwidth: held.bandwidth - now.bandwidth, size: 0, ..now };
        self.granted[layer.0 as usize].take(less);
        *held = now;
        Ok(())
    }

    /// A body gave its processor back, and is not over.
    pub fn paused(&mut self, task: usize) {
        let Some(sent) = self.sent.get_mut(&task) else { return };
        if let Some(executor) = self.executors.get_mut(&sent.executor) {
            executor.sent -= usize::from(!sent.paused);
        }
        sent.paused = true;
    }

    /// A body waits for others: what it held there is free.
    pub fn stalled(&mut self, task: usize) {
        self.paused(task);
        let Some(sent) = self.sent.get_mut(&task) else { return };
        if let Some((layer, constraint)) = sent.grant.take() {
            self.granted[layer.0 as usize].take(constraint);
        }
    }

    /// A body that stalled goes on.
    pub fn resumed(&mut self, plan: &TaskPlan, id: ExecutorId) -> Result<(), Fault> {
        let sent = self.sent.get_mut(&plan.task).filter(|sent| sent.executor == id && sent.paused);
        let Some(sent) = sent else {
            return Err(fault(plan, format!("goes on at {id:?}, where it did not stall")));
        };
        sent.paused = false;
        let executor = self.executors.get_mut(&id).expect("it is there");
        executor.sent += 1;
        let most = match plan.kind {
            Kind::Compute => 1,
            Kind::Io | Kind::Engine => executor.slots + executor.extra,
        };
        match executor.sent <= most {
            true => Ok(()),
            false => Err(fault(plan, format!("{id:?} has {} of {most}", executor.sent))),
        }
    }

    /// An engine cannot do a task, which is one for I/O executors from now on.
    pub fn refused(&mut self, task: usize) {
        self.refused.insert(task, ());
        self.back(task);
    }

    /// A task came back from its executor: ended, recalled, lost or given up.
    pub fn back(&mut self, task: usize) {
        let Some(sent) = self.sent.remove(&task) else { return };
        if let Some(executor) = self.executors.get_mut(&sent.executor) {
            executor.sent -= usize::from(!sent.paused);
        }
        if let Some((layer, constraint)) = sent.grant {
            self.granted[layer.0 as usize].take(constraint);
        }
    }

    /// A body begins.
    pub fn body(&mut self, plan: &TaskPlan, id: ExecutorId) -> Result<(), Fault> {
        let executor = &self.executors[&id];
        if executor.closed || plan.kind.is_io() {
            return Ok(());
        }
        let node = executor.node.0 as usize;
        self.busy[node] += plan.cpus;
        self.bodies.insert(plan.task, (id, plan.cpus));
        if self.busy[node] > self.processors[node] {
            let (busy, all) = (self.busy[node], self.processors[node]);
            return Err(fault(plan, format!("bodies on node {node} take {busy} of {all}")));
        }
        Ok(())
    }

    /// A body is over, or its executor is.
    pub fn body_over(&mut self, task: usize) {
        if let Some((id, cpus)) = self.bodies.remove(&task) {
            self.busy[self.executors[&id].node.0 as usize] -= cpus;
        }
    }
}
