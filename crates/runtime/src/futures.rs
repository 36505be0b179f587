//! Futures: where the outcome of a version is put, and who waits for it.
//!
//! A [`Core`] is filled once, by the holder of the session's mutex, from a `Resolve`
//! instruction. Readers look at it without any lock. Whoever wants to be told registers in the
//! core: a thread that waits (by an eventfd of its own, so that signals interrupt it), or a tag
//! for the queue of notifications. Each [`Handle`] is one name of its version; dropping the last
//! clone puts the version into a queue, and whoever next has the mutex tells the scheduler.

use std::cell::RefCell;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{fmt, io};

use exec::Linger;
use parking_lot::Mutex;
use sched::{Cause, Failure, TaskId, VersionId};
use smallvec::SmallVec;

use crate::fork;
use crate::notify::Notifications;
use crate::shell::Shared;
use crate::store::Value;

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its task failed, was cancelled, or needed one that did.
    Failed(Arc<Failure>),
    /// The session ended before it came; the text says why.
    Session(Arc<str>),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Session(text) => f.write_str(text),
            Fault::Failed(failure) => match &failure.cause {
                Cause::Raised(_) => write!(f, "{} raised", root(failure).name),
                Cause::TimedOut(ns) => {
                    let seconds = *ns as f64 / 1e9;
                    write!(f, "{} ran longer than its {seconds} s", root(failure).name)
                }
                Cause::ExecutorLost(text) => write!(f, "{}: {text}", root(failure).name),
                Cause::Cancelled => write!(f, "{} was cancelled", root(failure).name),
                Cause::NoLayer(text) => write!(f, "{}: {text}", root(failure).name),
            },
        }
    }
}

/// The failure that others came from.
pub(crate) fn root(failure: &Arc<Failure>) -> &Arc<Failure> {
    let mut root = failure;
    while let Some(from) = &root.from {
        root = from;
    }
    root
}

/// What became of a version.
pub(crate) type Outcome = Result<Value, Fault>;

/// Where a future stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its task waits.
    Pending,
    /// Its task was sent to an executor and may run.
    Sent,
    /// The value is there.
    Done,
    /// There will be no value.
    Failed,
    /// There will be no value, because the program cancelled a task.
    Cancelled,
}

/// Who is told when a core is filled.
enum Watcher {
    Thread(Arc<Signal>),
    Tag(u64, Arc<Notifications>),
}

/// The place for one outcome.
pub(crate) struct Core {
    outcome: OnceLock<Outcome>,
    watchers: Mutex<SmallVec<[Watcher; 1]>>,
}

impl Core {
    /// A place that is empty.
    pub(crate) fn new() -> Arc<Core> {
        Arc::new(Core { outcome: OnceLock::new(), watchers: Mutex::new(SmallVec::new()) })
    }

    /// A place that is filled.
    pub(crate) fn filled(outcome: Outcome) -> Arc<Core> {
        let core = Core::new();
        core.fill(outcome);
        core
    }

    /// Whether the outcome is there.
    pub(crate) fn is_filled(&self) -> bool {
        self.outcome.get().is_some()
    }

    /// Fills the place, unless it is, and tells everyone who waits.
    pub(crate) fn fill(&self, outcome: Outcome) {
        if self.outcome.set(outcome).is_err() {
            return;
        }
        let watchers = std::mem::take(&mut *self.watchers.lock());
        for watcher in watchers {
            watcher.tell();
        }
    }

    /// Registers a watcher; `false`: the outcome is there already, and it was not.
    fn watch(&self, watcher: Watcher) -> bool {
        let mut watchers = self.watchers.lock();
        // `fill` sets the outcome before it takes the lock: it sees this watcher, or we see
        // the outcome.
        if self.is_filled() {
            return false;
        }
        watchers.push(watcher);
        true
    }

