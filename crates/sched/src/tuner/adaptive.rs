//! The adaptive controller: how many tasks a layer serves best at once, followed as it changes.
//!
//! The law and why it is stable are in `docs/decisions/0014-adaptive.md`. In short: every task
//! that ends is a measurement of the whole layer. By Little's law the layer moved *tasks at once
//! x bytes of this task / its time* a second while the task ran, however tasks overlapped and
//! whatever their sizes. A round is half a window of such tasks. Rounds fill a *curve*: the rate
//! at each of a few windows. The window goes to the best known rate (the lowest window of equal
//! ones: more would be latency without throughput), looks once at unknown neighbours of the
//! best, and again at known ones now and then. A rate that changes while the window does not is
//! the layer's doing: it scales the layer, not the point of the curve.

use smallvec::SmallVec;

use super::levels::{self, LEVELS, STEPS};
use crate::api::{LayerId, Time};

/// Rates that differ by less are equal.
const EQUAL: f64 = 0.98;
/// A window counts as filled from this share of it.
const FILLED: f64 = 0.8;
/// A round is one of its window's if its tasks at once are within this share of it.
const EXACT: f64 = 0.92;
/// A change by more than this share is not noise.
const SPEED_CHANGE: f64 = 0.2;
/// No more than this factor is believed of one round.
const CHANGE_MAX: f64 = 16.0;
/// Each step up (a fifth more tasks) has to bring this share more for the next ones to be far.
const STEEP: f64 = 0.07;
/// How many rounds pass before a neighbour of the best window is looked at again, at first ...
const PATIENCE_MIN: u32 = 8;
/// ... and in the end.
const PATIENCE_MAX: u32 = 128;
/// A layer that is to look at a window and has no tasks is waited for so often.
const ASKED_MAX: u32 = 24;
/// How many rounds back a point of the curve looks, at most.
const WEIGHT_MAX: f64 = 3.0;

/// What is known of a window: its rate, and from how many rounds.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    rate: f64,
    weight: f64,
}

/// Among the first tasks of a function shorter ones do not count: loading it may take a tenth.
const COLD_NS_MAX: u64 = 500_000_000;

/// The rate over the window, for one function on layers of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    points: [Point; LEVELS],
    /// Who is looking at a window: one layer at a time. And how often others wanted to.
    trying: [Option<(LayerId, u32)>; LEVELS],
    /// Rates are bytes a second; else tasks are counted, because bytes are not known.
    pub(crate) bytes: bool,
    /// Rates are shares of the best that was measured before: what that is here, the first round
    /// of each layer tells.
    is_shape: bool,
    /// When the first task of the function ended.
    warm_at: Option<Time>,
}

impl Default for Curve {
    fn default() -> Curve {
        let (points, trying) = ([Point::default(); LEVELS], [None; LEVELS]);
        Curve { points, trying, bytes: false, is_shape: false, warm_at: None }
    }
}

impl Curve {
    /// What a layer was measured to take in all from so many tasks at once: worth one round.
    pub(crate) fn measured(points: &[(u32, u64)]) -> Curve {
        let mut curve = Curve { is_shape: !points.is_empty(), ..Curve::default() };
        let best = points.iter().map(|(_, rate)| *rate).max().unwrap_or(0);
        for (tasks, rate) in points.iter().filter(|(_, rate)| *rate > 0) {
            let point = &mut curve.points[levels::nearest(f64::from(*tasks))];
            let share = *rate as f64 / best as f64;
            *point = Point { rate: point.rate.max(share), weight: 1.0 };
        }
        curve
    }

    fn known(&self, level: usize) -> bool {
        self.points[level].weight > 0.0
    }

    fn note(&mut self, level: usize, rate: f64) {
        let point = &mut self.points[level];
        point.weight = (point.weight + 1.0).min(WEIGHT_MAX);
        point.rate += (rate - point.rate) / point.weight;
    }

    /// The lowest window whose rate nothing beats by much.
    pub(crate) fn best(&self, highest: usize) -> Option<usize> {
        let known = (0..=highest).filter(|level| self.known(*level));
        let most = known.clone().map(|level| self.points[level].rate).fold(0.0, f64::max);
        known.clone().find(|level| self.points[*level].rate >= most * EQUAL)
    }

