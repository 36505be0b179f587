//! The driver's side: worker processes, started, spoken to, and known to be dead.
//!
//! A worker inherits five descriptors (control area, heap, its end of a socket pair, its doorbell,
//! the driver's doorbell), named in the environment variable [`ENVIRONMENT`]. The socket carries no
//! bytes: it is there so that either side learns when the other is gone. Besides, the kernel
//! kills a worker when the thread that started it ends (`PR_SET_PDEATHSIG`), **so start workers
//! from a thread that lives as long as the driver**. All descriptors are close-on-exec; between
//! fork and exec the child clears that for its own five only.
//!
//! A worker's end is told by [`Poller::wait`], once. Then: [`Process::receive`] until there is
//! nothing (what it reported before it died counts), [`Process::begun`], [`Process::reap`].

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::claims::{Claim, TASKS_SENT_MAX};
use crate::exit::Exit;
use crate::limiter::Limiters;
use crate::memory::{self, Control, ControlRing, Heap, AREAS_MAX};
use crate::poller::Poller;
use crate::ring::{Consumer, Corrupt, Producer};
use crate::sys;
use crate::wire::{self, FromWorker, Malformed, Run, ToWorker, TooLarge, RECORD_BYTES_MAX};

/// How a worker finds what it inherited.
pub const ENVIRONMENT: &str = "ALONGSIDE_WORKER";

/// What a worker is for. Only handed on to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One thread that computes.
    Compute,
    /// Many threads that wait for storage.
    Io,
}

/// What to start.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What it is for.
    pub kind: Kind,
    /// How many tasks it runs at once.
    pub slots: u32,
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Environment variables besides the driver's own.
    pub environment: Vec<(OsString, OsString)>,
}

/// Why a worker was not started.
#[derive(Debug)]
pub enum SpawnError {
    /// [`AREAS_MAX`] workers are alive already.
    TooMany,
    /// The system refused.
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::TooMany => write!(
                f,
                "cannot start a worker: {AREAS_MAX} are running already, and that is the most; \
                 ask for fewer workers"
            ),
            SpawnError::System { doing, error } => {
                write!(f, "cannot start a worker: {doing}: {error}")
            }
        }
    }
}

impl std::error::Error for SpawnError {}

/// Why a record was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// It is too long for a ring: place it in the heap (`send_run_placed`), or its blobs.
    TooLarge(TooLarge),
    /// [`TASKS_SENT_MAX`] runs that do not stall are at this worker already.
    TooManyTasks,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::TooLarge(error) => error.fmt(f),
            SendError::TooManyTasks => {
                write!(f, "{TASKS_SENT_MAX} tasks are at this worker already")
            }
        }
    }
}

impl std::error::Error for SendError {}

/// Why a worker cannot be understood any more. Kill it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveError {
    /// The ring makes no sense.
    Corrupt(Corrupt),
    /// A record makes no sense.
    Malformed(Malformed),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReceiveError::Corrupt(error) => error.fmt(f),
            ReceiveError::Malformed(error) => write!(f, "the worker sent {error}"),
        }
    }
}

impl std::error::Error for ReceiveError {}

/// What all workers share, and the way to start them.
#[derive(Debug)]
pub struct Pool {
    control: Arc<Control>,
    heap: Arc<Heap>,
    poller: Arc<Poller>,
    areas: Arc<Areas>,
}

/// Which areas are free.
#[derive(Debug)]
struct Areas(Mutex<Vec<usize>>);

