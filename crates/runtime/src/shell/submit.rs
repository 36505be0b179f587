//! The way in: calls become tasks, values and files become data.

use std::fmt;
use std::sync::Arc;

use sched::{
    Access, Bound, Constraint, DatumId, Direction, Event, Kind, OnFailure, Refusal, Region, Target,
    TaskId, TaskSpec, Tuning, VersionId,
};
use smallvec::SmallVec;

use super::builtin::Builtin;
use super::state::{Function, State, Task, Version};
use super::streams::{Stream, StreamBuffer};
use super::{SessionError, Shared};
use crate::files::{new_file, way, FileDatum, FileError, PathKind};
use crate::futures::{Core, Handle};
use crate::naming::Named;
use crate::store::Value;
use crate::trace::{Record, RecordKind};

/// What the tasks of a function have in common.
#[derive(Clone, Debug)]
pub struct FunctionSpec {
    /// Its name, for messages and figures.
    pub name: Arc<str>,
    /// The function itself, for the workers.
    pub blob: Value,
    /// Compute or I/O.
    pub kind: Kind,
    /// Processors of a compute task, at least 1; 0 for I/O.
    pub cpus: u32,
    /// Higher runs first.
    pub priority: i32,
    /// How often a failed task is run again.
    pub retries: u32,
    /// Nanoseconds that a run may take.
    pub timeout_ns: Option<u64>,
    /// What a failure means.
    pub on_failure: OnFailure,
    /// What an I/O task asks of a layer.
    pub constraint: Constraint,
    /// How its bandwidth is chosen.
    pub tuning: Tuning,
    /// Whether the files that it wrote are on the disk when it ends.
    pub durable: bool,
    /// Whether the body is a coroutine.
    pub asynchronous: bool,
    /// How many values it returns.
    pub returns: u32,
    /// Its one value is a stream, the producer of which may be ahead by so much.
    pub buffer: Option<StreamBuffer>,
}

/// What one call does differently from its function.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Another name.
    pub name: Option<Arc<str>>,
    /// Another priority.
    pub priority: Option<i32>,
    /// Another number of values.
    pub returns: Option<u32>,
    /// Another number of retries.
    pub retries: Option<u32>,
    /// Another time limit (or none).
    pub timeout_ns: Option<Option<u64>>,
    /// Another constraint.
    pub constraint: Option<Constraint>,
    /// Another way to choose the bandwidth.
    pub tuning: Option<Tuning>,
    /// Another number of processors.
    pub cpus: Option<u32>,
    /// Another meaning of failure.
    pub on_failure: Option<OnFailure>,
}

/// A value that a call uses.
#[derive(Clone, Debug)]
pub enum Input {
    /// A future: reads it.
    Handle(Handle),
    /// An object of the program.
    Object {
        /// Which.
        datum: DatumId,
        /// To do what.
        direction: Direction,
    },
}

/// A file that a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// Which.
    pub datum: DatumId,
    /// To do what.
    pub direction: Direction,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which function.
    pub function: u64,
    /// Its arguments, with places for the inputs.
    pub arguments: Value,
    /// The values that it uses.
    pub inputs: Vec<Input>,
    /// The files that it uses.
    pub files: Vec<FileUse>,
    /// What the engine is to do of it by itself; of I/O functions that return one value.
    pub builtin: Option<Builtin>,
    /// What is different this time.
    pub overrides: Overrides,
}

/// A task that was taken.
#[derive(Debug)]
pub struct Spawned {
    /// The task.
    pub task: TaskId,
    /// The values that it will return; of a stream the first.
    pub returns: Vec<Handle>,
    /// What its values come from.
    pub stream: Option<Stream>,
}

