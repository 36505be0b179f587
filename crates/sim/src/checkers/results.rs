//! Every result is the one of the sequential run of the same program, given the same failures;
//! failed and cancelled are exactly the tasks that failed themselves, those that the program
//! cancelled, and those that need failed data.
//!
//! The sequential run takes the tasks in the order of their calls, on a store of its own. What
//! a task read (its digest), what every version resolved to and what is left in data in place
//! must be equal. [`Binding`] says by itself which version each access has to be bound to.
//!
//! *Needing* failed data is judged cell by cell: a task that reads a cell whose last writer
//! failed must be cancelled. The scheduler keeps versions by region, so it may also cancel a
//! reader of a region that overlaps a failed one which no single later write covers whole; such
//! tasks are allowed and counted. A task never needs the work of its neighbours of the same
//! grouped direction.

use std::sync::Arc;

use graph::{Direction, Region, VersionId};
use sched::{Cause, Failure, OnFailure};

use super::streams::Streams;
use super::Fault;
use crate::hash::Map;
use crate::values::{covers, handed, overlap, returned, Cells, Store, Use, Used, EMPTY};
use crate::world::{Task, World};

/// Which version of each value datum is the latest, and whether a group may be joined.
#[derive(Debug)]
pub struct Binding {
    data: Vec<(Option<VersionId>, Option<Direction>)>,
    bases: Map<VersionId, VersionId>,
    values: Map<VersionId, ()>,
}

impl Binding {
    /// No datum is there yet.
    pub fn new(data: usize) -> Binding {
        Binding { data: vec![(None, None); data], bases: Map::default(), values: Map::default() }
    }

    /// A value datum is made.
    pub fn starts_as(&mut self, datum: usize, version: VersionId) {
        self.data[datum] = (Some(version), None);
        self.values.insert(version, ());
    }

    /// A version that is no datum's (yet).
    pub fn returns(&mut self, version: VersionId) {
        self.values.insert(version, ());
    }

    /// Whether a version is of a value, not of data in place.
    pub fn is_value(&self, version: VersionId) -> bool {
        self.values.contains_key(&version)
    }

    /// The latest version of a datum.
    pub fn latest(&self, datum: usize) -> Option<VersionId> {
        self.data[datum].0
    }

    /// A datum is dropped; its latest version, if it was a value.
    pub fn ends(&mut self, datum: usize) -> Option<VersionId> {
        self.data[datum].0.take()
    }

    /// The program took a name of the latest version: nobody joins its group any more.
    pub fn named(&mut self, datum: usize, version: Option<VersionId>) -> Result<(), Fault> {
        let (latest, group) = &mut self.data[datum];
        *group = None;
        match *latest == version {
            true => Ok(()),
            false => Err(Fault::new("results", format!("d{datum}: {version:?}, not {latest:?}"))),
        }
    }

    /// What an access has to read, given what it makes.
    pub fn bind(
        &mut self,
        datum: usize,
        direction: Direction,
        write: Option<VersionId>,
    ) -> Result<Option<VersionId>, String> {
        let (latest, group) = &mut self.data[datum];
        if let Some(write) = write {
            self.values.insert(write, ());
        }
        let before = *latest;
        if direction.grouped() && write == before {
            if *group != Some(direction) {
                return Err(format!("joins a group of {group:?} in d{datum}"));
            }
            return Ok(before.and_then(|version| self.bases.get(&version).copied()));
        }
        *group = direction.grouped().then_some(direction);
        if let Some(write) = write {
            *latest = Some(write);
            if let Some(before) = before.filter(|_| direction.grouped()) {
                self.bases.insert(write, before);
            }
        }
        Ok(before.filter(|_| direction.reads()))
    }
}

/// A failure in words, from here to the root.
pub fn chain(failure: &Failure) -> String {
    let mut text = failure.name.to_string();
    let mut from = failure.from.as_deref();
    while let Some(next) = from {
        text += &format!(" < {}", next.name);
        from = next.from.as_deref();
    }
    match &failure.cause {
        Cause::Raised(_) => text + ": raised",
        other => text + &format!(": {other:?}"),
    }
}

/// Failed writers of a datum in place, by region and by cell.
#[derive(Debug, Default)]
struct Spoiled {
    regions: Vec<(Region, Direction, usize)>,
    cells: Map<usize, Vec<(Direction, usize)>>,
}

/// The sequential run.
#[derive(Default)]
struct Sequence {
    store: Store,
    failed: Map<VersionId, Vec<usize>>,
    spoiled: Vec<Spoiled>,
}

