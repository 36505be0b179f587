//! What every engine must do, as tests that anybody can run on an engine of their own.
//!
//! [`run`] runs all of them; [`cases`] lists them, for a test runner that wants to name each. A
//! case panics where the engine does not conform. It gets engines from `make`, as many as it likes,
//! and files in `folder`, which should be on a disk (on a file system without `O_DIRECT` the cases
//! about it have nothing to try).

mod bench;
mod data;
mod direct;
mod errors;
mod flow;
mod paths;

use std::path::Path;

pub use bench::Bench;

use crate::Engine;

/// One thing that an engine must do.
pub struct Case {
    /// What it does, as the end of "an engine ...".
    pub name: &'static str,
    run: fn(&mut Bench),
}

impl Case {
    /// Tries it, with files in `folder`; panics if the engine does not do it.
    pub fn run(&self, make: &mut dyn FnMut() -> Box<dyn Engine>, folder: &Path) {
        let mut bench = Bench::new(make, folder, self.name);
        (self.run)(&mut bench);
    }
}

/// All cases.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    [data::CASES, direct::CASES, errors::CASES, paths::CASES, flow::CASES].into_iter().flatten()
}

/// Tries all cases, one after the other.
pub fn run(make: &mut dyn FnMut() -> Box<dyn Engine>, folder: &Path) {
    for case in cases() {
        case.run(make, folder);
    }
}
