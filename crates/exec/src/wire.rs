//! The records that driver and workers send each other, and how they look as bytes.
//!
//! Everything is little-endian and unaligned: one tag byte, then the fields in order; a list or a
//! string is a `u32` count and its elements. Decoding borrows from the record and copies only
//! lists of small fields. A malformed record is an error that says where, never a panic: a
//! worker's memory may have been overwritten by the code that it runs.
//!
//! A record is at most [`RECORD_BYTES_MAX`] long. A longer one is placed in the heap, and a short
//! record (`RunPlaced`, `EndedPlaced`) says where.

mod code;

use smallvec::SmallVec;

pub use code::{Malformed, TooLarge};
use code::{Reader, Writer};

/// The longest record that goes through a ring.
pub const RECORD_BYTES_MAX: usize = 64 << 10;
/// The longest record that is placed in the heap instead.
pub const PLACED_RECORD_BYTES_MAX: u64 = 1 << 30;
/// Blocks up to this length are meant to travel inside records, longer ones in the heap.
pub const INLINE_BYTES_MAX: usize = 16 << 10;

/// A short list: up to four elements need no memory of their own.
pub type List<T> = SmallVec<[T; 4]>;

/// A value as bytes: in the record itself, or in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blob<'a> {
    /// Here. The bytes are not aligned.
    Inline(&'a [u8]),
    /// In the heap.
    Placed {
        /// Where it begins.
        offset: u64,
        /// Its bytes.
        len: u64,
    },
}

impl Blob<'_> {
    /// Its bytes, wherever they are.
    pub fn bytes(&self) -> u64 {
        match self {
            Blob::Inline(bytes) => bytes.len() as u64,
            Blob::Placed { len, .. } => *len,
        }
    }
}

/// How the body of a task gets an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputMode {
    /// To read, as it lies in the heap.
    Read,
    /// A writable copy of its own.
    Private,
    /// Writable where it lies, together with others.
    Shared,
}

/// A file that a task uses: its real place, and the emulated bandwidth of that place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    /// The path's bytes as the system has them.
    pub bytes: &'a [u8],
    /// Which of the shared limiters its reads and writes pass through.
    pub limiter: Option<u32>,
    /// The task writes it.
    pub written: bool,
}

/// What a value of a stream costs of the credit of its producer: its bytes, within limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// A short one.
    pub least: u64,
    /// A long one.
    pub most: u64,
}

impl Price {
    /// What a value of so many bytes costs.
    pub fn of(self, bytes: u64) -> u64 {
        bytes.max(self.least).min(self.most)
    }
}

/// How far the producer of a stream may go, counted over all its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// Values that earlier runs handed over: this one makes them again and hands over the next.
    pub made: u64,
    /// What all values cost that were handed over.
    pub spent: u64,
    /// What they may cost before it waits for its consumers.
    pub granted: u64,
    /// Nobody wants another value.
    pub closed: bool,
    /// What a value costs.
    pub price: Price,
}

impl Credit {
    /// Whether it waits for its consumers before it hands over another value.
    pub fn is_used_up(&self) -> bool {
        self.spent >= self.granted && !self.closed
    }