/// Why a call was not taken. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpawnError {
    /// The scheduler refused it. Accesses are counted: the inputs first, then the files.
    Refused(Refusal),
    /// There is no such function (any more).
    UnknownFunction(u64),
    /// An input is a future of another session.
    OtherSession {
        /// Its position.
        input: usize,
    },
    /// A file is not one of this session.
    NotAFile {
        /// Its position.
        file: usize,
    },
    /// The session cannot do anything any more.
    Session(SessionError),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::Refused(refusal) => write!(f, "the call was refused: {refusal:?}"),
            SpawnError::UnknownFunction(id) => write!(f, "there is no function {id}"),
            SpawnError::OtherSession { input } => {
                write!(f, "input {input} is a future of another session")
            }
            SpawnError::NotAFile { file } => write!(f, "file {file} is not of this session"),
            SpawnError::Session(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SpawnError {}

/// What became of a call.
pub(super) struct Submitted {
    pub(super) task: TaskId,
    /// The versions that it will return, each named once.
    pub(super) outputs: SmallVec<[VersionId; 2]>,
    buffer: Option<StreamBuffer>,
}

impl State {
    /// Takes a function.
    pub(crate) fn add_function(&mut self, spec: FunctionSpec) -> u64 {
        let label = self.label(&spec.name, spec.kind);
        self.functions_made += 1;
        let id = self.functions_made;
        self.functions.insert(id, Function { spec, label, tasks: 0, forgotten: false });
        id
    }

    /// Drops a function as soon as no task needs it.
    pub(crate) fn forget_function(&mut self, id: u64) {
        if let Some(function) = self.functions.get_mut(&id) {
            function.forgotten = true;
            if function.tasks == 0 {
                self.drop_function(id);
            }
        }
    }

    pub(crate) fn drop_function(&mut self, id: u64) {
        self.functions.remove(&id);
        for worker in self.workers.all.values_mut() {
            if worker.known.remove(&id) {
                worker.tell(&exec::wire::ToWorker::ForgetFunction { id });
            }
        }
    }

    /// Takes a value of the program.
    pub(crate) fn put(&mut self, shared: &Arc<Shared>, value: Value) -> Handle {
        let version = self.sched.add_value(value.len() as u64);
        let core = Core::filled(Ok(value.clone()));
        self.versions.insert(version, Version::there(value, Arc::clone(&core)));
        Handle::new(core, version, None, Arc::clone(shared))
    }

    /// One more name of a version that the scheduler has already counted.
    pub(crate) fn handle_of(&mut self, shared: &Arc<Shared>, id: VersionId) -> Handle {
        let none = Arc::clone(&self.none);
        let version = self.versions.get_mut(id).expect("a named version is in the table");
        let task = version.producers.first().copied();
        let outcome = version.outcome(&none);
        let core = version.core.get_or_insert_with(|| match outcome {
            Some(outcome) => Core::filled(outcome),
            None => Core::new(),
        });
        Handle::new(Arc::clone(core), id, task, Arc::clone(shared))
    }

    /// Takes a call of the program.
    pub(crate) fn spawn(
        &mut self,
        shared: &Arc<Shared>,
        call: Call,
    ) -> Result<Spawned, SpawnError> {
        let Submitted { task, outputs, buffer } = self.submit(shared, call)?;
        let returns = outputs.iter().map(|version| self.handle_of(shared, *version)).collect();
        let stream = buffer.map(|buffer| {
            self.open_stream(task, buffer);
            Stream::new(task, shared)
        });
        Ok(Spawned { task, returns, stream })
    }

    /// Takes a call.
    pub(super) fn submit(
        &mut self,
        shared: &Arc<Shared>,
        call: Call,
    ) -> Result<Submitted, SpawnError> {
        let spec = self.task_spec(shared, &call)?;
        let now = exec::now_ns();
        let renamed = call.overrides.name.clone();
        let taken = self.sched.submit(now, &spec, &mut self.out).map_err(SpawnError::Refused)?;
        let id = taken.task;
        let function = self.functions.get_mut(&call.function).expect("looked up above");
        function.tasks += 1;
        let (label, durable) = (function.label, function.spec.durable);
        let (returns, kind, buffer) = (spec.returns, function.spec.kind, function.spec.buffer);
        let name = match renamed.filter(|_| self.trace.records_all()) {
            Some(name) => self.trace.name(name),
            None => self.label_names[label.0 as usize],
        };
        let inputs: SmallVec<[Direction; 2]> = call.inputs.iter().map(direction).collect();
        let files = call.files.iter().map(|file| (file.datum, file.direction)).collect();
        let (function, arguments) = (call.function, call.arguments);
        let task = Task {
            function,
            label,
            name,
            kind,
            arguments,
            inputs,
            files,
            returns,
            builtin: call.builtin,
            durable,
            granted: 0,
            size: spec.constraint.size,
            sent: None,
            released: SmallVec::new(),
            releasing: 0,
            ending: None,
            deferred: None,
        };
        self.tasks.insert(id, task);
        if spec.kind == Kind::Engine {
            self.want_engine();
        }
        self.totals.submitted += 1;
        self.statistics_of(label).submitted += 1;
        self.trace_task(RecordKind::Submitted, id, |record| {
            record.amount = u64::from(kind.is_io());
        });
        self.add_versions(id, &taken.outputs);
        let outputs = SmallVec::from_slice(&taken.outputs[..returns as usize]);
        Ok(Submitted { task: id, outputs, buffer })
    }

    fn task_spec(&self, shared: &Arc<Shared>, call: &Call) -> Result<TaskSpec, SpawnError> {
        let function = self.functions.get(&call.function).filter(|function| !function.forgotten);
        let function = function.ok_or(SpawnError::UnknownFunction(call.function))?;
        let mut accesses = Vec::with_capacity(call.inputs.len() + call.files.len());
        for (position, input) in call.inputs.iter().enumerate() {
            let target = match input {
                Input::Handle(handle) if !handle.belongs_to(shared) => {
                    return Err(SpawnError::OtherSession { input: position });
                }
                Input::Handle(handle) => Target::Version(handle.version()),
                Input::Object { datum, .. } => Target::Datum(*datum),
            };
            let direction = direction(input);
            accesses.push(Access { target, region: Region::Whole, direction });
        }
        for (position, file) in call.files.iter().enumerate() {
            if self.files.get(file.datum).is_none() {
                return Err(SpawnError::NotAFile { file: position });
            }
            let (target, direction) = (Target::Datum(file.datum), file.direction);
            accesses.push(Access { target, region: Region::Whole, direction });
        }
        let (spec, over) = (&function.spec, &call.overrides);
        let uses = call.files.iter().map(|file| (file.datum, file.direction));
        let by_engine = call.builtin.is_some() && spec.kind == Kind::Io;
        Ok(TaskSpec {
            function: function.label,
            name: Arc::clone(over.name.as_ref().unwrap_or(&spec.name)),
            kind: if by_engine { Kind::Engine } else { spec.kind },
            cpus: over.cpus.unwrap_or(spec.cpus),
            priority: over.priority.unwrap_or(spec.priority),
            retries: over.retries.unwrap_or(spec.retries),
            timeout: over.timeout_ns.unwrap_or(spec.timeout_ns),
            on_failure: over.on_failure.unwrap_or(spec.on_failure),
            constraint: Constraint {
                way: way(call.files.iter().map(|file| file.direction)),
                ..over.constraint.unwrap_or(spec.constraint)
            },
            tuning: over.tuning.unwrap_or(spec.tuning),
            returns: over.returns.unwrap_or(spec.returns),
            accesses,
            produces: 0,
            layer: spec.kind.is_io().then(|| self.files.layer_for(uses)).flatten(),
        })
    }

    /// The file of a path, made if it has none.
    pub(crate) fn name_file(
        &mut self,
        named: &Named,
        kind: Option<PathKind>,
        writes: bool,
    ) -> Result<FileDatum, FileError> {
        let State { files, sched, .. } = self;
        let file = files.name(named, kind, writes, || new_file(sched))?;
        if !writes && self.prefetches {
            let found = self.files.found(named, file.datum);
            found.into_iter().for_each(|it| self.sched.handle(exec::now_ns(), it, &mut self.out));
        }
        Ok(file)
    }

    /// Makes room for the versions of a new task (which may be over already, if something
    /// that it needs had failed), and writes its edges down.
    fn add_versions(&mut self, id: TaskId, outputs: &[VersionId]) {
        let recording = self.trace.records_all();
        let mut edges: SmallVec<[TaskId; 4]> = SmallVec::new();
        let bound: SmallVec<[Bound; 4]> = SmallVec::from_slice(self.sched.bound(id));
        let in_place = bound.iter().filter_map(|bound| bound.write);
        for version in outputs.iter().copied().chain(in_place) {
            match self.versions.get_mut(version) {
                Some(group) if recording && group.producers.last() != Some(&id) => {
                    group.producers.push(id);
                }
                Some(_) => {}
                None => {
                    self.versions.insert(version, Version::pending(id));
                }
            }
        }
        let task = self.tasks.get(id).expect("just inserted");
        for (position, bound) in bound.iter().enumerate() {
            let grouped = task.inputs.get(position).is_some_and(|it| it.grouped());
            if let Some(write) = bound.write.filter(|_| grouped) {
                self.versions.get_mut(write).expect("inserted above").base = bound.read;
            }
            if recording {
                let read = bound.read.and_then(|read| self.versions.get(read));
                edges.extend(read.into_iter().flat_map(|read| read.producers.iter().copied()));
            }
        }
        for (datum, direction) in &task.files {
            let file = self.files.get_mut(*datum).expect("checked");
            edges.extend(file.last_writer);
            if direction.writes() {
                file.last_writer = Some(id);
            }
        }
        self.files.begin_uses(&task.files);
        if recording {
            self.trace_edges(id, edges);
        }
    }

    fn trace_edges(&mut self, id: TaskId, mut from: SmallVec<[TaskId; 4]>) {
        from.sort();
        from.dedup();
        let now = exec::now_ns();
        for from in from {
            let mut record = Record::new(now, RecordKind::Edge);
            (record.task, record.other) = (id.to_bits(), from.to_bits());
            self.trace.push(record);
        }
    }

    /// The program wants a task not to run. `true`: it will not.
    pub(crate) fn cancel(&mut self, shared: &Arc<Shared>, task: TaskId) -> bool {
        if self.tasks.get(task).is_none() {
            return false;
        }
        self.sched.handle(exec::now_ns(), Event::Cancel { task }, &mut self.out);
        self.carry_out(shared);
        self.tasks.get(task).is_none()
    }

    /// The program wants no task to run that has not begun; how many will not.
    pub(crate) fn cancel_all(&mut self, shared: &Arc<Shared>) -> usize {
        let before = self.tasks.len();
        let all: Vec<TaskId> = self.tasks.iter().map(|(id, _)| id).collect();
        for task in all {
            self.sched.handle(exec::now_ns(), Event::Cancel { task }, &mut self.out);
        }
        self.carry_out(shared);
        before - self.tasks.len()
    }
}

fn direction(input: &Input) -> Direction {
    match input {
        Input::Handle(_) => Direction::In,
        Input::Object { direction, .. } => *direction,
    }
}
