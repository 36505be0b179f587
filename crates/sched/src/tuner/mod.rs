//! The tuner: chooses the bandwidth that I/O tasks ask for, by learning or by following.
//!
//! Tasks whose bandwidth is static never come here. The others wait here, in one line for each
//! function, size class and layer asked for by name (a *group*), because what they ask for
//! changes while they wait. [`dispatch`] is the seam to the scheduler. [`learning`] and
//! [`choice`] are the thesis' learning phase and objective, [`adaptive`] is the controller.
//!
//! Layers of one name and one bandwidth on different nodes are of one *kind*: what is learned on
//! one holds for all; but tasks that read and tasks that write learn apart. A function learns on
//! one layer of a kind, which is *set aside*: no other I/O task begins there, and an epoch begins
//! when those that ran have ended. Other layers that the same executor reaches go on, and so do
//! compute tasks. Nobody waits for a function that learns and has no task to run: the layer is set
//! aside only while it has one.

mod adaptive;
mod choice;
mod dispatch;
mod learning;
mod levels;
mod registry;
mod report;
mod words;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use smallvec::SmallVec;

use graph::TaskId;

use self::adaptive::{Curve, Sample, Slots, Window};
pub(crate) use self::dispatch::STATIC;
use self::learning::{Ground, Learner, Phase, Run};
pub use self::words::*;
use crate::api::{FunctionId, Kind, LayerId, Time, Way};
use crate::executors::Executors;
use crate::function::Function;
use crate::layers::Layers;
use crate::policy::{Line, Place, Request, Room, Slot};

/// Whose slot a task needs, and which bandwidth of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Needs {
    kind: Kind,
    way: Way,
}

impl Needs {
    const FIRST: Needs = Needs { kind: Kind::Compute, way: Way::Read };
    const LAST: Needs = Needs { kind: Kind::Engine, way: Way::Both };
}

/// Ready tasks that ask for the same bandwidth.
#[derive(Debug)]
struct Group {
    function: FunctionId,
    tuning: Tuning,
    size_class: u8,
    only: Option<LayerId>,
    needs: Needs,
    line: Line,
    ready: u64,
}

/// What a group is of: function, tuning, size class, the layer that was asked for, its needs.
type GroupKey = (FunctionId, Tuning, u8, Option<LayerId>, Needs);

/// What a learner is for: function, tuning, size class, kind of layer, and needs.
type LearnerKey = (FunctionId, Tuning, u8, u32, Needs);

/// What a window is of: function, layer and needs.
type WindowKey = (FunctionId, LayerId, Needs);

/// What a curve is of: function, kind of layer, whether it only reads.
type CurveKey = (FunctionId, u32, bool);

/// A tuned task on a layer.
#[derive(Debug)]
struct Flight {
    group: u32,
    layer: LayerId,
    started: Time,
    /// The lane's area when it began.
    area: u128,
    /// The learner and the number of its epoch that the task belongs to.
    epoch: Option<(u32, u32)>,
    /// What it moved, as was reported or declared; 0 is unknown.
    bytes: u64,
}

/// How many tasks were on a layer, summed over time.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    area: u128,
    until: Time,
}

/// What the tuner looks at.
struct View<'a> {
    layers: &'a Layers,
    executors: &'a Executors,
    functions: &'a [Function],
    now: Time,
}

impl View<'_> {
    fn slots(&self, layer: LayerId, kind: Kind) -> u32 {
        let nodes = self.executors.reaching(self.layers, layer);
        nodes.map(|node| node.io_slots(kind)).sum()
    }

    /// Also those that are only for tasks that something else limits.
    fn slots_all(&self, layer: LayerId, kind: Kind) -> u32 {
        let nodes = self.executors.reaching(self.layers, layer);
        nodes.map(|node| node.io_slots_all(kind)).sum()
    }

    /// What there is to learn on; `None` where the bandwidth is without limit.
    fn ground(&self, layer: LayerId, needs: Needs) -> Option<Ground> {
        let limit = self.layers.layer(layer).limit(needs.way);
        let bandwidth = limit.filter(|bandwidth| *bandwidth > 0)?;
        Some(Ground { layer, bandwidth, slots: self.slots(layer, needs.kind).max(1) })
    }
}

