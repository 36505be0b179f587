//! The scheduler as a pure state machine: events in, instructions out (DESIGN section 4).
//!
//! One [`Sched`] runs in every driver: processes, fibers, a cluster, the simulator. It knows
//! no thread, clock, file or random number; time is an argument. A driver submits tasks,
//! reports [`Event`]s, and carries out the [`Instruction`]s that it gets back, in order.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod api;
mod end;
mod executors;
mod files;
mod function;
mod layers;
mod node;
mod outage;
mod placement;
mod policy;
mod ready;
mod record;
mod sched;
mod sent;
mod story;
mod stream;
mod transitions;
mod tuner;
mod validate;

pub use api::*;
pub use graph::{Access, Bound, DatumId, DatumKind, Direction, Region, Span, Target};
pub use graph::{TaskId, VersionId};
pub use sched::{Counts, Sched, Submitted};
pub use story::{Step, STEPS_MAX};
pub use stream::{Feed, StreamAccount};
pub use transitions::{next, Input, State, Transition, TRANSITIONS};
pub use tuner::{size_class, Bounds, Entry, Learned, Progress, Tuned, Tuning};
