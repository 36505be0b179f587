//! Tasks with files: what the core does at each step of the way that `placed` draws.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graph::DatumId;
use sched::{Cause, Event, Failure, LayerId, Outcome, TaskId};

use super::{After, Core};
use crate::native::io_task::Wants;
use crate::native::placed::Rest;
use crate::native::runtime::Shared;
use crate::native::task::TaskRef;
use crate::native::worker::Worker;
use crate::native::Errno;
use crate::placing::is_of_layer;
use crate::storage::LayerSpec;
use crate::tiers::{is_full, Opened};

/// What the scheduler is told of a task that failed: the number of the error.
fn payload(errno: Errno) -> Arc<[u8]> {
    errno.to_le_bytes().as_slice().into()
}

/// What the program is told of a task that the scheduler gave up.
fn reason(failure: &Failure) -> (Errno, String) {
    if failure.from.is_some() {
        return (libc::ECANCELED, "did not run: a task that it depends on failed".into());
    }
    match &failure.cause {
        Cause::Raised(payload) => {
            let errno = payload.get(..4).and_then(|bytes| bytes.try_into().ok());
            let errno = errno.map_or(libc::EIO, Errno::from_le_bytes);
            let error = io::Error::from_raw_os_error(errno);
            (errno, format!("failed: {error}; no other layer can take it"))
        }
        Cause::NoLayer(why) => (libc::ENOSPC, format!("failed: {why}")),
        other => (libc::EIO, format!("failed: {other:?}")),
    }
}

impl Core {
    /// Whether a catalog has to be made before such a task can be spawned.
    pub(in crate::native) fn wants_tiers(&self, wants: &Wants) -> bool {
        self.placed.wants_tiers(&wants.files)
    }

    pub(in crate::native) fn layers(&self) -> Vec<LayerSpec> {
        self.placed.layers().to_vec()
    }

    /// From now on files can be away from their own paths.
    pub(in crate::native) fn open_tiers(
        &mut self,
        opened: Opened,
        shared: &Arc<Shared>,
    ) -> io::Result<()> {
        let limiters = self.io.ways.layers.limiters();
        self.placed.open(opened, limiters, shared)
    }

    /// What is available on each layer, where that could be found out.
    pub(in crate::native) fn tell_room(&mut self, free: &[Option<u64>]) {
        let told = self.placed.room(free);
        self.tell_all(told);
    }

    /// A layer is down, or works again.
    pub(in crate::native) fn layer_is(&mut self, layer: LayerId, down: bool) {
        self.tell_all([match down {
            true => Event::LayerDown { layer },
            false => Event::LayerUp { layer },
        }]);
    }

    fn tell_all(&mut self, events: impl IntoIterator<Item = Event>) {
        self.advance(0);
        for event in events {
            self.sched.handle(self.now, event, &mut self.out);
        }
        self.note_deadline();
    }

    /// A task with files has its grant.
    pub(super) fn send_with_files(&mut self, workers: &[Worker], task: TaskRef, after: &mut After) {
        if !self.placed.announces(task.get().id(), task) {
            self.place_and_queue(workers, task, after);
        }
    }

    /// The catalog says what a task is about to change, or refused that.
    pub(super) fn announced(&mut self, workers: &[Worker], task: TaskRef, after: &mut After) {
        match task.get().files().expect("it has some").is_refused() {
            true => after.rest().settled.push(task),
            false => self.place_and_queue(workers, task, after),
        }
    }

    fn place_and_queue(&mut self, workers: &[Worker], task: TaskRef, after: &mut After) {
        let io = task.get().io().expect("only I/O tasks have files");
        let places = self.placed.place(task.get().id(), io.layer());
        io.files().expect("it has some").put(places);
        self.queue_io(workers, task, after);
    }

    /// Everything that a task with files waited for has come.
    pub(super) fn over_with_files(&mut self, task: TaskRef, after: &mut After) {
        let (id, files) = (task.get().id(), task.get().files().expect("it has some"));
        let goes_on = match files.failed() {
            Some(errno) => self.displace(id, task, errno),
            None => self.placed.commit(id, task),
        };
        if !goes_on {
            after.rest().settled.push(task);
        }
    }

