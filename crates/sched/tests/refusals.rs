//! What is not taken, and that nothing is changed by it.

mod driver;

use driver::*;
use sched::{
    Access, Config, DatumKind, Direction, LayerId, Refusal, Region, Span, Target, TaskSpec,
};

fn part(start: u64, end: u64) -> Region {
    Region::Range(Span { start, end })
}

/// The refusal of a task, after which all is as it was.
fn refusal(driver: &mut Driver, spec: TaskSpec) -> Refusal {
    let before = (driver.sched.live_tasks(), driver.sched.live_versions(), driver.sched.counts());
    let refusal = driver.try_submit(spec).err().expect("refused");
    let after = (driver.sched.live_tasks(), driver.sched.live_versions(), driver.sched.counts());
    assert_eq!(before, after, "a refusal changes nothing");
    refusal
}

#[test]
fn more_processors_than_any_node_has() {
    let mut driver = Driver::new(Config { processors: vec![2, 4], ..config() });
    let spec = TaskSpec { cpus: 5, ..driver.compute("wide") };
    let expected = Refusal::TooManyProcessors { asked: 5, most: 4 };
    assert_eq!(refusal(&mut driver, spec), expected);
    driver.submit(TaskSpec { cpus: 4, ..driver.compute("just fits") });
}

#[test]
fn a_constraint_that_no_layer_could_ever_satisfy() {
    let layers = vec![layer("disk", 100, None), layer("flash", 500, Some(50))];
    let mut driver = Driver::with_io(layers, 9);
    let wide = driver.io("wide", 501, 0);
    let nearest = "flash (bandwidth, bytes/s: 500)".to_string();
    let asked = constraint(501, 0);
    assert_eq!(refusal(&mut driver, wide), Refusal::NoLayer { asked, nearest });
    let large = driver.io("fast and large", 101, 51);
    let nearest = "flash (capacity, bytes: 50)".to_string();
    let asked = constraint(101, 51);
    assert_eq!(refusal(&mut driver, large), Refusal::NoLayer { asked, nearest });
    let named = TaskSpec { layer: Some(LayerId(0)), ..driver.io("named", 101, 0) };
    let nearest = "disk (bandwidth, bytes/s: 100)".to_string();
    let asked = constraint(101, 0);
    assert_eq!(refusal(&mut driver, named), Refusal::NoLayer { asked, nearest });
    let unknown = TaskSpec { layer: Some(LayerId(7)), ..driver.io("unknown", 1, 0) };
    assert!(matches!(refusal(&mut driver, unknown), Refusal::NoLayer { .. }));
}

#[test]
fn two_uses_of_the_same_region_with_a_write_among_them() {
    let mut driver = Driver::new(config());
    let (value, file) = (driver.value_datum(), driver.file());
    let accesses = vec![uses(value, Direction::In), uses(file, Direction::In)];
    let twice = [accesses.clone(), vec![uses(value, Direction::InOut)]].concat();
    let spec = TaskSpec { accesses: twice, ..driver.compute("a") };
    assert_eq!(refusal(&mut driver, spec), Refusal::SelfConflict { accesses: (0, 2) });
    let target = Target::Datum(file);
    let write = Access { target, region: part(5, 9), direction: Direction::Out };
    let spec =
        TaskSpec { accesses: [accesses, vec![write.clone()]].concat(), ..driver.compute("a") };
    assert_eq!(refusal(&mut driver, spec), Refusal::SelfConflict { accesses: (1, 2) });
    let beside = Access { region: part(0, 5), direction: Direction::InOut, ..write.clone() };
    let twice = vec![uses(value, Direction::In), uses(value, Direction::In), write, beside];
    driver.submit(TaskSpec { accesses: twice, ..driver.compute("beside each other") });
}

#[test]
fn regions_that_make_no_sense() {
    let mut driver = Driver::new(config());
    let (value, file) = (driver.value_datum(), driver.file());
    let access = |target, region| Access { target, region, direction: Direction::In };
    let span = Span { start: 0, end: 4 };
    let bad = [
        access(Target::Datum(value), part(0, 4)),
        access(Target::Datum(file), part(4, 4)),
        access(Target::Datum(file), part(5, 4)),
        access(Target::Datum(file), Region::Box([].into())),
        access(Target::Datum(file), Region::Box(vec![span; 33].into())),
    ];
    for access in bad {
        let accesses = vec![uses(value, Direction::In), access];
        let spec = TaskSpec { accesses, ..driver.compute("a") };
        assert_eq!(refusal(&mut driver, spec), Refusal::BadRegion { access: 1 });
    }
    let square = Region::Box(vec![span; 2].into());
    let both =
        vec![access(Target::Datum(file), part(0, 4)), access(Target::Datum(file), square.clone())];
    let spec = TaskSpec { accesses: both, ..driver.compute("a") };
    assert_eq!(refusal(&mut driver, spec), Refusal::BadRegion { access: 1 });
    let accesses = vec![access(Target::Datum(file), square)];
    driver.submit(TaskSpec { accesses, ..driver.compute("two dimensions from now on") });
    let spec =
        TaskSpec { accesses: vec![access(Target::Datum(file), part(0, 4))], ..driver.compute("a") };
    assert_eq!(refusal(&mut driver, spec), Refusal::BadRegion { access: 0 });
}

#[test]
fn what_is_not_there_any_more() {
    let mut driver = Driver::new(config());
    let value = driver.sched.add_value(8);
    let datum = driver.value_datum();
    assert_eq!(driver.forget(value), [discard(value)]);
    let spec = TaskSpec { accesses: vec![reads(value)], ..driver.compute("a") };
    assert_eq!(refusal(&mut driver, spec), Refusal::Stale { access: 0 });
    assert!(!driver.sched.hold(value));
    assert_eq!(driver.sched.add_datum(DatumKind::Value, Some(value)), None);
    assert_eq!(driver.sched.add_datum(DatumKind::InPlace, Some(value)), None);
    driver.sched.drop_datum(datum, &mut Vec::new());
    let spec = TaskSpec { accesses: vec![uses(datum, Direction::In)], ..driver.compute("a") };
    assert_eq!(refusal(&mut driver, spec), Refusal::Stale { access: 0 });
    assert_eq!(driver.sched.current(datum), None);
}

#[test]
fn a_write_to_a_version_by_name() {
    let mut driver = Driver::new(config());
    let value = driver.sched.add_value(8);
    for direction in
        [Direction::Out, Direction::InOut, Direction::Concurrent, Direction::Commutative]
    {
        let access = Access { direction, ..reads(value) };
        let spec = TaskSpec { accesses: vec![access], ..driver.compute("a") };
        assert_eq!(refusal(&mut driver, spec), Refusal::BadDirection { access: 0 });
    }
}
