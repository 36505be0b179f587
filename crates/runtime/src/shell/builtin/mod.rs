//! Built-in I/O tasks: files are read, written and copied by the engine, straight between shared
//! memory and storage, without a worker process and without a thread for each.
//!
//! For the scheduler the engine is an executor with [`TASKS_MAX`] slots. It comes up when the first
//! such task is called. A task goes to its [`thread`](thread) as a small state machine ([`work`]),
//! and comes back with its value ([`memory`]). Nothing can be taken out of the kernel: a task whose
//! time is up stops after the operation that is under way, and only then is the executor that it
//! ran on lost; a new one takes the other tasks meanwhile.

mod folders;
mod memory;
mod persist;
mod thread;
mod work;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use sched::{Event, ExecutorId, Kind, NodeId, Outcome, TaskId};
use smallvec::smallvec;

use super::receive::Ran;
use super::run::Place;
use super::staged::Ending;
use super::state::{Sent, State};
use crate::store::block;
use crate::store::Value;
use crate::trace::{Record, RecordKind};
use crate::{pickle, Direction};
use memory::Data;
pub(crate) use thread::Queue;
use work::{File, Finished, Job, Ticket, Work};

/// Built-in tasks that are under way at a time; each has at most two files open.
const TASKS_MAX: u32 = 128;

/// A task that the engine does by itself, with the files and the value of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// Gives the bytes of the first file, as a pickled `bytes`.
    Read {
        /// From where on.
        offset: u64,
        /// How many at most; `None`: up to the end.
        size: Option<u64>,
    },
    /// Writes the bytes of a value into the first file: the first input, or without inputs the only
    /// buffer of the arguments. Gives how many. A value whose bytes only Python knows is written by
    /// the function of the call, in an I/O worker.
    Write,
    /// Copies the first file to the second. Gives how many bytes.
    Copy,
    /// Brings the first file to its own path. Gives how many bytes were moved: 0 if it was there.
    Persist,
}

/// One executor, as the scheduler sees it.
struct Lane {
    tasks: u32,
    /// Since when there have been tasks without a break.
    busy_since_ns: u64,
    stop: Arc<AtomicBool>,
    killed: bool,
}

/// What the state knows of the engine.
#[derive(Default)]
pub(crate) struct Engines {
    /// Whether the runtime thread was asked to start it.
    wanted: bool,
    pub(super) queue: Option<Arc<Queue>>,
    lanes: BTreeMap<ExecutorId, Lane>,
}

impl Engines {
    /// Whether an executor is one of these.
    pub(super) fn has(&self, executor: ExecutorId) -> bool {
        self.lanes.contains_key(&executor)
    }

    /// One more task for an executor.
    fn ticket(&mut self, task: TaskId, place: &Place, now_ns: u64) -> Ticket {
        let lane = self.lanes.get_mut(&place.executor).expect("it is up");
        if lane.tasks == 0 {
            lane.busy_since_ns = now_ns;
        }
        lane.tasks += 1;
        let (executor, attempt) = (place.executor, place.attempt);
        Ticket { task, executor, attempt, stop: Arc::clone(&lane.stop) }
    }

    /// Since when those that have tasks have had some.
    pub(super) fn busy_since_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.lanes.values().filter(|lane| lane.tasks > 0).map(|lane| lane.busy_since_ns)
    }
}

impl State {
    /// A built-in task was called: there has to be an engine.
    pub(super) fn want_engine(&mut self) {
        if !std::mem::replace(&mut self.engines.wanted, true) {
            self.workers.to_start.push(Kind::Engine);
        }
    }

    /// The thread was started.
    pub(super) fn engine_started(&mut self, queue: Arc<Queue>) {
        self.engines.queue = Some(queue);
        self.engine_up();
    }

    fn engine_up(&mut self) {
        let executor = self.workers.next_executor();
        let stop = Arc::default();
        let lane = Lane { tasks: 0, busy_since_ns: 0, stop, killed: false };
        self.engines.lanes.insert(executor, lane);
        let now = exec::now_ns();
        let mut record = Record::new(now, RecordKind::ExecutorUp);
        record.executor = executor.0;
        (record.amount, record.other) = (TASKS_MAX.into(), 1);
        record.task = std::process::id().into();
        self.trace.push(record);
        let (kind, node, slots) = (Kind::Engine, NodeId(0), TASKS_MAX);
        let up = Event::ExecutorUp { executor, kind, node, slots, extra: 0 };
        self.sched.handle(now, up, &mut self.out);
    }

    /// A task there ran too long: the others go on, new ones go to another executor.
    pub(super) fn retire_engine(&mut self, executor: ExecutorId) {
        if self.engines.has(executor) {
            self.engine_up();
        }
    }

