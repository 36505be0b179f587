//! The program's main thread: takes its steps one by one, and forgets everything in the end.

use std::sync::Arc;

use graph::{Access, Bound, DatumKind, Direction, Target, TaskId, VersionId};
use sched::{Event, Refusal, State, TaskSpec};

use crate::checkers::Fault;
use crate::hash::mix;
use crate::program::{AccessPlan, Expect, Step, TargetPlan, TaskPlan};
use crate::streams::Credit;
use crate::values::{Cells, Use, Used, EMPTY};
use crate::world::{Happening, Task, World};
use crate::Canary;

impl<'a> World<'a> {
    /// Takes steps until one takes time.
    pub(crate) fn program_goes_on(&mut self) -> Result<(), Fault> {
        let program = self.program;
        while let Some(step) = program.steps.get(self.step) {
            self.step += 1;
            match step {
                Step::Think { ns } => {
                    self.later(*ns, Happening::Program);
                    return Ok(());
                }
                Step::Wait { handle } => {
                    let version = self.handles[*handle];
                    if version.is_some_and(|v| self.checks.memory.settled(v).is_none()) {
                        self.blocked_on = version;
                        return Ok(());
                    }
                }
                Step::Next { task, handle } => {
                    self.blocked_on = self.take_next(*task, *handle)?;
                    if self.blocked_on.is_some() {
                        self.step -= 1; // once more when it is there
                        return Ok(());
                    }
                }
                other => self.take_step(other)?,
            }
        }
        match program.hasty {
            true => self.forget_all(),
            false => Ok(()),
        }
    }

    fn take_step(&mut self, step: &'a Step) -> Result<(), Fault> {
        match step {
            Step::Put { handle } => {
                let version = self.sched.add_value(8);
                self.checks.memory.given(version)?;
                let value = mix(0x9a, *handle as u64);
                self.store.values.insert(version, value);
                self.initial.insert(version, value);
                self.checks.binding.returns(version);
                self.handles[*handle] = Some(version);
            }
            Step::Datum { datum, initial } => self.make_datum(*datum, *initial)?,
            Step::Submit(plan) => self.submit(plan)?,
            Step::Forget { handle } => self.forget(*handle)?,
            Step::Hold { handle, of } => {
                let Some(version) = self.handles[*of] else { return Ok(()) };
                self.hold(*handle, version)?;
            }
            Step::Peek { task, handle } => {
                let Some(version) = self.awaited(*task) else { return Ok(()) };
                self.hold(*handle, version)?;
            }
            Step::Current { handle, datum } => self.current(*handle, *datum)?,
            Step::Drop { datum } => self.drop_datum(*datum)?,
            Step::Cancel { task } => match self.streams.contains_key(task) {
                true => self.close_stream(*task)?,
                false => self.cancel(*task)?,
            },
            Step::Think { .. } | Step::Wait { .. } | Step::Next { .. } => {
                unreachable!("the caller took them")
            }
        }
        Ok(())
    }

    fn hold(&mut self, handle: usize, version: VersionId) -> Result<(), Fault> {
        if !self.sched.hold(version) {
            return Err(Fault::new("memory", format!("{version:?} is named and gone")));
        }
        self.checks.memory.named(version)?;
        self.handles[handle] = Some(version);
        Ok(())
    }

    pub(crate) fn cancel(&mut self, task: usize) -> Result<(), Fault> {
        let Some(entry) = &mut self.tasks[task] else { return Ok(()) };
        entry.cancel_asked = true;
        let id = entry.id;
        self.checks.order.gone(task);
        self.drive(Event::Cancel { task: id })?;
        // One whose time is up is over when its executor is; one that settles, when it has.
        match self.sched.state(id) {
            Some(State::Abandoned | State::Settling) => Ok(()),
            _ => self.checks.dead.cancelled(task),
        }
    }

