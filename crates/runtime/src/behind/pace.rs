//! Whether a program gains anything from a copy of what it writes.
//!
//! It does if it does something else between a write and what waits for it, or between two writes.
//! If it does not, whoever waits at the end of such a burst has waited for the copies as well, and
//! a write here and now would have been over sooner. So a file that was drained right after its
//! last write, with no pause before it, has the next ones written directly; the first pause ends
//! that. A program that only begins to write has yet to show what it does: it is copied.

use std::time::{Duration, Instant};

use super::FileId;

/// A program that has not written for so long has paused.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// How the program's writes follow each other.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Calls that write just now.
    active: usize,
    /// The end of the last one, of which file.
    last: Option<(FileId, Instant)>,
    /// There was a pause since somebody waited.
    has_paused: bool,
    is_direct: bool,
}

impl Pace {
    /// Whether what is written now should be written directly.
    pub(super) fn is_direct(&mut self, now: Instant) -> bool {
        self.look(now);
        self.is_direct
    }

    /// The program begins to write.
    pub(super) fn begins(&mut self, now: Instant) {
        self.look(now);
        self.active += 1;
    }

    /// It goes on.
    pub(super) fn ends(&mut self, file: FileId, now: Instant) {
        self.active -= 1;
        self.last = Some((file, now));
    }

    /// It waits for what it wrote to a file.
    pub(super) fn waits(&mut self, file: FileId, now: Instant) {
        if self.last.is_some_and(|(last, _)| last == file) {
            self.look(now);
            self.is_direct = !self.has_paused;
            (self.last, self.has_paused) = (None, false);
        }
    }

    fn look(&mut self, now: Instant) {
        let has_paused = |(_, at): (FileId, Instant)| now.saturating_duration_since(at) >= PAUSE;
        if self.active == 0 && self.last.is_some_and(has_paused) {
            self.has_paused = true;
            self.is_direct = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId(0);
    const OTHER: FileId = FileId(1);

    /// A program and its clock.
    struct Program(Pace, Instant);

    impl Program {
        fn new() -> Program {
            Program(Pace::default(), Instant::now())
        }

        /// Something else.
        fn computes(&mut self, time: Duration) -> &mut Program {
            self.1 += time;
            self
        }

        /// A write that takes long; whether it was a direct one.
        fn writes(&mut self, file: FileId) -> bool {
            let is_direct = self.0.is_direct(self.1);
            self.0.begins(self.1);
            self.1 += 50 * PAUSE;
            self.0.ends(file, self.1);
            is_direct
        }

        fn waits(&mut self, file: FileId) {
            self.0.waits(file, self.1);
        }
    }

    #[test]
    fn who_never_pauses_writes_directly_once_that_is_known() {
        let mut program = Program::new();
        assert_eq!([program.writes(FILE), program.writes(FILE)], [false, false]);
        program.waits(FILE);
        for _ in 0..3 {
            // What passes between a wait and the next write is no pause: nothing was under way.
            program.computes(10 * PAUSE);
            assert_eq!([program.writes(FILE), program.writes(OTHER)], [true, true]);
            program.waits(OTHER);
        }
    }

    #[test]
    fn a_pause_before_the_wait_is_what_copies_are_for() {
        let mut program = Program::new();
        for _ in 0..3 {
            assert_eq!([program.writes(FILE), program.writes(FILE)], [false, false]);
            program.computes(PAUSE).waits(FILE);
        }
    }

    #[test]
    fn a_pause_between_two_writes_ends_direct_ones_until_the_next_wait_but_one() {
        let mut program = Program::new();
        program.writes(FILE);
        program.waits(FILE);
        assert!(program.writes(FILE));
        program.computes(PAUSE);
        assert_eq!([program.writes(FILE), program.writes(FILE)], [false, false]);
        program.waits(FILE);
        assert!(!program.writes(FILE));
        program.waits(FILE);
        assert!(program.writes(FILE));
    }

    #[test]
    fn a_wait_for_a_file_that_was_not_written_last_says_nothing() {
        let mut program = Program::new();
        program.writes(FILE);
        program.waits(OTHER);
        program.computes(PAUSE);
        assert!(!program.writes(FILE));
        program.waits(FILE);
        assert!(!program.writes(FILE));
    }

    #[test]
    fn no_time_of_a_write_of_another_thread_is_a_pause() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.begins(now);
        pace.begins(now);
        pace.ends(FILE, now);
        pace.ends(FILE, now + 9 * PAUSE);
        pace.waits(FILE, now + 9 * PAUSE);
        assert!(pace.is_direct(now + 20 * PAUSE));
    }
}
