//! The learning phase of one function on one layer: epoch after epoch, each under one constraint
//! (Elshazly, thesis, sections 4.3.3.1 and 4.4.3.2).
//!
//! An epoch has exactly as many tasks as its constraint lets run at once. It ends when they have
//! ended well; a run that fails or comes back counts for nothing, and another takes its place.
//! Its result is their mean time on the layer, as if the layer had been full all the time.
//! *Bounded* learning multiplies the constraint from `min` to `max`. *Unbounded* learning starts
//! with the least constraint that lets every slot be used and doubles while the mean time is at
//! most half of the one before; the epoch that breaks this rule is not registered, as there.
//!
//! The thesis has more ready tasks than an epoch takes. With fewer, their mean time says nothing
//! about as many as the constraint lets run: such an epoch (not *filled*) is registered under the
//! constraint for as many as there were, and the row goes on above that, with the constraints that
//! it would have had anyway. From one that is not the double of the one before it goes on if the
//! mean time falls at least as much as the constraint rises: to half, for double. When so many wait
//! at last that twice as many could run, one more epoch tries that, and so on while it gains.

use alloc::vec::Vec;

use super::choice;
use super::registry::{Registry, Spread};
use super::words::{Bounds, Entry};
use crate::api::{LayerId, Time};

/// An epoch in which nothing has ended for this long is given up ...
pub(crate) const QUIET_NS_MIN: u64 = 3_600_000_000_000;
/// ... or for so many mean times of the epoch before, if that is longer.
const QUIET_MEANS: u64 = 16;
/// An epoch is filled if this part of what may run did, on average over a task's time. Less is
/// registered as what it was: a group that begins at once and ends one by one has two thirds.
const FILLED: (u128, u128) = (85, 100);
/// More at once are tried further while they move so many times as much: less is noise.
const GAIN: (u128, u128) = (105, 100);
/// Unbounded learning multiplies the constraint by this, in thousandths.
const DOUBLE: u32 = 2000;
/// After so many epochs that were given up a function without a registry learns no more.
pub(crate) const ABANDONED_MAX: u32 = 3;

/// What is being learned on: a layer and what can run there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground {
    pub(crate) layer: LayerId,
    /// Of the layer, in bytes a second.
    pub(crate) bandwidth: u64,
    /// I/O executor slots that reach it.
    pub(crate) slots: u32,
}

/// An epoch that goes on.
#[derive(Clone, Debug)]
pub(crate) struct Epoch {
    pub(crate) number: u32,
    pub(crate) constraint: u64,
    /// How many tasks it takes.
    pub(crate) most: u32,
    pub(crate) ground: Ground,
    pub(crate) running: u32,
    pub(crate) ended: u32,
    sum_ns: u128,
    /// Of its tasks, by the scheduler's clock: how long they were on the layer, and how many
    /// tasks were there meanwhile, summed over that time.
    on_layer_ns: u128,
    area: u128,
    bytes: u64,
    /// When one of its tasks last began or ended.
    pub(crate) moved_at: Time,
}

impl Epoch {
    /// Whether one more of its tasks may begin.
    pub(crate) fn takes_more(&self) -> bool {
        self.ended + self.running < self.most
    }

    /// How many ran at once, on average over a task's time; all that may if the layer was filled.
    fn at_once(&self) -> u32 {
        let (area, time) = (self.area, self.on_layer_ns);
        if area * FILLED.1 >= time * u128::from(self.most) * FILLED.0 {
            return self.most;
        }
        u32::try_from(area.div_ceil(time)).map_or(self.most, |mean| mean.clamp(1, self.most))
    }

    /// How long its tasks held the layer on average, as if so many had been there at every moment
    /// of it: a group that begins at once and ends one by one is alone with the storage in the end.
    /// By the scheduler's clock, from the grant to when it is free again: where few run at once
    /// the layer is idle from the end of one task to the begin of the next, and the executors know
    /// nothing of that.
    fn mean_of(&self, at_once: u32) -> u64 {
        let mean = self.on_layer_ns / u128::from(self.ended.max(1));
        let full = mean * self.on_layer_ns * u128::from(at_once) / self.area.max(1);
        u64::try_from(full.max(mean)).unwrap_or(u64::MAX)
    }
}

