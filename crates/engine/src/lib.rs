//! Does file operations: io_uring or threads, throttled or faulty, behind one trait.
//!
//! ```text
//! open(options) --> Box<dyn Engine>
//!                     uring/    one ring; what it cannot do goes to a small pool beside it
//!                     threads/  a pool of threads that make plain system calls
//!                     wrap/     around any engine: throttle (a limit), fault (a bad disk)
//! ```
//!
//! All give the same results, as described in `ops`, and all pass [`conformance`]. An engine is
//! one value with exclusive access: it can be handed from thread to thread (say, behind a mutex),
//! also while operations are under way.
//!
//! - Nobody polls with a timer: [`Engine::wait`] sleeps in the kernel, [`Engine::fd`] is for epoll.
//! - Nothing is cancelled. A buffer belongs to its operation until the completion is there, and
//!   dropping an engine waits for all that it was given.
//! - An engine does not go through `fork`: a child must not use or drop its parent's.
//! - Closing a file with [`Op::Close`] comes after the operations on it that were submitted before.
//!   Closing it otherwise leaves operations alone that the kernel has; others find `EBADF`.

pub mod conformance;
mod open;
mod order;
mod plain;
mod threads;
mod uring;
pub mod wrap;

use std::os::fd::BorrowedFd;
use std::time::Duration;

pub use open::{about, open, threads, Options, Prefer, Tell, DEPTH_MAX, ENVIRONMENT};
pub use ops::{Answer, Buffer, Completion, Errno, Op, Stat};

/// Does file operations.
pub trait Engine: Send {
    /// Takes an operation. It may not have reached the kernel before `flush`, `poll` or `wait`. A
    /// full engine gives it back: poll and try again.
    ///
    /// `token` is what the completion will be called; the engine does not care whether it is
    /// unique.
    fn submit(&mut self, token: u64, op: Op) -> Result<(), Full>;

    /// Hands everything submitted to the kernel (one system call for all of it).
    fn flush(&mut self);

    /// Appends what has completed and says how many; never sleeps. Flushes first.
    fn poll(&mut self, out: &mut Vec<Completion>) -> usize;

    /// Flushes, then sleeps in the kernel until something has completed or the time is up (`None`:
    /// no limit). With nothing in flight there is nothing to wait for: 0 at once.
    fn wait(&mut self, out: &mut Vec<Completion>, timeout: Option<Duration>) -> usize;

    /// Operations submitted whose completion has not been given.
    fn in_flight(&self) -> usize;

    /// How many may be in flight before `submit` gives them back.
    fn capacity(&self) -> usize;

    /// Becomes readable when something completed. Made for edge-triggered epoll: it may be ready
    /// with nothing there, and there is never something there without it having become ready after
    /// the last `poll` or `wait` that gave nothing. A sleep on it may be interrupted (`EINTR`) when
    /// the kernel posts a completion of a ring.
    fn fd(&self) -> BorrowedFd<'_>;

    /// What this is, and why.
    fn about(&self) -> About;
}

/// The engine has all that it can take; here is the operation again.
#[derive(Debug)]
pub struct Full(pub Op);

/// What an engine is, and why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// `"io_uring"`, `"threads"`; of a wrapper, what it wraps.
    pub name: &'static str,
    /// A sentence for people.
    pub reason: String,
}

impl Engine for Box<dyn Engine> {
    fn submit(&mut self, token: u64, op: Op) -> Result<(), Full> {
        (**self).submit(token, op)
    }

    fn flush(&mut self) {
        (**self).flush();
    }

    fn poll(&mut self, out: &mut Vec<Completion>) -> usize {
        (**self).poll(out)
    }

    fn wait(&mut self, out: &mut Vec<Completion>, timeout: Option<Duration>) -> usize {
        (**self).wait(out, timeout)
    }

    fn in_flight(&self) -> usize {
        (**self).in_flight()
    }

    fn capacity(&self) -> usize {
        (**self).capacity()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        (**self).fd()
    }

    fn about(&self) -> About {
        (**self).about()
    }
}
