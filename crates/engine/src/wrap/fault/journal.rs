//! What is durable, and what is not yet: the memory of a disk whose power can go.
//!
//! Of every file that is changed the journal keeps the durable blocks under each change (read
//! before the change begins) and the changes since, in order of submission. A sync that succeeds
//! makes the changes durable that had ended when it was submitted; one that fails dooms them, for
//! the kernel then forgets that they were to be written, and no later sync brings them back. The
//! changes at the front that are durable are folded into the blocks.
//!
//! Power loss puts the durable blocks and the durable length back, and then makes again, in order,
//! the durable changes and those of the others that survive: all of one, or some of its sectors.

use std::collections::hash_map::Entry;
use std::collections::{btree_map, BTreeMap, HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;

use ops::{Answer, Errno, Op};

use super::super::random::Random;
use super::bytes_of;

const BLOCK_BYTES: u64 = 4096;

/// What a device writes whole or not at all.
const SECTOR_BYTES: u64 = 512;

/// Changes that are remembered of a file; the oldest beyond are written back, as a kernel does.
const CHANGED_BYTES_MAX: u64 = 256 << 20;

/// Which of the changes that are not durable survive a power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivors {
    /// None.
    Nothing,
    /// Some, whole or in parts; drawn from the seed.
    Some,
}

/// What a power loss did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Changes that were not durable.
    pub changes: u64,
    /// Those of them that survived, at least in part.
    pub survived: u64,
}

/// An operation that the journal wants to hear the end of.
#[derive(Clone, Debug)]
pub(super) enum Ticket {
    /// A change of a file, by its number there.
    Change { file: FileId, change: u64 },
    /// A sync of a file, of these changes.
    Sync { file: FileId, covered: Vec<u64> },
}

type FileId = (u64, u64);

#[derive(Default)]
pub(super) struct Journal {
    files: HashMap<FileId, Tracked>,
}

/// One file.
struct Tracked {
    /// The file, to be read and written by us.
    file: File,
    blocks: BTreeMap<u64, Vec<u8>>,
    durable_len: u64,
    changes: VecDeque<Change>,
    changed_bytes: u64,
    next: u64,
}

struct Change {
    number: u64,
    what: What,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    UnderWay,
    /// It has ended, and no sync has covered it.
    Volatile,
    /// A sync that was to make it durable failed.
    Doomed,
    Durable,
}

enum What {
    /// Bytes from an offset on.
    Bytes {
        offset: u64,
        bytes: Vec<u8>,
    },
    /// A copy under way: its bytes are read when it has ended.
    Copied {
        offset: u64,
        len: u64,
    },
    Zeros {
        offset: u64,
        len: u64,
    },
    Length(u64),
    /// The file is as long as this, if it was not longer.
    AtLeast(u64),
    Nothing,
}

impl Journal {
    /// Before an operation is done, of which `short` bytes at most.
    pub fn begins(&mut self, op: &Op, short: Option<u64>) -> Result<Option<Ticket>, Errno> {
        let fd = match *op {
            Op::Fsync { fd } | Op::Fdatasync { fd } => return Ok(self.sync_begins(fd)),
            Op::Write { fd, .. }
            | Op::WriteVectored { fd, .. }
            | Op::Truncate { fd, .. }
            | Op::Fallocate { fd, .. }
            | Op::Copy { to: fd, .. } => fd,
            _ => return Ok(None),
        };
        let Some((id, tracked)) = self.track(fd)? else { return Ok(None) };
        let what = match op {
            Op::Write { buffer, offset, .. } => tracked.written(fd, *offset, buffer.to_vec()),
            Op::WriteVectored { buffers, offset, .. } => {
                let bytes = buffers.iter().flat_map(|buffer| buffer.iter().copied());
                tracked.written(fd, *offset, bytes.collect())
            }
            Op::Copy { from, from_offset, to_offset, len, .. } => {
                let there = look(*from).map_or(0, |(_, len)| len.saturating_sub(*from_offset));
                What::Copied { offset: *to_offset, len: there.min(*len) }
            }
            Op::Truncate { len, .. } => What::Length(*len),
            Op::Fallocate { mode, offset, len, .. } => allocated(*mode, *offset, *len)?,
            _ => unreachable!("{} changes nothing", op.name()),
        };
        let what = match (what, short) {
            (What::Bytes { offset, mut bytes }, Some(short)) => {
                bytes.truncate(short as usize);
                What::Bytes { offset, bytes }
            }
            (what, _) => what,
        };
        let range = what.range(tracked.len());
        let what =
            if is_absurd(range.start, 0) || is_absurd(range.end, 0) { What::Nothing } else { what };
        let change = tracked.begin(what)?;
        Ok(Some(Ticket::Change { file: id, change }))
    }