    /// Whether the rate still grew with the window, up to this one.
    fn is_steep(&self, level: usize) -> bool {
        let Some(below) = (0..level).rev().find(|below| self.known(*below)) else { return true };
        let steps = (level - below) as f64;
        self.points[level].rate >= self.points[below].rate * (1.0 + STEEP * steps)
    }

    /// The windows beside the best that are worth a look: on either side the one at a distance
    /// within which nothing is known; far ones first, and of equals the higher.
    fn unknown(&self, best: usize, highest: usize) -> impl Iterator<Item = usize> {
        let mut levels: SmallVec<[usize; 6]> = SmallVec::new();
        for step in STEPS {
            if step < STEPS[0] && levels.is_empty() {
                if let Some(peak) = self.peak(best, highest) {
                    levels.extend((!self.known(peak)).then_some(peak));
                    break;
                }
            }
            let (above, below) = ((best + step).min(highest), best.saturating_sub(step));
            let far = step == STEPS[0] && !self.is_steep(best);
            if !far && above > best && (best + 1..=above).all(|level| !self.known(level)) {
                levels.push(above);
            }
            if below < best && (below..best).all(|level| !self.known(level)) {
                levels.push(below);
            }
        }
        levels.into_iter()
    }

    /// Where the parabola through the best and what is known next to it on either side peaks.
    fn peak(&self, best: usize, highest: usize) -> Option<usize> {
        let low = (0..best).rev().find(|level| self.known(*level))?;
        let high = (best + 1..=highest).find(|level| self.known(*level))?;
        let fall = |level: usize| (self.points[best].rate - self.points[level].rate).max(0.0);
        let (down, up) = ((best - low) as f64, (high - best) as f64);
        let (below, above) = (fall(low), fall(high));
        let bend = up * below + down * above;
        if bend <= 0.0 {
            return None;
        }
        let offset = (up * up * below - down * down * above) / bend / 2.0;
        let peak = (best as f64 + offset).clamp(low as f64, high as f64);
        Some((peak + 0.5) as usize)
    }

    /// What a window's rate should be, if a first look at it cannot be true beside what is known
    /// of its neighbours: tasks at once do not change the rate by more than their own number.
    fn implausible(&self, level: usize, rate: f64) -> Option<f64> {
        let far = self.beside(level).into_iter().flatten().any(|known| {
            let (tasks, others) = (levels::tasks(level), levels::tasks(known));
            let ratio = f64::from(tasks.max(others)) / f64::from(tasks.min(others));
            let near = self.points[known].rate;
            rate < near / ratio * (1.0 - SPEED_CHANGE) || rate > near * ratio * (1.0 + SPEED_CHANGE)
        });
        self.between(level).filter(|_| far)
    }

    /// The nearest windows on either side whose rates are known.
    fn beside(&self, level: usize) -> [Option<usize>; 2] {
        let below = (0..level).rev().find(|below| self.known(*below));
        let above = (level + 1..LEVELS).find(|above| self.known(*above));
        [below, above]
    }

    /// What a window's rate should be, by what is known beside it.
    fn between(&self, level: usize) -> Option<f64> {
        let [below, above] = self.beside(level);
        let (low, high) = (below.or(above)?, above.or(below)?);
        let share = match high > low {
            true => (level - low) as f64 / (high - low) as f64,
            false => 0.0,
        };
        let (low, high) = (self.points[low].rate, self.points[high].rate);
        Some(low + (high - low) * share)
    }

    /// What was seen of other layers, for a function that is new: worth one round.
    pub(crate) fn inherited(&self) -> Curve {
        let mut curve = Curve { trying: [None; LEVELS], warm_at: None, ..self.clone() };
        curve.points.iter_mut().for_each(|point| point.weight = point.weight.min(1.0));
        curve
    }

    /// A task ended that began at `started`: whether a part of its time that counts may have gone
    /// into what later tasks do not need, because the executors had never seen the function.
    pub(crate) fn is_cold(&mut self, started: Time, now: Time) -> bool {
        let first = started < *self.warm_at.get_or_insert(now);
        first && now.saturating_sub(started) < COLD_NS_MAX
    }

    /// A layer looks at a window, unless another one does.
    fn try_out(&mut self, level: usize, layer: LayerId) -> bool {
        if let Some((other, asked)) = &mut self.trying[level] {
            *asked += 1;
            if *other != layer && *asked < ASKED_MAX {
                return false;
            }
        }
        self.trying[level] = Some((layer, 0));
        true
    }