impl Areas {
    fn free(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Pool {
    /// Makes the shared memory: a control area, and a heap of `heap_bytes` address space.
    pub fn new(heap_bytes: u64) -> io::Result<Self> {
        sys::forks();
        sys::fill_standard_streams()?;
        let control = Arc::new(Control::new()?);
        let heap = Arc::new(Heap::new(heap_bytes)?);
        let poller = Arc::new(Poller::new(control.clone())?);
        let areas = Arc::new(Areas(Mutex::new((0..AREAS_MAX).rev().collect())));
        Ok(Self { control, heap, poller, areas })
    }

    /// The heap.
    pub fn heap(&self) -> &Arc<Heap> {
        &self.heap
    }

    /// Where the driver sleeps.
    pub fn poller(&self) -> &Arc<Poller> {
        &self.poller
    }

    /// The emulated bandwidths.
    pub fn limiters(&self) -> Limiters {
        Limiters::new(self.control.clone())
    }

    /// Starts a worker. `token` is what the poller will tell when it ends; any but `u64::MAX`.
    pub fn spawn(&self, spec: &Spec, token: u64) -> Result<Process, SpawnError> {
        let area = self.areas.free().pop().ok_or(SpawnError::TooMany)?;
        let lease = Lease { area, areas: self.areas.clone() };
        self.control.reset(area);
        let failed = |doing| move |error| SpawnError::System { doing, error };
        let (life, theirs) = UnixStream::pair().map_err(failed("making a socket pair"))?;
        let bell = sys::bell().map_err(failed("making a doorbell"))?;
        let inherited = [
            self.control.fd().as_raw_fd(),
            self.heap.fd().as_raw_fd(),
            theirs.as_raw_fd(),
            bell.as_raw_fd(),
            self.poller.bell().as_raw_fd(),
        ];
        let mut command = command(spec, &inherited, area);
        let mut child = command.spawn().map_err(failed("starting the program"))?;
        drop(theirs);
        let pidfd = sys::pidfd(child.id());
        let end = pidfd.as_ref().map_or(life.as_fd(), |pidfd| pidfd.as_fd());
        if let Err(error) = self.poller.open(area, end, token) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed("watching its process")(error));
        }
        let incoming = Consumer::new(memory::from_worker(&self.control, area));
        let outgoing = Producer::new(memory::to_worker(&self.control, area));
        Ok(Process {
            control: self.control.clone(),
            heap: self.heap.clone(),
            poller: self.poller.clone(),
            lease,
            child,
            pidfd,
            life,
            bell,
            incoming,
            outgoing,
            backlog: VecDeque::new(),
            all_taken: false,
            claims: ClaimTable::new(),
            exit: None,
            forks: sys::forks(),
            scratch: Vec::new(),
        })
    }
}

fn command(spec: &Spec, inherited: &[i32; 5], area: usize) -> Command {
    let [control, heap, life, bell, driver_bell] = *inherited;
    let kind = match spec.kind {
        Kind::Compute => "compute",
        Kind::Io => "io",
    };
    let slots = spec.slots;
    let mut command = Command::new(spec.command.first().map_or("".as_ref(), |it| it.as_os_str()));
    command.args(spec.command.iter().skip(1)).stdin(Stdio::null());
    command.envs(spec.environment.iter().map(|(key, value)| (key, value)));
    command.env(
        ENVIRONMENT,
        format!("1 {control} {heap} {life} {bell} {driver_bell} {area} {kind} {slots}"),
    );
    let (inherited, parent) = (*inherited, std::process::id());
    // SAFETY: between fork and exec only system calls are made, and no memory is asked for.
    unsafe { command.pre_exec(move || prepare_child(&inherited, parent)) };
    command
}

/// Runs in the child between fork and exec.
fn prepare_child(inherited: &[i32; 5], parent: u32) -> io::Result<()> {
    // SAFETY: plain system calls. Ctrl-C at a terminal goes to the whole group; a worker leaves it
    // to the driver, also while it is still starting.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        sys::check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        if libc::getppid() as u32 != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
    }
    for fd in inherited {
        sys::set_cloexec(*fd, false)?;
    }
    Ok(())
}

/// An area in use; free again on drop.
#[derive(Debug)]
struct Lease {
    area: usize,
    areas: Arc<Areas>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.areas.free().push(self.area);
    }
}

