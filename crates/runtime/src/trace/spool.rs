//! Records in an unlinked temporary file: any number of them, no memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;

use super::{Record, RecordKind};

/// One record in the file.
const RECORD_BYTES: usize = 48;
/// Records that are gathered before they are written.
const BATCH_RECORDS: usize = 4096;

/// A growing file of records.
#[derive(Debug)]
pub(super) struct Spool {
    file: Arc<File>,
    written: u64,
    batch: Vec<u8>,
    broken: Option<Arc<str>>,
}

/// How many unused names are tried for the temporary file.
const NAME_TRIES_MAX: u32 = 16;

/// A file that has no name and goes away with its last descriptor.
fn unlinked() -> io::Result<File> {
    let folder = std::env::temp_dir();
    let mut options = File::options();
    options.read(true).write(true).mode(0o600);
    if let Ok(file) = options.clone().custom_flags(libc::O_TMPFILE).open(&folder) {
        return Ok(file);
    }
    let mut tried = 0;
    loop {
        let name = format!(".alongside-{}-{}-{tried}", std::process::id(), exec::now_ns());
        let path = folder.join(name);
        match options.clone().create_new(true).open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                tried += 1;
                if tried == NAME_TRIES_MAX {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

impl Spool {
    pub(super) fn new() -> io::Result<Spool> {
        let file = Arc::new(unlinked()?);
        Ok(Spool { file, written: 0, batch: Vec::new(), broken: None })
    }

    pub(super) fn push(&mut self, record: Record) {
        if self.broken.is_some() {
            return;
        }
        self.batch.extend_from_slice(&encode(&record));
        if self.batch.len() >= BATCH_RECORDS * RECORD_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        match self.file.write_all_at(&self.batch, self.written) {
            Ok(()) => self.written += self.batch.len() as u64,
            Err(error) => {
                let text = format!("the trace could not be written to a temporary file: {error}");
                self.broken = Some(text.into());
            }
        }
        self.batch.clear();
    }

    pub(super) fn reader(&mut self) -> Reader {
        self.flush();
        let broken = self.broken.clone();
        Reader::File { file: Arc::clone(&self.file), bytes: self.written, broken }
    }
}

/// Reads records in order.
#[derive(Debug)]
pub(super) enum Reader {
    Memory(Vec<Record>),
    File { file: Arc<File>, bytes: u64, broken: Option<Arc<str>> },
}

impl Reader {
    pub(super) fn for_each(&self, each: &mut dyn FnMut(Record)) -> io::Result<()> {
        let (file, bytes, broken) = match self {
            Reader::Memory(records) => {
                records.iter().for_each(|record| each(*record));
                return Ok(());
            }
            Reader::File { file, bytes, broken } => (file, *bytes, broken),
        };
        let mut buffer = vec![0; BATCH_RECORDS * RECORD_BYTES];
        let mut at = 0;
        while at < bytes {
            let count = (bytes - at).min(buffer.len() as u64) as usize;
            file.read_exact_at(&mut buffer[..count], at)?;
            for record in buffer[..count].chunks_exact(RECORD_BYTES) {
                each(decode(record.try_into().expect("chunks have this size")));
            }
            at += count as u64;
        }
        match broken {
            Some(text) => Err(io::Error::other(text.to_string())),
            None => Ok(()),
        }
    }
}

fn encode(record: &Record) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    let longs = [record.time_ns, record.task, record.amount, record.other];
    for (place, long) in bytes.chunks_exact_mut(8).zip(longs) {
        place.copy_from_slice(&long.to_le_bytes());
    }
    let words = [record.executor, record.layer, record.function, record.kind as u32];
    for (place, word) in bytes[32..].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn decode(bytes: &[u8; RECORD_BYTES]) -> Record {
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    Record {
        time_ns: long(0),
        task: long(8),
        amount: long(16),
        other: long(24),
        executor: word(32),
        layer: word(36),
        function: word(40),
        kind: RecordKind::ALL[word(44) as usize],
    }
}
