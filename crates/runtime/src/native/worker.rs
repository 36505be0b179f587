//! Worker threads: loop fibers that take tasks, and the root that chooses the next fiber.

mod undeferred;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr::{null, null_mut};
use std::sync::atomic::{fence, AtomicPtr, AtomicU64, Ordering};
use std::sync::Once;

use exec::native::fiber::{Fiber, Go, Left, Way};
use exec::native::overflow;
use exec::native::thread::{self, Bed};
use exec::Linger;

use super::io::Io;
use super::queue::{Asleep, Queue};
use super::runtime::{Runtime, Shared};
use super::say::say;
use super::services;
use super::task::{Body, Place, Report, Task, TaskRef, Why};
use super::timers::{Due, Timers};
use undeferred::Undeferred;

/// Fibers that are kept for the next task that needs one, for each worker.
const IDLE_FIBERS_MAX: usize = 64;
/// A worker looks at the completions of all others after so many tasks of its own.
const LOOK_AROUND_TASKS: u32 = 16;

/// Reports that a worker leaves to the program before it hands them over itself.
const REPORTS_LEFT_MAX: u32 = 16;
/// Tasks that are not over beyond which one that spawns more steps back for them. Their memory,
/// about a kilobyte each with the scheduler's, stays in a cache so.
const SPAWNED_TASKS_MAX: usize = 1024;
/// It goes on when there are no more than so many ...
const SPAWNED_TASKS_LOW: usize = SPAWNED_TASKS_MAX / 2;
/// ... or the task that runs after so long has ended: long tasks take little memory for their time.
const STEP_BACK_NS_MAX: u64 = 1_000_000;
/// A worker that sleeps looks so often whether another one did step back.
const LOOK_AGAIN_MS: i32 = 2;
/// Tasks of a worker that may have stepped back at once, or wait for an undeferred one: each
/// keeps its stack.
const STEPPED_BACK_MAX: usize = 16;

/// Looks at its own queue before a worker lets others have the processor: for some microseconds.
const LOOKS_BEFORE_LINGER: u32 = 100;

/// What the others see of a worker.
#[derive(Debug)]
pub(super) struct Worker {
    queue: Queue<TaskRef>,
    resumed: Queue<u32>,
    asleep: Asleep,
    bed: Bed,
    went_on: WentOn,
    pub(super) io: Io,
}

/// The task that a worker runs although the core was told that it paused. Nobody tells the core
/// when a task goes on, as most pause again soon; but whoever has nothing to do must not be kept
/// from what is behind this one ([`Shared::free_what_waits`]).
#[derive(Debug, Default)]
struct WentOn {
    task: AtomicPtr<Task>,
    /// Since when it runs, where it steps back by itself when it spawns the next one; 0: it does
    /// not.
    steps_back_since: AtomicU64,
}

impl Worker {
    pub(super) fn new(io: Io) -> std::io::Result<Worker> {
        Ok(Worker {
            went_on: WentOn::default(),
            queue: Queue::default(),
            resumed: Queue::default(),
            asleep: Asleep::default(),
            bed: Bed::new()?,
            io,
        })
    }

    /// Sends it a task. `true`: it sleeps and has to be woken.
    pub(super) fn give(&self, task: TaskRef) -> bool {
        self.queue.push(task);
        self.asleep.must_wake()
    }

    /// A task that was told to be paused runs; since when, if it steps back by itself, else 0.
    fn goes_on(&self, task: TaskRef, steps_back_since: u64) {
        self.went_on.steps_back_since.store(steps_back_since, Ordering::Relaxed);
        self.went_on.task.store(task.as_ptr(), Ordering::SeqCst);
    }

    /// It runs no more; before it is looked at whether the core was told.
    fn leaves(&self) {
        if !self.went_on.task.load(Ordering::Relaxed).is_null() {
            self.went_on.task.store(null_mut(), Ordering::SeqCst);
        }
    }

    /// The task that it runs and the core takes for paused. Under the core's lock it stays.
    pub(super) fn running_unknown(&self) -> Option<TaskRef> {
        TaskRef::of_ptr(self.went_on.task.load(Ordering::SeqCst))
    }

    /// Whether it runs such a task, which does not step back by itself.
    pub(super) fn holds_up_what_comes(&self) -> bool {
        self.running_unknown().is_some() && !self.steps_back()
    }

