//! What `auto` has learned, as a file: read by one session, written by another, from whichever
//! language.
//!
//! A JSON object: `{"format": 1, "learned": [{"function", "size_class", "layer", "registry"}]}`,
//! each registry a list of `{"constraint", "most", "tasks", "mean_ns", "bytes"}`: a constraint in
//! bytes a second, the most tasks that it let run at once, how many tasks the mean time is of, and
//! the bytes that they moved. `size_class` is the number of binary digits of the declared size.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use sched::{Entry, Learned};
use serde_json::Value;

use crate::lock;

/// The format that is read and written.
const FORMAT: u64 = 1;
/// Binary digits of the largest size.
const SIZE_CLASS_MAX: u64 = 64;
/// Files that this process wrote.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// The registries in a file; none where there is no file.
///
/// # Errors
/// A sentence that names the file, and says what is wrong with it and what to do.
pub fn read_learned(path: &Path) -> Result<Vec<Learned>, String> {
    let unread = |why: &dyn std::fmt::Display| {
        format!("{}: cannot be read as what was learned: {why}", path.display())
    };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unread(&error)),
    };
    let content: Value = serde_json::from_str(&text).map_err(|error| unread(&error))?;
    registries(&content).map_err(|why| {
        format!(
            "{}: is not what a session learned ({why}); remove it to learn anew",
            path.display()
        )
    })
}

fn registries(content: &Value) -> Result<Vec<Learned>, String> {
    let format = field(content, "format")?;
    if format.as_u64() != Some(FORMAT) {
        return Err(format!("it has format {format}; this version reads {FORMAT}"));
    }
    list(content, "learned")?.iter().map(registry).collect()
}

fn registry(one: &Value) -> Result<Learned, String> {
    Ok(Learned {
        function: Arc::from(text(one, "function")?),
        size_class: number(one, "size_class", 0, SIZE_CLASS_MAX)? as u8,
        layer: text(one, "layer")?.to_string(),
        entries: list(one, "registry")?.iter().map(entry).collect::<Result<_, _>>()?,
    })
}

fn entry(line: &Value) -> Result<Entry, String> {
    let (bytes_max, tasks_max) = (i64::MAX as u64, u64::from(u32::MAX));
    Ok(Entry {
        constraint: number(line, "constraint", 1, bytes_max)?,
        most: number(line, "most", 1, tasks_max)? as u32,
        tasks: number(line, "tasks", 1, tasks_max)? as u32,
        mean_ns: number(line, "mean_ns", 0, bytes_max)?,
        bytes: number(line, "bytes", 0, bytes_max)?,
    })
}

fn field<'a>(of: &'a Value, name: &str) -> Result<&'a Value, String> {
    of.get(name).ok_or_else(|| format!("\"{name}\" is missing"))
}

fn text<'a>(of: &'a Value, name: &str) -> Result<&'a str, String> {
    field(of, name)?.as_str().ok_or_else(|| format!("\"{name}\" has to be a text"))
}

fn list<'a>(of: &'a Value, name: &str) -> Result<&'a Vec<Value>, String> {
    field(of, name)?.as_array().ok_or_else(|| format!("\"{name}\" has to be a list"))
}

fn number(of: &Value, name: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = field(of, name)?.as_u64().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("\"{name}\" has to be a whole number from {least} to {most}"))
}

/// Writes a file, whole or not at all; what it had of other functions and layers stays, also what
/// other sessions write at the same time.
///
/// # Errors
/// A sentence that names the file and says why it cannot be written: also that it is there and
/// cannot be read.
pub fn write_learned(path: &Path, learned: &[Learned]) -> Result<(), String> {
    let turn = Turn::take(path).map_err(|error| error.to_string());
    let written = turn.and_then(|_turn| merge(path, learned));
    written.map_err(|why| format!("{}: what was learned cannot be written: {why}", path.display()))
}

/// Only one writes a file at a time: who has the lock of the one beside it, which is there only
/// meanwhile.
struct Turn {
    beside: PathBuf,
    file: File,
}

impl Turn {
    fn take(path: &Path) -> io::Result<Turn> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".lock");
        let beside = PathBuf::from(beside);
        loop {
            let file = File::options().write(true).create(true).truncate(false).open(&beside)?;
            // Where there are no locks, one of two who write at once may be lost.
            let _ = lock::lock(&file);
            // Whoever had it before has removed it: the next ones lock another.
            let ours = file.metadata()?.ino();
            if std::fs::metadata(&beside).is_ok_and(|there| there.ino() == ours) {
                return Ok(Turn { beside, file });
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // One that is left is used by the next.
        let _ = std::fs::remove_file(&self.beside);
        lock::unlock(&self.file);
    }
}