/// A run at a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The driver's number of the task.
    pub task: u64,
    /// Which run of it.
    pub attempt: u32,
    /// Its claim.
    pub claim: Claim,
}

/// Which run has which slot.
#[derive(Debug)]
struct ClaimTable {
    sent: Vec<Option<Sent>>,
    free: Vec<usize>,
    /// Runs that have waited for their consumers, by claim. They have begun, which is all that a
    /// slot tells, so their slots are free: as many of them as there are streams wait at a worker.
    stalled: BTreeMap<u64, Sent>,
    sequence: u64,
}

impl ClaimTable {
    fn new() -> Self {
        Self { sent: Vec::new(), free: Vec::new(), stalled: BTreeMap::new(), sequence: 0 }
    }

    fn take(&mut self, task: u64, attempt: u32) -> Option<Claim> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.sent.len() < TASKS_SENT_MAX => {
                self.sent.push(None);
                self.sent.len() - 1
            }
            None => return None,
        };
        self.sequence += 1;
        let claim = Claim::new(self.sequence, slot);
        assert!(self.sent[slot].is_none(), "a slot has one use at a time");
        self.sent[slot] = Some(Sent { task, attempt, claim });
        Some(claim)
    }

    /// Frees the slot of a run, if it has one.
    fn free(&mut self, claim: Claim) -> Option<Sent> {
        let slot = claim.slot();
        let sent = self.sent.get_mut(slot)?.take_if(|at| at.claim == claim)?;
        self.free.push(slot);
        Some(sent)
    }

    /// A run is over, or taken back; `false`: it is not there.
    fn give(&mut self, claim: Claim) -> bool {
        self.free(claim).is_some() || self.stalled.remove(&claim.0).is_some()
    }

    /// A run waits for its consumers. One that went on meanwhile may even be over.
    fn stall(&mut self, claim: Claim) {
        if let Some(sent) = self.free(claim) {
            self.stalled.insert(claim.0, sent);
        }
    }

    fn all(&self) -> impl Iterator<Item = Sent> + '_ {
        self.sent.iter().flatten().chain(self.stalled.values()).copied()
    }
}

/// One worker process. Dropping it kills it and waits for its end.
#[derive(Debug)]
pub struct Process {
    control: Arc<Control>,
    heap: Arc<Heap>,
    poller: Arc<Poller>,
    lease: Lease,
    child: Child,
    pidfd: Option<OwnedFd>,
    life: UnixStream,
    bell: OwnedFd,
    incoming: Consumer<ControlRing>,
    outgoing: Producer<ControlRing>,
    /// Records for which the ring had no room.
    backlog: VecDeque<Vec<u8>>,
    /// The last look into its ring found nothing more, and saw whether it waits for room there.
    all_taken: bool,
    claims: ClaimTable,
    exit: Option<Exit>,
    forks: u64,
    scratch: Vec<u8>,
}

impl Process {
    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a record that is not a run. Never blocks.
    pub fn send(&mut self, record: &ToWorker<'_>) -> Result<(), TooLarge> {
        assert!(
            !matches!(record, ToWorker::Run(_) | ToWorker::RunPlaced { .. }),
            "runs are sent by send_run, which gives them a claim"
        );
        self.scratch.clear();
        record.encode(&mut self.scratch);
        if self.scratch.len() > RECORD_BYTES_MAX {
            return Err(TooLarge { bytes: self.scratch.len() });
        }
        self.push_scratch();
        Ok(())
    }

    /// Sends a run; its `claim` is filled here. Never blocks.
    pub fn send_run(&mut self, run: &mut Run<'_>) -> Result<Claim, SendError> {
        let claim = self.encode_run(run)?;
        if self.scratch.len() > RECORD_BYTES_MAX {
            self.claims.give(claim);
            return Err(SendError::TooLarge(TooLarge { bytes: self.scratch.len() }));
        }
        self.control.claims(self.lease.area).queue(claim);
        self.push_scratch();
        Ok(claim)
    }

