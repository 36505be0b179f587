//! The one order that engines keep: a close comes after what was submitted on its descriptor.

use std::os::fd::RawFd;

use ops::Op;

/// An operation that an engine has, as far as the order is concerned.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// Counts submissions.
    pub sequence: u64,
    /// What it works on.
    pub fds: [Option<RawFd>; 2],
}

impl Place {
    pub fn of(op: &Op, sequence: u64) -> Self {
        Self { sequence, fds: op.fds() }
    }

    /// Whether this, a close, has to wait for one of these.
    pub fn is_behind(&self, mut others: impl Iterator<Item = Place>) -> bool {
        others.any(|other| {
            other.sequence < self.sequence
                && other.fds.iter().flatten().any(|&fd| Some(fd) == self.fds[0])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_waits_for_earlier_operations_on_its_descriptor_only() {
        let close = Place::of(&Op::Close { fd: 3 }, 5);
        let copy = |sequence, from, to| {
            let op = Op::Copy { from, from_offset: 0, to, to_offset: 0, len: 1 };
            Place::of(&op, sequence)
        };
        assert!(close.is_behind([copy(4, 3, 9)].into_iter()));
        assert!(close.is_behind([copy(9, 3, 3), copy(4, 9, 3)].into_iter()));
        assert!(!close.is_behind([copy(6, 3, 3), copy(4, 8, 9)].into_iter()));
        assert!(!close.is_behind([close].into_iter()));
    }
}
