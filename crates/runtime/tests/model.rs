//! The native driver's protocols between threads in a model where every order of their steps is
//! tried, with memory that is as weak as the orderings allow. The files themselves are compiled
//! here, with loom's locks, atomics and fences.
//!
//! Each model is run once as the code is, and once more for each fence of the code that it comes
//! by, without that one: then it has to fail. So no fence is there for nothing, and a model that
//! could not fail would be found.

#[path = "../src/native/inbox.rs"]
mod inbox;
#[path = "../src/native/queue.rs"]
mod queue;
#[path = "../src/native/starving.rs"]
mod starving;
#[path = "support/sync.rs"]
mod sync;
#[path = "../src/native/waiters.rs"]
mod waiters;

use loom::sync::{Arc, Notify};
use loom::thread;

use inbox::Inbox;
use queue::{Asleep, Queue};
use starving::Starving;
use sync::Mutex;
use waiters::Waiters;

/// How often the model takes the processor from a thread that could go on; the environment
/// variable `LOOM_MAX_PREEMPTIONS` says otherwise.
const PREEMPTIONS_MAX: usize = 3;

fn check(model: fn()) {
    check_with(PREEMPTIONS_MAX, model);
}

fn check_with(preemptions_max: usize, model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions_max);
    builder.check(model);
}

/// Whether the model fails.
fn fails(model: fn()) -> bool {
    std::panic::catch_unwind(|| check(model)).is_err()
}

/// The model holds, and does not without any one of the fences of the code.
fn check_with_and_without_fences(fences: usize, model: fn()) {
    check(model);
    let seen = sync::fences_seen();
    assert_eq!(seen.len(), fences, "fences that this model comes by: {seen:?}");
    for fence in seen {
        sync::leave_out(Some(fence));
        assert!(fails(model), "the fence at {fence} is not needed, or the model finds nothing");
    }
    sync::leave_out(None);
}

/// The core: reports that were handed over.
type Core = Mutex<Vec<u32>>;

fn take_reports(core: &mut Vec<u32>, inbox: &Inbox<u32>) {
    let mut reports = Vec::new();
    inbox.take(&mut reports);
    core.append(&mut reports);
}

fn settle(core: &Core, inbox: &Inbox<u32>) {
    inbox.settle(|| {
        let Some(mut core) = core.try_lock() else { return false };
        take_reports(&mut core, inbox);
        true
    });
}

/// Two workers report at once; when both are done, nothing is left in the list.
fn two_report() {
    let shared = Arc::new((Core::default(), Inbox::default()));
    let theirs = shared.clone();
    let other = thread::spawn(move || {
        theirs.1.put(1);
        settle(&theirs.0, &theirs.1);
    });
    shared.1.put(2);
    settle(&shared.0, &shared.1);
    other.join().expect("no panic");
    let mut handed = shared.0.lock().clone();
    handed.sort_unstable();
    assert_eq!(handed, [1, 2], "all are handed over once");
}

/// A program works with the core while two workers report.
fn a_program_and_two_workers() {
    let shared = Arc::new((Core::default(), Inbox::default()));
    let workers = [1, 2].map(|report| {
        let shared = shared.clone();
        thread::spawn(move || {
            shared.1.put(report);
            settle(&shared.0, &shared.1);
        })
    });
    let mut core = shared.0.lock();
    take_reports(&mut core, &shared.1);
    drop(core);
    settle(&shared.0, &shared.1);
    workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
    let mut handed = shared.0.lock().clone();
    handed.sort_unstable();
    assert_eq!(handed, [1, 2], "all are handed over once");
}

#[test]
fn a_report_is_handed_over_by_whoever_holds_the_lock() {
    check_with_and_without_fences(1, two_report);
}

#[test]
fn a_report_does_not_wait_for_a_program_that_works_with_the_core() {
    check(a_program_and_two_workers);
}

#[derive(Default)]
struct Worker {
    queue: Queue<u32>,
    resumed: Queue<u32>,
    asleep: Asleep,
    bell: Notify,
}

impl Worker {
    /// What a worker takes in the end, asleep whenever there is nothing. A sleep that nobody ends
    /// is a deadlock, which the model reports.
    fn take(&self, count: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        while taken.len() < count {
            taken.extend(self.resumed.pop());
            taken.extend(self.queue.pop());
            if taken.len() < count {
                self.asleep.begin();
                if !self.queue.has_some() && !self.resumed.has_some() {
                    self.bell.wait();
                }
                self.asleep.end();
            }
        }
        taken
    }

    fn wake_if_asleep(&self) {
        if self.asleep.must_wake() {
            self.bell.notify();
        }
    }
}

fn one_gives() {
    let worker = Arc::new(Worker::default());
    let theirs = worker.clone();
    let giver = thread::spawn(move || {
        theirs.queue.push(1);
        theirs.queue.push(2);
        theirs.wake_if_asleep();
    });
    assert_eq!(worker.take(2), [1, 2]);
    giver.join().expect("no panic");
}

/// One gives a task, another resumes a fiber.
fn two_give() {
    let worker = Arc::new(Worker::default());
    let (one, other) = (worker.clone(), worker.clone());
    let one = thread::spawn(move || {
        one.queue.push(1);
        one.wake_if_asleep();
    });
    let other = thread::spawn(move || {
        other.resumed.push(2);
        other.wake_if_asleep();
    });
    let mut taken = worker.take(2);
    taken.sort_unstable();
    assert_eq!(taken, [1, 2]);
    one.join().expect("no panic");
    other.join().expect("no panic");
}