    /// Whether something waits here behind such a task, also one that should have stepped back.
    pub(super) fn holds_something_up(&self, now_ns: u64) -> bool {
        let since = self.went_on.steps_back_since.load(Ordering::Relaxed);
        let is_late = since == 0 || now_ns.saturating_sub(since) > STEP_BACK_NS_MAX;
        self.running_unknown().is_some() && is_late && self.queue.has_some()
    }

    /// Whether it runs this one, and the task does not step back by itself.
    fn has_going_on(&self, task: TaskRef) -> bool {
        self.running_unknown() == Some(task) && !self.steps_back()
    }

    /// Whether it runs such a task, which is to step back soon.
    pub(super) fn steps_back(&self) -> bool {
        let since = self.went_on.steps_back_since.load(Ordering::Relaxed);
        since != 0 && !self.went_on.task.load(Ordering::Relaxed).is_null()
    }

    /// Whether it sleeps, for who has put something where every worker looks.
    pub(super) fn sleeps(&self) -> bool {
        self.asleep.must_wake()
    }

    /// Takes a task back that it has not begun. `false`: it has.
    pub(super) fn take_back(&self, task: TaskRef) -> bool {
        self.queue.take_back(&task)
    }

    /// One of its fibers goes on.
    pub(super) fn resume(&self, fiber: u32) {
        self.resumed.push(fiber);
        if self.asleep.must_wake() {
            self.wake();
        }
    }

    /// Ends its sleep.
    pub(super) fn wake(&self) {
        self.bed.wake();
    }

    /// Has it woken by completions of this worker.
    pub(super) fn watch(&self, other: &Worker) -> std::io::Result<()> {
        self.bed.watch(other.io.fd())
    }

    /// Has it woken when something is due.
    pub(super) fn watch_timers(&self, timers: &Timers) -> std::io::Result<()> {
        self.bed.watch(timers.fd())
    }
}

/// A child of this task is over: the parent goes on if it waited. `true`: that was all, and the
/// parent is over too.
#[must_use]
pub(super) fn child_is_over(workers: &[Worker], parent: TaskRef) -> bool {
    let task = parent.get();
    if !task.one_child_less() {
        return false;
    }
    resume(workers, parent, Why::Children);
    task.came(1)
}

/// Resumes the fiber of a task if it waits for this. A pause that has not begun passes then.
pub(super) fn resume(workers: &[Worker], task: TaskRef, why: Why) {
    let mut waits = task.get().waits.lock();
    match waits.parked {
        Some((parked, place)) if parked == why => {
            waits.parked = None;
            drop(waits);
            workers[place.worker as usize].resume(place.fiber);
        }
        _ if why == Why::Pause => waits.permit = true,
        _ => {}
    }
}

/// What only the thread itself uses.
pub(super) struct Local {
    pub(super) runtime: Runtime,
    pub(super) index: usize,
    /// The task that runs now, if one does.
    current: Cell<Option<TaskRef>>,
    /// The fiber that runs now, and its way out.
    fiber: Cell<u32>,
    way: Cell<*const Way<'static>>,
    fibers: RefCell<Vec<Option<Fiber>>>,
    vacant: RefCell<Vec<u32>>,
    idle: RefCell<Vec<u32>>,
    /// Tasks that stepped back; the first goes on first.
    stepped_back: RefCell<VecDeque<SteppedBack>>,
    undeferred: Undeferred,
    tasks_since_look: Cell<u32>,
    slice_began: Cell<u64>,
    /// `slice_began` was just now: the clock need not be asked again.
    is_on_time: Cell<bool>,
    spawned_seen: Cell<u64>,
    reports_left: Cell<u32>,
    /// It has a task to begin and got no stack.
    starves: Cell<bool>,
}

/// The fiber of a task that lets others run.
struct SteppedBack {
    fiber: u32,
    /// It goes on when its children are over; else, when few tasks are left.
    waits_for_children_of: Option<TaskRef>,
    /// And in any case when the task has ended that runs at this moment of the clock.
    until_ns: u64,
}

thread_local! {
    static LOCAL: Cell<*const Local> = const { Cell::new(null()) };
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
    static LEAVES: Leaves = const { Leaves };
}

/// Goes when its thread ends, or calls `exit`. What the program's handlers call then are the plain
/// system calls: other tasks must not be run in the middle of an end.
struct Leaves;

