//! The shell around the scheduler: events in, instructions out, under one mutex.
//!
//! [`State`] is everything that the mutex protects: the scheduler and the driver's tables. Any
//! thread of the program may take it ([`Shared::with`]): it feeds the scheduler and carries the
//! instructions out before it lets go, so a task is on its way to a worker when the call that
//! made it returns. The runtime thread ([`thread`]) takes it to hand over what workers report.
//!
//! Rules: whoever holds the mutex waits for nothing (full rings queue, files are opened
//! elsewhere, processes are started and buried by the runtime thread without it), and never
//! takes Python's lock. The store, the failures, the notifications and the queue of dropped
//! names have small locks of their own, which may be taken with or without the mutex; nobody
//! takes anything else while holding one. A panic under the mutex ends the session: every wait
//! ends with an error that tells what happened.

mod builtin;
mod carry;
mod drop_queue;
mod mapping;
mod moves;
mod outage;
mod receive;
mod run;
mod signals;
mod staged;
mod start;
mod state;
mod stop;
mod streams;
mod submit;
mod table;
mod thread;
mod workers;

use std::any::Any;
use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::Arc;

use exec::limiter::Limiters;
use exec::poller::Poller;
use parking_lot::{Condvar, Mutex, RwLock};
use sched::{Event, TaskId, VersionId};

use crate::failures::Failures;
use crate::fork;
use crate::notify::Notifications;
use crate::options::Options;
use crate::store::Store;

pub use builtin::Builtin;
use drop_queue::DropQueue;
pub use mapping::{Ahead, Mapped, RepeatedCall};
pub(crate) use start::start;
pub use start::StartError;
pub(crate) use state::State;
pub use streams::{Stream, StreamBuffer};
pub use submit::{Call, FileUse, FunctionSpec, Input, Overrides, SpawnError, Spawned};

/// What a forked child is told.
pub(crate) const FORKED: &str = "this session belongs to the process that was forked; \
                                 start a session of its own in the child";
/// What is said of a session that was ended on purpose.
pub(crate) const STOPPED: &str = "the session is closed";
/// How many dropped names a thread of the program takes care of in passing.
const FORGET_BATCH: usize = 256;

/// The session cannot do anything any more; the text says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionError(pub Arc<str>);

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SessionError {}

/// How far the session's life is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    /// It works.
    Running = 0,
    /// The runtime thread is to end everything.
    Stopping = 1,
    /// Everything was ended.
    Ended = 2,
}

/// What belongs to the system, and goes back to it when the session ends, although the program
/// may still have futures of it. (Values keep their memory alive by themselves.)
pub(crate) struct Resources {
    pub(crate) store: Arc<Store>,
    pub(crate) poller: Arc<Poller>,
    pub(crate) limiters: Limiters,
}

/// What all threads of the program share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) failures: Failures,
    pub(crate) notifications: Arc<Notifications>,
    state: Mutex<State>,
    drops: DropQueue,
    resources: RwLock<Option<Resources>>,
    /// Whether the runtime thread was woken and has not looked since.
    woken: AtomicBool,
    phase: AtomicU8,
    ended: (Mutex<bool>, Condvar),
    forks: u64,
}

impl Shared {
    fn new(options: Options, resources: Resources, state: State) -> Arc<Shared> {
        Arc::new(Shared {
            options,
            failures: Failures::default(),
            notifications: Arc::default(),
            state: Mutex::new(state),
            drops: DropQueue::default(),
            resources: RwLock::new(Some(resources)),
            woken: AtomicBool::new(false),
            phase: AtomicU8::new(Phase::Running as u8),
            ended: (Mutex::new(false), Condvar::new()),
            forks: fork::count(),
        })
    }

    /// Which process made the session (see [`fork`]).
    pub(crate) fn forks(&self) -> u64 {
        self.forks
    }

    fn is_running(&self) -> bool {
        self.forks == fork::count() && self.phase.load(Ordering::Acquire) == Phase::Running as u8
    }

