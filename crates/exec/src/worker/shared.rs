//! What the threads of a worker share: the way to the driver, who reads, who waits for what.
//!
//! One of the waiting threads is the *leader*, reads the ring, and sleeps on the doorbell; the
//! others wait for it. A leader that takes something for itself wakes one other thread to lead.
//! Threads that wait for something of their own (an allocation, room in the ring to the driver)
//! lead or follow likewise. With one thread, the same code is: read the ring, sleep, read the
//! ring. A wake-up by the doorbell can mean a new record, or room in the ring to the driver; the
//! leader passes both on.
//!
//! Locks, in the order in which they may be taken: pins, out, inbox.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::mem::take;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::run::{Allocation, Assignment, Body, Function, Numbers, Output, StoreFull, Stretch};
use super::{Moved, EXIT_CORRUPT, EXIT_DRIVER_GONE, EXIT_FORKED};
use crate::claims::Claim;
use crate::mapped::Mapped;
use crate::memory::{Control, ControlRing, Heap};
use crate::pins::Pins;
use crate::process::Kind;
use crate::ring::{Consumer, Flag, Producer};
use crate::sys::{self, Epoll, Linger};
use crate::wire::{
    Blob, Credit, Ended, FromWorker, List, Outcome, Price, Run, ToWorker, INLINE_BYTES_MAX,
    RECORD_BYTES_MAX,
};

pub(super) const BELL_TAG: u64 = 0;
pub(super) const LIFE_TAG: u64 = 1;

/// Memory for a value so long is mapped at once.
const PREFAULT_BYTES_MIN: u64 = 64 << 10;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What `next` gives.
pub(super) enum Queued {
    Run { claim: Claim, record: Record },
    ForgetFunction(u64),
    Granted(u64),
}

/// The record of a run.
pub(super) enum Record {
    Here { record: Vec<u8>, about: About },
    Placed { offset: u64, len: u64 },
}

/// What is needed of a run without reading its record again.
pub(super) struct About {
    pub(super) task: u64,
    pub(super) attempt: u32,
    /// The ranges of the heap that it is given.
    pub(super) places: List<u64>,
    pub(super) stream: Option<Credit>,
}

impl About {
    fn new(run: &Run<'_>) -> Self {
        let blobs = run.inputs.iter().map(|(_, blob)| blob);
        let places = std::iter::once(&run.arguments).chain(blobs).filter_map(|blob| match blob {
            Blob::Placed { offset, .. } => Some(*offset),
            Blob::Inline(_) => None,
        });
        let Run { task, attempt, stream, .. } = *run;
        Self { task, attempt, places: places.collect(), stream }
    }
}

/// A stream whose producer runs here.
pub(super) struct Stream {
    credit: Credit,
    /// It waits to be granted more.
    waits: bool,
}

impl Stream {
    fn grant(&mut self, granted: u64, closed: bool) {
        self.credit.granted = self.credit.granted.max(granted);
        self.credit.closed |= closed;
    }
}

pub(super) struct Inbox {
    pub(super) incoming: Consumer<ControlRing>,
    pub(super) buffer: Vec<u8>,
    pub(super) queue: VecDeque<Queued>,
    pub(super) answers: HashMap<u64, Option<u64>>,
    /// By claim: the producers of streams that run here.
    pub(super) streams: HashMap<u64, Stream>,
    pub(super) stop: bool,
    pub(super) led: bool,
    pub(super) linger: Linger,
    /// Threads that wait to be given something by the leader: in `next`, and elsewhere.
    pub(super) followers: usize,
    pub(super) others: usize,
}

impl Inbox {
    /// A run has come. The driver may grant its stream more from now on, before it is begun.
    fn arrived(&mut self, claim: u64, record: Record, credit: Option<Credit>) {
        if let Some(credit) = credit {
            self.streams.insert(claim, Stream { credit, waits: false });
        }
        self.queue.push_back(Queued::Run { claim: Claim(claim), record });
    }

    /// The stream of a run may go further; one that is over may go nowhere.
    fn granted(&mut self, claim: u64, granted: u64, closed: bool) {
        let Some(producer) = self.streams.get_mut(&claim) else { return };
        producer.grant(granted, closed);
        if take(&mut producer.waits) {
            self.queue.push_front(Queued::Granted(claim));
        }
    }
}

pub(super) struct Out {
    pub(super) outgoing: Producer<ControlRing>,
    pub(super) scratch: Vec<u8>,
}

