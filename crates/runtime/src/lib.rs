//! The local driver: events in, instructions out (DESIGN sections 2 and 5).
//!
//! In flow order: [`options`] and [`storage`] (what a session is started with), [`session`] (what a
//! program does with it), `shell` (the state under its mutex, and the runtime thread), [`store`]
//! (who holds which memory), [`futures`] (where outcomes are put), [`trace`] and [`statistics`]
//! (what happened); beside them [`probe`] (what storage takes), `tuning` (how a bandwidth is asked
//! for), `learned` (what tuning found, as a file), [`files`], `naming`, `placing`, `moving` and
//! [`tiers`] (files on layers: which there are, what a path names, what is decided about writing
//! and about moving them, where it meets a disk), and [`behind`] (writes behind the back of who
//! makes its own calls). Nothing here knows Python; what a pickle means, only `pickle` knows, of a
//! few.

pub mod behind;
mod copying;
mod failures;
pub mod files;
mod fork;
pub mod futures;
mod learned;
mod line;
mod lock;
pub mod machine;
mod moving;
mod naming;
pub mod native;
mod notify;
pub mod options;
mod pickle;
mod placing;
pub mod probe;
pub mod ring;
pub mod session;
mod shell;
pub mod statistics;
pub mod storage;
pub mod store;
pub mod tiers;
pub mod trace;
mod tuning;
mod write_out;

pub use engine;
pub use exec;
pub use ops;
pub use sched;

pub use failures::FailureReport;
pub use files::{FileDatum, FileError, PathKind};
pub use futures::{Fault, Handle, State, WaitEnd, WaitFor};
pub use learned::{read_learned, write_learned};
pub use machine::Machine;
pub use options::Options;
pub use placing::Unsettled;
pub use sched::{
    Cause, Constraint, DatumId, Direction, Entry, Failure, Kind, LayerId, Learned, OnFailure,
    PolicyKind, Progress, Refusal, TaskId, Tuning,
};
pub use session::Session;
pub use shell::{
    Ahead, Builtin, Call, FileUse, FunctionSpec, Input, Mapped, Overrides, RepeatedCall,
    SessionError, SpawnError, Spawned, StartError, Stream, StreamBuffer,
};
pub use statistics::{FunctionStatistics, Statistics};
pub use storage::{LayerSpec, Scope, Storage, StorageError};
pub use store::{block, StoreFull, Value};
pub use trace::{Graph, GraphEnd, GraphNode};
pub use tuning::{parse_ask, parse_tuning, Ask, TunedStatistics};

/// How the payload of a [`Cause::Raised`] begins that the runtime itself wrote; UTF-8 text
/// follows. No pickle begins so.
pub const RUNTIME_ERROR_PREFIX: &[u8] = b"alongside-runtime-error\0";

/// How the payload of a [`Cause::Raised`] begins of a built-in task that the system refused
/// something; four bytes of errno, little-endian, and the path follow, and if other words than the
/// system's tell more, a zero byte and these.
pub const SYSTEM_ERROR_PREFIX: &[u8] = b"alongside-system-error\0";
