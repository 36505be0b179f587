//! Files on layers, the trace, figures.

mod support;

use std::path::{Path, PathBuf};

use runtime::ops::catalog::Fate;
use runtime::storage::Curve;
use runtime::tiers::recovery;
use runtime::trace::RecordKind;
use runtime::{
    Constraint, DatumId, Direction, FileError, FileUse, GraphEnd, Handle, Kind, Options, Overrides,
    Refusal, SpawnError, Storage, Tuning,
};
use support::{entered, options, Folder, Rig};

/// Two layers in a folder: a fast one and a slow one.
fn layered(folder: &Folder) -> Options {
    for layer in ["fast", "slow"] {
        std::fs::create_dir(folder.0.join(layer)).unwrap();
    }
    let text = "[[layer]]\nname='fast'\npath='fast'\nbandwidth='100MB/s'\ncapacity='1MB'\n\
                [[layer]]\nname='slow'\npath='slow'\nbandwidth='10MB/s'\nlimit='5MB/s'\n";
    let file = folder.0.join("storage.toml");
    std::fs::write(&file, text).unwrap();
    Options { storage: Storage::read(&file).unwrap(), record: true, ..options(2) }
}

fn use_file(rig: &Rig, name: &str, word: &str, datum: DatumId, direction: Direction) -> Handle {
    let mut call = rig.call(name, word, vec![]);
    call.files.push(FileUse { datum, direction });
    rig.submit(call).returns.pop().unwrap()
}

#[test]
fn a_file_is_written_then_read() {
    let folder = Folder::new();
    let rig = Rig::with(layered(&folder));
    let home = folder.0.canonicalize().unwrap().join("slow/out.txt");
    let file = rig.session.file(&home, true).unwrap();
    assert!(!file.known && file.place == home);
    let wrote = use_file(&rig, "io:write", "hello", file.datum, Direction::Out);
    let read = use_file(&rig, "io:read", "", file.datum, Direction::In);
    assert_eq!(rig.text(&read), "hello");
    let place = PathBuf::from(rig.text(&wrote));
    assert!(place.starts_with(folder.0.canonicalize().unwrap().join("fast")), "{place:?}");
    assert!(place.ends_with("1-out.txt") && !home.exists());
    assert_eq!(rig.session.place_of(file.datum), Some(place.clone()));
    assert_eq!(rig.session.layer_of(&place), Some((0, None)));
    let again = rig.session.file(&folder.0.join("slow/x/../out.txt"), true).unwrap();
    assert_eq!((again.datum, again.known), (file.datum, true));
    let written = rig.session.current(file.datum).unwrap();
    assert_eq!(rig.text(&written), "none", "a file has no value");
    assert_eq!(rig.session.statistics().bytes_written, 5);
    let update = use_file(&rig, "io:write", "again", file.datum, Direction::InOut);
    assert_eq!(PathBuf::from(rig.text(&update)), place, "it is changed where it is");
    assert_eq!(rig.text(&use_file(&rig, "read", "", file.datum, Direction::In)), "again");
    rig.session.stop(false);
    assert_eq!(std::fs::read_to_string(&home).unwrap(), "again");
    let left = [&place, &folder.0.join("fast/.alongside"), &folder.0.join("slow/.alongside")];
    assert!(left.iter().all(|path| !path.exists()), "nothing is left: {left:?}");
    assert_eq!(rig.session.unsettled(), vec![]);
}

#[test]
fn a_file_that_cannot_come_home_is_told_and_recovered() {
    let folder = Folder::new();
    let rig = Rig::with(layered(&folder));
    let home = folder.0.canonicalize().unwrap().join("slow/taken/out.txt");
    let file = rig.session.file(&home, true).unwrap();
    rig.text(&use_file(&rig, "io:write", "hello", file.datum, Direction::Out));
    std::fs::write(folder.0.join("slow/taken"), "a file where a folder has to be").unwrap();
    rig.session.stop(false);
    let [one] = &rig.session.unsettled()[..] else { panic!("one is still away") };
    assert_eq!((&one.home, one.place.is_file()), (&home, true));
    assert!(one.why.contains("slow/taken"), "{}", one.why);
    let here = std::env::current_dir().unwrap();
    let sessions = recovery::sessions(&here).unwrap();
    let ours = |left: &&recovery::Left| left.files.iter().any(|file| file.home == home);
    let left = sessions.iter().find(ours).unwrap();
    assert!(!left.alive && left.files[0].whole);
    std::fs::remove_file(folder.0.join("slow/taken")).unwrap();
    let recovered = recovery::recover(&left.folder, false, &mut |_| {}).unwrap();
    assert_eq!((recovered.len(), recovered[0].fate), (1, Fate::BringHome));
    assert_eq!(std::fs::read_to_string(&home).unwrap(), "hello");
    assert!(!left.folder.exists() && !one.place.exists());
}

#[test]
fn files_that_were_there_and_paths_that_name_none() {
    let folder = Folder::new();
    let rig = Rig::with(layered(&folder));
    let path = folder.0.join("slow/old");
    std::fs::write(&path, "from before").unwrap();
    let old = rig.session.file(&path, false).unwrap();
    assert!(old.known);
    assert_eq!(rig.session.layer_of(&old.place), Some((1, Some(Curve::flat(5_000_000)))));
    assert_eq!(rig.text(&use_file(&rig, "io:read", "", old.datum, Direction::In)), "from before");
    assert_eq!(rig.text(&rig.session.current(old.datum).unwrap()), "none");
    assert!(matches!(rig.session.file(Path::new("."), false), Err(FileError::Empty { .. })));
    rig.session.forget_datum(old.datum);
    let mut call = rig.call("io:read", "", vec![]);
    call.files.push(FileUse { datum: old.datum, direction: Direction::In });
    assert_eq!(rig.session.spawn(call).unwrap_err(), SpawnError::NotAFile { file: 0 });
}

