//! The fault model: what goes wrong in a simulation, and what never does.
//!
//! What goes wrong, each at random and each switched off in some seeds:
//!
//! - A body raises (the producer of a stream between two values), or takes much longer than it
//!   usually does.
//! - The engine cannot do a task: an I/O executor has to.
//! - A body gives its processor back midway (it waits for something outside), and ends later.
//! - An executor dies: idle; on taking a task (claimed, nothing done); in the middle of a body;
//!   after the body did all its work but before its report is written; right after the report
//!   is written. With many slots every body on it dies with it.
//! - Reports are late, also those of an executor that is dead by then. The news of a death is
//!   late; until it comes, tasks are still sent to the dead.
//! - A task is recalled at the very moment in which it begins: whoever comes first has it.
//! - An executor that has to be killed goes on for a moment, and may report in that moment.
//! - An executor comes up late, also the only one of its kind.
//! - The clock's tick comes late.
//! - A layer fails the run of an I/O task, for this task or for all; layers go down, come up, and
//!   have less room than was said; files are larger than was asked for; moves fail.
//!
//! What never goes wrong: a report is lost that was written before the death of its writer, or
//! comes after the news of that death; reports of one executor overtake each other; a replacement
//! never comes; time goes back. These are promises of the drivers.
//!
//! A fate depends on the seed and on the name of what it befalls, not on what was decided
//! before: a program that shrinks keeps its faults.

use crate::hash::mix_all;

/// What one begin of a task's body is in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The body raises at its end.
    pub raises: bool,
    /// The body gives its processor back so many thousandths of the way through.
    pub pauses: Option<u64>,
    /// The body takes this many times its usual time.
    pub slower: u64,
    /// The executor dies of it.
    pub death: Option<Death>,
    roll: u64,
}

impl Fate {
    /// How many values of so many a body hands over that raises.
    pub fn yields(&self, values: u32) -> u32 {
        (self.roll % u64::from(values + 1)) as u32
    }
}

/// When an executor dies of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// Claimed, nothing done.
    OnTaking,
    /// This many thousandths of the way through.
    Midway(u64),
    /// All is done, nothing reported.
    BeforeReport,
    /// The report is on its way.
    AfterReport,
}

/// What is late, each with its own spread.
#[derive(Clone, Copy, Debug)]
pub enum Delay {
    /// A task on its way to an executor.
    Send = 1,
    /// A report on its way to the driver.
    Report = 2,
    /// The news of a death.
    Notice = 3,
    /// From the order to kill to the death.
    Kill = 4,
    /// An executor's start.
    Start = 5,
    /// A tick of the clock.
    Tick = 6,
}

/// All that goes wrong under one seed.
#[derive(Clone, Debug)]
pub struct Faults {
    seed: u64,
    raise_permille: u64,
    slow_permille: u64,
    pause_permille: u64,
    death_permille: u64,
    refuse_permille: u64,
    idle_death_permille: u64,
    delay_ns_max: u64,
    unplaced_permille: u64,
    move_fails_permille: u64,
    troubles: u32,
}

impl Faults {
    /// The faults of a seed.
    pub fn new(seed: u64) -> Faults {
        let mut rng = fastrand::Rng::with_seed(mix_all(&[seed, 0xfa]));
        let mut maybe = |most: u64| match rng.u32(0..3) {
            0 => 0,
            1 => most / 10,
            _ => rng.u64(0..=most),
        };
        let (raise, slow) = (maybe(250), maybe(200));
        let (death, idle_death) = (maybe(150), maybe(300));
        let pause = maybe(500);
        let refuse = maybe(700);
        let delay_ns_max = [1, 1_000, 50_000, 2_000_000][rng.usize(0..4)];
        let mut rng = fastrand::Rng::with_seed(mix_all(&[seed, 0xfb]));
        let unplaced_permille = [0, 30, 300][rng.usize(0..3)];
        let move_fails_permille = [0, 100, 600][rng.usize(0..3)];
        let troubles = [0, 0, 4, 16][rng.usize(0..4)];
        Faults {
            seed,
            raise_permille: raise,
            slow_permille: slow,
            pause_permille: pause,
            death_permille: death,
            refuse_permille: refuse,
            idle_death_permille: idle_death,
            delay_ns_max,
            unplaced_permille,
            move_fails_permille,
            troubles,
        }
    }

