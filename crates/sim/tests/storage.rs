//! The storage model against sums that can be done by hand, and the published experiments.

use sim::experiment::applications;
use sim::experiment::cluster::{run, Policy, Storage};
use sim::storage::{Curve, Disk, Weather};

const S: u64 = 1_000_000_000;

fn curve() -> Curve {
    Curve::new(&[(1.0, 100.0), (2.0, 150.0), (4.0, 150.0), (8.0, 50.0)])
}

fn disk() -> Disk {
    Disk::new(curve(), Weather::default())
}

/// Lets a disk go on to its next change; the task that ended then.
fn next(disk: &mut Disk) -> Option<(u64, usize)> {
    loop {
        let now = disk.next()?;
        if let Some(task) = disk.ended(now) {
            return Some((now / (S / 1000), task));
        }
    }
}

#[test]
fn a_curve_has_straight_lines_and_flat_ends() {
    let rates = [1, 2, 3, 4, 6, 8, 100].map(|tasks| curve().rate(tasks));
    assert_eq!(rates, [100.0, 150.0, 150.0, 150.0, 100.0, 50.0, 50.0]);
}

#[test]
fn a_fitted_curve_goes_on_as_it_came_down() {
    let inverse = Curve::fitted(&[(1.0, 10.0), (2.0, 80.0), (4.0, 40.0), (8.0, 20.0)]);
    let rates = [1, 2, 3, 8, 16, 500].map(|tasks| inverse.rate(tasks));
    for (rate, expected) in rates.iter().zip([10.0, 80.0, 60.0, 20.0, 10.0, 0.32]) {
        assert!((rate / expected - 1.0).abs() < 0.02, "{rates:?}");
    }
    for flat in
        [&[(1.0, 5.0)][..], &[(1.0, 5.0), (2.0, 7.0), (4.0, 7.0)], &[(1.0, 5.0), (2.0, 7.0)]]
    {
        let last = flat[flat.len() - 1].1;
        assert!((Curve::fitted(flat).rate(500) - last).abs() < 1e-9, "has not come down");
    }
}

#[test]
fn tasks_share_what_the_disk_moves_at_their_number() {
    let mut disk = disk();
    disk.begin(0, 7, 100);
    assert_eq!(next(&mut disk), Some((1000, 7)), "alone: 100 a second");
    disk.begin(2 * S, 1, 150);
    disk.begin(2 * S, 2, 225);
    assert_eq!(next(&mut disk), Some((4000, 1)), "75 a second each");
    assert_eq!(next(&mut disk), Some((4750, 2)), "75 were left, for one alone");
    assert_eq!(disk.busy_ns / (S / 1000), 3750);
    assert!((disk.moved - 475.0).abs() < 1e-3, "{}", disk.moved);
}

#[test]
fn one_that_comes_later_slows_those_that_are_there() {
    let mut disk = disk();
    disk.begin(0, 1, 175);
    disk.begin(S, 2, 75);
    assert_eq!(next(&mut disk), Some((2000, 1)), "100 alone, then 75 of 150");
    assert_eq!(next(&mut disk), Some((2000, 2)));
}

#[test]
fn a_disk_that_halves_its_speed_takes_twice_as_long_from_then_on() {
    let weather = Weather { seed: 0, noise: 0.0, change: Some((S, 0.5)) };
    let mut disk = Disk::new(curve(), weather);
    disk.begin(0, 1, 200);
    assert_eq!(next(&mut disk), Some((3000, 1)));
}

#[test]
fn noise_is_the_same_for_the_same_seed_and_stays_within_its_share() {
    let end = |seed| {
        let mut disk = Disk::new(curve(), Weather { seed, noise: 0.1, change: None });
        disk.begin(0, 1, 10_000);
        next(&mut disk)
    };
    assert_eq!(end(1), end(1));
    assert_ne!(end(1), end(2));
    let (ms, _) = end(1).expect("it ends");
    assert!((90_000..=112_000).contains(&ms), "{ms}");
}

/// As in the experiment, and smaller in nothing: it takes a moment.
fn hmmer(policy: Policy) -> f64 {
    let points = [(1.0, 140e6), (8.0, 350e6), (28.0, 438e6), (34.0, 450e6), (48.0, 380e6)];
    let mut points = points.to_vec();
    points.extend([(56.0, 335e6), (112.0, 215e6), (225.0, 125e6), (500.0, 55e6)]);
    let storage = Storage {
        bandwidth: 450_000_000,
        shared: false,
        curve: Curve::new(&points),
        weather: Weather::default(),
    };
    run(&applications::hmmer(1), policy, &storage).total_ns as f64
}

#[test]
fn the_published_shape() {
    let fixed = |mb: u64| hmmer(Policy::Static(mb * 1_000_000));
    let (baseline, unconstrained) = (hmmer(Policy::Baseline), hmmer(Policy::Unconstrained));
    let adaptive = hmmer(Policy::Tuned(sched::Tuning::Adaptive));
    let (low, middle, high) = (fixed(2), fixed(16), fixed(256));
    assert!(unconstrained > baseline, "congestion costs more than overlap brings");
    assert!(middle < low && middle < high, "{low} {middle} {high}");
    assert!(middle < 0.7 * baseline, "{middle} of {baseline}");
    assert!(adaptive < 1.08 * middle, "{adaptive} against {middle}");
}
