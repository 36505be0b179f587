//! What is written goes on to the device while its program pauses.
//!
//! A file system that has bytes, and a device that has been given them, may both keep them in a
//! cache: an `fsync` by the program waits for that. So a thread has them written to the end, range
//! by range, and then the device's cache (`fdatasync`), when the program has paused: for a moment
//! if it flushes its files, for long if it does not, since its close, or its end, would wait for
//! what goes on in the kernel, and it may never ask.
//!
//! A close ends this between two ranges: it waits for one of them, or the device's cache, at most.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ops::Errno;

use super::state::State;
use super::thread::start_one;
use super::{Failed, FileId, Label, Shared, PIECE_BYTES_MAX};
use crate::write_out::write_out;

/// For less, who syncs waits as long as for nothing.
const BYTES_MIN: u64 = 1 << 20;

/// A file that nothing was written to for so long is left alone by its program for a while. One
/// that syncs a file itself, right after its flush, finds nobody who does the same.
const PAUSE: Duration = Duration::from_millis(10);

/// The same of a program that has not flushed yet: longer than most devices take for their cache,
/// so few programs end meanwhile.
const LONG_PAUSE: Duration = Duration::from_millis(250);

/// More ranges of a file are one, with what lies between them: a program that never pauses must
/// not fill memory.
const RANGES_MAX: usize = 4096;

/// Bytes of one file on their way to the device.
#[derive(Default)]
pub(super) struct Device {
    /// What was written since the last time, in ranges (first, end), and how much that was.
    ranges: Vec<(u64, u64)>,
    bytes: u64,
    /// When the last of it was.
    written: Option<Instant>,
    /// The thread has its descriptor.
    is_under_way: bool,
    /// It will be closed.
    is_left: bool,
    /// What the device did not take.
    failure: Option<Failed>,
}

/// Ranges of a file for the thread.
struct Sync {
    file: FileId,
    fd: RawFd,
    ranges: Vec<(u64, u64)>,
}

/// What there is to do.
enum Due {
    Now(Sync),
    /// After so long.
    Later(Duration),
    Nothing,
}

impl Device {
    /// Whether it is worth the thread's while.
    pub(super) fn is_enough(&self) -> bool {
        self.bytes >= BYTES_MIN
    }

    fn add(&mut self, first: u64, end: u64) {
        self.bytes += end - first;
        match self.ranges.last_mut().filter(|(_, last)| *last == first) {
            Some((_, last)) => *last = end,
            None => self.ranges.push((first, end)),
        }
        if self.ranges.len() > RANGES_MAX {
            self.ranges = vec![span(&self.ranges)];
        }
    }

    /// All of it is the thread's now.
    fn take(&mut self) -> Vec<(u64, u64)> {
        self.bytes = 0;
        std::mem::take(&mut self.ranges)
    }

    /// What the device did not take; told once.
    pub(super) fn take_failure(&mut self) -> Option<Failed> {
        self.failure.take()
    }
}

impl State {
    /// The file system has all of a piece.
    pub(super) fn note_written(&mut self, file: FileId, offset: u64, len: u64) {
        let file = self.files.get_mut(&file).expect("a file outlives its tasks");
        file.device.add(offset, offset + len);
        file.device.written = Some(Instant::now());
    }

    /// What the thread should do.
    fn due(&mut self) -> Due {
        let pause = if self.is_flushing { PAUSE } else { LONG_PAUSE };
        let mut soonest = None;
        for (id, file) in &mut self.files {
            let (fd, pauses, device) = (file.fd, file.pauses(), &mut file.device);
            let is_wanted = pauses && !device.is_left && device.is_enough();
            let Some(at) = device.written.filter(|_| is_wanted) else { continue };
            let left = pause.saturating_sub(at.elapsed());
            if left.is_zero() {
                device.is_under_way = true;
                return Due::Now(Sync { file: *id, fd, ranges: device.take() });
            }
            soonest = Some(soonest.map_or(left, |other: Duration| other.min(left)));
        }
        soonest.map_or(Due::Nothing, Due::Later)
    }

