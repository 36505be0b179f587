//! Sending a task: its inputs, its files, its record.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use exec::process::SendError;
use exec::wire::{Blob, InputMode, List, Path, Run, ToWorker};
use sched::{Direction, Event, ExecutorId, LayerId, Outcome, TaskId};
use smallvec::SmallVec;

use super::state::{Sent, State};
use super::Shared;
use crate::files::Copy;
use crate::store::{Pin, StoreFull, Value};
use crate::trace::RecordKind;
use crate::RUNTIME_ERROR_PREFIX;

/// Where a task is to run, and as what.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) executor: ExecutorId,
    pub(super) attempt: u32,
    pub(super) layer: Option<LayerId>,
}

/// A value as a worker is told of it.
pub(super) fn blob(value: &Value) -> Blob<'_> {
    match value {
        Value::Inline(bytes) => Blob::Inline(bytes),
        Value::Placed(pin) => Blob::Placed { offset: pin.offset(), len: value.len() as u64 },
    }
}

/// The payload of a failure that the runtime itself found.
pub(super) fn runtime_error(text: &str) -> Arc<[u8]> {
    [RUNTIME_ERROR_PREFIX, text.as_bytes()].concat().into()
}

impl State {
    /// Sends a task to its executor.
    pub(super) fn run(&mut self, shared: &Arc<Shared>, id: TaskId, place: Place) {
        if self.engines.has(place.executor) {
            return self.run_by_engine(id, place);
        }
        if self.begins_later(id, place) {
            return;
        }
        self.run_now(shared, id, place);
    }

    /// Sends a task to a worker.
    pub(super) fn run_now(&mut self, shared: &Arc<Shared>, id: TaskId, place: Place) {
        self.place_files(id, place.layer);
        let ready = self.copy_for_groups(shared, id);
        self.send_function(id, place.executor);
        let sent = ready.and_then(|()| self.send(shared, id, place));
        let sent = match sent {
            Ok(sent) => sent,
            Err(full) => {
                let outcome = Outcome::Raised(runtime_error(&full.to_string()));
                let Place { executor, .. } = place;
                let ended = Event::Ended { task: id, executor, outcome, ran: 0 };
                self.sched.handle(exec::now_ns(), ended, &mut self.out);
                return;
            }
        };
        let worker = self.workers.all.get_mut(&place.executor.0).expect("it was sent a task");
        worker.more(exec::now_ns());
        self.was_sent(id, sent);
        self.stream_begins(id);
    }

    /// A task is at its executor.
    pub(super) fn was_sent(&mut self, id: TaskId, sent: Sent) {
        let (executor, layer) = (sent.executor, sent.layer);
        let task = self.tasks.get_mut(id).expect("it was sent");
        task.sent = Some(sent);
        task.released.clear();
        (task.releasing, task.ending) = (0, None);
        let grant = self.sched.grant_of(id);
        let bandwidth = grant.map_or(0, |(_, constraint)| constraint.bandwidth);
        task.granted = bandwidth;
        self.trace_task(RecordKind::Sent, id, |record| {
            record.executor = executor.0;
            record.layer = layer.map_or(crate::trace::NOTHING, |layer| layer.0);
            record.amount = bandwidth;
        });
        if let Some(layer) = layer {
            self.grant(layer, |granted| {
                granted.bandwidth += bandwidth;
                granted.tasks += 1;
            });
        }
    }

    /// Members of a `Concurrent` group change one copy in place: it is made before the first
    /// of them runs, and it is in the heap however small it is.
    fn copy_for_groups(&mut self, shared: &Arc<Shared>, id: TaskId) -> Result<(), StoreFull> {
        let task = self.tasks.get(id).expect("only live tasks run");
        if !task.inputs.contains(&Direction::Concurrent) {
            return Ok(());
        }
        for (bound, direction) in self.sched.bound(id).iter().zip(&task.inputs) {
            let (Direction::Concurrent, Some(read), Some(write)) =
                (direction, bound.read, bound.write)
            else {
                continue;
            };
            if self.versions.get(write).is_some_and(|version| version.value.is_some()) {
                continue;
            }
            let base = self.versions.get(read).and_then(|version| version.value.as_ref());
            let bytes = base.map_or(&self.none[..], Value::as_bytes);
            let copy = Value::Placed(shared.live_store().copy(bytes)?);
            self.versions.get_mut(write).expect("made when it was submitted").value = Some(copy);
        }
        Ok(())
    }