    /// A task failed: if its layer may be to blame, it runs again on the next. `false`: it is not.
    fn displace(&mut self, id: TaskId, task: TaskRef, errno: Errno) -> bool {
        let io = task.get().io().expect("only I/O tasks have files");
        let layer = io.layer().expect("it was sent");
        if !is_of_layer(errno) || !self.placed.may_go_elsewhere(id, layer) {
            return false;
        }
        self.advance(0);
        let ran = io.ran_ns(self.clock());
        self.placed.end(id, None);
        let record = self.tasks[id.0.index as usize].as_deref_mut();
        record.expect("the scheduler knows it").again();
        let (executor, failure) = (self.io.id, payload(errno));
        self.tell_all([Event::Unplaced { task: id, executor, ran, failure }]);
        if !is_full(errno) {
            self.placed.doubt(layer);
        }
        true
    }

    /// The program knows how a task with files ended: the scheduler hears it too.
    pub(super) fn settled(&mut self, task: TaskRef) {
        let (id, files) = (task.get().id(), task.get().files().expect("it has some"));
        let errno = files.error().map(|(errno, _)| errno);
        let told = self.placed.end(id, files.sizes());
        self.tell_all(told);
        let outcome = match errno {
            None => Outcome::Done(Box::default()),
            Some(errno) => Outcome::Raised(payload(errno)),
        };
        self.io_ended(id, task.get().io().expect("only I/O tasks have files"), outcome);
    }

    /// The scheduler gave a task up that never ran to its end: the program drops its argument, and
    /// only then it is over.
    pub(super) fn give_up(&mut self, id: TaskId, failure: &Failure, after: &mut After) {
        let task = self.tasks[id.0.index as usize].as_deref_mut().expect("the scheduler knew it");
        let mut undone = task.undone();
        undone.why = Some(reason(failure));
        after.rest().undone.push(undone);
    }

    /// The program was told of failures. If no task is left, whatever was to be written is as it
    /// was, and can be used again. `false`: some are left.
    pub(in crate::native) fn forgive(&mut self) -> bool {
        if self.live > 0 {
            return false;
        }
        if std::mem::take(&mut self.failed) {
            self.data.all_is_over(&mut self.sched, true, &mut self.out);
            let told = self.placed.renew(&mut self.sched, &mut self.out);
            self.tell_all(told);
        }
        true
    }

    /// Where a file is for a task that uses it.
    pub(in crate::native) fn place_of(
        &self,
        task: TaskRef,
        key: &crate::files::FileKey,
    ) -> Option<PathBuf> {
        self.placed.place_of(task.get().id(), key)
    }

    /// Brings the only file of a task to its own path; `then` hears how that went, after it was
    /// taken down. `false`: it is there.
    pub(in crate::native) fn bring(
        &mut self,
        task: TaskRef,
        then: impl FnOnce(&Shared, io::Result<()>) + Send + 'static,
    ) -> bool {
        self.placed.bring(task.get().id(), |shared, done| {
            let done = done.map(|(datum, copy)| {
                shared.with_core(|core| {
                    let told = core.placed.came_home(datum, copy);
                    core.tell_all(told);
                });
            });
            then(shared, done);
        })
    }

    /// The scheduler wants a file moved, or copied.
    pub(super) fn begin_move(&mut self, datum: DatumId, to: Option<LayerId>, keep: bool) {
        let told = self.placed.begin_move((datum, to, keep), |shared, moving, done| {
            shared.with_core(|core| {
                let told = core.placed.moved(moving, done);
                core.tell_all(told);
            });
        });
        told.into_iter().for_each(|told| self.sched.handle(self.now, told, &mut self.out));
    }

    /// Whether there is a catalog.
    pub(in crate::native) fn has_tiers(&self) -> bool {
        self.placed.has_tiers()
    }

    /// A path for a file that goes with the runtime. `None`: no layer takes files of tasks.
    pub(in crate::native) fn scratch(&mut self, name: &Path) -> Option<PathBuf> {
        self.placed.scratch(name)
    }

    /// The program cannot name the scratch file of a path any more.
    pub(in crate::native) fn forget_file(&mut self, home: &Path) {
        let told = self.placed.forget_file(&mut self.sched, home, &mut self.out);
        self.tell_all(told);
    }

    /// The end: what is left to be done for files, without the core.
    pub(in crate::native) fn close_files(&mut self) -> Option<Rest> {
        self.placed.close()
    }
}
