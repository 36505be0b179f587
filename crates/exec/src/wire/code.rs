//! Numbers, strings and lists as little-endian bytes.

use std::fmt;

use smallvec::{Array, SmallVec};

use super::List;

/// How much room a list gets before its elements have been seen.
const LIST_RESERVED_MAX: usize = 4096;

/// A record that cannot be what its sender meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// How many bytes of the record had been read.
    pub at: usize,
    /// What should have been there.
    pub expected: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a malformed record (byte {}): {}", self.at, self.expected)
    }
}

impl std::error::Error for Malformed {}

/// A record that is longer than a ring takes; it has to be placed in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// How long it is.
    pub bytes: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = super::RECORD_BYTES_MAX;
        write!(f, "a record of {} bytes is longer than the {most} that a ring takes", self.bytes)
    }
}

impl std::error::Error for TooLarge {}

/// Appends fields.
pub(super) struct Writer<'a>(pub(super) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(super) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).expect("no field has 2^32 elements"));
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.bool(value.is_some());
        if let Some(value) = value {
            put(self, value);
        }
    }

    pub(super) fn list<T>(&mut self, list: &[T], mut put: impl FnMut(&mut Self, &T)) {
        self.count(list.len());
        for element in list {
            put(self, element);
        }
    }
}

/// Takes fields off the front of a record.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    whole: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(record: &'a [u8]) -> Self {
        Self { rest: record, whole: record.len() }
    }

    pub(super) fn bad(&self, expected: &'static str) -> Malformed {
        Malformed { at: self.whole - self.rest.len(), expected }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let Some((front, rest)) = self.rest.split_at_checked(count) else {
            return Err(self.bad("the record ends within a field"));
        };
        self.rest = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let Some((front, rest)) = self.rest.split_first_chunk() else {
            return Err(self.bad("the record ends within a number"));
        };
        self.rest = rest;
        Ok(*front)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.bad("a flag is 0 or 1")),
        }
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.u32()?;
        self.take(count as usize)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.bad("a name is UTF-8"))
    }

    pub(super) fn option<T>(
        &mut self,
        get: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        self.bool()?.then(|| get(self)).transpose()
    }

    pub(super) fn list<T>(
        &mut self,
        mut get: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<List<T>, Malformed>
    where
        [T; 4]: Array<Item = T>,
    {
        let count = self.u32()? as usize;
        // Every element takes at least a byte, so a wrong count cannot ask for much memory.
        if count > self.rest.len() {
            return Err(self.bad("a list is longer than its record"));
        }
        let mut list = SmallVec::new();
        list.reserve(count.min(LIST_RESERVED_MAX));
        for _ in 0..count {
            list.push(get(self)?);
        }
        Ok(list)
    }

    pub(super) fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(self.bad("bytes follow the last field"))
    }
}
