//! Worker processes: what is kept of each, and what happens when one dies.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use exec::exit::Exit;
use exec::process::Process;
use exec::wire::ToWorker;
use sched::{Event, ExecutorId, Kind, NodeId, TaskId};

use super::state::State;
use crate::store::Pin;
use crate::trace::{Record, RecordKind};

/// After so many workers in a row that ended by themselves and had done nothing the session
/// gives up.
pub(crate) const FAILED_STARTS_MAX: u32 = 5;
/// Likewise of workers that somebody killed before they were ready.
const KILLED_STARTS_MAX: u32 = 50;
/// A worker that does not say that it is ready for so long is ended.
const START_NS_MAX: u64 = 120_000_000_000;
/// A worker that dies earlier than this, having begun nothing, counts as one that cannot start.
const YOUNG_NS: u64 = 1_000_000_000;

/// One worker process.
pub(crate) struct Worker {
    pub(crate) executor: ExecutorId,
    pub(crate) kind: Kind,
    pub(crate) process: Process,
    pub(crate) slots: u32,
    /// More of them, for tasks that the bandwidth limits.
    pub(crate) extra: u32,
    started_ns: u64,
    ready_ns: Option<u64>,
    /// A replacement was asked for.
    replaced: bool,
    /// Why it was killed, if it was.
    killed: Option<Arc<str>>,
    /// Functions that it was sent.
    pub(crate) known: HashSet<u64>,
    /// Memory that it asked for and has not handed over.
    pub(crate) unfinished: HashMap<u64, Pin>,
    /// Memory that it still looks at.
    pub(crate) held: HashMap<u64, Pin>,
    /// How many tasks are there.
    pub(crate) sent: u32,
    /// Those among them that wait for the consumers of their streams.
    paused: u32,
    /// Since when, as far as is known, it has been at work without a break.
    pub(crate) busy_since_ns: u64,
}

impl Worker {
    /// Sends a record that is short by nature.
    pub(crate) fn tell(&mut self, record: &ToWorker<'_>) {
        let sent = self.process.send(record);
        sent.expect("only short records are sent this way");
    }

    /// Whether it has nothing to do, and can be told to end.
    pub(crate) fn is_idle(&self) -> bool {
        self.sent == 0 && self.ready_ns.is_some()
    }

    /// Ends it at once; its death is told later.
    pub(crate) fn kill(&mut self, why: &str) {
        self.killed.get_or_insert_with(|| why.into());
        self.process.kill();
    }

    /// Whether a task there runs, or is about to.
    pub(crate) fn is_busy(&self) -> bool {
        self.sent > self.paused
    }

    /// One task more is there.
    pub(crate) fn more(&mut self, at_ns: u64) {
        if !self.is_busy() {
            self.busy_since_ns = at_ns;
        }
        self.sent += 1;
    }

    /// A task there waits for the consumers of its stream.
    pub(crate) fn pauses(&mut self, at_ns: u64) {
        self.paused += 1;
        if self.kind == Kind::Compute {
            self.busy_since_ns = at_ns;
        }
    }

    /// A task there goes on that waited.
    pub(crate) fn goes_on(&mut self, at_ns: u64) {
        if !self.is_busy() {
            self.busy_since_ns = at_ns;
        }
        self.paused = self.paused.saturating_sub(1);
    }

    /// One task less is there.
    pub(crate) fn less(&mut self, at_ns: u64) {
        self.sent = self.sent.saturating_sub(1);
        if self.kind == Kind::Compute {
            self.busy_since_ns = at_ns;
        }
    }
}

/// All worker processes.
#[derive(Default)]
pub(crate) struct Workers {
    /// Boxed, as each is taken out while its reports are.
    pub(crate) all: BTreeMap<u32, Box<Worker>>,
    /// Workers that the runtime thread has to start.
    pub(crate) to_start: Vec<Kind>,
    executors: u32,
    failed_starts: u32,
    killed_starts: u32,
}

impl Workers {
    /// Whether the runtime thread has something to do.
    pub(crate) fn wants_thread(&self) -> bool {
        !self.to_start.is_empty()
    }