impl Drop for Leaves {
    fn drop(&mut self) {
        LOCAL.set(null());
    }
}

/// Whether the calling thread is a worker, also when it ends.
pub(super) fn is_one() -> bool {
    IS_WORKER.get()
}

/// Runs code of the program that is part of no task, or that must make plain system calls, whatever
/// task's fiber this is on.
pub(super) fn outside_of_tasks<T>(work: impl FnOnce() -> T) -> T {
    struct Back(Option<(&'static Local, Option<TaskRef>)>);
    impl Drop for Back {
        fn drop(&mut self) {
            if let Some((local, task)) = self.0 {
                local.current.set(task);
            }
        }
    }
    let _back = Back(local().map(|local| (local, local.current.take())));
    work()
}

/// In the child of a fork, the one thread that there is is no worker, even if a task forked: what
/// it calls is the plain system call, and the runtime of the parent is left alone.
fn forget_in_children() {
    extern "C" fn forget() {
        LOCAL.set(null());
        IS_WORKER.set(false);
    }
    static ONCE: Once = Once::new();
    // SAFETY: the handler sets a plain thread-local value.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(forget));
    });
}

/// A task forked, and its body returns in the child: there is no runtime to return to.
#[cold]
fn body_returned_in_child() -> ! {
    say("the child of a fork returned from the task's body; call exec or _exit there");
    // SAFETY: ends the process at once, which is all that can be done.
    unsafe { libc::_exit(127) }
}

/// The worker that the calling thread is.
pub(super) fn local() -> Option<&'static Local> {
    // SAFETY: set by `main` for as long as it runs, and only this thread sees it. No reference
    // outlives the fiber that asked, and `main` ends after all fibers.
    unsafe { LOCAL.get().as_ref() }
}

/// The task that the calling thread runs, which the core knows from now on, and its worker.
pub(super) fn here() -> Option<(&'static Local, TaskRef)> {
    let (local, task) = running()?;
    local.adopt();
    Some((local, task))
}

/// The task that the calling thread runs, which nobody else may know, and its worker.
pub(super) fn running() -> Option<(&'static Local, TaskRef)> {
    let local = local()?;
    Some((local, local.current.get()?))
}

/// The whole life of a worker thread.
pub(super) fn main(runtime: Runtime, index: usize, processor: Option<usize>) {
    overflow::prepare_thread();
    if let Some(processor) = processor {
        thread::pin(processor);
    }
    let local = Local {
        runtime,
        index,
        current: Cell::new(None),
        fiber: Cell::new(0),
        way: Cell::new(null()),
        fibers: RefCell::default(),
        vacant: RefCell::default(),
        idle: RefCell::default(),
        stepped_back: RefCell::default(),
        undeferred: Undeferred::default(),
        tasks_since_look: Cell::new(0),
        slice_began: Cell::new(0),
        is_on_time: Cell::new(false),
        spawned_seen: Cell::new(0),
        reports_left: Cell::new(0),
        starves: Cell::new(false),
    };
    forget_in_children();
    LEAVES.with(|_| ());
    LOCAL.set(&raw const local);
    IS_WORKER.set(true);
    local.root();
    local.end_idle_fibers();
    LOCAL.set(null());
    IS_WORKER.set(false);
}

impl Local {
    pub(super) fn shared(&self) -> &Shared {
        &self.runtime.0
    }

    pub(super) fn me(&self) -> &Worker {
        &self.shared().workers[self.index]
    }

    fn root(&self) {
        let mut linger = Linger::default();
        loop {
            while let Some(fiber) = self.choose() {
                self.go(fiber, Go::On);
            }
            if self.shared().ends.load(Ordering::Acquire) {
                return;
            }
            self.rest(&mut linger);
        }
    }

    /// Whether `choose` would find something.
    fn has_work(&self) -> bool {
        let has_task = || self.me().queue.has_some() || self.shared().io_tasks.has_some();
        let can_begin = !self.starves.get() && has_task();
        can_begin || self.me().resumed.has_some()
    }

    /// The fiber that goes on next: a resumed one, or one that takes a task.
    fn choose(&self) -> Option<u32> {
        self.starves.set(false);
        if let Some(fiber) = self.choose_undeferred().or_else(|| self.me().resumed.pop()) {
            return Some(fiber);
        }
        let nothing_begins = !self.me().queue.has_some() && !self.shared().io_tasks.has_some();
        if nothing_begins || self.one_comes_back() {
            return self.come_back();
        }
        self.fresh().or_else(|| self.come_back())
    }

