//! Every policy against a list that is searched as its rule is written, and its bound.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::cell::Cell;
use core::cmp::Reverse;

use graph::{slab::Key, TaskId};

use super::estimates::Estimates;
use super::{backfilling, fcfs, priority};
use super::{Outlook, Place, Policy, Request, Room, Slot};
use crate::api::{Constraint, ExecutorId, FunctionId, Kind, Layer, LayerId, PolicyKind, Way};
use crate::layers::{Layers, Mask};

const E0: ExecutorId = ExecutorId(0);

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % sides
    }
}

fn layers() -> Layers {
    let layer = |at: u64| Layer {
        name: at.to_string(),
        bandwidth: Some([400, 200, 100][at as usize]),
        read_bandwidth: [Some(350), Some(150), None][at as usize],
        write_bandwidth: [Some(300), None, None][at as usize],
        capacity: [Some(300), None, Some(500)][at as usize],
        ..Layer::default()
    };
    Layers::new((0..3).map(layer).collect())
}

fn policy(kind: PolicyKind, starve_max: u32) -> Box<dyn Policy> {
    match kind {
        PolicyKind::Fcfs => Box::new(fcfs::Fcfs::new(starve_max)),
        PolicyKind::Priority => Box::new(priority::Priority::new(starve_max)),
        PolicyKind::Backfilling => Box::new(backfilling::Backfilling::new(starve_max)),
    }
}

/// What of a request decides with whom it competes.
type Set = (Kind, Option<LayerId>, Option<Way>, Mask);

fn set(request: &Request) -> Set {
    let way = (request.constraint.bandwidth > 0).then_some(request.constraint.way);
    (request.kind, request.layer, way, request.not)
}

fn arrival(request: &Request) -> (Reverse<i32>, u64) {
    (Reverse(request.priority), request.serial)
}

/// The machine, and the model's own books.
struct Bench {
    kind: PolicyKind,
    starve_max: u32,
    layers: Layers,
    estimates: Estimates,
    now: u64,
    ready: Vec<Request>,
    running: Vec<(Request, LayerId, u64)>,
    /// By set: the oldest, and how often it was passed.
    passed: BTreeMap<Set, (TaskId, u32)>,
}

impl Bench {
    fn new(kind: PolicyKind, starve_max: u32) -> Bench {
        let layers = layers();
        let estimates = Estimates::new(&layers, kind);
        let (ready, running, passed) = (Vec::new(), Vec::new(), BTreeMap::new());
        Bench { kind, starve_max, layers, estimates, now: 0, ready, running, passed }
    }

