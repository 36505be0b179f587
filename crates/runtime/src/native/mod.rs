//! The native driver: the same scheduler, with worker threads and fibers instead of processes.
//!
//! ```text
//!  spawn ──> core (graph, sched; one lock) ──Run──> a worker's queue ──> fiber: the body ──┐
//!              ^                                                          │ pauses for I/O  │
//!              └──── inbox <── Ended, Paused ─────────────────────────────┴── engine <──────┘
//! ```
//!
//! In flow order: `options` (how it is started), [`task`] (what is kept of a task), `io_task` (what
//! I/O tasks have besides), `layers` and `tuning` (what they are granted, and what was found out
//! about it), `placed` and `file_calls` (their files, and what programs ask of these), `core`
//! (everything behind the one lock), `data` (addresses to data), `waiting` (tasks of our own),
//! `inbox` (reports to the core: whoever holds the lock takes them, so that nobody waits for it
//! with a report in hand), `waiters` (who waits for the end of tasks), `worker` (the threads),
//! `queue` (what others put for a worker, and its sleep), `io` (operations and their completions),
//! `brief` (which tasks run where they are spawned), `timers` (what waits for a moment), `services`
//! (polling services), `detach` (operations of OpenMP tasks, which need no worker), `say` (messages
//! for people). The protocols between threads are in `inbox`, `queue`, `starving` (workers without
//! a stack) and `waiters`, made of what is in `sync`, which the models replace.
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
//!
//! An I/O task is for the scheduler one of an I/O executor, the one that all workers are together:
//! it has a slot and a grant on a layer, and no processor. Its body is a fiber like any other, on
//! whichever worker is free first.

mod brief;
mod core;
mod data;
pub mod detach;
mod file_calls;
mod inbox;
mod io;
mod io_task;
mod layers;
mod options;
mod placed;
mod queue;
mod runtime;
mod say;
mod services;
mod starving;
mod sync;
mod task;
mod timers;
mod tuning;
mod waiters;
mod waiting;
mod worker;

pub use engine::Prefer;
pub use file_calls::FileUse;
pub use graph::{Direction, Region, Span};
pub use io::{Operation, ResultPlace};
pub use io_task::Wants;
pub use layers::Layer;
pub use options::{Options, StartError};
pub use runtime::{current, with_current, Runtime};
pub use say::{say, set_hook, Hook};
pub use services::{Poll, Service};
pub use task::{Access, Argument, Body, Spawn, TaskNumber};

/// An error number of the system, as C programs know them (positive).
pub type Errno = i32;
