//! The driver's side of files: says where they are, moves them, removes them; and layers that fail,
//! fill up and come back.

use graph::DatumId;
use sched::{Event, ExecutorId, Instruction, LayerId, State};

use crate::checkers::files::{File, Moving, Seen};
use crate::checkers::Fault;
use crate::hash::mix_all;
use crate::values::Use;
use crate::world::{Happening, World};
use crate::Canary;

/// The most bytes of a file; capacities are up to 1000.
const FILE_BYTES_MAX: u64 = 400;

/// Something happens to a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    Down,
    Up,
    Capacity(Option<u64>),
    /// The driver moves a file there of its own accord.
    Moves,
    /// Somebody deletes a file that no task uses.
    Leaves,
}

impl World<'_> {
    /// Where a datum's file belongs, and whether it goes with the session.
    fn nature(&self, datum: usize) -> (Option<LayerId>, bool) {
        let roll = mix_all(&[self.faults.seed(), 0xf11e, datum as u64]);
        let layers = self.program.layers().len() as u64;
        let home = (roll % 4 > 0).then(|| LayerId((roll / 4 % layers) as u32));
        (home, roll / 64 % 3 == 0)
    }

    /// The files that a task writes, by number of their datum.
    pub(crate) fn files_written(&self, task: usize) -> Vec<usize> {
        let used = self.task(task).used.iter().filter(|used| used.direction.writes());
        let mut data: Vec<usize> = used
            .filter_map(|used| match used.what {
                Use::Cells { datum, .. } => Some(datum),
                Use::Value { .. } => None,
            })
            .collect();
        data.sort_unstable();
        data.dedup();
        data
    }

    /// A task is about to be called that only reads a datum in place: if no task ever wrote it, the
    /// driver says that its file was there before, in some programs.
    pub(crate) fn file_found(&mut self, datum: usize) -> Result<(), Fault> {
        let (home, scratch) = self.nature(datum);
        let roll = mix_all(&[self.faults.seed(), 0xf0d, datum as u64]);
        let Some(layer) = home.filter(|_| !scratch && roll % 3 > 0) else { return Ok(()) };
        let id = self.data[datum].expect("it was made");
        let tasks = self.tasks.iter().flatten();
        let written = tasks.map(|task| task.plan.task).any(|task| self.writes(task, datum));
        if !self.program.machine.files || self.dropped[datum] || written {
            return Ok(());
        }
        let bytes = roll / 8 % FILE_BYTES_MAX + 1;
        let known = self.checks.files.files.contains_key(&datum);
        if !known {
            self.report.found += 1;
            let (layer, found) = (Some(layer), true);
            let file = File { layer, bytes, home, found, ..File::default() };
            self.checks.files.files.insert(datum, file);
        }
        self.drive(Event::FileFound { datum: id, layer, bytes: bytes + u64::from(known) })
    }

    fn writes(&self, task: usize, datum: usize) -> bool {
        self.files_written(task).contains(&datum)
    }

    /// A task wrote files: says where they are, right before its end. One that computes writes
    /// them at their own paths.
    pub(crate) fn wrote(&mut self, task: usize, executor: ExecutorId) -> Result<(), Fault> {
        if !self.program.machine.files {
            return Ok(());
        }
        let placed = self.task(task).placed;
        for datum in self.files_written(task) {
            let (home, scratch) = self.nature(datum);
            let layer = placed.or(home);
            let roll = mix_all(&[task as u64, u64::from(executor.0), datum as u64]);
            let bytes = roll % FILE_BYTES_MAX + 1;
            let file = File { layer, bytes, home, scratch, ..File::default() };
            self.checks.files.files.insert(datum, file);
            let datum = self.data[datum].expect("it was made");
            let bytes = bytes - u64::from(self.canary == Some(Canary::MisreportBytes));
            self.drive(Event::FileAt { datum, layer, bytes, home, scratch })?;
        }
        Ok(())
    }

    fn seen(&self, datum: usize, moving: Option<Moving>) -> Seen {
        let mut seen = Seen { named: !self.dropped[datum], ..Seen::default() };
        for task in self.tasks.iter().flatten().filter(|task| task.end.is_none()) {
            let here = |what: &Use| matches!(what, Use::Cells { datum: at, .. } if *at == datum);
            let mut uses = task.used.iter().filter(|used| here(&used.what));
            let reads = uses.clone().any(|used| used.direction.reads());
            let sent = self.checks.dead.sent_to(task.plan.task).is_some();
            seen.readers += usize::from(reads);
            seen.open += usize::from(reads && sent);
            seen.writers += usize::from(uses.any(|used| used.direction.writes()));
            let ready = self.sched.state(task.id) == Some(State::Ready);
            seen.ready +=
                usize::from(ready && task.plan.kind.is_io() && !self.parked(task.plan.task));
        }
        seen.running = self.checks.grants.io_running(None);
        seen.near = moving.map_or(0, |moving| self.near(moving));
        seen
    }

    /// I/O tasks on the nodes that a move is about.
    fn near(&self, moving: Moving) -> usize {
        let node = |layer: LayerId| self.checks.files.node(layer);
        match (node(moving.from), moving.to.and_then(node)) {
            (Some(one), Some(other)) if one != other => {
                let running = |node| self.checks.grants.io_running(Some(node));
                running(one) + running(other)
            }
            (Some(one), Some(_)) => self.checks.grants.io_running(Some(one)),
            _ => self.checks.grants.io_running(None),
        }
    }

    /// Whether a ready task waits for the end of a move.
    fn parked(&self, task: usize) -> bool {
        let moves = |datum: &usize| {
            self.checks.files.files.get(datum).is_some_and(|file| file.moving.is_some())
        };
        self.files_written(task).iter().any(moves)
    }

    /// A task is sent to a layer.
    pub(crate) fn file_task_sent(&mut self, task: usize, layer: LayerId) -> Result<(), Fault> {
        if self.task(task).failed_on.contains(&layer) {
            let message = format!("sent again to {layer:?}, which failed it");
            return Err(Fault::of_task("files", task, message));
        }
        let granted = self.checks.grants.granted_size(layer);
        let own = self.task(task).plan.constraint.size;
        self.checks.files.run(task, layer, if own > 0 { granted } else { 0 })
    }

    /// A task of any kind is sent.
    pub(crate) fn writer_sent(&self, task: usize) -> Result<(), Fault> {
        self.files_written(task).iter().try_for_each(|datum| self.checks.files.writes(task, *datum))
    }

    fn datum_number(&self, id: DatumId) -> Result<usize, Fault> {
        let found = self.data.iter().position(|other| *other == Some(id));
        found.ok_or_else(|| Fault::new("files", format!("{id:?} was never made")))
    }

    /// What the scheduler wants of files.
    pub(crate) fn obey_mover(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        match *instruction {
            Instruction::Move { datum, from, to, keep } => {
                let datum = self.datum_number(datum)?;
                self.serial += 1;
                let serial = self.serial;
                let moving = Moving { from, to, keep, serial };
                let seen = self.seen(datum, Some(moving));
                self.checks.files.begins(datum, moving, seen)?;
                self.report.moves += 1;
                self.report.prefetches += u64::from(keep);
                self.report.drained += u64::from(seen.near > 0);
                let lasts = self.faults.move_lasts(serial);
                self.later(lasts, Happening::Moved(datum, serial));
            }
            Instruction::DropCopy { datum, layer } => {
                let datum = self.datum_number(datum)?;
                let seen = self.seen(datum, None);
                self.checks.files.drop_copy(datum, layer, seen)?;
            }
            Instruction::Remove { datum } => {
                let datum = self.datum_number(datum)?;
                let seen = self.seen(datum, None);
                self.checks.files.remove(datum, seen)?;
                self.report.removed += 1;
                self.later(1, Happening::Gone(datum));
            }
            Instruction::HoldMoves { hold } => {
                if self.checks.files.held == hold {
                    return Err(Fault::new("files", format!("hold {hold} twice")));
                }
                self.checks.files.held = hold;
                let waiting = std::mem::take(&mut self.held_moves);
                waiting.into_iter().for_each(|(datum, serial)| {
                    self.later(1, Happening::Moved(datum, serial));
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// A move has come to its end, unless it is held.
    pub(crate) fn move_ends(&mut self, datum: usize, serial: u64) -> Result<(), Fault> {
        let Some(file) = self.checks.files.files.get_mut(&datum) else { return Ok(()) };
        let Some(moving) = file.moving.filter(|moving| moving.serial == serial) else {
            return Ok(());
        };
        if self.checks.files.held {
            self.held_moves.push((datum, serial));
            return Ok(());
        }
        file.moving = None;
        let id = self.data[datum].expect("it was made");
        if let Some(no_room) = self.faults.move_fails(serial) {
            return self.drive(Event::MoveFailed { datum: id, no_room });
        }
        match moving.keep {
            true => file.upper = moving.to,
            false => (file.layer, file.found) = (moving.to, false),
        }
        // Others may have written what was there before.
        file.bytes += if file.found { serial % 2 } else { 0 };
        let bytes = file.bytes;
        self.drive(Event::MoveDone { datum: id, bytes })
    }

    /// A file is gone.
    pub(crate) fn file_gone(&mut self, datum: usize) -> Result<(), Fault> {
        self.checks.files.files.remove(&datum);
        let datum = self.data[datum].expect("it was made");
        self.drive(Event::FileGone { datum })
    }

    /// Something happens to a layer.
    pub(crate) fn trouble(&mut self, number: u32) -> Result<(), Fault> {
        let layers = self.program.layers();
        let (layer, roll) = self.faults.trouble(number, layers.len());
        let layer = LayerId(layer);
        let declared = layers[layer.0 as usize].capacity;
        let what = match roll % 8 {
            0 => Trouble::Down,
            1 => Trouble::Up,
            2 => Trouble::Capacity(declared),
            3 => Trouble::Capacity(Some(roll / 8 % declared.unwrap_or(1000).max(1))),
            4 => Trouble::Leaves,
            _ => Trouble::Moves,
        };
        self.report.troubles += 1;
        match what {
            Trouble::Moves => self.driver_moves(layer, roll),
            Trouble::Leaves => self.file_leaves(roll),
            Trouble::Down | Trouble::Up => {
                let down = matches!(what, Trouble::Down);
                self.checks.files.set_down(layer, down);
                match down {
                    true => self.drive(Event::LayerDown { layer }),
                    false => self.drive(Event::LayerUp { layer }),
                }
            }
            Trouble::Capacity(bytes) => {
                self.checks.files.set_usable(layer, bytes);
                self.drive(Event::LayerCapacity { layer, bytes })
            }
        }
    }

    /// A known file that is not to be removed, and for which the condition holds.
    fn some_file(&self, roll: u64, condition: impl Fn(&File, Seen) -> bool) -> Option<usize> {
        let mut known: Vec<usize> = self.checks.files.files.keys().copied().collect();
        known.sort_unstable();
        known.retain(|datum| {
            let file = &self.checks.files.files[datum];
            !file.removed && condition(file, self.seen(*datum, None))
        });
        let at = (roll / 64).checked_rem(known.len() as u64)?;
        Some(known[at as usize])
    }

    /// A file is deleted, also while it moves.
    fn file_leaves(&mut self, roll: u64) -> Result<(), Fault> {
        let unused = |_: &File, seen: Seen| seen.readers + seen.writers == 0;
        match self.some_file(roll, unused) {
            Some(datum) => self.file_gone(datum),
            None => Ok(()),
        }
    }

    /// The driver moves a file of its own accord.
    fn driver_moves(&mut self, layer: LayerId, roll: u64) -> Result<(), Fault> {
        let still = |file: &File, seen: Seen| file.moving.is_none() && seen.writers == 0;
        let Some(datum) = self.some_file(roll, still) else { return Ok(()) };
        let file = self.checks.files.files.get_mut(&datum).expect("listed");
        (file.layer, file.upper, file.found) = (Some(layer), None, false);
        let File { bytes, home, scratch, layer, .. } = *file;
        let datum = self.data[datum].expect("it was made");
        self.drive(Event::FileAt { datum, layer, bytes, home, scratch })
    }

    /// After an event: moves are held while I/O goes on, and only then.
    pub(crate) fn check_files(&self) -> Result<(), Fault> {
        self.checks.files.check(&self.sched)?;
        let files = self.checks.files.files.values();
        let moves: Vec<Moving> = files.filter_map(|file| file.moving).collect();
        let held = self.checks.files.held;
        if moves.is_empty() {
            return match held {
                true => Err(Fault::new("files", "nothing moves, and it is held")),
                false => Ok(()),
            };
        }
        let live = self.tasks.iter().flatten().filter(|task| task.end.is_none());
        let ready = live.filter(|task| self.sched.state(task.id) == Some(State::Ready));
        let (mut waits, mut parked) = (false, false);
        for task in ready {
            let parks = self.parked(task.plan.task);
            parked |= parks;
            waits |= task.plan.kind.is_io() && !parks;
        }
        let near = moves.iter().any(|moving| self.near(*moving) > 0);
        let leaves = moves.iter().any(|moving| self.checks.files.leaves(*moving));
        let wrong = match held {
            true => parked || leaves || !(near || waits),
            false => near && !parked && !leaves,
        };
        match wrong {
            true => {
                Err(Fault::new("files", format!("held: {held}; {near} {waits} {parked} {leaves}")))
            }
            false => Ok(()),
        }
    }
}
