//! Transfers that HDF5 converts or filters, done while the program does something else.
//!
//! A compressed write costs the time of the compression, which the file driver cannot take off the
//! program. A thread-safe HDF5 can be called by another thread: such a write is noted with a copy
//! of its bytes, and done when the program has asked for nothing for a millisecond ([`thread`]). A
//! read with an event set is noted likewise. What may be noted is decided in [`plan`].
//!
//! ```text
//! H5Dwrite ──> plan ──> queue of the library ──> thread of ours, with HDF5's lock ──> HDF5
//!                             └──> or the next call of the program that may see a difference
//! ```
//!
//! Everything here that calls HDF5 holds HDF5's own lock: a callback has it, the thread takes it.
//! So no two transfers run at once, and none runs beside a call of the program. They keep their
//! order among themselves, and every call does what is noted first ([`before`]), but for those
//! that neither see nor change what a dataset holds: makes and opens of objects, attributes,
//! closes, and transfers of other datasets.

mod lost;
pub mod plan;
mod thread;
mod transfer;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use runtime::behind::{self, now_ns, Failed, Ticket};

use crate::abi::Req;
use crate::library::{self, Library, LIBRARIES_MAX};
use crate::object::{Container, Object};
use crate::opened::Key;
use crate::request::Request;
use crate::{scope, stack};

use lost::Lost;
use plan::Identity;
use transfer::Transfer;

/// A program that asks for nothing for so long does something else.
const PAUSE: Duration = Duration::from_millis(1);

/// How a transfer stands.
#[derive(Clone, Debug)]
pub enum Standing {
    /// It is not done.
    Noted,
    /// HDF5 has done it; what follows the bytes that this left to be written.
    Done(Option<Ticket>),
    /// HDF5 could not.
    Failed(Failed),
}

/// A transfer that is to be done.
pub struct Postponed {
    transfer: Transfer,
    standing: Mutex<Standing>,
    /// Its dataset is closed with it: the program has closed its own.
    closes: AtomicBool,
}

impl Postponed {
    /// How it stands.
    pub fn standing(&self) -> Standing {
        self.standing.lock().clone()
    }
}

/// What is noted for one library.
struct Queue {
    noted: Mutex<VecDeque<Arc<Postponed>>>,
    /// How many are noted, with one that runs.
    count: AtomicUsize,
    /// One came, or is over.
    changed: Condvar,
    /// When the program last called, in nanoseconds.
    called_ns: AtomicU64,
    /// The program came back before its transfers were done, and has not paused since.
    is_hasty: AtomicBool,
    /// The last call was a transfer: a pause after it counts.
    is_after_transfer: AtomicBool,
    /// There is a thread for them, and HDF5 tells of its end.
    has_thread: AtomicBool,
    knows_end: AtomicBool,
    /// An event set was told of a failure. HDF5 takes no more calls into it, and so fails them
    /// after they were noted: then nobody keeps the buffer of a read.
    has_failed_set: AtomicBool,
    lost: Lost,
}

impl Queue {
    const fn new() -> Queue {
        Queue {
            noted: Mutex::new(VecDeque::new()),
            count: AtomicUsize::new(0),
            changed: Condvar::new(),
            called_ns: AtomicU64::new(0),
            is_hasty: AtomicBool::new(false),
            is_after_transfer: AtomicBool::new(false),
            has_thread: AtomicBool::new(false),
            knows_end: AtomicBool::new(false),
            has_failed_set: AtomicBool::new(false),
            lost: Lost::new(),
        }
    }

    fn first(&self) -> Option<Arc<Postponed>> {
        self.noted.lock().front().cloned()
    }

    /// Whether something is noted for a dataset.
    fn has(&self, dataset: Identity) -> bool {
        self.noted.lock().iter().any(|one| one.transfer.identity == dataset)
    }