/// What was found for a ready task.
struct Found {
    request: Request,
    slot: Slot,
    bandwidth: u64,
    group: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Tuner {
    groups: Vec<Group>,
    group_of: BTreeMap<GroupKey, u32>,
    /// Groups with ready tasks.
    ready: BTreeSet<u32>,
    /// By layer.
    kinds: Vec<u32>,
    lanes: Vec<Lane>,
    /// By layer: for whom it is set aside.
    aside: Vec<Option<u32>>,
    learners: Vec<(LearnerKey, Learner)>,
    learner_of: BTreeMap<LearnerKey, u32>,
    curves: BTreeMap<CurveKey, Curve>,
    windows: BTreeMap<WindowKey, Window>,
    flights: BTreeMap<TaskId, Flight>,
    /// From earlier sessions.
    loaded: Vec<Learned>,
}

impl Tuner {
    /// Whether any task was ever tuned.
    pub(crate) fn is_used(&self) -> bool {
        !self.groups.is_empty()
    }

    /// The most that tasks of a group may ask of a layer's bandwidth.
    pub(crate) fn bandwidth_max(&self, group: u32) -> u64 {
        match self.groups[group as usize].tuning {
            Tuning::Auto { bounds: Some(bounds) } => bounds.max,
            _ => 0,
        }
    }

    /// By layer: for whom it is set aside (empty: for nobody).
    pub(crate) fn aside(&self) -> &[Option<u32>] {
        &self.aside
    }

    /// Whether a tuned task is ready.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    fn group(&mut self, key: GroupKey, layers: &Layers) -> u32 {
        if let Some(group) = self.group_of.get(&key) {
            return *group;
        }
        if self.groups.is_empty() {
            self.kinds = layers.kinds();
            self.lanes = alloc::vec![Lane::default(); self.kinds.len()];
            self.aside = alloc::vec![None; self.kinds.len()];
        }
        let (function, tuning, size_class, only, needs) = key;
        let line = Line::default();
        self.groups.push(Group { function, tuning, size_class, only, needs, line, ready: 0 });
        let id = (self.groups.len() - 1) as u32;
        self.group_of.insert(key, id);
        id
    }

    fn push(&mut self, id: u32, request: Request, view: &View<'_>) {
        let group = &mut self.groups[id as usize];
        group.line.insert(request);
        group.ready += 1;
        self.ready.insert(id);
        self.choose(id, view);
    }

    fn remove(&mut self, id: u32, request: &Request) {
        let group = &mut self.groups[id as usize];
        group.ready -= u64::from(group.line.remove(request));
        if group.ready == 0 {
            self.ready.remove(&id);
        }
    }

    /// The group that is as this one, for tasks that need another kind of slot.
    fn group_with(&mut self, id: u32, kind: Kind, layers: &Layers) -> u32 {
        let Group { function, tuning, size_class, only, needs, .. } = self.groups[id as usize];
        let needs = Needs { kind, ..needs };
        self.group((function, tuning, size_class, only, needs), layers)
    }

    /// More tasks are ready: what was learned is looked at again, for all of them.
    fn choose(&mut self, group: u32, view: &View<'_>) {
        let Group { function, tuning, size_class, needs, .. } = self.groups[group as usize];
        if !matches!(tuning, Tuning::Auto { .. }) {
            return;
        }
        let first = (function, tuning, size_class, None, Needs::FIRST);
        let alike = self
            .group_of
            .range(first..)
            .take_while(|(key, _)| (key.0, key.1, key.2) == (function, tuning, size_class))
            .filter(|(key, _)| key.4 == needs);
        let ready = alike.map(|(_, group)| self.groups[*group as usize].ready).sum();
        let first = (function, tuning, size_class, 0, Needs::FIRST);
        let last = (function, tuning, size_class, u32::MAX, Needs::LAST);
        for (key, id) in self.learner_of.range(first..=last).filter(|(key, _)| key.4 == needs) {
            let here = (0u32..).map(LayerId).zip(&self.kinds).filter(|(_, kind)| **kind == key.3);
            let layers = here.filter(|(layer, _)| view.slots(*layer, needs.kind) > 0).count();
            self.learners[*id as usize].1.choose(ready, layers as u32);
        }
    }

