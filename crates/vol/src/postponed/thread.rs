//! The thread that does what is noted while the program pauses, and HDF5's lock.
//!
//! The lock is only tried: who waited for it could get it when HDF5 has gone, and would bring it
//! back. A call that is under way ends, and then it is tried again.

use std::ffi::c_uint;
use std::sync::atomic::Ordering;
use std::sync::Once;
use std::thread;

use parking_lot::Mutex;
use runtime::behind::without_signals;

use super::{queue, PAUSE, QUEUES};
use crate::abi::Ptr;
use crate::library::{self, Library};

/// Held by who takes HDF5's lock here, and over a fork: the child has no thread to give it back.
static TAKING: Mutex<()> = Mutex::new(());

/// Does something with HDF5's lock; `false`: another thread has it.
pub fn with_lock(library: &'static Library, work: impl FnOnce()) -> bool {
    let Some(threads) = &library.threads else { return false };
    let _taking = TAKING.lock();
    let (mut is_ours, mut count): (bool, c_uint) = (false, 1);
    // SAFETY: it only tries, and sets the flag.
    let tried = unsafe { (threads.acquire)(count, &raw mut is_ours) };
    if tried < 0 || !is_ours {
        return false;
    }
    work();
    // SAFETY: this thread took it, once: it was in no call of HDF5.
    unsafe { (threads.release)(&raw mut count) };
    true
}

/// Whether there is a thread for what is noted, which HDF5 tells of its end. Begins both.
pub fn serves(library: &'static Library) -> bool {
    let queue = queue(library);
    let Some(threads) = &library.threads else { return false };
    if !queue.knows_end.load(Ordering::Relaxed) {
        let slot = library.slot as Ptr;
        // SAFETY: a function that stays, and a number for it.
        if unsafe { (threads.at_close)(ends, slot) } < 0 {
            return false;
        }
        queue.knows_end.store(true, Ordering::Relaxed);
    }
    if !queue.has_thread.load(Ordering::Relaxed) {
        survive_forks();
        let builder = thread::Builder::new().name("alongside-hdf5".into());
        if without_signals(|| builder.spawn(move || serve(library))).is_err() {
            return false;
        }
        queue.has_thread.store(true, Ordering::Relaxed);
    }
    true
}

/// HDF5 goes, and can still do everything.
unsafe extern "C" fn ends(slot: Ptr) {
    let slot = slot as usize;
    QUEUES[slot].knows_end.store(false, Ordering::Relaxed);
    if let Some(library) = library::of_slot(slot) {
        super::before(library);
    }
}

fn serve(library: &'static Library) {
    let queue = queue(library);
    loop {
        let mut noted = queue.noted.lock();
        while noted.is_empty() {
            queue.changed.wait(&mut noted);
        }
        let quiet = queue.quiet();
        let left = PAUSE.saturating_sub(quiet);
        if !left.is_zero() {
            queue.changed.wait_for(&mut noted, left);
            continue;
        }
        drop(noted);
        let has_lock = with_lock(library, || {
            let first = queue.first().filter(|_| queue.quiet() >= PAUSE);
            first.inspect(|first| queue.run(library, first));
        });
        if !has_lock {
            queue.called();
        }
    }
}

/// Has everything done before a fork: the child has no thread, and might have HDF5's lock for ever.
fn survive_forks() {
    static ONCE: Once = Once::new();
    // SAFETY: the handlers touch what is below, and nothing else.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork), None);
    });
}

/// Nothing is noted while the process forks, and the thread is not in HDF5.
extern "C" fn before_fork() {
    if runtime::behind::is_child() {
        return;
    }
    loop {
        super::finish();
        std::mem::forget(TAKING.lock());
        QUEUES.iter().for_each(|queue| std::mem::forget(queue.noted.lock()));
        if QUEUES.iter().all(|queue| queue.count.load(Ordering::Acquire) == 0) {
            return;
        }
        after_fork();
    }
}

extern "C" fn after_fork() {
    if runtime::behind::is_child() {
        return;
    }
    // SAFETY: this thread took them in `before_fork`.
    unsafe {
        QUEUES.iter().for_each(|queue| queue.noted.force_unlock());
        TAKING.force_unlock();
    }
}