/// What the threads of a worker share.
pub(crate) struct Shared {
    pub(super) control: Arc<Control>,
    pub(crate) heap: Arc<Heap>,
    pub(super) area: usize,
    pub(super) kind: Kind,
    pub(super) slots: u32,
    pub(super) epoll: Epoll,
    pub(super) _life: OwnedFd,
    pub(super) _bell: OwnedFd,
    pub(super) driver_bell: OwnedFd,
    pub(super) inbox: Mutex<Inbox>,
    pub(super) following: Condvar,
    pub(super) other: Condvar,
    pub(super) out: Mutex<Out>,
    pub(crate) pins: Mutex<Pins>,
    pub(super) functions: Mutex<HashMap<u64, Arc<Function>>>,
    pub(super) requests: AtomicU64,
    /// Pages of the heap that this process wrote, as far as it knows: the driver gives memory back
    /// without a word.
    pub(super) mapped: Mutex<Mapped>,
    pub(super) forks: u64,
}

/// Who waits for the leader.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiter {
    Next,
    Other,
}

impl Shared {
    pub(crate) fn is_forked(&self) -> bool {
        self.forks != sys::forks()
    }

    /// Ends a child that a task forked: what the driver says is for its parent, and the locks may
    /// be held by threads that are not here.
    fn end_forked(&self) {
        if self.is_forked() {
            let came_back = "a child that a task forked came back from the task's body, or handed \
                             something over; end it with os._exit, or let it call exec";
            give_up(&came_back, EXIT_FORKED);
        }
    }

    /// Sends a record; waits while the ring is full.
    pub(crate) fn push(&self, record: &FromWorker<'_>) {
        if self.is_forked() {
            return;
        }
        let mut out = lock(&self.out);
        let Out { outgoing, scratch } = &mut *out;
        scratch.clear();
        record.encode(scratch);
        assert!(scratch.len() <= RECORD_BYTES_MAX, "long records are placed before");
        if !outgoing.push(scratch) {
            self.wait_for(Waiter::Other, |_| outgoing.wait_for_room(scratch).then_some(()));
        }
        if outgoing.must_wake(self.control.driver_asleep()) {
            sys::ring_bell(self.driver_bell.as_fd());
        }
    }

    /// Waits until `attempt` gives something, leading or following.
    pub(super) fn wait_for<T>(
        &self,
        waiter: Waiter,
        mut attempt: impl FnMut(&mut Inbox) -> Option<T>,
    ) -> T {
        self.end_forked();
        let mut inbox = lock(&self.inbox);
        loop {
            if let Some(taken) = attempt(&mut inbox) {
                self.pass_on(&inbox);
                return taken;
            }
            if inbox.led {
                inbox = self.follow(inbox, waiter);
                continue;
            }
            if self.read_ring(&mut inbox) > 0 {
                continue;
            }
            let Inbox { incoming, linger, .. } = &mut *inbox;
            if self.kind == Kind::Compute && linger.linger(|| !incoming.is_empty()) {
                continue;
            }
            let asleep = self.control.worker_asleep(self.area);
            if inbox.incoming.prepare_sleep(asleep) {
                inbox.led = true;
                let mut linger = take(&mut inbox.linger);
                drop(inbox);
                linger.sleep(|| self.sleep());
                asleep.lower();
                inbox = lock(&self.inbox);
                inbox.linger = linger;
                inbox.led = false;
                if inbox.others > 0 {
                    self.other.notify_all();
                }
            }
        }
    }

