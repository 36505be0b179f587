//! A file is brought to its own path because the program asks for it.

use std::io;

use ops::Errno;
use sched::{DatumId, Event, TaskId};

use super::work::{system_error, Finished, Ticket};
use crate::files::Copy;
use crate::pickle;
use crate::shell::run::Place;
use crate::shell::state::State;
use crate::store::Value;
use crate::tiers::Limits;

impl State {
    /// Sends a task that waits until a file is at its own path. It reads the file, so nobody
    /// writes it meanwhile.
    pub(super) fn persist(&mut self, id: TaskId, place: Place) {
        let started_ns = exec::now_ns();
        let ticket = self.engines.ticket(id, &place, started_ns);
        self.sent_to_engine(id, place);
        let datum = self.tasks.get(id).and_then(|task| task.files.first()).map(|(datum, _)| *datum);
        let datum = datum.expect("it has one file");
        let away = self.files.get(datum).and_then(|file| file.current.clone());
        match away {
            Some(copy) => self.bring(ticket, started_ns, datum, copy),
            None => self.persisted(ticket, started_ns, Ok(0)),
        }
    }

    fn bring(&mut self, ticket: Ticket, started_ns: u64, datum: DatumId, copy: Copy) {
        let file = self.files.get(datum).expect("kept while tasks use it");
        let layers = [self.limiter_of(&copy), self.limiter_of(&file.at_home())];
        let (Some(tiers), Some(staging), Some(number)) =
            (&self.tiers, &self.files.staging, copy.staged)
        else {
            return self.persisted(ticket, started_ns, Ok(0));
        };
        // A move of its own may be under way to the same place, over another name.
        let mut over = staging.temporary(number, &file.home).into_os_string();
        over.push("-persist");
        let mut steps = file.steps_home(&copy, Some(over.as_ref()));
        steps.pop(); // the original is deleted when nobody reads it any more
        let limits = Limits::new(tiers.limiters.clone(), layers);
        tiers.carry_out(steps, limits, true, move |state, done| {
            let done = done.map(|()| state.came_home(datum, copy));
            state.persisted(ticket, started_ns, done);
        });
    }

    /// A file stands at its own path.
    fn came_home(&mut self, datum: DatumId, copy: Copy) -> u64 {
        let bytes = copy.bytes;
        let Some(file) = self.files.get_mut(datum) else { return bytes };
        file.current.take_if(|current| *current == copy);
        file.stands = true;
        file.stale.push(copy);
        file.stale.extend(file.near.take());
        let (layer, home, scratch) = (file.home_layer, file.home_layer, file.scratch);
        let at = Event::FileAt { datum, layer, bytes, home, scratch };
        self.sched.handle(exec::now_ns(), at, &mut self.out);
        bytes
    }

    fn persisted(&mut self, ticket: Ticket, started_ns: u64, done: io::Result<u64>) {
        let bytes = *done.as_ref().unwrap_or(&0);
        let home = || {
            let task = self.tasks.get(ticket.task)?;
            Some(self.files.get(task.files.first()?.0)?.home.clone())
        };
        let outcome = done.map(|bytes| Value::inline(pickle::number(bytes))).map_err(|error| {
            let errno = Errno(error.raw_os_error().unwrap_or(libc::EIO));
            system_error(errno, &home().unwrap_or_default(), &error.to_string())
        });
        let (bytes_read, bytes_written, errno) = (bytes, bytes, 0);
        let finished = Finished { ticket, started_ns, bytes_read, bytes_written, errno, outcome };
        self.built_in_over(finished);
    }
}
