//! Moves give way: between its chunks a move waits while I/O of the program is under way.

use parking_lot::{Condvar, Mutex};

#[derive(Debug, Default)]
struct Inner {
    held: bool,
    /// Moves that somebody waits for go on.
    urgent: u32,
}

/// Whether moves have to wait.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    inner: Mutex<Inner>,
    changed: Condvar,
}

impl Hold {
    /// Moves wait from now on, or go on.
    pub(crate) fn set(&self, held: bool) {
        self.inner.lock().held = held;
        self.changed.notify_all();
    }

    /// While somebody waits for a move, none waits for I/O.
    pub(crate) fn hurry(&self) -> Hurry<'_> {
        self.inner.lock().urgent += 1;
        self.changed.notify_all();
        Hurry(self)
    }

    /// Returns when moves may go on.
    pub(crate) fn pass(&self) {
        let mut inner = self.inner.lock();
        while inner.held && inner.urgent == 0 {
            self.changed.wait(&mut inner);
        }
    }
}

/// Somebody waits for a move.
pub(crate) struct Hurry<'a>(&'a Hold);

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        self.0.inner.lock().urgent -= 1;
    }
}
