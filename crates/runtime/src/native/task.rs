//! What the native driver keeps of a task, and who may touch it when.
//!
//! A [`Task`] is made by `spawn`, owned by the core's table, and ended by the core when the
//! scheduler forgets it; its memory becomes another task. In between its address is known to the
//! worker that runs it and to its outstanding operations. Why that is safe: the scheduler forgets
//! a task only after its `Ended`, which is reported by whoever brings `left` to zero, and everybody
//! who knows the address counts in `left`: the body, each event, its children (as one).
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `id` | the core, before anybody but its worker knows the task | everybody |
//! | `body`, `argument` | `spawn` | the worker that runs it, once; then who brings `left` to zero |
//! | `left` | anybody who counts in it, with AcqRel | the one that brings it to zero |
//! | `events` | the body (adds), anybody (takes), with AcqRel | the same |
//! | `children` | the core, under its lock | the body, under `waits` when it decides to pause |
//! | `place` | the worker, under `waits` | who resumes it, under `waits` |
//! | `is_io`, `kind` | the core, when it begins and ends; an I/O task's part as `io_task` says | all |

use std::borrow::Cow;
use std::ffi::{c_char, c_void, CStr};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use graph::{Direction, Region, Span, TaskId};
use parking_lot::Mutex;

use super::io_task::{FilePart, IoTask};
use super::{waiting, Errno};

/// What a task runs.
pub type Body = extern "C-unwind" fn(*mut c_void);

/// Bytes of a copied argument that need no memory of their own.
const INLINE_BYTES: usize = 32;

/// Events that a task may wait for at once; operations and children count beside them.
const EVENTS_MAX: u32 = 1 << 30;

/// An identifier that no task has.
const NO_TASK: u64 = u64::MAX;

/// A task as other languages know it; 0 is none.
pub type TaskNumber = u64;

/// One use of a datum, known by its address.
#[derive(Clone, Debug)]
pub struct Access {
    /// The address, which is never followed.
    pub base: usize,
    /// What is done.
    pub direction: Direction,
    /// With which part.
    pub region: Region,
}

impl Access {
    /// Whether it is to all of the datum.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.region, Region::Whole | Region::Range(Span { start: 0, end: u64::MAX }))
    }
}

/// What a body is called with.
#[derive(Debug)]
pub enum Argument {
    /// A pointer of the program's.
    Pointer(*mut c_void),
    /// A copy in the task.
    Inline([u64; INLINE_BYTES / 8]),
    /// A copy in memory of its own.
    Copied(Box<[u64]>),
}

impl Argument {
    /// A copy of `bytes` bytes at `from`.
    ///
    /// # Safety
    ///
    /// `from` is valid for reads of `bytes` bytes.
    pub unsafe fn copy(from: *const c_void, bytes: usize) -> Argument {
        let mut inline = [0; INLINE_BYTES / 8];
        if bytes <= INLINE_BYTES {
            // SAFETY: the caller's promise; the destination has INLINE_BYTES.
            unsafe { from.cast::<u8>().copy_to(inline.as_mut_ptr().cast(), bytes) };
            return Argument::Inline(inline);
        }
        let mut copied = vec![0u64; bytes.div_ceil(8)].into_boxed_slice();
        // SAFETY: as above; the destination was just made large enough.
        unsafe { from.cast::<u8>().copy_to(copied.as_mut_ptr().cast(), bytes) };
        Argument::Copied(copied)
    }

    fn pointer(&mut self) -> *mut c_void {
        match self {
            Argument::Pointer(pointer) => *pointer,
            Argument::Inline(copy) => copy.as_mut_ptr().cast(),
            Argument::Copied(copy) => copy.as_mut_ptr().cast(),
        }
    }
}

/// A task to spawn.
#[derive(Debug)]
pub struct Spawn {
    /// What it runs.
    pub body: Body,
    /// Called with.
    pub argument: Argument,
    /// Called with the argument when the task is over.
    pub drop: Option<Body>,
    /// For messages; lives as long as the task.
    pub name: *const c_char,
    /// Higher runs first.
    pub priority: i32,
}

