//! The worker's side: takes runs, tells how they ended, asks for memory.
//!
//! Any number of threads may call [`Worker::next`]; there is no thread for reading, the waiting
//! ones take turns (`worker/shared.rs`). When the driver is gone, its end of the socket closes and
//! the sleeping leader ends the process; a worker in the middle of a task is ended by the kernel
//! (`PR_SET_PDEATHSIG`).

mod run;
mod shared;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex};

use crate::limiter::Limiters;
use crate::memory::{self, Control, Heap, AREAS_MAX};
use crate::pins::Pins;
pub use crate::pins::View;
use crate::process::{Kind, ENVIRONMENT};
use crate::ring::{Consumer, Producer};
use crate::sys::{self, Epoll, Linger, ON_END, ON_RING};
use crate::wire::{Credit, FromWorker, Outcome, INLINE_BYTES_MAX};
use crate::Turns;
pub use run::{Ahead, Allocation, Asked, Assignment, Function, Output, StoreFull};
pub(crate) use shared::{lock, Shared};
use shared::{Inbox, Out, Queued, Waiter, BELL_TAG, LIFE_TAG};

/// The exit code of a worker that ended itself because its driver was gone.
pub const EXIT_DRIVER_GONE: i32 = 75;
/// The exit code of a worker that could not understand its driver.
pub const EXIT_CORRUPT: i32 = 76;
/// Exit code of a worker that had no memory to tell how a run ended.
pub const EXIT_UNTOLD: i32 = 77;
/// Exit code of a child that a task forked and that came back from the task's body.
pub const EXIT_FORKED: i32 = 127;

/// Why a process cannot be a worker.
#[derive(Debug)]
pub enum StartError {
    /// It was not started by a driver.
    NotAWorker,
    /// What it inherited makes no sense.
    BadEnvironment(String),
    /// The system refused.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::NotAWorker => write!(
                f,
                "this program is a worker and is started by a session, not by hand \
                 ({ENVIRONMENT} is not set)"
            ),
            StartError::BadEnvironment(text) => {
                write!(f, "{ENVIRONMENT}={text:?} is not what a driver of this version sets")
            }
            StartError::System(error) => write!(f, "cannot join the session: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// What a thread of a worker does next.
#[derive(Debug)]
pub enum Next {
    /// Run this.
    Run(Assignment),
    /// Drop what was kept for this function.
    ForgetFunction(u64),
    /// The producer of a stream, of the run with this claim, can go on if it waits.
    Granted(u64),
    /// Nothing more will come.
    Stop,
}

/// What a run moved from and to files, and what stopped it there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// The error of its storage layer (full, read-only, broken) that it failed of; 0: none.
    pub layer_errno: u32,
}

/// This process as a worker. Cheap to clone; all threads share one.
#[derive(Clone)]
pub struct Worker(Arc<Shared>);

impl Worker {
    /// Joins the driver that started this process. Once a process.
    pub fn from_env() -> Result<Self, StartError> {
        let text = std::env::var(ENVIRONMENT).map_err(|_| StartError::NotAWorker)?;
        let bad = || StartError::BadEnvironment(text.clone());
        let inherited = Inherited::parse(&text).ok_or_else(bad)?;
        inherited.join().map_err(StartError::System)
    }

    /// What this worker is for.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// How many tasks it is to run at once.
    pub fn slots(&self) -> u32 {
        self.0.slots
    }

    /// Tells the driver that it takes tasks.
    pub fn ready(&self) {
        self.0.push(&FromWorker::Ready);
    }