    fn unwatch(&self, signal: &Arc<Signal>) {
        self.watchers.lock().retain(|watcher| match watcher {
            Watcher::Thread(other) => !Arc::ptr_eq(other, signal),
            Watcher::Tag(..) => true,
        });
    }
}

impl Watcher {
    fn tell(&self) {
        match self {
            Watcher::Thread(signal) => signal.hit(),
            Watcher::Tag(tag, notifications) => notifications.push(*tag),
        }
    }
}

/// Wakes one waiting thread when enough things have happened.
pub(crate) struct Signal {
    remaining: AtomicUsize,
    standing: AtomicU8,
    fd: OwnedFd,
    /// Of which process it is, by the forks before: a child has the descriptor too, and would take
    /// what wakes its parent.
    forks: u64,
}

/// Who waits for less does not linger.
const LINGER_TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// Nobody sleeps until a signal is raised.
const AWAKE: u8 = 0;
/// Somebody sleeps, or slept, until it is.
const ASLEEP: u8 = 1;
const RAISED: u8 = 2;

thread_local! {
    /// The signal of the last wait of this thread, to be used again.
    static SPARE: RefCell<Option<Arc<Signal>>> = const { RefCell::new(None) };
    /// What the waits of this thread are like.
    static LINGER: RefCell<Linger> = RefCell::default();
}

/// Whether a thread of the program lingers: one at a time, as they may be many.
static LINGERS: AtomicBool = AtomicBool::new(false);

impl Signal {
    /// A signal that is raised by the `count`-th hit.
    pub(crate) fn new(count: usize) -> io::Result<Arc<Signal>> {
        let spare = SPARE.with(|spare| spare.borrow_mut().take());
        let forks = fork::count();
        let is_free = |spare: &Arc<Signal>| Arc::strong_count(spare) == 1 && spare.forks == forks;
        if let Some(spare) = spare.filter(is_free) {
            spare.remaining.store(count, Ordering::Relaxed);
            spare.standing.store(AWAKE, Ordering::Release);
            return Ok(spare);
        }
        // SAFETY: gives a new descriptor or -1.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just given to us alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let (remaining, standing) = (AtomicUsize::new(count), AtomicU8::new(AWAKE));
        Ok(Arc::new(Signal { remaining, standing, fd, forks }))
    }

    /// Keeps the signal for the next wait of this thread.
    pub(crate) fn recycle(self: Arc<Signal>) {
        SPARE.with(|spare| *spare.borrow_mut() = Some(self));
    }

