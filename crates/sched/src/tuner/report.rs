//! What the tuner tells: its state, what it learned, and whether its books are right.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use graph::TaskId;

use super::learning::Phase;
use super::{Learned, Needs, Progress, Tuned, Tuner, Tuning, WindowKey};
use crate::api::{Constraint, FunctionId, Kind, LayerId};
use crate::sched::Sched;

impl Sched {
    /// What tuning does now, for each function and layer that it has met.
    pub fn tuned(&self) -> Vec<Tuned> {
        let tuner = &self.tuner;
        let name = |kind: u32| self.layers.layer(tuner.first_of(kind)).name.clone();
        let learners = tuner.learners.iter().filter_map(|(key, learner)| {
            let (function, tuning, size_class, kind, Needs { kind: slots, way }) = *key;
            let progress = match &learner.phase {
                Phase::New => return None,
                Phase::Settled(constraint) => Progress::Chosen { constraint: *constraint },
                Phase::Learning(epoch) => Progress::Learning {
                    constraint: epoch.constraint,
                    ended: epoch.ended,
                    most: epoch.most,
                    layer: epoch.ground.layer,
                },
            };
            Some(Tuned {
                function,
                tuning,
                size_class,
                slots,
                way,
                layer: name(kind),
                progress,
                registry: learner.registry.entries().to_vec(),
                epochs: learner.epochs.clone(),
                told_ns: learner.told_ns,
                abandoned: learner.abandoned,
                varies: learner.spread.varies(),
            })
        });
        let windows = tuner.windows.iter().map(|(key @ (function, layer, needs), window)| {
            let tasks = window.tasks(self.io_slots(*layer, needs.kind).max(1));
            let curve = tuner.curves.get(&tuner.curve_key(key));
            let bytes = curve.is_some_and(|curve| curve.bytes);
            let rate = window.rate * if bytes { 1.0 } else { 1000.0 };
            Tuned {
                function: *function,
                tuning: Tuning::Adaptive,
                size_class: 0,
                slots: needs.kind,
                way: needs.way,
                layer: self.layers.layer(*layer).name.clone(),
                progress: Progress::Window { tasks, rate: rate as u64, layer: *layer },
                registry: Vec::new(),
                epochs: Vec::new(),
                told_ns: 0,
                abandoned: 0,
                varies: false,
            }
        });
        learners.chain(windows).collect()
    }

    /// What was learned, to be loaded by a later session.
    pub fn learned(&self) -> Vec<Learned> {
        let of = |entry: &Tuned| {
            let function = self.function_name(entry.function)?.clone();
            let complete = matches!(entry.progress, Progress::Chosen { .. });
            (complete && !entry.registry.is_empty()).then(|| Learned {
                function,
                size_class: entry.size_class,
                layer: entry.layer.clone(),
                entries: entry.registry.clone(),
            })
        };
        self.tuned().iter().filter_map(of).collect()
    }

    /// Takes in what earlier sessions learned. Functions that have tasks already learn on.
    pub fn load(&mut self, learned: Vec<Learned>) {
        self.tuner.loaded = learned;
    }

    /// What a task at an executor holds of a layer.
    pub fn grant_of(&self, task: TaskId) -> Option<(LayerId, Constraint)> {
        let executor = self.executors.all.get(self.record(task)?.executor?)?;
        executor.tasks().find(|sent| sent.task == task)?.grant
    }

    /// Whether the tuner wants to know what the run of a task moves.
    pub fn is_tuned(&self, task: TaskId) -> bool {
        self.tuner.flights.contains_key(&task)
    }

    /// Whether a task belongs to an epoch that goes on.
    pub fn is_learning(&self, task: TaskId) -> bool {
        let epoch = self.tuner.flights.get(&task).and_then(|flight| flight.epoch);
        epoch.is_some_and(|(id, number)| {
            let epoch = self.tuner.learners[id as usize].1.epoch();
            epoch.is_some_and(|epoch| epoch.number == number)
        })
    }

    /// For which function a layer is set aside, if it is.
    pub fn set_aside(&self, layer: LayerId) -> Option<FunctionId> {
        let id = (*self.tuner.aside.get(layer.0 as usize)?)?;
        Some(self.tuner.learners[id as usize].0 .0)
    }

    /// What a live task is now: one for I/O executors, although the engine was asked first.
    pub fn kind_of(&self, task: TaskId) -> Option<Kind> {
        self.record(task).map(|record| record.kind)
    }

    /// How many I/O tasks of a kind may run at once on the nodes that reach a layer, if something
    /// besides the slots limits them.
    pub fn io_slots(&self, layer: LayerId, kind: Kind) -> u32 {
        let nodes = self.executors.reaching(&self.layers, layer);
        nodes.map(|node| node.io_slots_all(kind)).sum()
    }

    pub(crate) fn validate_tuner(&self) -> Result<(), String> {
        for task in self.tuner.flights.keys() {
            if self.grant_of(*task).is_none() {
                return Err(format!("{task:?} is tuned and holds nothing of a layer"));
            }
        }
        self.tuner.validate()
    }
}

impl Tuner {
    fn first_of(&self, kind: u32) -> LayerId {
        let at = self.kinds.iter().position(|other| *other == kind);
        LayerId(at.expect("a kind is of some layer") as u32)
    }

    fn validate(&self) -> Result<(), String> {
        let mut running: BTreeMap<WindowKey, u32> = BTreeMap::new();
        let mut epochs: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for flight in self.flights.values() {
            let group = &self.groups[flight.group as usize];
            *running.entry((group.function, flight.layer, group.needs)).or_default() += 1;
            if let Some(epoch) = flight.epoch {
                *epochs.entry(epoch).or_default() += 1;
            }
        }
        for (key, window) in &self.windows {
            let adaptive = self.flights.values().filter(|flight| {
                let group = &self.groups[flight.group as usize];
                let own = (group.function, flight.layer, group.needs) == *key;
                group.tuning == Tuning::Adaptive && own
            });
            if window.running as usize != adaptive.count() {
                return Err(format!("{key:?} notes {} running", window.running));
            }
        }
        for (id, (key, learner)) in self.learners.iter().enumerate() {
            let Some(epoch) = learner.epoch() else { continue };
            let expected = epochs.get(&(id as u32, epoch.number)).copied().unwrap_or(0);
            if epoch.running != expected {
                return Err(format!("an epoch of {key:?} notes {} of {expected}", epoch.running));
            }
            let set = self.aside[epoch.ground.layer.0 as usize] == Some(id as u32);
            if epoch.running > 0 && !set {
                return Err(format!("an epoch of {key:?} runs on a layer that is not set aside"));
            }
        }
        for (id, group) in self.groups.iter().enumerate() {
            let listed = self.ready.contains(&(id as u32));
            if group.line.is_empty() == listed || (group.ready > 0) != listed {
                return Err(format!(
                    "group {id} has {} ready and is listed: {listed}",
                    group.ready
                ));
            }
        }
        Ok(())
    }
}