    fn outlook(&self) -> Outlook<'_> {
        let (estimates, layers, again_at) = (&self.estimates, &self.layers, Cell::new(None));
        Outlook { estimates, layers, aside: &[], now: self.now, again_at }
    }

    fn room(&self) -> Room {
        let mut room = Room::default();
        for kind in [Kind::Io, Kind::Engine] {
            for id in self.layers.ranked().iter().filter(|id| !self.layers.is_down(**id)) {
                let slot = Slot { executor: E0, layer: Some(*id) };
                room.put(Place { slot, kind, spare: self.layers.spare(*id), extra: false });
            }
        }
        room
    }

    fn order(&self, request: &Request) -> (Reverse<i32>, Reverse<u64>, u64) {
        let bandwidth = match self.kind {
            PolicyKind::Fcfs => 0,
            _ => request.constraint.bandwidth,
        };
        (Reverse(request.priority), Reverse(bandwidth), request.serial)
    }

    /// The highest layer of those allowed with room now.
    fn slot(&self, request: &Request, allowed: &dyn Fn(LayerId) -> bool) -> Option<LayerId> {
        let fits = |id: &LayerId| {
            let may = request.may_use(*id) && allowed(*id) && !self.layers.is_down(*id);
            may && self.layers.fits(*id, request.constraint)
        };
        self.layers.ranked().iter().copied().find(fits)
    }

    /// The rule of a policy for those who compete for the same.
    fn pick(
        &self,
        members: &[Request],
        allowed: &dyn Fn(LayerId) -> bool,
    ) -> Option<(Request, LayerId)> {
        let fitting = |request: &Request| Some((*request, self.slot(request, allowed)?));
        if self.kind == PolicyKind::Fcfs {
            return members.iter().find_map(fitting);
        }
        let outlook = self.outlook();
        let head = members.iter().find(|it| outlook.layers_for(it).next().is_some());
        let Some(head) = head else { return members.iter().find_map(fitting) };
        if self.kind == PolicyKind::Priority {
            let (head, here) = fitting(head)?;
            let time_here = outlook.estimate(&head, here);
            for layer in outlook.layers_for(&head).filter(|it| outlook.is_above(*it, here)) {
                let times = (outlook.remaining(layer), outlook.estimate(&head, layer), time_here);
                if let (Some(wait), Some(there), Some(time_here)) = times {
                    if wait + there < time_here {
                        return None;
                    }
                }
            }
            return Some((head, here));
        }
        if let Some(found) = fitting(head) {
            return Some(found);
        }
        let Some(wait) = outlook.shortest_remaining() else {
            return members.iter().find_map(fitting);
        };
        let mut looked: Vec<FunctionId> = Vec::new();
        for request in members {
            let mean = |id| outlook.mean(request.function, id);
            let short = |id: LayerId| allowed(id) && mean(id).is_none_or(|mean| mean < wait);
            let Some(layer) = self.slot(request, &short) else { continue };
            if looked.contains(&request.function) {
                continue;
            }
            looked.push(request.function);
            if outlook.estimate(request, layer).is_none_or(|estimate| estimate < wait) {
                return Some((*request, layer));
            }
        }
        None
    }

    fn sets(&self) -> BTreeMap<Set, Vec<Request>> {
        let mut sets: BTreeMap<Set, Vec<Request>> = BTreeMap::new();
        for request in &self.ready {
            sets.entry(set(request)).or_default().push(*request);
        }
        sets.values_mut().for_each(|members| members.sort_by_key(|it| self.order(it)));
        sets
    }

    fn starving(&self) -> Vec<Request> {
        let outlook = self.outlook();
        let full = self.passed.values().filter(|(_, count)| *count >= self.starve_max);
        let oldest = full.filter_map(|(task, _)| self.ready.iter().find(|it| it.task == *task));
        let mut all: Vec<Request> =
            oldest.copied().filter(|it| outlook.layers_for(it).next().is_some()).collect();
        all.sort_by_key(arrival);
        all
    }

    fn next(&self) -> Option<(Request, LayerId)> {
        let (outlook, starving) = (self.outlook(), self.starving());
        let closed_by = |by: &[Request], id: LayerId| {
            by.iter().any(|it| outlook.layers_for(it).any(|layer| layer == id))
        };
        let fed = (0..starving.len()).find_map(|at| {
            let layer = self.slot(&starving[at], &|id| !closed_by(&starving[..at], id))?;
            Some((starving[at], layer))
        });
        let mut found: Vec<(Request, LayerId)> = Vec::new();
        for members in self.sets().values() {
            let Some(first) = self.pick(members, &|_| true) else { continue };
            let passes = starving.iter().any(|it| arrival(it) < arrival(&first.0));
            found.extend(match passes {
                true => self.pick(members, &|id| !closed_by(&starving, id)),
                false => Some(first),
            });
        }
        if let Some((fed, _)) = fed {
            found.retain(|(request, _)| request.priority > fed.priority);
        }
        found.sort_by_key(|(request, _)| self.order(request));
        found.first().copied().or(fed)
    }

    /// Who is the oldest of each set now; counts start anew where it is another.
    fn count_anew(&mut self) {
        let mut oldest: BTreeMap<Set, Request> = BTreeMap::new();
        for request in &self.ready {
            let first = oldest.entry(set(request)).or_insert(*request);
            if arrival(request) < arrival(first) {
                *first = *request;
            }
        }
        let before = core::mem::take(&mut self.passed);
        for (set, request) in oldest {
            let same = before.get(&set).filter(|(task, _)| *task == request.task);
            self.passed.insert(set, (request.task, same.map_or(0, |(_, count)| *count)));
        }
    }

    fn begin(&mut self, request: Request, layer: LayerId) {
        self.layers.grant(layer, request.constraint);
        self.estimates.started(&request, layer, self.now);
        self.ready.retain(|it| it.task != request.task);
        self.count_anew();
        let idle = self.layers.idle(layer);
        let takes = |oldest: &Request| {
            let Constraint { bandwidth, size, way } = oldest.constraint;
            oldest.may_use(layer) && bandwidth <= idle.bandwidth(way) && size <= idle.size
        };
        for (task, count) in self.passed.values_mut() {
            let oldest = self.ready.iter().find(|it| it.task == *task).expect("it is ready");
            if takes(oldest) && arrival(oldest) < arrival(&request) {
                *count += 1;
            }
        }
        self.running.push((request, layer, self.now));
    }

    fn end(&mut self, at: usize) {
        let (request, layer, since) = self.running.swap_remove(at);
        self.layers.give_back(layer, request.constraint);
        let ran = Some(self.now - since);
        self.estimates.off(request.task, request.function, layer, ran);
    }
}

