//! What the scheduler keeps of a task that is not over.

use alloc::boxed::Box;
use alloc::sync::Arc;

use graph::TaskId;

use crate::api::{
    Constraint, ExecutorId, Failure, FunctionId, Kind, LayerId, OnFailure, TaskSpec, Time,
};
use crate::files::Use;
use crate::function::Function;
use crate::layers::Mask;
use crate::policy::Request;
use crate::transitions::State;

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) task: TaskId,
    pub(crate) state: State,
    pub(crate) kind: Kind,
    pub(crate) on_failure: OnFailure,
    /// The program cancelled it while it was at an executor: so be it if it comes back.
    pub(crate) cancel_wanted: bool,
    pub(crate) function: FunctionId,
    /// Where it is not the one of its function.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) cpus: u32,
    pub(crate) priority: i32,
    pub(crate) retries_left: u32,
    pub(crate) attempt: u32,
    /// It cannot run again, whatever it fails of.
    pub(crate) is_last_run: bool,
    pub(crate) timeout: Option<u64>,
    /// While it is at an executor.
    pub(crate) deadline: Option<Deadline>,
    pub(crate) constraint: Constraint,
    /// Among the tuned, or `STATIC`.
    pub(crate) group: u32,
    pub(crate) produces: u64,
    pub(crate) layer: Option<LayerId>,
    /// Layers that failed it: it never goes there again.
    pub(crate) failed_on: Mask,
    /// What it does to data in place, where that is counted.
    pub(crate) uses: Option<Box<[Use]>>,
    /// Its arrival among the ready.
    pub(crate) serial: u64,
    /// Where most bytes of its inputs are.
    pub(crate) node: u32,
    pub(crate) executor: Option<ExecutorId>,
    /// While it settles: the room that what it wrote takes up, which is not told yet.
    pub(crate) reserved: Option<(LayerId, u64)>,
    /// Of an abandoned task: what it failed of, and for good.
    pub(crate) failure: Option<Arc<Failure>>,
}

impl Record {
    pub(crate) fn new(
        task: TaskId,
        spec: &TaskSpec,
        function: Option<&Function>,
        group: u32,
    ) -> Record {
        let usual = function.is_some_and(|function| Arc::ptr_eq(&function.name, &spec.name));
        Record {
            task,
            state: State::New,
            kind: spec.kind,
            on_failure: spec.on_failure,
            cancel_wanted: false,
            function: spec.function,
            name: (!usual).then(|| spec.name.clone()),
            cpus: spec.cpus,
            priority: spec.priority,
            retries_left: spec.retries,
            attempt: 0,
            is_last_run: false,
            timeout: spec.timeout,
            deadline: None,
            constraint: spec.constraint,
            group,
            produces: spec.produces,
            layer: spec.layer,
            failed_on: Mask::default(),
            uses: None,
            serial: 0,
            node: 0,
            executor: None,
            reserved: None,
            failure: None,
        }
    }

    /// What a ready I/O task asks of the policy.
    pub(crate) fn request(&self) -> Request {
        let Record { task, kind, function, priority, serial, constraint, layer, .. } = *self;
        let not = self.failed_on;
        Request { task, kind, function, priority, serial, constraint, layer, not }
    }
}

/// When the run of a task that is at an executor now is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline {
    pub(crate) at: Time,
    pub(crate) task: TaskId,
}