    /// Sends the function of a task, if the worker does not have it.
    fn send_function(&mut self, id: TaskId, executor: ExecutorId) {
        let id = self.tasks.get(id).expect("only live tasks run").function;
        let worker = self.workers.all.get_mut(&executor.0).expect("only live executors run");
        if worker.known.insert(id) {
            let spec = &self.functions.get(&id).expect("kept while tasks need it").spec;
            let (name, asynchronous) = (&*spec.name, spec.asynchronous);
            worker.tell(&ToWorker::Function { id, name, asynchronous, blob: blob(&spec.blob) });
        }
    }

    /// The processors that a layer is attached to, where they are named.
    fn processors_of(&self, layer: LayerId) -> List<u32> {
        let processors = &self.files.layers()[layer.0 as usize].processors;
        processors.iter().map(|number| *number as u32).collect()
    }

    fn send(&mut self, shared: &Arc<Shared>, id: TaskId, place: Place) -> Result<Sent, StoreFull> {
        let task = self.tasks.get(id).expect("only live tasks run");
        let uses = task.files.iter();
        let copies = uses.map(|(datum, way)| self.copy_for(id, *datum, *way));
        let copies: SmallVec<[Copy; 1]> = copies.collect();
        let none = Blob::Inline(&self.none);
        let value = |version| self.versions.get(version)?.value.as_ref();
        let mut inputs: List<(InputMode, Blob<'_>)> = List::new();
        let mut writes: List<u32> = List::new();
        let mut pins: SmallVec<[Pin; 1]> = SmallVec::new();
        for (position, direction) in task.inputs.iter().enumerate() {
            let bound = self.sched.bound(id)[position];
            // Later members of a commutative group go on from what earlier ones made.
            let own = bound.write.filter(|_| direction.grouped()).and_then(value);
            if let Some(Value::Placed(pin)) = own {
                pins.push(pin.clone());
            }
            let found = own.or_else(|| bound.read.and_then(value));
            let mode = match direction {
                Direction::In => InputMode::Read,
                Direction::Concurrent => InputMode::Shared,
                Direction::Out | Direction::InOut | Direction::Commutative => InputMode::Private,
            };
            inputs.push((mode, found.map_or(none, blob)));
            if direction.writes() && *direction != Direction::Concurrent {
                writes.push(position as u32);
            }
        }
        let paths = copies.iter().zip(&task.files).map(|(copy, (_, way))| Path {
            bytes: copy.place.as_os_str().as_bytes(),
            limiter: self.limiter_of(copy),
            written: way.writes(),
        });
        let mut run = Run {
            task: id.to_bits(),
            attempt: place.attempt,
            claim: 0,
            function: task.function,
            arguments: blob(&task.arguments),
            inputs,
            paths: paths.collect(),
            returns: task.returns,
            writes,
            durable: task.durable && task.kind.is_io(),
            processors: place.layer.map_or_else(List::new, |layer| self.processors_of(layer)),
            stream: self.credit_for(id),
        };
        let worker = self.workers.all.get_mut(&place.executor.0).expect("only live executors run");
        let Place { executor, attempt, layer } = place;
        let claim = match worker.process.send_run(&mut run) {
            Ok(claim) => claim,
            Err(SendError::TooManyTasks) => panic!(
                "too many tasks at {executor:?}; the story of {id:?}: {:?}",
                self.sched.story(id)
            ),
            Err(SendError::TooLarge(large)) => {
                let pin = shared.live_store().allocate(large.bytes as u64)?;
                // SAFETY: the range was just allocated; the task keeps it until its run has
                // ended, was recalled, or its worker is dead.
                let sent = unsafe {
                    worker.process.send_run_placed(&mut run, pin.offset(), large.bytes as u64)
                };
                pins.push(pin);
                sent.expect("the record has the length that was told")
            }
        };
        Ok(Sent { executor, attempt, claim: Some(claim), layer, pins })
    }
}
