//! Epochs are alone on their layer and under one constraint; registries say what was measured
//! and follow the rules of learning; adaptive windows are within the slots and kept.
//!
//! The account here is of what the scheduler sent, how long it was on a layer, what the executors
//! told, and how many tasks were on each layer meanwhile: a mean is the time there, scaled by how
//! many there were (decision 0016). Of the scheduler it asks only which tasks it says belong to an
//! epoch, and what it says it learned.

use std::collections::BTreeMap;

use sched::{
    Constraint, Entry, FunctionId, Kind, Layer, LayerId, Progress, Sched, TaskId, Tuned as Told,
    Tuning, Way,
};

use super::Fault;
use crate::hash::Map;
use crate::program::TaskPlan;

/// Which function, tuning, size class, layer, kind of slot and way.
type Key = (usize, Tuning, u8, LayerId, Kind, Way);

#[derive(Debug)]
struct Sent {
    id: TaskId,
    key: Key,
    bandwidth: u64,
    /// When it was sent, and the layer's area then.
    since: (u64, u128),
}

/// How many tasks hold a grant on a layer, summed over time.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    tasks: u32,
    area: u128,
    until: u64,
}

impl Lane {
    fn area(&mut self, now: u64) -> u128 {
        self.area += u128::from(self.tasks) * u128::from(now - self.until);
        self.until = now;
        self.area
    }
}

/// What the executors told of an epoch.
#[derive(Debug, Default)]
struct Epoch {
    times: Vec<u64>,
    /// How long its tasks were on the layer, and how many tasks were there meanwhile, summed over
    /// that time.
    on_layer_ns: u128,
    area: u128,
    constraint: u64,
    /// How many epochs ended, and were given up, before.
    before: (usize, u32),
}

/// The account.
#[derive(Debug)]
pub struct Tuned {
    layers: Vec<Layer>,
    lanes: Vec<Lane>,
    /// Tasks that hold a grant, by number.
    sent: Map<usize, Sent>,
    epochs: BTreeMap<Key, Epoch>,
    adaptive: u64,
}

fn key(plan: &TaskPlan, layer: LayerId, kind: Kind) -> Key {
    let Constraint { size, way, .. } = plan.constraint;
    (plan.function, plan.tuning, sched::size_class(size), layer, kind, way)
}

impl Tuned {
    /// Nothing runs.
    pub fn new(layers: &[Layer]) -> Tuned {
        let (layers, lanes) = (layers.to_vec(), vec![Lane::default(); layers.len()]);
        Tuned { layers, lanes, sent: Map::default(), epochs: BTreeMap::new(), adaptive: 0 }
    }

    /// The tuned tasks that hold a grant, in no order.
    pub fn tasks(&self) -> Vec<usize> {
        let tuned = self.sent.iter().filter(|(_, sent)| sent.key.1 != Tuning::Static);
        tuned.map(|(task, _)| *task).collect()
    }

    /// An I/O task is sent to a layer.
    pub fn run(
        &mut self,
        sched: &Sched,
        plan: &TaskPlan,
        (id, now): (TaskId, u64),
        layer: LayerId,
        granted: Constraint,
    ) -> Result<(), Fault> {
        let kind = sched.kind_of(id).expect("it is sent");
        let since = (now, self.lanes[layer.0 as usize].area(now));
        let bandwidth = granted.bandwidth;
        let new = Sent { id, key: key(plan, layer, kind), bandwidth, since };
        let fault = |message: String| Err(Fault::of_task("tuning", plan.task, message));
        let learns = sched.is_learning(id);
        let here = self.sent.values().filter(|sent| sent.key.3 == layer);
        for other in here {
            let alike = (other.key, other.bandwidth) == (new.key, new.bandwidth);
            let epoch = sched.is_learning(other.id);
            if (learns && !(epoch && alike)) || (epoch && !learns) {
                return fault(format!("{new:?} beside {other:?} on a layer with an epoch"));
            }
        }
        if learns {
            self.epochs.entry(new.key).or_default();
        }
        if plan.tuning == Tuning::Adaptive {
            self.adaptive += 1;
            self.in_window(sched, plan, layer, kind)?;
        }
        self.lanes[layer.0 as usize].tasks += 1;
        self.sent.insert(plan.task, new);
        Ok(())
    }

