//! Files on layers: no grant beyond what files leave, whole copies only, moves while no I/O goes
//! on or from layers above their watermarks, removal of what nobody can read, and the same sums as
//! the scheduler's.
//!
//! The account is a list of files, each with the layers that it takes up; sums are made anew each
//! time. What a task uses is asked of the world, at the moment of each instruction.

use std::cmp::Reverse;

use sched::{Layer, LayerId, NodeId, Sched};

use super::Fault;
use crate::hash::Map;

/// A move that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moving {
    /// From where.
    pub from: LayerId,
    /// To where; `None`: outside all layers.
    pub to: Option<LayerId>,
    /// Whether the original stays.
    pub keep: bool,
    /// Which of all moves.
    pub serial: u64,
}

/// A file, by the number of its datum.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Where it is.
    pub layer: Option<LayerId>,
    /// Its bytes.
    pub bytes: u64,
    /// Where its own path is.
    pub home: Option<LayerId>,
    /// Whether it goes with the session.
    pub scratch: bool,
    /// Whether it was there before: its bytes there are not the session's.
    pub found: bool,
    /// Where a second copy is.
    pub upper: Option<LayerId>,
    /// Whether it moves.
    pub moving: Option<Moving>,
    /// Whether its removal was asked for.
    pub removed: bool,
}

/// What goes on with a file and with I/O at the moment of an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Tasks that were taken, are not over, and read it.
    pub readers: usize,
    /// Likewise, and write it.
    pub writers: usize,
    /// Whether the program can name it.
    pub named: bool,
    /// Readers at executors: they may have it open.
    pub open: usize,
    /// I/O tasks at executors of the nodes that the move is about.
    pub near: usize,
    /// I/O tasks at any executor.
    pub running: usize,
    /// I/O tasks that are ready and not sent.
    pub ready: usize,
}

/// The account.
#[derive(Debug)]
pub struct Files {
    layers: Vec<Layer>,
    usable: Vec<Option<u64>>,
    down: Vec<bool>,
    flush: bool,
    /// By layer: what the scheduler said when it last handled something: whether files leave it
    /// although I/O goes on.
    drains: Vec<bool>,
    /// Likewise, the time before.
    drained: Vec<bool>,
    /// By layer: what files took up before its last instructions were obeyed.
    before: Vec<u64>,
    /// By number of the datum.
    pub files: Map<usize, File>,
    /// Whether moves are paused.
    pub held: bool,
}

fn fault(message: String) -> Fault {
    Fault::new("files", message)
}

impl Files {
    /// No file is known.
    pub fn new(layers: &[Layer], flush: bool) -> Files {
        let usable = layers.iter().map(|layer| layer.capacity).collect();
        Files {
            layers: layers.to_vec(),
            usable,
            down: vec![false; layers.len()],
            flush,
            drains: vec![false; layers.len()],
            drained: vec![false; layers.len()],
            before: vec![0; layers.len()],
            files: Map::default(),
            held: false,
        }
    }

    fn ids(&self) -> impl Iterator<Item = LayerId> {
        (0..self.layers.len() as u32).map(LayerId)
    }

    /// Whether files, with so many bytes more, take up more than this part of a layer.
    fn is_above(&self, layer: LayerId, permille: u32, more: u64) -> bool {
        let (stored, expected) = self.sums(layer);
        let usable = self.usable[layer.0 as usize];
        usable.is_some_and(|most| (stored + expected + more) * 1000 > most * u64::from(permille))
    }

    /// The scheduler has handled something, and nothing of what it said was obeyed yet.
    pub fn handled(&mut self, sched: &Sched) {
        if self.layers.iter().all(|layer| layer.watermarks.is_none()) {
            return;
        }
        self.before = self.ids().map(|id| self.sums(id)).map(|sums| sums.0 + sums.1).collect();
        let drains = self.ids().map(|id| sched.drains(id)).collect();
        self.drained = std::mem::replace(&mut self.drains, drains);
    }

    /// Whether a move is one that I/O does not hold up.
    pub fn leaves(&self, moving: Moving) -> bool {
        !moving.keep && self.drains[moving.from.0 as usize]
    }

