//! Somebody of the program waits for a task of the library's own: `wait_on`, `open_file` and
//! `persist`.

use std::ffi::{c_void, CStr};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::runtime::Runtime;
use super::task::{Argument, Body, Place, Spawn};
use super::worker;
use super::Errno;

/// The name of every task of the library's own; told apart by its address.
pub(super) static NAME: &CStr = c"(a wait)";

/// What a wait comes to: a number, or an error of the system.
pub(super) type Answer = Result<i32, Errno>;

/// Somebody waits.
#[derive(Default)]
pub(super) struct Wait {
    /// Set once: by the body or what it started, or by `drop` if the task never ran.
    answer: Mutex<Option<Answer>>,
    came: Condvar,
    /// Where the fiber that waits is.
    parked: Mutex<Option<Place>>,
}

impl Wait {
    /// Has a task of the library's own spawned, whose body finds a wait in its argument
    /// ([`Wait::of`]), and waits for its answer. `Err`: it was refused, and why.
    pub(super) fn ask(
        body: Body,
        spawn: impl FnOnce(Spawn) -> Result<(), String>,
    ) -> Result<Answer, String> {
        let wait = Arc::new(Wait::default());
        let asked = Spawn {
            body,
            argument: Argument::Pointer(Arc::into_raw(Arc::clone(&wait)).cast_mut().cast()),
            drop: Some(drop_wait),
            name: NAME.as_ptr(),
            priority: i32::MAX,
        };
        if let Err(why) = spawn(asked) {
            // SAFETY: the count of the argument; nobody drops that of a task that was refused.
            unsafe { Arc::decrement_strong_count(Arc::as_ptr(&wait)) };
            return Err(why);
        }
        Ok(wait.wait())
    }

    /// The wait in the argument of a body.
    ///
    /// # Safety
    ///
    /// The argument is that of a task made by [`Wait::ask`] which is not over.
    pub(super) unsafe fn of(argument: *mut c_void) -> Arc<Wait> {
        let wait = argument.cast::<Wait>();
        // SAFETY: the caller's promise: the task has a count of its own, to which one is added.
        unsafe {
            Arc::increment_strong_count(wait);
            Arc::from_raw(wait)
        }
    }

    /// Gives the answer, unless there is one, and lets whoever waits go on.
    pub(super) fn put(&self, answer: Answer) {
        let mut parked = self.parked.lock();
        self.answer.lock().get_or_insert(answer);
        self.came.notify_all();
        if let Some(place) = parked.take() {
            let resume = |runtime: &Runtime| {
                runtime.0.workers[place.worker as usize].resume(place.fiber);
            };
            // The task that waits keeps its runtime alive.
            let _ = super::runtime::with_current(resume);
        }
    }

    /// Waits for the answer: in a task the task pauses.
    fn wait(&self) -> Answer {
        let Some((local, task)) = worker::here() else {
            let mut answer = self.answer.lock();
            loop {
                match *answer {
                    Some(answer) => return answer,
                    None => self.came.wait(&mut answer),
                }
            }
        };
        loop {
            let mut parked = self.parked.lock();
            if let Some(answer) = *self.answer.lock() {
                return answer;
            }
            *parked = Some(local.place());
            drop(parked);
            local.pause(task);
        }
    }
}

extern "C-unwind" fn drop_wait(wait: *mut c_void) {
    // SAFETY: `ask` made the argument from an Arc, and a task is dropped once.
    let wait = unsafe { Arc::from_raw(wait.cast::<Wait>()) };
    // It never ran, because something that it needs failed.
    wait.put(Err(libc::ECANCELED));
}