    /// The number of the next worker.
    pub(crate) fn next_executor(&mut self) -> ExecutorId {
        self.executors += 1;
        ExecutorId(self.executors - 1)
    }

    /// A process was started.
    pub(crate) fn add(
        &mut self,
        executor: ExecutorId,
        kind: Kind,
        (slots, extra): (u32, u32),
        process: Process,
    ) {
        let worker = Box::new(Worker {
            executor,
            kind,
            process,
            slots,
            extra,
            started_ns: exec::now_ns(),
            ready_ns: None,
            replaced: false,
            killed: None,
            known: HashSet::new(),
            unfinished: HashMap::new(),
            held: HashMap::new(),
            sent: 0,
            paused: 0,
            busy_since_ns: 0,
        });
        self.all.insert(executor.0, worker);
    }

    /// Kills workers that take too long to start; when the next one does.
    pub(crate) fn check_starts(&mut self, now: u64) -> Option<u64> {
        let mut next = None;
        for worker in self.all.values_mut().filter(|worker| worker.ready_ns.is_none()) {
            let until = worker.started_ns + START_NS_MAX;
            if until <= now && worker.killed.is_none() {
                let seconds = START_NS_MAX / 1_000_000_000;
                worker.kill(&format!("did not start within {seconds} s"));
            } else {
                next = Some(next.map_or(until, |next: u64| next.min(until)));
            }
        }
        next
    }

    /// A body ran: workers can work.
    pub(crate) fn proven(&mut self) {
        self.failed_starts = 0;
        self.killed_starts = 0;
    }

    /// A worker ended that had done nothing; how many in a row, if that is too many.
    fn failed_start(&mut self) -> Option<u32> {
        self.failed_starts += 1;
        (self.failed_starts >= FAILED_STARTS_MAX).then_some(self.failed_starts)
    }

    /// A worker was killed, by somebody else, before it was ready.
    fn killed_start(&mut self) -> Option<u32> {
        self.killed_starts += 1;
        (self.killed_starts >= KILLED_STARTS_MAX).then_some(self.killed_starts)
    }

    /// Judges a death; how many have died in a row without doing anything, if too many.
    fn judge(&mut self, worker: &Worker, begun: bool, now: u64, death: &Death) -> Option<u32> {
        let age = worker.ready_ns.map(|at| now.saturating_sub(at));
        let hands = [libc::SIGKILL, libc::SIGTERM, libc::SIGHUP, libc::SIGINT];
        let foreign = match death.exit {
            Some(Exit::Signal(signal)) => hands.contains(&signal) && death.oom_kills == 0,
            _ => false,
        };
        match age {
            _ if worker.killed.is_some() && age.is_some() => None,
            None if foreign => self.killed_start(),
            None => self.failed_start(),
            Some(_) if begun || foreign => None,
            Some(age) if age < YOUNG_NS => self.failed_start(),
            Some(_) => {
                self.proven();
                None
            }
        }
    }
}

/// How a worker ended, gathered without the mutex.
pub(crate) struct Death {
    pub(crate) executor: ExecutorId,
    /// Processes that the kernel's out-of-memory killer ended since the last look.
    pub(crate) oom_kills: u64,
    /// How the process ended.
    pub(crate) exit: Option<Exit>,
}

impl State {
    /// A worker said that it is ready.
    pub(crate) fn worker_ready(&mut self, worker: &mut Worker) {
        if worker.ready_ns.is_some() {
            return;
        }
        let now = exec::now_ns();
        worker.ready_ns = Some(now);
        self.workers.killed_starts = 0;
        let mut record = Record::new(now, RecordKind::ExecutorUp);
        record.executor = worker.executor.0;
        record.amount = worker.slots.into();
        record.other = u64::from(worker.kind == Kind::Io);
        record.task = worker.process.pid().into();
        self.trace.push(record);
        let Worker { executor, kind, slots, extra, .. } = *worker;
        let up = Event::ExecutorUp { executor, kind, node: NodeId(0), slots, extra };
        self.sched.handle(now, up, &mut self.out);
    }

    /// A process could not be started. `Some`: this is the end of the session.
    pub(crate) fn start_failed(&mut self, kind: Kind, why: &str) -> Option<Arc<str>> {
        if let Some(count) = self.workers.failed_start() {
            return Some(give_up(count, why));
        }
        self.workers.to_start.push(kind);
        None
    }