    /// The file of a descriptor, tracked from now on; `None` for what is no regular file.
    fn track(&mut self, fd: RawFd) -> Result<Option<(FileId, &mut Tracked)>, Errno> {
        let Some(id) = identify(fd) else { return Ok(None) };
        let tracked = match self.files.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(Tracked::new(fd)?),
        };
        Ok(Some((id, tracked)))
    }

    fn sync_begins(&self, fd: RawFd) -> Option<Ticket> {
        let file = identify(fd)?;
        let changes = self.files.get(&file)?.changes.iter();
        let covered = changes.filter(|change| change.state == State::Volatile);
        Some(Ticket::Sync { file, covered: covered.map(|change| change.number).collect() })
    }

    /// After an operation has ended.
    pub fn ended(&mut self, ticket: Ticket, result: &Result<Answer, Errno>) {
        match ticket {
            Ticket::Change { file, change } => {
                let tracked = self.files.get_mut(&file).expect("a change's file is tracked");
                tracked.change_ended(change, result);
            }
            Ticket::Sync { file, covered } => {
                let tracked = self.files.get_mut(&file).expect("a sync's file is tracked");
                let state = if result.is_ok() { State::Durable } else { State::Doomed };
                for change in &mut tracked.changes {
                    if change.state == State::Volatile && covered.contains(&change.number) {
                        change.state = state;
                    }
                }
                tracked.fold();
            }
        }
    }

    /// Restores what is durable, and some of the rest.
    pub fn power_loss(&mut self, survivors: Survivors, random: &mut Random) -> io::Result<Lost> {
        let mut lost = Lost::default();
        let mut ids: Vec<_> = self.files.keys().copied().collect();
        // The order of a hash map is not the seed's.
        ids.sort_unstable();
        for id in ids {
            let tracked = self.files.remove(&id).expect("the file was just listed");
            tracked.lose(survivors, random, &mut lost)?;
        }
        Ok(lost)
    }
}

impl Tracked {
    fn new(fd: RawFd) -> io::Result<Self> {
        let path = format!("/proc/self/fd/{fd}");
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let durable_len = file.metadata()?.len();
        let (blocks, changes) = (BTreeMap::new(), VecDeque::new());
        Ok(Self { file, blocks, durable_len, changes, changed_bytes: 0, next: 0 })
    }

    /// What a write does: at its offset, or at the end of a file that is appended to.
    fn written(&self, fd: RawFd, offset: u64, bytes: Vec<u8>) -> What {
        // SAFETY: takes no memory.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        let offset = if flags & libc::O_APPEND == 0 { offset } else { self.len() };
        What::Bytes { offset, bytes }
    }

    /// The length that the file has when all changes are done.
    fn len(&self) -> u64 {
        self.changes.iter().fold(self.durable_len, |len, change| change.what.len_after(len))
    }

    /// Reads the durable blocks under a change, and remembers the change.
    fn begin(&mut self, what: What) -> Result<u64, Errno> {
        let range = what.range(self.len());
        for block in range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES) {
            if let btree_map::Entry::Vacant(vacant) = self.blocks.entry(block) {
                let mut bytes = vec![0; BLOCK_BYTES as usize];
                fill(&self.file, &mut bytes, block * BLOCK_BYTES)?;
                vacant.insert(bytes);
            }
        }
        self.changed_bytes += what.bytes();
        let number = self.next;
        self.next += 1;
        self.changes.push_back(Change { number, what, state: State::UnderWay });
        self.write_back();
        Ok(number)
    }

    fn change_ended(&mut self, number: u64, result: &Result<Answer, Errno>) {
        let found = self.changes.iter_mut().find(|change| change.number == number);
        let change = found.expect("a change under way is not forgotten");
        let count = bytes_of(result);
        let before = change.what.bytes();
        match &mut change.what {
            What::Bytes { bytes, .. } => bytes.truncate(count as usize),
            What::Copied { offset, .. } => {
                let offset = *offset;
                let mut bytes = vec![0; count as usize];
                change.what = match fill(&self.file, &mut bytes, offset) {
                    Ok(()) => What::Bytes { offset, bytes },
                    Err(_) => What::Nothing,
                };
            }
            _ if result.is_err() => change.what = What::Nothing,
            _ => {}
        }
        change.state = State::Volatile;
        self.changed_bytes = self.changed_bytes - before + change.what.bytes();
    }

    /// Makes the oldest changes durable while there are too many.
    fn write_back(&mut self) {
        while self.changed_bytes > CHANGED_BYTES_MAX {
            match self.changes.front_mut() {
                Some(change) if change.state != State::UnderWay => change.state = State::Durable,
                _ => return,
            }
            self.fold();
        }
    }

    /// Puts the durable changes at the front into the blocks.
    fn fold(&mut self) {
        while self.changes.front().is_some_and(|change| change.state == State::Durable) {
            let change = self.changes.pop_front().expect("the front was looked at");
            self.changed_bytes -= change.what.bytes();
            self.put(&change.what, || true);
        }
        if self.changes.is_empty() {
            self.blocks.clear();
        }
    }

    /// Makes a change to the durable blocks and the length: of the content, the sectors that are
    /// chosen.
    fn put(&mut self, what: &What, mut is_chosen: impl FnMut() -> bool) {
        let Range { start: mut at, end } = what.range(self.durable_len);
        while at < end {
            let sector_end = (at / SECTOR_BYTES + 1) * SECTOR_BYTES;
            let part = at..sector_end.min(end);
            at = part.end;
            let Some(block) = self.blocks.get_mut(&(part.start / BLOCK_BYTES)) else { continue };
            if is_chosen() {
                let inside = (part.start % BLOCK_BYTES) as usize;
                let len = (part.end - part.start) as usize;
                what.copy_to(part.start, &mut block[inside..inside + len]);
            }
        }
        self.durable_len = what.len_after(self.durable_len);
    }

    fn lose(
        mut self,
        survivors: Survivors,
        random: &mut Random,
        lost: &mut Lost,
    ) -> io::Result<()> {
        for Change { what, state, .. } in std::mem::take(&mut self.changes) {
            assert!(state != State::UnderWay, "the power goes when nothing is in flight");
            if state == State::Durable {
                self.put(&what, || true);
                continue;
            }
            lost.changes += 1;
            // Nothing, everything, or each sector by itself.
            let fate = random.below(3);
            if survivors == Survivors::Some && fate > 0 {
                lost.survived += 1;
                self.put(&what, || fate == 1 || random.chance(0.5));
            }
        }
        for (block, bytes) in &self.blocks {
            self.file.write_all_at(bytes, block * BLOCK_BYTES)?;
        }
        self.file.set_len(self.durable_len)
    }
}

