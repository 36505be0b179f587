//! The data model: what a value is, and how data in place change under a running body.
//!
//! A value is the hash of the task that made it and of all that the task read, so a wrong or
//! early input shows in everything that follows from it. Data in place are real cells:
//!
//! - `Out` and `InOut` scribble over the region when the body begins and write it at the end:
//!   whoever looks in between, or writes there, is found out.
//! - `In` looks at the region at the begin and at the end, and must see the same.
//! - `Commutative` reads at the begin and writes at the end what it read plus something of its
//!   own: the order does not matter, two at once lose an update.
//! - `Concurrent` adds something at the begin and something at the end: order and company do
//!   not matter, a reader that comes early does.
//!
//! A body that fails leaves scribble behind in what it alone was writing, and nothing in what
//! it was updating with others. A body that is run again goes on from what it read first (it is
//! idempotent, as a body with retries has to be), and must find its region as it left it.

use graph::{Direction, Region, Span, VersionId};

use crate::hash::{mix, mix_all, Map};

/// The value of an output of a failed task whose failure is ignored.
pub const EMPTY: u64 = 0x0e;

/// The spans of a region; none for the whole.
fn spans(region: &Region) -> &[Span] {
    match region {
        Region::Whole => &[],
        Region::Range(span) => std::slice::from_ref(span),
        Region::Box(spans) => spans,
    }
}

/// Whether two regions of one datum share a cell (the simulator's own algebra).
pub fn overlap(a: &Region, b: &Region) -> bool {
    spans(a).iter().zip(spans(b)).all(|(a, b)| a.start < b.end && b.start < a.end)
}

/// Whether all of `inner` is in `outer`.
pub fn covers(outer: &Region, inner: &Region) -> bool {
    let (outer, inner) = (spans(outer), spans(inner));
    outer.is_empty()
        || (!inner.is_empty()
            && outer.iter().zip(inner).all(|(a, b)| a.start <= b.start && b.end <= a.end))
}

/// Data in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    shape: Vec<u64>,
    /// What is there.
    pub cells: Vec<u64>,
}

impl Cells {
    /// Cells that nobody wrote yet.
    pub fn new(shape: &[u64]) -> Cells {
        let count = shape.iter().product::<u64>() as usize;
        Cells { shape: shape.to_vec(), cells: vec![0; count] }
    }

    /// Where in `cells` a region is, in order.
    pub fn positions(&self, region: &Region) -> Vec<usize> {
        let mut found = vec![0];
        let spans = spans(region);
        for (dimension, &size) in self.shape.iter().enumerate() {
            let span = spans.get(dimension).copied().unwrap_or(Span { start: 0, end: size });
            found = found
                .into_iter()
                .flat_map(|at| (span.start..span.end).map(move |i| at * size as usize + i as usize))
                .collect();
        }
        found
    }

    fn read(&self, positions: &[usize]) -> Vec<u64> {
        positions.iter().map(|&at| self.cells[at]).collect()
    }

    fn write(&mut self, positions: &[usize], cells: impl Fn(usize) -> u64) {
        positions.iter().for_each(|&at| self.cells[at] = cells(at));
    }

    fn add(&mut self, positions: &[usize], cells: impl Fn(usize) -> u64) {
        positions.iter().for_each(|&at| self.cells[at] = self.cells[at].wrapping_add(cells(at)));
    }
}

/// What a task's access is to, once it was submitted.
#[derive(Clone, Debug)]
pub enum Use {
    /// A version by name, or (`group` aside) the version of a value datum that it was bound to.
    Value {
        /// What it reads.
        read: Option<VersionId>,
        /// What it makes.
        write: Option<VersionId>,
    },
    /// A region of a datum in place.
    Cells {
        /// Which datum, by number.
        datum: usize,
        /// Where the region is.
        positions: Vec<usize>,
        /// The region.
        region: Region,
    },
}

/// One access of a submitted task.
#[derive(Clone, Debug)]
pub struct Used {
    /// To do what.
    pub direction: Direction,
    /// Of what.
    pub what: Use,
}

// The arithmetic of bodies, shared by the simulation and by the sequential run.

/// What a task makes of what it read.
pub fn digest(task: usize, reads: &[u64]) -> u64 {
    mix(mix(0xd1, task as u64), mix_all(reads))
}
/// What it returns.
pub fn returned(digest: u64, output: usize) -> u64 {
    mix_all(&[digest, 0x4e, output as u64])
}
/// What it hands over as the value of its stream with this number.
pub fn handed(digest: u64, number: u32) -> u64 {
    mix_all(&[digest, 0x57, u64::from(number)])
}
/// What it writes to a value.
pub fn written(digest: u64, access: usize) -> u64 {
    mix_all(&[digest, 0x34, access as u64])
}
/// What it writes to a cell.
pub fn written_cell(digest: u64, access: usize, at: usize) -> u64 {
    mix_all(&[digest, 0x35, access as u64, at as u64])
}
/// What it leaves in a cell while it runs, and when it fails.
pub fn scribble(task: usize, at: usize) -> u64 {
    mix_all(&[0x5c, task as u64, at as u64])
}
/// What it adds to a shared value or cell at its end.
pub fn share(digest: u64, access: usize, at: usize) -> u64 {
    mix_all(&[digest, 0x36, access as u64, at as u64])
}
/// What it adds to a shared cell at its begin.
pub fn early_share(task: usize, access: usize, at: usize) -> u64 {
    mix_all(&[0x37, task as u64, access as u64, at as u64])
}