    fn follow<'a>(
        &self,
        mut inbox: MutexGuard<'a, Inbox>,
        waiter: Waiter,
    ) -> MutexGuard<'a, Inbox> {
        match waiter {
            Waiter::Next => inbox.followers += 1,
            Waiter::Other => inbox.others += 1,
        }
        let condition = match waiter {
            Waiter::Next => &self.following,
            Waiter::Other => &self.other,
        };
        let mut inbox = condition.wait(inbox).unwrap_or_else(|poisoned| poisoned.into_inner());
        match waiter {
            Waiter::Next => inbox.followers -= 1,
            Waiter::Other => inbox.others -= 1,
        }
        inbox
    }

    /// Before a thread leaves with what it took: somebody else takes the rest, or leads.
    fn pass_on(&self, inbox: &Inbox) {
        let vacant = !inbox.led;
        if inbox.followers > 0 && (vacant || inbox.stop || !inbox.queue.is_empty()) {
            self.following.notify_one();
        } else if inbox.others > 0 && vacant {
            self.other.notify_one();
        }
    }

    /// Takes everything out of the ring; how many records there were.
    fn read_ring(&self, inbox: &mut Inbox) -> usize {
        let mut records = 0;
        loop {
            match inbox.incoming.pop(&mut inbox.buffer) {
                Ok(true) => self.sort(inbox),
                Ok(false) => break,
                Err(error) => corrupt(&error),
            }
            records += 1;
        }
        if records > 0 && inbox.incoming.must_wake() {
            sys::ring_bell(self.driver_bell.as_fd());
        }
        records
    }

    /// Puts the record in the buffer where its taker looks for it.
    fn sort(&self, inbox: &mut Inbox) {
        let buffer = take(&mut inbox.buffer);
        let mut run = None;
        match ToWorker::decode(&buffer) {
            Ok(ToWorker::Run(it)) => run = Some((it.claim, About::new(&it))),
            Ok(ToWorker::RunPlaced { claim, offset, len }) => {
                // What its record says of a stream is added when it is begun.
                let credit = Credit {
                    made: 0,
                    spent: 0,
                    granted: 0,
                    closed: false,
                    price: Price { least: 0, most: 0 },
                };
                inbox.arrived(claim, Record::Placed { offset, len }, Some(credit));
            }
            Ok(ToWorker::Granted { claim, granted, closed }) => {
                inbox.granted(claim, granted, closed);
            }
            Ok(ToWorker::ForgetFunction { id }) => {
                inbox.queue.push_back(Queued::ForgetFunction(id));
            }
            Ok(ToWorker::Function { id, name, asynchronous, blob }) => {
                self.keep_function(id, name, asynchronous, &blob);
            }
            Ok(ToWorker::Allocated { request, offset }) => {
                inbox.answers.insert(request, offset);
                self.other.notify_all();
            }
            Ok(ToWorker::Stop) => inbox.stop = true,
            Err(error) => corrupt(&error),
        }
        if let Some((claim, about)) = run {
            let credit = about.stream;
            inbox.arrived(claim, Record::Here { record: buffer, about }, credit);
        } else {
            inbox.buffer = buffer;
        }
    }

    fn keep_function(&self, id: u64, name: &str, asynchronous: bool, blob: &Blob<'_>) {
        let body = match *blob {
            Blob::Inline(bytes) => Body::Here(bytes.into()),
            Blob::Placed { offset, len } => Body::Placed { heap: self.heap.clone(), offset, len },
        };
        let function = Function { id, name: name.to_owned(), asynchronous, body };
        lock(&self.functions).insert(id, Arc::new(function));
    }

    fn sleep(&self) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 2];
        let driver_gone = match self.epoll.wait(&mut events, -1) {
            Ok(mut ready) => ready.any(|tag| tag == LIFE_TAG),
            Err(error) => corrupt(&error),
        };
        if driver_gone {
            // SAFETY: ends the process without running anything of the user's.
            unsafe { libc::_exit(EXIT_DRIVER_GONE) };
        }
    }
}

impl Shared {
    /// Room for a value of `len` bytes; asks the driver for memory if it is long.
    pub(super) fn output(self: &Arc<Self>, len: u64) -> Result<Output, StoreFull> {
        if len <= INLINE_BYTES_MAX as u64 {
            return Ok(Output::Inline(vec![0; len as usize]));
        }
        self.allocate(len).map(Output::Placed)
    }

    pub(super) fn allocate(self: &Arc<Self>, len: u64) -> Result<Allocation, StoreFull> {
        let request = self.ask(len);
        self.answer(request, len).ok_or(StoreFull { bytes: len })
    }

    /// Asks the driver for memory; the number to take its answer by.
    pub(super) fn ask(&self, len: u64) -> u64 {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        self.push(&FromWorker::Alloc { request, bytes: len });
        request
    }

    /// Waits for what the driver answers; `None`: it has no memory.
    pub(super) fn answer(self: &Arc<Self>, request: u64, len: u64) -> Option<Allocation> {
        let offset = self.wait_for(Waiter::Other, |inbox| inbox.answers.remove(&request))?;
        if !self.heap.contains(offset, len) {
            corrupt(&"the driver allocated a range that is not in the heap");
        }
        if len >= PREFAULT_BYTES_MIN && !lock(&self.mapped).set(offset, len) {
            self.heap.prefault_write(offset, len);
        }
        Some(Allocation { shared: self.clone(), offset, len, kept: false })
    }

