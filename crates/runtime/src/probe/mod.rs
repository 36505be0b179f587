//! Measures what storage really takes: bandwidth and operations a second, reading and writing, over
//! the size of a block and the number of concurrent writers.
//!
//! In flow order: [`plan`] (what is measured, and that data and time are bounded; pure), `files`
//! (unnamed files in the folder), `sample` (one measurement, by the engine), [`report`] (medians,
//! curve, knee; pure). Whoever measures calls [`Probe::step`] until there is nothing left, and can
//! stop at any time: nothing has a name that would have to be removed.

mod files;
pub mod plan;
pub(crate) mod quick;
pub mod report;
mod sample;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use files::Files;
use ops::{Curve, Point};
pub use plan::{Cell, Kind, Options, Plan};
pub use report::{Figure, Knee};
use sample::Sampler;

use crate::storage::{LayerSpec, Scope};

/// What one step lays out at most.
const LAY_OUT_BYTES: u64 = 32 << 20;
/// Measured bandwidths are written with so many digits.
const DIGITS: u32 = 3;

/// Why a probe failed.
#[derive(Debug)]
pub enum ProbeError {
    /// What was asked for makes no sense; the text says what to change.
    Options(String),
    /// The system would not.
    System {
        /// The folder.
        path: PathBuf,
        /// What failed.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
    /// There is not enough space.
    Space {
        /// The folder.
        path: PathBuf,
        /// Bytes that are free.
        free: u64,
        /// Bytes that have to be.
        needed: u64,
    },
    /// The time was over before anything could be measured.
    Slow {
        /// The folder.
        path: PathBuf,
        /// How long it was allowed to take.
        time: Duration,
    },
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::Options(message) => f.write_str(message),
            ProbeError::System { path, what, error } => {
                write!(f, "{}: {what}: {error}", path.display())
            }
            ProbeError::Space { path, free, needed } => write!(
                f,
                "{}: {free} bytes are free, and {needed} have to be (half of them stay free); \
                 give a smaller --space",
                path.display()
            ),
            ProbeError::Slow { path, time } => write!(
                f,
                "{}: after {} s not everything was measured once; give more --seconds, or less to \
                 measure with --space, --block and --writers",
                path.display(),
                time.as_secs_f64()
            ),
        }
    }
}

impl std::error::Error for ProbeError {}

/// A probe of one folder.
pub struct Probe {
    path: PathBuf,
    plan: Plan,
    sampler: Sampler,
    samples: Vec<Vec<(u64, u64)>>,
    /// Bytes of the files that are there.
    laid_out: u64,
    /// The round, its order, and how far it is.
    round: u32,
    order: Vec<usize>,
    next: usize,
    /// The blocks that the curves are of, once everything was measured; of reading, of writing.
    chosen: Option<[Option<u64>; 2]>,
    bytes: u64,
    started: Instant,
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Probe({}, {:?})", self.path.display(), self.progress())
    }
}

impl Probe {
    /// Prepares everything; nothing is written yet.
    ///
    /// # Errors
    /// Options that make no sense, a folder where no file can be made, too little space.
    pub fn start(path: &Path, options: &Options) -> Result<Probe, ProbeError> {
        let plan = Plan::new(options)?;
        let files = Files::make(path, plan.files, plan.space_bytes())?;
        let sampler = Sampler::new(files, plan.file_bytes)?;
        Ok(Probe {
            path: path.to_path_buf(),
            samples: vec![Vec::new(); plan.cells.len()],
            order: plan.order(0, |_| true),
            chosen: None,
            plan,
            sampler,
            laid_out: 0,
            round: 0,
            next: 0,
            bytes: 0,
            started: Instant::now(),
        })
    }

    /// What will be measured.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Does the next piece of work: a part of a file, or one measurement. `false`: all is done, or
    /// the time is over.
    ///
    /// # Errors
    /// The system's, and when the time is over before everything was measured once.
    pub fn step(&mut self) -> Result<bool, ProbeError> {
        if self.laid_out == 0 {
            self.started = Instant::now();
        }
        if self.round == self.plan.rounds {
            return Ok(false);
        }
        if self.laid_out > 0 && self.started.elapsed() >= self.plan.time {
            if self.round == 0 {
                let path = self.path.clone();
                return Err(ProbeError::Slow { path, time: self.plan.time });
            }
            self.round = self.plan.rounds;
            return Ok(false);
        }
        if self.laid_out < self.plan.space_bytes() {
            self.lay_out()?;
        } else {
            self.measure()?;
        }
        Ok(self.round < self.plan.rounds)
    }

    fn lay_out(&mut self) -> Result<(), ProbeError> {
        let (file, from) =
            (self.laid_out / self.plan.file_bytes, self.laid_out % self.plan.file_bytes);
        let to = (from + LAY_OUT_BYTES).min(self.plan.file_bytes);
        self.sampler.lay_out(file as usize, from, to)?;
        self.laid_out += to - from;
        self.bytes += to - from;
        Ok(())
    }

