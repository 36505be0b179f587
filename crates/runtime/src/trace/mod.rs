//! The trace: one fixed-size record an event, always on.
//!
//! Without `record` the last [`RING_RECORDS_MAX`] records are kept in memory. With it all are,
//! in an unlinked temporary file. Everything that draws or tells what happened (timeline,
//! graph, dashboard) reads these records and nothing else.

mod achieved;
mod chrome;
mod graph;
mod spool;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

pub(crate) use chrome::write_chrome;
pub(crate) use graph::build as build_graph;
pub use graph::{Graph, GraphEnd, GraphNode};
use spool::Spool;

/// How many records are kept in memory when the trace is not recorded.
pub const RING_RECORDS_MAX: usize = 65_536;
/// The number that stands for "no executor", "no layer" or "no function".
pub const NOTHING: u32 = u32::MAX;

/// What a record tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// A task was submitted; amount: 0 compute, 1 I/O.
    Submitted = 0,
    /// Task `other` must give task `task` a version (only while recording).
    Edge = 1,
    /// A task was sent to an executor; amount: the bandwidth of its grant.
    Sent = 2,
    /// A body ran; time: its start; amount: nanoseconds; other: bytes read and written.
    Ran = 3,
    /// A task is over; amount: 0 done, 1 failed, 2 cancelled.
    Over = 4,
    /// Grants of a layer changed; amount: bytes a second now granted; other: I/O tasks there.
    Granted = 5,
    /// An executor is ready; amount: its slots; other: 0 compute, 1 I/O; task: process.
    ExecutorUp = 6,
    /// An executor is gone.
    ExecutorLost = 7,
    /// The object store changed; amount: bytes in use.
    Store = 8,
    /// A file was moved or copied between layers; time: the start; amount: nanoseconds; other:
    /// bytes; layer: from where; executor: the layer that it went to, or [`NOTHING`].
    Moved = 9,
}

impl RecordKind {
    const ALL: [RecordKind; 10] = [
        RecordKind::Submitted,
        RecordKind::Edge,
        RecordKind::Sent,
        RecordKind::Ran,
        RecordKind::Over,
        RecordKind::Granted,
        RecordKind::ExecutorUp,
        RecordKind::ExecutorLost,
        RecordKind::Store,
        RecordKind::Moved,
    ];

    /// A stable name, for other languages.
    pub fn name(self) -> &'static str {
        match self {
            RecordKind::Submitted => "submitted",
            RecordKind::Edge => "edge",
            RecordKind::Sent => "sent",
            RecordKind::Ran => "ran",
            RecordKind::Over => "over",
            RecordKind::Granted => "granted",
            RecordKind::ExecutorUp => "executor_up",
            RecordKind::ExecutorLost => "executor_lost",
            RecordKind::Store => "store",
            RecordKind::Moved => "moved",
        }
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, in nanoseconds of `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// What.
    pub kind: RecordKind,
    /// Which task ([`sched::TaskId::to_bits`]).
    pub task: u64,
    /// Which executor, or [`NOTHING`].
    pub executor: u32,
    /// Which layer, or [`NOTHING`].
    pub layer: u32,
    /// Which name (a position in the list of names), or [`NOTHING`].
    pub function: u32,
    /// Depends on the kind.
    pub amount: u64,
    /// Depends on the kind.
    pub other: u64,
}

impl Record {
    /// A record of a kind at a time, with nothing else in it.
    pub(crate) fn new(time_ns: u64, kind: RecordKind) -> Record {
        Record {
            time_ns,
            kind,
            task: 0,
            executor: NOTHING,
            layer: NOTHING,
            function: NOTHING,
            amount: 0,
            other: 0,
        }
    }
}

/// All records that are kept, and the names that they use.
#[derive(Debug)]
pub(crate) struct Trace {
    base_ns: u64,
    ring: Vec<Record>,
    oldest: usize,
    spool: Option<Spool>,
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
    layers: Vec<String>,
}

impl Trace {
    /// An empty trace; times are shown from `base_ns` on.
    pub(crate) fn new(base_ns: u64, record: bool, layers: Vec<String>) -> io::Result<Trace> {
        let spool = if record { Some(Spool::new()?) } else { None };
        let (names, numbers) = (Vec::new(), HashMap::new());
        Ok(Trace { base_ns, ring: Vec::new(), oldest: 0, spool, names, numbers, layers })
    }

    /// Whether everything is kept.
    pub(crate) fn records_all(&self) -> bool {
        self.spool.is_some()
    }

    /// The number of a name.
    pub(crate) fn name(&mut self, name: Arc<str>) -> u32 {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }

    /// All names; [`Record::function`] is the position.
    pub(crate) fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// Adds a record.
    pub(crate) fn push(&mut self, record: Record) {
        if let Some(spool) = &mut self.spool {
            spool.push(record);
        } else if self.ring.len() < RING_RECORDS_MAX {
            self.ring.push(record);
        } else {
            self.ring[self.oldest] = record;
            self.oldest = (self.oldest + 1) % RING_RECORDS_MAX;
        }
    }

    /// What is kept, to be read without holding anything up.
    pub(crate) fn snapshot(&mut self) -> Snapshot {
        let records = match &mut self.spool {
            Some(spool) => spool.reader(),
            None => {
                let (late, early) = self.ring.split_at(self.oldest);
                spool::Reader::Memory(early.iter().chain(late).copied().collect())
            }
        };
        Snapshot {
            base_ns: self.base_ns,
            records,
            names: self.names.clone(),
            layers: self.layers.clone(),
        }
    }
}

/// The trace as it was at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    base_ns: u64,
    records: spool::Reader,
    names: Vec<Arc<str>>,
    layers: Vec<String>,
}

impl Snapshot {
    /// Calls `each` with every record in the order of their making.
    pub(crate) fn for_each(&self, each: &mut dyn FnMut(Record)) -> io::Result<()> {
        self.records.for_each(each)
    }

    fn name(&self, function: u32) -> &str {
        self.names.get(function as usize).map_or("?", |name| name)
    }

    fn layer(&self, layer: u32) -> &str {
        self.layers.get(layer as usize).map_or("?", |name| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64) -> Record {
        Record { task: time * 3, amount: u64::MAX - time, ..Record::new(time, RecordKind::Sent) }
    }

    fn all(trace: &mut Trace) -> Vec<Record> {
        let mut records = Vec::new();
        trace.snapshot().for_each(&mut |r| records.push(r)).unwrap();
        records
    }

    #[test]
    fn the_ring_keeps_the_newest() {
        let mut trace = Trace::new(0, false, vec![]).unwrap();
        for time in 0..RING_RECORDS_MAX as u64 + 10 {
            trace.push(record(time));
        }
        let kept = all(&mut trace);
        assert_eq!(kept.len(), RING_RECORDS_MAX);
        assert_eq!(kept[0], record(10));
        assert_eq!(kept.last(), Some(&record(RING_RECORDS_MAX as u64 + 9)));
    }

    #[test]
    fn the_spool_keeps_everything() {
        let mut trace = Trace::new(0, true, vec![]).unwrap();
        let count = 3 * RING_RECORDS_MAX as u64;
        for time in 0..count {
            trace.push(record(time));
        }
        let first = all(&mut trace);
        assert_eq!(first.len() as u64, count);
        assert!((0..count).all(|time| first[time as usize] == record(time)));
        trace.push(record(count));
        assert_eq!(all(&mut trace).len() as u64, count + 1);
    }
}
