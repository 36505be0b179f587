//! Layers that fail: the task goes to another, and the layer is tried again later.

use sched::{Event, LayerId, Outcome, TaskId};

use super::staged::Ending;
use super::state::State;
use crate::placing::is_of_layer;
use crate::tiers::is_full;

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
        self.take_back(id);
        self.totals.displaced += 1;
        let ran = run.ran_ns;
        let unplaced = Event::Unplaced { task: id, executor, ran, failure };
        self.sched.handle(exec::now_ns(), unplaced, &mut self.out);
        if !is_full(errno) {
            self.doubt(layer);
        }
        None
    }

    /// Whether a task writes a file on a layer, and there are others.
    fn writes_on(&self, id: TaskId, layer: LayerId) -> bool {
        self.tasks.get(id).is_some_and(|task| self.files.writes_on(id, &task.files, layer))
    }

    /// A task failed on a layer, which need not be to blame: an error has no name where the task
    /// reads and writes files that are open. If it is, it is down until it works again.
    fn doubt(&self, layer: LayerId) {
        let Some(tiers) = &self.tiers else { return };
        let tell = |event: Event| {
            let told = tiers.later(move |_, state: &mut State, ()| {
                state.sched.handle(exec::now_ns(), event, &mut state.out);
            });
            Box::new(move || told(()))
        };
        let (down, up) = (Event::LayerDown { layer }, Event::LayerUp { layer });
        tiers.keeper.doubt(layer.0 as usize, tell(down), tell(up));
    }
}
