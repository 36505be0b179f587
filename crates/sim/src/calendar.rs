//! The event calendar of machines whose tasks compute for a time that is known, or share disks
//! with others: what happens when, and what the disks say of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use sched::{
    Access, Constraint, Direction, Event, ExecutorId, FunctionId, Instruction, Kind, NodeId,
    OnFailure, Region, Sched, Target, TaskSpec, Tuning, VersionId,
};

use crate::storage::Disk;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Ends(usize),
    /// A disk is to be looked at, if nothing changed there since.
    Disk(usize, u64),
}

/// What is going to happen, in order of time and then of when that was known.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// Virtual nanoseconds.
    pub(crate) now: u64,
    pub(crate) disks: Vec<Disk>,
    /// By disk: the number of its last change.
    changes: Vec<u64>,
    heap: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    serial: u64,
}

impl Calendar {
    /// The time 0, idle disks.
    pub(crate) fn new(disks: Vec<Disk>) -> Calendar {
        let changes = vec![0; disks.len()];
        Calendar { now: 0, disks, changes, heap: BinaryHeap::new(), serial: 0 }
    }

    fn at(&mut self, time: u64, happening: Happening) {
        self.serial += 1;
        self.heap.push(Reverse((time, self.serial, happening)));
    }

    /// Something ends after so many nanoseconds.
    pub(crate) fn ends_after(&mut self, ns: u64, number: usize) {
        self.at(self.now + ns, Happening::Ends(number));
    }

    /// Something ends when a disk has moved so many bytes for it.
    pub(crate) fn begin(&mut self, disk: usize, number: usize, bytes: u64) {
        self.disks[disk].begin(self.now, number, bytes);
        self.disk_changed(disk);
    }

    fn disk_changed(&mut self, disk: usize) {
        self.changes[disk] += 1;
        if let Some(next) = self.disks[disk].next() {
            self.at(next, Happening::Disk(disk, self.changes[disk]));
        }
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((time, ..))| *time)
    }
}

/// A machine with a calendar, under a scheduler.
pub(crate) trait Machine {
    fn calendar(&mut self) -> &mut Calendar;

    fn sched(&mut self) -> &mut Sched;

    /// Does what the scheduler says.
    fn carry_out(&mut self, out: Vec<Instruction>);

    /// Tells the scheduler something, and does what it says.
    fn drive(&mut self, event: Event) {
        let (now, mut out) = (self.calendar().now, Vec::new());
        self.sched().handle(now, event, &mut out);
        self.carry_out(out);
    }

    /// What has this number ends now.
    fn ends(&mut self, number: usize);
}

/// Lets the next thing happen. `false`: there is none.
pub(crate) fn happen(machine: &mut impl Machine) -> bool {
    let calendar = machine.calendar();
    let Some(Reverse((time, _, happening))) = calendar.heap.pop() else { return false };
    match happening {
        Happening::Ends(number) => {
            calendar.now = time;
            machine.ends(number);
        }
        Happening::Disk(disk, change) if calendar.changes[disk] == change => {
            calendar.now = time;
            let disk_of = &mut calendar.disks[disk];
            let ended: Vec<usize> = std::iter::from_fn(|| disk_of.ended(time)).collect();
            ended.into_iter().for_each(|number| machine.ends(number));
            // Now, as what came of those that ended may be there already.
            machine.calendar().disk_changed(disk);
        }
        Happening::Disk(..) => {}
    }
    true
}

/// On each node an executor for each processor, and one with so many slots for I/O tasks.
pub(crate) fn start_executors(
    machine: &mut impl Machine,
    nodes: u32,
    processors: u32,
    io_slots: u32,
) {
    for node in 0..nodes {
        for processor in 0..=processors {
            let executor = ExecutorId(node * (processors + 1) + processor);
            let (kind, slots) =
                if processor == processors { (Kind::Io, io_slots) } else { (Kind::Compute, 1) };
            let node = NodeId(node);
            machine.drive(Event::ExecutorUp { executor, kind, node, slots, extra: 0 });
        }
    }
}

/// A task of a function that returns a value, reads nothing and asks for nothing.
pub(crate) fn task(function: u32, kind: Kind) -> TaskSpec {
    TaskSpec {
        function: FunctionId(function),
        name: Arc::from("task"),
        kind,
        cpus: u32::from(kind == Kind::Compute),
        priority: 0,
        retries: 0,
        timeout: None,
        on_failure: OnFailure::Fail,
        constraint: Constraint::default(),
        tuning: Tuning::Static,
        returns: 1,
        accesses: Vec::new(),
        produces: 0,
        layer: None,
    }
}

/// That a task reads a version.
pub(crate) fn reads(version: VersionId) -> Access {
    Access { target: Target::Version(version), region: Region::Whole, direction: Direction::In }
}
