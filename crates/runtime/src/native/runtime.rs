//! The runtime of a process: starting and stopping it, and what programs ask of it.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

use exec::native::stacks::{Limits, Stack, Stacks};
use exec::native::{overflow, thread};
use graph::{Direction, Region};
use parking_lot::{Mutex, MutexGuard, RwLock};

use super::core::{another_sleeps, After, Core, Rest, Ways};
use super::inbox::Inbox;
use super::io::{Done, Io, Operation, Promise, ResultPlace, Waiting};
use super::io_task::{FilePart, IoTask, Wants};
use super::layers::Layers;
use super::options::{Options, StartError};
use super::queue::Queue;
use super::say::say;
use super::services::{Service, Services};
use super::starving::Starving;
use super::task::{Access, Report, Spawn, TaskNumber, TaskRef, Why};
use super::timers::{Due, Timers};
use super::waiters::Waiters;
use super::waiting::Wait;
use super::worker::{self, outside_of_tasks, Worker};
use super::Errno;

/// Tasks that may be alive before a spawn from outside a task waits for some to end.
const TASKS_LIVE_MAX: usize = 1 << 20;

/// Looks at the core's lock before a thread sleeps for it.
const LOCK_SPINS: u32 = 200;

/// What the workers and the program share.
pub(super) struct Shared {
    core: Mutex<Core>,
    inbox: Inbox<Report>,
    pub(super) workers: Box<[Worker]>,
    pub(super) services: Services,
    stacks: Arc<Stacks>,
    waiters: Waiters,
    /// I/O tasks that have their grants: for whichever worker is free first.
    pub(super) io_tasks: Arc<Queue<TaskRef>>,
    pub(super) timers: Arc<Timers>,
    pub(super) layers: Arc<Layers>,
    /// The folder of a layer that nobody described, until a task needs to know what it takes.
    pub(super) unmeasured: Mutex<Option<PathBuf>>,
    /// One at a time looks whether there is a catalog of files, and makes it.
    pub(super) opening: Mutex<()>,
    /// Where what was learned is kept.
    pub(super) learned: Option<PathBuf>,
    /// Tasks that were spawned from outside of tasks, ever.
    pub(super) spawned: AtomicU64,
    first_error: AtomicI32,
    /// Tasks failed since a thread of the program waited for all.
    has_failures: AtomicBool,
    starving: Starving,
    stops: AtomicBool,
    pub(super) ends: AtomicBool,
}

/// A runtime that was started.
#[derive(Clone)]
pub struct Runtime(pub(super) Arc<Shared>);

struct Started {
    runtime: Runtime,
    threads: Vec<JoinHandle<()>>,
}

static STARTED: RwLock<Option<Started>> = RwLock::new(None);
/// Whether there is a runtime: 0, or 1 and the forks before it started. Told without the lock,
/// which somebody may have held when this process was forked.
static STARTED_AFTER: AtomicU64 = AtomicU64::new(0);

/// Whether a runtime was started in an ancestor of this process, from which it was forked since.
fn is_forked() -> bool {
    let after = STARTED_AFTER.load(Ordering::Acquire);
    after != 0 && after != exec::forks() + 1
}

/// The runtime of this process, if it was started (and not before a fork).
pub fn current() -> Option<Runtime> {
    with_current(Runtime::clone)
}

/// Does something with the runtime of this process, if it was started (and not before a fork).
pub fn with_current<T>(work: impl FnOnce(&Runtime) -> T) -> Option<T> {
    if let Some(local) = worker::local() {
        return Some(work(&local.runtime));
    }
    if is_forked() {
        return None;
    }
    // Not under the lock: the work may wait for tasks, and these may start or stop something.
    let runtime = STARTED.read().as_ref()?.runtime.clone();
    Some(work(&runtime))
}