    /// The first ready task that may begin, and where.
    fn next(&mut self, room: &Room, view: &View<'_>) -> Option<Found> {
        let ready: SmallVec<[u32; 8]> = self.ready.iter().copied().collect();
        let mut found: Option<Found> = None;
        for group in ready {
            let Group { only, needs, tuning, .. } = self.groups[group as usize];
            let mut fits = Room::default();
            for Place { slot, kind, spare, extra } in room.places().iter().copied() {
                let named = only.is_none() || slot.layer.is_none() || slot.layer == only;
                if !named || kind != needs.kind || (extra && tuning != Tuning::Adaptive) {
                    continue;
                }
                let left = spare.bandwidth(needs.way);
                if let Some(bandwidth) = self.admits(group, slot.layer, left, view) {
                    fits.add(slot, kind, bandwidth, spare.size);
                }
            }
            let Some((request, slot)) = self.groups[group as usize].line.first(&fits) else {
                continue;
            };
            let place = |request: &Request| (core::cmp::Reverse(request.priority), request.serial);
            if found.as_ref().is_none_or(|other| place(&request) < place(&other.request)) {
                let bandwidth = fits.bandwidth(slot, needs.way);
                found = Some(Found { request, slot, bandwidth, group });
            }
        }
        found
    }

    /// What a task of a group asks for on a layer, if one may begin there now.
    fn admits(
        &mut self,
        group: u32,
        layer: Option<LayerId>,
        spare: u64,
        view: &View<'_>,
    ) -> Option<u64> {
        let Some(layer) = layer else { return Some(0) };
        let asked = match self.groups[group as usize].tuning {
            Tuning::Static => unreachable!("static tasks are not tuned"),
            Tuning::Auto { .. } => self.admits_auto(group, layer, view)?,
            Tuning::Adaptive => self.admits_adaptive(group, layer, spare, view)?,
        };
        (asked <= spare).then_some(asked)
    }

    fn admits_adaptive(
        &mut self,
        group: u32,
        layer: LayerId,
        spare: u64,
        view: &View<'_>,
    ) -> Option<u64> {
        if self.aside[layer.0 as usize].is_some() {
            return None;
        }
        let Group { function, needs, .. } = self.groups[group as usize];
        let slots = view.slots_all(layer, needs.kind).max(1);
        let window = self.window((function, layer, needs), view);
        let (tasks, running) = (window.tasks(slots), window.running);
        let share = share(view.layers.layer(layer).limit(needs.way), tasks);
        // One of each function may always run, with what there is: nobody waits for ever for the
        // windows of others.
        if running == 0 && spare > 0 {
            return Some(share.min(spare));
        }
        // The narrowest window of those that are on the layer holds for all: it is the one that
        // sees the others in its way.
        let here = |(of, window): &(&WindowKey, &Window)| of.1 == layer && window.running > 0;
        let others = self.windows.iter().filter(here);
        let narrowest = others.map(|(_, window)| window.tasks(slots)).min().unwrap_or(tasks);
        (view.layers.tasks(layer) < tasks.min(narrowest)).then_some(share)
    }

    fn window(&mut self, key: WindowKey, view: &View<'_>) -> &mut Window {
        let curve_key = self.curve_key(&key);
        let (function, layer, needs) = key;
        if !self.curves.contains_key(&curve_key) {
            let (_, kind, reads) = curve_key;
            let alike = |of: &&CurveKey| (of.1, of.2) == (kind, reads);
            let other = self.curves.keys().rfind(alike);
            let curve = match other {
                Some(other) => self.curves[other].inherited(),
                // What was measured is of writing.
                None if reads => Curve::default(),
                None => Curve::measured(&view.layers.layer(layer).measured),
            };
            self.curves.insert(curve_key, curve);
        }
        let (kinds, windows) = (&self.kinds, &self.windows);
        let alike = |layer: &LayerId| kinds[layer.0 as usize] == curve_key.1;
        if !windows.contains_key(&key) {
            let same = |(of, layer, of_it): &&WindowKey| {
                *of == function && *of_it == needs && alike(layer)
            };
            let of_it = windows.keys().filter(same);
            let ordinal = of_it.count();
            let curve = self.curves.get_mut(&curve_key).expect("just made");
            let slots = Slots {
                all: view.slots_all(layer, needs.kind).max(1),
                blind: view.slots(layer, needs.kind).max(1),
            };
            let window = Window::new(layer, curve, slots, ordinal, view.now);
            self.windows.insert(key, window);
        }
        self.windows.get_mut(&key).expect("just made")
    }