    /// Does the first; HDF5's lock is held.
    fn run(&self, library: &'static Library, first: &Arc<Postponed>) {
        let transfer = &first.transfer;
        let standing = running(|| stack::apart(library, || transfer.run()));
        if let Standing::Failed(failed) = &standing {
            self.lost.add(&transfer.container, failed);
        }
        *first.standing.lock() = standing;
        let closes = {
            // From here on nobody asks for the close of its dataset with it.
            let mut noted = self.noted.lock();
            noted.pop_front();
            first.closes.load(Ordering::Relaxed)
        };
        if closes {
            running(|| stack::apart(library, || transfer.close()));
        }
        transfer.container.postponed_bytes.fetch_sub(transfer.copied, Ordering::Relaxed);
        self.count.fetch_sub(1, Ordering::Release);
        self.changed.notify_all();
    }

    /// Does all that is noted; HDF5's lock is held.
    fn run_all(&self, library: &'static Library) {
        while let Some(first) = self.first() {
            self.run(library, &first);
        }
    }

    fn called(&self) {
        self.called_ns.store(now_ns(), Ordering::Relaxed);
    }

    /// Whether a copy would buy the program nothing: it came back at once the last time, and has
    /// not paused since, after a transfer.
    fn is_hasty(&self) -> bool {
        let is_after_transfer = self.is_after_transfer.load(Ordering::Relaxed);
        if is_after_transfer && self.is_hasty.load(Ordering::Relaxed) && self.quiet() >= PAUSE {
            self.is_hasty.store(false, Ordering::Relaxed);
        }
        self.is_hasty.load(Ordering::Relaxed)
    }

    /// How long the program has asked for nothing.
    fn quiet(&self) -> Duration {
        Duration::from_nanos(now_ns().saturating_sub(self.called_ns.load(Ordering::Relaxed)))
    }
}

static QUEUES: [Queue; LIBRARIES_MAX] = [const { Queue::new() }; LIBRARIES_MAX];

fn queue(library: &Library) -> &'static Queue {
    &QUEUES[library.slot]
}

thread_local! {
    /// A transfer runs on this thread.
    static RUNS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn running<T>(work: impl FnOnce() -> T) -> T {
    let outer = RUNS.replace(true);
    let result = work();
    RUNS.set(outer);
    result
}

/// The queue of a library, if something is noted there, and this is no call of a transfer's own.
fn noted(library: &Library) -> Option<&'static Queue> {
    let queue = queue(library);
    let is_empty = queue.count.load(Ordering::Acquire) == 0;
    (!is_empty && !RUNS.get() && !behind::is_child()).then_some(queue)
}

/// Does all that is noted, before a call that may see a difference.
pub fn before(library: &'static Library) {
    let Some(queue) = noted(library) else {
        queue(library).is_hasty();
        return;
    };
    queue.is_hasty.store(queue.quiet() < PAUSE, Ordering::Relaxed);
    queue.run_all(library);
    queue.is_after_transfer.store(false, Ordering::Relaxed);
    queue.called();
}

/// A call begins, or ends, that sees no difference: the program is not pausing.
pub fn beside(library: &Library) {
    if let Some(queue) = noted(library) {
        queue.called();
    }
}

/// Does what is noted, if a transfer of this dataset may see a difference.
pub fn before_transfer(object: &Object) {
    let library = object.container.hdf5;
    let Some(queue) = noted(library) else { return };
    let plain = plan::nature(object).filter(|nature| nature.is_alone());
    let is_apart = plain.is_some_and(|nature| !queue.has(nature.identity));
    match is_apart {
        true => queue.called(),
        false => before(library),
    }
}

/// A transfer was not noted, and is over: what comes next is a pause, or not.
pub fn passed_on(library: &Library) {
    if library.threads.is_some() {
        let queue = queue(library);
        queue.called();
        queue.is_after_transfer.store(true, Ordering::Relaxed);
    }
}