    fn encode(&self, out: &mut Writer<'_>) {
        let Credit { made, spent, granted, closed, price: Price { least, most } } = *self;
        [made, spent, granted, least, most].into_iter().for_each(|number| out.u64(number));
        out.bool(closed);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Credit, Malformed> {
        let (made, spent, granted) = (from.u64()?, from.u64()?, from.u64()?);
        let price = Price { least: from.u64()?, most: from.u64()? };
        Ok(Credit { made, spent, granted, price, closed: from.bool()? })
    }
}

/// One run of a task body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<'a> {
    /// The driver's number of the task.
    pub task: u64,
    /// 1 for the first run.
    pub attempt: u32,
    /// The claim; `Process::send_run` fills it.
    pub claim: u64,
    /// Which function.
    pub function: u64,
    /// The arguments, with places for inputs.
    pub arguments: Blob<'a>,
    /// The values of other tasks that it uses.
    pub inputs: List<(InputMode, Blob<'a>)>,
    /// The files that it uses.
    pub paths: List<Path<'a>>,
    /// How many values the body returns.
    pub returns: u32,
    /// Which inputs have new values that are outputs after the returns.
    pub writes: List<u32>,
    /// Whether the files that it wrote are to be on the disk when it ends.
    pub durable: bool,
    /// The processors that its layer is attached to, where its thread is to run; none: any.
    pub processors: List<u32>,
    /// Its output is a stream, of values that it hands over one by one.
    pub stream: Option<Credit>,
}

/// From the driver to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "lives on the stack, between decode and use")]
pub enum ToWorker<'a> {
    /// A function that runs will name.
    Function {
        /// The driver's number of it.
        id: u64,
        /// Its name, for messages.
        name: &'a str,
        /// Whether its body is a coroutine.
        asynchronous: bool,
        /// The function itself.
        blob: Blob<'a>,
    },
    /// No run will name this function again.
    ForgetFunction {
        /// Which.
        id: u64,
    },
    /// Run a task.
    Run(Run<'a>),
    /// Run a task whose record is in the heap. Read it only after claiming.
    RunPlaced {
        /// The claim of the run.
        claim: u64,
        /// Where the record begins.
        offset: u64,
        /// Its bytes.
        len: u64,
    },
    /// The answer to an `Alloc`.
    Allocated {
        /// Its number.
        request: u64,
        /// Where, or `None`: the store is full.
        offset: Option<u64>,
    },
    /// The producer of a stream may go further, or need not.
    Granted {
        /// The claim of its run.
        claim: u64,
        /// How far.
        granted: u64,
        /// Nobody wants another value.
        closed: bool,
    },
    /// Run what was sent before, then end.
    Stop,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Well, with the returns, then the written inputs.
    Done {
        /// The values; one of no bytes was handed over before.
        outputs: List<Blob<'a>>,
    },
    /// With an exception.
    Raised {
        /// The exception.
        blob: Blob<'a>,
    },
}

/// What one run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended<'a> {
    /// The driver's number of the task.
    pub task: u64,
    /// Which run of it.
    pub attempt: u32,
    /// The claim of the run.
    pub claim: u64,
    /// How it ended.
    pub outcome: Outcome<'a>,
    /// When the body began (`CLOCK_MONOTONIC`).
    pub started_ns: u64,
    /// When it last went on: it may have waited for the consumers of its stream.
    pub since_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// How long it ran: without those waits.
    pub ran_ns: u64,
    /// Processor time of the threads that ran it.
    pub cpu_ns: u64,
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Bytes written to files.
    pub bytes_written: u64,
    /// The error of its storage layer that it failed of; 0: none.
    pub layer_errno: u32,
    /// The placed inputs that the worker still looks at; an `Unpin` follows for each.
    pub held: List<u64>,
}

/// From a worker to the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "lives on the stack, between decode and use")]
pub enum FromWorker<'a> {
    /// It has started and takes tasks.
    Ready,
    /// A run ended.
    Ended(Ended<'a>),
    /// A run ended, and its record is in the heap. A `Free` of the place follows.
    EndedPlaced {
        /// Where the record begins.
        offset: u64,
        /// Its bytes.
        len: u64,
    },
    /// It needs a range of the heap.
    Alloc {
        /// To match the answer.
        request: u64,
        /// How much.
        bytes: u64,
    },
    /// It gives back a range that it was allocated and has not handed over.
    Free {
        /// Which.
        offset: u64,
    },
    /// It no longer looks at ranges that an `Ended` told to be held.
    Unpin {
        /// Which.
        offsets: List<u64>,
    },
    /// A running task hands over one of its outputs.
    Released {
        /// Which task.
        task: u64,
        /// Which run of it.
        attempt: u32,
        /// Which output, counted as in `Done`.
        output: u32,
        /// The value.
        blob: Blob<'a>,
    },
    /// A running task is done with one of its files.
    ReleasedFile {
        /// Which task.
        task: u64,
        /// Which run of it.
        attempt: u32,
        /// Which of its paths.
        path: u32,
    },
    /// A running task hands over the next value of its stream.
    Yielded {
        /// Which task.
        task: u64,
        /// Which run of it.
        attempt: u32,
        /// Which value, from 0, counted over all runs.
        number: u64,
        /// The value.
        blob: Blob<'a>,
    },
    /// The producer of a stream waits for its consumers, and other tasks run meanwhile.
    Stalled {
        /// Which task.
        task: u64,
        /// Which run of it.
        attempt: u32,
        /// The claim of that run.
        claim: u64,
        /// What it knows that its values may cost.
        granted: u64,
        /// When it began, or last went on (`CLOCK_MONOTONIC`).
        since_ns: u64,
        /// When it began to wait.
        until_ns: u64,
    },
}

