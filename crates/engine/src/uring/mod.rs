//! The engine on an io_uring: one ring, a slot for each operation, and a small pool beside it.
//!
//! **What goes where.** The ring gets what the kernel has an operation code for. The pool, whose
//! threads start with its first operation, gets the rest: copies, codes that this kernel lacks,
//! what a ring treats otherwise than the plain call (it reads pipes at any offset; so a descriptor
//! that cannot seek is left to `pread`, which knows what to say), and what the ring gave back as
//! "not this way" (`EAGAIN`, and requests that `O_DIRECT` refuses).
//!
//! **Threads.** The ring has no single issuer and no deferred task work: whoever has the engine
//! enters the kernel, and completions are posted while nobody looks. A completion that belongs to
//! a thread which computes interrupts it for a moment. When a thread that submitted ends, the
//! kernel may give back what it had not begun (`ECANCELED`); that is submitted again.
//!
//! **Waiting.** The pool has an eventfd, and while it works the ring holds a read of it, the
//! *waker*. So all ends show in the ring: `wait` sleeps in one system call, and the ring's own
//! descriptor is all that `fd` needs. The waker's read empties the eventfd before the pool's list
//! is taken, and a new one is submitted after that, so no end goes unnoticed.
//!
//! **Memory.** Dropping the engine waits for every operation, the waker too, before the buffers
//! and the ring are freed.

mod probe;
mod slot;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use io_uring::{opcode, squeue, types, IoUring};
use ops::{Completion, Op};
use slab::Slab;

use crate::plain::Transfer;
use crate::threads::{Finished, Job, Pool};
use crate::{About, Engine, Full};

pub(crate) use probe::{probe, NoRing, Probed, Supported};
use slot::{Slot, State, Verdict};

/// The most threads beside the ring.
const POOL_THREADS_MAX: usize = 8;

/// So many submissions are handed over without waiting for a flush. More in one system call cost
/// the processor less, but the device idles meanwhile: with 64 reads of 4 KiB in flight, 8 gave a
/// tenth more than all at once, and took a third less processor time than each by itself.
const SUBMIT_BATCH: usize = 8;

/// What the waker is called in the ring; slots are called by their number.
const WAKER: u64 = u64::MAX;

/// An engine on a ring.
pub(crate) struct Uring {
    ring: IoUring,
    supported: Supported,
    capacity: usize,
    reason: String,
    sequence: u64,
    slots: Slab<Slot>,
    /// Closes that wait for others on their descriptor, in order of submission.
    closes: Vec<usize>,
    /// The descriptor that was last found to have offsets, since the last flush.
    seekable: Option<RawFd>,
    pool: Pool,
    /// Operations that the pool has.
    pooled: usize,
    /// Where the waker in the ring reads to.
    waker_value: Box<u64>,
    is_waker_armed: bool,
    /// Room for the ring's answers while they are looked at.
    answers: Vec<(u64, i32)>,
}

impl Uring {
    /// An engine for `capacity` operations on a ring that has at least as many entries.
    pub fn new(
        probed: Probed,
        capacity: usize,
        threads_max: usize,
        reason: String,
    ) -> io::Result<Self> {
        let Probed { ring, supported } = probed;
        assert!(ring.params().sq_entries() as usize >= capacity, "a ring too small");
        let pool = Pool::new(threads_max.min(POOL_THREADS_MAX), 0, None)?;
        pool.watch();
        Ok(Self {
            ring,
            supported,
            capacity,
            reason,
            sequence: 0,
            slots: Slab::with_capacity(capacity),
            closes: Vec::new(),
            seekable: None,
            pool,
            pooled: 0,
            waker_value: Box::new(0),
            is_waker_armed: false,
            answers: Vec::with_capacity(capacity),
        })
    }

    fn must_wait(&self, key: usize) -> bool {
        let places = self.slots.iter().map(|(_, slot)| slot.place);
        self.slots[key].place.is_behind(places)
    }