    /// Whether the thread should go on with a file.
    fn goes_on(&self, file: FileId) -> bool {
        self.files.get(&file).is_some_and(|file| !file.device.is_left)
    }

    /// Whether the program still pauses: `fdatasync` would wait for what it writes now.
    fn still_pauses(&self, file: FileId) -> bool {
        self.files.get(&file).is_some_and(|file| {
            file.pauses() && !file.device.is_left && file.device.ranges.is_empty()
        })
    }

    /// The thread has done what it could: all of it, or a part.
    fn end_sync(&mut self, mut sync: Sync, answer: Result<bool, Errno>) {
        let file = self.files.get_mut(&sync.file).expect("it waits for this before it goes");
        file.device.is_under_way = false;
        match answer {
            Ok(true) => {}
            Ok(false) => {
                sync.ranges.extend(file.device.take());
                sync.ranges.iter().for_each(|(first, end)| file.device.add(*first, *end));
            }
            Err(errno) if is_loss(errno) => {
                // The first one stays until it is told.
                file.device.failure.get_or_insert_with(|| sync.failed(file.name.clone(), errno));
            }
            Err(_) => {}
        }
    }

    /// A file will be closed: what has not reached the device is left to the system. Whether the
    /// descriptor may be closed now.
    pub(super) fn leave_device(&mut self, file: FileId) -> bool {
        let is_pushed = self.pushes.leave(file);
        self.files.get_mut(&file).is_none_or(|file| {
            file.device.is_left = true;
            is_pushed && !file.device.is_under_way
        })
    }
}

impl Sync {
    fn failed(&self, file: Arc<str>, errno: Errno) -> Failed {
        let (offset, end) = span(&self.ranges);
        let label = Label { operation: "on the way to the device", object: None };
        Failed { file, offset, len: end - offset, label: Arc::new(label), errno, why: None }
    }
}

/// From the first byte of some ranges to the end of the last.
fn span(ranges: &[(u64, u64)]) -> (u64, u64) {
    let first = ranges.iter().map(|(first, _)| *first).min().unwrap_or(0);
    (first, ranges.iter().map(|(_, end)| *end).max().unwrap_or(0))
}

/// Whether bytes are lost. Otherwise the file is of a kind that is not synced.
fn is_loss(errno: Errno) -> bool {
    matches!(errno.0, libc::EIO | libc::ENOSPC | libc::EDQUOT)
}

/// Whether there is a thread to look at a file that has become quiet; it is started when it is
/// first asked for. Where the system has no thread left, who syncs waits for itself.
pub(super) fn has_thread(shared: &Arc<Shared>, state: &mut State) -> bool {
    *state.has_device_thread.get_or_insert_with(|| {
        start_one("alongside-sync", shared, |shared| &shared.device_bell, |shared| look(shared))
            .is_ok()
    })
}

/// Does what is due; how long there is nothing else (`None`: until the bell rings).
fn look(shared: &Shared) -> Option<Duration> {
    loop {
        let due = shared.state.lock().due();
        match due {
            Due::Now(sync) => {
                let answer = to_device(shared, &sync);
                shared.state.lock().end_sync(sync, answer);
                shared.changed.notify_all();
            }
            Due::Later(left) => return Some(left),
            Due::Nothing => return None,
        }
    }
}

