//! Operations that hold back a detached OpenMP task: counted by event, seen to by one thread.
//!
//! An event is known by its handle and fulfilled once: when all of its operations are complete and
//! its task has said that it submits no more. Until then the table has an entry with what is left
//! to come, the task's own word among it. The completion thread sleeps on the engine's descriptor
//! and never spins; a thread that submits hands its operation to the kernel itself.

use std::sync::{Arc, OnceLock};

use engine::Prefer;
use exec::native::thread::{self, Bed};
use ops::Completion;
use parking_lot::{Condvar, Mutex};

use super::data::Table;
use super::io::{Operation, ResultPlace};
use super::say::say;
use super::Errno;
use crate::line::Line;

/// Operations that may wait for a place in the engine before those who submit wait as well.
const LINE_MAX: usize = 1 << 16;

/// Tells the OpenMP runtime that an event has come.
pub type Fulfil = extern "C" fn(usize);

/// An event of an OpenMP task.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The handle.
    pub handle: usize,
    /// Called with the handle, once.
    pub fulfil: Fulfil,
}

struct Pending {
    event: Event,
    place: ResultPlace,
    bytes: i64,
}

struct State {
    line: Line,
    /// What is left to come of each event: operations, and the word of its task.
    left: Table<usize, u64>,
}

struct Service {
    state: Mutex<State>,
    room: Condvar,
    bed: Bed,
    forks: u64,
}

static SERVICE: OnceLock<Arc<Service>> = OnceLock::new();
static BEGINS: Mutex<()> = Mutex::new(());

/// The service, begun when it is first needed. Where it cannot be, the next call tries again.
fn service() -> Result<&'static Service, Errno> {
    let service = match SERVICE.get() {
        Some(service) => service,
        None => {
            let _one = BEGINS.lock();
            match SERVICE.get() {
                Some(service) => service,
                None => {
                    let begun = begin()?;
                    SERVICE.get_or_init(|| begun)
                }
            }
        }
    };
    if service.forks != exec::forks() {
        return Err(libc::EPERM);
    }
    Ok(service)
}

fn begin() -> Result<Arc<Service>, Errno> {
    let errno = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    let options = engine::Options { prefer: Prefer::Auto, ..Default::default() };
    let engine = engine::open(&options).map_err(errno)?;
    let bed = Bed::new().map_err(errno)?;
    bed.watch(engine.fd()).map_err(errno)?;
    let state = State { line: Line::new(engine), left: Table::default() };
    let (state, room) = (Mutex::new(state), Condvar::new());
    let service = Arc::new(Service { state, room, bed, forks: exec::forks() });
    let of_thread = service.clone();
    let builder = std::thread::Builder::new().name("alongside-omp".into());
    thread::without_signals(|| builder.spawn(move || of_thread.see_to_completions()))
        .map_err(errno)?;
    Ok(service)
}

/// Starts an operation that holds back an event. EPERM: in the child of a fork.
///
/// # Safety
///
/// The memory of the operation and the place of its result stay until the event is fulfilled.
pub unsafe fn start(event: Event, operation: &Operation, place: ResultPlace) -> Result<(), Errno> {
    let service = service()?;
    if operation.is_odd() {
        // SAFETY: the caller's promise; the system refuses it at once.
        let result = unsafe { operation.call() };
        settle(&Pending { event, place, bytes: 0 }, result);
        service.state.lock().left.entry(event.handle).or_insert(1);
        return Ok(());
    }
    let pending = Box::new(Pending { event, place, bytes: operation.bytes() });
    // SAFETY: the caller's promise.
    let op = unsafe { operation.value() };
    let token = Box::into_raw(pending) as u64;
    let mut state = service.state.lock();
    while state.line.waiting() >= LINE_MAX {
        service.room.wait(&mut state);
    }
    // The first operation of an event also counts the word of its task.
    *state.left.entry(event.handle).or_insert(1) += 1;
    if state.line.submit(token, op) {
        state.line.engine.flush();
    }
    Ok(())
}

/// The task of an event submits no more operations.
pub fn submitted(event: Event) -> Result<(), Errno> {
    let Ok(service) = service() else {
        // Then none of its operations was taken, and the program knows it.
        (event.fulfil)(event.handle);
        return Ok(());
    };
    let mut state = service.state.lock();
    let came = match state.left.contains_key(&event.handle) {
        true => state.one_came(event.handle),
        // A task with no operation.
        false => true,
    };
    drop(state);
    if came {
        (event.fulfil)(event.handle);
    }
    Ok(())
}

impl State {
    /// One thing that an event waits for came. `true`: it was the last.
    fn one_came(&mut self, handle: usize) -> bool {
        let left = self.left.get_mut(&handle).expect("it waits for this");
        *left -= 1;
        let last = *left == 0;
        if last {
            self.left.remove(&handle);
        }
        last
    }
}

/// Puts a result where it was asked for, or says what went wrong.
fn settle(pending: &Pending, result: i64) {
    if !pending.place.0.is_null() {
        pending.place.set(result);
        return;
    }
    if result < 0 || result < pending.bytes {
        let errno = if result < 0 { -result as i32 } else { libc::EIO };
        let error = std::io::Error::from_raw_os_error(errno);
        say(&format!(
            "an operation of an OpenMP task failed or was short: {error}; pass a place for its \
             result to handle it"
        ));
    }
}

impl Service {
    fn see_to_completions(&self) {
        exec::take_turns(exec::Turns::Short);
        let mut completions: Vec<Completion> = Vec::new();
        loop {
            let mut state = self.state.lock();
            state.line.engine.poll(&mut completions);
            if completions.is_empty() {
                drop(state);
                self.bed.sleep(-1);
                continue;
            }
            if state.line.waiting() > 0 {
                state.line.refill();
                self.room.notify_all();
            }
            drop(state);
            for completion in completions.drain(..) {
                self.complete(completion);
            }
        }
    }

    fn complete(&self, completion: Completion) {
        let result = match completion.result {
            Ok(answer) => answer.bytes() as i64,
            Err(errno) => -i64::from(errno.0),
        };
        // SAFETY: `start` made this token from a box, and this is its one completion.
        let pending = unsafe { Box::from_raw(completion.token as *mut Pending) };
        settle(&pending, result);
        let event = pending.event;
        let last = self.state.lock().one_came(event.handle);
        if last {
            (event.fulfil)(event.handle);
        }
    }
}
