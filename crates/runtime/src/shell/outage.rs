//! Layers that fail: the task goes to another, and the layer is tried again later.

use std::sync::Arc;

use sched::{Direction, Event, LayerId, Outcome, TaskId};

use super::staged::Ending;
use super::state::State;

/// What a storage layer fails of, that another may not.
const OF_LAYER: [i32; 4] = [libc::ENOSPC, libc::EDQUOT, libc::EIO, libc::EROFS];

/// Whether a layer may be the reason of an error of the system.
pub(super) fn is_of_layer(errno: i32) -> bool {
    OF_LAYER.contains(&errno)
}

impl State {
    /// A run failed because of its layer: the scheduler finds another. Gives the run back if no
    /// layer was to blame.
    pub(super) fn displace(&mut self, ending: Ending) -> Option<Ending> {
        let errno = ending.run.layer_errno;
        let sent = self.tasks.get(ending.id).and_then(|task| task.sent.as_ref());
        let layer = sent.and_then(|sent| sent.layer);
        let layer = layer.filter(|layer| is_of_layer(errno) && self.writes_on(ending.id, *layer));
        let Some(layer) = layer else { return Some(ending) };
        let Ending { executor, id, run, outcome, attempt } = ending;
        let Outcome::Raised(failure) = outcome else {
            return Some(Ending { executor, id, run, outcome, attempt });
        };
        let full = [libc::ENOSPC, libc::EDQUOT].contains(&errno);
        self.take_back(id);
        self.totals.displaced += 1;
        let ran = run.ns();
        let unplaced = Event::Unplaced { task: id, executor, ran, down: !full, failure };
        self.sched.handle(exec::now_ns(), unplaced, &mut self.out);
        if !full {
            self.layer_failed(layer);
        }
        None
    }

    /// Whether a task writes a file on a layer, and there are others.
    fn writes_on(&self, id: TaskId, layer: LayerId) -> bool {
        let files = self.tasks.get(id).into_iter().flat_map(|task| &task.files);
        let mut written = files.filter(|(_, direction)| direction.writes());
        let others = self.files.layers().len() > 1;
        let here = |datum| self.copy_for(id, datum, Direction::Out).layer == Some(layer);
        others && written.any(|(datum, _)| here(*datum))
    }

    /// A layer is down: it is tried until it works again.
    fn layer_failed(&mut self, layer: LayerId) {
        let Some(tiers) = &self.tiers else { return };
        let up = tiers.later(move |_, state, ()| {
            let up = Event::LayerUp { layer };
            state.sched.handle(exec::now_ns(), up, &mut state.out);
        });
        Arc::clone(&tiers.keeper).try_again(layer.0 as usize, Box::new(|| up(())));
    }
}