#[test]
fn what_does_not_fit_the_fast_layer_goes_to_the_slow_one() {
    let folder = Folder::new();
    let rig = Rig::with(layered(&folder));
    let home = folder.0.canonicalize().unwrap().join("slow/big");
    let file = rig.session.file(&home, true).unwrap();
    let constraint = Constraint { bandwidth: 1_000_000, size: 2_000_000, ..Constraint::default() };
    let overrides = Overrides { constraint: Some(constraint), ..Overrides::default() };
    let mut call = runtime::Call { overrides, ..rig.call("io:write", "x", vec![]) };
    call.files.push(FileUse { datum: file.datum, direction: Direction::Out });
    assert_eq!(PathBuf::from(rig.text(&rig.submit(call.clone()).returns[0])), home);
    let constraint = Constraint { size: u64::MAX, ..Constraint::default() };
    call.overrides.constraint = Some(Constraint { bandwidth: 1 << 40, ..constraint });
    let refused = rig.session.spawn(call).unwrap_err();
    assert!(matches!(refused, SpawnError::Refused(Refusal::NoLayer { .. })), "{refused}");
}

#[test]
fn the_trace_tells_what_tuned_tasks_are_granted() {
    for tuning in [Tuning::Adaptive, Tuning::Auto { bounds: None }] {
        let folder = Folder::new();
        let rig = Rig::with(layered(&folder));
        let pipe = folder.pipe("gate");
        let overrides = Overrides { tuning: Some(tuning), ..Overrides::default() };
        let tuned = rig.with_overrides("io:gate", pipe.to_str().unwrap(), overrides);
        drop(entered(&pipe));
        rig.text(&tuned);
        rig.drain();
        let events = rig.session.events();
        let granted: Vec<_> =
            events.iter().filter(|it| it.kind == RecordKind::Granted).map(|it| it.amount).collect();
        assert!(granted.len() == 2 && granted[0] > 0 && granted[1] == 0, "{tuning:?}: {granted:?}");
        rig.session.stop(true);
    }
}

#[test]
fn the_trace_tells_what_happened() {
    let folder = Folder::new();
    let rig = Rig::with(layered(&folder));
    let first = rig.run("add", "1", &[]);
    let pipe = folder.pipe("gate");
    let constraint = Constraint { bandwidth: 7_000_000, ..Constraint::default() };
    let overrides = Overrides { constraint: Some(constraint), ..Overrides::default() };
    let gate = rig.with_overrides("io:gate", pipe.to_str().unwrap(), overrides);
    drop(entered(&pipe));
    let named = Overrides { name: Some("the \"sum\"".into()), ..Overrides::default() };
    let inputs = [&first, &first].map(|it| runtime::Input::Handle(it.clone()));
    let call = runtime::Call { overrides: named, ..rig.call("add", "0", inputs.into()) };
    let sum = rig.submit(call);
    assert_eq!(rig.text(&sum.returns[0]), "2");
    rig.text(&gate);
    let bad = rig.run("fail", "x", &[]);
    rig.wait_all(std::slice::from_ref(&bad));
    rig.drain();
    let task = |handle: &Handle| handle.task().unwrap().to_bits();
    let events = rig.session.events();
    let granted: Vec<_> =
        events.iter().filter(|it| it.kind == RecordKind::Granted).map(|it| it.amount).collect();
    assert_eq!(granted, [7_000_000, 0]);
    let ran = events.iter().filter(|it| it.kind == RecordKind::Ran).count();
    assert_eq!(ran, 4);
    let graph = rig.session.graph().unwrap();
    assert_eq!(graph.edges, [(task(&first), task(&sum.returns[0]))]);
    let node = |handle: &Handle| graph.nodes.iter().find(|it| it.task == task(handle)).unwrap();
    assert_eq!((&*node(&sum.returns[0]).name, node(&gate).kind), ("the \"sum\"", Kind::Io));
    assert_eq!((node(&bad).end, node(&gate).end), (GraphEnd::Failed, GraphEnd::Done));
    rig.session.stop(true);
    let file = folder.0.join("trace.json");
    rig.session.export_trace(&file).unwrap();
    let json = std::fs::read_to_string(&file).unwrap();
    for part in ["the \\\"sum\\\"", "fast: granted (MB/s)", "\"ph\":\"s\"", "I/O executor 0"] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
    let error = rig.session.export_trace(Path::new("/no/such/folder/t.json")).unwrap_err();
    assert!(error.contains("/no/such/folder/t.json"), "{error}");
}

#[test]
fn without_recording_the_latest_is_kept() {
    let rig = Rig::new(1);
    let all: Vec<_> = (0..100).map(|_| rig.run("echo", "x", &[])).collect();
    rig.wait_all(&all);
    rig.drain();
    let ran = rig.session.events().iter().filter(|it| it.kind == RecordKind::Ran).count();
    assert_eq!(ran, 100);
    let graph = rig.session.graph().unwrap();
    assert_eq!((graph.nodes.len(), graph.edges.len()), (100, 0));
    let figures = rig.session.statistics();
    let echo = &figures.functions[0];
    assert_eq!((echo.submitted, echo.done, echo.runs), (100, 100, 100));
    assert!(echo.mean_ns().is_some_and(|ns| ns > 0) && echo.cpu_ns > 0);
    assert_eq!(figures.hidden_share(), None);
}
