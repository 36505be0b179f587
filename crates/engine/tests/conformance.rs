//! Every engine passes every case of the suite, alone and in each wrapper.

use std::path::Path;

use engine::wrap::fault::{Fault, Faults};
use engine::wrap::throttle::{Limits, Rate, Throttle};
use engine::{conformance, open, Engine, Options, Prefer};

/// On the disk, unlike `/tmp` on many machines.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// io_uring; threads once more where it is not available.
fn ring() -> Prefer {
    match engine::about().name {
        "threads" => Prefer::Threads,
        _ => Prefer::Uring,
    }
}

fn made(prefer: Prefer) -> Box<dyn Engine> {
    open(&Options { prefer, depth: 32, threads: 4 }).expect("an engine")
}

/// So low that nearly every case waits for it.
fn throttled(prefer: Prefer) -> Box<dyn Engine> {
    let bytes = Some(Rate { per_s: 400e6, burst: 1e6 });
    let operations = Some(Rate { per_s: 20e3, burst: 10.0 });
    Box::new(
        Throttle::new(made(prefer), Limits { bytes, operations, curve: None }).expect("a throttle"),
    )
}

fn faultless(prefer: Prefer, faults: Faults) -> Box<dyn Engine> {
    Box::new(Fault::new(made(prefer), faults).expect("a disk"))
}

#[test]
fn threads_conform() {
    conformance::run(&mut || made(Prefer::Threads), folder());
}

#[test]
fn io_uring_conforms() {
    conformance::run(&mut || made(ring()), folder());
}

#[test]
fn throttled_threads_conform() {
    conformance::run(&mut || throttled(Prefer::Threads), folder());
}

#[test]
fn throttled_io_uring_conforms() {
    conformance::run(&mut || throttled(ring()), folder());
}

#[test]
fn threads_behind_a_faultless_disk_conform() {
    conformance::run(&mut || faultless(Prefer::Threads, Faults::default()), folder());
}

#[test]
fn io_uring_behind_a_faultless_disk_conforms() {
    conformance::run(&mut || faultless(ring(), Faults::default()), folder());
}

#[test]
fn a_disk_that_remembers_for_a_power_loss_conforms() {
    let faults = Faults { has_power_loss: true, ..Faults::default() };
    conformance::run(&mut || faultless(ring(), faults.clone()), folder());
}

#[test]
fn a_disk_that_is_only_late_and_out_of_order_conforms() {
    let late_max = std::time::Duration::from_micros(300);
    let faults = Faults { seed: 7, late: 0.3, late_max, reordered: 0.5, ..Faults::default() };
    conformance::run(&mut || faultless(ring(), faults.clone()), folder());
}

#[test]
fn an_engine_that_loses_bytes_does_not_conform() {
    let faults = Faults { seed: 1, short: 0.5, ..Faults::default() };
    let failed = conformance::cases().filter(|case| {
        let mut make = || faultless(Prefer::Threads, faults.clone());
        let run = std::panic::AssertUnwindSafe(|| case.run(&mut make, folder()));
        std::panic::catch_unwind(run).is_err()
    });
    let failed: Vec<_> = failed.map(|case| case.name).collect();
    assert!(failed.contains(&"reads what it wrote"), "{failed:?}");
}
