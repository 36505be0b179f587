//! Priority, then arrival, among ready tasks, where it can be told from outside.
//!
//! It can be told on one node for tasks that wait for nothing but versions, were never sent
//! before, whose bandwidth is not tuned, and that ask for no more than the task that was sent
//! instead of them. A task counts as ready when its last version came at an earlier event, so that
//! the order within one event is left to the scheduler.

use graph::VersionId;
use sched::Tuning;

use super::Fault;
use crate::hash::Map;
use crate::program::TaskPlan;

#[derive(Debug)]
struct Waiting<'a> {
    plan: &'a TaskPlan,
    missing: Vec<VersionId>,
    ready_since: Option<u64>,
}

/// The tasks whose readiness can be told.
#[derive(Debug)]
pub struct Order<'a> {
    single: bool,
    /// Whether I/O tasks go in order of arrival.
    fcfs: bool,
    waiting: Map<usize, Waiting<'a>>,
    waiters: Map<VersionId, Vec<usize>>,
}

impl<'a> Order<'a> {
    /// Nobody waits yet.
    pub fn new(nodes: usize, fcfs: bool) -> Order<'a> {
        Order { single: nodes == 1, fcfs, waiting: Map::default(), waiters: Map::default() }
    }

    /// A task was taken that waits for these versions and nothing else.
    pub fn submitted(&mut self, plan: &'a TaskPlan, missing: Vec<VersionId>, event: u64) {
        if !self.single || plan.timeout.is_some() || plan.tuning != Tuning::Static {
            return;
        }
        if plan.kind.is_io() && !self.fcfs {
            return;
        }
        for version in &missing {
            self.waiters.entry(*version).or_default().push(plan.task);
        }
        let ready_since = missing.is_empty().then_some(event);
        self.waiting.insert(plan.task, Waiting { plan, missing, ready_since });
    }

    /// A version came.
    pub fn came(&mut self, version: VersionId, event: u64) {
        for task in self.waiters.remove(&version).unwrap_or_default() {
            if let Some(waiting) = self.waiting.get_mut(&task) {
                waiting.missing.retain(|missing| *missing != version);
                if waiting.missing.is_empty() {
                    waiting.ready_since = Some(event);
                }
            }
        }
    }

    /// A task waits no more, or not in a way that can be told.
    pub fn gone(&mut self, task: usize) {
        self.waiting.remove(&task);
    }

    /// A task is sent (`ahead`: behind another, which takes a known run time): nobody who
    /// could have had its place was to come first.
    pub fn run(&mut self, plan: &TaskPlan, ahead: bool, event: u64) -> Result<(), Fault> {
        let sent = self.waiting.remove(&plan.task).filter(|_| !ahead);
        let Some(ready) = sent.and_then(|waiting| waiting.ready_since) else { return Ok(()) };
        let mut passed: Option<&Waiting<'_>> = None;
        for other in self.waiting.values() {
            let Some(since) = other.ready_since else { continue };
            if since >= event || !could_take(other.plan, plan) {
                continue;
            }
            let higher = other.plan.priority > plan.priority;
            let earlier = other.plan.priority == plan.priority
                && other.plan.task < plan.task
                && since < ready;
            let first = passed.is_none_or(|passed| other.plan.task < passed.plan.task);
            if (higher || earlier) && first {
                passed = Some(other);
            }
        }
        match passed {
            Some(Waiting { plan: other, ready_since, .. }) => Err(Fault::of_task(
                "order",
                plan.task,
                format!(
                    "sent (priority {}, ready since event {ready}) before task {} (priority {}, \
                     ready since event {ready_since:?})",
                    plan.priority, other.task, other.priority
                ),
            )),
            None => Ok(()),
        }
    }
}

/// Whether `other` fits wherever `plan` fits.
fn could_take(other: &TaskPlan, plan: &TaskPlan) -> bool {
    let (a, b) = (other.constraint, plan.constraint);
    other.kind == plan.kind
        && (other.kind.is_io() || other.cpus == plan.cpus)
        && a.bandwidth <= b.bandwidth
        && (a.way == b.way || a.bandwidth == 0)
        // Who asks for no bandwidth may not take every slot.
        && (a.bandwidth > 0 || b.bandwidth == 0)
        && a.size <= b.size
        && (other.layer.is_none() || other.layer == plan.layer)
}
