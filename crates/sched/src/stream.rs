//! What a driver keeps of a stream: how far its producer may be ahead of its consumers.
//!
//! A value costs *credit* from when it is handed over until it is *used up*: the program has taken
//! it and come back for the next one, and no task is left to read it, or nobody can name it any
//! more. A producer may go on while the values that are not used up cost less than the budget.
//! Then it stalls: its executor, or its slot and its grant, go to others, so that a session with
//! one worker does not wait for itself. What a value costs is the driver's choice: one, or its
//! bytes within limits.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use graph::VersionId;

/// A value that is not used up.
#[derive(Clone, Copy, Debug)]
struct Kept {
    number: u64,
    version: VersionId,
    cost: u64,
}

/// What is to be done for a producer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// Nothing.
    Wait,
    /// It stalled and may go on: the scheduler is to be asked ([`crate::Event::Resume`]).
    Resume,
    /// It runs and is to be told that it may go further ([`StreamAccount::grant`]).
    Grant,
}

/// The account of one stream, over all runs of its producer.
#[derive(Debug)]
pub struct StreamAccount {
    budget: u64,
    /// Values that were handed over, and what they cost.
    made: u64,
    spent: u64,
    /// Those among them that the program took.
    taken: u64,
    /// Whether the program may still be about to use the last one that it took.
    in_hand: bool,
    /// Values that are not used up, and what they cost.
    kept: VecDeque<Kept>,
    held: u64,
    /// Events since all of them were looked at.
    unseen: usize,
    /// What the producer was told that it may spend.
    granted: u64,
    stalled: bool,
    /// The scheduler was asked to let it go on.
    asked: bool,
    /// The program wants no more of it.
    closed: bool,
    /// The task is over.
    over: bool,
}

impl StreamAccount {
    /// A stream whose values that are not used up may cost so much together, the last one more.
    pub fn new(budget: u64) -> StreamAccount {
        StreamAccount {
            budget,
            made: 0,
            spent: 0,
            taken: 0,
            in_hand: false,
            kept: VecDeque::new(),
            held: 0,
            unseen: 0,
            granted: budget,
            stalled: false,
            asked: false,
            closed: false,
            over: false,
        }
    }

    /// How many values were handed over.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// What they cost.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// What the producer was told that it may spend.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// Whether the program wants no more of it.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether its producer is over.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether there is a value to take.
    pub fn has_value(&self) -> bool {
        !self.closed && self.taken < self.made
    }

    /// Whether its producer waits for its consumers.
    pub fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// What the producer may spend, as far as is known.
    pub fn may_spend(&self) -> u64 {
        self.spent - self.held + self.budget
    }

    /// Whether the producer can make no more, by what it was told.
    pub fn is_out(&self) -> bool {
        self.granted <= self.spent
    }

    /// Whether the producer should be told soon that it may go further.
    pub fn is_hungry(&self) -> bool {
        let left = self.granted.saturating_sub(self.spent);
        !self.over && !self.closed && left * 2 <= self.budget
    }

    /// The producer is told how far it may go: with a run of it that is sent, or by itself. Gives
    /// what it may spend.
    pub fn grant(&mut self) -> u64 {
        (self.granted, self.stalled, self.asked) = (self.may_spend(), false, false);
        self.granted
    }

    /// The next value was handed over.
    pub fn yielded(&mut self, version: VersionId, cost: u64) {
        let number = self.made;
        (self.made, self.spent) = (self.made + 1, self.spent + cost);
        if !self.closed {
            self.kept.push_back(Kept { number, version, cost });
            self.held += cost;
        }
    }

    /// The producer waits, knowing that it may spend so much. `false`: it was told more
    /// meanwhile, and goes on.
    pub fn stalls(&mut self, known: u64) -> bool {
        self.stalled = !self.closed && self.granted <= known;
        self.stalled
    }

    /// The program takes the next value. `false`: there is none to take.
    pub fn take(&mut self) -> bool {
        let takes = self.has_value();
        self.taken += u64::from(takes);
        self.in_hand |= takes;
        takes
    }