    /// Waits for something to do. The run that it gives has been begun: it cannot be recalled.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&self) -> Next {
        loop {
            let queued = self.0.wait_for(Waiter::Next, |inbox| match inbox.queue.pop_front() {
                Some(queued) => Some(Some(queued)),
                None => inbox.stop.then_some(None),
            });
            match queued {
                Some(Queued::Run { claim, record }) => {
                    if let Some(assignment) = self.0.begin(claim, record) {
                        return Next::Run(assignment);
                    }
                }
                Some(Queued::ForgetFunction(id)) => {
                    lock(&self.0.functions).remove(&id);
                    return Next::ForgetFunction(id);
                }
                Some(Queued::Granted(claim)) => return Next::Granted(claim),
                None => return Next::Stop,
            }
        }
    }

    /// The function that a run names. The driver sends it before the first such run.
    pub fn function(&self, id: u64) -> Option<Arc<Function>> {
        lock(&self.0.functions).get(&id).cloned()
    }

    /// A placed input, to look at. Panics outside the heap.
    pub fn view(&self, offset: u64, len: u64) -> View {
        assert!(self.0.heap.contains(offset, len), "{len} bytes at {offset} are not in the heap");
        View::new(&self.0, offset, len)
    }

    /// Room for a value of `len` bytes; asks the driver for memory if it is long.
    pub fn output(&self, len: u64) -> Result<Output, StoreFull> {
        self.0.output(len)
    }

    /// Asks for the memory of a value of about `len` bytes before it is there; `None`: so short a
    /// one needs none.
    pub fn ask(&self, len: u64) -> Option<Asked> {
        let is_long = len > INLINE_BYTES_MAX as u64;
        let ask = || Asked { shared: self.0.clone(), request: self.0.ask(len), len, taken: false };
        is_long.then(ask)
    }

    /// The run ended well. `outputs`: the returns, then the written inputs, [`Output::RELEASED`]
    /// for those that were handed over before; none at all if all were. On an error nothing was
    /// told to the driver, and the memory of the outputs is given back.
    pub fn done(
        &self,
        assignment: &mut Assignment,
        outputs: Vec<Output>,
        moved: Moved,
    ) -> Result<(), StoreFull> {
        assert!(!assignment.ended, "a run ends once");
        let blobs = outputs.iter().map(Output::blob).collect();
        self.0.end(assignment, Outcome::Done { outputs: blobs }, moved)?;
        outputs.into_iter().for_each(Output::handed_over);
        Ok(())
    }

    /// The run raised. On an error nothing was told to the driver.
    pub fn raised(
        &self,
        assignment: &mut Assignment,
        exception: Output,
        moved: Moved,
    ) -> Result<(), StoreFull> {
        assert!(!assignment.ended, "a run ends once");
        self.0.end(assignment, Outcome::Raised { blob: exception.blob() }, moved)?;
        exception.handed_over();
        Ok(())
    }

    /// Hands one output over before the end of the run. `false`: the run did so before, and
    /// `value` is dropped.
    pub fn release(&self, assignment: &mut Assignment, output: u32, value: Output) -> bool {
        assert!(!assignment.ended, "a run hands over before it ends");
        let is_first = assignment.released.insert(output);
        if is_first {
            let (task, attempt) = (assignment.task, assignment.attempt);
            self.0.push(&FromWorker::Released { task, attempt, output, blob: value.blob() });
            value.handed_over();
        }
        is_first
    }

    /// Is done with a file, by its position among the paths of the run. `false`: it was before.
    pub fn release_file(&self, assignment: &mut Assignment, path: u32) -> bool {
        assert!(!assignment.ended, "a run hands over before it ends");
        let is_first = assignment.released_files.insert(path);
        if is_first {
            let (task, attempt) = (assignment.task, assignment.attempt);
            self.0.push(&FromWorker::ReleasedFile { task, attempt, path });
        }
        is_first
    }

    /// Hands over the next value of a stream; `number` counts over all runs. Gives how far the
    /// producer may go now.
    pub fn yielded(&self, assignment: &Assignment, number: u64, value: Output) -> Option<Credit> {
        assert!(!assignment.ended, "a run hands over before it ends");
        let (task, attempt) = (assignment.task, assignment.attempt);
        let blob = value.blob();
        let bytes = blob.bytes();
        self.0.push(&FromWorker::Yielded { task, attempt, number, blob });
        value.handed_over();
        self.0.spend(assignment.claim, bytes)
    }

    /// How far the producer of a stream may go, as far as the driver has said; `None`: the run
    /// is no such producer.
    pub fn credit(&self, assignment: &mut Assignment) -> Option<Credit> {
        assignment.stretch.go_on();
        self.0.credit(assignment.claim)
    }

    /// The producer of a stream has made as much as it may, and waits: [`Next::Granted`] will
    /// come, perhaps before this returns. `false`: it may go on, or need not, already.
    pub fn stall(&self, assignment: &mut Assignment) -> bool {
        let stalls = self.0.stall(assignment.claim);
        if let Some(granted) = stalls {
            let (task, attempt, claim) = (assignment.task, assignment.attempt, assignment.claim.0);
            let until_ns = sys::now_ns();
            assignment.stretch.end(until_ns);
            let since_ns = assignment.stretch.since_ns;
            self.0.push(&FromWorker::Stalled { task, attempt, claim, granted, since_ns, until_ns });
        }
        stalls.is_some()
    }

    /// The emulated bandwidths.
    pub fn limiters(&self) -> Limiters {
        Limiters::new(self.0.control.clone())
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Worker({:?}, {} slots)", self.0.kind, self.0.slots)
    }
}

