//! Every value of a stream is handed over once and in order, and taken in that order; none comes
//! while those that are not used up cost as much as they may; a producer that ends well has handed
//! over all, unless nobody wanted more.
//!
//! A value is used up once the program has come back after it and no task has it to read, or once
//! it is gone. The account here counts readers by itself ([`Memory`]).

use std::collections::BTreeMap;

use graph::VersionId;

use super::memory::Memory;
use super::Fault;
use crate::program::StreamPlan;

#[derive(Debug)]
struct Value {
    version: VersionId,
    used_up: bool,
}

#[derive(Debug)]
struct Stream {
    plan: StreamPlan,
    values: Vec<Value>,
    taken: usize,
    /// Of those that were taken, those that the program has come back after.
    left: usize,
    closed: bool,
    over: bool,
}

impl Stream {
    /// Whether its producer has to wait for its consumers.
    fn is_full(&self) -> bool {
        let waiting = self.values.iter().zip(0..).filter(|(value, _)| !value.used_up);
        waiting.map(|(_, number)| self.plan.cost(number)).sum::<u64>() >= self.plan.buffer
    }
}

/// The account, by task.
#[derive(Debug, Default)]
pub struct Streams {
    streams: BTreeMap<usize, Stream>,
}

fn fault<T>(task: usize, message: String) -> Result<T, Fault> {
    Err(Fault::of_task("streams", task, message))
}

impl Streams {
    fn at(&mut self, task: usize) -> &mut Stream {
        self.streams.get_mut(&task).expect("it was opened")
    }

    /// A producer was taken.
    pub fn opened(&mut self, task: usize, plan: StreamPlan) {
        let (values, taken, left) = (Vec::new(), 0, 0);
        let stream = Stream { plan, values, taken, left, closed: false, over: false };
        self.streams.insert(task, stream);
    }

    /// A value was handed over as a version (`there`: it was resolved with that), and the
    /// scheduler says which is to come next.
    pub fn yields(
        &mut self,
        task: usize,
        number: u32,
        (version, there): (VersionId, bool),
        next: Option<VersionId>,
    ) -> Result<VersionId, Fault> {
        let stream = self.at(task);
        if number as usize != stream.values.len() || stream.over {
            let (made, over) = (stream.values.len(), stream.over);
            return fault(task, format!("value {number} comes after {made}, over: {over}"));
        }
        if !stream.closed && stream.is_full() {
            return fault(task, format!("value {number} comes too early: {:?}", stream.plan));
        }
        stream.values.push(Value { version, used_up: false });
        match next {
            _ if !there => fault(task, format!("value {number} did not become {version:?}")),
            Some(next) if stream.values.iter().all(|value| value.version != next) => Ok(next),
            _ => fault(task, format!("{next:?} comes after value {number}")),
        }
    }

    /// The program comes for the next value: it is done with the last one.
    pub fn comes(&mut self, task: usize) {
        let stream = self.at(task);
        stream.left = stream.taken;
    }

    /// The program takes a value.
    pub fn takes(&mut self, task: usize, version: VersionId) -> Result<(), Fault> {
        let stream = self.at(task);
        let next = stream.values.get(stream.taken).map(|value| value.version);
        stream.taken += 1;
        match next == Some(version) {
            true => Ok(()),
            false => fault(task, format!("{version:?} was taken, and {next:?} was next")),
        }
    }

    /// The program wants no more.
    pub fn closed(&mut self, task: usize) {
        self.at(task).closed = true;
    }

    /// After an event: which values are used up now.
    pub fn look(&mut self, memory: &Memory) {
        for stream in self.streams.values_mut().filter(|stream| !stream.over) {
            for (number, value) in stream.values.iter_mut().enumerate() {
                value.used_up |= match memory.readers(value.version) {
                    None => number < stream.taken,
                    Some(readers) => number < stream.left && readers == 0,
                };
            }
        }
    }

    /// Whether a producer has to wait for its consumers.
    pub fn is_full(&self, task: usize) -> bool {
        let stream = self.streams.get(&task);
        stream.is_some_and(Stream::is_full)
    }

    /// The producer is over.
    pub fn over(&mut self, task: usize, well: bool) -> Result<(), Fault> {
        let stream = self.at(task);
        stream.over = true;
        let (made, all) = (stream.values.len(), stream.plan.values as usize);
        match made > all || (well && !stream.closed && made < all) {
            true => fault(task, format!("ended after {made} values of {all}")),
            false => Ok(()),
        }
    }

    /// The versions of the values that were handed over.
    pub fn versions(&self, task: usize) -> impl Iterator<Item = VersionId> + '_ {
        let values = self.streams.get(&task).map(|stream| &stream.values);
        values.into_iter().flatten().map(|value| value.version)
    }
}