    fn in_window(
        &self,
        sched: &Sched,
        plan: &TaskPlan,
        layer: LayerId,
        kind: Kind,
    ) -> Result<(), Fault> {
        let way = plan.constraint.way;
        let own =
            |told: &Told| told.function == FunctionId(plan.function as u32) && told.way == way;
        let window = sched.tuned().into_iter().find_map(|told| match told.progress {
            Progress::Window { tasks, layer: at, .. }
                if at == layer && own(&told) && told.slots == kind =>
            {
                Some(tasks)
            }
            _ => None,
        });
        let (slots, here) = (sched.io_slots(layer, kind), |sent: &&Sent| sent.key.3 == layer);
        let all = self.sent.values().filter(here).count() as u32;
        let key = (plan.function, plan.tuning, kind, way);
        let own = |sent: &&Sent| (sent.key.0, sent.key.1, sent.key.4, sent.key.5) == key;
        let alone = self.sent.values().filter(here).filter(own).count() == 0;
        match window {
            Some(tasks) if (1..=slots).contains(&tasks) && (all < tasks || alone) => Ok(()),
            _ => {
                let message = format!("begins with {all} running, {slots} slots, {window:?}");
                Err(Fault::of_task("tuning", plan.task, message))
            }
        }
    }

    /// A run ended, well after so long; the scheduler has not heard of it.
    pub fn ends(
        &mut self,
        sched: &Sched,
        plan: &TaskPlan,
        (id, now): (TaskId, u64),
        ran: Option<u64>,
    ) {
        let Some(sent) = self.sent.get(&plan.task) else { return };
        let given_up = sched.state(id) == Some(sched::State::Abandoned);
        let Some(ran) = ran.filter(|_| sched.is_learning(id) && !given_up) else { return };
        let epoch = self.epochs.entry(sent.key).or_default();
        epoch.times.push(ran);
        epoch.constraint = sent.bandwidth;
        let (began, before) = sent.since;
        epoch.on_layer_ns += u128::from(now - began);
        epoch.area += self.lanes[sent.key.3 .0 as usize].area(now) - before;
    }

    /// A task holds nothing any more.
    pub fn back(&mut self, task: usize, now: u64) {
        let Some(sent) = self.sent.remove(&task) else { return };
        let lane = &mut self.lanes[sent.key.3 .0 as usize];
        lane.area(now);
        lane.tasks -= 1;
    }

    fn told(&self, sched: &Sched, key: &Key) -> Option<Told> {
        let name = &self.layers[key.3 .0 as usize].name;
        sched.tuned().into_iter().find(|told| {
            let same = (told.function.0 as usize, told.tuning, told.size_class, told.slots);
            same == (key.0, key.1, key.2, key.4) && told.way == key.5 && told.layer == *name
        })
    }

    /// The scheduler has handled an event: epochs that are over are compared.
    pub fn look(&mut self, sched: &Sched) -> Result<(), Fault> {
        let keys: Vec<Key> = self.epochs.keys().copied().collect();
        for key in keys {
            let Some(told) = self.told(sched, &key) else { continue };
            let now = (told.epochs.len(), told.abandoned);
            let layer = &self.layers[key.3 .0 as usize];
            let epoch = self.epochs.get_mut(&key).expect("listed");
            if now == epoch.before {
                continue;
            }
            let ended = now.0 > epoch.before.0;
            let over = std::mem::replace(epoch, Epoch { before: now, ..Epoch::default() });
            if ended {
                let last = told.epochs.last().expect("one more than before");
                let first = told.epochs.first().expect("there is a last one");
                let size = |entry: &Entry| entry.bytes as f64 / f64::from(entry.tasks);
                let both = first.bytes > 0 && last.bytes > 0;
                let as_first = if both { size(first) / size(last) } else { 1.0 };
                measured(last, &over, as_first, layer, key.5)?;
                if told.told_ns != over.sum_ns() {
                    let message = format!("{} ns are told of {over:?}", told.told_ns);
                    return Err(Fault::new("tuning", message));
                }
                rules(&told)?;
            }
        }
        Ok(())
    }

    /// How many epochs ended, how many were given up, how many runs were in windows.
    pub fn end(&self, sched: &Sched) -> Result<(u64, u64, u64), Fault> {
        let told = sched.tuned();
        told.iter().try_for_each(rules)?;
        let epochs = told.iter().map(|told| told.epochs.len() as u64).sum();
        let abandoned = told.iter().map(|told| u64::from(told.abandoned)).sum();
        Ok((epochs, abandoned, self.adaptive))
    }
}

/// A layer counts as full if so much of what may run did, on average over a task's time.
const FULL: f64 = 0.85;

