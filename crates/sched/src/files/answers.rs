//! What the driver says of files and layers.

use alloc::vec::Vec;

use graph::DatumId;

use super::File;
use crate::api::{Instruction, LayerId};
use crate::sched::Sched;

/// As in [`crate::Event::FileAt`].
pub(crate) struct At {
    pub(crate) datum: DatumId,
    pub(crate) layer: Option<LayerId>,
    pub(crate) bytes: u64,
    pub(crate) home: Option<LayerId>,
    pub(crate) scratch: bool,
}

impl Sched {
    /// Where the only copy of a file is.
    pub(crate) fn file_at(&mut self, at: At, out: &mut Vec<Instruction>) {
        let At { datum, layer, bytes, home, scratch } = at;
        let known = |layer: &LayerId| (layer.0 as usize) < self.layers.ids().count();
        assert!(layer.iter().chain(&home).all(known), "the driver names known layers");
        self.forget_file(datum, out);
        if let Some(layer) = layer {
            self.layers.store(layer, bytes);
        }
        // Who is the head of a line may be another now.
        self.executors.io_changed = true;
        let (upper, moving, cold) = (None, None, None);
        let (failures, refused, removed) = (0, false, false);
        let found = false;
        let file = File {
            layer,
            bytes,
            home,
            scratch,
            found,
            upper,
            moving,
            failures,
            refused,
            removed,
            cold,
        };
        self.files.files.insert(datum, file);
        self.files.touch(datum);
    }

    /// A file that no task wrote is on a layer.
    pub(crate) fn file_found(&mut self, datum: DatumId, layer: LayerId, bytes: u64) {
        assert!((layer.0 as usize) < self.layers.ids().count(), "the driver names known layers");
        if self.files.files.contains_key(&datum) {
            return;
        }
        let file = File {
            layer: Some(layer),
            bytes,
            home: Some(layer),
            scratch: false,
            found: true,
            upper: None,
            moving: None,
            failures: 0,
            refused: false,
            removed: false,
            cold: None,
        };
        self.files.files.insert(datum, file);
        self.files.touch(datum);
    }

    /// Nothing is known of a file any more. A move of it that is under way is no more answered.
    pub(crate) fn forget_file(&mut self, datum: DatumId, out: &mut Vec<Instruction>) {
        self.files.unlist(datum);
        let Some(file) = self.files.files.remove(&datum) else { return };
        for layer in file.counted() {
            self.layers.unstore(layer, file.bytes);
        }
        if let Some(moving) = self.files.moves.remove(&datum) {
            if let Some(to) = moving.to {
                self.layers.expect_no_more(to, moving.bytes);
            }
        }
        self.room_came();
        self.unpark(datum, out);
    }

    /// A file has another datum from now on, for a driver that lets what failed be used again: what
    /// is known of it stays, a move that is under way too. Its end is told of the new datum.
    ///
    /// # Panics
    ///
    /// If a task that is not over uses the old one.
    pub fn renew_file(&mut self, old: DatumId, new: DatumId) {
        assert!(!self.files.users.contains_key(&old), "no task uses {old:?}");
        self.files.unlist(old);
        let Some(file) = self.files.files.remove(&old) else { return };
        self.files.files.insert(new, file);
        if let Some(moving) = self.files.moves.remove(&old) {
            self.files.moves.insert(new, moving);
        }
        self.files.touch(new);
    }

    /// Tasks that waited for the end of a move go on.
    fn unpark(&mut self, datum: DatumId, out: &mut Vec<Instruction>) {
        for task in self.files.parked.remove(&datum).unwrap_or_default() {
            // One that was cancelled meanwhile is over.
            if self.record(task).is_some() {
                self.enqueue(task, out);
            }
        }
    }

    /// A move is over, well (`Some`: the bytes of the file) or not.
    pub(crate) fn moved_file(
        &mut self,
        datum: DatumId,
        bytes: Option<u64>,
        no_room: bool,
        out: &mut Vec<Instruction>,
    ) {
        let Some(moving) = self.files.moves.remove(&datum) else { return };
        let file = self.files.files.get_mut(&datum).expect("its move was under way");
        file.moving = None;
        if let Some(to) = moving.to {
            self.layers.expect_no_more(to, moving.bytes);
        }
        self.files.room_came |= !self.files.without_room.is_empty();
        self.executors.io_changed = true;
        if let Some(bytes) = bytes {
            file.counted().for_each(|layer| self.layers.unstore(layer, file.bytes));
            file.bytes = bytes;
            file.failures = 0;
            match moving.keep {
                true => file.upper = moving.to,
                false => (file.layer, file.found) = (moving.to, false),
            }
            file.counted().for_each(|layer| self.layers.store(layer, bytes));
        } else {
            file.failures += 1;
            file.refused = no_room && !moving.keep;
        }
        self.files.touch(datum);
        self.unpark(datum, out);
    }

    /// The usable capacity of a layer is another.
    pub(crate) fn layer_capacity(&mut self, layer: LayerId, bytes: Option<u64>) {
        self.layers.set_usable(layer, bytes);
        self.room_came();
    }
}
