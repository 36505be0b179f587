//! Epochs are alone on their layer and under one constraint; registries say what was measured
//! and follow the rules of learning; adaptive windows are within the slots and kept.
//!
//! The account here is of what the scheduler sent and what the executors told. Of the
//! scheduler it asks only which tasks it says belong to an epoch, and what it says it learned.

use std::collections::BTreeMap;

use sched::{
    Constraint, Entry, FunctionId, Kind, Layer, LayerId, Progress, Sched, TaskId, Tuned as Told,
    Tuning,
};

use super::Fault;
use crate::hash::Map;
use crate::program::TaskPlan;

/// Which function, tuning, size class, layer and kind of slot.
type Key = (usize, Tuning, u8, LayerId, Kind);

#[derive(Debug)]
struct Sent {
    id: TaskId,
    key: Key,
    bandwidth: u64,
}

/// What the executors told of an epoch.
#[derive(Debug, Default)]
struct Epoch {
    times: Vec<u64>,
    constraint: u64,
    /// How many epochs ended, and were given up, before.
    before: (usize, u32),
}

/// The account.
#[derive(Debug)]
pub struct Tuned {
    layers: Vec<Layer>,
    /// Tasks that hold a grant, by number.
    sent: Map<usize, Sent>,
    epochs: BTreeMap<Key, Epoch>,
    adaptive: u64,
}

fn key(plan: &TaskPlan, layer: LayerId, kind: Kind) -> Key {
    (plan.function, plan.tuning, sched::size_class(plan.constraint.size), layer, kind)
}

impl Tuned {
    /// Nothing runs.
    pub fn new(layers: &[Layer]) -> Tuned {
        let layers = layers.to_vec();
        Tuned { layers, sent: Map::default(), epochs: BTreeMap::new(), adaptive: 0 }
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
        id: TaskId,
        layer: LayerId,
        granted: Constraint,
    ) -> Result<(), Fault> {
        let kind = sched.kind_of(id).expect("it is sent");
        let new = Sent { id, key: key(plan, layer, kind), bandwidth: granted.bandwidth };
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
        let own = |told: &Told| told.function == FunctionId(plan.function as u32);
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
        let key = (plan.function, plan.tuning, kind);
        let own = |sent: &&Sent| (sent.key.0, sent.key.1, sent.key.4) == key;
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
    pub fn ends(&mut self, sched: &Sched, plan: &TaskPlan, id: TaskId, ran: Option<u64>) {
        let Some(sent) = self.sent.get(&plan.task) else { return };
        let given_up = sched.state(id) == Some(sched::State::Abandoned);
        let Some(ran) = ran.filter(|_| sched.is_learning(id) && !given_up) else { return };
        let epoch = self.epochs.entry(sent.key).or_default();
        epoch.times.push(ran);
        epoch.constraint = sent.bandwidth;
    }

    /// A task holds nothing any more.
    pub fn back(&mut self, task: usize) {
        self.sent.remove(&task);
    }

    fn told(&self, sched: &Sched, key: &Key) -> Option<Told> {
        let name = &self.layers[key.3 .0 as usize].name;
        sched.tuned().into_iter().find(|told| {
            let same = (told.function.0 as usize, told.tuning, told.size_class, told.slots);
            same == (key.0, key.1, key.2, key.4) && told.layer == *name
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
            let times = std::mem::take(&mut epoch.times);
            let ended = now.0 > epoch.before.0;
            epoch.before = now;
            if ended {
                let last = told.epochs.last().expect("one more than before");
                measured(last, &times, epoch.constraint, layer)?;
                let sum: u128 = times.iter().map(|ran| u128::from(*ran)).sum();
                if told.told_ns != sum {
                    let message = format!("{} ns are told of {times:?}", told.told_ns);
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

/// Whether an entry is what the executors told: under its own constraint, or, if the tasks came
/// too slowly for that, under the one for fewer at once.
fn measured(entry: &Entry, times: &[u64], tried: u64, layer: &Layer) -> Result<(), Fault> {
    let sum: u128 = times.iter().map(|ran| u128::from(*ran)).sum();
    let mean = sum / (times.len() as u128).max(1);
    let fit = layer.bandwidth.map_or(u64::MAX, |all| all / entry.constraint).max(1);
    let filled = entry.constraint == tried && entry.most == entry.tasks;
    let fewer = entry.constraint >= tried && entry.most <= entry.tasks;
    let right = entry.tasks as usize == times.len()
        && (filled || fewer)
        && u64::from(entry.most) <= fit
        && (mean..=2 * mean + 1).contains(&u128::from(entry.mean_ns));
    match right {
        true => Ok(()),
        false => {
            let message = format!("{entry:?} is of {times:?} under {tried} on {layer:?}");
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
        let above = |before: &Entry| match bounds {
            None => epoch.constraint >= before.constraint * 2,
            Some(_) => epoch.constraint > before.constraint,
        };
        if grew || !row.is_none_or(above) {
            return fault("a constraint is not far enough above the one before");
        }
        let halved = row.is_none_or(|before| epoch.mean_ns * 2 <= before.mean_ns);
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
