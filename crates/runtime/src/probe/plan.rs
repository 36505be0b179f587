//! What is to be measured, in which order, and how much data and time that may take at most.

use std::time::Duration;

use super::ProbeError;

/// Reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Reading what is not in memory.
    Read,
    /// Writing, until it is on the device.
    Write,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of an operation; multiples of 4 KiB.
    pub block_bytes: Vec<u64>,
    /// How many at once.
    pub writers: Vec<u32>,
    /// Two survey all that is measured, the others measure what is in the curves; medians.
    pub rounds: u32,
    /// Bytes of space that are used.
    pub space_bytes: u64,
    /// Bytes that are read and written at most.
    pub data_bytes: u64,
    /// How long it takes at most, but for the last operations and their flush.
    pub time: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            block_bytes: vec![4 << 10, 64 << 10, 1 << 20, 4 << 20],
            writers: vec![1, 2, 4, 8, 16, 32, 64],
            rounds: 7,
            space_bytes: 512 << 20,
            data_bytes: 16_000_000_000,
            time: Duration::from_secs(60),
        }
    }
}

/// What blocks are multiples of: enough for direct I/O.
const BLOCK_UNIT_BYTES: u64 = 4096;
/// So many rounds measure everything; those after them, the curve of the block that gave most.
const SURVEY_ROUNDS: u32 = 2;
/// A measurement of the curve has so many times the data and time of one of the survey: what
/// storage that is limited to a rate lets more pass at first is the less of it.
const CURVE_WEIGHT: u32 = 4;
/// Writers and rounds at most.
const WRITERS_MAX: u32 = 512;
const ROUNDS_MAX: u32 = 100;
/// Sizes of each list at most.
const CHOICES_MAX: usize = ops::POINTS_MAX;
/// Operations in flight take so much memory at most.
const MEMORY_BYTES_MAX: u64 = 4 << 30;
/// The share of the time that measurements get; the rest is for the files, and for operations that
/// end late.
const MEASURED_SHARE: f64 = 0.8;

/// One combination that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What is done.
    pub kind: Kind,
    /// Bytes of an operation.
    pub block_bytes: u64,
    /// How many do it at once.
    pub writers: u32,
}

impl Cell {
    /// What it moves at least: a block by each.
    fn least(&self) -> u64 {
        self.block_bytes * u64::from(self.writers)
    }
}

/// The measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What is measured.
    pub cells: Vec<Cell>,
    /// Bytes of a measurement of the survey, if that is not less than a block for each writer.
    pub unit_bytes: u64,
    /// The survey's rounds and those of the curves.
    pub rounds: u32,
    /// The first rounds, which have all cells.
    pub survey_rounds: u32,
    /// Cells of the other rounds: those of one block, for reading and for writing.
    pub curve_cells: usize,
    /// How long a measurement of the survey takes at most.
    pub unit_time: Duration,
    /// How long all takes at most.
    pub time: Duration,
    /// How many files, one for each of the most writers.
    pub files: u32,
    /// Bytes of each.
    pub file_bytes: u64,
    /// The largest block.
    pub block_bytes_max: u64,
}

impl Plan {
    /// Checks what is asked for and shares out its data and time.
    ///
    /// # Errors
    /// What cannot be done, and what to change.
    pub fn new(options: &Options) -> Result<Plan, ProbeError> {
        let blocks = ascending("--block", &options.block_bytes)?;
        let writers = ascending("--writers", &options.writers)?;
        let (block_bytes_max, files) = (blocks[blocks.len() - 1], writers[writers.len() - 1]);
        check(options, block_bytes_max, files)?;
        let file_bytes = options.space_bytes / u64::from(files) / block_bytes_max * block_bytes_max;
        if file_bytes == 0 {
            let least = block_bytes_max * u64::from(files);
            return Err(ProbeError::Options(format!(
                "--space {} is not enough for a file of {block_bytes_max} bytes for each of \
                 {files} writers; it must be at least {least}",
                options.space_bytes
            )));
        }
        let cells: Vec<Cell> = [Kind::Write, Kind::Read]
            .into_iter()
            .flat_map(|kind| blocks.iter().map(move |block| (kind, *block)))
            .flat_map(|(kind, block_bytes)| {
                writers.iter().map(move |writers| Cell { kind, block_bytes, writers: *writers })
            })
            .collect();
        let (rounds, survey_rounds) = (options.rounds, options.rounds.min(SURVEY_ROUNDS));
        let curve_cells = cells.len() / blocks.len();
        let mut plan = Plan {
            cells,
            unit_bytes: 0,
            rounds,
            survey_rounds,
            curve_cells,
            unit_time: Duration::ZERO,
            time: options.time,
            files,
            file_bytes,
            block_bytes_max,
        };
        if !plan.share_out(options.data_bytes) {
            return Err(ProbeError::Options(format!(
                "--data {} is not enough for {} measurements; it must be at least {}, or ask for \
                 fewer or smaller ones",
                options.data_bytes,
                plan.measurements(rounds),
                plan.data_bytes_max()
            )));
        }
        let curves = plan.curve_cells as u32 * (rounds - survey_rounds);
        let units = plan.cells.len() as u32 * survey_rounds + CURVE_WEIGHT * curves;
        plan.unit_time = options.time.mul_f64(MEASURED_SHARE) / units;
        Ok(plan)
    }

