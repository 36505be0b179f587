//! Undeferred tasks: they run where they are spawned.
//!
//! Where a task spawns one that is brief ([`Brief`]), and has no other child, nothing can be in its
//! way, and to run it takes less time than to hand it over. It is run at once, on a fiber of its
//! own, while the spawner waits in `spawn` (OpenMP's word for it: undeferred). Nobody is told of
//! it, neither graph nor scheduler. If it asks for anything of the runtime, it is *adopted* first:
//! the core takes it in as a task that has begun, and it is one like others from then on. Its
//! spawner goes on when its fiber leaves, at its end or before.
//!
//! ```text
//!  spawner   spawn ─┐                       ┌─> goes on
//!  root             └─> [fiber] ─┐      ┌───┘
//!  fiber                         └─body─┤ over, or adopted and paused
//! ```
//!
//! What the tasks of a function take is known from those that ran so, and from the scheduler for
//! those that are handed over. These are the first ones, so the spawner has children; when it finds
//! that they are brief, it lets them end ([`Local::children_end`]).

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::{outside_of_tasks, Local, STEP_BACK_NS_MAX};
use crate::native::brief::{Brief, HANDED_OVER_NS};
use crate::native::core::Core;
use crate::native::task::{Access, Body, Spawn, Task, TaskRef};

/// A task with more accesses is handed over.
const ACCESSES_MAX: usize = 8;
/// What waking a worker takes, in nanoseconds, for the first of several tasks.
const WAKE_NS: u64 = 50_000;
/// Looks at children that end elsewhere before the clock is asked again.
const LOOKS: u32 = 32;
/// Spawns after which a spawner whose children did not end soon may wait for them again: at first,
/// and at most.
const SPAWNS_UNTIL_NEXT: (u32, u32) = (1 << 10, 1 << 20);

/// What a worker has for undeferred tasks.
#[derive(Default)]
pub(super) struct Undeferred {
    brief: Brief,
    /// The one that runs now, unless it was adopted.
    running: Cell<Option<Running>>,
    /// The fiber that is to run it.
    fiber: Cell<Option<u32>>,
    /// The fibers of those that wait in `spawn`; the last one goes on first.
    spawners: RefCell<Vec<u32>>,
    /// When a fiber that was resumed could last go on before a spawner.
    resumed_ns: Cell<u64>,
    /// Memory for the next one.
    memory: Cell<Option<Box<Task>>>,
    /// Spawns until children may be waited for, and until the time after that if they take long.
    spawns_left: Cell<u32>,
    spawns_next: Cell<u32>,
}

/// Has the core take a task in.
type Adopt<'a> = dyn Fn(&mut Core, Box<Task>) + 'a;

/// A task that only its worker knows.
#[derive(Clone, Copy)]
struct Running {
    task: NonNull<Task>,
    /// Of its spawner's stack, on which nothing moves until the fiber of the task leaves.
    adopt: NonNull<Adopt<'static>>,
}

impl Undeferred {
    /// A task was handed over that takes so long, as far as the scheduler knows.
    pub(super) fn handed_over(&self, body: Body, mean_ns: Option<u64>) {
        if let Some(mean_ns) = mean_ns {
            self.brief.ran(body, mean_ns);
        }
    }

    /// Spawners that wait.
    pub(super) fn waiting(&self) -> usize {
        self.spawners.borrow().len()
    }

    /// Whether children may be waited for now.
    fn is_patient(&self) -> bool {
        let left = self.spawns_left.get();
        self.spawns_left.set(left.saturating_sub(1));
        left == 0
    }

    /// Children were waited for, and ended soon or not.
    fn waited(&self, ended: bool) {
        let (first, most) = SPAWNS_UNTIL_NEXT;
        let left = self.spawns_next.get().max(first);
        self.spawns_left.set(if ended { 0 } else { left });
        self.spawns_next.set(if ended { first } else { (left * 2).min(most) });
    }
}

impl Local {
    /// Runs a task of the one that calls, if it is brief and nothing can be in its way. Else it is
    /// given back, to be handed over.
    pub(in crate::native) fn run_undeferred<A>(
        &self,
        spawn: Spawn,
        accesses: &A,
        parent: TaskRef,
    ) -> Option<Spawn>
    where
        A: Iterator<Item = Result<Access, String>> + Clone,
    {
        let is_brief = self.undeferred.brief.has(spawn.body) && !parent.get().is_io();
        let may_run = || are_plain(accesses.clone()) && self.children_end(parent);
        if !is_brief || !self.may_step_back() || !may_run() {
            return Some(spawn);
        }
        let Some(fiber) = self.fresh() else { return Some(spawn) };
        let (body, priority) = (spawn.body, spawn.priority);
        let adopt = |core: &mut Core, task: Box<Task>| {
            core.adopt(task, (body, priority), accesses.clone(), self.index);
        };
        let adopt: &Adopt<'_> = &adopt;
        // SAFETY: used until the task is over or has left, which is before this returns.
        let adopt = unsafe { std::mem::transmute::<&Adopt<'_>, &Adopt<'static>>(adopt) };
        let task = self.undeferred_task(spawn, parent);
        self.undeferred.running.set(Some(Running { task, adopt: NonNull::from(adopt) }));
        self.undeferred.fiber.set(Some(fiber));
        self.undeferred.spawners.borrow_mut().push(self.fiber.get());
        self.count_slice(parent);
        self.switch(parent);
        if parent.get().told_paused.load(Ordering::Acquire) && !self.me().has_going_on(parent) {
            self.goes_on(parent);
        }
        None
    }