    /// Likewise, and all was obeyed: files begin to leave a layer above its high watermark only,
    /// and stay again at its low one.
    fn check_watermarks(&self) -> Result<(), Fault> {
        for layer in self.ids() {
            let (at, (stored, expected)) = (layer.0 as usize, self.sums(layer));
            let Some(marks) = self.layers[at].watermarks else { continue };
            let (before, now) = (self.before[at], stored + expected);
            let (least, most) = (before.min(now), before.max(now));
            let mark = u64::from(if self.drained[at] { marks.low } else { marks.high });
            let usable = self.usable[at];
            let right = match (usable, self.drains[at]) {
                (None, drains) => !drains,
                (Some(usable), true) => most * 1000 > usable * mark,
                (Some(usable), false) => least * 1000 <= usable * mark,
            };
            if !right {
                let (before, now) = (self.drained[at], self.drains[at]);
                let message = format!("{layer:?}: {least} to {most} of {usable:?}, {marks:?}");
                return Err(fault(format!("{message}, drained {before}, drains {now}")));
            }
        }
        Ok(())
    }

    /// The layer takes nothing, or takes something again.
    pub fn set_down(&mut self, layer: LayerId, down: bool) {
        self.down[layer.0 as usize] = down;
    }

    /// What can be used of a layer is another.
    pub fn set_usable(&mut self, layer: LayerId, bytes: Option<u64>) {
        self.usable[layer.0 as usize] = bytes;
    }

    /// Bytes that are on a layer, and on their way to it.
    pub fn sums(&self, layer: LayerId) -> (u64, u64) {
        let here = |other: &Option<LayerId>| *other == Some(layer);
        let (mut stored, mut expected) = (0, 0);
        for file in self.files.values() {
            let own = here(&file.layer) && !file.found;
            let copies = u64::from(own) + u64::from(here(&file.upper));
            stored += file.bytes * copies;
            let comes = file.moving.is_some_and(|moving| here(&moving.to));
            expected += if comes { file.bytes } else { 0 };
        }
        (stored, expected)
    }

    /// How high a layer is: by bandwidth, and of equals that of less capacity is higher.
    fn rank(&self, layer: LayerId) -> (u64, Reverse<u64>) {
        let Layer { bandwidth, read_bandwidth, write_bandwidth, capacity, .. } =
            &self.layers[layer.0 as usize];
        let least = [bandwidth, read_bandwidth, write_bandwidth].into_iter().copied().flatten();
        (least.min().unwrap_or(u64::MAX), Reverse(capacity.unwrap_or(u64::MAX)))
    }

    /// The node of a layer; `None`: every node reaches it.
    pub fn node(&self, layer: LayerId) -> Option<NodeId> {
        self.layers[layer.0 as usize].node
    }

    /// A task was sent; so many bytes are granted of its layer with it (0: it needs none).
    pub fn run(&self, task: usize, layer: LayerId, granted: u64) -> Result<(), Fault> {
        let fault = |message: String| Err(Fault::of_task("files", task, message));
        if self.down[layer.0 as usize] {
            return fault(format!("sent to {layer:?}, which is down"));
        }
        let (stored, expected) = self.sums(layer);
        match self.usable[layer.0 as usize] {
            // A task that asks for no room may go to a full layer.
            Some(most) if granted + stored + expected > most && granted > 0 => fault(format!(
                "{granted} granted of {layer:?} beside {stored} stored and {expected} expected of \
                 {most}"
            )),
            _ => Ok(()),
        }
    }

    /// A task that writes a file is sent.
    pub fn writes(&self, task: usize, datum: usize) -> Result<(), Fault> {
        let Some(file) = self.files.get(&datum) else { return Ok(()) };
        match file.moving.is_some() || file.upper.is_some() {
            true => Err(Fault::of_task("files", task, format!("writes d{datum}: {file:?}"))),
            false => Ok(()),
        }
    }

