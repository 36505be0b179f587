//! Files on layers: no grant beyond what files leave, whole copies only, moves while no I/O goes
//! on, removal of what nobody can read, and the same sums as the scheduler's.
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
    pub fn new(layers: &[Layer]) -> Files {
        let usable = layers.iter().map(|layer| layer.capacity).collect();
        let down = vec![false; layers.len()];
        Files { layers: layers.to_vec(), usable, down, files: Map::default(), held: false }
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
        let Layer { bandwidth, capacity, .. } = &self.layers[layer.0 as usize];
        let (bandwidth, capacity) = (bandwidth.unwrap_or(u64::MAX), capacity.unwrap_or(u64::MAX));
        (bandwidth, Reverse(capacity))
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
        if seen.near > 0 || (seen.ready > 0 && seen.running > 0) {
            return wrong("I/O goes on");
        }
        if let Some(to) = moving.to {
            let (stored, expected) = self.sums(to);
            let most = self.usable[to.0 as usize];
            if most.is_some_and(|most| stored + expected + file.bytes > most) {
                return wrong("there is no room");
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
        Ok(())
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
