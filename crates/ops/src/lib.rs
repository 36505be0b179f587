//! File operations as plain values; who owns the buffer when.
//!
//! An [`Op`] says what is to be done to a file and owns the memory that it needs. Whoever does it
//! (an engine) gives it back in a [`Completion`], with the memory, whether it succeeded or not. So
//! nobody has to ask when a buffer is free again: it is where its operation is.
//!
//! ```text
//! caller --Op (with its Buffers)--> engine --Completion { op, result }--> caller
//! ```
//!
//! The result is what the plain system call gives, with three differences. A call that was
//! interrupted (`EINTR`), or that should be tried again (`EAGAIN` of a read or a write), is tried
//! again. A short read or write of a regular file or a block device is continued, to the end of the
//! file or of the buffer. And where an error comes after some bytes, the result is the count of
//! these bytes, as POSIX has it: the error shows at the next operation there.
//!
//! Operations that are under way together have no order among them, except that a
//! [`Close`](Op::Close) comes after what was submitted on its descriptor before it. A `Fsync` that
//! is to cover a write is submitted when the write's completion is there.
//!
//! A [`Curve`] says what storage takes in all, over how many write to it at once. A
//! [`catalog`](catalog::Catalog) knows the files that are not at their own paths, and the steps by
//! which they move. A thread that mostly waits for operations asks for short
//! [turns](take_turns) of the processor.

mod answer;
mod buffer;
pub mod catalog;
mod curve;
mod errno;
mod op;
mod turns;

pub use answer::{Answer, Completion, Stat, Time};
pub use buffer::{Buffer, PAGE_BYTES};
pub use curve::{bandwidth_at, Curve, CurveError, Point, POINTS_MAX};
pub use errno::Errno;
pub use op::Op;
pub use turns::{take_turns, Turns};