/// Has a file's ranges written to the end; whether they are.
fn to_device(shared: &Shared, sync: &Sync) -> Result<bool, Errno> {
    for &(first, end) in &sync.ranges {
        for at in (first..end).step_by(PIECE_BYTES_MAX) {
            if !shared.state.lock().goes_on(sync.file) {
                return Ok(false);
            }
            // The descriptor is open until the file is forgotten, which waits for this.
            write_out(sync.fd, at, (end - at).min(PIECE_BYTES_MAX as u64), true)?;
        }
    }
    if !shared.state.lock().still_pauses(sync.file) {
        return Ok(false);
    }
    // SAFETY: a system call that takes no memory, on a descriptor that is open as above.
    match unsafe { libc::fdatasync(sync.fd) } {
        0 => Ok(true),
        _ => Err(Errno::last()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use engine::{Options, Prefer};

    use super::super::tests::new_file;
    use super::super::{Rules, WriteBehind};
    use super::*;

    const MANY: usize = 2 << 20;

    /// A file that has so many bytes on their way.
    fn with_bytes(state: &mut State, len: u64) -> FileId {
        let file = state.add(-1, "f", Rules { limit_bytes: 1 });
        state.note_written(file, 0, len);
        file
    }

    fn state() -> State {
        let options = Options { depth: 8, prefer: Prefer::Threads, threads: 1 };
        State::new(engine::open(&options).unwrap())
    }

    fn due_now(state: &mut State) -> Sync {
        loop {
            match state.due() {
                Due::Now(sync) => return sync,
                Due::Later(_) => {}
                Due::Nothing => panic!("something is due"),
            }
        }
    }

    /// Waits until everything of a file has been followed, and takes what went wrong.
    fn followed(behind: &WriteBehind, file: FileId) -> Option<Failed> {
        let mut state = behind.lock_when_settled(file);
        loop {
            let device = &mut state.files.get_mut(&file).unwrap().device;
            if device.ranges.is_empty() && !device.is_under_way {
                return device.take_failure();
            }
            behind.wait(&mut state, None);
        }
    }

    #[test]
    fn what_is_written_goes_on_to_the_device_in_a_pause_whether_the_program_flushes_or_not() {
        for flushes in [true, false] {
            let (behind, on_disk) = (WriteBehind::new().unwrap(), new_file());
            let file = behind.add(on_disk.as_raw_fd(), "f", Rules { limit_bytes: 1 << 30 });
            if flushes {
                behind.flushes();
            }
            for step in 0..3 {
                let offset = step * MANY as u64;
                behind.write(file, offset, &vec![1; MANY], &Arc::default(), None).unwrap();
                assert_eq!(followed(&behind, file), None);
            }
            assert_eq!(behind.forget(file), Ok(()));
        }
    }

    #[test]
    fn a_read_that_ends_after_the_writes_that_it_waited_for_holds_nothing_back() {
        let (behind, on_disk) = (WriteBehind::new().unwrap(), new_file());
        let file = behind.add(on_disk.as_raw_fd(), "f", Rules { limit_bytes: 1 << 30 });
        behind.write(file, 0, &vec![1; MANY], &Arc::default(), None).unwrap();
        let during = behind.read(file, 5, 1, || {
            let state = behind.shared.state.lock();
            (state.is_writing(file, &[(0, MANY as u64)]), state.is_device_due)
        });
        assert_eq!(during, Ok((false, false)), "its turn is not over yet");
        assert_eq!(followed(&behind, file), None);
        assert_eq!(behind.forget(file), Ok(()));
    }

    #[test]
    fn little_waits_for_more_and_what_is_beside_is_one_range() {
        let mut state = state();
        state.is_flushing = true;
        let file = with_bytes(&mut state, BYTES_MIN - 1);
        assert!(!state.is_device_due && matches!(state.due(), Due::Nothing));
        state.note_written(file, BYTES_MIN - 1, 10);
        state.note_written(file, 5 * BYTES_MIN, 10);
        let last = state.submit_read(file, 0, 1).unwrap();
        assert!(matches!(state.due(), Due::Nothing), "something of it is under way");
        state.end_read(last);
        assert!(state.is_device_due);
        let sync = due_now(&mut state);
        let apart = (5 * BYTES_MIN, 5 * BYTES_MIN + 10);
        assert_eq!(sync.ranges, [(0, BYTES_MIN + 9), apart]);
        assert!(matches!(state.due(), Due::Nothing), "it is under way");
    }

    #[test]
    fn many_ranges_become_one_that_covers_them() {
        let mut state = state();
        state.is_flushing = true;
        let file = with_bytes(&mut state, 1);
        let count = 3 * RANGES_MAX as u64;
        (1..count).for_each(|at| state.note_written(file, (count - at) * 1000, 999));
        let sync = due_now(&mut state);
        assert!(sync.ranges.len() <= RANGES_MAX);
        assert_eq!(span(&sync.ranges), (0, (count - 1) * 1000 + 999));
        for at in 0..count {
            let is_in = |(first, end): &(u64, u64)| *first <= at * 1000 && at * 1000 < *end;
            assert!(sync.ranges.iter().any(is_in), "{at}");
        }
    }

    #[test]
    fn a_program_that_has_never_flushed_is_waited_for_longer() {
        let mut state = state();
        let file = with_bytes(&mut state, BYTES_MIN);
        let at = Instant::now().checked_sub(LONG_PAUSE / 2).unwrap();
        state.files.get_mut(&file).unwrap().device.written = Some(at);
        assert!(matches!(state.due(), Due::Later(left) if left <= LONG_PAUSE / 2));
        state.is_flushing = true;
        assert!(matches!(state.due(), Due::Now(_)));
    }

    #[test]
    fn what_is_written_meanwhile_is_not_waited_for_and_all_of_it_is_due_again() {
        let mut state = state();
        state.is_flushing = true;
        let file = with_bytes(&mut state, BYTES_MIN);
        let sync = due_now(&mut state);
        assert!(state.still_pauses(file));
        state.note_written(file, 7 * BYTES_MIN, 1);
        assert!(!state.still_pauses(file) && state.goes_on(file));
        state.end_sync(sync, Ok(false));
        let later = (7 * BYTES_MIN, 7 * BYTES_MIN + 1);
        assert_eq!(due_now(&mut state).ranges, [(0, BYTES_MIN), later]);
    }

    #[test]
    fn a_file_that_will_be_closed_is_left_and_its_descriptor_kept_until_then() {
        let mut state = state();
        state.is_flushing = true;
        let file = with_bytes(&mut state, BYTES_MIN);
        let sync = due_now(&mut state);
        assert!(!state.leave_device(file) && !state.goes_on(file));
        state.end_sync(sync, Ok(false));
        assert!(state.leave_device(file));
        assert!(matches!(state.due(), Due::Nothing));
    }

    #[test]
    fn what_the_device_did_not_take_is_told_once_and_what_has_no_device_is_not_a_loss() {
        let mut state = state();
        state.is_flushing = true;
        let file = with_bytes(&mut state, BYTES_MIN);
        for (errno, count) in [(libc::EIO, 1), (libc::EINVAL, 0), (libc::ENOSPC, 1)] {
            state.note_written(file, 5 * BYTES_MIN, BYTES_MIN);
            let sync = due_now(&mut state);
            state.end_sync(sync, Err(Errno(errno)));
            let failures = state.take_failures(file);
            assert_eq!(failures.len(), count, "{failures:?}");
            assert!(failures.iter().all(|failed| failed.errno == Errno(errno)));
            assert_eq!(state.take_failures(file), []);
        }
    }

    #[test]
    fn of_two_losses_the_first_is_told_and_nothing_after_it_hides_it() {
        let mut state = state();
        state.is_flushing = true;
        let file = with_bytes(&mut state, BYTES_MIN);
        for answer in
            [Err(Errno(libc::EIO)), Err(Errno(libc::ENOSPC)), Err(Errno(libc::EINVAL)), Ok(true)]
        {
            state.note_written(file, 5 * BYTES_MIN, BYTES_MIN);
            let sync = due_now(&mut state);
            state.end_sync(sync, answer);
        }
        let told: Vec<_> = state.take_failures(file).iter().map(|failed| failed.errno).collect();
        assert_eq!(told, [Errno(libc::EIO)]);
    }
}
