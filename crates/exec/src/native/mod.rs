//! Native tasks: fibers on pooled stacks, and the threads that carry them.

pub mod alarm;
pub mod fiber;
pub mod overflow;
pub mod stacks;
pub mod thread;