const FUNCTION: u8 = 1;
const FORGET_FUNCTION: u8 = 2;
const RUN: u8 = 3;
const RUN_PLACED: u8 = 4;
const ALLOCATED: u8 = 5;
const STOP: u8 = 6;
const GRANTED: u8 = 7;
const READY: u8 = 65;
const ENDED: u8 = 66;
const ENDED_PLACED: u8 = 67;
const ALLOC: u8 = 68;
const FREE: u8 = 69;
const UNPIN: u8 = 70;
const RELEASED: u8 = 71;
const YIELDED: u8 = 72;
const STALLED: u8 = 73;
const RELEASED_FILE: u8 = 74;

fn put_blob(out: &mut Writer<'_>, blob: &Blob<'_>) {
    match *blob {
        Blob::Inline(bytes) => {
            out.u8(0);
            out.bytes(bytes);
        }
        Blob::Placed { offset, len } => {
            out.u8(1);
            out.u64(offset);
            out.u64(len);
        }
    }
}

fn get_blob<'a>(from: &mut Reader<'a>) -> Result<Blob<'a>, Malformed> {
    match from.u8()? {
        0 => Ok(Blob::Inline(from.bytes()?)),
        1 => Ok(Blob::Placed { offset: from.u64()?, len: from.u64()? }),
        _ => Err(from.bad("a blob is inline (0) or placed (1)")),
    }
}

fn get_mode(from: &mut Reader<'_>) -> Result<InputMode, Malformed> {
    match from.u8()? {
        0 => Ok(InputMode::Read),
        1 => Ok(InputMode::Private),
        2 => Ok(InputMode::Shared),
        _ => Err(from.bad("an input is read (0), private (1) or shared (2)")),
    }
}

fn get_path<'a>(from: &mut Reader<'a>) -> Result<Path<'a>, Malformed> {
    let (bytes, limiter) = (from.bytes()?, from.option(Reader::u32)?);
    Ok(Path { bytes, limiter, written: from.bool()? })
}

impl<'a> Run<'a> {
    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let out = &mut Writer(out);
        out.u8(RUN);
        out.u64(self.task);
        out.u32(self.attempt);
        out.u64(self.claim);
        out.u64(self.function);
        put_blob(out, &self.arguments);
        out.list(&self.inputs, |out, (mode, blob)| {
            out.u8(*mode as u8);
            put_blob(out, blob);
        });
        out.list(&self.paths, |out, path| {
            out.bytes(path.bytes);
            out.option(path.limiter, Writer::u32);
            out.bool(path.written);
        });
        out.u32(self.returns);
        out.list(&self.writes, |out, index| out.u32(*index));
        out.bool(self.durable);
        out.list(&self.processors, |out, number| out.u32(*number));
        out.option(self.stream, |out, credit| credit.encode(out));
    }

    fn decode(from: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            task: from.u64()?,
            attempt: from.u32()?,
            claim: from.u64()?,
            function: from.u64()?,
            arguments: get_blob(from)?,
            inputs: from.list(|from| Ok((get_mode(from)?, get_blob(from)?)))?,
            paths: from.list(get_path)?,
            returns: from.u32()?,
            writes: from.list(Reader::u32)?,
            durable: from.bool()?,
            processors: from.list(Reader::u32)?,
            stream: from.option(Credit::decode)?,
        })
    }
}