fn merge(path: &Path, learned: &[Learned]) -> Result<(), String> {
    let mut all = read_learned(path)?;
    for one in learned {
        all.retain(|old| key(old) != key(one));
        all.push(one.clone());
    }
    let mut temporary = path.as_os_str().to_owned();
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    temporary.push(format!(".{}-{number}.tmp", std::process::id()));
    let written =
        std::fs::write(&temporary, json(&all)).and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|error| {
        // It may not be there; the first error counts.
        let _ = std::fs::remove_file(&temporary);
        error.to_string()
    })
}

fn key(one: &Learned) -> (&str, u8, &str) {
    (&one.function, one.size_class, &one.layer)
}

fn json(all: &[Learned]) -> String {
    let registries: Vec<String> = all.iter().map(registry_json).collect();
    format!("{{\"format\": {FORMAT}, \"learned\": [{}\n]}}\n", registries.join(","))
}

fn registry_json(one: &Learned) -> String {
    let (function, layer) = (Value::from(&*one.function), Value::from(one.layer.as_str()));
    let mut text = format!(
        "\n {{\"function\": {function}, \"size_class\": {}, \"layer\": {layer}, \"registry\": [",
        one.size_class
    );
    for (number, entry) in one.entries.iter().enumerate() {
        let Entry { constraint, most, tasks, mean_ns, bytes } = entry;
        let comma = if number == 0 { "" } else { "," };
        // Writing to a String does not fail.
        let _ = write!(
            text,
            "{comma}\n  {{\"constraint\": {constraint}, \"most\": {most}, \"tasks\": {tasks}, \
             \"mean_ns\": {mean_ns}, \"bytes\": {bytes}}}"
        );
    }
    text + "]}"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(function: &str, constraint: u64) -> Learned {
        let entry = Entry { constraint, most: 8, tasks: 9, mean_ns: 10, bytes: 11 };
        let entries = vec![entry, Entry { constraint: constraint + 1, ..entry }];
        Learned { function: function.into(), size_class: 64, layer: "a \"b\"\n".into(), entries }
    }

    #[test]
    fn what_is_written_is_read_back_and_what_is_there_of_others_stays() {
        let folder = tempfile("merged");
        let path = folder.join("learned.json");
        assert_eq!(read_learned(&path), Ok(vec![]));
        write_learned(&path, &[learned("one", 1), learned("two", 5)]).unwrap();
        write_learned(&path, &[learned("one", 3)]).unwrap();
        assert_eq!(read_learned(&path), Ok(vec![learned("two", 5), learned("one", 3)]));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn those_who_write_at_once_lose_nothing_of_each_other() {
        const WRITERS: usize = 8;
        let folder = tempfile("at-once");
        let path = folder.join("learned.json");
        let start = std::sync::Barrier::new(WRITERS);
        std::thread::scope(|scope| {
            for number in 0..WRITERS {
                let (path, start) = (&path, &start);
                scope.spawn(move || {
                    start.wait();
                    for at in 0..4 {
                        write_learned(path, &[learned(&format!("{number} {at}"), 1)]).unwrap();
                    }
                });
            }
        });
        assert_eq!(read_learned(&path).unwrap().len(), 4 * WRITERS);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_read_is_not_written_over() {
        let folder = tempfile("newer");
        let path = folder.join("learned.json");
        let newer = "{\"format\": 2, \"learned\": [\"of a later version\"]}";
        std::fs::write(&path, newer).unwrap();
        let why = write_learned(&path, &[learned("one", 1)]).unwrap_err();
        assert!(why.contains("cannot be written") && why.contains("format 2"), "{why}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);
        std::fs::remove_dir_all(folder).unwrap();
    }

    fn tempfile(name: &str) -> std::path::PathBuf {
        let name = format!("alongside-learned-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_reason() {
        let good = json(&[learned("f", 1)]);
        for (part, other, reason) in [
            ("\"format\": 1", "\"format\": 2", "format 2"),
            ("\"format\": 1", "\"format\": null", "format null"),
            ("\"most\": 8", "\"most\": 0", "\"most\""),
            ("\"most\": 8", "\"most\": 4294967296", "\"most\""),
            ("\"tasks\": 9", "\"tasks\": true", "\"tasks\""),
            ("\"mean_ns\": 10", "\"mean_ns\": 1.5", "\"mean_ns\""),
            ("\"constraint\": 1,", "\"constraint\": 0,", "\"constraint\""),
            ("\"bytes\": 11", "\"bytes\": -1", "\"bytes\""),
            ("\"size_class\": 64", "\"size_class\": 65", "\"size_class\""),
            ("\"function\": \"f\"", "\"function\": 3", "\"function\""),
            ("\"function\"", "\"x\"", "\"function\" is missing"),
            ("\"learned\": [", "\"learned\": 3, \"y\": [", "a list"),
        ] {
            assert!(good.contains(part), "{part} of {good}");
            let content = serde_json::from_str(&good.replace(part, other)).unwrap();
            let refused = registries(&content).expect_err(other);
            assert!(refused.contains(reason), "{other}: {refused}");
        }
    }
}