    /// What the `begin`-th begin of a task is in for.
    pub fn fate(&self, task: usize, begin: u32) -> Fate {
        let name = mix_all(&[self.seed, 0xb0, task as u64, u64::from(begin)]);
        let mut rng = fastrand::Rng::with_seed(name);
        let raises = rng.u64(0..1000) < self.raise_permille;
        let slower = if rng.u64(0..1000) < self.slow_permille { rng.u64(2..=40) } else { 1 };
        let dies = rng.u64(0..1000) < self.death_permille;
        let death = dies.then(|| match rng.u32(0..4) {
            0 => Death::OnTaking,
            1 => Death::Midway(rng.u64(1..1000)),
            2 => Death::BeforeReport,
            _ => Death::AfterReport,
        });
        let pauses = (rng.u64(0..1000) < self.pause_permille).then(|| rng.u64(1..1000));
        Fate { raises, pauses, slower, death, roll: rng.u64(..) }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether its layer fails a run of a task; and if so, whether it is down for all.
    pub fn unplaced(&self, task: usize, begin: u32) -> Option<bool> {
        let roll = mix_all(&[self.seed, 0xe5, task as u64, u64::from(begin)]);
        (roll % 1000 < self.unplaced_permille).then_some(roll / 1000 % 8 == 0)
    }

    /// How long it takes until what a run wrote is safe, if its end waits for that.
    pub fn settles(&self, task: usize, begin: u32) -> Option<u64> {
        let roll = mix_all(&[self.seed, 0x5e, task as u64, u64::from(begin)]);
        (roll % 4 == 0).then_some(1 << (roll / 4 % 22))
    }

    /// How long a move takes.
    pub fn move_lasts(&self, serial: u64) -> u64 {
        mix_all(&[self.seed, 0x30, serial]) % (1 << (mix_all(&[self.seed, serial]) % 22)) + 1
    }

    /// Whether a move fails; and if so, whether for lack of room.
    pub fn move_fails(&self, serial: u64) -> Option<bool> {
        let roll = mix_all(&[self.seed, 0x3f, serial]);
        (roll % 1000 < self.move_fails_permille).then_some(roll / 1000 % 2 == 0)
    }

    /// When something happens to a layer.
    pub fn troubles(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let when = |number: u32| {
            let mut rng = fastrand::Rng::with_seed(mix_all(&[self.seed, 0x7b, u64::from(number)]));
            1 << rng.u32(8..24)
        };
        (0..self.troubles).map(move |number| (number, when(number)))
    }

    /// To which of so many layers, and what (a number to choose by).
    pub fn trouble(&self, number: u32, layers: usize) -> (u32, u64) {
        let roll = mix_all(&[self.seed, 0x7c, u64::from(number)]);
        ((roll % layers as u64) as u32, roll / 16)
    }

    /// Whether an engine cannot do a task.
    pub fn refuses(&self, task: usize) -> bool {
        mix_all(&[self.seed, 0xef, task as u64]) % 1000 < self.refuse_permille
    }

    /// How long after its start an executor dies all by itself, if it does.
    pub fn idle_death(&self, executor: u32) -> Option<u64> {
        let mut rng = fastrand::Rng::with_seed(mix_all(&[self.seed, 0xe0, u64::from(executor)]));
        (rng.u64(0..1000) < self.idle_death_permille).then(|| 1 << rng.u32(0..26))
    }

    /// How late something is; `name` tells one from another.
    pub fn delay(&self, what: Delay, name: u64) -> u64 {
        let mut rng = fastrand::Rng::with_seed(mix_all(&[self.seed, what as u64, name]));
        match what {
            Delay::Start => rng.u64(0..=1 << rng.clone().u32(0..22)),
            _ if rng.u32(0..3) == 0 => 0,
            _ => rng.u64(0..=self.delay_ns_max),
        }
    }
}
