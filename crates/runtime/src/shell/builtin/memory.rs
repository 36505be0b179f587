//! The memory of built-in tasks: values that are written to files, and values that are read.

use std::ops::Range;
use std::sync::Arc;

use ops::Buffer;

use crate::pickle;
use crate::store::{Pin, Store, StoreFull, Value};

/// The bytes of a value that go to a file, where they lie.
#[derive(Debug)]
pub(super) struct Data {
    value: Value,
    range: Range<usize>,
}

impl Data {
    /// These bytes of a value.
    pub(super) fn new(value: Value, range: Range<usize>) -> Data {
        assert!(range.start <= range.end && range.end <= value.len(), "a part of the value");
        Data { value, range }
    }

    pub(super) fn len(&self) -> u64 {
        self.range.len() as u64
    }

    /// A part, for a write and nothing else.
    ///
    /// # Safety
    /// The data outlives the buffer.
    pub(super) unsafe fn part(&self, at: u64, len: u64) -> Buffer {
        let all = &self.value.as_bytes()[self.range.clone()];
        let part = &all[at as usize..(at + len) as usize];
        // SAFETY: the value keeps its bytes where they are, and nobody changes values; the rest is
        // the caller's word.
        unsafe { Buffer::lent(part.as_ptr().cast_mut(), part.len()) }
    }
}

/// Where the bytes of a file are put: in the end the block of a `bytes`.
#[derive(Debug)]
pub(super) enum Room {
    /// Little enough for a message.
    Small(Vec<u8>),
    /// In the heap: from [`pickle::HEAD_BYTES`] on.
    Placed(Pin),
}

/// The bytes of a block around the data.
const AROUND_BYTES: u64 = (pickle::HEAD_BYTES + pickle::TAIL.len()) as u64;

fn is_small(len: u64) -> bool {
    len.saturating_add(AROUND_BYTES) <= exec::wire::INLINE_BYTES_MAX as u64
}

impl Room {
    /// For so many bytes.
    pub(super) fn new(store: &Arc<Store>, len: u64) -> Result<Room, StoreFull> {
        if is_small(len) {
            return Ok(Room::Small(Vec::with_capacity(len as usize)));
        }
        Ok(Room::Placed(store.allocate(len.saturating_add(AROUND_BYTES))?))
    }

    /// Memory for a part, to be read into.
    ///
    /// # Safety
    /// The room outlives the buffer, and gives no other for this part meanwhile.
    pub(super) unsafe fn part(&self, at: u64, len: u64) -> Buffer {
        match self {
            Room::Small(_) => Buffer::from(vec![0; len as usize]),
            Room::Placed(pin) => {
                let place = pin.part(pickle::HEAD_BYTES as u64 + at, len);
                // SAFETY: the pin keeps the range, which nobody else has before the value is made;
                // the rest is the caller's word.
                unsafe { Buffer::lent(place.as_ptr(), len as usize) }
            }
        }
    }

    /// So many bytes were read into a part; the parts come in order.
    pub(super) fn arrived(&mut self, part: &Buffer, count: u64) {
        if let Room::Small(bytes) = self {
            bytes.extend_from_slice(&part[..count as usize]);
        }
    }

    /// Room for more, with the first `done` bytes.
    pub(super) fn grown(self, store: &Arc<Store>, done: u64, len: u64) -> Result<Room, StoreFull> {
        let mut room = Room::new(store, len)?;
        let from = match &self {
            Room::Small(bytes) => bytes.as_ptr(),
            Room::Placed(pin) => pin.part(pickle::HEAD_BYTES as u64, done).as_ptr().cast_const(),
        };
        // SAFETY: these bytes were read, and no part of the room is lent any more.
        let bytes = unsafe { std::slice::from_raw_parts(from, done as usize) };
        match &mut room {
            Room::Small(all) => all.extend_from_slice(bytes),
            Room::Placed(pin) => {
                let place = pin.part(pickle::HEAD_BYTES as u64, done);
                // SAFETY: as many bytes of a new range, which nobody else has.
                unsafe { place.as_ptr().copy_from_nonoverlapping(from, bytes.len()) };
            }
        }
        Ok(room)
    }