/// A task of an epoch that ended well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// As the executor told, in nanoseconds.
    pub(crate) ran: u64,
    /// How long it was on the layer by the scheduler's clock, in nanoseconds.
    pub(crate) on_layer_ns: u64,
    /// How many tasks were there meanwhile, summed over that time.
    pub(crate) area: u128,
    /// 0 is unknown.
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// No task has come yet.
    New,
    Learning(Epoch),
    /// The constraint in force.
    Settled(u64),
}

/// What one function, size class and layer is learned by.
#[derive(Clone, Debug)]
pub(crate) struct Learner {
    pub(crate) bounds: Option<Bounds>,
    pub(crate) phase: Phase,
    pub(crate) registry: Registry,
    /// Results of all epochs in order.
    pub(crate) epochs: Vec<Entry>,
    /// The times of the last one's tasks, summed.
    pub(crate) told_ns: u128,
    pub(crate) abandoned: u32,
    /// An epoch was given up: another one begins when the layer is idle.
    again: bool,
    /// The first epoch was not filled: constraints from here up to the lowest registered one were
    /// not tried yet.
    untried: Option<u64>,
    /// Enough tasks wait to try half of the lowest registered constraint.
    grows: bool,
    pub(crate) spread: Spread,
    numbers: u32,
}

/// The most tasks that a constraint lets run at once.
pub(crate) fn most(ground: &Ground, constraint: u64) -> u32 {
    let fit = ground.bandwidth / constraint.max(1);
    u32::try_from(fit).unwrap_or(u32::MAX).min(ground.slots).max(1)
}

/// What tasks would move in their mean time at the bandwidth that they are granted. It does not
/// grow if doubling the constraint halves the time.
fn bytes_at(entry: &Entry) -> u128 {
    u128::from(entry.mean_ns) * u128::from(entry.constraint)
}

impl Learner {
    pub(crate) fn new(bounds: Option<Bounds>, registry: Registry) -> Learner {
        let first = registry.entries().first().map(|entry| entry.constraint);
        let phase = first.map_or(Phase::New, Phase::Settled);
        let (epochs, spread) = (Vec::new(), Spread::default());
        Learner {
            bounds,
            phase,
            registry,
            epochs,
            told_ns: 0,
            abandoned: 0,
            again: false,
            untried: None,
            grows: false,
            spread,
            numbers: 0,
        }
    }

    /// The constraint of the first epoch: `min`, or what lets all slots be used.
    fn first_constraint(&self, ground: &Ground) -> u64 {
        let all_slots = ground.bandwidth / u64::from(ground.slots.max(1));
        self.bounds.map_or(all_slots.max(1), |bounds| bounds.min)
    }

    /// The constraint to try after the epoch of one came to `measured`, if there is one that the
    /// layer can grant.
    fn next_constraint(&self, ground: &Ground, constraint: u64, measured: u64) -> Option<u64> {
        let (max, delta_permille) =
            self.bounds.map_or((u64::MAX, DOUBLE), |bounds| (bounds.max, bounds.delta_permille));
        let mut next = constraint;
        while next <= measured {
            let product = u128::from(next) * u128::from(delta_permille) / 1000;
            next = u64::try_from(product).ok()?.max(next + 1);
        }
        (next <= max.min(ground.bandwidth)).then_some(next)
    }

    /// Under what tasks run on a layer alike while the function learns on another one: what was
    /// best so far, by the tasks that end in a given time; the middle, by ratio, of what could be
    /// if nothing is known.
    pub(crate) fn meanwhile(&self, ground: &Ground) -> u64 {
        let rate = |entry: &Entry| u64::from(entry.most) * 1_000_000_000 / entry.mean_ns.max(1);
        let best =
            self.registry.entries().iter().max_by_key(|entry| (rate(entry), entry.constraint));
        let (low, high) = self.bounds.map_or((1, u64::MAX), |bounds| (bounds.min, bounds.max));
        let middle = ground.bandwidth / u64::from(ground.slots.max(1)).isqrt().max(1);
        best.map_or(middle.clamp(low, high.min(ground.bandwidth)), |entry| entry.constraint)
    }