    /// Bytes of space that are used.
    pub fn space_bytes(&self) -> u64 {
        self.file_bytes * u64::from(self.files)
    }

    /// Bytes of a measurement of a cell in this round.
    pub fn sample_bytes(&self, cell: Cell, round: u32) -> u64 {
        cell.least().max(self.unit_bytes.saturating_mul(u64::from(self.weight(round))))
    }

    /// How long a measurement of this round takes at most.
    pub fn sample_time(&self, round: u32) -> Duration {
        self.unit_time * self.weight(round)
    }

    fn weight(&self, round: u32) -> u32 {
        if round < self.survey_rounds {
            1
        } else {
            CURVE_WEIGHT
        }
    }

    /// Bytes that are read and written at most, the files themselves included.
    pub fn data_bytes_max(&self) -> u64 {
        let of_round = |round| {
            // Whichever block the curve will be of, no other has more.
            let is_in = |cell: &&Cell| {
                round < self.survey_rounds || cell.block_bytes == self.block_bytes_max
            };
            let cells = self.cells.iter().filter(is_in);
            cells.map(|cell| self.sample_bytes(*cell, round)).fold(0, u64::saturating_add)
        };
        (0..self.rounds).map(of_round).fold(self.space_bytes(), u64::saturating_add)
    }

    /// Gives a measurement of the survey the most that it can have; whether there is enough.
    fn share_out(&mut self, data_bytes: u64) -> bool {
        let (mut most, mut over) = (0, data_bytes);
        while over - most > 1 {
            self.unit_bytes = most + (over - most) / 2;
            if self.data_bytes_max() <= data_bytes {
                most = self.unit_bytes;
            } else {
                over = self.unit_bytes;
            }
        }
        self.unit_bytes = most;
        self.data_bytes_max() <= data_bytes
    }

    /// Measurements before this round.
    pub fn measurements(&self, round: u32) -> u64 {
        let survey = round.min(self.survey_rounds);
        let of_survey = u64::from(survey) * self.cells.len() as u64;
        of_survey + u64::from(round - survey) * self.curve_cells as u64
    }

    /// The cells of a round: all, or after the survey those that are in the curve. Every round has
    /// another order, so that what changes slowly around us does not hit the same ones. Reading
    /// and writing are not mixed: storage that limits each to a rate lets a little more pass at
    /// once after it was idle, and so of each round that hits one cell of either.
    pub fn order(&self, round: u32, in_curve: impl Fn(&Cell) -> bool) -> Vec<usize> {
        let is_survey = round < self.survey_rounds;
        let cells = self.cells.iter().enumerate();
        let cells = cells.filter(|(_, cell)| is_survey || in_curve(cell));
        let mut order: Vec<usize> = cells.map(|(at, _)| at).collect();
        let count = order.len();
        // Shuffled by a generator of 64 bits (splitmix), seeded by the round.
        let mut state = u64::from(round) + 1;
        for last in (1..count).rev() {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            order.swap(last, ((mixed ^ (mixed >> 31)) % (last as u64 + 1)) as usize);
        }
        let first = [Kind::Read, Kind::Write][round as usize % 2];
        order.sort_by_key(|at| self.cells[*at].kind != first);
        order
    }
}

fn ascending<T: Copy + Ord>(name: &str, values: &[T]) -> Result<Vec<T>, ProbeError> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.is_empty() || sorted.len() > CHOICES_MAX {
        let message = format!("{name}: give from 1 to {CHOICES_MAX} values");
        return Err(ProbeError::Options(message));
    }
    Ok(sorted)
}