impl<'a> ToWorker<'a> {
    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let ToWorker::Run(run) = self {
            return run.encode(out);
        }
        let out = &mut Writer(out);
        match self {
            ToWorker::Function { id, name, asynchronous, blob } => {
                out.u8(FUNCTION);
                out.u64(*id);
                out.bytes(name.as_bytes());
                out.bool(*asynchronous);
                put_blob(out, blob);
            }
            ToWorker::ForgetFunction { id } => {
                out.u8(FORGET_FUNCTION);
                out.u64(*id);
            }
            ToWorker::Run(_) => unreachable!("encoded above"),
            ToWorker::RunPlaced { claim, offset, len } => {
                out.u8(RUN_PLACED);
                out.u64(*claim);
                out.u64(*offset);
                out.u64(*len);
            }
            ToWorker::Allocated { request, offset } => {
                out.u8(ALLOCATED);
                out.u64(*request);
                out.option(*offset, Writer::u64);
            }
            ToWorker::Granted { claim, granted, closed } => {
                out.u8(GRANTED);
                out.u64(*claim);
                out.u64(*granted);
                out.bool(*closed);
            }
            ToWorker::Stop => out.u8(STOP),
        }
    }

    /// Reads one record, all of it.
    pub fn decode(record: &'a [u8]) -> Result<Self, Malformed> {
        let from = &mut Reader::new(record);
        let value = match from.u8()? {
            FUNCTION => ToWorker::Function {
                id: from.u64()?,
                name: from.text()?,
                asynchronous: from.bool()?,
                blob: get_blob(from)?,
            },
            FORGET_FUNCTION => ToWorker::ForgetFunction { id: from.u64()? },
            RUN => ToWorker::Run(Run::decode(from)?),
            RUN_PLACED => {
                let (claim, offset, len) = (from.u64()?, from.u64()?, from.u64()?);
                ToWorker::RunPlaced { claim, offset, len }
            }
            ALLOCATED => {
                let (request, offset) = (from.u64()?, from.option(Reader::u64)?);
                ToWorker::Allocated { request, offset }
            }
            GRANTED => {
                let (claim, granted, closed) = (from.u64()?, from.u64()?, from.bool()?);
                ToWorker::Granted { claim, granted, closed }
            }
            STOP => ToWorker::Stop,
            _ => return Err(from.bad("no record for a worker has this tag")),
        };
        from.end()?;
        Ok(value)
    }
}

impl<'a> Ended<'a> {
    /// At most this many bytes does the record have, apart from `held`.
    pub(crate) fn bytes_max(&self) -> usize {
        const FIXED_BYTES: usize = 100;
        const BLOB_BYTES: usize = 17;
        let inline = |blob: &Blob<'_>| match blob {
            Blob::Inline(bytes) => bytes.len() + BLOB_BYTES,
            Blob::Placed { .. } => BLOB_BYTES,
        };
        FIXED_BYTES
            + match &self.outcome {
                Outcome::Done { outputs } => outputs.iter().map(inline).sum(),
                Outcome::Raised { blob } => inline(blob),
            }
    }

    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let out = &mut Writer(out);
        out.u8(ENDED);
        out.u64(self.task);
        out.u32(self.attempt);
        out.u64(self.claim);
        match &self.outcome {
            Outcome::Done { outputs } => {
                out.u8(0);
                out.list(outputs, put_blob);
            }
            Outcome::Raised { blob } => {
                out.u8(1);
                put_blob(out, blob);
            }
        }
        out.u64(self.started_ns);
        out.u64(self.since_ns);
        out.u64(self.ended_ns);
        out.u64(self.ran_ns);
        out.u64(self.cpu_ns);
        out.u64(self.bytes_read);
        out.u64(self.bytes_written);
        out.u32(self.layer_errno);
        out.list(&self.held, |out, offset| out.u64(*offset));
    }

    fn decode(from: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            task: from.u64()?,
            attempt: from.u32()?,
            claim: from.u64()?,
            outcome: match from.u8()? {
                0 => Outcome::Done { outputs: from.list(get_blob)? },
                1 => Outcome::Raised { blob: get_blob(from)? },
                _ => return Err(from.bad("an outcome is done (0) or raised (1)")),
            },
            started_ns: from.u64()?,
            since_ns: from.u64()?,
            ended_ns: from.u64()?,
            ran_ns: from.u64()?,
            cpu_ns: from.u64()?,
            bytes_read: from.u64()?,
            bytes_written: from.u64()?,
            layer_errno: from.u32()?,
            held: from.list(Reader::u64)?,
        })
    }
}

