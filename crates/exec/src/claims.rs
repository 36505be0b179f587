//! Claims: who has a task that was sent to a worker, the worker or (again) the driver.
//!
//! Every run that is sent has a slot, one `AtomicU64` in the worker's area, holding
//! `sequence << 2 | state`. The sequence is new for every use of a slot, so a late look at a slot
//! that has a new use fails. Transitions, each by one compare-and-swap of the whole word:
//!
//! | from | to | by |
//! |---|---|---|
//! | (anything) | `QUEUED` with a new sequence | driver, before it pushes the run |
//! | `QUEUED` | `RUNNING` | worker, before it reads the arguments |
//! | `QUEUED` | `RECALLED` | driver, to take the task back |
//!
//! Exactly one of the last two succeeds. After a crash, the tasks whose slots are `RUNNING` had
//! begun, the others had not. A run that stalls has begun, as the driver knows then: it needs no
//! slot any more, and its claim only names it.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many runs can be at a worker at a time, besides those that wait for their consumers.
pub const TASKS_SENT_MAX: usize = 4096;

const QUEUED: u64 = 1;
const RUNNING: u64 = 2;
const RECALLED: u64 = 3;
const STATE_BITS: u32 = 2;
const SLOT_BITS: u32 = TASKS_SENT_MAX.trailing_zeros();

/// One use of one slot, as a number that fits a record: `sequence << SLOT_BITS | slot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim(pub u64);

impl Claim {
    pub(crate) fn new(sequence: u64, slot: usize) -> Self {
        assert!(slot < TASKS_SENT_MAX && sequence < 1 << (64 - SLOT_BITS));
        Self(sequence << SLOT_BITS | slot as u64)
    }

    pub(crate) fn slot(self) -> usize {
        self.0 as usize % TASKS_SENT_MAX
    }

    fn word(self, state: u64) -> u64 {
        self.0 >> SLOT_BITS << STATE_BITS | state
    }
}

/// The slots of one worker.
#[repr(C, align(128))]
pub struct Claims([AtomicU64; TASKS_SENT_MAX]);

const _: () = assert!(size_of::<Claims>() == 8 * TASKS_SENT_MAX);

impl Claims {
    fn change(&self, claim: Claim, to: u64) -> bool {
        let (from, to) = (claim.word(QUEUED), claim.word(to));
        let slot = &self.0[claim.slot()];
        slot.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Driver: the run with this claim is about to be sent.
    pub(crate) fn queue(&self, claim: Claim) {
        self.0[claim.slot()].store(claim.word(QUEUED), Ordering::Release);
    }

    /// Worker: begin the run. `false`: the driver took it back.
    #[must_use]
    pub(crate) fn begin(&self, claim: Claim) -> bool {
        self.change(claim, RUNNING)
    }

    /// Driver: take the run back. `false`: it has begun.
    #[must_use]
    pub(crate) fn recall(&self, claim: Claim) -> bool {
        self.change(claim, RECALLED)
    }

    /// Driver: whether the run has begun.
    pub(crate) fn begun(&self, claim: Claim) -> bool {
        self.0[claim.slot()].load(Ordering::Acquire) == claim.word(RUNNING)
    }

    pub(crate) fn reset(&self) {
        for slot in &self.0 {
            if slot.load(Ordering::Relaxed) != 0 {
                slot.store(0, Ordering::Relaxed);
            }
        }
    }
}