fn request(dice: &mut Dice, serial: u64, plain: bool) -> Request {
    let task = TaskId(Key { index: serial as u32, generation: 0 });
    let bandwidth = [0, 20, 50, 100, 150, 300][dice.roll(6) as usize];
    let layer = match dice.roll(6) {
        0 if bandwidth <= 100 => Some(LayerId(dice.roll(3) as u32)),
        _ => None,
    };
    let mut not = Mask::default();
    if dice.roll(12) == 0 && layer.is_none() && bandwidth <= 100 {
        not.insert(LayerId(dice.roll(3) as u32));
    }
    Request {
        task,
        kind: if dice.roll(4) == 0 { Kind::Engine } else { Kind::Io },
        function: FunctionId(dice.roll(4) as u32),
        priority: if plain { 0 } else { dice.roll(2) as i32 },
        serial,
        constraint: Constraint {
            bandwidth,
            size: dice.roll(3) * 40,
            way: Way::ALL[dice.roll(3) as usize],
        },
        layer,
        not,
    }
}

/// A random run; the policy and the model say the same all along. Gives the most that the oldest
/// of a set was passed.
fn compare(kind: PolicyKind, seed: u64, starve_max: u32, plain: bool) -> u32 {
    let mut dice = Dice(seed);
    let mut bench = Bench::new(kind, starve_max);
    let mut policy = policy(kind, starve_max);
    let mut most = 0;
    for serial in 0..400 {
        bench.now += dice.roll(100_000_000);
        if bench.ready.len() < 40 || dice.roll(3) == 0 {
            let request = request(&mut dice, serial, plain);
            policy.groups_mut().push(request);
            bench.ready.push(request);
            bench.count_anew();
        }
        if dice.roll(20) == 0 {
            let layer = LayerId(dice.roll(3) as u32);
            bench.layers.set_down(layer, dice.roll(2) == 0 && !plain);
        }
        if dice.roll(8) == 0 && !bench.ready.is_empty() {
            let at = dice.roll(bench.ready.len() as u64) as usize;
            policy.groups_mut().remove(&bench.ready.remove(at));
            bench.count_anew();
        }
        for _ in 0..dice.roll(3).min(bench.running.len() as u64) {
            bench.end(dice.roll(bench.running.len() as u64) as usize);
        }
        loop {
            let found = policy.next(&bench.room(), &bench.outlook());
            let found = found.map(|(request, slot)| (request, slot.layer.expect("a layer")));
            let expected = bench.next();
            assert_eq!(found, expected, "{kind:?}, seed {seed}, at {serial}");
            let Some((request, layer)) = found else { break };
            policy.groups_mut().remove(&request);
            policy.groups_mut().started(&request, Some((layer, bench.layers.idle(layer))));
            bench.begin(request, layer);
            most = bench.passed.values().map(|(_, count)| *count).max().unwrap_or(0).max(most);
        }
        assert_eq!(policy.groups().is_empty(), bench.ready.is_empty());
    }
    most
}

const ALL: [PolicyKind; 3] = [PolicyKind::Fcfs, PolicyKind::Priority, PolicyKind::Backfilling];

#[test]
fn every_policy_does_what_its_rule_says() {
    for kind in ALL {
        for seed in 0..60 {
            compare(kind, seed, [3, 20, 256][seed as usize % 3], false);
        }
    }
}

#[test]
fn nobody_is_passed_more_often_than_the_bound() {
    for kind in ALL {
        let most = (0..60).map(|seed| compare(kind, seed, 4, true)).max();
        assert_eq!(most, Some(4), "{kind:?}: reached, and not exceeded");
    }
}
