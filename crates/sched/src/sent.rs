//! Tasks at an executor: what they hold there, and their line with its sums.

use alloc::collections::VecDeque;
use alloc::string::String;

use graph::TaskId;

use crate::api::{Constraint, LayerId};

/// A task at an executor, with what it holds there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) task: TaskId,
    pub(crate) cpus: u32,
    pub(crate) estimate_ns: Option<u64>,
    /// Nothing may be sent ahead behind it.
    pub(crate) alone: bool,
    pub(crate) recalling: bool,
    pub(crate) abandoned: bool,
    /// It was set aside and waits for its consumers.
    pub(crate) stalls: bool,
    /// It does not go on: it waits for its consumers, or for the end of its executor.
    pub(crate) halted: bool,
    pub(crate) grant: Option<(LayerId, Constraint)>,
}

/// Tasks at an executor that were not set aside, in the order in which they were sent. More than
/// one of them only where each takes one processor and allows others behind it, or where slots are
/// what counts (I/O).
#[derive(Debug, Default)]
pub(crate) struct SentLine {
    sent: VecDeque<Sent>,
    /// Those behind which nothing may be sent.
    closing: u32,
    /// The run time of the others, in nanoseconds.
    open_ns: u128,
}

impl SentLine {
    pub(crate) fn len(&self) -> usize {
        self.sent.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Sent> {
        self.sent.iter()
    }

    /// Processors that the first of them takes: the others, if there are any, take no more.
    pub(crate) fn cpus(&self) -> u32 {
        self.sent.front().map_or(0, |sent| sent.cpus)
    }

    /// The run time that was sent, if more may be: all of it is known, and nothing stands alone.
    pub(crate) fn open_ns(&self, tasks_max: u32) -> Option<u64> {
        let open = self.closing == 0 && self.sent.len() < tasks_max as usize;
        open.then(|| u64::try_from(self.open_ns).unwrap_or(u64::MAX))
    }

    pub(crate) fn push(&mut self, sent: Sent) {
        self.sum(&sent, true);
        self.sent.push_back(sent);
    }

    /// As [`SentLine::push`], before the others.
    pub(crate) fn push_first(&mut self, sent: Sent) {
        self.sum(&sent, true);
        self.sent.push_front(sent);
    }

    /// Takes a task out of the line.
    pub(crate) fn take(&mut self, task: TaskId) -> Option<Sent> {
        let sent = match self.sent.front() {
            Some(first) if first.task == task => self.sent.pop_front(),
            _ => {
                let at = self.sent.iter().position(|sent| sent.task == task)?;
                self.sent.remove(at)
            }
        }?;
        self.sum(&sent, false);
        Some(sent)
    }

    /// What it holds of a task; what is summed up must not be changed.
    pub(crate) fn find_mut(&mut self, task: TaskId) -> Option<&mut Sent> {
        self.sent.iter_mut().find(|sent| sent.task == task)
    }

    /// The later half of them, from the end; what is summed up must not be changed.
    pub(crate) fn later_half_mut(&mut self) -> impl Iterator<Item = &mut Sent> {
        let half = self.sent.len() / 2;
        self.sent.iter_mut().rev().take(half)
    }

    fn sum(&mut self, sent: &Sent, comes: bool) {
        let open = !sent.alone && sent.cpus == 1;
        match (sent.estimate_ns.filter(|_| open), comes) {
            (Some(ns), true) => self.open_ns += u128::from(ns),
            (Some(ns), false) => self.open_ns -= u128::from(ns),
            (None, true) => self.closing += 1,
            (None, false) => self.closing -= 1,
        }
    }

    /// Whether the sums are those of the tasks.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let mut again = SentLine::default();
        self.sent.iter().for_each(|sent| again.sum(sent, true));
        let most = self.sent.iter().map(|sent| sent.cpus).max().unwrap_or(0);
        let sums = (self.closing, self.open_ns, self.cpus());
        if sums != (again.closing, again.open_ns, most) {
            return Err(alloc::format!("a line notes {sums:?} of {:?}", self.sent));
        }
        Ok(())
    }
}
