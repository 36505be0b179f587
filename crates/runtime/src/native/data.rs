//! From addresses to data of the graph: one table for the program, one for the children of each
//! task.
//!
//! The accesses of children order them among their siblings, not against the rest of the program:
//! their parent's own accesses do that, as it is not over before they are.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use graph::{DatumId, DatumKind, Region, TaskId};
use sched::{Instruction, Sched};

/// Data of the program's own table that are kept when no task is left.
const IDLE_DATA_MAX: usize = 4096;

/// Mixes an address by one multiplication; the table uses the high bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let product =
            u128::from(self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

pub(super) type Table<K, V> = HashMap<K, V, BuildHasherDefault<AddressHasher>>;

/// A datum of the program's own table.
#[derive(Clone, Copy, Debug)]
struct Known {
    datum: DatumId,
    in_parts: bool,
}

/// All data that are known.
#[derive(Debug, Default)]
pub(super) struct Data {
    program: Table<usize, Known>,
    /// Those of the program's own table that were used in parts.
    in_parts: Vec<usize>,
    children: Table<u64, Table<usize, DatumId>>,
}

impl Data {
    /// The datum at an address, for a task with this parent that uses this region of it.
    pub(super) fn of(
        &mut self,
        sched: &mut Sched,
        parent: Option<TaskId>,
        base: usize,
        region: &Region,
    ) -> DatumId {
        let mut new =
            || sched.add_datum(DatumKind::InPlace, None).expect("nothing initial can be stale");
        if let Some(parent) = parent {
            let table = self.children.entry(parent.to_bits()).or_default();
            return *table.entry(base).or_insert_with(new);
        }
        let known = self.program.entry(base);
        let known = known.or_insert_with(|| Known { datum: new(), in_parts: false });
        if *region != Region::Whole && !known.in_parts {
            known.in_parts = true;
            self.in_parts.push(base);
        }
        known.datum
    }

    /// A task is over, and so are its children.
    pub(super) fn forget_children(
        &mut self,
        sched: &mut Sched,
        parent: TaskId,
        out: &mut Vec<Instruction>,
    ) {
        if self.children.is_empty() {
            return;
        }
        if let Some(table) = self.children.remove(&parent.to_bits()) {
            table.into_values().for_each(|datum| sched.drop_datum(datum, out));
        }
    }

    /// No task is left. Data with regions are forgotten: their addresses may come back as something
    /// of another shape. If tasks `failed`, all are: what these did not write can be used again.
    pub(super) fn all_is_over(
        &mut self,
        sched: &mut Sched,
        failed: bool,
        out: &mut Vec<Instruction>,
    ) {
        if failed || self.program.len() > IDLE_DATA_MAX {
            self.in_parts.clear();
            let table = std::mem::take(&mut self.program);
            table.into_values().for_each(|known| sched.drop_datum(known.datum, out));
        }
        for base in self.in_parts.drain(..) {
            let known = self.program.remove(&base).expect("it was used in parts");
            sched.drop_datum(known.datum, out);
        }
    }
}
