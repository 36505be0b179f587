//! The C interface as programs see it: every program in this folder is compiled and has to exit
//! with 0 (or 77: cannot be tested here), with each engine and also with the preloaded calls.

mod build;

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use build::{programs, Built};

/// Programs that run at the same time in one test.
const TOGETHER: usize = 2;
/// The exit code of a program that cannot be tested here.
const SKIPPED: i32 = 77;

/// Runs each and collects what went wrong.
fn run_all(programs: &[Built], command: impl Fn(&Path) -> Command + Sync) {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..TOGETHER {
            scope.spawn(|| {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let output = command(&program.path).output().expect("the program is there");
                    if let Some(what) = judge(program, &output) {
                        failed.lock().unwrap().push(what);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}

fn judge(program: &Built, output: &Output) -> Option<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => None,
        Some(SKIPPED) => {
            println!("{}: {}", program.name, said.trim());
            None
        }
        _ => Some(format!("{}: {}\n{said}", program.name, output.status)),
    }
}

fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(build::scratch_folder())
        .env("RUST_BACKTRACE", "0")
        .env_remove("ALONGSIDE_ENGINE");
    command
}

#[test]
fn every_program_passes() {
    run_all(programs(), command);
}

#[test]
fn every_program_passes_on_threads() {
    run_all(programs(), |program| {
        let mut command = command(program);
        command.env("ALONGSIDE_ENGINE", "threads").env("ALONGSIDE_EXPECTED", "threads");
        command
    });
}

#[test]
fn every_program_passes_where_io_uring_is_forbidden() {
    let launcher = build::compile("forbid_uring.c", &[]);
    run_all(programs(), |program| {
        let mut command = command(&launcher.path);
        command.arg(program).env("ALONGSIDE_EXPECTED", "threads: io_uring is not available");
        command
    });
}

#[test]
fn ordinary_calls_are_task_aware_when_preloaded() {
    for engine in ["auto", "threads"] {
        run_all(build::with_plain_calls(), |program| {
            let mut command = command(program);
            command.env("ALONGSIDE_ENGINE", engine).env("LD_PRELOAD", build::preload());
            command
        });
    }
}

#[test]
fn ordinary_calls_hold_up_the_worker_when_nothing_is_preloaded() {
    let plain = build::with_plain_calls().iter().find(|built| built.name == "blocking");
    let output =
        command(&plain.expect("it is one of them").path).output().expect("the program is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("read one after the other"), "{said}");
}