    /// Sends an operation on its way.
    fn start(&mut self, key: usize) {
        let slot = &self.slots[key];
        let op = slot.op.as_ref().expect("what starts is in its slot");
        let for_ring = self.supported.has(op)
            && match Transfer::of(op) {
                Some(transfer) => !transfer.is_absurd() && self.has_offsets(transfer.fd),
                None => true,
            };
        if for_ring {
            self.push_slot(key);
        } else {
            self.give_to_pool(key);
        }
    }

    /// Whether reads and writes of this descriptor have offsets. Pipes and the like have not, and
    /// a ring would read them all the same.
    fn has_offsets(&mut self, fd: RawFd) -> bool {
        if self.seekable == Some(fd) {
            return true;
        }
        // SAFETY: takes no memory.
        let seeks = unsafe { libc::lseek64(fd, 0, libc::SEEK_CUR) } != -1;
        if seeks {
            self.seekable = Some(fd);
        }
        seeks
    }

    fn push_slot(&mut self, key: usize) {
        let slot = &mut self.slots[key];
        slot.state = State::Ring;
        let entry = slot.entry().user_data(key as u64);
        self.push(&entry);
    }

    fn push(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: what the entry points to belongs to a slot, which stays until the ring has
            // answered, or is the waker's; dropping the engine waits for both.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            self.enter();
        }
    }

    fn give_to_pool(&mut self, key: usize) {
        let slot = &mut self.slots[key];
        slot.state = State::Pool;
        let op = slot.op.take().expect("what goes to the pool is in its slot");
        let job = Job { key, op, done: slot.done };
        self.pooled += 1;
        self.arm_waker();
        self.pool.submit(job);
    }

    /// Has the ring tell when the pool has finished something.
    fn arm_waker(&mut self) {
        if self.is_waker_armed {
            return;
        }
        self.is_waker_armed = true;
        let event = types::Fd(self.pool.watch().as_raw_fd());
        let into = (&raw mut *self.waker_value).cast();
        let entry = opcode::Read::new(event, into, 8).build().user_data(WAKER);
        self.push(&entry);
    }

    /// Hands what was submitted to the kernel.
    fn enter(&mut self) {
        self.seekable = None;
        while !self.ring.submission().is_empty() {
            match self.ring.submit() {
                Ok(_) => {}
                Err(error) => must_be_passing(error),
            }
        }
    }

    /// Takes what the ring and the pool have answered, and what follows from it.
    fn reap(&mut self, out: &mut Vec<Completion>) -> usize {
        let before = out.len();
        let mut answers = std::mem::take(&mut self.answers);
        answers.extend(self.ring.completion().map(|entry| (entry.user_data(), entry.result())));
        let mut is_woken = false;
        for (name, result) in answers.drain(..) {
            if name == WAKER {
                (is_woken, self.is_waker_armed) = (true, false);
            } else {
                self.answered(name as usize, result, out);
            }
        }
        self.answers = answers;
        // The waker emptied the eventfd, so what made it readable has to be taken now, also when
        // another waker has been armed meanwhile.
        if is_woken {
            self.take_from_pool(out);
        }
        if out.len() > before && !self.closes.is_empty() {
            self.start_closes();
        }
        out.len() - before
    }

    fn answered(&mut self, key: usize, result: i32, out: &mut Vec<Completion>) {
        let slot = &mut self.slots[key];
        assert!(slot.state == State::Ring, "an answer for an operation in {:?}", slot.state);
        match slot.judge(result) {
            Verdict::Over(result) => {
                let slot = self.slots.remove(key);
                let op = slot.op.expect("the ring had the operation");
                out.push(Completion { token: slot.token, op, result });
            }
            Verdict::Again => self.push_slot(key),
            Verdict::ToPool => self.give_to_pool(key),
        }
    }

    fn take_from_pool(&mut self, out: &mut Vec<Completion>) {
        let finished = self.pool.take();
        self.pooled -= finished.len();
        for Finished { key, op, result } in finished {
            let slot = self.slots.remove(key);
            assert!(slot.state == State::Pool, "the pool did an operation in {:?}", slot.state);
            out.push(Completion { token: slot.token, op, result });
        }
        if self.pooled > 0 {
            self.arm_waker();
        }
    }

    /// Starts the closes that no longer wait for anybody.
    fn start_closes(&mut self) {
        let closes = std::mem::take(&mut self.closes);
        for key in closes {
            if self.must_wait(key) {
                self.closes.push(key);
            } else {
                self.start(key);
            }
        }
    }

    /// Hands over what was submitted and sleeps until the ring has an answer or the time is up.
    fn sleep(&mut self, left: Option<Duration>) {
        self.seekable = None;
        let slept = match left {
            None => self.ring.submit_and_wait(1),
            Some(left) if self.ring.params().is_feature_ext_arg() => {
                let left = types::Timespec::from(left);
                let arguments = types::SubmitArgs::new().timespec(&left);
                self.ring.submitter().submit_with_args(1, &arguments)
            }
            Some(left) => {
                self.enter();
                self.sleep_until_readable(left)
            }
        };
        match slept {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => {}
            Err(error) => must_be_passing(error),
        }
    }

    /// For kernels (before 5.11) whose `io_uring_enter` takes no timeout.
    fn sleep_until_readable(&self, left: Duration) -> io::Result<usize> {
        let fd = self.ring.as_raw_fd();
        let mut waited = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let left = libc::timespec {
            tv_sec: left.as_secs() as libc::time_t,
            tv_nsec: left.subsec_nanos().into(),
        };
        // SAFETY: one pollfd and a time, which live through the call.
        let ready = unsafe { libc::ppoll(&mut waited, 1, &left, std::ptr::null()) };
        usize::try_from(ready).map_err(|_| io::Error::last_os_error())
    }
}