    fn lowest(&self) -> Option<&Entry> {
        self.registry.entries().first()
    }

    /// Whether an epoch may begin that is not the next of a row.
    pub(crate) fn wants_epoch(&self, is_idle: bool) -> bool {
        match self.phase {
            Phase::New => true,
            Phase::Learning(_) => false,
            Phase::Settled(_) => self.grows || (self.again && is_idle),
        }
    }

    /// An epoch begins that is not the next of a row, unless the layer is too narrow for it.
    pub(crate) fn begin(&mut self, ground: Ground, now: Time) {
        let half = self.lowest().filter(|_| self.grows).map(|entry| entry.constraint / 2);
        let constraint = match (half, self.untried) {
            (Some(half), Some(untried)) => half.max(untried),
            _ => self.first_constraint(&ground),
        };
        if constraint <= ground.bandwidth {
            self.again = false;
            self.begin_epoch(ground, constraint, now);
        }
    }

    fn begin_epoch(&mut self, ground: Ground, constraint: u64, now: Time) {
        self.numbers += 1;
        self.phase = Phase::Learning(Epoch {
            number: self.numbers,
            constraint,
            most: most(&ground, constraint),
            ground,
            running: 0,
            ended: 0,
            sum_ns: 0,
            on_layer_ns: 0,
            area: 0,
            bytes: 0,
            moved_at: now,
        });
    }

    pub(crate) fn epoch(&self) -> Option<&Epoch> {
        match &self.phase {
            Phase::Learning(epoch) => Some(epoch),
            _ => None,
        }
    }

    pub(crate) fn epoch_mut(&mut self) -> Option<&mut Epoch> {
        match &mut self.phase {
            Phase::Learning(epoch) => Some(epoch),
            _ => None,
        }
    }

    /// A task begins on a layer; the number of the epoch there, to which it then belongs.
    pub(crate) fn started(&mut self, layer: LayerId, now: Time) -> Option<u32> {
        let epoch = self.epoch_mut().filter(|epoch| epoch.ground.layer == layer)?;
        assert!(epoch.takes_more(), "an epoch takes no more tasks than run at once");
        epoch.running += 1;
        epoch.moved_at = now;
        Some(epoch.number)
    }

    /// A task of an epoch is over, well or (`None`) for nothing.
    pub(crate) fn ended(&mut self, number: u32, run: Option<Run>, now: Time) {
        let Some(epoch) = self.epoch_mut().filter(|epoch| epoch.number == number) else { return };
        epoch.running -= 1;
        epoch.moved_at = now;
        let Some(run) = run else { return };
        epoch.ended += 1;
        epoch.sum_ns += u128::from(run.ran);
        epoch.on_layer_ns += u128::from(run.on_layer_ns);
        epoch.area += run.area;
        epoch.bytes = epoch.bytes.saturating_add(run.bytes);
        let over = epoch.ended == epoch.most;
        self.spread.note(run.bytes);
        if over {
            self.end_epoch(now);
        }
    }

