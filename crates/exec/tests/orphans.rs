//! A worker whose driver dies ends itself, idle or busy, with and without the kernel's help.

use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};

const PATIENCE_MS: i32 = 60_000;

/// Starts a driver in a process of its own whose worker runs `functions`, kills the driver, and
/// waits for the end of the worker.
fn orphan(functions: &str) {
    let mut driver = Command::new(env!("CARGO_BIN_EXE_exec-test-worker"))
        .args(["driver", functions])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a driver");
    let mut line = String::new();
    BufReader::new(driver.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let worker: libc::pid_t = line.trim().parse().expect("the number of the worker");
    // SAFETY: gives a new descriptor or -1.
    let end = unsafe {
        let end = libc::syscall(libc::SYS_pidfd_open, worker, 0);
        assert!(end >= 0, "the worker is alive");
        OwnedFd::from_raw_fd(end as i32)
    };
    driver.kill().expect("alive");
    driver.wait().expect("killed");
    let mut wait = libc::pollfd { fd: end.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one live entry.
    let ready = unsafe { libc::poll(&mut wait, 1, PATIENCE_MS) };
    assert_eq!(ready, 1, "the worker outlives its driver");
}

#[test]
fn an_idle_worker_ends() {
    orphan("0");
}

#[test]
fn a_worker_in_the_middle_of_a_task_ends() {
    orphan("0,2");
}

#[test]
fn an_idle_worker_ends_without_help_from_the_kernel() {
    orphan("8");
}