    fn curve_key(&self, (function, layer, needs): &WindowKey) -> CurveKey {
        (*function, self.kinds[layer.0 as usize], needs.way == Way::Read)
    }

    fn learner(&mut self, group: u32, layer: LayerId, view: &View<'_>) -> u32 {
        let Group { function, tuning, size_class, needs, .. } = self.groups[group as usize];
        let key = (function, tuning, size_class, self.kinds[layer.0 as usize], needs);
        if let Some(id) = self.learner_of.get(&key) {
            return *id;
        }
        let name = view.functions.get(function.0 as usize).map(|function| &function.name);
        let ground = view.ground(layer, needs);
        let layer = view.layers.layer(layer);
        let loaded = self.loaded.iter().find(|learned| {
            Some(&learned.function) == name
                && learned.size_class == size_class
                && learned.layer == layer.name
        });
        let bounds = match tuning {
            Tuning::Auto { bounds } => bounds,
            _ => None,
        };
        let registry = ground
            .zip(loaded)
            .map(|(ground, learned)| registry::Registry::loaded(&learned.entries, &ground, bounds));
        self.learners.push((key, Learner::new(bounds, registry.unwrap_or_default())));
        let id = (self.learners.len() - 1) as u32;
        self.learner_of.insert(key, id);
        self.choose(group, view);
        id
    }

    fn admits_auto(&mut self, group: u32, layer: LayerId, view: &View<'_>) -> Option<u64> {
        let needs = self.groups[group as usize].needs;
        let Some(ground) = view.ground(layer, needs) else {
            // Others may learn there, if only the other way has a limit.
            return self.aside[layer.0 as usize].is_none().then_some(0);
        };
        let id = self.learner(group, layer, view);
        let idle = view.layers.tasks(layer) == 0;
        let free = self.aside[layer.0 as usize].is_none_or(|other| other == id);
        let wants = self.learners[id as usize].1.wants_epoch(idle);
        if wants && free && self.could_run(group, layer, view) {
            self.learners[id as usize].1.begin(ground, view.now);
        }
        if let Phase::Settled(constraint) = self.learners[id as usize].1.phase {
            return self.aside[layer.0 as usize].is_none().then_some(constraint);
        }
        let epoch = self.learners[id as usize].1.epoch()?;
        let (at, running) = (epoch.ground.layer, epoch.running);
        if at != layer {
            let stays = running > 0 || self.wanted(id, at, view);
            if stays || !free || !self.could_run(group, layer, view) {
                let open = self.aside[layer.0 as usize].is_none();
                return open.then(|| self.learners[id as usize].1.meanwhile(&ground));
            }
            self.leave(id, at);
            self.learners[id as usize].1.epoch_mut()?.ground = ground;
        }
        if !free || (running == 0 && !self.could_run(group, layer, view)) {
            return None;
        }
        self.aside[layer.0 as usize] = Some(id);
        let epoch = self.learners[id as usize].1.epoch()?;
        let alone = view.layers.tasks(layer) == epoch.running;
        (alone && epoch.takes_more()).then_some(epoch.constraint)
    }

    /// Whether some ready task of a group fits an idle layer.
    fn could_run(&self, group: u32, layer: LayerId, view: &View<'_>) -> bool {
        let mut room = Room::default();
        let slot = Slot { executor: crate::api::ExecutorId(0), layer: Some(layer) };
        if view.layers.is_down(layer) {
            return false;
        }
        let capacity = view.layers.idle(layer).size;
        room.add(slot, self.groups[group as usize].needs.kind, u64::MAX, capacity);
        self.groups[group as usize].line.first(&room).is_some()
    }

    /// Whether a learner has ready tasks that can run on a layer.
    fn wanted(&self, learner: u32, layer: LayerId, view: &View<'_>) -> bool {
        let (function, tuning, size_class, _, needs) = self.learners[learner as usize].0;
        let others = self.aside[layer.0 as usize].is_some_and(|other| other != learner);
        let mut groups = self.ready.iter().filter(|group| {
            let group = &self.groups[**group as usize];
            (group.function, group.tuning, group.size_class) == (function, tuning, size_class)
                && group.needs == needs
                && group.only.is_none_or(|only| only == layer)
        });
        let reached = view.slots(layer, needs.kind) > 0;
        !others && reached && groups.any(|group| self.could_run(*group, layer, view))
    }