    /// A move is asked for.
    pub fn begins(&mut self, datum: usize, moving: Moving, seen: Seen) -> Result<(), Fault> {
        let wrong = |what: &str| Err(fault(format!("d{datum} {moving:?}: {what}; {seen:?}")));
        let to_down = moving.to.is_some_and(|to| self.down[to.0 as usize]);
        let Some(file) = self.files.get(&datum) else { return wrong("not known") };
        if file.layer != Some(moving.from) || file.moving.is_some() || file.removed {
            return wrong("is not there, or moves, or is removed");
        }
        if to_down || self.down[moving.from.0 as usize] {
            return wrong("the layer is down");
        }
        if seen.writers > 0 || (seen.readers > 0) != moving.keep || file.upper.is_some() {
            return wrong("tasks use it, or none reads it");
        }
        let home = if file.scratch { moving.to } else { file.home };
        let rank = |layer: LayerId| self.rank(layer);
        if moving.keep && moving.to.is_none_or(|to| rank(to) <= rank(moving.from)) {
            return wrong("a copy belongs above");
        }
        if !moving.keep && (home != moving.to || (file.scratch && moving.to.is_none())) {
            return wrong("not where it belongs");
        }
        if !moving.keep && file.scratch && !seen.named {
            return wrong("nobody can read it");
        }
        let leaves = self.leaves(moving);
        if !leaves && (seen.near > 0 || (seen.ready > 0 && seen.running > 0)) {
            return wrong("I/O goes on");
        }
        let marks = self.layers[moving.from.0 as usize].watermarks;
        let wanted = moving.keep || self.flush || (marks.is_some() && (leaves || seen.ready > 0));
        if !wanted {
            return wrong("nobody wants it to leave");
        }
        if let Some(to) = moving.to {
            let (stored, expected) = self.sums(to);
            let most = self.usable[to.0 as usize];
            if most.is_some_and(|most| stored + expected + file.bytes > most) {
                return wrong("there is no room");
            }
            let high = self.layers[to.0 as usize].watermarks.map(|marks| marks.high);
            if moving.keep && high.is_some_and(|high| self.is_above(to, high, file.bytes)) {
                return wrong("copied above the high watermark");
            }
        }
        self.files.get_mut(&datum).expect("looked").moving = Some(moving);
        Ok(())
    }

    /// The second copy of a file goes, which nobody has open unless a task is about to write.
    pub fn drop_copy(&mut self, datum: usize, layer: LayerId, seen: Seen) -> Result<(), Fault> {
        if seen.open > 0 && seen.writers == 0 {
            return Err(fault(format!("the copy of d{datum} on {layer:?} is dropped: {seen:?}")));
        }
        match self.files.get_mut(&datum) {
            Some(file) if file.upper == Some(layer) && file.layer.is_some() => {
                file.upper = None;
                Ok(())
            }
            file => Err(fault(format!("d{datum} has no second copy on {layer:?}: {file:?}"))),
        }
    }

    /// A file goes.
    pub fn remove(&mut self, datum: usize, seen: Seen) -> Result<(), Fault> {
        let wrong = format!("d{datum} is removed: {seen:?}");
        let Some(file) = self.files.get_mut(&datum) else { return Err(fault(wrong)) };
        let unread = seen.readers == 0 && seen.writers == 0 && !seen.named;
        if !file.scratch || !unread || file.moving.is_some() || file.removed {
            return Err(fault(format!("{wrong} {file:?}")));
        }
        file.removed = true;
        Ok(())
    }

    /// After an event: the sums are the scheduler's.
    pub fn check(&self, sched: &Sched) -> Result<(), Fault> {
        for layer in (0..self.layers.len() as u32).map(LayerId) {
            let stored = self.sums(layer).0;
            if sched.stored(layer) != Some(stored) {
                let theirs = sched.stored(layer);
                return Err(fault(format!("{layer:?} has {stored} bytes, noted {theirs:?}")));
            }
        }
        self.check_watermarks()
    }

    /// Nothing is named any more, and nothing goes on: no scratch file and no second copy is left,
    /// nothing moves.
    pub fn end(&self) -> Result<(), Fault> {
        let stays = |file: &File| file.scratch || file.upper.is_some() || file.moving.is_some();
        let left = self.files.iter().find(|(_, file)| stays(file));
        match left {
            Some((datum, file)) => Err(fault(format!("d{datum} is left: {file:?}"))),
            None => Ok(()),
        }
    }
}