    /// Sends a run whose record is too large for a ring by way of the heap.
    ///
    /// # Safety
    /// The `room` bytes at `offset` are the caller's, and nobody else touches them until the run
    /// has ended, was recalled, or the process is dead.
    pub unsafe fn send_run_placed(
        &mut self,
        run: &mut Run<'_>,
        offset: u64,
        room: u64,
    ) -> Result<Claim, SendError> {
        let claim = self.encode_run(run)?;
        let len = self.scratch.len() as u64;
        if len > room {
            self.claims.give(claim);
            return Err(SendError::TooLarge(TooLarge { bytes: self.scratch.len() }));
        }
        // SAFETY: the range is the caller's.
        unsafe { self.heap.slice_mut(offset, len).copy_from_slice(&self.scratch) };
        self.control.claims(self.lease.area).queue(claim);
        self.scratch.clear();
        ToWorker::RunPlaced { claim: claim.0, offset, len }.encode(&mut self.scratch);
        self.push_scratch();
        Ok(claim)
    }

    fn encode_run(&mut self, run: &mut Run<'_>) -> Result<Claim, SendError> {
        let claim = self.claims.take(run.task, run.attempt).ok_or(SendError::TooManyTasks)?;
        run.claim = claim.0;
        self.scratch.clear();
        run.encode(&mut self.scratch);
        Ok(claim)
    }

    fn push_scratch(&mut self) {
        self.flush();
        if self.backlog.is_empty() && self.outgoing.push(&self.scratch) {
            self.wake_worker();
        } else {
            self.backlog.push_back(self.scratch.clone());
            self.flush();
        }
    }

    fn wake_worker(&mut self) {
        if self.outgoing.must_wake(self.control.worker_asleep(self.lease.area)) {
            sys::ring_bell(self.bell.as_fd());
        }
    }

    /// Sends what the ring had no room for. `receive` does so too; when room comes, the worker
    /// rings the driver's bell.
    pub fn flush(&mut self) {
        let mut pushed = false;
        while let Some(record) = self.backlog.front() {
            if !self.outgoing.push(record) && !self.outgoing.wait_for_room(record) {
                break;
            }
            pushed = true;
            self.backlog.pop_front();
        }
        if pushed {
            self.wake_worker();
        }
    }

    /// How many records wait for room in the ring.
    pub fn backlog(&self) -> usize {
        self.backlog.len()
    }

    /// Whether [`Process::receive`] may have something to do. Asked of every worker whenever one of
    /// them has reported something.
    pub fn may_have_reported(&self) -> bool {
        !self.all_taken || !self.backlog.is_empty() || !self.incoming.is_empty()
    }

