//! The thread that has the engine: it sleeps until operations are complete, tasks come, or a layer
//! with an emulated limit is free again. One for all built-in tasks, begun with the first of them.
//!
//! It is not the runtime thread, because reading what the page cache has means copying it, which
//! the kernel does in the thread that asks: reports of workers would wait for that.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ops::Completion;
use parking_lot::{Condvar, Mutex};

use super::work::{Finished, Job, Next, Tools};
use crate::line::Line;
use crate::shell::{panic_text, Shared};

#[derive(Default)]
struct Inbox {
    jobs: Vec<Job>,
    /// Jobs are to stop: those that wait have to look.
    look: bool,
    stopping: bool,
    asleep: bool,
    ended: bool,
}

/// The way to the thread.
pub(crate) struct Queue {
    inbox: Mutex<Inbox>,
    ended: Condvar,
    bell: OwnedFd,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Queue {
    /// Starts the thread.
    pub(in crate::shell) fn start(shared: &Arc<Shared>) -> io::Result<Arc<Queue>> {
        // SAFETY: gives a new descriptor or -1.
        let bell = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if bell < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just given to us alone.
        let bell = unsafe { OwnedFd::from_raw_fd(bell) };
        let (inbox, ended, thread) = (Mutex::default(), Condvar::new(), Mutex::new(None));
        let queue = Arc::new(Queue { inbox, ended, bell, thread });
        let body = {
            let (shared, queue) = (Arc::clone(shared), Arc::clone(&queue));
            move || main(&shared, &queue)
        };
        let thread = std::thread::Builder::new().name("alongside-files".into()).spawn(body)?;
        *queue.thread.lock() = Some(thread);
        Ok(queue)
    }

    fn change(&self, change: impl FnOnce(&mut Inbox)) {
        let mut inbox = self.inbox.lock();
        change(&mut inbox);
        let asleep = std::mem::take(&mut inbox.asleep);
        drop(inbox);
        if asleep {
            let one = 1u64.to_ne_bytes();
            // SAFETY: writes eight bytes to our own descriptor. It cannot block: the thread empties
            // the counter whenever it wakes.
            unsafe { libc::write(self.bell.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        }
    }

    /// Hands a task over.
    pub(super) fn push(&self, job: Job) {
        self.change(|inbox| inbox.jobs.push(job));
    }

    /// Some tasks were told to stop.
    pub(super) fn look(&self) {
        self.change(|inbox| inbox.look = true);
    }

    /// No task is to go on.
    pub(crate) fn stop(&self) {
        self.change(|inbox| inbox.stopping = true);
    }

    /// Waits until the kernel has nothing any more of what the tasks use, at most so long. A thread
    /// that is not done then stays by itself, with that memory, until it is.
    pub(crate) fn wait_stopped(&self, most: Duration) {
        let until = Instant::now() + most;
        let mut inbox = self.inbox.lock();
        while !inbox.ended {
            if self.ended.wait_until(&mut inbox, until).timed_out() {
                return;
            }
        }
        drop(inbox);
        if let Some(thread) = self.thread.lock().take() {
            // What it had to say of a panic is in the futures.
            let _ = thread.join();
        }
    }

    /// Takes what has come; the thread is awake.
    fn take(&self) -> Inbox {
        let mut inbox = self.inbox.lock();
        inbox.asleep = false;
        let (jobs, look) = (std::mem::take(&mut inbox.jobs), std::mem::take(&mut inbox.look));
        Inbox { jobs, look, stopping: inbox.stopping, ..Inbox::default() }
    }

    /// `false`: something has come since `take` gave this.
    fn prepare_sleep(&self, stopping: bool) -> bool {
        let mut inbox = self.inbox.lock();
        let empty = inbox.jobs.is_empty() && !inbox.look && inbox.stopping == stopping;
        inbox.asleep = empty;
        empty
    }

    /// Sleeps until the bell was rung, the engine has something, or the time is up.
    fn sleep(&self, engine: Option<BorrowedFd<'_>>, timeout: Option<Duration>) {
        let watch = |fd: BorrowedFd<'_>| libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let bell = watch(self.bell.as_fd());
        let mut watched = [bell, engine.map_or(bell, watch)];
        let time = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let (first, count) = (watched.as_mut_ptr(), watched.len() as libc::nfds_t);
        // SAFETY: valid entries of open descriptors, and a valid time or none. Whatever comes back,
        // the caller looks at everything.
        unsafe { libc::ppoll(first, count, time, std::ptr::null()) };
        let mut rung = [0; 8];
        // SAFETY: reads at most eight bytes into eight; it does not block.
        unsafe { libc::read(self.bell.as_raw_fd(), rung.as_mut_ptr().cast(), rung.len()) };
    }
}

/// The life of the thread.
fn main(shared: &Arc<Shared>, queue: &Queue) {
    let worked = catch_unwind(AssertUnwindSafe(|| {
        let store = shared.store();
        if let (Some(store), Some(limiters)) = (store, shared.limiters()) {
            let settled = Default::default();
            let tools = Tools { store, limiters, settled, stopping: false };
            Files::new(tools).work(shared, queue);
        }
    }));
    if let Err(panic) = worked {
        let why = format!(
            "internal error of the thread for built-in tasks, which ends this session: {}",
            panic_text(&*panic)
        );
        shared.state.lock().break_down(&why.into());
        shared.wake();
    }
    queue.inbox.lock().ended = true;
    queue.ended.notify_all();
}

/// Everything that the thread works with.
struct Files {
    /// Opened with the first task. Dropped before the jobs: that waits for what the kernel still
    /// has of their memory.
    line: Option<Line>,
    jobs: HashMap<u64, Job>,
    /// Jobs that wait for their time.
    waiting: BTreeSet<(u64, u64)>,
    tokens: u64,
    finished: Vec<Finished>,
    completions: Vec<Completion>,
    tools: Tools,
}

impl Files {
    fn new(tools: Tools) -> Files {
        Files {
            line: None,
            jobs: HashMap::new(),
            waiting: BTreeSet::new(),
            tokens: 0,
            finished: Vec::new(),
            completions: Vec::new(),
            tools,
        }
    }

    /// Works until it is told to stop, and nothing is under way.
    fn work(&mut self, shared: &Arc<Shared>, queue: &Queue) {
        loop {
            let Inbox { jobs, look, stopping, .. } = queue.take();
            self.tools.stopping = stopping;
            jobs.into_iter().for_each(|job| self.begin(job));
            let some = self.complete();
            self.wake(look || stopping);
            if let Some(line) = &mut self.line {
                line.engine.flush();
            }
            self.report(shared);
            if stopping && self.jobs.is_empty() {
                return;
            }
            // More may be complete already: it sleeps only if there was nothing.
            if !some && queue.prepare_sleep(stopping) {
                let engine = self.line.as_ref().map(|line| line.engine.fd());
                let until = self.waiting.first().map(|(until, _)| *until);
                let timeout = until.map(|until| until.saturating_sub(exec::now_ns()));
                queue.sleep(engine, timeout.map(Duration::from_nanos));
            }
        }
    }

    fn begin(&mut self, job: Job) {
        if self.line.is_none() {
            match engine::open(&engine::Options::default()) {
                Ok(engine) => self.line = Some(Line::new(engine)),
                Err(error) => {
                    let why = format!("no engine for built-in tasks could be opened: {error}");
                    self.finished.push(job.fail(&self.tools, &why));
                    return;
                }
            }
        }
        let token = self.tokens;
        self.tokens += 1;
        self.jobs.insert(token, job);
        self.go_on(token);
    }

    /// Does what a task wants next.
    fn go_on(&mut self, token: u64) {
        let job = self.jobs.get_mut(&token).expect("a task that is not over");
        match job.next(&self.tools) {
            Next::Do(op) => {
                self.line.as_mut().expect("opened with the first task").submit(token, op);
            }
            Next::Wait(until) => {
                self.waiting.insert((until, token));
            }
            Next::Over => {
                let job = self.jobs.remove(&token).expect("looked at above");
                self.finished.push(job.finish(&self.tools));
            }
        }
    }

    /// Goes on with the tasks whose operations are complete; whether there were some. What they do
    /// next waits for the next call, even if it is done in no time: as long as all is in the page
    /// cache there would be no end, and new tasks and those that are over would wait for it.
    fn complete(&mut self) -> bool {
        let Some(line) = &mut self.line else { return false };
        let mut completions = std::mem::take(&mut self.completions);
        line.engine.poll(&mut completions);
        let some = !completions.is_empty();
        for completion in completions.drain(..) {
            let token = completion.token;
            let job = self.jobs.get_mut(&token).expect("one operation at a time");
            job.completed(&mut self.tools, completion);
            self.go_on(token);
        }
        if let Some(line) = self.line.as_mut().filter(|_| some) {
            line.refill();
        }
        self.completions = completions;
        some
    }

    /// Goes on with the tasks whose time has come, or with all that wait.
    fn wake(&mut self, all: bool) {
        let now = exec::now_ns();
        let due = match all {
            true => std::mem::take(&mut self.waiting),
            false => {
                let later = self.waiting.split_off(&(now + 1, 0));
                std::mem::replace(&mut self.waiting, later)
            }
        };
        due.into_iter().for_each(|(_, token)| self.go_on(token));
    }

    /// Tells the session of the tasks that are over.
    fn report(&mut self, shared: &Arc<Shared>) {
        if self.finished.is_empty() {
            return;
        }
        let finished = std::mem::take(&mut self.finished);
        // If the session has ended nobody wants to know.
        let _ = shared.with(|state| finished.into_iter().for_each(|one| state.built_in_over(one)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::fs::File as Opened;

    use engine::{About, Answer, Engine, Full, Op};
    use sched::{ExecutorId, TaskId};

    use super::super::memory::Data;
    use super::super::work::{File, Ticket, Work};
    use super::*;
    use crate::store::{Store, Value};

    /// An engine as it is where all is in the page cache: what is submitted is complete at once.
    struct AtOnce(VecDeque<Completion>, Opened);

    impl Engine for AtOnce {
        fn submit(&mut self, token: u64, op: Op) -> Result<(), Full> {
            let answer = match &op {
                Op::Open { .. } => Answer::Fd(self.1.try_clone().unwrap().into()),
                Op::Close { fd } => {
                    // SAFETY: the job gave its descriptor to the operation.
                    drop(unsafe { OwnedFd::from_raw_fd(*fd) });
                    Answer::Nothing
                }
                Op::Write { buffer, .. } => Answer::Bytes(buffer.len() as u64),
                other => unreachable!("{other:?} is of no write"),
            };
            self.0.push_back(Completion { token, op, result: Ok(answer) });
            Ok(())
        }

        fn flush(&mut self) {}

        fn poll(&mut self, out: &mut Vec<Completion>) -> usize {
            out.extend(self.0.drain(..));
            out.len()
        }

        fn wait(&mut self, out: &mut Vec<Completion>, _: Option<Duration>) -> usize {
            self.poll(out)
        }

        fn in_flight(&self) -> usize {
            self.0.len()
        }

        fn capacity(&self) -> usize {
            usize::MAX
        }

        fn fd(&self) -> BorrowedFd<'_> {
            self.1.as_fd()
        }

        fn about(&self) -> About {
            About { name: "at once", reason: String::new() }
        }
    }

    #[test]
    fn a_small_task_is_told_of_while_a_large_one_goes_on() {
        let pool = exec::process::Pool::new(64 << 20).unwrap();
        let store = Store::new(&pool, 64 << 20, 0);
        let (limiters, settled) = (pool.limiters(), Default::default());
        let mut files = Files::new(Tools { store, limiters, settled, stopping: false });
        let null = Opened::options().write(true).open("/dev/null").unwrap();
        files.line = Some(Line::new(Box::new(AtOnce(VecDeque::new(), null))));
        for (number, len) in [(1, 100_000_000), (2, 10)] {
            let (task, executor) = (TaskId::from_bits(number), ExecutorId(0));
            let ticket = Ticket { task, executor, attempt: 1, stop: Arc::default() };
            let data = Data::new(Value::inline(vec![7; len]), 0..len);
            let file = File::new("/dev/null".into(), None);
            files.begin(Job::new(ticket, Work::Write(data), [None, Some(file)], false));
        }
        while files.finished.is_empty() {
            assert!(files.complete());
        }
        assert_eq!((files.finished.len(), files.jobs.len()), (1, 1));
        assert_eq!(files.finished[0].ticket.task, TaskId::from_bits(2));
        while files.complete() {}
        assert_eq!((files.finished.len(), files.jobs.len()), (2, 0));
        assert_eq!(files.finished[1].bytes_written, 100_000_000);
    }
}
