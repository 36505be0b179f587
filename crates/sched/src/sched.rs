//! The scheduler's state, its way in (submissions and events) and its way out (instructions).

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use smallvec::SmallVec;

use graph::chunks::Chunks;
use graph::{Bound, DatumId, DatumKind, Graph, Refused, TaskId, VersionId};

use crate::api::{
    Config, Event, ExecutorId, Failure, FunctionId, Instruction, Kind, Refusal, TaskSpec, Time,
};
use crate::executors::{Executors, Pipeline};
use crate::files::{At, Files};
use crate::function::Function;
use crate::layers::Layers;
use crate::policy::{self, Estimates, Policy};
use crate::ready::Ready;
use crate::record::{Deadline, Record};
use crate::story::{Step, Story};
use crate::transitions::{self, Input, State, STATES};
use crate::tuner::{Tuner, Tuning};

/// How many tasks are in each state now, and how many were ever over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tasks that wait for something.
    pub waiting: u64,
    /// Tasks that wait for an executor.
    pub ready: u64,
    /// Tasks at an executor, paused and abandoned ones included, and those that settle.
    pub sent: u64,
    /// Tasks that ended well, ever.
    pub done: u64,
    /// Tasks that failed, ever.
    pub failed: u64,
    /// Tasks that were cancelled, ever.
    pub cancelled: u64,
}

/// A task that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Which. It may be over already, where something that it needs had failed.
    pub task: TaskId,
    /// The value versions that it makes: returns, then written values by access.
    pub outputs: SmallVec<[VersionId; 2]>,
}

/// The scheduler. See the module documentation of the crate.
pub struct Sched {
    pub(crate) graph: Graph<Arc<Failure>>,
    /// By the index of the task.
    pub(crate) records: Chunks<Option<Record>>,
    pub(crate) functions: Vec<Function>,
    pub(crate) executors: Executors,
    pub(crate) layers: Layers,
    pub(crate) ready: Ready,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) estimates: Estimates,
    /// When the policy is to be asked again, even if nothing changed.
    pub(crate) look_again_at: Option<Time>,
    pub(crate) files: Files,
    /// Ready I/O tasks that no layer can take any more.
    pub(crate) hopeless: Vec<TaskId>,
    /// Since when nothing goes on and I/O tasks wait for room.
    pub(crate) stuck_since: Option<Time>,
    pub(crate) tuner: Tuner,
    pub(crate) deadlines: BTreeSet<Deadline>,
    pub(crate) story: Story,
    /// Tasks that are in each state now, or (of those in which a task is over) ever were.
    pub(crate) in_state: [u64; STATES],
    pub(crate) serial: u64,
    pub(crate) now: Time,
    pub(crate) stealing: bool,
}

impl Sched {
    /// A scheduler with no executors yet.
    pub fn new(config: Config) -> Sched {
        let tasks_max = config.pipeline_tasks_max.max(1);
        let files = Files::new(&config);
        let layers = Layers::new(config.layers);
        let pipeline = Pipeline { tasks_max, ns_max: config.pipeline_ns_max };
        Sched {
            graph: Graph::default().with_quiet_places(config.quiet_places),
            records: Chunks::default(),
            functions: Vec::new(),
            executors: Executors::new(&config.processors, pipeline),
            estimates: Estimates::new(&layers, config.policy),
            look_again_at: None,
            layers,
            ready: Ready::new(config.processors.len()),
            policy: policy::new(config.policy),
            files,
            hopeless: Vec::new(),
            stuck_since: None,
            tuner: Tuner::default(),
            deadlines: BTreeSet::new(),
            story: Story::default(),
            in_state: [0; STATES],
            serial: 0,
            now: 0,
            stealing: config.stealing,
        }
    }

    /// A function, by name; its mean run time is kept.
    pub fn add_function(&mut self, name: Arc<str>) -> FunctionId {
        self.functions.push(Function::new(name));
        FunctionId(u32::try_from(self.functions.len() - 1).expect("fewer than 2^32 functions"))
    }

    /// The mean run time of a function in nanoseconds, once it ran.
    pub fn mean_ns(&self, function: FunctionId) -> Option<u64> {
        self.functions.get(function.0 as usize)?.mean_ns()
    }

    /// The name that a function was added with.
    pub fn function_name(&self, function: FunctionId) -> Option<&Arc<str>> {
        self.functions.get(function.0 as usize).map(|function| &function.name)
    }

    /// A value that the program brings: there at once, named once.
    pub fn add_value(&mut self, size: u64) -> VersionId {
        self.graph.add_value(size, 0)
    }

    /// A datum; `None` if its initial version is not there (any more).
    pub fn add_datum(&mut self, kind: DatumKind, initial: Option<VersionId>) -> Option<DatumId> {
        self.graph.add_datum(kind, initial)
    }