    fn make_datum(&mut self, datum: usize, initial: Option<usize>) -> Result<(), Fault> {
        let plan = &self.program.data[datum];
        let initial = initial.and_then(|handle| self.handles[handle]);
        let initial = initial.filter(|version| self.checks.binding.is_value(*version));
        let Some(id) = self.sched.add_datum(plan.kind, initial) else {
            return Err(Fault::new("memory", format!("{initial:?} is named and gone")));
        };
        self.data[datum] = Some(id);
        self.tell(|| format!("d{datum} is {id:?}, from {initial:?}"));
        match plan.kind {
            DatumKind::InPlace => self.store.data[datum] = Some(Cells::new(&plan.shape)),
            DatumKind::Value => {
                let version = match initial {
                    Some(version) => version,
                    None => self.empty_value(datum)?,
                };
                self.checks.memory.latest(version, true);
                self.checks.binding.starts_as(datum, version);
            }
        }
        Ok(())
    }

    /// A value datum without a first value has an empty one.
    fn empty_value(&mut self, datum: usize) -> Result<VersionId, Fault> {
        let id = self.data[datum].expect("just made");
        let Some(version) = self.sched.current(id) else {
            return Err(Fault::new("memory", format!("d{datum} has no version")));
        };
        self.checks.memory.given(version)?;
        self.checks.memory.latest(version, true);
        self.store.values.insert(version, EMPTY);
        self.initial.insert(version, EMPTY);
        self.checks.memory.unnamed(version);
        self.drive(Event::Forget { version })?;
        self.checks.memory.latest(version, false);
        Ok(version)
    }

    fn current(&mut self, handle: usize, datum: usize) -> Result<(), Fault> {
        let Some(id) = self.data[datum].filter(|_| !self.dropped[datum]) else { return Ok(()) };
        let version = self.sched.current(id);
        if self.program.data[datum].kind == DatumKind::Value {
            self.checks.binding.named(datum, version)?;
        }
        if let Some(version) = version {
            self.checks.memory.named(version)?;
            self.handles[handle] = Some(version);
        }
        Ok(())
    }

    fn forget(&mut self, handle: usize) -> Result<(), Fault> {
        let Some(version) = self.handles[handle].take() else { return Ok(()) };
        self.checks.memory.unnamed(version);
        if self.canary == Some(Canary::LoseForget) && !self.canary_done {
            self.canary_done = true;
            return Ok(());
        }
        self.drive(Event::Forget { version })
    }

    fn drop_datum(&mut self, datum: usize) -> Result<(), Fault> {
        let Some(id) = self.data[datum] else { return Ok(()) };
        if std::mem::replace(&mut self.dropped[datum], true) {
            return Ok(());
        }
        if let Some(version) = self.checks.binding.ends(datum) {
            self.checks.memory.latest(version, false);
        }
        let mut out = Vec::new();
        self.tell(|| format!("drop d{datum}"));
        self.sched.drop_datum(id, &mut out);
        self.carry_out(out)
    }

    /// Drops every stream, handle and datum that is left, in no particular order.
    pub(crate) fn forget_all(&mut self) -> Result<(), Fault> {
        self.close_streams()?;
        let mut handles: Vec<usize> = (0..self.handles.len()).collect();
        handles.sort_by_key(|handle| mix(0xf0, *handle as u64));
        let data = self.data.len();
        for datum in 0..data / 2 {
            self.drop_datum(datum)?;
        }
        for handle in handles {
            self.forget(handle)?;
        }
        for datum in data / 2..data {
            self.drop_datum(datum)?;
        }
        Ok(())
    }

    fn access(&self, plan: &AccessPlan) -> Option<Access> {
        let target = match plan.target {
            TargetPlan::Handle(handle) => {
                // What a version of data in place held is not kept: nobody reads it by name.
                let version = self.handles[handle]?;
                Target::Version(Some(version).filter(|v| self.checks.binding.is_value(*v))?)
            }
            TargetPlan::Datum(datum) => Target::Datum(self.data[datum]?),
        };
        Some(Access { target, region: plan.region.clone(), direction: plan.direction })
    }

