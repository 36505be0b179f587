//! A probe of a folder, with tiny sizes.

mod support;

use std::path::Path;
use std::time::Duration;

use runtime::probe::{Kind, Options, Probe, ProbeError};
use runtime::storage::{Scope, Storage};
use support::Folder;

fn tiny() -> Options {
    Options {
        block_bytes: vec![4096, 16384],
        writers: vec![1, 2, 3],
        rounds: 5,
        space_bytes: 200_000,
        data_bytes: 4_000_000,
        time: Duration::from_secs(60),
    }
}

fn whole(folder: &Path, options: &Options) -> Result<Probe, ProbeError> {
    let mut probe = Probe::start(folder, options)?;
    while probe.step()? {}
    Ok(probe)
}

#[test]
fn all_is_measured_within_the_data_and_nothing_is_left() {
    let folder = Folder::new();
    let mut probe = Probe::start(&folder.0, &tiny()).unwrap();
    let (mut steps, all) = (0, probe.progress().1);
    while probe.step().unwrap() {
        steps += 1;
        assert_eq!(probe.progress(), (steps, all));
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0, "no file has a name");
    }
    assert_eq!(probe.progress(), (all, all));
    assert!(!probe.step().unwrap());
    let outcome = probe.outcome();
    assert_eq!(outcome.figures.len(), 12);
    assert!(outcome.figures.iter().all(|figure| figure.bandwidth > 0.0));
    assert!(outcome.bytes > 200_000 / 2 && outcome.bytes <= probe.plan().data_bytes_max());
    for (kind, side) in [(Kind::Read, outcome.read.unwrap()), (Kind::Write, outcome.write.unwrap())]
    {
        for figure in outcome.figures.iter().filter(|figure| figure.cell.kind == kind) {
            let is_in_curve = figure.cell.block_bytes == side.knee.block_bytes;
            assert_eq!(figure.rounds, if is_in_curve { 3 } else { 2 }, "{figure:?}");
        }
        let writers: Vec<_> = side.curve.points().iter().map(|point| point.writers).collect();
        assert_eq!(writers, [1, 2, 3]);
        assert!(
            writers.contains(&side.knee.writers) && side.knee.writers <= side.knee.best.writers
        );
    }
}

#[test]
fn the_layer_is_read_back() {
    let folder = Folder::new();
    let probe = whole(&folder.0, &tiny()).unwrap();
    let layer = probe.layer("scratch", Scope::Node, true);
    let storage = Storage::parse(&layer.to_toml(), Path::new("storage.toml")).unwrap();
    assert_eq!(storage.layers, std::slice::from_ref(&layer));
    assert_eq!(layer.limit, layer.measured);
    assert_eq!(layer.limit.unwrap().points().len(), 3);
    assert!(layer.read_bandwidth.is_some() && layer.write_bandwidth.is_some());
    let plain = probe.layer("scratch", Scope::Node, false);
    assert_eq!((plain.limit, plain.measured), (None, layer.measured));
}

#[test]
fn the_time_ends_it() {
    let folder = Folder::new();
    let short = Options { time: Duration::from_nanos(1), ..tiny() };
    let error = whole(&folder.0, &short).expect_err("it cannot be that quick");
    assert!(matches!(error, ProbeError::Slow { .. }), "{error}");
    assert!(error.to_string().contains("--seconds"), "{error}");
}

#[test]
fn where_nothing_can_be_measured_it_says_why() {
    let folder = Folder::new();
    let gone = whole(&folder.0.join("gone"), &tiny()).expect_err("no folder").to_string();
    assert!(gone.contains("gone: cannot look: No such file"), "{gone}");
    let file = folder.0.join("file");
    std::fs::write(&file, "").unwrap();
    let file = whole(&file, &tiny()).expect_err("a file").to_string();
    assert!(file.contains("Not a directory"), "{file}");
    let huge = Options { space_bytes: 1 << 60, data_bytes: u64::MAX, ..tiny() };
    let huge = whole(&folder.0, &huge).expect_err("no such disk");
    assert!(matches!(huge, ProbeError::Space { .. }), "{huge}");
    assert!(huge.to_string().contains("--space"), "{huge}");
    let closed = whole(Path::new("/proc"), &tiny()).expect_err("no files there");
    assert!(matches!(closed, ProbeError::Space { .. } | ProbeError::System { .. }), "{closed}");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn the_best_is_the_best_of_all_blocks() {
    let folder = Folder::new();
    let probe = whole(&folder.0, &Options { writers: vec![2], rounds: 2, ..tiny() }).unwrap();
    let outcome = probe.outcome();
    let best = |kind| {
        let figures = outcome.figures.iter().filter(|figure| figure.cell.kind == kind);
        figures.map(|figure| figure.bandwidth).fold(0.0, f64::max).round() as u64
    };
    assert_eq!(outcome.write.as_ref().unwrap().knee.best.bandwidth, best(Kind::Write));
    assert_eq!(outcome.read.as_ref().unwrap().knee.best.bandwidth, best(Kind::Read));
}