    fn measure(&mut self) -> Result<(), ProbeError> {
        let at = self.order[self.next];
        let cell = self.plan.cells[at];
        let (bytes, time) =
            (self.plan.sample_bytes(cell, self.round), self.plan.sample_time(self.round));
        let turn = self.plan.measurements(self.round) as usize + self.next;
        let sample = self.sampler.sample(cell, bytes, time, turn)?;
        self.bytes += sample.0;
        if self.round == self.plan.survey_rounds {
            // Those of the survey were shorter.
            self.samples[at].clear();
        }
        self.samples[at].push(sample);
        self.next += 1;
        if self.next == self.order.len() {
            self.next_round();
        }
        Ok(())
    }

    fn next_round(&mut self) {
        self.round += 1;
        self.next = 0;
        if self.round == self.plan.survey_rounds {
            self.chosen = Some(self.best_blocks());
        }
        let [read, write] = self.best_blocks();
        self.order = self.plan.order(self.round, |cell| {
            let best = if cell.kind == Kind::Read { read } else { write };
            best == Some(cell.block_bytes)
        });
    }

    /// The blocks that the curves are of, of reading and of writing.
    fn best_blocks(&self) -> [Option<u64>; 2] {
        self.chosen.unwrap_or_else(|| {
            let figures = report::figures(&self.plan, &self.samples);
            [Kind::Read, Kind::Write].map(|kind| report::best_block(&figures, kind))
        })
    }

    /// Steps that are done, and steps in all.
    pub fn progress(&self) -> (u64, u64) {
        let steps_a_file = self.plan.file_bytes.div_ceil(LAY_OUT_BYTES);
        let of_file = (self.laid_out % self.plan.file_bytes).div_ceil(LAY_OUT_BYTES);
        let laid_out = self.laid_out / self.plan.file_bytes * steps_a_file + of_file;
        let measured = self.plan.measurements(self.round) + self.next as u64;
        let all = steps_a_file * u64::from(self.plan.files);
        (laid_out + measured, all + self.plan.measurements(self.plan.rounds))
    }

    /// What was found so far.
    pub fn outcome(&self) -> Outcome {
        let figures = report::figures(&self.plan, &self.samples);
        let [read, write] = self.best_blocks();
        let side = |kind, block_bytes| {
            let curve = report::curve(&figures, kind, block_bytes)?;
            Some(Side { knee: report::knee(block_bytes, &curve), curve })
        };
        Outcome {
            read: read.and_then(|block| side(Kind::Read, block)),
            write: write.and_then(|block| side(Kind::Write, block)),
            figures,
            is_direct: self.sampler.files.is_direct,
            engine: self.sampler.engine(),
            bytes: self.bytes,
            time: self.started.elapsed(),
        }
    }

    /// The folder as a layer of a storage description.
    pub fn layer(&self, name: &str, scope: Scope, emulate: bool) -> LayerSpec {
        let outcome = self.outcome();
        let best =
            |side: &Option<Side>| side.as_ref().map(|side| rounded(side.knee.best.bandwidth));
        let (read_bandwidth, write_bandwidth) = (best(&outcome.read), best(&outcome.write));
        let measured = outcome.write.map(|side| rounded_curve(&side.curve));
        LayerSpec {
            name: name.to_string(),
            path: std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone()),
            // Both at once were not measured; few devices do both at full speed.
            bandwidth: read_bandwidth.max(write_bandwidth),
            read_bandwidth,
            write_bandwidth,
            scope,
            limit: measured.clone().filter(|_| emulate),
            measured,
            ..LayerSpec::default()
        }
    }
}

/// One of both: reading, writing.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Bandwidth over writers, with the best block.
    pub curve: Curve,
    /// Where it bends.
    pub knee: Knee,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// By kind, block and writers.
    pub figures: Vec<Figure>,
    /// Reading.
    pub read: Option<Side>,
    /// Writing.
    pub write: Option<Side>,
    /// Whether the system's memory was gone around; if not, it was flushed and forgotten.
    pub is_direct: bool,
    /// The engine that did it.
    pub engine: &'static str,
    /// Bytes that were read and written.
    pub bytes: u64,
    /// How long it took.
    pub time: Duration,
}

/// With a few digits: more were not measured.
fn rounded(bandwidth: u64) -> u64 {
    let unit = 10u64.pow((bandwidth.max(1).ilog10() + 1).saturating_sub(DIGITS));
    (bandwidth + unit / 2) / unit * unit
}

fn rounded_curve(curve: &Curve) -> Curve {
    let point = |point: &Point| Point { bandwidth: rounded(point.bandwidth), ..*point };
    Curve::new(curve.points().iter().map(point).collect()).expect("it was one before")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_digits() {
        assert_eq!([1, 99, 100, 1234, 99_950].map(rounded), [1, 99, 100, 1230, 100_000]);
    }
}