    pub(super) fn end(
        self: &Arc<Self>,
        assignment: &mut Assignment,
        outcome: Outcome<'_>,
        moved: Moved,
    ) -> Result<(), StoreFull> {
        self.end_forked();
        let ended_ns = sys::now_ns();
        assignment.stretch.end(ended_ns);
        let Stretch { since_ns, ran_ns, cpu_ns, .. } = assignment.stretch;
        let mut ended = Ended {
            task: assignment.task,
            attempt: assignment.attempt,
            claim: assignment.claim.0,
            outcome,
            started_ns: assignment.started_ns,
            since_ns,
            ended_ns,
            ran_ns,
            cpu_ns,
            bytes_read: moved.bytes_read,
            bytes_written: moved.bytes_written,
            layer_errno: moved.layer_errno,
            held: Default::default(),
        };
        // The most that the record can be, to have its place before the pins are locked.
        let most = ended.bytes_max() + 8 * assignment.places.len();
        let place = (most > RECORD_BYTES_MAX).then(|| self.allocate(most as u64)).transpose()?;
        let mut pins = lock(&self.pins);
        if !pins.is_empty() {
            ended.held = pins.tell(&assignment.places);
        }
        assignment.ended = true;
        if assignment.is_stream {
            lock(&self.inbox).streams.remove(&assignment.claim.0);
        }
        let Some(mut place) = place else {
            self.push(&FromWorker::Ended(ended));
            return Ok(());
        };
        let mut record = Vec::with_capacity(most);
        ended.encode(&mut record);
        place.bytes_mut()[..record.len()].copy_from_slice(&record);
        let (offset, len) = (place.offset, record.len() as u64);
        self.push(&FromWorker::EndedPlaced { offset, len });
        drop(pins);
        Ok(())
    }

    /// Begins a run, unless the driver took it back.
    pub(super) fn begin(self: &Arc<Self>, claim: Claim, record: Record) -> Option<Assignment> {
        if !self.control.claims(self.area).begin(claim) {
            lock(&self.inbox).streams.remove(&claim.0);
            return None;
        }
        let (record, about) = match record {
            Record::Here { record, about } => (record, about),
            Record::Placed { offset, len } => {
                let (record, about) = self.fetch(offset, len);
                self.correct(claim, about.stream);
                (record, about)
            }
        };
        let About { task, attempt, places, stream } = about;
        let (shared, started_ns) = (self.clone(), sys::now_ns());
        Some(Assignment {
            shared,
            record,
            task,
            attempt,
            claim,
            started_ns,
            stretch: Stretch::new(started_ns),
            places,
            released: Numbers::default(),
            released_files: BTreeSet::new(),
            is_stream: stream.is_some(),
            ended: false,
        })
    }

    /// What the record of a run says about its stream is known only now.
    fn correct(&self, claim: Claim, stream: Option<Credit>) {
        let streams = &mut lock(&self.inbox).streams;
        match (stream, streams.get_mut(&claim.0)) {
            (Some(sent), Some(producer)) => {
                let heard = std::mem::replace(&mut producer.credit, sent);
                producer.grant(heard.granted, heard.closed);
            }
            _ => {
                streams.remove(&claim.0);
            }
        }
    }

    /// What has come, read by somebody.
    fn up_to_date(&self) -> MutexGuard<'_, Inbox> {
        self.end_forked();
        let mut inbox = lock(&self.inbox);
        if !inbox.led {
            self.read_ring(&mut inbox);
            self.pass_on(&inbox);
        }
        inbox
    }

    /// How far the producer of a stream may go.
    pub(super) fn credit(&self, claim: Claim) -> Option<Credit> {
        self.up_to_date().streams.get(&claim.0).map(|producer| producer.credit)
    }

    /// The producer of a stream has handed over a value: how far it may go now.
    pub(super) fn spend(&self, claim: Claim, bytes: u64) -> Option<Credit> {
        let mut inbox = self.up_to_date();
        let credit = &mut inbox.streams.get_mut(&claim.0)?.credit;
        credit.spent += credit.price.of(bytes);
        Some(*credit)
    }

    /// Has a producer wait, unless it may make more. Gives what it knows that it may spend.
    pub(super) fn stall(&self, claim: Claim) -> Option<u64> {
        let mut inbox = self.up_to_date();
        let producer = inbox.streams.get_mut(&claim.0)?;
        producer.waits = producer.credit.is_used_up();
        producer.waits.then_some(producer.credit.granted)
    }

    /// The record of a run that has been begun, from the heap.
    fn fetch(&self, offset: u64, len: u64) -> (Vec<u8>, About) {
        if !self.heap.contains(offset, len) {
            corrupt(&"the driver placed a record outside of the heap");
        }
        // SAFETY: once the run is begun the driver keeps its record until it has ended.
        let record = unsafe { self.heap.slice(offset, len) }.to_vec();
        let about = match ToWorker::decode(&record) {
            Ok(ToWorker::Run(run)) => About::new(&run),
            Ok(_) => corrupt(&"the driver placed a record that is not a run"),
            Err(error) => corrupt(&error),
        };
        (record, about)
    }
}

fn corrupt(error: &dyn fmt::Display) -> ! {
    give_up(error, EXIT_CORRUPT)
}

/// Ends this process, which cannot go on.
pub(super) fn give_up(error: &dyn fmt::Display, code: i32) -> ! {
    sys::tell(&format!("alongside worker {}: {error}; it ends", std::process::id()));
    // SAFETY: ends the process without running anything of the user's.
    unsafe { libc::_exit(code) };
}