fn ignored(failure: &Failure) -> bool {
    failure.from.is_none() && failure.on_failure == OnFailure::Ignore
}

impl Sequence {
    /// The failed tasks whose data a task needs: for certain, and by region.
    fn needs(&self, task: &Task<'_>) -> (Vec<usize>, Vec<usize>) {
        let (mut certain, mut by_region) = (Vec::new(), Vec::new());
        for used in &task.used {
            match &used.what {
                Use::Value { read, .. } => {
                    let failed = read.and_then(|version| self.failed.get(&version));
                    certain.extend(failed.into_iter().flatten());
                }
                Use::Cells { datum, positions, region } if used.direction.reads() => {
                    let fellow = |other: Direction| other.grouped() && other == used.direction;
                    let spoiled = &self.spoiled[*datum];
                    for (other, direction, task) in &spoiled.regions {
                        if overlap(other, region) && !fellow(*direction) {
                            by_region.push(*task);
                        }
                    }
                    for cell in positions.iter().filter_map(|at| spoiled.cells.get(at)) {
                        certain.extend(
                            cell.iter().filter(|(other, _)| !fellow(*other)).map(|(_, t)| t),
                        );
                    }
                }
                Use::Cells { .. } => {}
            }
        }
        by_region.extend(&certain);
        (certain, by_region)
    }