    fn leave(&mut self, learner: u32, layer: LayerId) {
        self.aside[layer.0 as usize].take_if(|other| *other == learner);
    }

    /// Layers are no longer set aside for those who have nothing to run there.
    fn release(&mut self, view: &View<'_>) {
        for layer in (0..self.aside.len() as u32).map(LayerId) {
            let Some(id) = self.aside[layer.0 as usize] else { continue };
            let here = self.learners[id as usize].1.epoch();
            let here = here.filter(|epoch| epoch.ground.layer == layer);
            if !here.is_some_and(|epoch| epoch.running > 0 || self.wanted(id, layer, view)) {
                self.aside[layer.0 as usize] = None;
            }
        }
    }

    fn started(&mut self, found: &Found, view: &View<'_>) {
        let Some(layer) = found.slot.layer else { return };
        let group = &self.groups[found.group as usize];
        let mut epoch = None;
        if group.tuning == Tuning::Adaptive {
            let window = self.windows.get_mut(&(group.function, layer, group.needs));
            window.expect("it admitted the task").running += 1;
        } else if view.ground(layer, group.needs).is_some() {
            let id = self.learner(found.group, layer, view);
            let number = self.learners[id as usize].1.started(layer, view.now);
            epoch = number.map(|number| (id, number));
        }
        let area = self.lanes[layer.0 as usize].area;
        let bytes = found.request.constraint.size;
        let flight = Flight { group: found.group, layer, started: view.now, area, epoch, bytes };
        self.flights.insert(found.request.task, flight);
    }

    /// The tasks on a layer are about to become more or fewer.
    fn advance(&mut self, layer: LayerId, tasks: u32, now: Time) {
        if let Some(lane) = self.lanes.get_mut(layer.0 as usize) {
            lane.area += u128::from(tasks) * u128::from(now.saturating_sub(lane.until));
            lane.until = now;
        }
    }

    /// A task is off its layer: after `ran` nanoseconds, or (`None`) for nothing. Gives whether
    /// the window of its function became another.
    fn off(&mut self, task: TaskId, ran: Option<u64>, view: &View<'_>) -> Option<WindowKey> {
        let flight = self.flights.remove(&task)?;
        if let Some((id, number)) = flight.epoch {
            let run = ran.map(|ran| Run {
                ran,
                on_layer_ns: view.now.saturating_sub(flight.started),
                area: self.lanes[flight.layer.0 as usize].area - flight.area,
                bytes: flight.bytes,
            });
            self.learners[id as usize].1.ended(number, run, view.now);
            if self.learners[id as usize].1.epoch().is_none() {
                self.leave(id, flight.layer);
                self.choose(flight.group, view);
            }
        }
        let group = &self.groups[flight.group as usize];
        let key = (group.function, flight.layer, group.needs);
        let waiting = group.ready > 0;
        if group.tuning != Tuning::Adaptive {
            return None;
        }
        let curve_key = self.curve_key(&key);
        let window = self.windows.get_mut(&key).expect("it runs there");
        window.running -= 1;
        ran?;
        let curve = self.curves.get_mut(&curve_key).expect("it runs there");
        if curve.is_cold(flight.started, view.now) {
            return None;
        }
        if flight.bytes > 0 && !curve.bytes {
            curve.count_bytes();
        } else if flight.bytes == 0 && curve.bytes {
            return None;
        }
        let area = self.lanes[flight.layer.0 as usize].area - flight.area;
        let work = if curve.bytes { flight.bytes as f64 } else { 1.0 };
        let (started, now) = (flight.started, view.now);
        let sample = Sample { started, now, area: area as f64, work };
        let slots = view.slots_all(flight.layer, key.2.kind).max(1);
        let changed = window.sample(curve, sample, slots, waiting);
        changed.then_some(key)
    }
}

/// What each of so many tasks may ask of a bandwidth.
fn share(bandwidth: Option<u64>, tasks: u32) -> u64 {
    bandwidth.map_or(0, |all| (all / u64::from(tasks.max(1))).max(1).min(all))
}
