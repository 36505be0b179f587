//! The native driver: the same scheduler, with worker threads and fibers instead of processes.
//!
//! ```text
//!  spawn ──> core (graph, sched; one lock) ──Run──> a worker's queue ──> fiber: the body ──┐
//!              ^                                                          │ pauses for I/O  │
//!              └──── inbox <── Ended, Paused ─────────────────────────────┴── engine <──────┘
//! ```
//!
//! In flow order: [`task`] (what is kept of a task), `core` (everything behind the one lock),
//! `data` (addresses to data), `inbox` (reports to the core: whoever holds the lock takes them, so
//! that nobody waits for it with a report in hand), `waiters` (who waits for the end of tasks),
//! `worker` (the threads), `queue` (what others put for a worker, and its sleep), `io` (operations
//! and their completions), `services` (polling services), `detach` (operations of OpenMP tasks,
//! which need no worker), `say` (messages for people). The protocols between threads are in
//! `inbox`, `queue`, `starving` (workers without a stack) and `waiters`, made of what is in `sync`,
//! which the models replace.
//!
//! A worker thread runs a loop fiber that takes task after task on one stack: a task that never
//! pauses costs no switch. When a task pauses, its fiber is set aside and the thread goes on with
//! another: one that was resumed, or a fresh loop fiber. A fiber never changes its thread, so that
//! `errno` and thread-local variables, whose addresses compilers keep, stay right.
//!
//! Each worker has an engine of its own behind a mutex. Its owner submits to it and polls it
//! between tasks; every worker polls all of them now and then and before it sleeps. A worker deep
//! in a long computation therefore holds nobody's completion back: an idle one sleeps on all
//! engines at once.

mod core;
mod data;
pub mod detach;
mod inbox;
mod io;
mod queue;
mod runtime;
mod say;
mod services;
mod starving;
mod sync;
mod task;
mod waiters;
mod worker;

pub use engine::Prefer;
pub use graph::{Direction, Region, Span};
pub use io::{Operation, ResultPlace};
pub use runtime::{current, with_current, Options, Runtime, StartError};
pub use say::{say, set_hook, Hook};
pub use services::{Poll, Service};
pub use task::{Access, Argument, Body, Spawn, TaskNumber};

/// An error number of the system, as C programs know them (positive).
pub type Errno = i32;
