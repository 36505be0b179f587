//! A small driver for tests: one pool, some workers, a heap that is given out from the front.

use std::time::Duration;

use exec::poller::Poller;
use exec::process::{Kind, Pool, Process, Spec};
use exec::wire::{Blob, FromWorker, Outcome, Run, ToWorker};

/// Longer than any wait that goes well.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What was received, with everything copied out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    Ready,
    Done { task: u64, outputs: Vec<Vec<u8>>, held: Vec<u64> },
    Raised { task: u64, exception: Vec<u8>, held: Vec<u64> },
    Unpin(Vec<u64>),
    Free(u64),
    Released { task: u64 },
    Yielded { number: u64 },
    Stalled { granted: u64, until_ns: u64 },
    End(u64),
}

/// One pool and one worker.
pub struct Driver {
    pub pool: Pool,
    pub worker: Process,
    /// When the last run that ended had last gone on.
    pub last_since_ns: u64,
    /// How long the run ran that waited; one at a time does.
    ran_ns: u64,
    buffer: Vec<u8>,
    got: std::collections::VecDeque<Got>,
    /// Where the next allocation goes; allocations beyond `full_at` are refused.
    pub next_offset: u64,
    pub full_at: u64,
}

pub fn spec(slots: u32) -> Spec {
    let kind = if slots == 1 { Kind::Compute } else { Kind::Io };
    let command = vec![env!("CARGO_BIN_EXE_exec-test-worker").into()];
    Spec { kind, slots, command, environment: Vec::new() }
}

pub fn run(task: u64, function: u64, argument: &[u8]) -> Run<'_> {
    Run {
        task,
        attempt: 1,
        claim: 0,
        function,
        arguments: Blob::Inline(argument),
        inputs: Default::default(),
        paths: Default::default(),
        returns: 1,
        writes: Default::default(),
        durable: false,
        processors: Default::default(),
        stream: None,
    }
}

impl Driver {
    pub fn start(slots: u32) -> Self {
        let pool = Pool::new(1 << 30).expect("shared memory");
        let worker = pool.spawn(&spec(slots), 1).expect("a worker");
        let (buffer, got) = (Vec::new(), Default::default());
        let (last_since_ns, ran_ns, next_offset, full_at) = (0, 0, 0, 1 << 30);
        Self { pool, worker, last_since_ns, ran_ns, buffer, got, next_offset, full_at }
    }

    pub fn poller(&self) -> &Poller {
        self.pool.poller()
    }

    fn copy(&self, blob: &Blob<'_>) -> Vec<u8> {
        match *blob {
            Blob::Inline(bytes) => bytes.to_vec(),
            // SAFETY: the worker handed the range over; nothing in these tests writes it again.
            Blob::Placed { offset, len } => unsafe { self.pool.heap().slice(offset, len).to_vec() },
        }
    }

    /// Takes what has come, looking only where something may have; answers allocations.
    pub fn receive(&mut self) -> usize {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut records = 0;
        while self.worker.may_have_reported() {
            let record = self.worker.receive(&mut buffer).expect("sound records");
            let Some(record) = record else { break };
            records += 1;
            let got = match record {
                FromWorker::Ready => Got::Ready,
                FromWorker::Ended(ended) => {
                    assert!(ended.started_ns <= ended.since_ns && ended.since_ns <= ended.ended_ns);
                    self.last_since_ns = ended.since_ns;
                    self.ran_ns += ended.ended_ns - ended.since_ns;
                    assert_eq!(std::mem::take(&mut self.ran_ns), ended.ran_ns);
                    let (task, held) = (ended.task, ended.held.to_vec());
                    match &ended.outcome {
                        Outcome::Done { outputs } => {
                            let outputs = outputs.iter().map(|blob| self.copy(blob)).collect();
                            Got::Done { task, outputs, held }
                        }
                        Outcome::Raised { blob } => {
                            Got::Raised { task, exception: self.copy(blob), held }
                        }
                    }
                }
                FromWorker::Alloc { request, bytes } => {
                    let offset = self.next_offset.next_multiple_of(64);
                    let fits = offset + bytes <= self.full_at;
                    self.next_offset = if fits { offset + bytes } else { offset };
                    let offset = fits.then_some(offset);
                    self.worker.send(&ToWorker::Allocated { request, offset }).expect("short");
                    continue;
                }
                FromWorker::EndedPlaced { .. } => unreachable!("receive resolves it"),
                FromWorker::Free { offset } => Got::Free(offset),
                FromWorker::Unpin { offsets } => Got::Unpin(offsets.to_vec()),
                FromWorker::ReleasedFile { task, .. } | FromWorker::Released { task, .. } => {
                    Got::Released { task }
                }
                FromWorker::Yielded { number, .. } => Got::Yielded { number },
                FromWorker::Stalled { granted, since_ns, until_ns, .. } => {
                    self.ran_ns += until_ns - since_ns;
                    Got::Stalled { granted, until_ns }
                }
            };
            self.got.push_back(got);
        }
        self.buffer = buffer;
        records
    }

    /// Waits for the next thing.
    pub fn next(&mut self) -> Got {
        loop {
            self.receive();
            if let Some(got) = self.got.pop_front() {
                return got;
            }
            if self.poller().prepare_sleep() {
                let mut ended = Vec::new();
                self.poller().wait(Some(PATIENCE), &mut ended).expect("a wait");
                self.receive();
                self.got.extend(ended.into_iter().map(Got::End));
            }
        }
    }

    pub fn send(&mut self, task: u64, function: u64, argument: &[u8]) -> exec::claims::Claim {
        self.worker.send_run(&mut run(task, function, argument)).expect("room for a task")
    }

    /// Writes a value into the heap.
    pub fn place(&mut self, bytes: &[u8]) -> u64 {
        let offset = self.next_offset.next_multiple_of(64);
        self.next_offset = offset + bytes.len() as u64;
        // SAFETY: a new range, nobody knows it yet.
        unsafe {
            self.pool.heap().slice_mut(offset, bytes.len() as u64).copy_from_slice(bytes);
        }
        offset
    }
}
