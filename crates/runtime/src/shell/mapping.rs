//! [`Stream::map`]: a function is called for each value of a stream as soon as that is there,
//! without the program.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use sched::{TaskId, VersionId};

use super::state::{Standing, State, Version};
use super::streams::Stream;
use super::submit::{Call, Input, Overrides, SpawnError};
use super::table::Table;
use super::{SessionError, Shared};
use crate::futures::Handle;
use crate::store::Value;

/// The call that is made for each value.
#[derive(Clone, Debug)]
pub struct RepeatedCall {
    /// Which function: one that gives one value.
    pub function: u64,
    /// Its arguments, with one place for the value.
    pub arguments: Value,
}

/// For how many values there may be calls whose results the program has not given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// So many.
    Calls(u32),
    /// 16, and up to 64 as far as they are 16 MiB together if each result is as large as the
    /// largest one that is known.
    Automatic,
}

const AUTOMATIC_BYTES: u64 = 16 << 20;
const AUTOMATIC_CALLS: RangeInclusive<u64> = 16..=64;

impl Ahead {
    /// How many, the largest of the results that are known having so many bytes.
    fn calls(self, largest: Option<u64>) -> u32 {
        match self {
            Ahead::Calls(calls) => calls,
            Ahead::Automatic => {
                let (least, most) = AUTOMATIC_CALLS.into_inner();
                let calls = largest.map_or(least, |bytes| AUTOMATIC_BYTES / bytes.max(1));
                calls.clamp(least, most) as u32
            }
        }
    }
}

/// What the program is told of the calls that were made for a stream.
#[derive(Debug)]
pub struct Mapped {
    /// The futures of the results that it has not been told of, in the order of the values.
    pub results: Vec<Handle>,
    /// The future of the value after those that have a call; `None`: the stream was ended.
    pub next: Option<Handle>,
    /// There will be no further call, and these are all results.
    pub is_over: bool,
}

/// What is kept of the calls for a stream.
#[derive(Debug)]
pub(super) struct Mapping {
    repeated: RepeatedCall,
    /// The version of the next value without a call. Named once here.
    next: VersionId,
    ahead: Ahead,
    /// How many calls there are whose results the program has not given back.
    open: u32,
    /// The results, from the first one on that was not there at the last look.
    unseen: VecDeque<VersionId>,
    /// Bytes of the largest result that was seen.
    largest: Option<u64>,
    /// Results that the program has not been told of, each named once.
    results: VecDeque<VersionId>,
    refused: Option<SpawnError>,
}

impl Mapping {
    fn new(repeated: RepeatedCall, ahead: Ahead, next: VersionId) -> Mapping {
        let (results, unseen) = (VecDeque::new(), VecDeque::new());
        let (open, largest, refused) = (0, None, None);
        Mapping { repeated, next, ahead, open, unseen, largest, results, refused }
    }

    /// Learns from the results that have come how large they are.
    fn look_at_results(&mut self, versions: &Table<VersionId, Version>) {
        while let Some(result) = self.unseen.front() {
            if let Some(result) = versions.get(*result) {
                match result.standing {
                    Standing::Pending => return,
                    Standing::There => {
                        let bytes = result.value.as_ref().map_or(0, Value::len);
                        self.largest = self.largest.max(Some(bytes as u64));
                    }
                    Standing::Failed(_) => {}
                }
            }
            self.unseen.pop_front();
        }
    }

    /// What it names.
    pub(super) fn into_names(self) -> impl Iterator<Item = VersionId> {
        self.results.into_iter().chain([self.next])
    }
}

impl State {
    /// Begins to call a function for each value of a stream. `false`: that was ended, or the
    /// function does not give one value.
    fn map_stream(
        &mut self,
        shared: &Arc<Shared>,
        id: TaskId,
        repeated: RepeatedCall,
        ahead: Ahead,
        next: VersionId,
    ) -> bool {
        let function = self.functions.get(&repeated.function).map(|function| &function.spec);
        if !function.is_some_and(|spec| spec.returns == 1 && spec.buffer.is_none()) {
            return false;
        }
        let Some(stream) = self.streams.get_mut(&id.to_bits()) else { return false };
        if stream.mapping.is_some() || !self.sched.hold(next) {
            return false;
        }
        stream.mapping = Some(Mapping::new(repeated, ahead, next));
        self.call_for_values(shared, id);
        self.come_to(id);
        true
    }