    fn tried(&mut self, level: usize, layer: LayerId) {
        self.trying[level].take_if(|(other, _)| *other == layer);
    }

    /// Everything is measured in bytes from now on. A shape is the same in bytes.
    pub(crate) fn count_bytes(&mut self) {
        let before = if self.is_shape { self.clone() } else { Curve::default() };
        *self = Curve { bytes: true, warm_at: None, trying: [None; LEVELS], ..before };
    }
}

/// A task that ended well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) started: Time,
    pub(crate) now: Time,
    /// Tasks on the layer, summed over the nanoseconds of its run.
    pub(crate) area: f64,
    /// Its bytes, or 1 where tasks are counted.
    pub(crate) work: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Round {
    since: Time,
    samples: u32,
    /// Sums over tasks: run times, tasks at once over them, and these times the work.
    time: f64,
    area: f64,
    moved: f64,
}

/// I/O executor slots that reach a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    pub(crate) all: u32,
    /// Without those that are only for tasks that something else limits: where nothing is known,
    /// a window begins among these.
    pub(crate) blind: u32,
}

/// The window of a function on a layer.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) layer: LayerId,
    level: usize,
    /// How fast this layer is now, where the curve is 1.
    scale: f64,
    /// Whether that is known, in what the curve counts: of a shape the first round tells.
    is_scaled: bool,
    bytes: bool,
    round: Round,
    /// The level that the last round was at.
    seen: Option<usize>,
    /// A level that was not as expected when it was looked at last, by what factor, and the
    /// rate that it would have if that was not the speed.
    doubt: Option<(usize, f64, f64)>,
    /// A window beyond one that turned out to be the best.
    beyond: Option<usize>,
    /// Rounds at the best window since a neighbour was looked at, and until one is.
    settled: u32,
    patience: u32,
    looks_up: bool,
    /// What the last round saw, a second.
    pub(crate) rate: f64,
    /// Tasks of the function that run on the layer.
    pub(crate) running: u32,
}

impl Window {
    /// A window on a layer that is the `ordinal`-th of its kind: where nothing is known, layers
    /// alike begin with different windows.
    pub(crate) fn new(
        layer: LayerId,
        curve: &mut Curve,
        slots: Slots,
        ordinal: usize,
        now: Time,
    ) -> Window {
        let level = curve.best(levels::highest(slots.all)).unwrap_or_else(|| {
            let (middle, highest) = (levels::middle(slots.blind), levels::highest(slots.blind));
            let blind = (middle + STEPS[1] * (ordinal % 3)).min(highest);
            curve.try_out(blind, layer);
            blind
        });
        Window {
            layer,
            level,
            scale: 1.0,
            is_scaled: !curve.is_shape,
            bytes: curve.bytes,
            round: Round { since: now, ..Round::default() },
            seen: None,
            doubt: None,
            beyond: None,
            settled: 0,
            patience: PATIENCE_MIN,
            looks_up: true,
            rate: 0.0,
            running: 0,
        }
    }

    /// How many tasks may run at once.
    pub(crate) fn tasks(&self, slots: u32) -> u32 {
        levels::tasks(self.level).min(slots).max(1)
    }

    /// A task ended. `waiting`: others are ready. Gives whether the window changed.
    pub(crate) fn sample(
        &mut self,
        curve: &mut Curve,
        sample: Sample,
        slots: u32,
        waiting: bool,
    ) -> bool {
        let ran = sample.now.saturating_sub(sample.started) as f64;
        if sample.started < self.round.since || ran <= 0.0 || sample.work <= 0.0 {
            return false;
        }
        let round = &mut self.round;
        round.samples += 1;
        round.time += ran;
        round.area += sample.area;
        round.moved += sample.work * sample.area / ran;
        let at_once = round.area / round.time;
        if f64::from(round.samples) < (at_once / 2.0).max(2.0) {
            return false;
        }
        let rate = round.moved / round.time * 1e9;
        self.round = Round { since: sample.now, ..Round::default() };
        self.end_round(curve, rate, at_once, slots);
        let window = self.tasks(slots);
        let filled = waiting && at_once >= FILLED * f64::from(window);
        self.level = self.next(curve, filled, levels::highest(slots));
        self.tasks(slots) != window
    }

