//! The runtime thread: it sleeps until a worker reports, a worker dies, a deadline comes or a
//! thread of the program wants something, and sees to it.
//!
//! It starts all workers itself: the kernel ends a worker when the thread that started it ends,
//! and this one lives as long as the session.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::sync::Arc;
use std::time::Duration;

use exec::process::{Pool, Spec};
use exec::{Linger, Turns};
use parking_lot::MutexGuard;
use sched::{Event, Kind};

use super::builtin::Queue;
use super::signals::Mask;
use super::state::State;
use super::workers::Death;
use super::{panic_text, stop, Phase, Shared};
use crate::machine;
use crate::trace::{Record, RecordKind};

/// Dropped names that are taken care of before others have their turn.
const FORGET_BATCH: usize = 1024;
/// The trace notes the object store's size when it changed by so much.
const STORE_STEP_BYTES: u64 = 1 << 20;

/// What the thread works with, apart from the state.
struct Runtime<'a> {
    shared: &'a Arc<Shared>,
    pool: Pool,
    /// The signals that the program blocks, for the workers.
    program: Mask,
    buffer: Vec<u8>,
    ended: Vec<u64>,
    oom_kills: u64,
}

/// What a turn found.
struct Turn {
    /// So many reports of workers.
    records: usize,
    /// There may be more to do at once.
    more: bool,
    /// A worker has something to report soon.
    expecting: bool,
    /// When something has to be done, if nothing happens before.
    until: Option<u64>,
    /// Workers are to be started.
    starts: bool,
}

/// The whole life of the thread.
pub(super) fn main(
    shared: &Arc<Shared>,
    pool: Pool,
    program: Mask,
    started: &SyncSender<Result<(), String>>,
) {
    exec::take_turns(Turns::Short);
    let oom_kills = machine::oom_kills();
    let mut runtime =
        Runtime { shared, pool, program, buffer: Vec::new(), ended: Vec::new(), oom_kills };
    let first = runtime.start_first();
    let ready = first.is_ok();
    // If nobody listens any more, the session is about to be stopped.
    let _ = started.send(first);
    if ready {
        let worked = catch_unwind(AssertUnwindSafe(|| runtime.work()));
        let why = match worked {
            Ok(Ok(())) => None,
            Ok(Err(text)) => Some(text),
            Err(panic) => Some(format!(
                "internal error of the runtime thread, which ends this session: {}",
                panic_text(&*panic)
            )),
        };
        if let Some(why) = why {
            shared.state.lock().break_down(&why.into());
        }
    }
    stop::end(shared, runtime.pool);
}