    /// What the task writes is as good as the task from now on.
    fn mark(&mut self, task: &Task<'_>, fails: bool) {
        for used in &task.used {
            match &used.what {
                Use::Value { write: Some(version), .. } if fails => {
                    self.failed.entry(*version).or_default().push(task.plan.task);
                }
                Use::Cells { datum, positions, region } if used.direction.writes() => {
                    let spoiled = &mut self.spoiled[*datum];
                    if !used.direction.grouped() {
                        spoiled.regions.retain(|(other, ..)| !covers(region, other));
                        positions.iter().for_each(|at| drop(spoiled.cells.remove(at)));
                    }
                    if fails {
                        let entry = (used.direction, task.plan.task);
                        spoiled.regions.push((region.clone(), entry.0, entry.1));
                        for at in positions {
                            spoiled.cells.entry(*at).or_default().push(entry);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Runs one task as it ended, and compares.
    fn run(
        &mut self,
        task: &Task<'_>,
        released: &Map<VersionId, ()>,
        streams: &Streams,
    ) -> Result<bool, Fault> {
        let number = task.plan.task;
        let fault = |message: String| Fault::of_task("results", number, message);
        let end = task.end.as_ref().expect("everything is over");
        let (certain, by_region) = self.needs(task);
        let failure = end.as_deref();
        let mut only_by_region = false;
        match failure {
            Some(Failure { from: Some(from), .. }) => {
                let known = by_region.iter().any(|other| *from.name == *format!("task {other}"));
                if !known {
                    let why = chain(failure.expect("matched"));
                    return Err(fault(format!("cancelled ({why}), but it needs {by_region:?}")));
                }
                only_by_region = certain.is_empty();
            }
            _ if !certain.is_empty() && task.begins > 0 => {
                return Err(fault(format!("ran, though it needs failed tasks {certain:?}")));
            }
            None if !certain.is_empty() => {
                return Err(fault(format!("ended well, though it needs {certain:?}")));
            }
            _ => {}
        }
        for (from, base) in task.used.iter().filter_map(group_of) {
            self.store.bases.insert(from, base);
        }
        let digest = match failure {
            None => self.run_well(task)?,
            Some(failure) => self.run_badly(task, failure, released)?,
        };
        for (value, version) in streams.versions(number).enumerate() {
            self.store.values.insert(version, handed(digest, value as u32));
        }
        Ok(only_by_region)
    }

    fn run_well(&mut self, task: &Task<'_>) -> Result<u64, Fault> {
        let number = task.plan.task;
        let fault = |message: String| Fault::of_task("results", number, message);
        let mut body = self.store.begin(number, &task.used).map_err(fault)?;
        self.store.finish(number, &task.used, &mut body, false).map_err(fault)?;
        if task.digest != Some(body.digest) {
            let message = format!(
                "read something else ({:x?}) than in the sequential run ({:x})",
                task.digest, body.digest
            );
            return Err(fault(message));
        }
        let outputs = body.outputs(task.plan.returned(), &task.used);
        self.store.keep(&task.outputs, &task.used, &outputs);
        self.mark(task, false);
        Ok(body.digest)
    }

    fn run_badly(
        &mut self,
        task: &Task<'_>,
        failure: &Failure,
        released: &Map<VersionId, ()>,
    ) -> Result<u64, Fault> {
        let number = task.plan.task;
        let mut digest = 0;
        if task.begins > 0 {
            let begun = self.store.begin(number, &task.used);
            let body = begun.map_err(|message| Fault::of_task("results", number, message))?;
            self.store.ruin(number, &task.used, &body);
            digest = body.digest;
        }
        let fails = !ignored(failure);
        let returns = task.plan.returned();
        for (index, version) in task.outputs.iter().enumerate() {
            let grouped = self.store.bases.contains_key(version);
            if released.contains_key(version) {
                self.store.values.insert(*version, returned(digest, index));
            } else if fails && index < returns {
                self.failed.insert(*version, vec![number]);
            } else if !fails && !grouped {
                self.store.values.insert(*version, EMPTY);
            }
        }
        self.mark(task, fails);
        Ok(digest)
    }
}

fn group_of(used: &Used) -> Option<(VersionId, VersionId)> {
    match used.what {
        Use::Value { read: Some(read), write: Some(write) } if used.direction.grouped() => {
            Some((write, read))
        }
        _ => None,
    }
}

/// Whether a task that failed by itself had a reason to.
fn check_cause(task: &Task<'_>, failure: &Failure) -> Result<(), Fault> {
    let fault = |message: String| Err(Fault::of_task("results", task.plan.task, message));
    let runs = task.plan.retries + 1;
    let (failed, asked) = (task.failed_runs, task.cancel_asked);
    if *failure.name != *format!("task {}", task.plan.task) {
        return fault(format!("failed as {}", failure.name));
    }
    match failure.cause {
        Cause::Cancelled if failure.from.is_none() && !asked => {
            fault("cancelled, but nobody asked".to_string())
        }
        _ if failure.from.is_some() && task.begins > 0 => {
            fault(format!("ran, and was cancelled with another: {}", chain(failure)))
        }
        _ if failure.from.is_some() => Ok(()),
        Cause::Cancelled => Ok(()),
        Cause::NoLayer(_) if !task.plan.kind.is_io() => fault("it needs no layer".to_string()),
        Cause::NoLayer(_) => Ok(()),
        Cause::Raised(ref payload) if **payload == *crate::executor::UNPLACED => {
            match task.failed_on.is_empty() {
                true => fault("no layer failed it".to_string()),
                false => Ok(()),
            }
        }
        Cause::TimedOut(after) if task.plan.timeout != Some(after) => {
            fault(format!("timed out after {after} ns, allowed {:?}", task.plan.timeout))
        }
        _ if failed > runs || (failed < runs && !asked && task.plan.timeout.is_none()) => {
            fault(format!("failed after {failed} failed runs of {runs} ({})", chain(failure)))
        }
        _ => Ok(()),
    }
}

/// Compares everything that was with the sequential run.
pub(crate) fn check(world: &mut World<'_>) -> Result<(), Fault> {
    let mut sequence = Sequence::default();
    for plan in &world.program.data {
        let cells = Cells::new(&plan.shape);
        sequence.store.data.push(Some(cells));
        sequence.spoiled.push(Spoiled::default());
    }
    sequence.store.values = world.initial.clone();
    for number in &world.order {
        let task = world.tasks[*number].as_ref().expect("it was taken");
        if let Some(Some(failure)) = &task.end {
            let failure: &Arc<Failure> = failure;
            check_cause(task, failure)?;
        }
        let by_region = sequence.run(task, &world.released, &world.checks.streams)?;
        world.report.cancelled_by_region += u64::from(by_region);
    }
    compare(world, &sequence)
}

fn compare(world: &World<'_>, sequence: &Sequence) -> Result<(), Fault> {
    for number in &world.order {
        let task = world.tasks[*number].as_ref().expect("it was taken");
        let streamed = world.checks.streams.versions(*number);
        for version in task.outputs.iter().copied().chain(streamed) {
            let ours = world.resolved.get(&version).copied();
            let theirs = match sequence.failed.contains_key(&version) {
                true => None,
                false => sequence.store.value(version).ok(),
            };
            if ours != theirs {
                let message = format!("{version:?} is {ours:x?}, sequentially {theirs:x?}");
                return Err(Fault::of_task("results", *number, message));
            }
        }
    }
    for (datum, cells) in world.store.data.iter().enumerate() {
        let Some(cells) = cells else { continue };
        if Some(cells) != sequence.store.data[datum].as_ref() {
            return Err(Fault::new("results", format!("d{datum} is not as it would be in order")));
        }
    }
    Ok(())
}