    /// The next record from the worker, in `buffer`; `None`: nothing more at this moment. The
    /// claim of a run that ended is given back here, and the slot of one that stalls. After an
    /// error, kill it.
    pub fn receive<'b>(
        &mut self,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<FromWorker<'b>>, ReceiveError> {
        let popped = self.incoming.pop(buffer);
        self.all_taken = matches!(popped, Ok(false));
        match popped {
            Ok(true) => {}
            Ok(false) => {
                if self.incoming.must_wake() {
                    sys::ring_bell(self.bell.as_fd());
                }
                self.flush();
                return Ok(None);
            }
            Err(error) => {
                self.poller.close(self.lease.area);
                return Err(ReceiveError::Corrupt(error));
            }
        }
        match self.decode(buffer) {
            Ok(record) => {
                if let FromWorker::Ended(ended) = &record {
                    if !self.claims.give(Claim(ended.claim)) {
                        self.poller.close(self.lease.area);
                        let expected = "only a run that is at this worker can end";
                        return Err(ReceiveError::Malformed(Malformed { at: 13, expected }));
                    }
                }
                if let FromWorker::Stalled { claim, .. } = &record {
                    self.claims.stall(Claim(*claim));
                }
                Ok(Some(record))
            }
            Err(error) => {
                self.poller.close(self.lease.area);
                Err(ReceiveError::Malformed(error))
            }
        }
    }

    fn decode<'b>(&self, buffer: &'b mut Vec<u8>) -> Result<FromWorker<'b>, Malformed> {
        let Some((offset, len)) = wire::ended_place(buffer)? else {
            return FromWorker::decode(buffer);
        };
        if !self.heap.contains(offset, len) || len > wire::PLACED_RECORD_BYTES_MAX {
            return Err(Malformed { at: 0, expected: "a placed record is in the heap" });
        }
        buffer.clear();
        // SAFETY: the worker keeps the range for its record until it sends `Free`, which is
        // behind this record in the ring.
        buffer.extend_from_slice(unsafe { self.heap.slice(offset, len) });
        match FromWorker::decode(buffer)? {
            ended @ FromWorker::Ended(_) => Ok(ended),
            _ => Err(Malformed { at: 0, expected: "a placed record is the end of a run" }),
        }
    }

    /// Everything that the worker has sent so far, one record after another.
    pub fn drain(
        &mut self,
        buffer: &mut Vec<u8>,
        mut handle: impl FnMut(FromWorker<'_>),
    ) -> Result<usize, ReceiveError> {
        let mut records = 0;
        while let Some(record) = self.receive(buffer)? {
            handle(record);
            records += 1;
        }
        Ok(records)
    }

    /// Takes a run back. `false`: it has begun (or ended).
    #[must_use]
    pub fn recall(&mut self, claim: Claim) -> bool {
        self.control.claims(self.lease.area).recall(claim) && self.claims.give(claim)
    }

    /// The runs whose bodies have begun and whose ends were not received.
    pub fn begun(&self) -> Vec<Sent> {
        let (claims, stalled) = (self.control.claims(self.lease.area), &self.claims.stalled);
        let begun = |sent: &Sent| stalled.contains_key(&sent.claim.0) || claims.begun(sent.claim);
        self.claims.all().filter(begun).collect()
    }

    /// All runs that were sent and neither recalled nor received as ended.
    pub fn sent(&self) -> impl Iterator<Item = Sent> + '_ {
        self.claims.all()
    }

    /// Ends the process at once. `Poller::wait` tells when it is gone.
    pub fn kill(&mut self) {
        if self.is_ours() {
            let _ = self.child.kill();
        }
    }

    fn is_ours(&self) -> bool {
        self.exit.is_none() && self.forks == sys::forks()
    }

    /// How the process ended; `None`: not yet. Never blocks once the poller told the end.
    pub fn reap(&mut self) -> Option<Exit> {
        if self.is_ours() {
            // Without a pidfd, the end that was told is that of the socket, a moment earlier.
            let status = match self.pidfd {
                Some(_) => self.child.try_wait(),
                None => self.child.wait().map(Some),
            };
            self.exit = status.map_or(Some(Exit::Unknown), |status| status.map(Exit::from));
            if self.exit.is_some() {
                self.unwatch();
            }
        }
        self.exit
    }

    /// Waits for the end of the process.
    pub fn wait(&mut self) -> Exit {
        if self.is_ours() {
            self.exit = Some(self.child.wait().map_or(Exit::Unknown, Exit::from));
            self.unwatch();
        }
        self.exit.unwrap_or(Exit::Unknown)
    }

    /// Leaves a killed process that does not end to its fate. Gives its number.
    pub fn leave(mut self) -> u32 {
        if self.is_ours() {
            self.exit = Some(Exit::Unknown);
            self.unwatch();
        }
        self.child.id()
    }

    fn unwatch(&self) {
        self.poller.close(self.lease.area);
        self.poller.forget(self.pidfd.as_ref().map_or(self.life.as_fd(), |pidfd| pidfd.as_fd()));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        self.wait();
    }
}