impl Spawn {
    /// Its name, for messages.
    pub(super) fn name(&self) -> Option<&CStr> {
        // SAFETY: the program promised a C string that lives as long as the task.
        (!self.name.is_null()).then(|| unsafe { CStr::from_ptr(self.name) })
    }
}

/// Why a fiber waits, where somebody else resumes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// `pause`.
    Pause,
    /// For all children.
    Children,
}

/// Whether the fiber of a task waits.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// A `resume` came before its `pause`.
    pub(super) permit: bool,
    /// The fiber, by its place on its worker.
    pub(super) parked: Option<(Why, Place)>,
}

/// Where a fiber is: which worker, and which of its fibers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) worker: u32,
    pub(super) fiber: u32,
}

/// A task.
#[derive(Debug)]
pub(super) struct Task {
    id: AtomicU64,
    pub(super) body: Body,
    argument: std::cell::UnsafeCell<Argument>,
    drop: Option<Body>,
    name: *const c_char,
    pub(super) parent: Option<TaskRef>,
    /// The body, the events, and (as one) the children that are not over.
    left: AtomicU32,
    events: AtomicU32,
    pub(super) children: AtomicU32,
    pub(super) waits: Mutex<Waits>,
    /// The core was told that it takes no processor.
    pub(super) told_paused: AtomicBool,
    /// Which part is in `kind`.
    is_io: bool,
    /// The executor that it was sent to: the worker, or the one of all I/O tasks.
    pub(super) executor: AtomicU32,
    kind: KindPart,
}

/// What only tasks of one kind have. A task is two cache lines, and one word more would cost each
/// task a copy by call.
union KindPart {
    /// Time on a processor, in nanoseconds, by its worker alone.
    ran_ns: ManuallyDrop<AtomicU64>,
    /// Of an I/O task.
    io: ManuallyDrop<Box<IoTask>>,
}

impl std::fmt::Debug for KindPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KindPart")
    }
}

const _: () = assert!(size_of::<Task>() == 128);

/// A task that ended without having run to its end.
#[derive(Debug)]
pub(super) struct Undone {
    argument: Argument,
    drop: Option<Body>,
    name: *const c_char,
    /// What the program is told.
    pub(super) why: Option<(Errno, String)>,
}

// SAFETY: as for `Task`.
unsafe impl Send for Undone {}

impl Undone {
    /// The program drops the argument.
    pub(super) fn drop_argument(&mut self) {
        if let Some(drop) = self.drop {
            drop(self.argument.pointer());
        }
    }

    /// Its name, for messages; `None`: it is one of the library's own.
    pub(super) fn name(&self) -> Option<Cow<'_, str>> {
        // SAFETY: the program promised a C string that lives until the task is over.
        let name = (!self.name.is_null()).then(|| unsafe { CStr::from_ptr(self.name) });
        let is_own = std::ptr::eq(self.name, waiting::NAME.as_ptr());
        (!is_own).then(|| name.map_or("(no name)".into(), CStr::to_string_lossy))
    }
}

/// What is told of a task.
#[derive(Clone, Copy, Debug)]
pub(super) enum Report {
    /// Nothing of it is left to come.
    Ended(TaskRef),
    /// Its body gave its processor back.
    Paused(TaskRef),
    /// What a task with files came to is known, and its argument dropped.
    Settled(TaskRef),
    /// The catalog says which files a task is about to change.
    Announced(TaskRef),
    /// The argument of a task that never ran to its end was dropped.
    Undone,
    /// Its body is done with the data of an access that it writes.
    Released(TaskRef, u32),
    /// The scheduler is to look at the clock.
    Tick,
}

/// A task that is known not to be over: see the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskRef(NonNull<Task>);

// SAFETY: what is reached through it is atomic, locked, or used by one thread as the table says.
unsafe impl Send for TaskRef {}

// SAFETY: as for `TaskRef`; the raw pointers are the program's, which promised that they may be
// used by the thread that runs the task.
unsafe impl Send for Task {}
// SAFETY: as above.
unsafe impl Sync for Task {}