    /// Memory of this worker, with a task in it that nobody else knows.
    fn undeferred_task(&self, spawn: Spawn, parent: TaskRef) -> NonNull<Task> {
        let task = Task::new(spawn, None, Some(parent), None);
        let memory = match self.undeferred.memory.take() {
            Some(mut memory) => {
                *memory = task;
                memory
            }
            None => Box::new(task),
        };
        NonNull::from(Box::leak(memory))
    }

    /// The fiber that goes on before all others: that of an undeferred task, or the spawner
    /// of one whose fiber has left.
    pub(super) fn choose_undeferred(&self) -> Option<u32> {
        if let Some(fiber) = self.undeferred.fiber.take() {
            return Some(fiber);
        }
        if self.undeferred.waiting() == 0 {
            return None;
        }
        // Who spawns for long lets those go on that can only go on here.
        let now_ns = self.slice_began.get();
        if self.me().resumed.has_some()
            && now_ns.saturating_sub(self.undeferred.resumed_ns.get()) > STEP_BACK_NS_MAX
        {
            self.undeferred.resumed_ns.set(now_ns);
            return self.me().resumed.pop();
        }
        self.undeferred.spawners.borrow_mut().pop()
    }

    /// On a fiber that begins: the undeferred task, if one is to run.
    pub(super) fn begin_undeferred(&self) {
        let Some(Running { task, .. }) = self.undeferred.running.get() else { return };
        // SAFETY: it is there until it is over or, adopted, until the core ends it.
        let task = TaskRef::of(unsafe { task.as_ref() });
        self.current.set(Some(task));
        self.call_body(task);
        match self.undeferred.running.take() {
            None => self.returned(task),
            Some(running) => self.over_undeferred(running),
        }
    }

    /// A task is over that nobody was told of.
    fn over_undeferred(&self, running: Running) {
        // SAFETY: it was leaked by `undeferred_task`, and nobody knows it any more.
        let mut task = unsafe { Box::from_raw(running.task.as_ptr()) };
        self.count_slice(TaskRef::of(&task));
        self.undeferred.brief.ran(task.body, task.ran_ns());
        if task.has_drop() {
            outside_of_tasks(|| task.drop_argument());
            self.slice_began.set(exec::now_ns());
        }
        task.end();
        self.undeferred.memory.set(Some(task));
    }

    /// The undeferred task that runs, if one does, becomes one like others.
    #[inline]
    pub(super) fn adopt(&self) {
        if let Some(running) = self.undeferred.running.take() {
            self.adopt_now(running);
        }
    }

    #[cold]
    fn adopt_now(&self, Running { task, adopt }: Running) {
        // SAFETY: it was leaked by `undeferred_task`, and is given to the core here. Its spawner,
        // whose the closure is, waits for this fiber to leave.
        let (task, adopt) = unsafe { (Box::from_raw(task.as_ptr()), adopt.as_ref()) };
        self.undeferred.brief.did_more(task.body);
        self.shared().with_core(|core| adopt(core, task));
    }

    /// Lets the children of a task end that spawns brief ones: here, if they were sent here.
    /// `false`: they take longer than brief ones would, and are not waited for.
    fn children_end(&self, parent: TaskRef) -> bool {
        let children = || parent.get().children.load(Ordering::Acquire);
        if children() == 0 {
            return true;
        }
        if !self.undeferred.is_patient() {
            return false;
        }
        self.tell_paused(parent);
        let until_ns = exec::now_ns() + WAKE_NS + u64::from(children()) * HANDED_OVER_NS;
        while children() > 0 && exec::now_ns() < until_ns {
            if self.has_work() {
                self.step_back(parent, Some(parent));
                continue;
            }
            for _ in 0..LOOKS {
                std::hint::spin_loop();
            }
            self.shared().settle_rest();
        }
        if !self.me().has_going_on(parent) {
            self.goes_on(parent);
        }
        let ended = children() == 0;
        self.undeferred.waited(ended);
        ended
    }
}

/// Whether accesses are right whatever was used before: few, of data as a whole, each of another.
fn are_plain(accesses: impl Iterator<Item = Result<Access, String>>) -> bool {
    let mut bases: SmallVec<[usize; ACCESSES_MAX]> = SmallVec::new();
    for access in accesses {
        let Some(access) = access.ok().filter(Access::is_whole) else { return false };
        if bases.len() == ACCESSES_MAX || bases.contains(&access.base) {
            return false;
        }
        bases.push(access.base);
    }
    true
}
