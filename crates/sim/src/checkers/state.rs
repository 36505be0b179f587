//! The scheduler's state is valid after every event, and counts what the driver counts.

use sched::{Constraint, LayerId, Sched};

use super::Fault;

/// What the driver counts itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Tasks that were taken and not forgotten.
    pub tasks: usize,
}

/// Looks at the whole state.
pub fn check(sched: &Sched, seen: Seen) -> Result<(), Fault> {
    if let Err(message) = sched.validate() {
        return Err(Fault::new("state", message));
    }
    let live = sched.live_tasks();
    if live != seen.tasks {
        let message = format!("{live} tasks live, the driver knows {}", seen.tasks);
        return Err(Fault::new("state", message));
    }
    Ok(())
}

/// Everything is over and forgotten: the scheduler keeps nothing.
pub fn check_empty(sched: &Sched, layers: usize) -> Result<(), Fault> {
    let counts = sched.counts();
    let left = counts.waiting + counts.ready + counts.sent;
    let (tasks, versions) = (sched.live_tasks(), sched.live_versions());
    if left != 0 || tasks != 0 || versions != 0 {
        let message = format!("{tasks} tasks and {versions} versions are left, {counts:?}");
        return Err(Fault::new("state", message));
    }
    for layer in (0..layers as u32).map(LayerId) {
        let granted = sched.granted(layer);
        if granted != Some(Constraint::default()) {
            return Err(Fault::new("state", format!("{granted:?} of {layer:?} stays granted")));
        }
    }
    Ok(())
}
