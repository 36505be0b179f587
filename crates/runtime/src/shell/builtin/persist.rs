//! A file is brought to its own path because the program asks for it.

use std::io;

use ops::Errno;
use sched::{DatumId, TaskId};

use super::work::{system_error, Finished, Ticket};
use crate::files::Copy;
use crate::pickle;
use crate::shell::run::Place;
use crate::shell::state::State;
use crate::store::Value;
use crate::tiers::{Limits, Move};

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
        let (Some(tiers), Some((steps, layers))) =
            (&self.tiers, self.files.steps_home(datum, &copy))
        else {
            return self.persisted(ticket, started_ns, Ok(0));
        };
        let limits = Limits::new(tiers.limiters.clone(), layers);
        let home = self.files.get(datum).map(|file| file.home.clone());
        let then = move |_: &_, state: &mut State, done: io::Result<()>| {
            let done = done.map(|()| state.came_home(datum, copy));
            state.persisted(ticket, started_ns, done);
        };
        let then = Box::new(tiers.later(then));
        tiers.keeper.carry_out_now(Move { home, steps, limits, then });
    }

    /// A file stands at its own path.
    fn came_home(&mut self, datum: DatumId, copy: Copy) -> u64 {
        let bytes = copy.bytes;
        if let Some(told) = self.files.came_home(datum, copy) {
            self.sched.handle(exec::now_ns(), told, &mut self.out);
        }
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