    /// The latest version of a datum, named once more (see [`Graph::current`]).
    pub fn current(&mut self, datum: DatumId) -> Option<VersionId> {
        self.graph.current(datum)
    }

    /// The program can no longer name a datum.
    pub fn drop_datum(&mut self, datum: DatumId, out: &mut Vec<Instruction>) {
        self.graph.drop_datum(datum);
        self.files.touch(datum);
        self.settle(out);
        self.plan_moves(out);
    }

    /// The program names a version once more. `false`: it is gone.
    pub fn hold(&mut self, version: VersionId) -> bool {
        self.graph.hold(version)
    }

    /// What each access of a live task was bound to.
    pub fn bound(&self, task: TaskId) -> &[Bound] {
        self.graph.bound(task)
    }

    /// The value versions that a live task makes: returns, then written values by access.
    pub fn outputs(&self, task: TaskId) -> &[VersionId] {
        self.graph.outputs(task)
    }

    /// How many tasks that are not over have a version to read; `None`: it is obsolete.
    pub fn readers(&self, version: VersionId) -> Option<u32> {
        self.graph.readers(version)
    }

    /// Whether some compute executor has nothing to do.
    pub fn has_idle(&self) -> bool {
        self.executors.nodes.iter().any(|node| node.idle().is_some())
    }

    /// How many tasks are where.
    pub fn counts(&self) -> Counts {
        let count = |state: State| self.in_state[state as usize];
        Counts {
            waiting: count(State::Waiting),
            ready: count(State::Ready),
            sent: self.sent(),
            done: count(State::Done),
            failed: count(State::Failed),
            cancelled: count(State::Cancelled),
        }
    }

    /// How many tasks are at an executor, or were and are to be told of.
    pub(crate) fn sent(&self) -> u64 {
        let sent = [State::Sent, State::Paused, State::Settling, State::Abandoned];
        sent.iter().map(|state| self.in_state[*state as usize]).sum()
    }

    /// How many tasks are not over.
    pub fn live_tasks(&self) -> usize {
        self.graph.live_tasks()
    }

    /// How many versions are kept.
    pub fn live_versions(&self) -> usize {
        self.graph.live_versions()
    }

    /// What is granted of a layer now.
    pub fn granted(&self, layer: crate::api::LayerId) -> Option<crate::api::Constraint> {
        self.layers.granted(layer)
    }

    /// Whether files leave a layer although I/O goes on, because of its watermarks.
    pub fn drains(&self, layer: crate::api::LayerId) -> bool {
        self.layers.drains(layer)
    }

    /// Bytes that files take up on a layer now, as far as the driver said.
    pub fn stored(&self, layer: crate::api::LayerId) -> Option<u64> {
        self.layers.stored(layer)
    }

    /// The latest moves of a task, oldest first, as far as they are remembered.
    pub fn story(&self, task: TaskId) -> Vec<Step> {
        self.story.of(task)
    }

    /// Where a task is, unless it is over.
    pub fn state(&self, task: TaskId) -> Option<State> {
        self.record(task).map(|record| record.state)
    }

    /// When the next deadline is, if there is one.
    pub fn next_deadline(&self) -> Option<Time> {
        let deadline = self.deadlines.first().map(|deadline| deadline.at);
        let others = self.quiet_at().into_iter().chain(self.stuck_until());
        deadline.into_iter().chain(others).chain(self.look_again_at).min()
    }

    /// Takes a task. On refusal nothing was changed.
    pub fn submit(
        &mut self,
        now: Time,
        spec: &TaskSpec,
        out: &mut Vec<Instruction>,
    ) -> Result<Submitted, Refusal> {
        self.now = self.now.max(now);
        let task = self.take(spec)?;
        let outputs = SmallVec::from_slice(self.graph.outputs(task));
        if self.graph.has_news() || self.executors.has_news() || self.has_io() {
            self.progress(out);
        }
        Ok(Submitted { task, outputs })
    }

    /// Takes a compute task whose body runs already, on an executor that was sent another one: for
    /// that it is a task that paused, and its `Paused` is not told. It must wait for nothing: what
    /// it uses, no task that is not over uses. On refusal nothing was changed.
    pub fn submit_begun(
        &mut self,
        now: Time,
        spec: &TaskSpec,
        executor: ExecutorId,
        out: &mut Vec<Instruction>,
    ) -> Result<Submitted, Refusal> {
        assert_eq!(spec.kind, Kind::Compute, "only their bodies may begin unasked");
        self.now = self.now.max(now);
        let task = self.take(spec)?;
        let outputs = SmallVec::from_slice(self.graph.outputs(task));
        assert_eq!(self.graph.pop_ready(), Some(task), "it waits for nothing, and comes alone");
        assert!(self.live(task).uses.is_none(), "only I/O tasks use files");
        self.unblock(task);
        self.begun(task, executor);
        self.progress(out);
        Ok(Submitted { task, outputs })
    }