    /// The program comes for the next value: it will not use the last one any more, except by the
    /// tasks that it has called.
    pub fn come(&mut self) {
        self.in_hand = false;
    }

    /// The program wants no more. `false`: that was known.
    pub fn close(&mut self) -> bool {
        self.kept.clear();
        self.held = 0;
        !core::mem::replace(&mut self.closed, true)
    }

    /// The task is over.
    pub fn end(&mut self) {
        self.over = true;
    }

    /// Drops all values that are used up, given how many tasks are still to read a version
    /// (`None`: nobody can name it).
    pub fn drop_used_up(&mut self, readers: impl Fn(VersionId) -> Option<u32>) {
        self.unseen = 0;
        let mut stay: Vec<Kept> = Vec::new();
        for _ in 0..self.taken_and_kept() {
            let value = self.kept.pop_front().expect("counted");
            match self.is_used_up(&value, &readers) {
                true => self.held -= value.cost,
                false => stay.push(value),
            }
        }
        stay.into_iter().rev().for_each(|value| self.kept.push_front(value));
    }

    /// How many of the values that are kept were taken: those that may be used up.
    fn taken_and_kept(&self) -> usize {
        self.kept.partition_point(|value| value.number < self.taken)
    }

    /// Mostly they are used up in order, and a look at all of them after each event would cost as
    /// much as there are. Those behind one that is not used up count once the producer can make no
    /// more and some executor is idle, so that nobody waits for a look that does not come; else
    /// after half as many events as there are of them.
    fn drop_few(&mut self, idle: bool, readers: impl Fn(VersionId) -> Option<u32>) {
        while let Some(value) = self.kept.front().filter(|value| self.is_used_up(value, &readers)) {
            self.held -= value.cost;
            self.kept.pop_front();
        }
        self.unseen += 1;
        let taken = self.taken_and_kept();
        if taken > 0 && self.is_out() && (idle || self.unseen * 2 >= taken) {
            self.drop_used_up(readers);
        }
    }

    fn is_used_up(&self, value: &Kept, readers: impl Fn(VersionId) -> Option<u32>) -> bool {
        let left = self.taken - u64::from(self.in_hand);
        match readers(value.version) {
            None => value.number < self.taken,
            Some(readers) => value.number < left && readers == 0,
        }
    }