    /// Does something with the state, then carries out what came of it. For the threads of
    /// the program.
    pub(crate) fn with<T>(
        self: &Arc<Shared>,
        act: impl FnOnce(&mut State) -> T,
    ) -> Result<T, SessionError> {
        if self.forks != fork::count() {
            return Err(SessionError(FORKED.into()));
        }
        let mut state = self.state.lock();
        if let Some(why) = &state.ended {
            return Err(SessionError(Arc::clone(why)));
        }
        let done = self.guarded(&mut state, |shared, state| {
            shared.forget_dropped(state, FORGET_BATCH);
            // Identifiers that died now may be given out again by what comes next.
            state.carry_out(shared);
            let result = act(state);
            state.carry_out(shared);
            result
        });
        let wake = state.wants_thread();
        drop(state);
        if wake {
            self.wake();
        }
        done
    }

    /// As [`Shared::with`], also after the end, and without carrying anything out.
    pub(crate) fn look<T>(&self, act: impl FnOnce(&mut State) -> T) -> Result<T, SessionError> {
        if self.forks != fork::count() {
            return Err(SessionError(FORKED.into()));
        }
        Ok(act(&mut self.state.lock()))
    }

    /// Runs something under the mutex; a panic breaks the session down.
    fn guarded<T>(
        self: &Arc<Shared>,
        state: &mut State,
        act: impl FnOnce(&Arc<Shared>, &mut State) -> T,
    ) -> Result<T, SessionError> {
        let done = catch_unwind(AssertUnwindSafe(|| act(self, state)));
        done.map_err(|panic| {
            let mut why = format!(
                "internal error of the runtime, which ends this session: {}",
                panic_text(&*panic)
            );
            if let Some(task) = state.at {
                let story = state.sched.story(task);
                why.push_str(&format!("; the latest task was {task:?}, its story: {story:?}"));
            }
            let why: Arc<str> = why.into();
            state.break_down(&why);
            SessionError(why)
        })
    }

    /// Tells the scheduler of names that were dropped; at most `max`. `true`: of all of them.
    fn forget_dropped(self: &Arc<Shared>, state: &mut State, max: usize) -> bool {
        let mut batch = std::mem::take(&mut state.forgotten);
        let all = self.drops.take(max, &mut batch);
        if !batch.is_empty() {
            let now = exec::now_ns();
            for version in batch.drain(..) {
                state.sched.handle(now, Event::Forget { version }, &mut state.out);
            }
        }
        state.forgotten = batch;
        all
    }

    /// A name of a version was dropped. Cheap; from any thread, whatever it holds.
    pub(crate) fn forget(&self, version: VersionId, large: bool) {
        if !self.is_running() {
            return;
        }
        if self.drops.push(version, large) {
            self.wake();
        }
    }

    /// The object store; `None`: the session has ended, or this is a forked child.
    pub(crate) fn store(&self) -> Option<Arc<Store>> {
        if self.forks != fork::count() {
            return None;
        }
        self.resources.read().as_ref().map(|resources| Arc::clone(&resources.store))
    }

    /// The object store, for those who have the mutex of a session that has not ended.
    fn live_store(&self) -> Arc<Store> {
        self.store().expect("given back only after the session has ended")
    }

    /// The emulated bandwidths; `None`: the session has ended.
    pub(crate) fn limiters(&self) -> Option<Limiters> {
        self.resources.read().as_ref().map(|resources| resources.limiters.clone())
    }

    /// Ends the sleep of the runtime thread.
    fn ring(&self) {
        if let Some(resources) = &*self.resources.read() {
            resources.poller.wake();
        }
    }

    /// Has the runtime thread look at everything soon.
    pub(crate) fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.ring();
        }
    }

    /// Whether a task is at an executor.
    pub(crate) fn is_sent(&self, task: TaskId) -> bool {
        self.forks == fork::count() && self.state.lock().is_sent(task)
    }
}

/// What a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "a panic without a message",
    }
}

#[cfg(test)]
mod tests;