    /// Takes in what a round saw: a point of the curve, or a change of the layer's speed.
    fn end_round(&mut self, curve: &mut Curve, rate: f64, at_once: f64, slots: u32) {
        let highest = levels::highest(slots);
        self.rate = rate;
        let own = at_once / f64::from(levels::tasks(self.level).min(slots));
        let seen = match (EXACT..EXACT.recip()).contains(&own) {
            true => self.level.min(highest),
            false => levels::nearest(at_once).min(highest),
        };
        let moved = self.seen.replace(seen) != Some(seen);
        if self.takes_scale(curve, rate, seen) {
            return;
        }
        let relative = rate / self.scale;
        let expected = match curve.known(seen) {
            true => curve.points[seen].rate,
            false => match curve.implausible(seen, relative) {
                Some(expected) => {
                    curve.note(seen, expected);
                    expected
                }
                None => return curve.note(seen, relative),
            },
        };
        let change = (relative / expected).clamp(CHANGE_MAX.recip(), CHANGE_MAX);
        let large = !(1.0 - SPEED_CHANGE..=1.0 + SPEED_CHANGE).contains(&change);
        if large {
            self.patience = PATIENCE_MIN;
        }
        match (moved, large) {
            (true, false) => {
                self.doubt = None;
                let before = curve.best(highest);
                curve.note(seen, relative);
                self.turned(curve, before, highest);
            }
            (true, true) => self.doubt(curve, seen, change, highest),
            (false, false) => self.scale *= 1.0 + (change - 1.0) / 2.0,
            (false, true) => self.scale *= change,
        }
    }

    /// Whether a round is the first one beside a shape: it tells how fast the layer is.
    fn takes_scale(&mut self, curve: &Curve, rate: f64, seen: usize) -> bool {
        let is_known = self.is_scaled && (self.bytes == curve.bytes || !curve.is_shape);
        self.bytes = curve.bytes;
        if is_known {
            return false;
        }
        let share = Some(curve.points[seen].rate).filter(|_| curve.known(seen));
        self.scale = rate / share.or_else(|| curve.between(seen)).unwrap_or(1.0);
        self.is_scaled = true;
        true
    }

    /// A window is far from what was expected. That is the speed, unless the window before was as
    /// far off in the other direction: then it is that window.
    fn doubt(&mut self, curve: &mut Curve, seen: usize, change: f64, highest: usize) {
        let rate = curve.points[seen].rate * change;
        self.scale *= change;
        let Some((level, factor, rate)) = self.doubt.replace((seen, change, rate)) else { return };
        let undone = factor * change;
        if (1.0 - SPEED_CHANGE..=1.0 + SPEED_CHANGE).contains(&undone) {
            self.doubt = None;
            let before = curve.best(highest);
            curve.points[level].rate = rate;
            self.turned(curve, before, highest);
        }
    }

    /// A known window was looked at again. If another one is the best now, the one beyond it is
    /// looked at next.
    fn turned(&mut self, curve: &Curve, before: Option<usize>, highest: usize) {
        let (Some(before), Some(now)) = (before, curve.best(highest)) else { return };
        if now != before {
            self.patience = PATIENCE_MIN;
            self.beyond = if now < before { now.checked_sub(1) } else { Some(now + 1) };
        }
    }

    /// The level of the next round. `filled`: the window held tasks back.
    fn next(&mut self, curve: &mut Curve, filled: bool, highest: usize) -> usize {
        curve.tried(self.level, self.layer);
        let Some(best) = curve.best(highest) else { return self.level.min(highest) };
        if !filled {
            // Too few tasks to tell: nothing is tried that the window does not hold back.
            return if curve.known(self.level) { best } else { self.level };
        }
        if let Some(level) = self.beyond.take().filter(|level| *level <= highest) {
            if curve.try_out(level, self.layer) {
                return level;
            }
        }
        if let Some(level) = curve.unknown(best, highest).next() {
            // What another layer looks at is waited for.
            return if curve.try_out(level, self.layer) { level } else { best };
        }
        if self.level != best {
            return best;
        }
        self.settled += 1;
        if self.settled < self.patience {
            return best;
        }
        self.settled = 0;
        self.patience = (self.patience * 2).min(PATIENCE_MAX);
        self.looks_up = !self.looks_up;
        let neighbour = if self.looks_up { best.checked_sub(1) } else { Some(best + 1) };
        let neighbour = neighbour.filter(|level| *level <= highest);
        neighbour.filter(|level| curve.try_out(*level, self.layer)).unwrap_or(best)
    }
}

#[cfg(test)]
mod tests {
    //! The controller against curves: always enough tasks, all of one size, shared evenly.

