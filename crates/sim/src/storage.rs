//! Modelled storage with congestion: what a disk moves depends on how many tasks use it.
//!
//! Tasks that use a disk at once share what it moves evenly (processor sharing). Every change of
//! their number changes when each of them ends. Noise and slow periods come from a seed and do
//! not depend on what was decided before.

use std::collections::BTreeMap;

use crate::hash::mix_all;

/// Noise keeps its value for this long.
pub const NOISE_NS: u64 = 2_000_000_000;
const NS_PER_S: f64 = 1e9;
/// A fitted curve that falls is drawn out to so many tasks, in steps of so much.
const FITTED_TO: f64 = 1024.0;
const FITTED_STEP: f64 = 1.25;

/// What a disk moves over how many use it: points, with straight lines between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// A curve through points of (tasks at once, bytes a second), fewest tasks first. Before the
    /// first point it is a line from nothing; beyond the last it is flat.
    pub fn new(points: &[(f64, f64)]) -> Curve {
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0), "points are in order");
        assert!(points.iter().all(|point| point.0 > 0.0 && point.1 > 0.0), "points are positive");
        assert!(!points.is_empty(), "a disk moves something");
        Curve(points.to_vec())
    }

    /// A curve through measured points, of which there is at least one. Beyond the last it goes on
    /// as it came down from its peak: as the power of the number of tasks that fits these points
    /// best (least squares of the logarithms). A curve that has not come down stays flat.
    pub fn fitted(measured: &[(f64, f64)]) -> Curve {
        let mut points = measured.to_vec();
        let peak = (0..points.len()).max_by(|a, b| points[*a].1.total_cmp(&points[*b].1));
        let power = fall(&measured[peak.unwrap_or(0)..]);
        while let Some((tasks, rate)) = points.last().copied().filter(|last| last.0 < FITTED_TO) {
            if power >= 0.0 {
                break;
            }
            let tasks_then = (tasks * FITTED_STEP).min(FITTED_TO);
            points.push((tasks_then, rate * (tasks_then / tasks).powf(power)));
        }
        Curve::new(&points)
    }

    /// Bytes a second for so many tasks at once.
    pub fn rate(&self, tasks: usize) -> f64 {
        let tasks = tasks as f64;
        let after = self.0.partition_point(|point| point.0 < tasks);
        let (low, low_rate) = after.checked_sub(1).map_or((0.0, 0.0), |before| self.0[before]);
        match self.0.get(after) {
            Some((high, rate)) => low_rate + (rate - low_rate) * (tasks - low) / (high - low),
            None => low_rate,
        }
    }
}

/// The slope of the logarithm of the rate over that of the tasks; 0 if there is none to see.
fn fall(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|log| log.0), mean(|log| log.1));
    let over: f64 = logs.iter().map(|log| (log.0 - x) * (log.1 - y)).sum();
    let under: f64 = logs.iter().map(|log| (log.0 - x) * (log.0 - x)).sum();
    if under > 0.0 {
        over / under
    } else {
        0.0
    }
}

/// How the speed of a disk changes by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// What the noise is drawn from.
    pub seed: u64,
    /// The speed is off by up to this share, up or down.
    pub noise: f64,
    /// From when on (nanoseconds) the speed is multiplied by how much.
    pub change: Option<(u64, f64)>,
}

impl Weather {
    fn factor(&self, now: u64) -> f64 {
        let roll = mix_all(&[self.seed, 0xd15c, now / NOISE_NS]) % 2001;
        let noise = 1.0 + self.noise * (roll as f64 - 1000.0) / 1000.0;
        noise * self.change.filter(|(from, _)| now >= *from).map_or(1.0, |(_, factor)| factor)
    }

    /// When the factor may change next.
    fn next(&self, now: u64) -> u64 {
        let noise = (now / NOISE_NS + 1) * NOISE_NS;
        self.change.filter(|(from, _)| now < *from).map_or(noise, |(from, _)| noise.min(from))
    }
}

/// One disk and the tasks that use it.
#[derive(Debug)]
pub struct Disk {
    curve: Curve,
    weather: Weather,
    /// What each task that was there from the beginning would have moved.
    served: f64,
    until: u64,
    /// Tasks by what `served` is when they end (its bits: it is never negative), and arrival.
    tasks: BTreeMap<(u64, u64), usize>,
    arrivals: u64,
    /// Bytes that were moved.
    pub moved: f64,
    /// Nanoseconds in which it was used.
    pub busy_ns: u64,
}

impl Disk {
    /// An idle disk.
    pub fn new(curve: Curve, weather: Weather) -> Disk {
        let tasks = BTreeMap::new();
        let (served, moved) = (0.0, 0.0);
        Disk { curve, weather, served, until: 0, tasks, arrivals: 0, moved, busy_ns: 0 }
    }

    /// Bytes a nanosecond for each task from `until` on.
    fn each(&self) -> f64 {
        let tasks = self.tasks.len();
        let rate = self.curve.rate(tasks) * self.weather.factor(self.until);
        rate / tasks.max(1) as f64 / NS_PER_S
    }

    /// Lets time pass; the speed does not change within.
    fn pass(&mut self, now: u64) {
        let ns = now - self.until;
        if !self.tasks.is_empty() {
            let each = self.each() * ns as f64;
            self.served += each;
            self.moved += each * self.tasks.len() as f64;
            self.busy_ns += ns;
        }
        self.until = now;
    }

    /// Lets time pass up to now.
    pub fn advance(&mut self, now: u64) {
        while self.until < now {
            let next = self.weather.next(self.until).min(now);
            self.pass(next);
        }
    }

    /// A task begins to move so many bytes.
    pub fn begin(&mut self, now: u64, task: usize, bytes: u64) {
        self.advance(now);
        self.arrivals += 1;
        let end = self.served + bytes as f64;
        self.tasks.insert((end.to_bits(), self.arrivals), task);
    }

    /// When to look again: the next task ends, or the speed changes. `None`: nobody is there.
    pub fn next(&self) -> Option<u64> {
        let ((end, _), _) = self.tasks.first_key_value()?;
        let left = (f64::from_bits(*end) - self.served).max(0.0);
        let ns = (left / self.each()).ceil() as u64;
        Some(self.until.saturating_add(ns).min(self.weather.next(self.until)))
    }

    /// A task that has moved all its bytes by now, once.
    pub fn ended(&mut self, now: u64) -> Option<usize> {
        self.advance(now);
        let ((end, _), _) = self.tasks.first_key_value()?;
        // A nanosecond's worth: `next` is rounded to whole nanoseconds.
        let over = f64::from_bits(*end) - self.served <= self.each() + 1e-6;
        if over {
            return self.tasks.pop_first().map(|(_, task)| task);
        }
        None
    }
}