fn explain_overflow(address: usize) {
    let Some(started) = STARTED.try_read() else { return };
    let Some(started) = started.as_ref() else { return };
    if !started.runtime.0.stacks.guards(address) {
        return;
    }
    let put = |bytes: &[u8]| {
        // SAFETY: plain write of valid memory; nothing can be done about an error here.
        unsafe { libc::write(2, bytes.as_ptr().cast(), bytes.len()) };
    };
    put(b"alongside: stack overflow in the task \"");
    match worker::running() {
        Some((_, task)) => put(task.get().name().map_or(b"(no name)", |name| name.to_bytes())),
        None => put(b"(no task)"),
    }
    put(b"\": its stack is too small; start with a larger stack_bytes, or use less of it\n");
}

impl Runtime {
    /// Starts the runtime of this process.
    pub fn start(options: &Options) -> Result<Runtime, StartError> {
        options.check()?;
        if is_forked() {
            return Err(StartError::Forked);
        }
        let storage = options.read_storage()?;
        let (known, learned) = options.read_learned()?;
        let mut started = STARTED.write();
        if started.is_some() {
            return Err(StartError::Running);
        }
        overflow::install(explain_overflow).map_err(StartError::System)?;
        let workers = (0..options.workers).map(|_| new_worker(options));
        let workers: Box<[Worker]> =
            workers.collect::<io::Result<_>>().map_err(StartError::System)?;
        let timers = Arc::new(Timers::new().map_err(StartError::System)?);
        for one in &workers {
            one.watch_timers(&timers).map_err(StartError::System)?;
            for other in &workers {
                one.watch(other).map_err(StartError::System)?;
            }
        }
        let limits = Limits { stack_bytes: options.stack_bytes, stacks_max: options.stacks_max };
        let layers = Arc::new(Layers::new(&storage));
        let ways = Ways { layers: layers.clone(), timers: timers.clone(), queue: Arc::default() };
        let io_tasks = ways.queue.clone();
        let unmeasured = storage.is_assumed().then(|| storage.layers[0].path.clone());
        let core = Core::new(options, &storage, known, ways);
        let shared = Arc::new(Shared {
            core: Mutex::new(core),
            inbox: Inbox::default(),
            workers,
            services: Services::default(),
            stacks: Stacks::new(limits),
            waiters: Waiters::default(),
            io_tasks,
            timers,
            layers,
            unmeasured: Mutex::new(unmeasured),
            opening: Mutex::default(),
            learned,
            spawned: AtomicU64::new(0),
            first_error: AtomicI32::new(0),
            has_failures: AtomicBool::new(false),
            starving: Starving::default(),
            stops: AtomicBool::new(false),
            ends: AtomicBool::new(false),
        });
        let processors = thread::processors();
        let mut threads = Vec::new();
        for index in 0..options.workers {
            let processor = options.pinned.then(|| processors[index % processors.len()]);
            let shared_too = shared.clone();
            let name = format!("alongside-{index}");
            let body = move || worker::main(Runtime(shared_too), index, processor);
            let builder = std::thread::Builder::new().name(name);
            match thread::without_signals(|| builder.spawn(body)) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    end(&shared, threads);
                    return Err(StartError::System(error));
                }
            }
        }
        let runtime = Runtime(shared);
        *started = Some(Started { runtime: runtime.clone(), threads });
        STARTED_AFTER.store(exec::forks() + 1, Ordering::Release);
        Ok(runtime)
    }

    /// Waits for all tasks and ends the workers. The first error that nobody asked about.
    pub fn stop(&self) -> Result<(), Errno> {
        if worker::is_one() {
            return Err(libc::EDEADLK);
        }
        self.0.stops.store(true, Ordering::SeqCst);
        self.0.waiters.wait_until_at_most(0);
        let Some(started) = STARTED.write().take() else { return Err(libc::EINVAL) };
        STARTED_AFTER.store(0, Ordering::Release);
        self.keep_learned();
        let settled = self.settle_files();
        end(&self.0, started.threads);
        self.take_error().and(settled)
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.0.workers.len()
    }

    /// Which engine is used, and why.
    pub fn engine(&self) -> String {
        self.0.workers[0].io.about()
    }

    /// Spawns a task with what it uses; an access that is an error refuses it. With `wants` it is
    /// an I/O task. `Err` says what is wrong with it, in words.
    pub fn spawn(
        &self,
        spawn: Spawn,
        wants: Option<&Wants>,
        accesses: impl Iterator<Item = Result<Access, String>> + Clone,
    ) -> Result<(), String> {
        let here = worker::here();
        let parent = here.map(|(_, task)| task);
        if parent.is_none() {
            if self.0.stops.load(Ordering::Acquire) {
                return Err("the runtime is being stopped".into());
            }
            if self.0.waiters.live() >= TASKS_LIVE_MAX && !worker::is_one() {
                self.0.waiters.wait_until_at_most(TASKS_LIVE_MAX / 2);
            }
            self.0.spawned.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(wants) = wants.filter(|wants| !wants.files.is_empty()) {
            self.open_tiers(Some(wants))?;
        }
        let spawn = match here {
            Some((local, parent)) if wants.is_none() => {
                let Some(spawn) = local.run_undeferred(spawn, &accesses, parent) else {
                    return Ok(());
                };
                spawn
            }
            _ => spawn,
        };
        let body = spawn.body;
        let mean_ns = self.0.with_core(|core| core.spawn(spawn, wants, accesses, parent))?;
        here.into_iter().for_each(|(local, task)| local.spawned(task, body, mean_ns));
        Ok(())
    }

    /// Waits for the children of the task that calls, or for all tasks.
    pub fn wait_all(&self) -> Result<(), Errno> {
        match worker::here() {
            // A worker between two tasks, in a polling service or a `drop`.
            None if worker::is_one() => return Err(libc::EDEADLK),
            None => {
                self.0.waiters.wait_until_at_most(0);
                if self.0.has_failures.swap(false, Ordering::AcqRel) {
                    let forgiven = self.0.with_core(Core::forgive);
                    self.0.has_failures.fetch_or(!forgiven, Ordering::AcqRel);
                }
            }
            Some((local, task)) => {
                let children = &task.get().children;
                while children.load(Ordering::Acquire) > 0 {
                    let mut waits = task.get().waits.lock();
                    if children.load(Ordering::Acquire) == 0 {
                        break;
                    }
                    waits.parked = Some((Why::Children, local.place()));
                    drop(waits);
                    local.pause(task);
                }
            }
        }
        self.take_error()
    }

    /// Waits until nobody that the caller spawned before uses the datum at this address.
    pub fn wait_on(&self, base: usize) -> Result<(), Errno> {
        if worker::is_one() && worker::here().is_none() {
            return Err(libc::EDEADLK);
        }
        let access = Access { base, direction: Direction::InOut, region: Region::Whole };
        let uses = std::iter::once(Ok(access));
        let asked = Wait::ask(wait_is_over, |task| self.spawn(task, None, uses));
        match asked.map_err(|_| libc::EINVAL)? {
            // What the datum depends on failed: nobody uses it any more, and `wait_all` tells.
            Ok(_) | Err(libc::ECANCELED) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// A blocking operation: pauses the task that calls; outside of one, the system call.
    ///
    /// # Safety
    ///
    /// What the system call asks: valid memory of the lengths told.
    pub unsafe fn operate(operation: &Operation) -> i64 {
        let Some((local, task)) = worker::here().filter(|_| !operation.is_odd()) else {
            // SAFETY: the caller's promise.
            return unsafe { operation.call() };
        };
        let io = task.get().io();
        let due_ns = io.map_or(0, |io| io.before(operation));
        let waiting = Waiting::new(local.place());
        // SAFETY: `waiting` is on this stack, which stays until the result is there; so does, by
        // the caller's promise, the memory.
        unsafe { local.me().io.begin(operation, &waiting) };
        loop {
            local.pause(task);
            let Some(result) = waiting.result() else { continue };
            if let Some(io) = io {
                local.pause_until(task, io.after(operation.writes(), result, due_ns));
            }
            return result;
        }
    }

    /// A non-blocking operation of the task that calls. EINVAL: in no task.
    ///
    /// # Safety
    ///
    /// The memory and the place stay, and are touched by nobody, until the task is over.
    pub unsafe fn promise(operation: &Operation, place: ResultPlace) -> Result<(), Errno> {
        let Some((local, task)) = worker::here() else { return Err(libc::EINVAL) };
        if operation.is_odd() {
            // SAFETY: the caller's promise; the system refuses it at once.
            let result = unsafe { operation.call() };
            if !place.0.is_null() {
                // SAFETY: the caller's promise.
                unsafe { place.0.write(result as isize) };
            } else if result < 0 {
                local.shared().note(task, result);
            }
            return Ok(());
        }
        task.get().expect(1);
        // SAFETY: the caller's promise.
        unsafe { local.me().io.promise(operation, task, place) };
        Ok(())
    }

    /// Pauses the task that calls until it is resumed.
    pub fn pause() -> Result<(), Errno> {
        let Some((local, task)) = worker::here() else { return Err(libc::EINVAL) };
        let mut waits = task.get().waits.lock();
        if std::mem::take(&mut waits.permit) {
            return Ok(());
        }
        waits.parked = Some((Why::Pause, local.place()));
        drop(waits);
        local.pause(task);
        Ok(())
    }

    /// Resumes a task. EINVAL: there is no such task.
    pub fn resume(&self, number: TaskNumber) -> Result<(), Errno> {
        // Under the lock the task cannot go away.
        let core = self.0.core.lock();
        let found = core.find(number);
        if let Some(task) = found {
            worker::resume(&self.0.workers, task, Why::Pause);
        }
        drop(core);
        self.0.settle_rest();
        found.map(drop).ok_or(libc::EINVAL)
    }

    /// The task that calls; 0: none.
    pub fn current_task() -> TaskNumber {
        worker::here().map_or(0, |(_, task)| task.get().number())
    }

    /// The worker that the caller is.
    pub fn worker() -> Option<usize> {
        worker::local().map(|local| local.index)
    }

    /// The task that calls is not over before so many events came.
    pub fn add_events(count: u32) -> Result<(), Errno> {
        let (_, task) = worker::here().ok_or(libc::EINVAL)?;
        task.get().add_events(count).then_some(()).ok_or(libc::EINVAL)
    }

    /// The task that calls is done with the data of its access of this position: those that read
    /// them go on. EINVAL: in no task, or it has no such access, or does not write there.
    pub fn release(access: u32) -> Result<(), Errno> {
        let (local, task) = worker::here().ok_or(libc::EINVAL)?;
        let shared = local.shared();
        if !shared.with_core(|core| core.writes(task.get().id(), access)) {
            return Err(libc::EINVAL);
        }
        shared.report(Report::Released(task, access));
        Ok(())
    }

    /// So many events of a task came.
    pub fn fulfil_events(&self, number: TaskNumber, count: u32) -> Result<(), Errno> {
        let core = self.0.core.lock();
        let found = core.find(number);
        if count == 0 {
            // Of a task that is about to be over, this must not be the last event.
            drop(core);
            self.0.settle_rest();
            return found.map(drop).ok_or(libc::EINVAL);
        }
        let task = found.filter(|task| task.get().take_events(count));
        let over = task.is_some_and(|task| task.get().came(count));
        drop(core);
        self.0.settle_rest();
        let task = task.ok_or(libc::EINVAL)?;
        if over {
            outside_of_tasks(|| task.get().drop_argument());
            self.0.report(Report::Ended(task));
        }
        Ok(())
    }

    /// Registers a polling service. EALREADY: it is.
    pub fn add_service(&self, service: Service) -> Result<(), Errno> {
        if !self.0.services.add(service) {
            return Err(libc::EALREADY);
        }
        // Those that sleep without end have to look at the clock from now on.
        self.0.workers.iter().for_each(Worker::wake);
        Ok(())
    }

    /// Takes a polling service back; it does not run any more. EINVAL: there is none.
    pub fn remove_service(&self, service: Service) -> Result<(), Errno> {
        self.0.services.remove(service).then_some(()).ok_or(libc::EINVAL)
    }

    /// Most stacks that were in use at once.
    pub fn stacks_most(&self) -> usize {
        self.0.stacks.taken().1
    }

    fn take_error(&self) -> Result<(), Errno> {
        match self.0.first_error.swap(0, Ordering::AcqRel) {
            0 => Ok(()),
            errno => Err(errno),
        }
    }
}

extern "C-unwind" fn wait_is_over(wait: *mut std::ffi::c_void) {
    // SAFETY: the argument of a task of this body.
    unsafe { Wait::of(wait) }.put(Ok(0));
}

impl Shared {
    /// A stack for a fiber; `None`: there are as many as there may be, or no memory (then told).
    /// The caller is woken when some came back.
    pub(super) fn new_stack(&self) -> Option<Stack> {
        let take = || match self.stacks.take() {
            Ok(stack) => stack,
            Err(error) => {
                say(&format!("no memory for the stack of another task ({error}); it waits"));
                None
            }
        };
        // Those that sleep keep stacks for their next task.
        self.starving.take(take, || self.workers.iter().for_each(Worker::wake))
    }

    /// Whether a worker waits for a stack.
    pub(super) fn some_starve(&self) -> bool {
        self.starving.is_some()
    }

    /// Stacks were given back: whoever waits for one tries again.
    pub(super) fn stacks_came_back(&self) {
        if self.starving.came_back() {
            self.workers.iter().for_each(Worker::wake);
        }
    }

    /// Whether a worker sleeps, other than this one.
    pub(super) fn another_sleeps(&self, number: usize) -> bool {
        another_sleeps(&self.workers, number)
    }

    /// For a worker that is about to sleep: what waits behind a task of another one that paused and
    /// goes on may come here.
    pub(super) fn free_what_waits(&self, number: usize) {
        let now_ns = exec::now_ns();
        for (other, worker) in self.workers.iter().enumerate() {
            if other != number && worker.holds_something_up(now_ns) {
                self.with_core(|core| core.went_on(&self.workers, other));
            }
        }
    }

    /// Tells the core something of a task.
    pub(super) fn report(&self, report: Report) {
        self.inbox.put(report);
        self.settle_rest();
    }

    /// Tasks that are not over.
    pub(super) fn live(&self) -> usize {
        self.waiters.live()
    }

    /// The core's lock. It is held for less than a switch of threads takes: worth a short spin.
    fn lock_core(&self) -> MutexGuard<'_, Core> {
        for _ in 0..LOCK_SPINS {
            if let Some(core) = self.core.try_lock() {
                return core;
            }
            std::hint::spin_loop();
        }
        self.core.lock()
    }

    /// Leaves a report for whoever works with the core next. The caller sees to it that somebody
    /// does.
    pub(super) fn leave(&self, report: Report) {
        self.inbox.put(report);
    }

    /// Works with the core, then hands over what was reported meanwhile.
    pub(super) fn with_core<T>(&self, work: impl FnOnce(&mut Core) -> T) -> T {
        let mut after = After::default();
        let mut core = self.lock_core();
        let result = work(&mut core);
        core.settle(&self.inbox, &self.workers, &mut after);
        self.waiters.set_live(core.live);
        drop(core);
        self.follow_up(after);
        self.settle_rest();
        result
    }

    /// Hands reports over, unless the holder of the lock will.
    pub(super) fn settle_rest(&self) {
        self.inbox.settle(|| {
            let Some(mut core) = self.core.try_lock() else { return false };
            let mut after = After::default();
            core.settle(&self.inbox, &self.workers, &mut after);
            self.waiters.set_live(core.live);
            drop(core);
            self.follow_up(after);
            true
        });
    }

    fn follow_up(&self, after: After) {
        after.woken.iter().for_each(|worker| self.workers[*worker].wake());
        if let Some(rest) = after.rest {
            self.follow_up_the_rest(*rest);
        }
        if after.over > 0 {
            self.waiters.some_are_over();
        }
    }

    #[cold]
    fn follow_up_the_rest(&self, rest: Rest) {
        for task in rest.to_drop {
            outside_of_tasks(|| task.get().drop_argument());
            self.inbox.put(Report::Ended(task));
        }
        rest.settled.into_iter().for_each(|task| self.finish(task));
        for mut undone in rest.undone {
            outside_of_tasks(|| undone.drop_argument());
            if let (Some(name), Some((errno, why))) = (undone.name(), &undone.why) {
                self.note_failure(&name, *errno, why);
            }
            self.inbox.put(Report::Undone);
        }
    }

    /// Takes completions of a worker's operations; how many.
    pub(super) fn poll(&self, worker: usize, wait: bool) -> usize {
        self.workers[worker].io.poll(wait, |done| match done {
            Done::Fiber(place) => self.workers[place.worker as usize].resume(place.fiber),
            Done::Promised(promise, result) => {
                let io = promise.task.get().io();
                let due = |io: &IoTask| io.after(promise.writes, result, promise.due_ns);
                let due_ns = io.map_or(0, due);
                if due_ns > 0 && due_ns > exec::now_ns() {
                    self.timers.add(due_ns, Due::Promised(promise, result));
                } else {
                    self.keep_promise(promise, result);
                }
            }
        })
    }

    /// A non-blocking operation is complete.
    fn keep_promise(&self, promise: Box<Promise>, result: i64) {
        let task = promise.task;
        if let Some(error) = promise.keep(result) {
            self.note(task, error);
        }
        drop(promise);
        self.came(task);
    }

    /// One more thing that a task waited for has come.
    pub(super) fn came(&self, task: TaskRef) {
        if task.get().came(1) {
            outside_of_tasks(|| task.get().drop_argument());
            self.report(Report::Ended(task));
        }
    }

    /// What a task with files came to is known: the program is told, then the core. The caller sees
    /// to it that somebody settles the reports.
    pub(super) fn finish(&self, task: TaskRef) {
        outside_of_tasks(|| task.get().settle());
        if let Some((errno, why)) = task.get().files().and_then(FilePart::error) {
            let name = task.get().name().map_or("(no name)".into(), |name| name.to_string_lossy());
            self.note_failure(&name, errno, &format!("failed: {why}; its files are as before"));
        }
        self.inbox.put(Report::Settled(task));
    }

    /// A task failed, or did not run because another did.
    fn note_failure(&self, name: &str, errno: Errno, why: &str) {
        let _ = self.first_error.compare_exchange(0, errno, Ordering::AcqRel, Ordering::Acquire);
        self.has_failures.store(true, Ordering::Release);
        say(&format!("the task \"{name}\" {why}; the next al_taskwait or al_stop gives the error"));
    }

    /// Does what is due by now; how many things.
    pub(super) fn fire_timers(&self) -> usize {
        self.timers.fire(|due| match due {
            Due::Fiber(place) => self.workers[place.worker as usize].resume(place.fiber),
            Due::Promised(promise, result) => self.keep_promise(promise, result),
            Due::Tick => self.report(Report::Tick),
        })
    }

    /// An operation failed that nobody asked about.
    fn note(&self, task: TaskRef, error: i64) {
        let errno = -error as Errno;
        let _ = self.first_error.compare_exchange(0, errno, Ordering::AcqRel, Ordering::Acquire);
        let name = task.get().name().map_or("(no name)".into(), |name| name.to_string_lossy());
        let error = io::Error::from_raw_os_error(errno);
        say(&format!(
            "a non-blocking operation of the task \"{name}\" failed or was short: {error}; it was \
             started without a place for its result, and the next al_taskwait or al_stop gives it"
        ));
    }
}

fn new_worker(options: &Options) -> io::Result<Worker> {
    let engine =
        engine::Options { depth: options.depth, prefer: options.engine, ..Default::default() };
    Worker::new(Io::new(engine::open(&engine)?))
}

fn end(shared: &Shared, threads: Vec<JoinHandle<()>>) {
    shared.ends.store(true, Ordering::SeqCst);
    shared.workers.iter().for_each(Worker::wake);
    for thread in threads {
        if thread.join().is_err() {
            say("a worker thread ended by an internal error");
        }
    }
}