    /// The value of the first `len` bytes.
    pub(super) fn into_value(self, store: &Arc<Store>, len: u64) -> Result<Value, StoreFull> {
        let head = pickle::bytes_head(len);
        let pin = match self {
            Room::Small(bytes) => {
                return Ok(Value::inline([&head[..], &bytes, pickle::TAIL].concat()));
            }
            Room::Placed(pin) => pin,
        };
        for (at, bytes) in [(0, &head[..]), (pickle::HEAD_BYTES as u64 + len, pickle::TAIL)] {
            let place = pin.part(at, bytes.len() as u64);
            // SAFETY: within the range, which nobody else has, and no part of which is lent.
            unsafe { place.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        let value = Value::Placed(pin.shortened(len + AROUND_BYTES).expect("it was allocated"));
        let room_bytes = Value::Placed(pin).len();
        if is_small(len) {
            return Ok(Value::inline(value.as_bytes()));
        }
        if value.len() < room_bytes / 2 {
            // The file was shorter by far: the value does not keep all of the room.
            return Ok(Value::Placed(store.copy(value.as_bytes())?));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Arc<Store> {
        let pool = exec::process::Pool::new(64 << 20).unwrap();
        Store::new(&pool, 8 << 20, 0)
    }

    fn read(store: &Arc<Store>, room: u64, data: &[u8]) -> Value {
        let mut room = Room::new(store, room).unwrap();
        for (number, chunk) in data.chunks(5000).enumerate() {
            // SAFETY: the buffer is dropped before the room, and the parts are different ones.
            let mut part = unsafe { room.part(number as u64 * 5000, chunk.len() as u64) };
            part.copy_from_slice(chunk);
            room.arrived(&part, chunk.len() as u64);
        }
        room.into_value(store, data.len() as u64).unwrap()
    }

    #[test]
    fn what_was_read_is_the_block_of_its_bytes_whatever_the_size() {
        let store = store();
        for (room, len) in [(0, 0), (100, 100), (100, 7), (1 << 20, 1 << 20), (1 << 20, 600_000)] {
            let data: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let value = read(&store, room, &data);
            let range = pickle::raw_bytes(value.as_bytes()).expect("bytes");
            assert_eq!(&value.as_bytes()[range], &data[..]);
        }
    }

    #[test]
    fn a_room_that_grows_keeps_what_was_read() {
        let store = store();
        let data: Vec<u8> = (0..100_000).map(|at| (at % 251) as u8).collect();
        let (mut room, mut done) = (Room::new(&store, 1000).unwrap(), 0);
        for len in [1000, 3000, 40_000, 100_000] {
            room = room.grown(&store, done, len).unwrap();
            {
                // SAFETY: the buffer is dropped before the room.
                let mut part = unsafe { room.part(done, len - done) };
                part.copy_from_slice(&data[done as usize..len as usize]);
                room.arrived(&part, len - done);
            }
            done = len;
        }
        let value = room.into_value(&store, done).unwrap();
        let range = pickle::raw_bytes(value.as_bytes()).expect("bytes");
        assert!(value.as_bytes()[range] == data);
    }

    #[test]
    fn a_short_read_keeps_little_memory() {
        let store = store();
        let few = read(&store, 4 << 20, &[7; 100]);
        assert!(matches!(few, Value::Inline(_)), "so little goes into a message");
        let some = read(&store, 4 << 20, &[7; 100_000]);
        assert!(store.bytes().0 < 1 << 20, "{} bytes are in use", store.bytes().0);
        drop((few, some));
        assert_eq!(store.bytes().0, 0);
    }

    #[test]
    fn a_room_that_the_store_does_not_have_is_refused() {
        let store = store();
        for len in [9 << 20, u64::MAX - 1, u64::MAX] {
            assert!(Room::new(&store, len).is_err());
        }
    }
}
