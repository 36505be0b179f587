//! Engines around engines: a limit, and a bad disk. Each wraps any engine, also another wrapper.

pub mod fault;
mod random;
mod ready;
pub mod throttle;