    /// After an event: whether its consumers have used so much up that the producer is to go on.
    /// One that stalled goes on when half of its budget is free, so that it does not take a
    /// processor from its consumers for each value that they use up; or at once if some executor
    /// is idle ([`crate::Sched::has_idle`]).
    pub fn feed(&mut self, idle: bool, readers: impl Fn(VersionId) -> Option<u32>) -> Feed {
        if self.asked || !self.is_hungry() {
            return Feed::Wait;
        }
        self.drop_few(idle, readers);
        let left = self.may_spend().saturating_sub(self.granted.max(self.spent));
        if left == 0 {
            return Feed::Wait;
        }
        let is_much = left * 2 >= self.budget;
        match self.stalled {
            true if is_much || idle => {
                self.asked = true;
                Feed::Resume
            }
            false if is_much || self.is_out() => Feed::Grant,
            _ => Feed::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use proptest::prelude::*;

    use super::*;

    fn version(number: u64) -> VersionId {
        VersionId::from_bits(number)
    }

    proptest! {
        // Of each value that was made, in order: its readers (`None`: nobody can name it), and
        // what it costs.
        #[test]
        fn values_are_dropped_when_they_are_used_up_and_all_of_them_when_somebody_is_idle(
            values in proptest::collection::vec(
                (proptest::option::of(0..2u32), 1..4u64), 1..12
            ),
            taken in 0..12u64,
            comes in any::<bool>(),
            ahead in 0..2u64,
            idle in any::<bool>(),
        ) {
            let made = values.len() as u64;
            let spent: u64 = values.iter().map(|value| value.1).sum();
            let mut stream = StreamAccount::new(spent + ahead);
            for (number, (_, cost)) in values.iter().enumerate() {
                stream.yielded(version(number as u64), *cost);
            }
            let taken = taken.min(made);
            prop_assert!((0..taken).all(|_| stream.take()));
            if comes {
                stream.come();
            }
            stream.drop_few(idle, |version| values[version.to_bits() as usize].0);

            let is_in_hand = |number: u64| !comes && number + 1 == taken;
            let is_used_up = |number: &u64| match values[*number as usize].0 {
                None => *number < taken,
                Some(readers) => *number < taken && !is_in_hand(*number) && readers == 0,
            };
            let left: Vec<u64> = stream.kept.iter().map(|value| value.number).collect();
            let (gone, stays): (Vec<u64>, Vec<u64>) = (0..made).partition(is_used_up);
            if ahead == 0 && idle {
                prop_assert_eq!(&left, &stays, "the producer can make no more");
            }
            prop_assert!(stays.iter().all(|number| left.contains(number)));
            prop_assert!(left.first().is_none_or(|number| !gone.contains(number)));
            let held: u64 = left.iter().map(|number| values[*number as usize].1).sum();
            prop_assert_eq!(stream.may_spend(), 2 * spent + ahead - held);
            stream.drop_used_up(|version| values[version.to_bits() as usize].0);
            let left: Vec<u64> = stream.kept.iter().map(|value| value.number).collect();
            prop_assert_eq!(left, stays);
        }

        // The first value is not used up, the others are, in any order: the producer that can make
        // no more is told so although nobody is idle, and few of the looks are at all values.
        #[test]
        fn values_behind_one_that_is_not_used_up_count_without_many_looks(
            order in Just((1..200usize).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut stream = StreamAccount::new(200);
            (0..200).for_each(|number| stream.yielded(version(number), 1));
            (0..200).for_each(|_| assert!(stream.take()));
            stream.come();
            let mut used = [0; 200].map(|_| Some(1));
            let (looked, mut told) = (Cell::new(0), false);
            for number in order {
                used[number] = Some(0);
                let readers = |version: VersionId| {
                    looked.set(looked.get() + 1);
                    used[version.to_bits() as usize]
                };
                told |= stream.feed(false, readers) == Feed::Grant;
            }
            prop_assert!(told);
            prop_assert!(looked.get() < 2_000, "{} looks", looked.get());
        }

        // A program that takes each value and comes back, and a producer that does what it is
        // told: it goes on as long as there are values, never with more than the budget before
        // the last one, and stalls only when that is reached; then at most half of it is left when
        // it goes on, unless somebody is idle.
        #[test]
        fn a_producer_goes_on_within_its_budget(
            costs in proptest::collection::vec(1..5u64, 1..60),
            budget in 1..12u64,
            idle in any::<bool>(),
        ) {
            let mut stream = StreamAccount::new(budget);
            let mut known = stream.granted();
            while stream.made() < costs.len() as u64 {
                let waiting = costs[stream.taken as usize..stream.made as usize].iter().sum();
                if stream.spent() < known {
                    prop_assert!(budget > waiting, "{stream:?}");
                    stream.yielded(version(stream.made()), costs[stream.made() as usize]);
                    prop_assert_eq!(stream.feed(idle, |_| Some(0)), Feed::Wait);
                    continue;
                }
                prop_assert!(stream.stalls(known));
                prop_assert!(budget <= waiting, "{stream:?}");
                let mut feed = Feed::Wait;
                while feed == Feed::Wait {
                    prop_assert!(stream.take());
                    stream.come();
                    feed = stream.feed(idle, |_| Some(0));
                }
                prop_assert_eq!(feed, Feed::Resume);
                prop_assert!(idle || (stream.may_spend() - stream.spent()) * 2 >= budget);
                prop_assert_eq!(stream.feed(idle, |_| Some(0)), Feed::Wait, "it was asked");
                known = stream.grant();
            }
        }
    }

    #[test]
    fn what_is_closed_takes_no_more_and_is_closed_once() {
        let mut stream = StreamAccount::new(2);
        stream.yielded(version(0), 1);
        assert!(stream.close());
        assert!(!stream.close() && !stream.take() && !stream.stalls(u64::MAX));
        stream.yielded(version(1), 1);
        assert_eq!((stream.made(), stream.may_spend()), (2, 4));
        assert_eq!(stream.feed(true, |_| None), Feed::Wait);
    }
}
