//! What a C program leaves that is killed, or whose files cannot come home: after `recover` every
//! version that was reported done is there, whole, or a later one.

mod build;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use runtime::tiers::recovery::{recover, sessions};

/// After how many versions the program is killed: at every phase of its moves, in the end.
const KILLED_AFTER: [usize; 12] = [1, 2, 3, 5, 8, 13, 21, 34, 55, 70, 71, 72];
/// The one file that the program changes in place.
const CHANGED: &str = "file-5";
/// Bytes of a version.
const BYTES: usize = 30000;

/// As `pattern` in check.h.
fn pattern(place: u64, seed: u64) -> u8 {
    let mixed = (place + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(seed.wrapping_mul(0xd1b5_4a32_d192_ed03));
    (mixed >> 56) as u8
}

/// The number of a version that is whole.
fn version(path: &Path) -> u64 {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(bytes.len(), BYTES, "{}", path.display());
    let number = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    let wrong = (8..BYTES).find(|place| bytes[*place] != pattern(*place as u64, number));
    assert_eq!(wrong, None, "{}: version {number}", path.display());
    number
}

/// Runs the program in a folder and kills it; the last version of each file that it reported done.
fn run_and_kill(
    program: &Path,
    words: &[&str],
    folder: &Path,
    after: usize,
) -> BTreeMap<String, u64> {
    let mut command = Command::new(program);
    let mut child = command
        .args(words)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program was just compiled");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut done = BTreeMap::new();
    let mut note = |line: String| {
        let (file, number) = line.split_once(' ').expect("a file and a version");
        let number = number.parse().expect("a number");
        let before = done.insert(file.to_owned(), number).unwrap_or(0);
        assert!(before < number, "file {file}: {number} after {before}");
    };
    for _ in 0..after {
        note(lines.next().expect("it goes on until it is killed").expect("a line"));
    }
    child.kill().expect("it runs");
    child.wait().expect("it was killed");
    lines.for_each(|line| note(line.expect("a line")));
    done
}

/// The one folder whose name begins so.
fn folder_of(above: &Path, prefix: &str) -> PathBuf {
    let entries = std::fs::read_dir(above).expect("the folder of the test");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let begins = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
    };
    paths.into_iter().find(begins).expect("the program made it")
}

/// A new folder of a test.
fn new_folder(name: &str) -> PathBuf {
    let folder = build::scratch_folder().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// Recovers the one session that a program left in a folder, and looks whether all is tidy then.
/// Gives the folder of the own paths, and the names of files that may be half changed.
fn recover_in(folder: &Path) -> (PathBuf, Vec<String>) {
    let left = sessions(folder).expect("the catalogs can be read");
    assert_eq!(left.len(), 1, "one session: {left:?}");
    assert!(!left[0].alive, "it is over");
    let mut half = Vec::new();
    let mut tell = |home: &Path| {
        half.push(home.file_name().expect("a file").to_string_lossy().into_owned());
    };
    let recovered = recover(&left[0].folder, false, &mut tell).expect("it is over");
    for one in &recovered {
        assert_eq!(one.error, None, "{one:?}");
    }
    let (slow, fast) = (folder_of(folder, "slow-"), folder_of(folder, "fast-"));
    for place in [folder, &slow, &fast] {
        assert!(!place.join(".alongside").exists(), "nothing is left in {}", place.display());
    }
    (slow, half)
}

#[test]
fn what_was_reported_done_survives_kill_9() {
    killed_at_every_phase(&[]);
}

#[test]
fn what_was_reported_done_survives_kill_9_while_files_move() {
    killed_at_every_phase(&["moving"]);
}

fn killed_at_every_phase(words: &[&str]) {
    let name = format!("killed{}", words.concat());
    static PROGRAM: OnceLock<build::Built> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| build::compile("until_killed.c", &[]));
    for after in KILLED_AFTER {
        let folder = new_folder(&format!("{name}-{after}"));
        let done = run_and_kill(&program.path, words, &folder, after);
        let (slow, half) = recover_in(&folder);
        assert!(half.iter().all(|name| *name == CHANGED), "only one is changed: {half:?}");
        for (file, number) in &done {
            let name = format!("file-{file}");
            if half.contains(&name) {
                continue;
            }
            let path = slow.join(name);
            let found = version(&if path.is_dir() { path.join("part") } else { path });
            assert!(found >= *number, "file {file}: {found} is there, {number} was done");
        }
        std::fs::remove_dir_all(&folder).expect("it is the test's");
    }
}

#[test]
fn a_file_that_cannot_come_home_stays_until_recover() {
    let program = build::compile("unsettled.c", &[]);
    let folder = new_folder("unsettled");
    let output = Command::new(&program.path).current_dir(&folder).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let above = folder_of(&folder, "slow-").join("above");
    std::fs::remove_file(&above).expect("the program put it there");
    let (slow, _) = recover_in(&folder);
    assert_eq!(version(&slow.join("above/file-0")), 77);
    std::fs::remove_dir_all(&folder).expect("it is the test's");
}
