//! Worker processes: how they are started, spoken to, and known to be dead.
//!
//! In flow order: [`memory`] (what driver and workers share), [`ring`] (bytes from one process
//! to another), [`wire`] (records in those bytes), [`claims`] (who may still take a task back),
//! [`limiter`] (emulated bandwidth), [`mapped`] (pages that need no fault), [`process`] and
//! [`poller`] (the driver's side), [`worker`] and its [`pins`](worker::View) (the worker's side).
//!
//! Nothing here knows what a task means: no scheduler, no Python, no policy.

pub mod claims;
pub mod exit;
pub mod limiter;
pub mod mapped;
pub mod memory;
pub mod native;
mod pins;
pub mod poller;
pub mod process;
pub mod ring;
mod sys;
pub mod wire;
pub mod worker;

pub use ops::{take_turns, Turns};
pub use sys::{forks, now_ns, rung_bytes, tell, Linger};
