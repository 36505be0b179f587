//! What workers report, told to the scheduler.

use std::sync::Arc;

use exec::wire::{Blob, Ended, FromWorker, List, Outcome as Told, ToWorker};
use sched::{Direction, Event, ExecutorId, Kind, Outcome, TaskId, VersionId};
use smallvec::SmallVec;

use super::run::runtime_error;
use super::staged::Ending;
use super::state::{Standing, State};
use super::workers::Worker;
use super::Shared;
use crate::store::{Pin, Value};
use crate::trace::{RecordKind, NOTHING};

/// Records that are taken from one worker before others have their turn.
const TURN_RECORDS: usize = 64;

/// A run of a body that is over.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) executor: ExecutorId,
    pub(super) started_ns: u64,
    /// When it last went on.
    pub(super) since_ns: u64,
    pub(super) ended_ns: u64,
    /// How long it ran, without waiting for the consumers of its stream.
    pub(super) ran_ns: u64,
    pub(super) cpu_ns: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
    /// The error of its layer that it failed of; 0: none.
    pub(super) layer_errno: i32,
}

/// A worker said something that cannot be.
type Nonsense = &'static str;

impl State {
    /// Takes what the workers have reported: how many records, and whether there may be more.
    pub(super) fn receive_all(
        &mut self,
        shared: &Arc<Shared>,
        buffer: &mut Vec<u8>,
    ) -> (usize, bool) {
        let told = self.workers.all.iter().filter(|(_, worker)| worker.process.may_have_reported());
        let executors: SmallVec<[u32; 16]> = told.map(|(executor, _)| *executor).collect();
        let (mut records, mut more) = (0, false);
        for executor in executors {
            let taken = self.receive(shared, executor, TURN_RECORDS, buffer);
            records += taken;
            more |= taken == TURN_RECORDS;
        }
        (records, more)
    }

    /// Takes what one worker has reported, at most `max` records, and returns how many.
    pub(super) fn receive(
        &mut self,
        shared: &Arc<Shared>,
        executor: u32,
        max: usize,
        buffer: &mut Vec<u8>,
    ) -> usize {
        let Some(mut worker) = self.workers.all.remove(&executor) else { return 0 };
        let mut taken = 0;
        while taken < max {
            let nonsense = match worker.process.receive(buffer) {
                Ok(Some(record)) => {
                    if matches!(record, FromWorker::Yielded { .. }) && !self.out.is_empty() {
                        // It makes a version: identifiers that died must be gone before.
                        self.workers.all.insert(executor, worker);
                        self.carry_out(shared);
                        worker = self.workers.all.remove(&executor).expect("just put there");
                    }
                    self.report(shared, &mut worker, record).err()
                }
                Ok(None) => break,
                Err(error) => {
                    worker.kill(&format!("was ended because it cannot be understood: {error}"));
                    break;
                }
            };
            taken += 1;
            if let Some(nonsense) = nonsense {
                worker.kill(&format!("was ended because it made no sense: {nonsense}"));
            }
        }
        self.workers.all.insert(executor, worker);
        if taken > 0 {
            self.carry_out(shared);
        }
        taken
    }