    /// Only tasks are left there that ran too long: they are to stop.
    pub(super) fn kill_engine(&mut self, executor: ExecutorId) {
        let Some(lane) = self.engines.lanes.get_mut(&executor) else { return };
        lane.killed = true;
        lane.stop.store(true, Ordering::Release);
        if let Some(queue) = &self.engines.queue {
            queue.look();
        }
        self.lose_idle_engine(executor);
    }

    fn lose_idle_engine(&mut self, executor: ExecutorId) {
        let idle = |lane: &Lane| lane.killed && lane.tasks == 0;
        if self.engines.lanes.get(&executor).is_some_and(idle) {
            self.engines.lanes.remove(&executor);
            let (started, reason) = (Vec::new(), "the engine gave a task up".into());
            let lost = Event::ExecutorLost { executor, started, reason };
            self.sched.handle(exec::now_ns(), lost, &mut self.out);
        }
    }

    /// Sends a task to the engine, or says that the engine cannot do it.
    pub(super) fn run_by_engine(&mut self, id: TaskId, place: Place) {
        if self.tasks.get(id).is_some_and(|task| task.builtin == Some(Builtin::Persist)) {
            return self.persist(id, place);
        }
        let Some(work) = self.work(id) else {
            let refused = Event::Refused { task: id, executor: place.executor };
            self.sched.handle(exec::now_ns(), refused, &mut self.out);
            return;
        };
        self.place_files(id, place.layer);
        let task = self.tasks.get(id).expect("only live tasks run");
        let mut files = task.files.iter().map(|(datum, way)| {
            let copy = self.copy_for(id, *datum, *way);
            let limiter = self.limiter_of(&copy);
            File::new(copy.place, limiter)
        });
        let (first, second) = (files.next(), files.next());
        drop(files);
        let files = match work {
            Work::Read { .. } => [first, None],
            Work::Write(_) => [None, first],
            Work::Copy => [first, second],
        };
        let ticket = self.engines.ticket(id, &place, exec::now_ns());
        let job = Job::new(ticket, work, files, task.durable);
        self.engines.queue.as_ref().expect("it is up").push(job);
        self.sent_to_engine(id, place);
    }

    fn sent_to_engine(&mut self, id: TaskId, place: Place) {
        let Place { executor, attempt, layer } = place;
        self.was_sent(id, Sent { executor, attempt, claim: None, layer, pins: smallvec![] });
    }

    /// What a task moves; `None`: the engine cannot.
    fn work(&self, id: TaskId) -> Option<Work> {
        let task = self.tasks.get(id).expect("only live tasks run");
        let needed = if task.builtin == Some(Builtin::Copy) { 2 } else { 1 };
        if task.files.len() != needed {
            return None;
        }
        Some(match task.builtin? {
            Builtin::Read { offset, size } => Work::Read { offset, size },
            Builtin::Copy => Work::Copy,
            Builtin::Persist => return None,
            Builtin::Write => Work::Write(self.data(id)?),
        })
    }

    /// The bytes that a task writes.
    fn data(&self, id: TaskId) -> Option<Data> {
        let task = self.tasks.get(id).expect("only live tasks run");
        let value = match &*task.inputs {
            [] => &task.arguments,
            [Direction::In] => {
                let read = self.sched.bound(id)[0].read?;
                self.versions.get(read)?.value.as_ref()?
            }
            _ => return None,
        };
        let range = match &*task.inputs {
            [] => match &*block::parse(value.as_bytes())?.buffers {
                [buffer] => buffer.clone(),
                _ => return None,
            },
            _ => pickle::raw_bytes(value.as_bytes())?,
        };
        Some(Data::new(Value::clone(value), range))
    }

    /// A task that the engine did is over.
    fn built_in_over(&mut self, finished: Finished) {
        let Finished { ticket, started_ns, bytes_read, bytes_written, errno, outcome } = finished;
        let Ticket { task: id, executor, attempt, .. } = ticket;
        self.at = Some(id);
        let ended_ns = exec::now_ns();
        if let Some(lane) = self.engines.lanes.get_mut(&executor) {
            lane.tasks -= 1;
        }
        if self.is_at(executor, id, attempt) {
            let ran = Ran {
                executor,
                started_ns,
                since_ns: started_ns,
                ended_ns,
                ran_ns: ended_ns.saturating_sub(started_ns),
                cpu_ns: 0,
                bytes_read,
                bytes_written,
                layer_errno: errno,
            };
            self.count_run(id, &ran, None);
            let outcome = match outcome {
                Ok(value) => self.keep_all(id, smallvec![value]),
                Err(payload) => Outcome::Raised(payload),
            };
            self.finish(Ending { executor, id, attempt, run: ran, outcome });
        }
        self.lose_idle_engine(executor);
    }
}
