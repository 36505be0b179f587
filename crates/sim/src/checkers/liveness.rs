//! Nothing hangs: when no event is left, every task is over and the program is through.

use graph::VersionId;

use super::Fault;

/// The most events of one simulation; more is a scheduler that goes round in circles.
pub const EVENTS_MAX: u64 = 200_000;

/// Nothing is left to happen: looks at who still waits.
pub fn check(waiting: &[usize], blocked_on: Option<VersionId>) -> Result<(), Fault> {
    if let Some(first) = waiting.first() {
        let message = format!("nothing will happen any more, but tasks {waiting:?} are not over");
        return Err(Fault::of_task("liveness", *first, message));
    }
    match blocked_on {
        Some(version) => Err(Fault::new("liveness", format!("{version:?} never came to anything"))),
        None => Ok(()),
    }
}

/// Counts events.
pub fn count(events: u64) -> Result<(), Fault> {
    match events <= EVENTS_MAX {
        true => Ok(()),
        false => Err(Fault::new("liveness", format!("no end after {events} events"))),
    }
}