impl Runtime<'_> {
    fn start_first(&mut self) -> Result<(), String> {
        let workers = self.shared.options.workers;
        let kinds = std::iter::once(Kind::Io).chain(std::iter::repeat_n(Kind::Compute, workers));
        kinds.into_iter().try_for_each(|kind| self.start(kind))
    }

    /// Starts one worker, or the engine of built-in tasks.
    fn start(&self, kind: Kind) -> Result<(), String> {
        let options = &self.shared.options;
        let (exec_kind, slots, extra) = match kind {
            Kind::Compute => (exec::process::Kind::Compute, 1, 0),
            Kind::Io => {
                let extra = options.io_executors_extra as u32;
                (exec::process::Kind::Io, options.io_executors as u32, extra)
            }
            Kind::Engine => return self.start_engine(),
        };
        let spec = Spec {
            kind: exec_kind,
            slots: slots + extra,
            command: options.worker_command.clone(),
            environment: options.worker_environment.clone(),
        };
        let executor = self.shared.state.lock().workers.next_executor();
        let spawn = || self.pool.spawn(&spec, u64::from(executor.0));
        let process = self.program.during(spawn).map_err(|error| error.to_string())?;
        self.shared.state.lock().workers.add(executor, kind, (slots, extra), process);
        Ok(())
    }

    fn start_engine(&self) -> Result<(), String> {
        let queue = Queue::start(self.shared);
        let queue = queue.map_err(|error| format!("the thread for built-in tasks: {error}"))?;
        let known = self.shared.with(|state| state.engine_started(Arc::clone(&queue)));
        // A session that has ended says so elsewhere.
        known.unwrap_or_else(|_| queue.stop());
        Ok(())
    }

    /// Works until the session is to end; `Err` says why it cannot go on.
    fn work(&mut self) -> Result<(), String> {
        let (mut linger, mut starts) = (Linger::default(), true);
        loop {
            self.shared.woken.store(false, Ordering::Release);
            if self.shared.phase.load(Ordering::Acquire) != Phase::Running as u8 {
                return Ok(());
            }
            if starts {
                self.replace()?;
            }
            let turn = self.turn()?;
            linger.served(turn.records);
            starts = turn.starts;
            self.shared.live_store().trim();
            let woken = || self.shared.woken.load(Ordering::Acquire);
            if turn.more || (turn.expecting && self.pool.poller().linger(&mut linger, woken)) {
                continue;
            }
            if !self.pool.poller().prepare_sleep() {
                continue;
            }
            let timeout =
                turn.until.map(|until| Duration::from_nanos(until.saturating_sub(exec::now_ns())));
            let waited = linger.sleep(|| self.pool.poller().wait(timeout, &mut self.ended));
            waited.map_err(|error| format!("the runtime cannot wait for its workers: {error}"))?;
            self.bury()?;
        }
    }

    /// Starts the workers that were asked for.
    fn replace(&mut self) -> Result<(), String> {
        let wanted = std::mem::take(&mut self.shared.state.lock().workers.to_start);
        for kind in wanted {
            if let Err(error) = self.start(kind) {
                let why = format!("could not be started: {error}");
                let end = self.shared.state.lock().start_failed(kind, &why);
                end.map_or(Ok(()), |why| Err(why.to_string()))?;
            }
        }
        Ok(())
    }

    /// Does everything that can be done now.
    fn turn(&mut self) -> Result<Turn, String> {
        let buffer = &mut self.buffer;
        let mut state = self.shared.state.lock();
        if let Some(why) = &state.broken {
            return Err(why.to_string());
        }
        let turn = self.shared.guarded(&mut state, |shared, state| {
            let forgotten = shared.forget_dropped(state, FORGET_BATCH);
            state.carry_out(shared);
            let (records, more) = state.receive_all(shared, buffer);
            let now = exec::now_ns();
            if state.sched.next_deadline().is_some_and(|at| at <= now) {
                state.sched.handle(now, Event::Tick, &mut state.out);
                state.carry_out(shared);
            }
            record_store(state, shared.live_store().bytes().0, now);
            let late = state.workers.check_starts(now);
            let until = [state.sched.next_deadline(), late].into_iter().flatten().min();
            state.sleeps_until = until.unwrap_or(u64::MAX);
            let starts = state.workers.wants_thread();
            let more = more || !forgotten || starts;
            let expecting = state.workers.all.values().any(|worker| worker.is_busy());
            Turn { records, more, expecting, until, starts }
        });
        // The others had to wait for all of this.
        MutexGuard::unlock_fair(state);
        turn.map_err(|error| error.to_string())
    }

    /// Sees to the workers that have died.
    fn bury(&mut self) -> Result<(), String> {
        if self.ended.is_empty() {
            return Ok(());
        }
        let kills = machine::oom_kills();
        let oom_kills = kills.saturating_sub(self.oom_kills);
        self.oom_kills = kills;
        for token in std::mem::take(&mut self.ended) {
            let executor = sched::ExecutorId(token as u32);
            let buffer = &mut self.buffer;
            let mut state = self.shared.state.lock();
            let died = self.shared.guarded(&mut state, |shared, state| {
                state.receive(shared, executor.0, usize::MAX, buffer);
                let worker = state.workers.all.get_mut(&executor.0);
                let exit = worker.and_then(|worker| worker.process.reap());
                let died = state.worker_died(&Death { executor, oom_kills, exit });
                state.carry_out(shared);
                died
            });
            drop(state);
            let died = died.map_err(|error| error.to_string())?;
            let Some((worker, end)) = died else { continue };
            drop(worker);
            if let Some(why) = end {
                return Err(why.to_string());
            }
        }
        Ok(())
    }
}

/// Notes how full the object store is, if that changed much.
fn record_store(state: &mut State, bytes: u64, now: u64) {
    if bytes.abs_diff(state.store_recorded) >= STORE_STEP_BYTES {
        state.store_recorded = bytes;
        let record = Record::new(now, RecordKind::Store);
        state.trace.push(Record { amount: bytes, ..record });
    }
}