/// Bears with what passes by itself: an interruption, memory that is short, a full ring of answers
/// (which are taken next). Anything else is a mistake of ours.
fn must_be_passing(error: io::Error) {
    match error.raw_os_error() {
        Some(libc::EINTR) => {}
        Some(libc::EAGAIN | libc::EBUSY | libc::ENOMEM) => std::thread::yield_now(),
        _ => panic!("io_uring_enter does not take what was submitted: {error}"),
    }
}

/// The longest sleep that is asked for at once; a longer one is several.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

impl Engine for Uring {
    fn submit(&mut self, token: u64, op: Op) -> Result<(), Full> {
        if self.slots.len() >= self.capacity {
            return Err(Full(op));
        }
        self.sequence += 1;
        let is_close = matches!(op, Op::Close { .. });
        let key = self.slots.insert(Slot::new(token, op, self.sequence));
        if is_close && self.must_wait(key) {
            self.closes.push(key);
        } else {
            self.start(key);
        }
        if self.ring.submission().len() >= SUBMIT_BATCH {
            self.enter();
        }
        Ok(())
    }

    fn flush(&mut self) {
        self.enter();
    }

    fn poll(&mut self, out: &mut Vec<Completion>) -> usize {
        self.enter();
        let count = self.reap(out);
        self.enter();
        count
    }

    fn wait(&mut self, out: &mut Vec<Completion>, timeout: Option<Duration>) -> usize {
        // A time too far away to be a time is no limit.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let count = self.reap(out);
            if count > 0 || self.slots.is_empty() {
                self.enter();
                return count;
            }
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return self.poll(out);
            }
            self.sleep(left.map(|left| left.min(SLEEP_MAX)));
        }
    }

    fn in_flight(&self) -> usize {
        self.slots.len()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring's descriptor is open for as long as `self` is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }

    fn about(&self) -> About {
        About { name: "io_uring", reason: self.reason.clone() }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let mut out = Vec::new();
        while !self.slots.is_empty() {
            self.wait(&mut out, None);
            out.clear();
        }
        if self.is_waker_armed {
            self.pool.signal();
            while self.is_waker_armed {
                self.sleep(None);
                self.reap(&mut out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_has_reads_only_conforms() {
        let only = Supported::only(&[Op::Read { fd: 0, buffer: ops::Buffer::new(0), offset: 0 }]);
        if let Err(NoRing::Unavailable(_)) = probe(16) {
            return;
        }
        let mut make = || -> Box<dyn Engine> {
            let probed = Probed { supported: only, ..probe(16).expect("a ring") };
            Box::new(Uring::new(probed, 16, 4, "a test".into()).expect("an engine"))
        };
        crate::conformance::run(&mut make, &std::env::temp_dir());
    }
}