    /// One of the things has happened.
    pub(crate) fn hit(&self) {
        // Hits beyond the count wrap around and are never 1 again.
        if self.remaining.fetch_sub(1, Ordering::AcqRel) == 1
            && self.standing.swap(RAISED, Ordering::AcqRel) == ASLEEP
        {
            let one = 1u64.to_ne_bytes();
            // SAFETY: writes eight bytes to our own descriptor. It cannot block: the counter
            // is emptied by every wait.
            unsafe { libc::write(self.fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        }
    }

    /// Waits until the signal is raised: stays awake for a little while if the last waits of this
    /// thread were short, then sleeps. Signals of the system ask `interrupted`.
    pub(crate) fn wait(
        &self,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> WaitEnd {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        // A signal of the system that came meanwhile interrupts no sleep.
        let is_long = timeout.is_none_or(|timeout| timeout > LINGER_TIMEOUT_MIN);
        if is_long && self.linger() && interrupted() {
            return WaitEnd::Interrupted;
        }
        // It fails if the signal is raised.
        let _ = self.standing.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        loop {
            if self.is_raised() {
                return WaitEnd::Ready;
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return WaitEnd::TimedOut;
            }
            let slept = || self.sleep(left);
            if LINGER.with(|linger| linger.borrow_mut().sleep(slept)) && interrupted() {
                return WaitEnd::Interrupted;
            }
        }
    }

    fn is_raised(&self) -> bool {
        self.standing.load(Ordering::Acquire) == RAISED
    }

    /// Stays awake for a little while, if it is worth it. `true`: it did, for nothing.
    fn linger(&self) -> bool {
        if LINGERS.swap(true, Ordering::Acquire) {
            return false;
        }
        let lingers = LINGER.with(|linger| {
            let mut linger = linger.borrow_mut();
            linger.is_worth_it() && !linger.linger(|| self.is_raised())
        });
        LINGERS.store(false, Ordering::Release);
        lingers
    }

    /// Sleeps once; `true`: a signal of the system interrupted it.
    fn sleep(&self, left: Option<Duration>) -> bool {
        let timespec = left.map(|left| libc::timespec {
            tv_sec: libc::time_t::try_from(left.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let time = timespec.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let mut poll = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd, a time that outlives the call or null, no signal mask.
        let ready = unsafe { libc::ppoll(&mut poll, 1, time, std::ptr::null()) };
        if ready < 0 {
            return io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        }
        if ready > 0 {
            let mut counter = [0u8; 8];
            // SAFETY: reads at most eight bytes into `counter`.
            unsafe { libc::read(self.fd.as_raw_fd(), counter.as_mut_ptr().cast(), 8) };
        }
        false
    }
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// What was waited for is there.
    Ready,
    /// The time was up.
    TimedOut,
    /// A signal came, and the caller wanted to stop for it.
    Interrupted,
    /// The session ended, or this is a forked child; the text says why.
    Ended(Arc<str>),
}

/// For how many of the futures a wait is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// All of them.
    All,
    /// The first of them.
    Any,
}

/// One name of a version; the program has given it up when this is dropped.
struct Name {
    core: Arc<Core>,
    version: VersionId,
    task: Option<TaskId>,
    shared: Arc<Shared>,
}

impl Drop for Name {
    fn drop(&mut self) {
        let large = matches!(self.core.outcome.get(), Some(Ok(Value::Placed(_))));
        self.shared.forget(self.version, large);
    }
}

/// A future: the value of a version that is there or will come.
#[derive(Clone)]
pub struct Handle(Arc<Name>);

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({:?}, {:?})", self.0.version, self.peek().map(|o| o.map(|v| v.len())))
    }
}

impl Handle {
    /// The one handle of a name that the scheduler counts.
    pub(crate) fn new(
        core: Arc<Core>,
        version: VersionId,
        task: Option<TaskId>,
        shared: Arc<Shared>,
    ) -> Handle {
        Handle(Arc::new(Name { core, version, task, shared }))
    }

    pub(crate) fn version(&self) -> VersionId {
        self.0.version
    }

    pub(crate) fn belongs_to(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.0.shared, shared)
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        match self.0.core.outcome.get() {
            Some(Ok(_)) => State::Done,
            Some(Err(Fault::Failed(failure))) if failure.cause == Cause::Cancelled => {
                State::Cancelled
            }
            Some(Err(_)) => State::Failed,
            None if self.0.task.is_some_and(|task| self.0.shared.is_sent(task)) => State::Sent,
            None => State::Pending,
        }
    }

    /// Whether the outcome is there.
    pub fn is_resolved(&self) -> bool {
        self.0.core.is_filled()
    }

    /// The outcome, if it is there. A failure counts as seen from now on.
    pub fn outcome(&self) -> Option<Result<Value, Fault>> {
        let outcome = self.peek();
        if let Some(Err(Fault::Failed(failure))) = &outcome {
            self.0.shared.failures.seen(root(failure));
        }
        outcome
    }

    /// The outcome, if it is there; a failure does not count as seen.
    pub fn peek(&self) -> Option<Result<Value, Fault>> {
        self.0.core.outcome.get().cloned()
    }

    /// The task that makes it; `None`: the program brought it.
    pub fn task(&self) -> Option<TaskId> {
        self.0.task
    }

    /// A number that no other version of this session has.
    pub fn key(&self) -> u64 {
        self.0.version.to_bits()
    }

    /// Waits for the outcome; see [`wait`].
    pub fn wait(
        &self,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> WaitEnd {
        wait(std::slice::from_ref(self), WaitFor::All, timeout, interrupted)
    }

    /// Puts `tag` into the session's notifications when the outcome is there.
    pub(crate) fn notify(&self, tag: u64, notifications: &Arc<Notifications>) {
        let watcher = Watcher::Tag(tag, Arc::clone(notifications));
        if !self.0.core.watch(watcher) {
            notifications.push(tag);
        }
    }

    fn is_orphaned(&self) -> bool {
        self.0.shared.forks() != fork::count()
    }
}

/// Waits until all or any of the futures have their outcomes. When a signal interrupts the
/// wait, `interrupted` says whether to stop waiting.
pub fn wait(
    handles: &[Handle],
    until: WaitFor,
    timeout: Option<Duration>,
    interrupted: &mut dyn FnMut() -> bool,
) -> WaitEnd {
    let open: SmallVec<[&Handle; 8]> = handles.iter().filter(|h| !h.is_resolved()).collect();
    if open.is_empty() || (until == WaitFor::Any && open.len() < handles.len()) {
        return WaitEnd::Ready;
    }
    if open[0].is_orphaned() {
        return WaitEnd::Ended(crate::shell::FORKED.into());
    }
    if timeout == Some(Duration::ZERO) {
        return WaitEnd::TimedOut;
    }
    let count = if until == WaitFor::All { open.len() } else { 1 };
    let signal = match Signal::new(count) {
        Ok(signal) => signal,
        Err(error) => return WaitEnd::Ended(format!("cannot wait: eventfd: {error}").into()),
    };
    for handle in &open {
        if !handle.0.core.watch(Watcher::Thread(Arc::clone(&signal))) {
            signal.hit();
        }
    }
    let end = signal.wait(timeout, interrupted);
    if end != WaitEnd::Ready || until == WaitFor::Any {
        open.iter().for_each(|handle| handle.0.core.unwatch(&signal));
    }
    signal.recycle();
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_does_not_wake_its_parent() {
        let signal = Signal::new(1).unwrap();
        let fd = signal.fd.as_raw_fd();
        signal.recycle();
        // SAFETY: the child makes a signal, raises it and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let made = Signal::new(1).map(|signal| {
                signal.standing.store(ASLEEP, Ordering::Release);
                signal.hit();
            });
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(i32::from(made.is_err())) };
        }
        let mut status = 0;
        // SAFETY: waits for our own child and writes into `status`.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd; the signal keeps its descriptor open.
        assert_eq!(unsafe { libc::poll(&mut poll, 1, 0) }, 0, "nobody raised the parent's");
        assert_eq!(Signal::new(1).unwrap().fd.as_raw_fd(), fd, "it is used again");
    }

    #[test]
    fn a_wait_ends_whether_it_sleeps_or_not() {
        for round in 0..3_000 {
            let signal = Signal::new(2).unwrap();
            std::thread::scope(|scope| {
                for late in [false, round % 100 == 0] {
                    let signal = &signal;
                    scope.spawn(move || {
                        while late && signal.standing.load(Ordering::Acquire) != ASLEEP {
                            std::thread::yield_now();
                        }
                        signal.hit();
                    });
                }
                assert_eq!(signal.wait(None, &mut || false), WaitEnd::Ready);
            });
            signal.recycle();
        }
    }

    #[test]
    fn a_signal_of_the_system_that_came_before_the_sleep_ends_the_wait() {
        let signal = Signal::new(1).unwrap();
        let timeout = Some(2 * LINGER_TIMEOUT_MIN);
        // Another test may linger.
        while signal.wait(timeout, &mut || true) != WaitEnd::Interrupted {
            LINGER.with(|linger| *linger.borrow_mut() = Linger::default());
        }
    }
}
