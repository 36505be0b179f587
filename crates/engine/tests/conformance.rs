//! Every engine passes every case of the suite.

use std::path::Path;

use engine::{conformance, open, Engine, Options, Prefer};

/// On the disk, unlike `/tmp` on many machines.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn made(prefer: Prefer) -> Box<dyn Engine> {
    open(&Options { prefer, depth: 32, threads: 4 }).expect("an engine")
}

#[test]
fn threads_conform() {
    conformance::run(&mut || made(Prefer::Threads), folder());
}

#[test]
fn io_uring_conforms() {
    conformance::run(&mut || made(Prefer::Uring), folder());
}