    /// Takes a task into the graph, where it may wait for others.
    fn take(&mut self, spec: &TaskSpec) -> Result<TaskId, Refusal> {
        self.check(spec)?;
        let task = self.graph.submit(spec.returns, &spec.accesses).map_err(refusal)?;
        let index = task.0.index as usize;
        if index == self.records.len() {
            self.records.push(None);
        }
        assert!(self.records[index].is_none(), "the record of an earlier task is gone");
        let group = self.group_of(spec);
        let function = self.functions.get(spec.function.0 as usize);
        self.records[index] = Some(Record::new(task, spec, function, group));
        if let Some(uses) = self.files.uses(&self.graph, spec) {
            self.files.will_use(task, &uses);
            self.live(task).uses = Some(uses);
        }
        self.step(task, Input::Submit);
        Ok(task)
    }

    /// A task waits for nothing any more.
    fn unblock(&mut self, task: TaskId) {
        self.serial += 1;
        let serial = self.serial;
        self.step(task, Input::Unblock).serial = serial;
    }

    fn check(&self, spec: &TaskSpec) -> Result<(), Refusal> {
        match spec.kind {
            Kind::Compute => {
                let most = self.executors.nodes.iter().map(|node| node.processors).max();
                let (asked, most) = (spec.cpus.max(1), most.unwrap_or(0));
                if asked > most {
                    return Err(Refusal::TooManyProcessors { asked, most });
                }
            }
            Kind::Io | Kind::Engine if self.layers.is_empty() => {}
            Kind::Io | Kind::Engine if spec.tuning != Tuning::Static => self.check_tuned(spec)?,
            Kind::Io | Kind::Engine => {
                let asked = spec.constraint;
                let nearest = self.layers.could_ever(spec.layer, asked);
                nearest.map_err(|nearest| Refusal::NoLayer { asked, nearest })?;
            }
        }
        Ok(())
    }

    /// Tells the bandwidth, in bytes a second, of the only layer, which had no limit. It is at
    /// least what is granted of it now.
    pub fn set_bandwidth(&mut self, layer: crate::api::LayerId, bandwidth: u64) {
        assert!(self.layers.ids().count() == 1, "the ranks stay");
        self.layers.set_bandwidth(layer, bandwidth);
    }