/// Notes a transfer.
fn add(transfer: Transfer, req: Req) {
    let container = transfer.container.clone();
    let queue = queue(container.hdf5);
    container.postponed_bytes.fetch_add(transfer.copied, Ordering::Relaxed);
    let standing = Mutex::new(Standing::Noted);
    let noted = Arc::new(Postponed { transfer, standing, closes: AtomicBool::new(false) });
    if !req.is_null() {
        // SAFETY: the caller wants a request there.
        unsafe { *req = Request::postponed(&container, noted.clone()) };
    }
    queue.called();
    queue.is_after_transfer.store(true, Ordering::Relaxed);
    {
        let mut all = queue.noted.lock();
        all.push_back(noted);
        queue.count.fetch_add(1, Ordering::Release);
    }
    queue.changed.notify_all();
}

/// The program closes a dataset: whether that is left to the last transfer that it has. A close
/// that waits (`waits`) has what the program may look at then: what was read.
pub fn closes(object: &Object, waits: bool) -> bool {
    let library = object.container.hdf5;
    let Some(queue) = noted(library) else { return false };
    queue.called();
    let noted = queue.noted.lock();
    let its = || noted.iter().filter(|one| one.transfer.below == object.below);
    if waits && its().any(|one| !one.transfer.is_write) {
        drop(noted);
        queue.run_all(library);
        return false;
    }
    its().last().inspect(|last| last.closes.store(true, Ordering::Relaxed)).is_some()
}

/// An event set is told of a failure.
pub fn fails_a_set(library: &Library) {
    queue(library).has_failed_set.store(true, Ordering::Relaxed);
}

/// Does what is noted up to this one, or until the time is over; HDF5's lock is held.
pub fn run_until(library: &'static Library, one: &Postponed, timeout: Option<Duration>) {
    let (queue, began) = (queue(library), Instant::now());
    while matches!(one.standing(), Standing::Noted) {
        let Some(first) = queue.first() else { return };
        if timeout.is_some_and(|timeout| began.elapsed() >= timeout) {
            return;
        }
        queue.run(library, &first);
        queue.called();
    }
}

/// Does all that is noted, from outside of HDF5 or inside.
pub fn finish() {
    if RUNS.get() || behind::is_child() {
        return;
    }
    for (slot, queue) in QUEUES.iter().enumerate() {
        let is_left = || queue.count.load(Ordering::Acquire) > 0;
        let Some(library) = library::of_slot(slot).filter(|_| is_left()) else { continue };
        if scope::is_inside() {
            queue.run_all(library);
            continue;
        }
        while is_left() {
            if !thread::with_lock(library, || queue.run_all(library)) {
                let mut noted = queue.noted.lock();
                queue.changed.wait_for(&mut noted, PAUSE);
            }
        }
    }
}

/// Whether something is noted for one of these files (`None`: for any).
pub fn is_noted(keys: Option<&[Key]>) -> bool {
    QUEUES.iter().filter(|queue| queue.count.load(Ordering::Acquire) > 0).any(|queue| {
        let noted = queue.noted.lock();
        let is_its =
            |one: &Arc<Postponed>| keys.is_none_or(|keys| one.transfer.container.has_any(keys));
        noted.iter().any(is_its)
    })
}

/// What failed of a container and was not told: it is told now.
pub fn take_lost(container: &Arc<Container>) -> Vec<Failed> {
    queue(container.hdf5).lost.take_of(container)
}

/// What failed of these files (`None`: of all) and was not told: it is told now.
pub fn take_lost_of(keys: Option<&[Key]>) -> Vec<Failed> {
    QUEUES.iter().flat_map(|queue| queue.lost.take(keys)).collect()
}

/// A failure was told to the program: it is not told again.
pub fn told(library: &Library, failed: &Failed) {
    queue(library).lost.told(failed);
}

/// What failed of a dataset and was not told: who reads it is told, too.
pub fn lost_at(object: &Object) -> Option<Failed> {
    queue(object.container.hdf5).lost.at(object)
}
