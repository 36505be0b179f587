//! A queue of tags for one thread that calls the program back.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

#[derive(Default)]
struct Queue {
    tags: VecDeque<u64>,
    closed: bool,
}

/// Tags of futures that were resolved.
#[derive(Default)]
pub(crate) struct Notifications {
    queue: Mutex<Queue>,
    arrived: Condvar,
}

impl Notifications {
    /// Adds a tag.
    pub(crate) fn push(&self, tag: u64) {
        self.queue.lock().tags.push_back(tag);
        self.arrived.notify_one();
    }

    /// No tag will be added; whoever waits goes on.
    pub(crate) fn close(&self) {
        self.queue.lock().closed = true;
        self.arrived.notify_all();
    }

    /// The next tag; waits for one. `None`: there will be none.
    pub(crate) fn next(&self) -> Option<u64> {
        let mut queue = self.queue.lock();
        loop {
            match queue.tags.pop_front() {
                Some(tag) => return Some(tag),
                None if queue.closed => return None,
                None => self.arrived.wait(&mut queue),
            }
        }
    }
}
