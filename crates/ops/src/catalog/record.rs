//! The records of a catalog as lines of text: checksum, verb, fields.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::FileId;

/// The first line of a catalog.
pub const HEADER: &str = "alongside catalog 1\n";
/// What stands for "no path".
const NO_PATH: &str = "-";

/// Something that is so from now on. It is on the device before anybody relies on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The session has a folder of its own here.
    Folder {
        /// Where.
        path: PathBuf,
    },
    /// The current version of a file is whole, durable, and here.
    Copy {
        /// Which file.
        file: FileId,
        /// Its own path.
        home: PathBuf,
        /// Where it is.
        place: PathBuf,
        /// Its length.
        bytes: u64,
        /// It is not to be kept after the session.
        scratch: bool,
    },
    /// A task is about to change a file where it is.
    Changing {
        /// Which file.
        file: FileId,
    },
    /// A file is about to be brought to its own path.
    Leaving {
        /// Which file.
        file: FileId,
        /// The file beside its own path that it is copied to first; none: it is only renamed.
        temporary: Option<PathBuf>,
    },
    /// The current version stands at its own path.
    Home {
        /// Which file.
        file: FileId,
    },
    /// A file was deleted.
    Gone {
        /// Which file.
        file: FileId,
    },
}

/// What a catalog's text says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The records that are whole.
    pub records: Vec<Record>,
    /// Bytes at the end that are no record: a crash cut off the last one.
    pub torn: usize,
}

/// A path as one word: bytes that are no printable ASCII, and "%", in hexadecimal.
fn word(path: &Path) -> String {
    let mut word = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' => word.push_str("%25"),
            b'!'..=b'~' => word.push(char::from(*byte)),
            _ => {
                let _ = write!(word, "%{byte:02x}");
            }
        }
    }
    word
}

fn path_of(word: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    Some(PathBuf::from(OsStr::from_bytes(&bytes)))
}

impl Record {
    /// As a line.
    pub fn encode(&self) -> String {
        let text = match self {
            Record::Folder { path } => format!("folder {}", word(path)),
            Record::Copy { file, home, place, bytes, scratch } => {
                let kept = if *scratch { "scratch" } else { "kept" };
                format!("copy {} {} {} {bytes} {kept}", file.0, word(home), word(place))
            }
            Record::Changing { file } => format!("changing {}", file.0),
            Record::Leaving { file, temporary } => {
                let over = temporary.as_deref().map_or(NO_PATH.to_string(), word);
                format!("leaving {} {over}", file.0)
            }
            Record::Home { file } => format!("home {}", file.0),
            Record::Gone { file } => format!("gone {}", file.0),
        };
        format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()))
    }

    fn parse(line: &str) -> Option<Record> {
        let (sum, text) = line.split_once(' ')?;
        if u32::from_str_radix(sum, 16).ok()? != crc32fast::hash(text.as_bytes()) {
            return None;
        }
        let words: Vec<&str> = text.split(' ').collect();
        let file = |text: &str| text.parse().ok().map(FileId);
        Some(match *words {
            ["folder", path] => Record::Folder { path: path_of(path)? },
            ["copy", number, home, place, bytes, kept] => Record::Copy {
                file: file(number)?,
                home: path_of(home)?,
                place: path_of(place)?,
                bytes: bytes.parse().ok()?,
                scratch: kept == "scratch",
            },
            ["changing", number] => Record::Changing { file: file(number)? },
            ["leaving", number, NO_PATH] => {
                Record::Leaving { file: file(number)?, temporary: None }
            }
            ["leaving", number, path] => {
                Record::Leaving { file: file(number)?, temporary: Some(path_of(path)?) }
            }
            ["home", number] => Record::Home { file: file(number)? },
            ["gone", number] => Record::Gone { file: file(number)? },
            _ => return None,
        })
    }
}

/// Whether a text is a first line that was not flushed when the machine stopped.
fn is_begun(text: &[u8]) -> bool {
    let pairs = text.iter().zip(HEADER.as_bytes());
    text.len() <= HEADER.len() && pairs.into_iter().all(|(a, b)| a == b || *a == 0)
}

/// The records of a catalog's text, up to the first line that is not whole. `None`: it is no
/// catalog.
pub fn decode(text: &[u8]) -> Option<Decoded> {
    let mut rest = match text.strip_prefix(HEADER.as_bytes()) {
        Some(rest) => rest,
        // A crash before the first line was flushed, of which some bytes may be missing or zero:
        // nothing was relied on yet.
        None if is_begun(text) => &[],
        None => return None,
    };
    let mut decoded = Decoded::default();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(&rest[..end]).ok();
        let Some(record) = line.and_then(Record::parse) else { break };
        decoded.records.push(record);
        rest = &rest[end + 1..];
    }
    decoded.torn = rest.len();
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Record> {
        let path = |text: &[u8]| PathBuf::from(OsStr::from_bytes(text));
        vec![
            Record::Folder { path: path(b"/fast/a b") },
            Record::Copy {
                file: FileId(7),
                home: path(b"/data/100%\n\xff-"),
                place: path(b"/fast/-"),
                bytes: u64::MAX,
                scratch: true,
            },
            Record::Changing { file: FileId(7) },
            Record::Leaving { file: FileId(7), temporary: None },
            Record::Leaving { file: FileId(7), temporary: Some(path(b"/data/.x")) },
            Record::Home { file: FileId(7) },
            Record::Gone { file: FileId(u64::MAX) },
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let lines: String = records().iter().map(Record::encode).collect();
        let text = format!("{HEADER}{lines}");
        assert_eq!(decode(text.as_bytes()), Some(Decoded { records: records(), torn: 0 }));
    }

    #[test]
    fn a_cut_or_changed_end_is_left_out() {
        let mut text = HEADER.as_bytes().to_vec();
        for (whole, record) in records().into_iter().enumerate() {
            let line = record.encode();
            for cut in 0..line.len() {
                let cut = [&text, &line.as_bytes()[..cut]].concat();
                let decoded = decode(&cut).unwrap();
                assert_eq!(decoded.records, records()[..whole]);
                assert_eq!(decoded.torn, cut.len() - text.len());
            }
            let mut changed = [&text, line.as_bytes()].concat();
            let at = text.len() + line.len() / 2;
            changed[at] ^= 1;
            assert_eq!(decode(&changed).unwrap().records, records()[..whole], "{record:?}");
            text.extend(line.as_bytes());
        }
    }

    #[test]
    fn another_file_is_no_catalog() {
        assert_eq!(decode(b"[[layer]]\n"), None);
        assert_eq!(decode(b"[[\n"), None);
        for begun in [&b""[..], b"alongside cat", b"along\0\0\0\0 cat", b"\0\0"] {
            assert_eq!(decode(begun), Some(Decoded::default()));
        }
    }
}
