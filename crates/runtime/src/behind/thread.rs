//! The thread that ends writes; it sleeps in the kernel while there is nothing to end.
//!
//! It sleeps on two descriptors: that of the engine, which is readable while something is done and
//! not taken, and a bell, which is rung when writes are held, so that somebody notices that the
//! program has paused, and at the end of the owner.

use std::mem::ManuallyDrop;
use std::num::NonZero;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{io, thread};

use engine::Completion;
use exec::native::thread::without_signals;
use parking_lot::{Condvar, Mutex};

use super::{blocks, Shared, GLOBAL, IDLE_S_MAX};

/// Pieces of at least this size are handed to the device at once.
const PUSHED_BYTES_MIN: u64 = 256 << 10;

/// A sleep that only something to do ends.
const FOREVER_MS: i32 = -1;

pub(super) fn bell() -> io::Result<OwnedFd> {
    // SAFETY: takes no memory.
    let bell = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if bell == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(bell) })
}

/// Wakes the thread.
pub(super) fn ring(bell: &OwnedFd) {
    let one = 1u64;
    // SAFETY: eight bytes of ours are read; that a bell is rung already is as good.
    unsafe { libc::write(bell.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
}

pub(super) fn start(shared: &Arc<Shared>, watch: OwnedFd) -> io::Result<()> {
    let shared = shared.clone();
    let run = move || run(&shared, &watch);
    let builder = thread::Builder::new().name("alongside-write".into());
    without_signals(|| builder.spawn(run))?;
    Ok(())
}

/// Does something on this thread and, where there is another processor, on a second one.
pub(super) fn helped<E: Send>(work: impl Fn() -> Result<(), E> + Sync) -> Result<(), E> {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let count = || thread::available_parallelism().map_or(1, NonZero::get);
    if *PROCESSORS.get_or_init(count) == 1 {
        return work();
    }
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("alongside-copy".into());
        let helper = without_signals(|| builder.spawn_scoped(scope, &work));
        let own = work();
        match helper.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(others)) => own.and(others),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => own, // the system has no thread left
        }
    })
}

fn run(shared: &Shared, watch: &OwnedFd) {
    let mut done = Vec::new();
    let mut timeout_ms = FOREVER_MS;
    loop {
        sleep([watch.as_raw_fd(), shared.bell.as_raw_fd()], timeout_ms);
        if shared.is_over.load(Ordering::Acquire) {
            break;
        }
        timeout_ms = look(shared, &mut done);
    }
}

/// Sleeps until something is done, the bell is rung, or the time is up.
fn sleep(fds: [RawFd; 2], timeout_ms: i32) {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // SAFETY: two entries of ours.
    unsafe { libc::poll(polled.as_mut_ptr(), 2, timeout_ms) };
    if polled[1].revents != 0 {
        let mut rings = 0u64;
        // SAFETY: eight bytes of ours are written; the bell does not block.
        unsafe { libc::read(fds[1], (&raw mut rings).cast(), size_of::<u64>()) };
    }
}

/// Ends what has been done; how long there is nothing else to do.
fn look(shared: &Shared, done: &mut Vec<Completion>) -> i32 {
    loop {
        let mut state = shared.state.lock();
        state.poll(done);
        if done.is_empty() {
            if let Some(left) = state.begin_after_pause() {
                return left.as_millis() as i32 + 1;
            }
            if !state.wants_spare() {
                return give_back(&mut state);
            }
            drop(state);
            let block = blocks::populated();
            shared.state.lock().add_spare(block);
            continue;
        }
        let pushed = state.written(done, PUSHED_BYTES_MIN);
        drop(state);
        for (fd, offset, len) in pushed {
            let (offset, len) = (offset as i64, len as i64);
            // SAFETY: a plain system call: a descriptor, which is open while its write has not
            // ended, and numbers. A hint: who flushes finds what goes wrong.
            unsafe { libc::sync_file_range(fd, offset, len, libc::SYNC_FILE_RANGE_WRITE) };
        }
        shared.state.lock().end(done);
        shared.changed.notify_all();
    }
}

/// Gives memory back that nobody used for long; the time until it should be looked at again.
fn give_back(state: &mut super::State) -> i32 {
    let Some(used_at) = state.blocks_used_at() else { return FOREVER_MS };
    let left = Duration::from_secs(IDLE_S_MAX).saturating_sub(used_at.elapsed());
    if left.is_zero() && state.is_idle() {
        state.clear_blocks();
        return FOREVER_MS;
    }
    i32::try_from(left.as_millis()).unwrap_or(i32::MAX).max(1)
}

/// Drains the process's own before every fork, and tells a child that it has no thread.
pub(super) fn survive_forks() {
    // SAFETY: the handlers touch what is below, and nothing else.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

extern "C" fn before() {
    let Some(behind) = GLOBAL.get() else { return };
    let mut state = behind.shared.state.lock();
    while !behind.is_orphaned() && !state.is_idle() {
        behind.wait(&mut state, None);
    }
    // Kept until the fork is over, so that no other thread changes what the child is given.
    let _kept = ManuallyDrop::new(state);
}

extern "C" fn in_parent() {
    let Some(behind) = GLOBAL.get() else { return };
    // SAFETY: this thread took the lock in `before`.
    unsafe { behind.shared.state.force_unlock() };
}

/// The lock is not given back but made anew: a thread of the parent may have waited for it, and
/// would be handed it here, where it is not.
extern "C" fn in_child() {
    let Some(behind) = GLOBAL.get() else { return };
    let Shared { state, changed, orphaned, .. } = &*behind.shared;
    orphaned.store(true, Ordering::Relaxed);
    // SAFETY: the one thread of the child is the one that took the lock in `before`, so nobody has
    // a reference into either; both are made to be changed behind a shared reference. What they
    // were is not dropped: it belongs to threads of the parent.
    unsafe {
        let orphan = (*state.data_ptr()).orphan();
        (&raw const *state).cast_mut().write(Mutex::new(orphan));
        (&raw const *changed).cast_mut().write(Condvar::new());
    }
}