/// A body between its begin and its end.
#[derive(Clone, Debug)]
pub struct Body {
    /// What it makes of what it read.
    pub digest: u64,
    /// What the access of this position read (commutative: what it adds to).
    taken: Vec<Vec<u64>>,
    finished: bool,
}

impl Body {
    /// The values that it hands over at its end: returns, then written values by access.
    pub fn outputs(&self, returns: usize, accesses: &[Used]) -> Vec<u64> {
        let mut outputs: Vec<u64> = (0..returns).map(|i| returned(self.digest, i)).collect();
        for (index, used) in accesses.iter().enumerate() {
            let Use::Value { write: Some(_), .. } = used.what else { continue };
            outputs.push(match used.direction {
                Direction::Commutative => {
                    self.taken[index][0].wrapping_add(share(self.digest, index, 0))
                }
                _ => written(self.digest, index),
            });
        }
        outputs
    }
}

/// Everything that bodies read and write.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// The values that are there.
    pub values: Map<VersionId, u64>,
    /// What a group started from.
    pub bases: Map<VersionId, VersionId>,
    /// Data in place, by number.
    pub data: Vec<Option<Cells>>,
    /// What a task read when its body first began, by number of the task.
    first: Map<usize, Vec<Vec<u64>>>,
}

impl Store {
    /// Nothing but data in place, by number; `None` is not there yet.
    pub fn new(data: Vec<Option<Cells>>) -> Store {
        Store { data, ..Store::default() }
    }

    /// The value of a version; of a group's that no member wrote yet, what they start from.
    pub fn value(&self, version: VersionId) -> Result<u64, String> {
        if let Some(value) = self.values.get(&version) {
            return Ok(*value);
        }
        match self.bases.get(&version) {
            Some(base) => self.value(*base),
            None => Err(format!("reads {version:?}, which is not there")),
        }
    }

    fn cells(&mut self, datum: usize) -> &mut Cells {
        self.data[datum].as_mut().expect("used by a task, so it was made")
    }

    fn take(&mut self, used: &Used) -> Result<Vec<u64>, String> {
        match &used.what {
            Use::Value { read: Some(read), write } => {
                let value = match (used.direction.grouped(), write) {
                    (true, Some(write)) => self.value(*write)?,
                    _ => self.value(*read)?,
                };
                Ok(vec![value])
            }
            Use::Value { read: None, .. } => Ok(Vec::new()),
            Use::Cells { datum, positions, .. } if used.direction.reads() => {
                Ok(self.cells(*datum).read(positions))
            }
            Use::Cells { .. } => Ok(Vec::new()),
        }
    }

    /// A body begins. `Err`: it reads what is not there, or finds its own region changed.
    pub fn begin(&mut self, task: usize, accesses: &[Used]) -> Result<Body, String> {
        let mut taken = Vec::with_capacity(accesses.len());
        for used in accesses {
            taken.push(self.take(used)?);
        }
        if let Some(first) = self.first.get(&task) {
            self.same_as_left(task, accesses, first)?;
            for (index, used) in accesses.iter().enumerate() {
                if used.direction == Direction::InOut {
                    taken[index].clone_from(&first[index]);
                }
            }
        } else if accesses.iter().any(|used| used.direction.writes()) {
            self.first.insert(task, taken.clone());
        }
        let mut reads = Vec::new();
        for (used, taken) in accesses.iter().zip(&taken) {
            if !used.direction.grouped() {
                reads.push(mix_all(taken));
            }
        }
        for (index, used) in accesses.iter().enumerate() {
            self.begin_write(task, index, used)?;
        }
        Ok(Body { digest: digest(task, &reads), taken, finished: false })
    }

    /// What a driver would do that begins bodies before they may (a canary).
    pub fn scribble_early(&mut self, task: usize, accesses: &[Used]) {
        for used in accesses {
            if let Use::Cells { datum, positions, .. } = &used.what {
                if !used.direction.grouped() && used.direction.writes() {
                    self.cells(*datum).write(positions, |at| scribble(task, at));
                }
            }
        }
    }

    fn same_as_left(
        &self,
        task: usize,
        accesses: &[Used],
        first: &[Vec<u64>],
    ) -> Result<(), String> {
        for (used, first) in accesses.iter().zip(first) {
            let Use::Cells { datum, positions, .. } = &used.what else { continue };
            let Some(cells) = &self.data[*datum] else { continue };
            let same = match used.direction {
                Direction::In => &cells.read(positions) == first,
                Direction::Out | Direction::InOut => {
                    positions.iter().all(|&at| cells.cells[at] == scribble(task, at))
                }
                Direction::Concurrent | Direction::Commutative => true,
            };
            if !same {
                return Err(format!("runs again, but d{datum} changed since its last run"));
            }
        }
        Ok(())
    }