    /// A fiber that takes tasks.
    fn fresh(&self) -> Option<u32> {
        if let Some(fiber) = self.idle.borrow_mut().pop() {
            return Some(fiber);
        }
        // Without a stack, the task waits until another has ended.
        let stack = self.shared().new_stack();
        self.starves.set(stack.is_none());
        let stack = stack?;
        let local: *const Local = self;
        let fiber = Fiber::new(stack, move |way| {
            // SAFETY: the root, which owns the value, outlives all of its fibers.
            unsafe { (*local).take_tasks(way) };
        });
        let slot = self.vacant.borrow_mut().pop();
        let slot = slot.unwrap_or_else(|| {
            self.fibers.borrow_mut().push(None);
            self.fibers.borrow().len() as u32 - 1
        });
        self.fibers.borrow_mut()[slot as usize] = Some(fiber);
        Some(slot)
    }

    /// Lets a fiber run until it leaves.
    fn go(&self, slot: u32, go: Go) {
        let mut fiber = self.fibers.borrow_mut()[slot as usize].take().expect("it is not running");
        self.fiber.set(slot);
        // Whatever others submitted must not wait for what this one does.
        self.me().io.flush();
        self.is_on_time.set(false);
        let left = fiber.go(go);
        self.current.set(None);
        match left {
            Left::Paused => self.fibers.borrow_mut()[slot as usize] = Some(fiber),
            Left::Idle if self.may_keep_idle() => {
                self.fibers.borrow_mut()[slot as usize] = Some(fiber);
                self.idle.borrow_mut().push(slot);
            }
            Left::Idle => {
                let left = fiber.go(Go::End);
                assert_eq!(left, Left::Ended, "it was told to end");
                drop(fiber);
                self.vacant.borrow_mut().push(slot);
                self.shared().stacks_came_back();
            }
            Left::Ended => self.vacant.borrow_mut().push(slot),
        }
    }

    fn may_keep_idle(&self) -> bool {
        self.idle.borrow().len() < IDLE_FIBERS_MAX && !self.shared().some_starve()
    }

    fn end_idle_fibers(&self) {
        for slot in self.idle.take() {
            let fiber = self.fibers.borrow_mut()[slot as usize].take();
            let left = fiber.expect("idle").go(Go::End);
            assert_eq!(left, Left::Ended, "it was told to end");
            self.vacant.borrow_mut().push(slot);
        }
    }

    /// Somebody has no stack: gives back those that only wait for a next task.
    fn feed_the_starving(&self) {
        if self.shared().some_starve() && !self.idle.borrow().is_empty() {
            self.end_idle_fibers();
            self.shared().stacks_came_back();
        }
    }

    /// The body of a loop fiber: task after task on this stack.
    fn take_tasks(&self, way: &Way<'_>) {
        loop {
            // SAFETY: used by code on this fiber only, which `way` outlives.
            self.way.set(unsafe { std::mem::transmute::<&Way<'_>, *const Way<'static>>(way) });
            self.begin_undeferred();
            while let Some(task) = self.next() {
                self.run(task);
            }
            if way.leave(Left::Idle) == Go::End {
                return;
            }
        }
    }

    /// The next task for the fiber that asks, unless another fiber has to go on first.
    fn next(&self) -> Option<TaskRef> {
        self.between_tasks();
        if self.undeferred.waiting() > 0 || self.me().resumed.has_some() || self.one_comes_back() {
            return None;
        }
        self.next_io().or_else(|| self.me().queue.pop())
    }

    /// The next I/O task, which any worker may take: they come first, as they are soon paused.
    fn next_io(&self) -> Option<TaskRef> {
        let task = self.shared().io_tasks.pop()?;
        task.get().io().expect("only these are there").begin();
        // Whoever was woken for the others may have been this worker as well.
        if self.shared().io_tasks.has_some() {
            let sleeper = self.shared().workers.iter().find(|worker| worker.sleeps());
            sleeper.into_iter().for_each(Worker::wake);
        }
        Some(task)
    }