impl Task {
    /// A task; without `id` nobody knows it but who made it.
    pub(super) fn new(
        spawn: Spawn,
        id: Option<TaskId>,
        parent: Option<TaskRef>,
        io: Option<IoTask>,
    ) -> Task {
        let is_io = io.is_some();
        let kind = match io {
            None => KindPart { ran_ns: ManuallyDrop::new(AtomicU64::new(0)) },
            Some(io) => KindPart { io: ManuallyDrop::new(Box::new(io)) },
        };
        Task {
            id: AtomicU64::new(id.map_or(NO_TASK, TaskId::to_bits)),
            body: spawn.body,
            argument: spawn.argument.into(),
            drop: spawn.drop,
            name: spawn.name,
            parent,
            left: AtomicU32::new(1),
            events: AtomicU32::new(0),
            children: AtomicU32::new(0),
            waits: Mutex::default(),
            // It never takes one.
            told_paused: AtomicBool::new(is_io),
            is_io,
            executor: AtomicU32::new(0),
            kind,
        }
    }

    /// The core has taken it in, although its body runs already.
    pub(super) fn adopt(&self, id: TaskId, worker: u32) {
        self.executor.store(worker, Ordering::Relaxed);
        self.told_paused.store(true, Ordering::Relaxed);
        self.id.store(id.to_bits(), Ordering::Release);
    }

    pub(super) fn id(&self) -> TaskId {
        TaskId::from_bits(self.id.load(Ordering::Acquire))
    }

    /// The number that other languages know it by.
    pub(super) fn number(&self) -> TaskNumber {
        self.id.load(Ordering::Acquire) + 1
    }

    /// Its name, for messages.
    pub(super) fn name(&self) -> Option<&CStr> {
        // SAFETY: the program promised a C string that lives as long as the task.
        (!self.name.is_null()).then(|| unsafe { CStr::from_ptr(self.name) })
    }

    /// Of an I/O task: what only these have.
    pub(super) fn io(&self) -> Option<&IoTask> {
        // SAFETY: `is_io` says which part it is, from `new` to `end`.
        self.is_io.then(|| unsafe { &**self.kind.io })
    }

    /// Of a task with files: what only these have.
    pub(super) fn files(&self) -> Option<&FilePart> {
        self.io()?.files()
    }

    /// Whether it is an I/O task.
    pub(super) fn is_io(&self) -> bool {
        self.is_io
    }

    /// So much more time on a processor, in nanoseconds. By its worker alone.
    pub(super) fn add_ran(&self, ns: u64) {
        if !self.is_io {
            // SAFETY: as in `io`.
            let ran_ns = unsafe { &self.kind.ran_ns };
            ran_ns.store(ran_ns.load(Ordering::Relaxed) + ns, Ordering::Relaxed);
        }
    }

    /// Its time on a processor, in nanoseconds; 0 for an I/O task.
    pub(super) fn ran_ns(&self) -> u64 {
        if self.is_io {
            return 0;
        }
        // SAFETY: as in `io`.
        unsafe { &self.kind.ran_ns }.load(Ordering::Relaxed)
    }

    /// Runs the body.
    pub(super) fn run(&self) {
        // SAFETY: only the worker that the task was sent to calls this, once.
        let pointer = unsafe { (*self.argument.get()).pointer() };
        (self.body)(pointer);
    }

    /// Whether the program wants to know when the task is over.
    pub(super) fn has_drop(&self) -> bool {
        self.drop.is_some()
    }

    /// The task is over: the program drops the argument. Called by the one that brought `left` to
    /// zero, before it reports so: whoever waited for the task finds the argument dropped.
    ///
    /// A task with files may run again, or has to wait for the catalog: its argument stays until it
    /// is settled.
    pub(super) fn drop_argument(&self) {
        if self.files().is_none() {
            self.drop_now();
        }
    }

    /// A task with files is settled: as `drop_argument`.
    pub(super) fn settle(&self) {
        self.drop_now();
        self.files().expect("only these are settled").settle();
    }

    fn drop_now(&self) {
        if let Some(drop) = self.drop {
            // SAFETY: the body has returned, and only one brings `left` to zero.
            drop(unsafe { (*self.argument.get()).pointer() });
        }
    }

