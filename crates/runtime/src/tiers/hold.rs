//! Moves give way: between its chunks a move waits while I/O of the program is under way.

use parking_lot::{Condvar, Mutex};

/// Whether moves have to wait.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    held: Mutex<bool>,
    changed: Condvar,
}

impl Hold {
    /// Moves wait from now on, or go on.
    pub(crate) fn set(&self, held: bool) {
        *self.held.lock() = held;
        self.changed.notify_all();
    }

    /// Returns when moves may go on.
    pub(crate) fn pass(&self) {
        let mut held = self.held.lock();
        while *held {
            self.changed.wait(&mut held);
        }
    }
}
