//! A bounded pool of threads that make plain system calls.
//!
//! Threads are started when there is more work than idle threads, up to the limit, and leave after
//! a while without work. They block all signals: handlers run on the program's own threads. Beside
//! computations they take short turns, so that the device does not wait for one to end.
//!
//! One mutex guards the queue, the finished operations and the counts. Two condition variables
//! belong to it: `work` (there is something to do, or the pool ends) and `change` (something is
//! finished, or a thread has left). The eventfd is written after the first finished operation was
//! put into an empty list, if anybody watches it; who takes the list reads the eventfd first. So it
//! is never silent while something is there.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ops::{take_turns, Answer, Errno, Op, Turns};
use parking_lot::{Condvar, Mutex};

use crate::{plain, Tell};

/// How long a thread without work stays.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Enough for system calls; bounce buffers are on the heap.
const STACK_BYTES: usize = 256 << 10;

/// An operation to be done, of which `done` bytes are.
pub(crate) struct Job {
    pub key: usize,
    pub op: Op,
    pub done: u64,
}

/// One that was done.
pub(crate) struct Finished {
    pub key: usize,
    pub op: Op,
    pub result: Result<Answer, Errno>,
}

/// The pool. Dropping it does all that it was given.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads_max: usize,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    change: Condvar,
    event: OwnedFd,
    tell: Option<Tell>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    finished: Vec<Finished>,
    threads: usize,
    idle: usize,
    is_ending: bool,
    is_watched: bool,
}

impl Pool {
    /// A pool without threads yet. `event_flags` are those of its eventfd.
    /// What is to be told is called as the eventfd would be written, also if nobody watches that.
    pub fn new(threads_max: usize, event_flags: i32, tell: Option<Tell>) -> io::Result<Self> {
        assert!(threads_max > 0, "a pool of no threads does nothing");
        // SAFETY: takes no memory.
        let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | event_flags) };
        if event == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just made this descriptor for us.
        let event = unsafe { OwnedFd::from_raw_fd(event) };
        let state = Mutex::new(State::default());
        let shared = Shared { state, work: Condvar::new(), change: Condvar::new(), event, tell };
        Ok(Self { shared: Arc::new(shared), threads_max })
    }

    /// Takes a job. Without any thread to be had it is done here and now.
    pub fn submit(&self, job: Job) {
        let mut state = self.shared.state.lock();
        assert!(!state.is_ending, "work for a pool that ends");
        state.queue.push_back(job);
        if state.queue.len() <= state.idle {
            self.shared.work.notify_one();
            return;
        }
        let wants_thread = state.threads < self.threads_max;
        if wants_thread {
            state.threads += 1;
        }
        drop(state);
        if wants_thread && self.start_thread().is_err() {
            self.do_without_thread();
        }
    }

    fn start_thread(&self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let builder = std::thread::Builder::new().name("alongside-io".into());
        let blocked = signals_blocked();
        let started = builder.stack_size(STACK_BYTES).spawn(move || shared.run_thread());
        restore_signals(&blocked);
        started.map(drop)
    }

    /// After a thread could not be started: others do the work, and if there are none, this one.
    fn do_without_thread(&self) {
        let mut state = self.shared.state.lock();
        state.threads -= 1;
        if state.threads > 0 {
            return;
        }
        while let Some(job) = state.queue.pop_front() {
            drop(state);
            self.shared.finish(job);
            state = self.shared.state.lock();
        }
    }

    /// Takes what is finished. Does not touch the eventfd.
    pub fn take(&self) -> Vec<Finished> {
        std::mem::take(&mut self.shared.state.lock().finished)
    }

    /// Sleeps until something is finished or it is `deadline`.
    pub fn wait(&self, deadline: Option<Instant>) {
        let mut state = self.shared.state.lock();
        while state.finished.is_empty() {
            match deadline {
                None => self.shared.change.wait(&mut state),
                Some(deadline) => {
                    if self.shared.change.wait_until(&mut state, deadline).timed_out() {
                        return;
                    }
                }
            }
        }
    }

    /// The eventfd, which is written from now on when there is something to take.
    pub fn watch(&self) -> BorrowedFd<'_> {
        let mut state = self.shared.state.lock();
        if !state.is_watched {
            state.is_watched = true;
            if !state.finished.is_empty() {
                self.shared.signal();
            }
        }
        self.shared.event.as_fd()
    }

    /// Makes the eventfd readable.
    pub fn signal(&self) {
        self.shared.signal();
    }

    /// Makes the eventfd, which has to be non-blocking, silent; before `take`.
    pub fn quiet(&self) {
        if !self.shared.state.lock().is_watched {
            return;
        }
        let mut count = 0_u64;
        // SAFETY: eight bytes, which live through the call. With nothing there it says EAGAIN.
        unsafe { libc::read(self.shared.event.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

impl Shared {
    /// What a thread does.
    fn run_thread(&self) {
        take_turns(Turns::Short);
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                self.finish(job);
                state = self.state.lock();
                continue;
            }
            if state.is_ending {
                break;
            }
            state.idle += 1;
            let timed_out = self.work.wait_for(&mut state, IDLE_MAX).timed_out();
            state.idle -= 1;
            if timed_out && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        self.change.notify_all();
    }

    /// Does the job and says so.
    fn finish(&self, job: Job) {
        let Job { key, op, done } = job;
        let result = plain::perform(&op, done);
        let mut state = self.state.lock();
        let was_empty = state.finished.is_empty();
        state.finished.push(Finished { key, op, result });
        let is_watched = state.is_watched;
        drop(state);
        if was_empty {
            self.change.notify_all();
            if is_watched {
                self.signal();
            }
            if let Some(tell) = &self.tell {
                tell();
            }
        }
    }

    fn signal(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes, which live through the call.
        let wrote = unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
        assert!(wrote == 8, "an eventfd does not take a 1: {}", io::Error::last_os_error());
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_ending = true;
        self.shared.work.notify_all();
        while state.threads > 0 {
            self.shared.change.wait(&mut state);
        }
        assert!(state.queue.is_empty(), "{} jobs are left behind", state.queue.len());
    }
}

/// Blocks every signal of this thread, for a thread that it starts; what was blocked before.
fn signals_blocked() -> libc::sigset_t {
    // SAFETY: zeros are a valid set of signals.
    let (mut all, mut before) = unsafe { std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>() };
    // SAFETY: both sets live through the calls.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    before
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: the set lives through the call.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}