impl What {
    /// The bytes of the file that it changes, when the file has this length.
    fn range(&self, len: u64) -> Range<u64> {
        match self {
            Self::Bytes { offset, bytes } => *offset..offset.saturating_add(bytes.len() as u64),
            Self::Copied { offset, len } | Self::Zeros { offset, len } => {
                *offset..offset.saturating_add(*len)
            }
            // What is cut off, up to the old end.
            Self::Length(to) => (*to).min(len)..len,
            Self::AtLeast(_) | Self::Nothing => 0..0,
        }
    }

    /// Puts there what it makes of the bytes at this place of its range.
    fn copy_to(&self, at: u64, into: &mut [u8]) {
        match self {
            Self::Bytes { offset, bytes } => {
                let from = (at - offset) as usize;
                into.copy_from_slice(&bytes[from..from + into.len()]);
            }
            _ => into.fill(0),
        }
    }

    fn len_after(&self, len: u64) -> u64 {
        match self {
            Self::Bytes { bytes, .. } if bytes.is_empty() => len,
            Self::Bytes { .. } | Self::Copied { .. } => len.max(self.range(len).end),
            Self::Zeros { .. } | Self::Nothing => len,
            Self::Length(to) => (*to).min(i64::MAX as u64),
            Self::AtLeast(least) => len.max(*least),
        }
    }

    /// What it takes to remember it.
    fn bytes(&self) -> u64 {
        match self {
            Self::Bytes { bytes, .. } => bytes.len() as u64,
            _ => 0,
        }
    }
}

/// What `fallocate` changes; modes that move bytes about are not for this disk.
fn allocated(mode: i32, offset: u64, len: u64) -> Result<What, Errno> {
    let zeroes = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
    let known = zeroes | libc::FALLOC_FL_KEEP_SIZE;
    if is_absurd(offset, len) {
        return Ok(What::Nothing);
    }
    match mode {
        _ if mode & !known != 0 => Err(Errno(libc::EOPNOTSUPP)),
        0 => Ok(What::AtLeast(offset + len)),
        libc::FALLOC_FL_ZERO_RANGE => Err(Errno(libc::EOPNOTSUPP)),
        _ if mode & zeroes != 0 => Ok(What::Zeros { offset, len }),
        _ => Ok(What::Nothing),
    }
}

/// Which file a descriptor is, with its length, if it is a regular one.
fn look(fd: RawFd) -> Option<(FileId, u64)> {
    // SAFETY: zeros are a valid value of this struct of numbers.
    let mut stat: libc::stat64 = unsafe { std::mem::zeroed() };
    // SAFETY: the struct is writable and lives through the call.
    let known = unsafe { libc::fstat64(fd, &mut stat) } == 0;
    let is_file = known && stat.st_mode & libc::S_IFMT == libc::S_IFREG;
    is_file.then_some(((stat.st_dev, stat.st_ino), stat.st_size as u64))
}

fn identify(fd: RawFd) -> Option<FileId> {
    look(fd).map(|(id, _)| id)
}

/// Whether no file has such a range; the kernel will say so.
fn is_absurd(offset: u64, len: u64) -> bool {
    offset.checked_add(len).is_none_or(|end| end > i64::MAX as u64)
}

/// Reads what is there; past the end it is zeros.
fn fill(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