    fn submit(&mut self, plan: &'a TaskPlan) -> Result<(), Fault> {
        let mut plans = Vec::with_capacity(plan.accesses.len());
        let mut accesses = Vec::with_capacity(plan.accesses.len());
        for access in &plan.accesses {
            let dropped = match access.target {
                TargetPlan::Datum(datum) => self.dropped[datum],
                TargetPlan::Handle(_) => false,
            };
            if dropped && plan.expect != Some(Expect::Stale) {
                continue;
            }
            if let Some(made) = self.access(access) {
                plans.push(access);
                accesses.push(made);
            }
        }
        let whole = accesses.len() == plan.accesses.len();
        let spoiled = match plan.expect {
            Some(Expect::Stale) => self.dropped_all(plan),
            Some(_) => true,
            None => false,
        };
        if plan.expect.is_some() && !(whole && spoiled) {
            return Ok(());
        }
        self.files_found(&plans)?;
        let spec = self.spec(plan, accesses);
        let mut out = Vec::new();
        self.tell(|| format!("submit task {}", plan.task));
        let before = (self.sched.live_tasks(), self.sched.live_versions());
        match (self.sched.submit(self.now, &spec, &mut out), plan.expect) {
            (Ok(submitted), None) => {
                let bound = self.sched.bound(submitted.task).to_vec();
                let live = self.sched.state(submitted.task).is_some();
                let bound = live.then_some(bound);
                self.take_in(plan, &plans, submitted.task, &submitted.outputs, bound)?;
                self.carry_out(out)
            }
            (Err(refusal), Some(expect)) if matches(&refusal, expect) => {
                self.report.refused += 1;
                let after = (self.sched.live_tasks(), self.sched.live_versions());
                match before == after && out.is_empty() {
                    true => Ok(()),
                    false => Err(Fault::of_task("state", plan.task, "refused, but it left traces")),
                }
            }
            (result, expect) => {
                let message = format!("submitted: {result:?}, expected refusal: {expect:?}");
                Err(Fault::of_task("results", plan.task, message))
            }
        }
    }

    /// What the driver says of files when they are named to be read.
    fn files_found(&mut self, plans: &[&AccessPlan]) -> Result<(), Fault> {
        for access in plans.iter().filter(|access| access.direction == Direction::In) {
            let TargetPlan::Datum(datum) = access.target else { continue };
            if self.program.data[datum].kind == DatumKind::InPlace {
                self.file_found(datum)?;
            }
        }
        Ok(())
    }

    fn dropped_all(&self, plan: &TaskPlan) -> bool {
        plan.accesses.iter().all(|access| match access.target {
            TargetPlan::Datum(datum) => self.dropped[datum],
            TargetPlan::Handle(_) => false,
        })
    }

    fn spec(&self, plan: &TaskPlan, accesses: Vec<Access>) -> TaskSpec {
        let swapped = self.canary == Some(Canary::SwapPriorities);
        TaskSpec {
            function: self.functions[plan.function],
            name: Arc::from(format!("task {}", plan.task)),
            kind: plan.kind,
            cpus: plan.cpus,
            priority: if swapped { -plan.priority } else { plan.priority },
            retries: plan.retries,
            timeout: plan.timeout,
            on_failure: plan.on_failure,
            constraint: plan.constraint,
            tuning: plan.tuning,
            returns: plan.returned() as u32,
            accesses,
            produces: plan.produces,
            layer: plan.layer,
        }
    }

