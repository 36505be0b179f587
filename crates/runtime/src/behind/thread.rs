//! The thread that ends writes; it sleeps in the kernel while there is nothing to end.
//!
//! A bell wakes it: when the engine has done something, when writes are held, so that somebody
//! notices that the program has paused, and at the end of the owner. It is no descriptor: a program
//! that closes all that it does not know would give the number to a file of its own.

use std::mem::ManuallyDrop;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{io, thread};

use engine::Completion;
use exec::native::thread::without_signals;
use parking_lot::{Condvar, Mutex};

use super::push::PUSHED_BYTES_MIN;
use super::{blocks, Shared, GLOBAL, IDLE_S_MAX};
use crate::write_out::write_out;

/// Until it is looked again whether memory can be given back that something under way may need.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What wakes the thread. Rung while it does not sleep, it ends the next sleep at once.
#[derive(Default)]
pub(super) struct Bell {
    is_rung: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    pub(super) fn ring(&self) {
        *self.is_rung.lock() = true;
        self.rung.notify_one();
    }

    /// Sleeps until it is rung, or the time is up (`None`: never).
    fn sleep(&self, timeout: Option<Duration>) {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut is_rung = self.is_rung.lock();
        while !*is_rung {
            match until {
                None => self.rung.wait(&mut is_rung),
                Some(until) if self.rung.wait_until(&mut is_rung, until).timed_out() => break,
                Some(_) => {}
            }
        }
        *is_rung = false;
    }
}

/// Starts the thread that ends writes.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let mut done = Vec::new();
    start_one(
        "alongside-write",
        shared,
        |shared| &shared.bell,
        move |shared| look(shared, &mut done),
    )
}

/// Starts a thread that looks whenever its bell has rung, and after so long as the last look said,
/// until the owner is gone.
pub(super) fn start_one(
    name: &str,
    shared: &Arc<Shared>,
    bell: fn(&Shared) -> &Bell,
    mut look: impl FnMut(&Arc<Shared>) -> Option<Duration> + Send + 'static,
) -> io::Result<()> {
    let shared = shared.clone();
    let run = move || {
        let mut timeout = None;
        loop {
            bell(&shared).sleep(timeout);
            if shared.is_over.load(Ordering::Acquire) {
                break;
            }
            timeout = look(&shared);
        }
    };
    let builder = thread::Builder::new().name(name.into());
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

/// Ends what has been done; how long there is nothing else to do (`None`: until the bell rings).
fn look(shared: &Arc<Shared>, done: &mut Vec<Completion>) -> Option<Duration> {
    loop {
        let mut state = shared.state.lock();
        state.poll(done);
        if done.is_empty() {
            if let Some((fd, offset, len)) = state.next_push() {
                drop(state);
                // As below; the descriptor is open until this has ended.
                let _ = write_out(fd, offset, len, false);
                let mut state = shared.state.lock();
                state.end_push();
                shared.tell(state);
                continue;
            }
            let lefts = [state.begin_after_pause(), state.fetch_after_pause()];
            if let Some(left) = lefts.into_iter().flatten().min() {
                return Some(left);
            }
            if !state.wants_spare() {
                match until_unused(&state) {
                    Some(Duration::ZERO) => state.drop_block(),
                    left => return left,
                }
                continue;
            }
            drop(state);
            let block = blocks::populated();
            shared.state.lock().add_spare(block);
            continue;
        }
        let pushed = state.written(done, PUSHED_BYTES_MIN);
        drop(state);
        for (fd, offset, len) in pushed {
            // The descriptor is open while its write has not ended. A hint: who flushes finds what
            // goes wrong.
            let _ = write_out(fd, offset, len, false);
        }
        let mut state = shared.state.lock();
        state.end(done);
        shared.tell(state);
    }
}

/// How long until free memory has not been used for so long that it should be given back; `None`:
/// there is none.
fn until_unused(state: &super::State) -> Option<Duration> {
    let left = Duration::from_secs(IDLE_S_MAX).saturating_sub(state.blocks_used_at()?.elapsed());
    Some(if state.is_idle() { left } else { left.max(LOOK_AGAIN) })
}

/// Drains the process's own before every fork, and tells a child that it has no thread.
pub(super) fn survive_forks() {
    // SAFETY: the handlers touch what is below, and nothing else.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

extern "C" fn before() {
    let Some(behind) = GLOBAL.get() else { return };
    let mut state = behind.shared.state.lock();
    state.forks += 1;
    state.drop_held();
    while !behind.is_orphaned() && !state.is_idle() {
        behind.wait(&mut state, None);
    }
    state.forks -= 1;
    // Kept until the fork is over, so that no other thread changes what the child is given.
    let _kept = ManuallyDrop::new(state);
}

extern "C" fn in_parent() {
    let Some(behind) = GLOBAL.get() else { return };
    // SAFETY: this thread took the lock in `before`.
    unsafe { behind.shared.state.force_unlock() };
    behind.shared.changed.notify_all();
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