    /// It was never run to its end and will not be: what is left to be done with its argument.
    pub(super) fn undone(&mut self) -> Undone {
        let nothing = Argument::Pointer(std::ptr::null_mut());
        let argument = std::mem::replace(self.argument.get_mut(), nothing);
        Undone { argument, drop: self.drop, name: self.name, why: None }
    }

    /// A task with files runs again: as if it had not begun. Nobody else knows it at this moment.
    pub(super) fn again(&mut self) {
        *self.left.get_mut() = 1;
        *self.events.get_mut() = 0;
        *self.waits.get_mut() = Waits::default();
        assert!(self.is_io, "only these have files");
        // SAFETY: `is_io` says which part it is, and the old one is not used any more.
        unsafe { **self.kind.io = IoTask::new(true) };
    }

    /// It is over, and nobody else knows it any more: only its memory stays, for another task.
    pub(super) fn end(&mut self) {
        *self.id.get_mut() = NO_TASK;
        *self.argument.get_mut() = Argument::Pointer(std::ptr::null_mut());
        if std::mem::take(&mut self.is_io) {
            // SAFETY: it was that of an I/O task until now, and is none from now on.
            unsafe { ManuallyDrop::drop(&mut self.kind.io) };
            self.kind.ran_ns = ManuallyDrop::default();
        }
    }

    /// One more thing has to come before the task is over.
    pub(super) fn expect(&self, count: u32) {
        let before = self.left.fetch_add(count, Ordering::AcqRel);
        assert!(before > 0, "only a task that is not over expects more");
    }

    /// It has spawned another child. Under the core's lock, as all that changes `children`.
    pub(super) fn one_child_more(&self) {
        let children = self.children.load(Ordering::Relaxed);
        if children == 0 {
            self.expect(1);
        }
        self.children.store(children + 1, Ordering::Release);
    }

    /// A child is over. `true`: it was the last, which is one of the things that the task waits
    /// for. Under the core's lock.
    #[must_use]
    pub(super) fn one_child_less(&self) -> bool {
        let left = self.children.load(Ordering::Relaxed) - 1;
        self.children.store(left, Ordering::Release);
        left == 0
    }

    /// Whether the task will not be over when its body has returned. To be asked by the body.
    pub(super) fn waits_for_more_than_its_body(&self) -> bool {
        self.left.load(Ordering::Acquire) > 1
    }

    /// So many of them came. `true`: it is over, and the caller reports it.
    #[must_use]
    pub(super) fn came(&self, count: u32) -> bool {
        let before = self.left.fetch_sub(count, Ordering::AcqRel);
        assert!(before >= count, "nothing comes that was not expected");
        before == count
    }

    /// Waits for more events. `false`: there would be more than can be counted.
    pub(super) fn add_events(&self, count: u32) -> bool {
        let add = |events: u32| events.checked_add(count).filter(|sum| *sum <= EVENTS_MAX);
        // In `left` first: they may come as soon as they are known.
        if count > EVENTS_MAX {
            return false;
        }
        self.expect(count);
        let added = self.events.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok();
        if !added {
            let over = self.came(count);
            debug_assert!(!over, "the body, which adds, counts too");
        }
        added
    }

    /// Takes events that the task waits for. `false`: it does not wait for so many.
    pub(super) fn take_events(&self, count: u32) -> bool {
        let take = |events: u32| events.checked_sub(count);
        self.events.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok()
    }
}

impl TaskRef {
    pub(super) fn of(task: &Task) -> TaskRef {
        TaskRef(NonNull::from(task))
    }

    pub(super) fn as_ptr(self) -> *mut Task {
        self.0.as_ptr()
    }

    /// What `as_ptr` gave, of a task that is not over; `None`: null.
    pub(super) fn of_ptr(task: *mut Task) -> Option<TaskRef> {
        NonNull::new(task).map(TaskRef)
    }

    /// The task.
    pub(super) fn get(&self) -> &Task {
        // SAFETY: whoever has a TaskRef counts in `left`, so the core has not ended the task.
        unsafe { self.0.as_ref() }
    }
}
