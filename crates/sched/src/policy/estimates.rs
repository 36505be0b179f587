//! How long I/O tasks take, and how long those that run will take yet.
//!
//! The estimate of a task on a layer is the mean of its function on layers of that kind (one name
//! and bandwidth, as for the tuner). Until there is one: its size over the bandwidth that it asks
//! for, or what its function moves on average over that. Else it is not known.
//!
//! A task that runs is expected to end when its estimate is over. One that is late has no time
//! left; one that is late by more than its estimate is not counted on any more: it may hang.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cell::Cell;

use graph::TaskId;

use super::{Place, Request, Room, Slot};
use crate::api::{ExecutorId, FunctionId, Kind, LayerId, PolicyKind, Time};
use crate::layers::Layers;

/// How many runs back a mean looks, about.
const MEAN_RUNS: u64 = 32;
const NS_PER_S: u128 = 1_000_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    count: u64,
    value: u64,
}

impl Mean {
    fn add(&mut self, value: u64) {
        self.count = (self.count + 1).min(MEAN_RUNS);
        let (count, before) = (u128::from(self.count), u128::from(self.value));
        self.value = ((before * (count - 1) + u128::from(value)) / count) as u64;
    }
}

/// When a task is expected to end, and until when that is believed.
type Expected = (Time, Time, TaskId);

/// What was measured, and who runs.
#[derive(Debug)]
pub(crate) struct Estimates {
    /// Whether a policy asks for any.
    used: bool,
    /// By layer, as in [`Layers::kinds`].
    kinds: Vec<u32>,
    times: BTreeMap<(FunctionId, u32), Mean>,
    bytes: BTreeMap<FunctionId, Mean>,
    running: BTreeMap<LayerId, BTreeSet<Expected>>,
    expected: BTreeMap<TaskId, (LayerId, Expected)>,
}

impl Estimates {
    pub(crate) fn new(layers: &Layers, policy: PolicyKind) -> Estimates {
        Estimates {
            used: policy != PolicyKind::Fcfs,
            kinds: layers.kinds(),
            times: BTreeMap::new(),
            bytes: BTreeMap::new(),
            running: BTreeMap::new(),
            expected: BTreeMap::new(),
        }
    }

    fn mean(&self, function: FunctionId, layer: LayerId) -> Option<Time> {
        let kind = self.kinds[layer.0 as usize];
        self.times.get(&(function, kind)).map(|mean| mean.value)
    }

    pub(crate) fn estimate(&self, request: &Request, layer: LayerId) -> Option<Time> {
        self.mean(request.function, layer).or_else(|| {
            let bytes = match request.constraint.size {
                0 => self.bytes.get(&request.function)?.value,
                size => size,
            };
            let ns = (u128::from(bytes) * NS_PER_S)
                .checked_div(u128::from(request.constraint.bandwidth))?;
            Some(u64::try_from(ns).unwrap_or(u64::MAX))
        })
    }

    /// A task begins on a layer.
    pub(crate) fn started(&mut self, request: &Request, layer: LayerId, now: Time) {
        let estimate = self.estimate(request, layer).filter(|_| self.used);
        let Some(estimate) = estimate else { return };
        let end = now.saturating_add(estimate);
        let expected = (end, end.saturating_add(estimate), request.task);
        self.running.entry(layer).or_default().insert(expected);
        self.expected.insert(request.task, (layer, expected));
    }

    /// A task is off its layer; if it ended well, after so long.
    pub(crate) fn off(
        &mut self,
        task: TaskId,
        function: FunctionId,
        layer: LayerId,
        ran: Option<Time>,
    ) {
        if let Some((layer, expected)) = self.expected.remove(&task) {
            if let Some(running) = self.running.get_mut(&layer) {
                running.remove(&expected);
                if running.is_empty() {
                    self.running.remove(&layer);
                }
            }
        }
        if let Some(ran) = ran.filter(|_| self.used) {
            let kind = self.kinds[layer.0 as usize];
            self.times.entry((function, kind)).or_default().add(ran);
        }
    }

    /// A task of a function moved so many bytes.
    pub(crate) fn moved(&mut self, function: FunctionId, bytes: u64) {
        self.bytes.entry(function).or_default().add(bytes);
    }
}

/// What a policy can know of the machine at one moment.
pub(crate) struct Outlook<'a> {
    pub(crate) estimates: &'a Estimates,
    pub(crate) layers: &'a Layers,
    /// By layer: whether it is set aside for tasks that do not wait here.
    pub(crate) aside: &'a [Option<u32>],
    pub(crate) now: Time,
    /// When a task that was counted on no longer is: a policy that was asked is to be asked again.
    pub(crate) again_at: Cell<Option<Time>>,
}

impl Outlook<'_> {
    fn is_open(&self, layer: LayerId) -> bool {
        let aside = self.aside.get(layer.0 as usize).copied().flatten();
        aside.is_none() && !self.layers.is_down(layer)
    }

    /// The layers that could take a request if the tasks there ended, highest first.
    pub(crate) fn layers_for<'a>(
        &'a self,
        request: &'a Request,
    ) -> impl Iterator<Item = LayerId> + 'a {
        self.layers.ranked().iter().copied().filter(move |layer| {
            self.is_open(*layer) && request.could_use(*layer, self.layers.idle(*layer))
        })
    }

    pub(crate) fn is_above(&self, one: LayerId, other: LayerId) -> bool {
        self.layers.level(one) < self.layers.level(other)
    }

    /// The room that there would be if no task ran.
    pub(crate) fn idle(&self) -> Room {
        let mut room = Room::default();
        let executor = ExecutorId(0);
        for kind in [Kind::Io, Kind::Engine] {
            if self.layers.is_empty() {
                room.add(Slot { executor, layer: None }, kind, u64::MAX, u64::MAX);
            }
            let open = self.layers.ranked().iter().filter(|layer| self.is_open(**layer));
            for layer in open {
                let slot = Slot { executor, layer: Some(*layer) };
                let spare = self.layers.idle(*layer);
                room.put(Place { slot, kind, spare, extra: false });
            }
        }
        room
    }

    /// The measured mean of a function on a layer.
    pub(crate) fn mean(&self, function: FunctionId, layer: LayerId) -> Option<Time> {
        self.estimates.mean(function, layer)
    }

    /// How long a request takes on a layer.
    pub(crate) fn estimate(&self, request: &Request, layer: LayerId) -> Option<Time> {
        self.estimates.estimate(request, layer)
    }

    /// The shortest remaining time of the tasks on a layer.
    pub(crate) fn remaining(&self, layer: LayerId) -> Option<Time> {
        let mut running = self.estimates.running.get(&layer)?.iter();
        let (end, until, _) = running.find(|(_, until, _)| *until >= self.now)?;
        let again = until.saturating_add(1);
        self.again_at.set(Some(self.again_at.get().map_or(again, |before| before.min(again))));
        Some(end.saturating_sub(self.now))
    }

    /// The shortest remaining time of any I/O task.
    pub(crate) fn shortest_remaining(&self) -> Option<Time> {
        self.estimates.running.keys().filter_map(|layer| self.remaining(*layer)).min()
    }
}