    use alloc::vec::Vec;

    use super::*;

    const LAYER: LayerId = LayerId(0);

    struct Layer {
        curve: Curve,
        window: Window,
        slots: u32,
        now: Time,
    }

    impl Layer {
        fn new(slots: u32) -> Layer {
            Layer::with(Curve::default(), slots)
        }

        /// With what was measured of another one at some windows.
        fn measured(slots: u32, rate: &dyn Fn(f64) -> f64) -> Layer {
            let points = [1, 2, 4, 8, 16, 32, 64].map(|tasks| (tasks, rate(tasks.into()) as u64));
            Layer::with(Curve::measured(&points), slots)
        }

        fn with(curve: Curve, slots: u32) -> Layer {
            let mut curve = Curve { bytes: true, ..curve };
            let window = Window::new(LAYER, &mut curve, Slots { all: slots, blind: slots }, 0, 0);
            Layer { curve, window, slots, now: 0 }
        }

        /// A window full of tasks begins and ends, `size` bytes each: its size.
        fn generation(&mut self, rate: &dyn Fn(f64) -> f64, size: f64) -> u32 {
            let tasks = self.window.tasks(self.slots);
            let started = self.now;
            let ran = size * f64::from(tasks) / rate(f64::from(tasks)) * 1e9;
            self.now += ran as u64;
            let area = f64::from(tasks) * ran;
            for _ in 0..tasks {
                let sample = Sample { started, now: self.now, area, work: size };
                self.window.sample(&mut self.curve, sample, self.slots, true);
            }
            tasks
        }

        fn generations(&mut self, count: usize, rate: &dyn Fn(f64) -> f64) -> Vec<u32> {
            (0..count).map(|_| self.generation(rate, 1e8)).collect()
        }
    }

    /// Rises to its peak, then falls.
    fn peak(at: f64) -> impl Fn(f64) -> f64 {
        move |tasks| 4e8 * if tasks < at { (tasks / at).min(1.0) } else { at / tasks }
    }

    /// The mean rate over the best rate, over the last generations.
    fn share(windows: &[u32], rate: &dyn Fn(f64) -> f64, best: f64) -> f64 {
        let times: f64 = windows.iter().map(|w| f64::from(*w) / rate(f64::from(*w))).sum();
        let work: f64 = windows.iter().map(|w| f64::from(*w)).sum();
        work / times / best
    }

    #[test]
    fn it_finds_a_peak_wherever_it_is() {
        for at in [1.0, 4.0, 8.0, 32.0, 64.0, 181.0] {
            let rate = peak(at);
            let mut layer = Layer::new(225);
            let windows = layer.generations(200, &rate);
            let reached = share(&windows[100..], &rate, 4e8);
            assert!(reached > 0.97, "{reached} of the peak at {at}: {windows:?}");
            let settled = windows.iter().position(|window| f64::from(*window) == at);
            assert!(settled.is_some_and(|first| first < 14), "{at}: {windows:?}");
        }
    }

    #[test]
    fn it_begins_where_a_measurement_was_best_whatever_the_speed_is_now() {
        for speed in [0.01, 1.0, 3.0] {
            let rate = |tasks: f64| speed * peak(32.0)(tasks);
            let windows = Layer::measured(225, &peak(32.0)).generations(100, &rate);
            assert_eq!(windows[0], 32);
            let reached = share(&windows, &rate, 4e8 * speed);
            assert!(reached > 0.98, "{reached} from the first task on: {windows:?}");
        }
        let layer = Layer::measured(6, &peak(32.0));
        assert_eq!(layer.window.tasks(layer.slots), 4, "of what there are slots for");
    }

    #[test]
    fn a_measurement_that_holds_no_more_is_left_behind() {
        for (then, now) in [(4.0, 32.0), (64.0, 8.0), (8.0, 11.0)] {
            let rate = peak(now);
            let windows = Layer::measured(225, &peak(then)).generations(400, &rate);
            let reached = share(&windows[200..], &rate, 4e8);
            assert!(reached > 0.95, "{reached}, {then} to {now}: {windows:?}");
        }
    }