    /// Calls the function of a stream that has one for the values that are there, as far as the
    /// program wants.
    pub(super) fn call_for_values(&mut self, shared: &Arc<Shared>, id: TaskId) {
        while let Some((value, RepeatedCall { function, arguments })) = self.next_call(id) {
            let inputs = vec![Input::Handle(self.handle_of(shared, value))];
            let (files, builtin, overrides) = (Vec::new(), None, Overrides::default());
            let call = Call { function, arguments, inputs, files, builtin, overrides };
            let taken = self.submit(shared, call);
            let Some(stream) = self.streams.get_mut(&id.to_bits()) else { return };
            stream.account.come();
            let Some(mapping) = &mut stream.mapping else { return };
            match taken {
                Ok(submitted) => {
                    mapping.results.extend(submitted.outputs.iter());
                    mapping.unseen.extend(submitted.outputs);
                }
                Err(error) => mapping.refused = Some(error),
            }
        }
    }

    /// The next value that is to have a call, which takes its name over, and what to call.
    fn next_call(&mut self, id: TaskId) -> Option<(VersionId, RepeatedCall)> {
        let State { streams, versions, .. } = self;
        let stream = streams.get_mut(&id.to_bits())?;
        let mapping = stream.mapping.as_mut()?;
        mapping.look_at_results(versions);
        let is_far_ahead = mapping.open >= mapping.ahead.calls(mapping.largest);
        if is_far_ahead || mapping.refused.is_some() || !stream.account.take() {
            return None;
        }
        mapping.open += 1;
        let after = stream.ahead.pop_front().expect("there is always a version to come");
        Some((std::mem::replace(&mut mapping.next, after), mapping.repeated.clone()))
    }

    /// Tells the program of the calls that were made, now that it has given back so many results.
    fn mapped(
        &mut self,
        shared: &Arc<Shared>,
        id: TaskId,
        given_back: u32,
    ) -> Result<Mapped, SpawnError> {
        let ended = Mapped { results: Vec::new(), next: None, is_over: true };
        if let Some(mapping) = self.mapping_of(id) {
            mapping.open = mapping.open.saturating_sub(given_back);
        }
        self.call_for_values(shared, id);
        self.feed(id);
        let Some(mapping) = self.mapping_of(id) else { return Ok(ended) };
        let (results, next) = (std::mem::take(&mut mapping.results), mapping.next);
        if let Some(refused) = mapping.refused.clone().filter(|_| results.is_empty()) {
            return Err(refused);
        }
        let is_over = results.is_empty() && !self.may_come(id, next);
        let results = results.into_iter().map(|result| self.handle_of(shared, result)).collect();
        let is_there = self.sched.hold(next);
        let next = is_there.then(|| self.handle_of(shared, next));
        Ok(Mapped { results, next, is_over })
    }

    /// Whether there is, or may be, a value of a stream without a call; `next` is its version.
    fn may_come(&self, id: TaskId, next: VersionId) -> bool {
        let version = self.versions.get(next);
        let is_pending = version.is_some_and(|it| matches!(it.standing, Standing::Pending));
        is_pending || self.streams.get(&id.to_bits()).is_some_and(|it| it.account.has_value())
    }

    fn mapping_of(&mut self, id: TaskId) -> Option<&mut Mapping> {
        self.streams.get_mut(&id.to_bits())?.mapping.as_mut()
    }
}

impl Stream {
    /// Has a function called for each value from now on, `next` being the future of the next one,
    /// as soon as the value is there: for as many as `ahead` says whose results the program has
    /// not given back ([`Stream::mapped`]). The values themselves go to nobody else. `false`: the
    /// stream was ended or has such a function, or this one does not give one value.
    ///
    /// # Errors
    /// The session ended, or the future is one of another session.
    pub fn map(
        &self,
        repeated: RepeatedCall,
        ahead: Ahead,
        next: &Handle,
    ) -> Result<bool, SessionError> {
        let (shared, task) = (&self.shared, self.task);
        if !next.belongs_to(shared) {
            return Err(SessionError("this future belongs to another session".into()));
        }
        shared.with(|state| state.map_stream(shared, task, repeated, ahead, next.version()))
    }

    /// What there is to know of the calls, now that the program has given back so many more results
    /// (it has used them and needs no room for them).
    ///
    /// # Errors
    /// A call was refused, and there are no results before it; the session ended.
    pub fn mapped(&self, given_back: u32) -> Result<Mapped, SpawnError> {
        let (shared, task) = (&self.shared, self.task);
        shared.with(|state| state.mapped(shared, task, given_back)).map_err(SpawnError::Session)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_further_ahead_while_results_are_known_to_be_small() {
        let calls = |largest| Ahead::Automatic.calls(largest);
        assert_eq!([None, Some(0), Some(256 << 10)].map(calls), [16, 64, 64]);
        assert_eq!([Some(512 << 10), Some(1 << 20), Some(u64::MAX)].map(calls), [32, 16, 16]);
        assert_eq!(Ahead::Calls(3).calls(Some(0)), 3);
    }
}