    fn end_epoch(&mut self, now: Time) {
        let Some(epoch) = self.epoch() else { return };
        assert!(epoch.running == 0, "it takes no more tasks than have to end");
        let (ground, tried, at_once) = (epoch.ground, epoch.constraint, epoch.at_once());
        let (ended, bytes) = (epoch.ended, epoch.bytes);
        let highest = self.bounds.map_or(ground.bandwidth, |bounds| bounds.max.max(tried));
        let fewer = (ground.bandwidth / u64::from(at_once)).clamp(tried, highest);
        let filled = most(&ground, fewer) == epoch.most;
        let constraint = if filled { tried } else { fewer };
        let most = most(&ground, constraint);
        let mean_ns = self.for_first_size(epoch.mean_of(at_once), ended, bytes);
        let entry = Entry { constraint, most, tasks: ended, mean_ns, bytes };
        self.told_ns = epoch.sum_ns;
        if self.grows {
            self.end_growth(entry, filled);
            return;
        }
        if self.epochs.is_empty() && !filled {
            self.untried = Some(tried);
        }
        let goes_on = match (self.bounds, self.epochs.last()) {
            (None, Some(before)) => bytes_at(&entry) <= bytes_at(before),
            _ => true,
        };
        self.epochs.push(entry);
        if goes_on {
            self.registry.add(entry);
        }
        match self.next_constraint(&ground, tried, constraint).filter(|_| goes_on) {
            Some(next) => self.begin_epoch(ground, next, now),
            None => self.settle(constraint),
        }
    }

    /// What a mean time would be of tasks of as many bytes as those of the first epoch had: in an
    /// epoch of two, that they are smaller looks as if less at once were better.
    fn for_first_size(&self, mean_ns: u64, tasks: u32, bytes: u64) -> u64 {
        let Some(first) = self.epochs.first().filter(|first| first.bytes > 0 && bytes > 0) else {
            return mean_ns;
        };
        let (size, first_size) =
            (bytes as f64 / f64::from(tasks), first.bytes as f64 / f64::from(first.tasks));
        (mean_ns as f64 * first_size / size) as u64
    }

    /// An epoch below the lowest registered constraint is over. More are tried while more tasks
    /// at once mean more tasks in a given time.
    fn end_growth(&mut self, entry: Entry, filled: bool) {
        self.grows = false;
        let gains = self.lowest().is_some_and(|lowest| {
            let (new, old) = (u128::from(entry.mean_ns), u128::from(lowest.mean_ns));
            new * u128::from(lowest.most) * GAIN.0 < old * u128::from(entry.most) * GAIN.1
        });
        let lower = |untried: &u64| filled && gains && *untried < entry.constraint;
        self.untried = self.untried.filter(lower);
        if filled {
            self.epochs.push(entry);
            self.registry.add(entry);
        } else {
            self.abandoned += 1;
        }
        self.settle(entry.constraint);
    }

    /// Learning is over: what comes next is chosen from the registry.
    fn settle(&mut self, otherwise: u64) {
        let lowest = self.lowest().map(|entry| entry.constraint);
        self.phase = Phase::Settled(lowest.unwrap_or(otherwise));
    }

    /// The layer does not answer: the epoch counts for nothing. Its tasks go on, and others run
    /// under its constraint (or what was learned before) until the layer is idle.
    pub(crate) fn abandon(&mut self) {
        let Some(epoch) = self.epoch() else { return };
        let constraint = epoch.constraint;
        self.abandoned += 1;
        (self.grows, self.untried) = (false, None);
        self.again = self.registry.is_empty() && self.abandoned < ABANDONED_MAX;
        self.settle(constraint);
    }

    /// When the epoch is given up if nothing ends before.
    pub(crate) fn quiet_at(&self) -> Option<Time> {
        let epoch = self.epoch().filter(|epoch| epoch.running > 0)?;
        let mean = self.epochs.last().map_or(0, |entry| entry.mean_ns);
        let quiet = mean.saturating_mul(QUIET_MEANS).max(QUIET_NS_MIN);
        Some(epoch.moved_at.saturating_add(quiet))
    }

    /// Chooses again for so many ready tasks on so many layers alike.
    pub(crate) fn choose(&mut self, ready: u64, layers: u32) {
        let lowest = self.lowest().map_or(u64::MAX, |entry| u64::from(entry.most));
        let Phase::Settled(constraint) = &mut self.phase else { return };
        self.grows = self.untried.is_some() && ready / u64::from(layers.max(1)) >= lowest * 2;
        if let Some(best) = choice::choose(ready, self.registry.entries(), layers) {
            *constraint = best;
        }
    }
}