    /// Takes an event; what has to be done is added to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Instruction>) {
        self.now = self.now.max(now);
        match event {
            Event::ExecutorUp { executor, kind, node, slots, extra } => {
                self.executors.add(executor, kind, node, (slots, extra));
            }
            Event::ExecutorLost { executor, started, reason } => {
                self.lose(executor, &started, &reason, out);
            }
            Event::Ended { task, executor, outcome, ran } => {
                self.ended(task, executor, outcome, ran, out);
            }
            Event::Settling { task, executor, ran } => self.settling(task, executor, ran, out),
            Event::Settled { task, outcome } => self.settled(task, outcome, out),
            Event::Moved { task, executor, bytes } => {
                if self.record(task).is_some_and(|record| record.executor == Some(executor)) {
                    self.moved(task, bytes);
                }
            }
            Event::Paused { task, executor } => self.paused(task, executor),
            Event::WentOn { task, executor } => self.went_on(task, executor),
            Event::Released { task, output, size } => {
                let node = self.record(task).map_or(0, |record| self.node_of(record));
                self.graph.release(task, output as usize, size, node);
            }
            Event::ReleasedInPlace { task, access } => self.release_in_place(task, access),
            Event::Yielded { task, size } => {
                let node = self.record(task).map_or(0, |record| self.node_of(record));
                self.graph.renew(task, 0, size, node);
            }
            Event::Stalled { task, executor } => self.stalled(task, executor),
            Event::Resume { task } => self.resume(task),
            Event::Recalled { task, executor } => self.recalled(task, executor, out),
            Event::Refused { task, executor } => self.refused(task, executor, out),
            Event::Cancel { task } => self.cancel(task, out),
            Event::Forget { version } => self.graph.unhold(version),
            Event::FileAt { datum, layer, bytes, home, scratch } => {
                self.file_at(At { datum, layer, bytes, home, scratch }, out);
            }
            Event::FileFound { datum, layer, bytes } => self.file_found(datum, layer, bytes),
            Event::FileGone { datum } => self.forget_file(datum, out),
            Event::MoveDone { datum, bytes } => self.moved_file(datum, Some(bytes), false, out),
            Event::MoveFailed { datum, no_room } => self.moved_file(datum, None, no_room, out),
            Event::LayerCapacity { layer, bytes } => self.layer_capacity(layer, bytes),
            Event::LayerDown { layer } => self.layer_down(layer),
            Event::LayerUp { layer } => self.layer_up(layer),
            Event::Unplaced { task, executor, failure, .. } => {
                self.unplaced(task, executor, failure, out);
            }
            Event::Tick => {}
        }
        // Only now: a report that came late, but came, is taken.
        self.give_up_late(out);
        self.abandon_quiet();
        self.give_up_stuck();
        self.progress(out);
    }

    /// Whether time, or room on a layer, may let something go on.
    fn has_io(&self) -> bool {
        self.tuner.is_used()
            || self.files.may_move()
            || !self.hopeless.is_empty()
            || !self.policy.groups().is_empty()
    }

    /// Goes on as far as it goes: what settled, who runs, what moves.
    fn progress(&mut self, out: &mut Vec<Instruction>) {
        self.executors.io_changed |= self.look_again_at.is_some_and(|at| at <= self.now);
        self.settle(out);
        while let Some(task) = self.hopeless.pop() {
            self.fail_hopeless(task, out);
            self.settle(out);
        }
        self.dispatch(out);
        self.plan_moves(out);
        self.look_for_stuck();
    }

    pub(crate) fn record(&self, task: TaskId) -> Option<&Record> {
        let record = self.records.get(task.0.index as usize)?.as_ref()?;
        (record.task == task).then_some(record)
    }

    pub(crate) fn record_mut(&mut self, task: TaskId) -> Option<&mut Record> {
        found(&mut self.records, task)
    }

    /// The name of a live task.
    pub(crate) fn name(&self, task: TaskId) -> Arc<str> {
        let record = self.record(task).expect("the caller knows that the task is live");
        let function = || &self.functions[record.function.0 as usize].name;
        record.name.as_ref().unwrap_or_else(function).clone()
    }

    pub(crate) fn live(&mut self, task: TaskId) -> &mut Record {
        self.record_mut(task).expect("the caller knows that the task is live")
    }

    /// Moves a task along the table, and notes it.
    pub(crate) fn step(&mut self, task: TaskId, input: Input) -> &mut Record {
        let at = self.now;
        let record = found(&mut self.records, task).expect("the caller knows that it is live");
        let from = record.state;
        let Some(to) = transitions::next(from, input) else {
            let story = self.story.of(task);
            panic!("{task:?} is {from} and cannot {input}; its story: {story:?}");
        };
        record.state = to;
        let at_executor = |state| matches!(state, State::Sent | State::Paused);
        let leaves = at_executor(from) && !at_executor(to);
        let deadline = record.deadline.filter(|_| leaves);
        if let Some(deadline) = deadline {
            self.deadlines.remove(&deadline);
        }
        if from != State::New {
            self.in_state[from as usize] -= 1;
        }
        self.in_state[to as usize] += 1;
        self.story.note(Step { at, task, from, input, to });
        record
    }

    /// Carries what the graph has to say to the driver until it has nothing more to say.
    pub(crate) fn settle(&mut self, out: &mut Vec<Instruction>) {
        loop {
            while let Some((version, failure)) = self.graph.pop_settled() {
                out.push(Instruction::Resolve { version, failure });
            }
            if let Some((task, from)) = self.graph.pop_doomed() {
                self.doom(task, from, out);
                continue;
            }
            while let Some(version) = self.graph.pop_obsolete() {
                out.push(Instruction::Discard { version });
            }
            let Some(task) = self.graph.pop_ready() else { return };
            self.unblock(task);
            let others = self.graph.has_ready() || !self.hopeless.is_empty();
            self.join_or_go(task, !others && !self.executors.some_resume(), out);
        }
    }

    /// The whole state checked against itself: `Err` says what does not add up.
    pub fn validate(&self) -> Result<(), String> {
        self.graph.validate()?;
        self.validate_tasks()?;
        self.validate_executors()?;
        self.files.validate(&self.layers)?;
        self.validate_tuner()
    }
}

/// The record of a task that is not over.
fn found(records: &mut Chunks<Option<Record>>, task: TaskId) -> Option<&mut Record> {
    let record = records.get_mut(task.0.index as usize)?.as_mut()?;
    (record.task == task).then_some(record)
}

fn refusal(refused: Refused) -> Refusal {
    match refused {
        Refused::SelfConflict(first, second) => Refusal::SelfConflict { accesses: (first, second) },
        Refused::BadRegion(access) => Refusal::BadRegion { access },
        Refused::Stale(access) => Refusal::Stale { access },
        Refused::BadDirection(access) => Refusal::BadDirection { access },
    }
}
