//! What the protocols between threads are made of: `inbox`, `queue`, `starving` and `waiters` take
//! it from here. The models in `tests/model.rs` compile the same files with loom's own instead.

pub(super) use std::sync::atomic::{fence, AtomicBool, AtomicUsize, Ordering};

pub(super) use parking_lot::{Condvar, Mutex};
