//! Task accesses in, versions and edges out: the pure dependency graph (DESIGN section 3).
//!
//! No thread, clock, file or random number lives here. A caller submits tasks with their
//! accesses, is told which became ready, and reports how they ended. Nothing is kept of a
//! task that ended, nor of a version that nobody can read any more.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod bind;
pub mod chunks;
mod end;
mod graph;
mod place;
mod projection;
mod region;
pub mod slab;
mod validate;

pub use access::{Access, Bound, DatumId, DatumKind, Direction, Region, Span, Target};
pub use access::{TaskId, VersionId};
pub use graph::{Graph, Refused};
pub use place::Limits;
pub use region::DIMENSIONS_MAX;
