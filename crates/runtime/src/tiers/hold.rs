//! Moves give way: between its chunks a move waits while I/O of the program is under way, and ends
//! if the program brings the same file to its own path.

use std::path::{Path, PathBuf};

use parking_lot::{Condvar, Mutex};

#[derive(Debug, Default)]
struct State {
    is_held: bool,
    /// The own path of the file that is being moved.
    at: Option<PathBuf>,
    is_called_off: bool,
}

/// Whether moves have to wait.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    state: Mutex<State>,
    changed: Condvar,
}

impl Hold {
    /// Moves wait from now on, or go on.
    pub(crate) fn set(&self, held: bool) {
        self.state.lock().is_held = held;
        self.changed.notify_all();
    }

    /// A move of this file begins; none: of one that can be moved beside it.
    pub(super) fn begin(&self, home: Option<&Path>) {
        let mut state = self.state.lock();
        (state.at, state.is_called_off) = (home.map(Path::to_path_buf), false);
    }

    /// The move is over.
    pub(super) fn end(&self) {
        self.state.lock().at = None;
        self.changed.notify_all();
    }

    /// If this file is being moved, the move is to end.
    pub(super) fn call_off(&self, home: &Path) {
        let mut state = self.state.lock();
        state.is_called_off |= state.at.as_deref() == Some(home);
        self.changed.notify_all();
    }

    /// Returns when this file is not being moved.
    pub(super) fn wait_for_end(&self, home: &Path) {
        let mut state = self.state.lock();
        while state.at.as_deref() == Some(home) {
            self.changed.wait(&mut state);
        }
    }

    /// Returns when the move may go on. `false`: it is to end.
    #[must_use]
    pub(super) fn pass(&self) -> bool {
        let mut state = self.state.lock();
        while state.is_held && !state.is_called_off {
            self.changed.wait(&mut state);
        }
        !state.is_called_off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_that_is_held_ends_when_it_is_called_off() {
        let (hold, file) = (Hold::default(), Path::new("/file"));
        hold.set(true);
        hold.begin(Some(file));
        hold.call_off(Path::new("/other"));
        hold.wait_for_end(Path::new("/other"));
        std::thread::scope(|scope| {
            let moves = scope.spawn(|| {
                let goes_on = hold.pass();
                hold.end();
                goes_on
            });
            hold.call_off(file);
            hold.wait_for_end(file);
            assert!(!moves.join().unwrap());
        });
        hold.set(false);
        hold.begin(Some(file));
        assert!(hold.pass(), "the next one is another");
    }
}