impl Epoch {
    fn sum_ns(&self) -> u128 {
        self.times.iter().map(|ran| u128::from(*ran)).sum()
    }

    /// The mean time that is to be registered, in nanoseconds: on the layer, as if as many as
    /// may run had been there all the time, or, if they came too slowly for that, as many as were.
    fn mean_ns(&self) -> f64 {
        let tasks = self.times.len() as f64;
        let mean = self.on_layer_ns as f64 / tasks;
        if self.area == 0 {
            return mean;
        }
        let there = self.area as f64 / self.on_layer_ns as f64;
        let full = if there >= FULL * tasks { tasks } else { there.ceil().min(tasks) };
        mean * (full / there).max(1.0)
    }
}

/// Whether an entry is what was seen on the layer, for tasks of the first epoch's size: under its
/// own constraint, or, if the tasks came too slowly for that, under the one for fewer at once.
fn measured(
    entry: &Entry,
    epoch: &Epoch,
    as_first: f64,
    layer: &Layer,
    way: Way,
) -> Result<(), Fault> {
    let fit = layer.limit(way).map_or(u64::MAX, |all| all / entry.constraint).max(1);
    let filled = entry.constraint == epoch.constraint && entry.most == entry.tasks;
    let fewer = entry.constraint >= epoch.constraint && entry.most <= entry.tasks;
    // Whole nanoseconds are multiplied by as many tasks as there were, at most.
    let mean_ns = epoch.mean_ns() * as_first;
    let tolerance_ns = (f64::from(entry.tasks) + 1.0) * as_first.max(1.0) + mean_ns * 1e-9;
    let right = entry.tasks as usize == epoch.times.len()
        && (filled || fewer)
        && u64::from(entry.most) <= fit
        && (entry.mean_ns as f64 - mean_ns).abs() <= tolerance_ns;
    match right {
        true => Ok(()),
        false => {
            let message = format!("{entry:?} is of {epoch:?}, {mean_ns} ns each, on {layer:?}");
            Err(Fault::new("tuning", message))
        }
    }
}

/// Whether the epochs of a function follow one another as they have to, and the registry has
/// those that it has to have.
fn rules(told: &Told) -> Result<(), Fault> {
    let fault = |what: &str| Err(Fault::new("tuning", format!("{what}: {told:?}")));
    let bounds = match told.tuning {
        Tuning::Auto { bounds } => bounds,
        _ => None,
    };
    let mut kept: Vec<Entry> = Vec::new();
    let mut grew = false;
    for (at, epoch) in told.epochs.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &told.epochs[before]);
        if bounds.is_some_and(|b| !(b.min..=b.max).contains(&epoch.constraint)) {
            return fault("a constraint is out of bounds");
        }
        // More at once than ever before are tried if the first epoch had fewer than it could.
        let lowest = kept.iter().map(|entry| entry.constraint).min();
        if lowest.is_some_and(|lowest| epoch.constraint < lowest) {
            if told.epochs[0].most == told.epochs[0].tasks || epoch.most != epoch.tasks {
                return fault("a constraint is below the lowest");
            }
            (grew, kept) = (true, [&[*epoch], &kept[..]].concat());
            continue;
        }
        let row = before.filter(|_| !grew);
        // After one of fewer the row goes on with what would have followed anyway.
        let above = |before: &Entry| match bounds {
            None if before.most == before.tasks => epoch.constraint >= before.constraint * 2,
            _ => epoch.constraint > before.constraint,
        };
        if grew || !row.is_none_or(above) {
            return fault("a constraint is not far enough above the one before");
        }
        // Half of the time for a double constraint, and as much for others.
        let moves = |entry: &Entry| u128::from(entry.mean_ns) * u128::from(entry.constraint);
        let halved = row.is_none_or(|before| moves(epoch) <= moves(before));
        kept.extend((bounds.is_some() || halved).then_some(*epoch));
        let next = told.epochs.get(at + 1);
        if bounds.is_none()
            && !halved
            && next.is_some_and(|next| next.constraint > epoch.constraint)
        {
            return fault("learning went on though the time did not halve");
        }
    }
    match (kept == told.registry, told.progress) {
        (false, _) => fault("the registry has other epochs than it should"),
        (true, Progress::Chosen { constraint }) if !kept.is_empty() => {
            match kept.iter().any(|entry| entry.constraint == constraint) {
                true => Ok(()),
                false => fault("a constraint was chosen that was not learned"),
            }
        }
        _ => Ok(()),
    }
}