    #[test]
    fn a_measurement_in_bytes_holds_where_tasks_are_counted_and_back() {
        let mut layer = Layer::measured(225, &peak(32.0));
        layer.curve.bytes = false;
        layer.window.bytes = false;
        let rate = |tasks: f64| peak(32.0)(tasks) / 1e8;
        assert_eq!([0; 3].map(|_| layer.generation(&rate, 1.0))[0], 32);
        layer.curve.count_bytes();
        layer.generation(&peak(32.0), 1e8);
        assert!((0.99..1.01).contains(&(layer.window.scale / 4e8)), "{}", layer.window.scale);
        let windows = layer.generations(50, &peak(32.0));
        assert!(share(&windows, &peak(32.0), 4e8) > 0.97, "{windows:?}");
    }

    #[test]
    fn of_a_flat_curve_it_takes_the_lowest_window() {
        let rate = |tasks: f64| 4e8 * (tasks / 8.0).min(1.0);
        let windows = Layer::new(225).generations(200, &rate);
        assert_eq!(windows.iter().skip(20).filter(|window| **window > 11).count(), 0);
        assert!(share(&windows[20..], &rate, 4e8) > 0.98);
    }

    #[test]
    fn a_layer_that_halves_its_speed_keeps_its_window() {
        let mut layer = Layer::new(225);
        let rate = peak(32.0);
        layer.generations(100, &rate);
        let slow = |tasks: f64| peak(32.0)(tasks) / 2.0;
        let windows = layer.generations(100, &slow);
        assert!(share(&windows, &slow, 2e8) > 0.97, "{windows:?}");
    }

    #[test]
    fn a_peak_that_moves_is_followed() {
        let mut layer = Layer::new(225);
        layer.generations(100, &peak(64.0));
        let rate = |tasks: f64| peak(16.0)(tasks) / 2.0;
        let windows = layer.generations(120, &rate);
        assert!(share(&windows[60..], &rate, 2e8) > 0.95, "{windows:?}");
    }

    #[test]
    fn sizes_that_vary_do_not_matter() {
        let rate = peak(16.0);
        let mut layer = Layer::new(225);
        let mut size = 1u64;
        let windows: Vec<u32> = (0..200)
            .map(|_| {
                size = size.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                layer.generation(&rate, 1e6 * (1 + (size >> 33) % 1000) as f64)
            })
            .collect();
        assert!(share(&windows[20..], &rate, 4e8) > 0.97, "{windows:?}");
    }

    #[test]
    fn noise_of_a_tenth_costs_little() {
        let rate = peak(16.0);
        let mut layer = Layer::new(225);
        let mut state = 7u64;
        let mut windows = Vec::new();
        for _ in 0..400 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let noise = 0.9 + 0.2 * ((state >> 33) % 1000) as f64 / 1000.0;
            windows.push(layer.generation(&|tasks| rate(tasks) * noise, 1e8));
        }
        assert!(share(&windows[100..], &rate, 4e8) > 0.9, "{windows:?}");
    }

    #[test]
    fn windows_stay_within_the_slots() {
        for slots in [1, 2, 3, 8, 225] {
            let windows = Layer::new(slots).generations(100, &|tasks| 1e6 * tasks);
            assert!(windows.iter().all(|window| (1..=slots).contains(window)), "{windows:?}");
            assert_eq!(windows.last(), Some(&slots), "more is better up to the last slot");
        }
    }

    #[test]
    fn too_few_tasks_change_nothing() {
        let mut layer = Layer::new(225);
        let window = layer.window.tasks(225);
        for _ in 0..100 {
            let started = layer.now;
            layer.now += 1_000_000;
            let sample = Sample { started, now: layer.now, area: 1e6, work: 1e8 };
            layer.window.sample(&mut layer.curve, sample, 225, false);
        }
        assert_eq!(layer.window.tasks(225), window);
    }

    #[test]
    fn layers_alike_look_at_different_windows() {
        let mut curve = Curve::default();
        let new = |ordinal, curve: &mut Curve| {
            let slots = Slots { all: 225, blind: 225 };
            Window::new(LayerId(ordinal as u32), curve, slots, ordinal, 0).tasks(225)
        };
        assert_eq!([0, 1, 2, 3].map(|at| new(at, &mut curve)), [16, 23, 32, 16]);
        curve.note(levels::nearest(64.0), 1.0);
        assert_eq!(new(5, &mut curve), 64, "something is known: no window is guessed");
        assert!(curve.try_out(3, LayerId(0)) && !curve.try_out(3, LayerId(1)));
        curve.tried(3, LayerId(0));
        assert!(curve.try_out(3, LayerId(1)));
    }
}
