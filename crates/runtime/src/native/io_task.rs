//! What makes a task an I/O task: what it asks of a layer, what it was granted, what it moved.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `granted` | the core, once, before it sends the task | the task, and who completes its operations |
//! | `started_ns` | the worker that takes it, once | the core, when the task is over |
//! | `moved` | who completes an operation, before the task counts one less | the same |
//!
//! What counts in the task (`Task::left`) orders the last look after everything else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use exec::limiter::Writer;
use sched::LayerId;

use super::io::Operation;
use crate::tuning::Ask;

/// What an I/O task asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Bandwidth, or how it is to be found; `None`: nothing, and it is never held back.
    pub(super) bandwidth: Option<Ask>,
    /// Bytes that it needs on the layer.
    pub(super) size: u64,
    /// Only this layer will do.
    pub(super) layer: Option<LayerId>,
}

/// What a task was granted.
#[derive(Debug)]
struct Granted {
    layer: LayerId,
    /// Where the layer's bandwidth is emulated.
    writer: Option<Writer>,
}

/// The part of a task that only I/O tasks have.
#[derive(Debug, Default)]
pub(super) struct IoTask {
    granted: OnceLock<Granted>,
    started_ns: AtomicU64,
    moved: AtomicU64,
}

impl IoTask {
    /// It has its grant on this layer.
    pub(super) fn grant(&self, layer: LayerId, writer: Option<Writer>) {
        let granted = self.granted.set(Granted { layer, writer });
        assert!(granted.is_ok(), "a task is sent once");
    }

    /// The layer that it may use.
    pub(super) fn layer(&self) -> Option<LayerId> {
        self.granted.get().map(|granted| granted.layer)
    }

    /// Its body begins.
    pub(super) fn begin(&self) {
        self.started_ns.store(exec::now_ns(), Ordering::Relaxed);
    }

    /// Nanoseconds since it began.
    pub(super) fn ran_ns(&self, now: u64) -> u64 {
        now.saturating_sub(self.started_ns.load(Ordering::Relaxed))
    }

    /// Bytes that its operations moved.
    pub(super) fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// An operation is about to begin. Writes pay for an emulated bandwidth now: when the operation
    /// may count as complete, in nanoseconds of the clock.
    pub(super) fn before(&self, operation: &Operation) -> u64 {
        match operation.writes() {
            true => self.pay(operation.bytes()),
            false => 0,
        }
    }

    /// An operation is complete. Reads pay now, for what there was: when it may count as complete,
    /// given what `before` said.
    pub(super) fn after(&self, writes: bool, result: i64, due_ns: u64) -> u64 {
        if result <= 0 {
            return due_ns;
        }
        self.moved.fetch_add(result as u64, Ordering::Relaxed);
        if writes {
            return due_ns;
        }
        self.pay(result)
    }

    fn pay(&self, bytes: i64) -> u64 {
        let writer = self.granted.get().and_then(|granted| granted.writer.as_ref());
        let wait_ns = writer.map_or(0, |writer| writer.acquire(bytes.max(0) as u64));
        if wait_ns == 0 {
            return 0;
        }
        exec::now_ns().saturating_add(wait_ns)
    }
}