fn check(options: &Options, block_bytes_max: u64, writers_max: u32) -> Result<(), ProbeError> {
    let wrong = |message: String| Err(ProbeError::Options(message));
    let aligned = |block: &u64| *block > 0 && block % BLOCK_UNIT_BYTES == 0;
    if let Some(block) = options.block_bytes.iter().find(|block| !aligned(block)) {
        return wrong(format!("--block {block}: must be a multiple of {BLOCK_UNIT_BYTES} bytes"));
    }
    if options.writers.contains(&0) || writers_max > WRITERS_MAX {
        return wrong(format!("--writers: must be from 1 to {WRITERS_MAX}"));
    }
    if block_bytes_max.saturating_mul(u64::from(writers_max)) > MEMORY_BYTES_MAX {
        return wrong(format!(
            "--block and --writers: {writers_max} operations of {block_bytes_max} bytes at once \
             take more than {MEMORY_BYTES_MAX} bytes of memory"
        ));
    }
    if options.rounds == 0 || options.rounds > ROUNDS_MAX {
        return wrong(format!("--rounds: must be from 1 to {ROUNDS_MAX}"));
    }
    if options.time.is_zero() {
        return wrong("--seconds: must be more than 0".to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Options {
        Options {
            block_bytes: vec![8192, 4096],
            writers: vec![4, 1],
            rounds: 3,
            space_bytes: 100_000,
            data_bytes: 500_000,
            time: Duration::from_secs(1),
        }
    }

    fn refused(options: Options, part: &str) {
        let said = Plan::new(&options).expect_err(part).to_string();
        assert!(said.contains(part), "{said} has no {part:?}");
    }

    #[test]
    fn data_and_time_are_bounded() {
        let plan = Plan::new(&small()).unwrap();
        assert_eq!((plan.cells.len(), plan.files, plan.file_bytes), (8, 4, 24_576));
        assert!(plan.data_bytes_max() <= 500_000, "{}", plan.data_bytes_max());
        assert_eq!(plan.measurements(plan.rounds), 8 + 8 + 4);
        let rounds = || (0..3).flat_map(|round| [round].repeat(if round < 2 { 8 } else { 4 }));
        assert!(rounds().map(|round| plan.sample_time(round)).sum::<Duration>() <= plan.time);
        assert_eq!(plan.sample_time(2), 4 * plan.sample_time(1));
        let pairs = || (0..3).flat_map(|round| plan.cells.iter().map(move |cell| (*cell, round)));
        assert!(pairs().all(|(cell, round)| plan.sample_bytes(cell, round) >= cell.least()));
        assert!(Plan::new(&Options::default()).unwrap().data_bytes_max() <= 16_000_000_000);
    }

    #[test]
    fn large_cells_get_their_least_and_the_others_share_the_rest() {
        let plan = Plan::new(&Options { data_bytes: 700_000, ..small() }).unwrap();
        let cell = |block_bytes, writers| Cell { kind: Kind::Read, block_bytes, writers };
        let unit = plan.unit_bytes;
        assert_eq!(
            unit,
            (700_000 - 98_304 - 4 * 32_768) / 28,
            "of 4 x 3 cells, and 2 x 2 x 4 times"
        );
        assert_eq!(plan.sample_bytes(cell(4096, 1), 1), unit);
        assert_eq!(plan.sample_bytes(cell(8192, 4), 1), 32_768);
        assert_eq!(plan.sample_bytes(cell(8192, 4), 2), 32_768.max(4 * unit));
        let more = Plan { cells: plan.cells.clone(), unit_bytes: unit + 1, ..plan };
        assert!(plan.data_bytes_max() <= 700_000 && more.data_bytes_max() > 700_000);
    }

    #[test]
    fn every_round_has_its_cells_in_an_order_of_its_own() {
        let plan = Plan::new(&small()).unwrap();
        let all = |_: &Cell| true;
        let mut sorted = plan.order(0, all);
        assert_ne!(sorted, plan.order(1, all));
        assert_eq!(plan.order(1, all), plan.order(1, |_| false), "the survey has all");
        sorted.sort_unstable();
        assert_eq!(sorted, (0..8).collect::<Vec<_>>());
        let in_curve = |cell: &Cell| cell.block_bytes == 4096;
        let mut of_curve = plan.order(2, in_curve);
        of_curve.sort_unstable();
        let expected = (0..8).filter(|at| in_curve(&plan.cells[*at]));
        assert_eq!(of_curve, expected.collect::<Vec<_>>());
        assert_eq!(of_curve.len(), plan.curve_cells);
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_what_to_change() {
        refused(Options { block_bytes: vec![1000], ..small() }, "multiple of 4096");
        refused(Options { block_bytes: vec![], ..small() }, "--block: give from 1");
        refused(Options { writers: vec![0], ..small() }, "--writers: must be from 1 to 512");
        refused(Options { writers: vec![513], ..small() }, "from 1 to 512");
        refused(Options { rounds: 0, ..small() }, "--rounds");
        refused(Options { time: Duration::ZERO, ..small() }, "--seconds");
        refused(Options { space_bytes: 30_000, ..small() }, "at least 32768");
        refused(Options { data_bytes: 200_000, ..small() }, "must be at least 425984");
        let much = Options { block_bytes: vec![16 << 20], writers: vec![512], ..small() };
        refused(much, "bytes of memory");
    }
}