/// The one who gave a task wants it back: exactly one of the two gets it.
fn one_takes_back() {
    let worker = Arc::new(Worker::default());
    worker.queue.push(1);
    worker.queue.push(2);
    let theirs = worker.clone();
    let giver = thread::spawn(move || theirs.queue.take_back(&2));
    let mut taken = Vec::new();
    while let Some(task) = worker.queue.pop() {
        taken.push(task);
    }
    let is_back = giver.join().expect("no panic");
    assert_eq!(taken, if is_back { vec![1] } else { vec![1, 2] });
    assert!(!worker.queue.has_some());
}

/// Two workers, and a queue from which either may take.
#[derive(Default)]
struct Crew {
    workers: [Worker; 2],
    shared: Queue<u32>,
}

impl Crew {
    fn sleepers(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.workers.len()).filter(|worker| self.workers[*worker].asleep.must_wake())
    }

    /// What a worker takes that does nothing else afterwards.
    fn take_one(&self, me: usize) -> u32 {
        loop {
            if let Some(taken) = self.shared.pop() {
                if self.shared.has_some() {
                    self.sleepers().take(1).for_each(|worker| self.workers[worker].bell.notify());
                }
                return taken;
            }
            self.workers[me].asleep.begin();
            if !self.shared.has_some() {
                self.workers[me].bell.wait();
            }
            self.workers[me].asleep.end();
        }
    }
}

/// Two things are put, each with a wake-up for one who sleeps, and each is taken by another worker:
/// also if both wake-ups went to the same one.
fn two_share() {
    let crew = Arc::new(Crew::default());
    let takers = [0, 1].map(|me| {
        let crew = crew.clone();
        thread::spawn(move || crew.take_one(me))
    });
    for number in [1, 2] {
        crew.shared.push(number);
        crew.sleepers().take(1).for_each(|worker| crew.workers[worker].bell.notify());
    }
    let taken = takers.map(|taker| taker.join().expect("no panic"));
    assert_eq!(taken.iter().sum::<u32>(), 3);
}

#[test]
fn what_any_worker_may_take_is_taken_by_one_that_is_free() {
    // Three threads: fewer preemptions, or it takes minutes. Its fences are those of `one_gives`.
    check_with(PREEMPTIONS_MAX - 1, two_share);
}

#[test]
fn a_sleeping_worker_is_woken_by_what_it_is_given() {
    check_with_and_without_fences(2, one_gives);
}

#[test]
fn a_sleeping_worker_is_woken_by_two_at_once() {
    check(two_give);
}

#[test]
fn a_task_is_taken_by_its_worker_or_taken_back() {
    check(one_takes_back);
}

/// The core's lock and who waits for the end of the tasks in it.
fn one_waits() {
    let shared = Arc::new((Mutex::new(1), Waiters::default()));
    shared.1.set_live(1);
    let theirs = shared.clone();
    let core = thread::spawn(move || {
        let mut live = theirs.0.lock();
        *live -= 1;
        theirs.1.set_live(*live);
        drop(live);
        theirs.1.some_are_over();
    });
    shared.1.wait_until_at_most(0);
    assert_eq!(shared.1.live(), 0);
    core.join().expect("no panic");
}

/// The last two tasks end on two workers.
fn one_waits_for_two() {
    let shared = Arc::new((Mutex::new(2), Waiters::default()));
    shared.1.set_live(2);
    let workers = [1, 2].map(|_| {
        let shared = shared.clone();
        thread::spawn(move || {
            let mut live = shared.0.lock();
            *live -= 1;
            shared.1.set_live(*live);
            drop(live);
            shared.1.some_are_over();
        })
    });
    shared.1.wait_until_at_most(0);
    workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
}

/// One waits for half of the tasks, another for the end.
fn two_wait_for_different_ends() {
    let shared = Arc::new((Mutex::new(2), Waiters::default()));
    shared.1.set_live(2);
    let theirs = shared.clone();
    let core = thread::spawn(move || {
        for _ in 0..2 {
            let mut live = theirs.0.lock();
            *live -= 1;
            theirs.1.set_live(*live);
            drop(live);
            theirs.1.some_are_over();
        }
    });
    let theirs = shared.clone();
    let half = thread::spawn(move || theirs.1.wait_until_at_most(1));
    shared.1.wait_until_at_most(0);
    half.join().expect("no panic");
    core.join().expect("no panic");
}

#[test]
fn those_who_wait_for_different_ends_are_all_told() {
    check(two_wait_for_different_ends);
}

#[test]
fn a_program_that_waits_for_the_end_is_told_of_it() {
    check_with_and_without_fences(2, one_waits);
}

#[test]
fn the_end_of_the_last_of_two_tasks_is_told() {
    check(one_waits_for_two);
}

/// One worker has the only stack and gives it back; another needs it. `attempts` is how often it
/// tries before it sleeps, at most.
fn one_starves(attempts: usize) {
    let shared = Arc::new((Mutex::new(None), Starving::default(), Notify::new()));
    let theirs = shared.clone();
    let owner = thread::spawn(move || {
        *theirs.0.lock() = Some(7);
        if theirs.1.came_back() {
            theirs.2.notify();
        }
    });
    loop {
        let mut left = attempts;
        let take = || {
            left = left.checked_sub(1)?;
            shared.0.lock().take()
        };
        if let Some(stack) = shared.1.take(take, || {}) {
            assert_eq!(stack, 7);
            break;
        }
        shared.2.wait();
    }
    owner.join().expect("no panic");
}

#[test]
fn a_worker_without_a_stack_is_told_when_one_came_back() {
    check(|| one_starves(2));
}

/// The canary: without the second attempt the model has to find a stack that nobody is told of.
#[test]
fn the_model_finds_a_worker_that_starves_for_ever() {
    assert!(fails(|| one_starves(1)));
}