/// What the environment says about what was inherited.
struct Inherited {
    descriptors: [i32; 5],
    area: usize,
    kind: Kind,
    slots: u32,
}

impl Inherited {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        if words.next()? != "1" {
            return None;
        }
        let mut descriptors = [0; 5];
        for descriptor in &mut descriptors {
            *descriptor = words.next()?.parse().ok().filter(|fd| *fd > 0)?;
        }
        let area = words.next()?.parse().ok().filter(|area| *area < AREAS_MAX)?;
        let kind = match words.next()? {
            "compute" => Kind::Compute,
            "io" => Kind::Io,
            _ => return None,
        };
        let slots = words.next()?.parse().ok()?;
        words.next().is_none().then_some(Self { descriptors, area, kind, slots })
    }

    fn join(self) -> io::Result<Worker> {
        crate::take_turns(if self.kind == Kind::Io { Turns::Short } else { Turns::Usual });
        for fd in self.descriptors {
            sys::set_cloexec(fd, true)?;
        }
        // SAFETY: the descriptors are there (just checked) and, by the environment, ours alone.
        let [control, heap, life, bell, driver_bell] =
            self.descriptors.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        let control = Arc::new(Control::open(control)?);
        let heap = Arc::new(Heap::open(heap)?);
        let epoll = Epoll::new()?;
        epoll.add(bell.as_fd(), ON_RING, BELL_TAG)?;
        epoll.add(life.as_fd(), ON_END, LIFE_TAG)?;
        let inbox = Inbox {
            incoming: Consumer::new(memory::to_worker(&control, self.area)),
            buffer: Vec::new(),
            queue: VecDeque::new(),
            answers: HashMap::new(),
            streams: HashMap::new(),
            stop: false,
            led: false,
            linger: Linger::default(),
            followers: 0,
            others: 0,
        };
        let outgoing = Producer::new(memory::from_worker(&control, self.area));
        Ok(Worker(Arc::new(Shared {
            control,
            heap,
            area: self.area,
            kind: self.kind,
            slots: self.slots,
            epoll,
            _life: life,
            _bell: bell,
            driver_bell,
            inbox: Mutex::new(inbox),
            following: Condvar::new(),
            other: Condvar::new(),
            out: Mutex::new(Out { outgoing, scratch: Vec::new() }),
            pins: Mutex::new(Pins::default()),
            functions: Mutex::new(HashMap::new()),
            requests: AtomicU64::new(0),
            mapped: Mutex::default(),
            forks: sys::forks(),
        })))
    }
}