    fn take_in(
        &mut self,
        plan: &'a TaskPlan,
        plans: &[&AccessPlan],
        id: TaskId,
        outputs: &[VersionId],
        bound: Option<Vec<Bound>>,
    ) -> Result<(), Fault> {
        for (handle, version) in plan.returns.iter().zip(outputs) {
            self.checks.memory.named(*version)?;
            self.checks.binding.returns(*version);
            self.handles[*handle] = Some(*version);
        }
        if let Some(stream) = plan.stream {
            self.checks.memory.named(outputs[0])?;
            self.checks.binding.returns(outputs[0]);
            self.open_stream(plan.task, stream, outputs[0]);
        }
        let mut made = outputs[plan.returned()..].iter().copied();
        let mut used = Vec::with_capacity(plans.len());
        for (index, access) in plans.iter().enumerate() {
            let bound = bound.as_ref().map(|bound| bound[index]);
            used.push(self.take_in_access(plan.task, access, bound, &mut made)?);
        }
        let reads: Vec<VersionId> = used.iter().filter_map(read_of).collect();
        for version in &reads {
            self.checks.memory.reads(*version)?;
        }
        let plain = used.iter().all(|used| match used.what {
            Use::Value { .. } => !used.direction.grouped(),
            Use::Cells { .. } => false,
        });
        if plain {
            let memory = &self.checks.memory;
            let missing = reads.iter().copied().filter(|v| memory.settled(*v) != Some(true));
            let missing: Vec<_> = missing.collect();
            self.checks.order.submitted(plan, missing, self.report.events + 1);
        }
        if self.canary == Some(Canary::BeginEarly) {
            self.store.scribble_early(plan.task, &used);
        }
        self.tell(|| format!("task {} is {id:?}: {outputs:?} {used:?}", plan.task));
        self.taken(Task {
            plan,
            id,
            used,
            outputs: outputs.to_vec(),
            reads,
            begins: 0,
            failed_runs: 0,
            attempt: 0,
            sent_at: 0,
            placed: None,
            credit: Credit::default(),
            cancel_asked: false,
            failed_on: Vec::new(),
            digest: None,
            end: None,
        });
        Ok(())
    }

    fn take_in_access(
        &mut self,
        task: usize,
        plan: &AccessPlan,
        bound: Option<Bound>,
        made: &mut impl Iterator<Item = VersionId>,
    ) -> Result<Used, Fault> {
        let direction = plan.direction;
        let fault = |message| Fault::of_task("results", task, message);
        let (read, write) = match plan.target {
            TargetPlan::Handle(handle) => (self.handles[handle], None),
            TargetPlan::Datum(datum) => {
                if let Some(cells) = &self.store.data[datum] {
                    if let Some(version) = bound.and_then(|bound| bound.write) {
                        self.checks.memory.made(version)?;
                    }
                    let positions = cells.positions(&plan.region);
                    let region = plan.region.clone();
                    return Ok(Used { direction, what: Use::Cells { datum, positions, region } });
                }
                let write = if direction.writes() { made.next() } else { None };
                let before = self.checks.binding.latest(datum);
                let read = self.checks.binding.bind(datum, direction, write).map_err(fault)?;
                if let (Some(write), Some(before)) = (write, before) {
                    self.checks.memory.made(write)?;
                    self.checks.memory.latest(before, false);
                    self.checks.memory.latest(write, true);
                }
                if let (true, Some(read), Some(write)) = (direction.grouped(), read, write) {
                    self.store.bases.insert(write, read);
                }
                (read, write)
            }
        };
        if let Some(bound) = bound.filter(|bound| (bound.read, bound.write) != (read, write)) {
            return Err(fault(format!("{plan:?} is bound to {bound:?}, not {read:?}, {write:?}")));
        }
        Ok(Used { direction, what: Use::Value { read, write } })
    }
}

/// The version that an access has to read.
fn read_of(used: &Used) -> Option<VersionId> {
    match used.what {
        Use::Value { read, .. } => read,
        Use::Cells { .. } => None,
    }
}

fn matches(refusal: &Refusal, expect: Expect) -> bool {
    match expect {
        Expect::TooManyProcessors => matches!(refusal, Refusal::TooManyProcessors { .. }),
        Expect::NoLayer => matches!(refusal, Refusal::NoLayer { .. }),
        Expect::SelfConflict => {
            matches!(refusal, Refusal::SelfConflict { accesses: (0, 1) })
        }
        Expect::BadRegion => matches!(refusal, Refusal::BadRegion { access: 0 }),
        Expect::Stale => matches!(refusal, Refusal::Stale { access: 0 }),
        Expect::BadDirection => matches!(refusal, Refusal::BadDirection { access: 0 }),
    }
}
