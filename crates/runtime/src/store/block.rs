//! How a value looks as bytes: header, pickle, buffers.
//!
//! | what | bytes |
//! |---|---|
//! | magic, number of buffers | `u32`, `u32` |
//! | length of the pickle | `u64` |
//! | place and length of each buffer, from the block's start | `u64`, `u64` each |
//! | the pickle | as many as said |
//! | the buffers | each at a multiple of 64 |
//!
//! All numbers are little-endian. A block begins at a multiple of 64 in the heap; inside a
//! message it does not, and its buffers are aligned only relative to its start.

use std::ops::Range;

use crate::copying;

/// The first four bytes of a block.
pub const MAGIC: u32 = 0x4b4c_4241; // "ABLK"
/// Buffers begin at multiples of this.
pub const BUFFER_ALIGN_BYTES: usize = 64;
const HEAD_BYTES: usize = 16;
const ENTRY_BYTES: usize = 16;

/// Where the parts of a block to be written go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pickle: Range<usize>,
    buffers: Vec<Range<usize>>,
    total: usize,
}

impl Layout {
    /// For a pickle and buffers of these lengths.
    pub fn new(pickle_len: usize, buffer_lens: impl ExactSizeIterator<Item = usize>) -> Layout {
        let start = HEAD_BYTES + ENTRY_BYTES * buffer_lens.len();
        let mut total = start + pickle_len;
        let buffers = buffer_lens
            .map(|len| {
                let at = total.next_multiple_of(BUFFER_ALIGN_BYTES);
                total = at + len;
                at..total
            })
            .collect();
        Layout { pickle: start..start + pickle_len, buffers, total }
    }

    /// Bytes of the whole block.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Where the pickle goes.
    pub fn pickle(&self) -> Range<usize> {
        self.pickle.clone()
    }

    /// Where each buffer goes.
    pub fn buffers(&self) -> &[Range<usize>] {
        &self.buffers
    }

    /// Writes the header; the caller writes the pickle and the buffers.
    ///
    /// # Panics
    /// If `block` is not [`Layout::total`] bytes long.
    pub fn write_header(&self, block: &mut [u8]) {
        assert_eq!(block.len(), self.total, "the block has the length of its layout");
        block[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        block[4..8].copy_from_slice(&(self.buffers.len() as u32).to_le_bytes());
        block[8..16].copy_from_slice(&(self.pickle.len() as u64).to_le_bytes());
        for (place, range) in block[HEAD_BYTES..].chunks_exact_mut(ENTRY_BYTES).zip(&self.buffers) {
            place[..8].copy_from_slice(&(range.start as u64).to_le_bytes());
            place[8..].copy_from_slice(&(range.len() as u64).to_le_bytes());
        }
    }

    /// Writes the whole block.
    ///
    /// # Panics
    /// If `block` or a part has not the length that was laid out.
    pub fn write(&self, block: &mut [u8], pickle: &[u8], buffers: &[&[u8]]) {
        self.write_header(block);
        assert_eq!(self.buffers.len(), buffers.len(), "every buffer was laid out");
        block[self.pickle.clone()].copy_from_slice(pickle);
        let mut end = self.pickle.end;
        for (range, buffer) in self.buffers.iter().zip(buffers) {
            block[end..range.start].fill(0);
            copying::copy(buffer, &mut block[range.clone()]);
            end = range.end;
        }
    }
}

/// A whole block in memory of its own.
pub fn encode(pickle: &[u8], buffers: &[&[u8]]) -> Vec<u8> {
    let layout = Layout::new(pickle.len(), buffers.iter().map(|b| b.len()));
    let mut bytes = vec![0; layout.total()];
    layout.write(&mut bytes, pickle, buffers);
    bytes
}

/// The parts of a block that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The pickle.
    pub pickle: &'a [u8],
    /// Where the buffers are in the block.
    pub buffers: Vec<Range<usize>>,
}

/// Finds the parts of a block; `None`: these bytes are no block.
pub fn parse(bytes: &[u8]) -> Option<Block<'_>> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| {
        let long = u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?);
        usize::try_from(long).ok()
    };
    if word(0)? != MAGIC {
        return None;
    }
    let count = word(4)? as usize;
    let mut buffers = Vec::with_capacity(count.min(bytes.len() / ENTRY_BYTES));
    for number in 0..count {
        let entry = HEAD_BYTES + ENTRY_BYTES * number;
        let (start, len) = (long(entry)?, long(entry + 8)?);
        let end = start.checked_add(len)?;
        bytes.get(start..end)?;
        buffers.push(start..end);
    }
    let start = HEAD_BYTES + ENTRY_BYTES * count;
    let pickle = bytes.get(start..start.checked_add(long(8)?)?)?;
    Some(Block { pickle, buffers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_written_is_read(
            pickle in vec(any::<u8>(), 0..300),
            buffers in vec(vec(any::<u8>(), 0..300), 0..5),
        ) {
            let slices: Vec<&[u8]> = buffers.iter().map(Vec::as_slice).collect();
            let bytes = encode(&pickle, &slices);
            let read = parse(&bytes).unwrap();
            prop_assert_eq!(read.pickle, &pickle[..]);
            prop_assert_eq!(read.buffers.len(), buffers.len());
            for (range, buffer) in read.buffers.into_iter().zip(&buffers) {
                prop_assert_eq!(range.start % BUFFER_ALIGN_BYTES, 0);
                prop_assert_eq!(&bytes[range], &buffer[..]);
            }
        }

        #[test]
        fn anything_may_come(mut bytes in vec(any::<u8>(), 0..200), good: bool) {
            if good && bytes.len() >= 4 {
                bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
            }
            parse(&bytes);
        }
    }

    #[test]
    fn a_block_that_was_cut_is_none() {
        let bytes = encode(b"pickle", &[b"buffer"]);
        for end in 0..bytes.len() {
            assert_eq!(parse(&bytes[..end]), None, "{end}");
        }
    }
}
