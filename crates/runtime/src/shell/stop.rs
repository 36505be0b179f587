//! The end: nothing is left running, nothing stays open, memory is given back.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use exec::process::Pool;
use exec::wire::ToWorker;

use super::workers::Worker;
use super::{Phase, Shared, STOPPED};
use crate::fork;
use crate::futures::{Signal, WaitEnd};

/// How long a worker that has nothing to do may take to end by itself, and the operations of
/// built-in tasks to come back from the kernel.
const GRACE: Duration = Duration::from_secs(2);
/// How long killed workers may take to be gone. One that waits in the kernel for storage that does
/// not answer is left then.
const KILLED_GRACE: Duration = Duration::from_secs(10);
/// What futures say that were open when the session was closed.
const LEFT_OPEN: &str = "the session was closed before this task ended";

impl Shared {
    /// Waits until no task is left.
    pub(crate) fn drain(
        self: &Arc<Shared>,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> WaitEnd {
        let signal = match Signal::new(1) {
            Ok(signal) => signal,
            Err(error) => return WaitEnd::Ended(format!("cannot wait: eventfd: {error}").into()),
        };
        let empty = self.with(|state| {
            let empty = state.tasks.len() == 0;
            if !empty {
                state.drained.push(Arc::clone(&signal));
            }
            empty
        });
        match empty {
            Err(error) => return WaitEnd::Ended(error.0),
            Ok(true) => return WaitEnd::Ready,
            Ok(false) => {}
        }
        let end = signal.wait(timeout, interrupted);
        let ended = self.look(|state| {
            state.drained.retain(|other| !Arc::ptr_eq(other, &signal));
            state.ended.clone()
        });
        signal.recycle();
        match ended {
            Ok(None) => end,
            Ok(Some(why)) => WaitEnd::Ended(why),
            Err(error) => WaitEnd::Ended(error.0),
        }
    }

    /// Ends the session and waits until it is ended.
    pub(crate) fn stop(self: &Arc<Shared>) {
        if self.forks != fork::count() {
            return;
        }
        let (running, stopping) = (Phase::Running as u8, Phase::Stopping as u8);
        let order = Ordering::AcqRel;
        let _ = self.phase.compare_exchange(running, stopping, order, Ordering::Acquire);
        self.ring();
        let (ended, changed) = &self.ended;
        let mut ended = ended.lock();
        while !*ended {
            changed.wait(&mut ended);
        }
    }
}

/// What the runtime thread does last.
pub(super) fn end(shared: &Arc<Shared>, pool: Pool) {
    shared.phase.fetch_max(Phase::Stopping as u8, Ordering::AcqRel);
    let mut state = shared.state.lock();
    let left_open = LEFT_OPEN.into();
    let why = state.broken.clone();
    let workers = std::mem::take(&mut state.workers.all);
    state.workers.to_start.clear();
    let queue = state.engines.queue.take();
    state.totals.store_bytes_peak = shared.live_store().bytes().1;
    state.fail_all(why.as_ref().unwrap_or(&left_open));
    state.ended = Some(why.unwrap_or_else(|| STOPPED.into()));
    drop(state);
    if let Some(queue) = &queue {
        queue.stop();
    }
    let left = end_workers(&pool, workers.into_values().map(|worker| *worker).collect());
    shared.state.lock().warnings.extend(left.into_iter().map(|process| {
        format!(
            "worker process {process} was killed and does not end: the kernel waits, probably for \
             storage that does not answer; until it does, what its tasks write may still change"
        )
    }));
    if let Some(queue) = queue {
        queue.wait_stopped(GRACE);
    }
    shared.notifications.close();
    if let Some(resources) = shared.resources.write().take() {
        resources.store.close();
    }
    drop(pool);
    shared.phase.store(Phase::Ended as u8, Ordering::Release);
    let (ended, changed) = &shared.ended;
    *ended.lock() = true;
    changed.notify_all();
}

/// Lets idle workers end by themselves, so that they finish what they print; kills the others,
/// those that are still starting among them. Gives the processes that are left.
fn end_workers(pool: &Pool, mut workers: Vec<Worker>) -> Vec<u32> {
    for worker in &mut workers {
        if worker.is_idle() {
            worker.tell(&ToWorker::Stop);
        } else {
            worker.process.kill();
        }
    }
    wait_for_ends(pool, &mut workers, GRACE);
    workers.iter_mut().for_each(|worker| worker.process.kill());
    wait_for_ends(pool, &mut workers, KILLED_GRACE);
    workers.into_iter().map(|worker| worker.process.leave()).collect()
}

/// Takes out who ended.
fn wait_for_ends(pool: &Pool, workers: &mut Vec<Worker>, at_most: Duration) {
    let deadline = Instant::now() + at_most;
    let mut buffer = Vec::new();
    let mut ended = Vec::new();
    while !workers.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        for worker in &mut *workers {
            // What they still report interests nobody, but they wait while a ring is full.
            while let Ok(Some(_)) = worker.process.receive(&mut buffer) {}
        }
        if pool.poller().prepare_sleep() && pool.poller().wait(Some(left), &mut ended).is_err() {
            break;
        }
        workers.retain_mut(|worker| {
            !ended.contains(&u64::from(worker.executor.0)) || worker.process.reap().is_none()
        });
        ended.clear();
    }
}
