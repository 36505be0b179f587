//! Whether there is an io_uring here, and which operations it has.

use std::io;

use io_uring::{opcode, IoUring, Probe};
use ops::Op;

/// A ring that works, and what it can do.
pub(crate) struct Probed {
    pub ring: IoUring,
    pub supported: Supported,
}

/// Why there is no ring.
#[derive(Debug)]
pub(crate) enum NoRing {
    /// It is not there, or not for us: something else does.
    Unavailable(String),
    /// It would be there, and failed: nothing else would do better.
    Failed(io::Error),
}

/// Operation codes that the kernel has, a bit each.
#[derive(Clone, Copy)]
pub(crate) struct Supported(u64);

/// The code that each operation needs; a copy has none.
fn code(op: &Op) -> Option<u8> {
    Some(match op {
        Op::Read { .. } => opcode::Read::CODE,
        Op::Write { .. } => opcode::Write::CODE,
        Op::ReadVectored { .. } => opcode::Readv::CODE,
        Op::WriteVectored { .. } => opcode::Writev::CODE,
        Op::Fsync { .. } | Op::Fdatasync { .. } => opcode::Fsync::CODE,
        Op::Open { .. } => opcode::OpenAt::CODE,
        Op::Close { .. } => opcode::Close::CODE,
        Op::Stat { .. } => opcode::Statx::CODE,
        Op::Fallocate { .. } => opcode::Fallocate::CODE,
        Op::Truncate { .. } => opcode::Ftruncate::CODE,
        Op::Rename { .. } => opcode::RenameAt::CODE,
        Op::Unlink { .. } => opcode::UnlinkAt::CODE,
        Op::Copy { .. } => return None,
    })
}

impl Supported {
    /// Nothing but what these operations need; for tests of old kernels.
    #[cfg(test)]
    pub fn only(ops: &[Op]) -> Self {
        Self(ops.iter().filter_map(code).map(|code| 1 << code).fold(0, |all, bit| all | bit))
    }

    /// Whether the ring does it.
    pub fn has(self, op: &Op) -> bool {
        code(op).is_some_and(|code| self.0 >> code & 1 == 1)
    }
}

/// Makes a ring for `depth` operations and sees that it works.
pub(crate) fn probe(depth: u32) -> Result<Probed, NoRing> {
    let entries = depth.next_power_of_two();
    let ring = build(entries).map_err(|error| why("io_uring_setup", error))?;
    let mut found = Probe::new();
    ring.submitter().register_probe(&mut found).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => NoRing::Unavailable("this kernel is older than 5.6".into()),
        _ => why("io_uring_register", error),
    })?;
    let codes = (0..64).filter(|&code| found.is_supported(code));
    let supported = Supported(codes.map(|code| 1 << code).fold(0, |all, bit| all | bit));
    if !ring.params().is_feature_nodrop() || !supported.has(&Op::Fsync { fd: 0 }) {
        return Err(NoRing::Unavailable("this kernel's io_uring is too old".into()));
    }
    Ok(Probed { ring: tried(ring)?, supported })
}

/// A ring that goes on after an entry that is refused, if the kernel (5.18) knows such.
fn build(entries: u32) -> io::Result<IoUring> {
    let built = IoUring::builder().dontfork().setup_submit_all().build(entries);
    match built {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            IoUring::builder().dontfork().build(entries)
        }
        built => built,
    }
}

/// Sends nothing through the ring: a filter may allow the setup and forbid the use.
fn tried(mut ring: IoUring) -> Result<IoUring, NoRing> {
    let entry = opcode::Nop::new().build();
    // SAFETY: the operation has no memory.
    unsafe { ring.submission().push(&entry) }.expect("an empty ring has room");
    loop {
        match ring.submit_and_wait(1) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(why("io_uring_enter", error)),
            Ok(_) => break,
        }
    }
    let came = ring.completion().count();
    assert!(came == 1, "{came} completions of one operation");
    Ok(ring)
}

/// Sorts an error of a call that a ring cannot do without.
fn why(call: &str, error: io::Error) -> NoRing {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => NoRing::Unavailable(format!("{call}: this kernel has none (ENOSYS)")),
        Some(libc::EPERM) => NoRing::Unavailable(format!(
            "{call} is forbidden here (EPERM): by a seccomp filter, as containers have, or by \
             kernel.io_uring_disabled"
        )),
        Some(libc::EACCES) => {
            NoRing::Unavailable(format!("{call} is forbidden here (EACCES): by a security module"))
        }
        _ => NoRing::Failed(io::Error::new(error.kind(), Call { call: call.into(), error })),
    }
}

/// An error with the call that gave it.
#[derive(Debug)]
struct Call {
    call: String,
    error: io::Error,
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.call, self.error)
    }
}

impl std::error::Error for Call {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_unavailable_lets_something_else_do_it() {
        for errno in [libc::ENOSYS, libc::EPERM, libc::EACCES] {
            let error = io::Error::from_raw_os_error(errno);
            assert!(matches!(why("io_uring_setup", error), NoRing::Unavailable(_)), "{errno}");
        }
        for errno in [libc::ENOMEM, libc::EMFILE, libc::EINVAL] {
            let error = io::Error::from_raw_os_error(errno);
            assert!(matches!(why("io_uring_setup", error), NoRing::Failed(_)), "{errno}");
        }
    }
}