    fn report(
        &mut self,
        shared: &Arc<Shared>,
        worker: &mut Worker,
        record: FromWorker<'_>,
    ) -> Result<(), Nonsense> {
        match record {
            FromWorker::Ready => self.worker_ready(worker),
            FromWorker::Ended(ended) => return self.ended(worker, &ended),
            FromWorker::EndedPlaced { .. } => unreachable!("resolved by `Process::receive`"),
            FromWorker::Alloc { request, bytes } => {
                let pin = shared.live_store().allocate(bytes).ok();
                let offset = pin.as_ref().map(Pin::offset);
                worker.unfinished.extend(pin.map(|pin| (pin.offset(), pin)));
                worker.tell(&ToWorker::Allocated { request, offset });
            }
            FromWorker::Free { offset } => {
                worker.unfinished.remove(&offset).ok_or("it freed memory that it does not have")?;
            }
            FromWorker::Unpin { offsets } => {
                for offset in offsets {
                    worker.held.remove(&offset).ok_or("it let go of what it does not hold")?;
                }
            }
            FromWorker::Released { task, attempt, output, blob } => {
                let value = take_value(worker, &blob)?;
                self.released(worker, TaskId::from_bits(task), attempt, output as usize, value);
            }
            FromWorker::ReleasedFile { task, attempt, path } => {
                self.released_file(worker.executor, TaskId::from_bits(task), attempt, path);
            }
            FromWorker::Yielded { task, attempt, number, blob } => {
                let value = take_value(worker, &blob)?;
                let id = TaskId::from_bits(task);
                return self.yielded(shared, worker, id, attempt, number, value);
            }
            FromWorker::Stalled { task, attempt, granted, since_ns, until_ns, .. } => {
                let busy = Some((worker.kind, worker.busy_since_ns));
                self.count_stretch(worker.kind, since_ns, until_ns, busy);
                let id = TaskId::from_bits(task);
                self.stalled(worker, id, attempt, granted, until_ns);
            }
        }
        Ok(())
    }

    pub(super) fn is_at(&self, executor: ExecutorId, id: TaskId, attempt: u32) -> bool {
        let sent = self.tasks.get(id).and_then(|task| task.sent.as_ref());
        sent.is_some_and(|sent| sent.executor == executor && sent.attempt == attempt)
    }

    /// The versions that a report names: the returns, then the written inputs; each with its
    /// number for the scheduler.
    fn made(&self, id: TaskId) -> SmallVec<[(VersionId, usize); 4]> {
        let Some(task) = self.tasks.get(id) else { return SmallVec::new() };
        let returns = task.returns as usize;
        let outputs = self.sched.outputs(id).iter().take(returns).copied();
        let mut made: SmallVec<[_; 4]> = outputs.enumerate().map(|(at, id)| (id, at)).collect();
        let mut number = returns;
        for (bound, direction) in self.sched.bound(id).iter().zip(&task.inputs) {
            let Some(write) = bound.write else { continue };
            if *direction != Direction::Concurrent {
                made.push((write, number));
            }
            number += 1;
        }
        made
    }

    fn is_pending(&self, id: VersionId) -> bool {
        let version = self.versions.get(id);
        version.is_some_and(|version| matches!(version.standing, Standing::Pending))
    }

    /// Keeps a value that was made, unless it was handed over before. `false`: it was not, and
    /// this is none.
    fn keep(&mut self, id: VersionId, value: Value) -> bool {
        match self.versions.get_mut(id) {
            Some(version) if matches!(version.standing, Standing::Pending) => {
                let is_one = !value.is_empty();
                version.value = is_one.then_some(value);
                is_one
            }
            _ => true,
        }
    }

    fn released(
        &mut self,
        worker: &Worker,
        task: TaskId,
        attempt: u32,
        output: usize,
        value: Value,
    ) {
        if self.streams.contains_key(&task.to_bits()) {
            return; // it yields
        }
        // A run that was given up counts for nothing, whatever it still makes.
        let given_up = self.sched.state(task) == Some(sched::State::Abandoned);
        if given_up || !self.is_at(worker.executor, task, attempt) {
            return;
        }
        let returns = self.tasks.get(task).map_or(0, |task| task.returns as usize);
        let outputs = self.sched.outputs(task);
        let Some(version) = outputs.get(output).filter(|_| output < returns).copied() else {
            return;
        };
        let Some(made) = self.versions.get_mut(version) else { return };
        if !matches!(made.standing, Standing::Pending) {
            return; // an earlier run released it: that value counts
        }
        // At once: the end of the run may come before the instructions are carried out.
        made.standing = Standing::There;
        let size = value.len() as u64;
        made.value = Some(value);
        let released = Event::Released { task, output: output as u32, size };
        self.sched.handle(exec::now_ns(), released, &mut self.out);
    }