    /// Takes a dead worker out and tells the scheduler; what it had reported was received.
    /// Gives the worker back, to be buried without the mutex; `Err` is the end of the session.
    pub(crate) fn worker_died(&mut self, death: &Death) -> Option<(Box<Worker>, Option<Arc<str>>)> {
        let worker = self.workers.all.remove(&death.executor.0)?;
        let begun = worker.process.begun();
        let now = exec::now_ns();
        let reason = reason(&worker, death);
        let too_many = self.workers.judge(&worker, !begun.is_empty(), now, death);
        let end = too_many.map(|count| give_up(count, &reason));
        if !worker.replaced {
            self.workers.to_start.push(worker.kind);
        }
        if !worker.replaced || worker.killed.is_none() {
            self.totals.workers_lost += 1;
        }
        let mut record = Record::new(now, RecordKind::ExecutorLost);
        record.executor = worker.executor.0;
        self.trace.push(record);
        self.lose_tasks(&worker, begun.iter().map(|sent| TaskId::from_bits(sent.task)), &reason);
        Some((worker, end))
    }

    fn lose_tasks(
        &mut self,
        worker: &Worker,
        begun: impl Iterator<Item = TaskId>,
        reason: &Arc<str>,
    ) {
        let executor = worker.executor;
        for sent in worker.process.sent() {
            let id = TaskId::from_bits(sent.task);
            let there = self.tasks.get(id).and_then(|task| task.sent.as_ref());
            if there.is_some_and(|there| there.executor == executor) {
                self.take_back(id);
            }
        }
        if worker.ready_ns.is_some() {
            let (started, reason) = (begun.collect(), Arc::clone(reason));
            let lost = Event::ExecutorLost { executor, started, reason };
            self.sched.handle(exec::now_ns(), lost, &mut self.out);
        }
    }

    /// A task is no longer at its executor: its grant and its record are free.
    pub(crate) fn take_back(&mut self, id: TaskId) {
        self.leave_layer(id);
        if let Some(task) = self.tasks.get_mut(id) {
            task.sent = None;
        }
    }

    /// A task gives its grant back, and stays at its executor.
    pub(crate) fn leave_layer(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let bandwidth = task.granted;
        if let Some(layer) = task.sent.as_mut().and_then(|sent| sent.layer.take()) {
            self.grant(layer, |granted| {
                granted.bandwidth -= bandwidth;
                granted.tasks -= 1;
            });
        }
    }

    /// A worker is not to be used any more: another one takes its place now.
    pub(crate) fn retire(&mut self, executor: ExecutorId) {
        if let Some(worker) = self.workers.all.get_mut(&executor.0) {
            if !std::mem::replace(&mut worker.replaced, true) {
                self.workers.to_start.push(worker.kind);
            }
        }
        self.retire_engine(executor);
    }
}

/// Why there is no point in starting more workers.
fn give_up(count: u32, why: &str) -> Arc<str> {
    format!(
        "workers cannot work: {count} in a row ended without doing anything; the last one: {why}. \
         What they wrote to the standard error stream says more"
    )
    .into()
}

/// Why a worker is gone, in words.
fn reason(worker: &Worker, death: &Death) -> Arc<str> {
    let what = match worker.kind {
        Kind::Compute => "worker process",
        Kind::Io | Kind::Engine => "I/O worker process",
    };
    let pid = worker.process.pid();
    if let Some(why) = &worker.killed {
        return format!("{what} {pid} {why}").into();
    }
    let Death { exit, oom_kills, .. } = *death;
    let how = exit.map_or_else(|| "ended".to_string(), |exit| exit.to_string());
    let mut text = format!("{what} {pid} {how}");
    if oom_kills > 0 && exit == Some(Exit::Signal(libc::SIGKILL)) {
        let memory = crate::machine::memory_bytes();
        text.push_str(&format!(
            ", probably by the kernel's out-of-memory killer, which ended {oom_kills} \
             process(es) meanwhile; {memory} bytes of memory may be used here. Run fewer \
             workers, or smaller tasks"
        ));
    }
    text.into()
}
