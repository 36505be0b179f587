//! An engine with a line before it: what it has no room for enters as other operations complete.

use std::collections::VecDeque;

use engine::Engine;
use ops::Op;

/// An engine and its line. Whoever polls the engine calls [`Line::refill`] when something came.
pub(crate) struct Line {
    pub(crate) engine: Box<dyn Engine>,
    waiting: VecDeque<(u64, Op)>,
}

impl Line {
    pub(crate) fn new(engine: Box<dyn Engine>) -> Line {
        Line { engine, waiting: VecDeque::new() }
    }

    /// How many operations wait for the engine.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Gives an operation to the engine, or puts it at the end of the line. `true`: the engine has
    /// it, which may keep it until it is flushed.
    pub(crate) fn submit(&mut self, token: u64, op: Op) -> bool {
        let back = match self.waiting.is_empty() {
            true => self.engine.submit(token, op).err().map(|full| full.0),
            false => Some(op),
        };
        let entered = back.is_none();
        self.waiting.extend(back.map(|op| (token, op)));
        entered
    }

    /// Lets operations of the line into the engine, and flushes it.
    pub(crate) fn refill(&mut self) {
        while let Some((token, op)) = self.waiting.pop_front() {
            if let Err(full) = self.engine.submit(token, op) {
                self.waiting.push_front((token, full.0));
                break;
            }
        }
        self.engine.flush();
    }
}