    fn ended(&mut self, worker: &mut Worker, ended: &Ended<'_>) -> Result<(), Nonsense> {
        let id = TaskId::from_bits(ended.task);
        self.at = Some(id);
        worker.less(ended.ended_ns);
        self.workers.proven();
        self.hold(worker, id, &ended.held)?;
        let outcome = match &ended.outcome {
            Told::Done { outputs } => Ok(take_values(worker, outputs)?),
            Told::Raised { blob } => Err(take_payload(worker, blob)?),
        };
        if !self.is_at(worker.executor, id, ended.attempt) {
            return Ok(());
        }
        let run = Ran {
            executor: worker.executor,
            started_ns: ended.started_ns,
            since_ns: ended.since_ns,
            ended_ns: ended.ended_ns,
            ran_ns: ended.ran_ns,
            cpu_ns: ended.cpu_ns,
            bytes_read: ended.bytes_read,
            bytes_written: ended.bytes_written,
            layer_errno: ended.layer_errno as i32,
        };
        // The worker is not in the table while its reports are taken.
        let busy = worker.is_busy().then_some((worker.kind, worker.busy_since_ns));
        self.count_run(id, &run, busy);
        let outcome = match outcome {
            Ok(values) => self.keep_all(id, values),
            Err(payload) => Outcome::Raised(payload),
        };
        let (executor, attempt) = (worker.executor, ended.attempt);
        self.finish(Ending { executor, id, attempt, run, outcome });
        Ok(())
    }

    /// Tells the scheduler what a run moved, where it tunes the task; before its end.
    pub(super) fn tell_moved(&mut self, id: TaskId, run: &Ran) {
        let bytes = run.bytes_read.saturating_add(run.bytes_written);
        if bytes > 0 && self.sched.is_tuned(id) {
            let moved = Event::Moved { task: id, executor: run.executor, bytes };
            self.sched.handle(exec::now_ns(), moved, &mut self.out);
        }
    }

    /// A worker still looks at inputs of a task that ended: they stay until it says more.
    fn hold(&self, worker: &mut Worker, id: TaskId, held: &List<u64>) -> Result<(), Nonsense> {
        for offset in held {
            let pin = self.find_input(id, *offset).ok_or("it holds what it was not given")?;
            worker.held.insert(*offset, pin);
        }
        Ok(())
    }

    /// The range at an offset that a task was given.
    fn find_input(&self, id: TaskId, offset: u64) -> Option<Pin> {
        let pin = |value: &Value| match value {
            Value::Placed(pin) if pin.offset() == offset => Some(pin.clone()),
            _ => None,
        };
        let task = self.tasks.get(id)?;
        let mut own = task.sent.iter().flat_map(|sent| &sent.pins);
        let own = own.find(|pin| pin.offset() == offset).cloned();
        if let Some(pin) = own.or_else(|| pin(&task.arguments)) {
            return Some(pin);
        }
        let versions = self.sched.bound(id).iter().flat_map(|bound| [bound.write, bound.read]);
        let values = versions.flatten().filter_map(|id| self.versions.get(id)?.value.as_ref());
        values.into_iter().find_map(pin)
    }

