//! The same scheduler that the drivers run, under a virtual clock: random programs, modelled
//! executors and storage, injected faults, and checkers that look at all of it.
//!
//! A seed stands for a program ([`program`]), a machine and its faults ([`faults`]), and
//! reproduces exactly: [`run_seed`] runs it twice and compares every instruction. What must hold
//! is in [`checkers`], one file a promise; each checker is proved able to fail by a [`Canary`].
//!
//! Way through: `generate` makes the program, `main_thread` takes its steps, `world` drives the
//! scheduler and keeps the clock, `executor` runs bodies over the data model of [`values`],
//! `streams` and `mover` are the driver's side of streams and of files, `run` puts a seed through
//! all that, [`seeds`] many, `shrink` makes a failing program small.
//! [`experiment`] runs whole applications on [`storage`] with congestion, without faults; [`tiers`]
//! does the same for storage layers, [`eager`] for values that are handed over early; `calendar`
//! keeps their time. [`cli`], [`rate`], [`experiment`], [`tiers`] and [`eager`] are what `cargo
//! xtask sim`, `rate` and so on call. [`power`] is a simulation of its own: files that move between
//! layers while the power goes.
#![forbid(unsafe_code)]

mod calendar;
pub mod checkers;
mod command;
pub mod eager;
mod executor;
pub mod experiment;
pub mod faults;
mod generate;
pub mod hash;
mod main_thread;
mod mover;
pub mod power;
pub mod program;
pub mod rate;
mod run;
pub mod seeds;
mod settling;
mod shrink;
pub mod storage;
mod streams;
pub mod tiers;
pub mod values;
mod world;

pub use run::{cli, run_program, run_seed, run_seeds, Canary, Report, Summary, Violation};