    fn begin_write(&mut self, task: usize, index: usize, used: &Used) -> Result<(), String> {
        match (&used.what, used.direction) {
            (Use::Cells { datum, positions, .. }, Direction::Out | Direction::InOut) => {
                self.cells(*datum).write(positions, |at| scribble(task, at));
            }
            (Use::Cells { datum, positions, .. }, Direction::Concurrent) => {
                self.cells(*datum).add(positions, |at| early_share(task, index, at));
            }
            (Use::Value { write: Some(version), .. }, Direction::Concurrent) => {
                let value = self.value(*version)?;
                self.values.insert(*version, value);
            }
            _ => {}
        }
        Ok(())
    }

    /// A body does the last of its work. `Err`: what it reads changed while it ran. The
    /// versions of one that was given up (`abandoned`) may be gone.
    pub fn finish(
        &mut self,
        task: usize,
        accesses: &[Used],
        body: &mut Body,
        abandoned: bool,
    ) -> Result<(), String> {
        assert!(!std::mem::replace(&mut body.finished, true), "a body ends once");
        let digest = body.digest;
        for (index, used) in accesses.iter().enumerate() {
            match (&used.what, used.direction) {
                (Use::Cells { datum, positions, .. }, Direction::In) => {
                    if self.cells(*datum).read(positions) != body.taken[index] {
                        return Err(format!("d{datum} changed while the task read it"));
                    }
                }
                (Use::Cells { datum, positions, .. }, Direction::Out | Direction::InOut) => {
                    let datum = *datum;
                    let cells = self.cells(datum);
                    if positions.iter().any(|&at| cells.cells[at] != scribble(task, at)) {
                        return Err(format!("d{datum} changed while the task wrote it"));
                    }
                    cells.write(positions, |at| written_cell(digest, index, at));
                }
                (Use::Cells { datum, positions, .. }, Direction::Concurrent) => {
                    self.cells(*datum).add(positions, |at| share(digest, index, at));
                }
                (Use::Cells { datum, positions, .. }, Direction::Commutative) => {
                    let cells = self.cells(*datum);
                    for (&at, old) in positions.iter().zip(&body.taken[index]) {
                        cells.cells[at] = old.wrapping_add(share(digest, index, at));
                    }
                }
                (Use::Value { write: Some(version), .. }, Direction::Concurrent) => {
                    let added = self.add_to(*version, share(digest, index, 0));
                    added.or_else(|message| if abandoned { Ok(()) } else { Err(message) })?;
                }
                (Use::Value { .. }, _) => {}
            }
        }
        Ok(())
    }

    fn add_to(&mut self, version: VersionId, share: u64) -> Result<(), String> {
        let value = self.values.get_mut(&version);
        let value = value.ok_or_else(|| format!("updates {version:?}, which is gone"))?;
        *value = value.wrapping_add(share);
        Ok(())
    }

    /// A body fails (raised, or died with its executor): scribble stays, shares are undone.
    pub fn ruin(&mut self, task: usize, accesses: &[Used], body: &Body) {
        let digest = body.digest;
        for (index, used) in accesses.iter().enumerate() {
            match (&used.what, used.direction) {
                (Use::Cells { datum, positions, .. }, Direction::Out | Direction::InOut) => {
                    self.cells(*datum).write(positions, |at| scribble(task, at));
                }
                (Use::Cells { datum, positions, .. }, Direction::Concurrent) => {
                    let early = |at| early_share(task, index, at).wrapping_neg();
                    self.cells(*datum).add(positions, early);
                    if body.finished {
                        let late = |at| share(digest, index, at).wrapping_neg();
                        self.cells(*datum).add(positions, late);
                    }
                }
                (Use::Cells { datum, positions, .. }, Direction::Commutative) if body.finished => {
                    let late = |at| share(digest, index, at).wrapping_neg();
                    self.cells(*datum).add(positions, late);
                }
                (Use::Value { write: Some(version), .. }, Direction::Concurrent)
                    if body.finished =>
                {
                    let late = share(digest, index, 0).wrapping_neg();
                    // The version may have been given up while its executor was being killed.
                    let _ = self.add_to(*version, late);
                }
                _ => {}
            }
        }
    }

    /// The values of a run that was taken as the task's end go to where they belong.
    pub fn keep(&mut self, versions: &[VersionId], accesses: &[Used], outputs: &[u64]) {
        let shared: Vec<_> = accesses
            .iter()
            .filter(|used| used.direction == Direction::Concurrent)
            .filter_map(|used| match used.what {
                Use::Value { write, .. } => write,
                Use::Cells { .. } => None,
            })
            .collect();
        for (version, value) in versions.iter().zip(outputs) {
            if !shared.contains(version) {
                self.values.insert(*version, *value);
            }
        }
    }
}