    /// Keeps the values that a task made; what to tell the scheduler.
    pub(super) fn keep_all(&mut self, id: TaskId, values: SmallVec<[Value; 4]>) -> Outcome {
        // A run that was given up counts for nothing, however it ended.
        if self.sched.state(id) == Some(sched::State::Abandoned) {
            return Outcome::Done(Box::default());
        }
        let made = self.made(id);
        let has_released_all =
            values.is_empty() && made.iter().all(|(version, _)| !self.is_pending(*version));
        if !has_released_all && made.len() != values.len() {
            let text = format!(
                "the worker gave {} values where {} were to come",
                values.len(),
                made.len()
            );
            return Outcome::Raised(runtime_error(&text));
        }
        let mut sizes = vec![0; self.sched.outputs(id).len()];
        for ((version, number), value) in made.into_iter().zip(values) {
            sizes[number] = value.len() as u64;
            if !self.keep(version, value) {
                let text = format!("the worker says that it has released output {number} before");
                return Outcome::Raised(runtime_error(&text));
            }
        }
        let task = self.tasks.get(id).expect("the caller looked");
        let written = self.sched.bound(id).iter().zip(&task.inputs);
        let written = written.filter_map(|(bound, direction)| Some((bound.write?, direction)));
        for (number, (version, direction)) in written.enumerate() {
            if *direction == Direction::Concurrent {
                let value = self.versions.get(version).and_then(|it| it.value.as_ref());
                sizes[task.returns as usize + number] = value.map_or(0, Value::len) as u64;
            }
        }
        Outcome::Done(sizes.into())
    }

    /// Counts a run; `busy` is what else its executor does, if the tables do not tell.
    pub(super) fn count_run(&mut self, id: TaskId, run: &Ran, busy: Option<(Kind, u64)>) {
        let task = self.tasks.get(id).expect("the caller looked");
        let (label, kind) = (task.label, task.kind);
        let layer = task.sent.as_ref().and_then(|sent| sent.layer);
        let ran = run.ran_ns;
        let figures = self.statistics_of(label);
        figures.runs += 1;
        figures.run_ns += ran;
        figures.cpu_ns += run.cpu_ns;
        figures.bytes_read += run.bytes_read;
        figures.bytes_written += run.bytes_written;
        self.totals.bytes_read += run.bytes_read;
        self.totals.bytes_written += run.bytes_written;
        match kind {
            Kind::Compute => self.totals.compute_ns += ran,
            Kind::Io | Kind::Engine => self.totals.io_ns += ran,
        }
        self.count_stretch(kind, run.since_ns, run.ended_ns, busy);
        self.trace_task(RecordKind::Ran, id, |record| {
            record.time_ns = run.started_ns;
            record.executor = run.executor.0;
            record.layer = layer.map_or(NOTHING, |layer| layer.0);
            record.amount = run.ended_ns.saturating_sub(run.started_ns);
            record.other = run.bytes_read + run.bytes_written;
        });
    }

    /// Counts a stretch of time in which a body ran; `busy` as in [`State::count_run`].
    fn count_stretch(&mut self, kind: Kind, since: u64, until: u64, busy: Option<(Kind, u64)>) {
        self.overlap.ran(kind, since, until);
        if self.overlap.is_full() {
            let mut running = self.running();
            running.extend(busy);
            self.overlap.settle(exec::now_ns(), running.into_iter());
        }
    }
}

/// A value that a worker hands over.
fn take_value(worker: &mut Worker, blob: &Blob<'_>) -> Result<Value, Nonsense> {
    match *blob {
        Blob::Inline(bytes) => Ok(Value::inline(bytes)),
        Blob::Placed { offset, len } => {
            let pin = worker.unfinished.remove(&offset);
            let pin = pin.and_then(|pin| pin.shortened(len));
            pin.map(Value::Placed).ok_or("it handed over memory that it does not have")
        }
    }
}

fn take_values(
    worker: &mut Worker,
    blobs: &List<Blob<'_>>,
) -> Result<SmallVec<[Value; 4]>, Nonsense> {
    blobs.iter().map(|blob| take_value(worker, blob)).collect()
}

/// What a body raised.
fn take_payload(worker: &mut Worker, blob: &Blob<'_>) -> Result<Arc<[u8]>, Nonsense> {
    match take_value(worker, blob)? {
        Value::Inline(bytes) if bytes.is_empty() => {
            Ok(runtime_error("the worker let go of the task without saying how it ended"))
        }
        value => Ok(value.as_bytes().into()),
    }
}
