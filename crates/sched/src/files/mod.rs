//! Files: which layer their bytes take up, which tasks are to use them, which could be elsewhere.
//!
//! The driver says where a file is ([`Event::FileAt`](crate::Event::FileAt)) and moves it when
//! asked to. Bytes of files count against their layer as grants do, and stay when the task that
//! wrote them has ended. [`plan`] decides what moves and when, [`answers`] takes what the driver
//! says.
//!
//! A file is *cold* if no task that was submitted will use it, and could then lie lower; *warm* if
//! tasks will read it, none will write it, and a higher layer exists. What changed is looked at
//! once, after the event, so that an event costs what it touched.

mod answers;
mod plan;
mod users;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use graph::{DatumId, TaskId};

pub(crate) use self::answers::At;
pub(crate) use self::users::Use;
use self::users::Users;
use crate::api::{Config, Layer, LayerId};
use crate::layers::Layers;

/// A move that was asked for and not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moving {
    from: LayerId,
    to: Option<LayerId>,
    keep: bool,
    /// What is set aside for it where it goes.
    bytes: u64,
}

/// What the driver said of a file.
#[derive(Debug)]
pub(crate) struct File {
    layer: Option<LayerId>,
    bytes: u64,
    home: Option<LayerId>,
    scratch: bool,
    /// It was there before, and its bytes there are not counted.
    found: bool,
    /// Where a second copy is, higher than `layer`.
    upper: Option<LayerId>,
    moving: Option<Moving>,
    /// Moves of it that failed since it was last written.
    failures: u32,
    /// The last move found no room, and none came since.
    refused: bool,
    /// Its removal was asked for.
    removed: bool,
    /// Its place among the cold: its layer, and when it became so.
    cold: Option<(LayerId, u64)>,
}

/// What is known of all files.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Whether the uses of data by tasks are counted. Where there is one layer without a limit and
    /// nothing is to move they are not: nobody would look, and every task would pay. Then nothing
    /// is removed either.
    tracked: bool,
    flush: bool,
    prefetch: bool,
    files: BTreeMap<DatumId, File>,
    users: BTreeMap<DatumId, Users>,
    /// Something changed for these since they were last looked at.
    touched: VecDeque<DatumId>,
    /// By layer, longest first.
    cold: BTreeSet<((LayerId, u64), DatumId)>,
    colds: u64,
    /// Cold ones that no layer has room for. Looked at again when room came to be.
    without_room: BTreeSet<DatumId>,
    room_came: bool,
    warm: BTreeSet<DatumId>,
    /// Where the next look at the warm begins.
    warm_after: Option<DatumId>,
    moves: BTreeMap<DatumId, Moving>,
    held: bool,
    /// Ready tasks that write what is being moved.
    parked: BTreeMap<DatumId, Vec<TaskId>>,
}

impl File {
    /// The layers on which it takes up room.
    fn counted(&self) -> impl Iterator<Item = LayerId> {
        self.layer.filter(|_| !self.found).into_iter().chain(self.upper)
    }
}

impl Files {
    pub(crate) fn new(config: &Config) -> Files {
        let limits = |layer: &Layer| layer.capacity.is_some() || layer.watermarks.is_some();
        let limited = config.layers.iter().any(limits);
        let (flush, prefetch) = (config.flush, config.prefetch);
        let tracked = flush || prefetch || limited || config.layers.len() > 1;
        Files { tracked, flush, prefetch, ..Files::default() }
    }

    /// Something changed for a datum.
    pub(crate) fn touch(&mut self, datum: DatumId) {
        if self.tracked && self.files.contains_key(&datum) {
            self.touched.push_back(datum);
        }
    }

    /// Takes a file off the lists of those that could move.
    fn unlist(&mut self, datum: DatumId) {
        let Some(file) = self.files.get_mut(&datum) else { return };
        if let Some(place) = file.cold.take() {
            self.cold.remove(&(place, datum));
        }
        self.without_room.remove(&datum);
        self.warm.remove(&datum);
    }

    fn list_cold(&mut self, datum: DatumId, layer: LayerId) {
        self.colds += 1;
        let place = (layer, self.colds);
        if let Some(file) = self.files.get_mut(&datum) {
            file.cold = Some(place);
            self.cold.insert((place, datum));
        }
    }

    /// Whether there is something to plan.
    pub(crate) fn may_move(&self) -> bool {
        !self.files.is_empty() || self.held
    }

    /// Whether a move is under way, or one could be begun as far as room goes.
    pub(crate) fn may_make_room(&self) -> bool {
        !self.moves.is_empty() || !self.cold.is_empty() || self.room_came
    }

    /// What takes up room on a layer, by its own account: there, and on its way there.
    fn sums(&self) -> BTreeMap<LayerId, (u64, u64)> {
        let mut sums: BTreeMap<LayerId, (u64, u64)> = BTreeMap::new();
        for file in self.files.values() {
            for layer in file.counted() {
                sums.entry(layer).or_default().0 += file.bytes;
            }
            if let Some(Moving { to: Some(to), bytes, .. }) = file.moving {
                sums.entry(to).or_default().1 += bytes;
            }
        }
        sums
    }

    /// Whether the books agree with each other, and with those of the layers.
    pub(crate) fn validate(&self, layers: &Layers) -> Result<(), String> {
        let sums = self.sums();
        for layer in layers.ids() {
            let (stored, expected) = sums.get(&layer).copied().unwrap_or_default();
            let noted = (layers.stored(layer).unwrap_or(0), layers.expected(layer));
            if noted != (stored, expected) {
                return Err(format!("{layer:?} notes {noted:?} bytes of {stored}, {expected}"));
            }
        }
        for (datum, file) in &self.files {
            if file.moving != self.moves.get(datum).copied() {
                return Err(format!("{datum:?} moves {:?}", file.moving));
            }
            let listed = file.cold.is_some_and(|place| self.cold.contains(&(place, *datum)));
            if file.cold.is_some() != listed || (file.moving.is_some() && listed) {
                return Err(format!("{datum:?} is listed wrongly among the cold"));
            }
        }
        if self.cold.len() > self.files.len() || self.moves.len() > plan::MOVES_MAX {
            return Err(format!("{} cold files, {} moves", self.cold.len(), self.moves.len()));
        }
        let idle = self.parked.keys().find(|datum| !self.moves.contains_key(datum));
        idle.map_or(Ok(()), |datum| Err(format!("tasks wait for {datum:?}, which does not move")))
    }
}