    /// What is due when a task has ended or left.
    fn between_tasks(&self) {
        let since = self.tasks_since_look.get() + 1;
        if since >= LOOK_AROUND_TASKS {
            self.tasks_since_look.set(0);
            self.is_on_time.set(false);
            self.look_around(false);
        } else {
            self.tasks_since_look.set(since);
            if self.me().io.outstanding() > 0 {
                self.is_on_time.set(false);
                self.shared().poll(self.index, false);
            }
        }
        if self.shared().services.are_there() {
            self.is_on_time.set(false);
            self.shared().services.call_all();
        }
        if self.shared().timers.are_there() {
            self.is_on_time.set(false);
            self.shared().fire_timers();
        }
    }

    /// Takes completions of all workers. How many there were.
    fn look_around(&self, wait: bool) -> usize {
        (0..self.shared().workers.len()).map(|worker| self.shared().poll(worker, wait)).sum()
    }

    fn run(&self, task: TaskRef) {
        self.current.set(Some(task));
        if !self.is_on_time.take() {
            self.slice_began.set(exec::now_ns());
        }
        // Whatever was submitted must not wait for this body.
        self.me().io.flush();
        self.call_body(task);
        self.returned(task);
    }

    /// Calls the body of the current task, which is none any more when this returns.
    fn call_body(&self, task: TaskRef) {
        task.get().run();
        if LOCAL.get().is_null() {
            body_returned_in_child();
        }
        let current = self.current.take();
        assert_eq!(current, Some(task), "it is the task of this fiber again");
    }

    /// The body of a task has returned.
    fn returned(&self, task: TaskRef) {
        self.me().leaves();
        self.count_slice(task);
        self.is_on_time.set(true);
        // As long as the body counts, the task stays; afterwards it may be gone at once. Nothing is
        // added to what it waits for any more, as only the body does that.
        let waits = task.get().waits_for_more_than_its_body();
        if waits && !task.get().told_paused.swap(true, Ordering::AcqRel) {
            self.is_on_time.set(false);
            self.shared().report(Report::Paused(task));
        }
        if task.get().came(1) {
            if task.get().has_drop() {
                self.is_on_time.set(false);
            }
            task.get().drop_argument();
            let is_io = task.get().is_io();
            self.shared().leave(Report::Ended(task));
            if is_io {
                // Others wait for what it held.
                self.is_on_time.set(false);
                self.shared().settle_rest();
            } else {
                self.see_to_reports();
            }
        }
    }

    /// While the program spawns, it works with the core all the time and takes the reports too:
    /// the core's memory stays in one cache. Else the worker does. One that has nothing left to
    /// do looks after a moment in any case (`rest`).
    fn see_to_reports(&self) {
        let spawned = self.shared().spawned.load(Ordering::Relaxed);
        let since = self.reports_left.get() + 1;
        if spawned == self.spawned_seen.replace(spawned) || since >= REPORTS_LEFT_MAX {
            self.reports_left.set(0);
            self.is_on_time.set(false);
            self.shared().settle_rest();
        } else {
            self.reports_left.set(since);
        }
    }

    /// The core may send other tasks from now on. Once a task.
    fn tell_paused(&self, task: TaskRef) {
        if !task.get().told_paused.swap(true, Ordering::AcqRel) {
            self.shared().report(Report::Paused(task));
        }
    }

    fn count_slice(&self, task: TaskRef) {
        let now = exec::now_ns();
        let ran = now.saturating_sub(self.slice_began.replace(now));
        task.get().add_ran(ran);
    }

    /// Where the running fiber is, for whoever resumes it.
    pub(super) fn place(&self) -> Place {
        Place { worker: self.index as u32, fiber: self.fiber.get() }
    }

    /// Leaves the running fiber; returns when it is resumed.
    pub(super) fn pause(&self, task: TaskRef) {
        self.leave(task);
        if !task.get().is_io() {
            self.goes_on(task);
        }
    }

    /// A task goes on that the core takes for paused, and that does not step back by itself.
    fn goes_on(&self, task: TaskRef) {
        self.me().goes_on(task, 0);
        fence(Ordering::SeqCst);
        if self.me().queue.has_some() && self.shared().another_sleeps(self.index) {
            self.shared().with_core(|core| core.went_on(&self.shared().workers, self.index));
        }
    }

    fn leave(&self, task: TaskRef) {
        self.count_slice(task);
        self.me().leaves();
        self.tell_paused(task);
        self.switch(task);
        self.slice_began.set(exec::now_ns());
    }