impl<'a> FromWorker<'a> {
    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let FromWorker::Ended(ended) = self {
            return ended.encode(out);
        }
        let out = &mut Writer(out);
        match self {
            FromWorker::Ready => out.u8(READY),
            FromWorker::Ended(_) => unreachable!("encoded above"),
            FromWorker::EndedPlaced { offset, len } => {
                out.u8(ENDED_PLACED);
                out.u64(*offset);
                out.u64(*len);
            }
            FromWorker::Alloc { request, bytes } => {
                out.u8(ALLOC);
                out.u64(*request);
                out.u64(*bytes);
            }
            FromWorker::Free { offset } => {
                out.u8(FREE);
                out.u64(*offset);
            }
            FromWorker::Unpin { offsets } => {
                out.u8(UNPIN);
                out.list(offsets, |out, offset| out.u64(*offset));
            }
            FromWorker::Released { task, attempt, output, blob } => {
                out.u8(RELEASED);
                out.u64(*task);
                out.u32(*attempt);
                out.u32(*output);
                put_blob(out, blob);
            }
            FromWorker::ReleasedFile { task, attempt, path } => {
                out.u8(RELEASED_FILE);
                out.u64(*task);
                out.u32(*attempt);
                out.u32(*path);
            }
            FromWorker::Yielded { task, attempt, number, blob } => {
                out.u8(YIELDED);
                out.u64(*task);
                out.u32(*attempt);
                out.u64(*number);
                put_blob(out, blob);
            }
            FromWorker::Stalled { task, attempt, claim, granted, since_ns, until_ns } => {
                out.u8(STALLED);
                out.u64(*task);
                out.u32(*attempt);
                out.u64(*claim);
                out.u64(*granted);
                out.u64(*since_ns);
                out.u64(*until_ns);
            }
        }
    }

    /// Reads one record, all of it.
    pub fn decode(record: &'a [u8]) -> Result<Self, Malformed> {
        let from = &mut Reader::new(record);
        let value = match from.u8()? {
            READY => FromWorker::Ready,
            ENDED => FromWorker::Ended(Ended::decode(from)?),
            ENDED_PLACED => FromWorker::EndedPlaced { offset: from.u64()?, len: from.u64()? },
            ALLOC => FromWorker::Alloc { request: from.u64()?, bytes: from.u64()? },
            FREE => FromWorker::Free { offset: from.u64()? },
            UNPIN => FromWorker::Unpin { offsets: from.list(Reader::u64)? },
            RELEASED => FromWorker::Released {
                task: from.u64()?,
                attempt: from.u32()?,
                output: from.u32()?,
                blob: get_blob(from)?,
            },
            RELEASED_FILE => FromWorker::ReleasedFile {
                task: from.u64()?,
                attempt: from.u32()?,
                path: from.u32()?,
            },
            YIELDED => FromWorker::Yielded {
                task: from.u64()?,
                attempt: from.u32()?,
                number: from.u64()?,
                blob: get_blob(from)?,
            },
            STALLED => FromWorker::Stalled {
                task: from.u64()?,
                attempt: from.u32()?,
                claim: from.u64()?,
                granted: from.u64()?,
                since_ns: from.u64()?,
                until_ns: from.u64()?,
            },
            _ => return Err(from.bad("no record from a worker has this tag")),
        };
        from.end()?;
        Ok(value)
    }
}

/// The place of a record that says that it is in the heap; `None`: it is another.
pub(crate) fn ended_place(record: &[u8]) -> Result<Option<(u64, u64)>, Malformed> {
    if record.first() != Some(&ENDED_PLACED) {
        return Ok(None);
    }
    match FromWorker::decode(record)? {
        FromWorker::EndedPlaced { offset, len } => Ok(Some((offset, len))),
        _ => unreachable!("the tag says so"),
    }
}