    /// Leaves the running fiber for others; returns when it is continued.
    fn switch(&self, task: TaskRef) {
        let (fiber, way) = (self.fiber.get(), self.way.get());
        // SAFETY: `way` belongs to the running fiber, on whose stack this is.
        let go = unsafe { (*way).leave(Left::Paused) };
        assert_eq!(go, Go::On, "a fiber in the middle of a task is not told to end");
        self.current.set(Some(task));
        self.fiber.set(fiber);
        self.way.set(way);
    }

    /// A task has spawned another one. If there are many, it lets its worker run some of those that
    /// were sent to it, so that neither their number nor their memory grows without end.
    pub(super) fn spawned(&self, task: TaskRef, body: Body, mean_ns: Option<u64>) {
        self.undeferred.handed_over(body, mean_ns);
        if self.shared().live() <= SPAWNED_TASKS_MAX || task.get().is_io() {
            return;
        }
        if !self.may_step_back() {
            return;
        }
        self.tell_paused(task);
        if self.me().queue.has_some() {
            self.step_back(task, None);
        } else if !self.me().steps_back() {
            self.me().goes_on(task, exec::now_ns());
        }
    }

    /// Whether one more may leave its stack for others that begin.
    fn may_step_back(&self) -> bool {
        self.stepped_back.borrow().len() + self.undeferred.waiting() < STEPPED_BACK_MAX
    }

    /// Leaves the running fiber until few tasks are left, or the children of a task are over.
    fn step_back(&self, task: TaskRef, waits_for_children_of: Option<TaskRef>) {
        let until_ns = exec::now_ns() + STEP_BACK_NS_MAX;
        let one = SteppedBack { fiber: self.fiber.get(), waits_for_children_of, until_ns };
        self.stepped_back.borrow_mut().push_back(one);
        self.leave(task);
        self.me().goes_on(task, self.slice_began.get());
    }

    /// Whether the first task that stepped back goes on now, whatever else there is to do.
    fn one_comes_back(&self) -> bool {
        let is_due = |one: &SteppedBack| {
            let few_are_left = match one.waits_for_children_of {
                Some(task) => task.get().children.load(Ordering::Acquire) == 0,
                None => self.shared().live() <= SPAWNED_TASKS_LOW,
            };
            few_are_left || self.slice_began.get() >= one.until_ns
        };
        self.stepped_back.borrow().front().is_some_and(is_due)
    }

    fn come_back(&self) -> Option<u32> {
        self.stepped_back.borrow_mut().pop_front().map(|one| one.fiber)
    }

    /// Leaves the running fiber until a moment of the clock.
    pub(super) fn pause_until(&self, task: TaskRef, at_ns: u64) {
        if at_ns > exec::now_ns() {
            self.shared().timers.add(at_ns, Due::Fiber(self.place()));
            self.pause(task);
        }
    }

    /// Nothing to do: looks for completions, lingers if that pays, sleeps.
    fn rest(&self, linger: &mut Linger) {
        let me = self.me();
        me.io.flush();
        self.feed_the_starving();
        let look = |wait| {
            let some = self.look_around(wait) + self.shared().fire_timers() > 0;
            self.shared().settle_rest();
            some || self.has_work()
        };
        if self.look_around(false) > 0 || self.has_work() {
            return;
        }
        for _ in 0..LOOKS_BEFORE_LINGER {
            std::hint::spin_loop();
            if self.has_work() {
                return;
            }
        }
        if linger.linger(|| look(false)) {
            return;
        }
        self.shared().services.call_all();
        me.asleep.begin();
        self.shared().free_what_waits(self.index);
        let ends = self.shared().ends.load(Ordering::Acquire);
        // The last look waits for whoever submits at this moment: what completes meanwhile has
        // woken this worker already, and nobody is woken for it again.
        if !ends && !look(true) {
            let looks_again = self.shared().workers.iter().any(Worker::steps_back);
            let timeout = match self.shared().services.are_there() {
                true => services::IDLE_MS,
                false if looks_again => LOOK_AGAIN_MS,
                false => -1,
            };
            linger.sleep(|| me.bed.sleep(timeout));
            // What it was woken for must not wait for the next task.
            self.shared().fire_timers();
        }
        me.asleep.end();
    }
}
