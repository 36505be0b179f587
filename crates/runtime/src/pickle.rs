//! The few pickles that are known here: what built-in tasks read from files and write to them.
//!
//! A value is written to a file straight from its block if its bytes lie there in one piece, in the
//! order in which Python would give them: `bytes`, `bytearray`, C-contiguous NumPy arrays, a single
//! `PickleBuffer`. Everything else only Python can look into. What is read from a file becomes the
//! pickle of `bytes` around the data that the engine put there: nobody copies them before Python
//! makes its own object.

use std::ops::Range;

use crate::block;

const PROTO: u8 = 0x80;
const PROTOCOL: u8 = 5;
const FRAME: u8 = 0x95;
const FRAME_BYTES: usize = 8;
const SHORT_BINBYTES: u8 = b'C';
const BINBYTES: u8 = b'B';
const BINBYTES8: u8 = 0x8e;
const BYTEARRAY8: u8 = 0x96;
const NEXT_BUFFER: u8 = 0x97;
const READONLY_BUFFER: u8 = 0x98;
const MEMOIZE: u8 = 0x94;
const LONG1: u8 = 0x8a;
const STOP: u8 = b'.';

/// What Python's `_frombuffer` is called in a pickle, for each place that it had.
const FROM_BUFFER: [&[u8]; 2] = [
    b"\x8c\x12numpy.core.numeric\x94\x8c\x0b_frombuffer\x94\x93\x94(\x97",
    b"\x8c\x13numpy._core.numeric\x94\x8c\x0b_frombuffer\x94\x93\x94(\x97",
];
/// Its last argument, the order `"C"`, and the end of the pickle.
const C_ORDER: &[u8] = b"\x8c\x01C\x94t\x94R\x94.";

/// Pushes something and drops it again, in an odd and an even number of bytes: it moves the data of
/// a file to the place in the block where buffers are aligned.
const PADDING: &[u8] = b"K\x000N0N0N0N0N0N0N0N0N0N0N0N0N0N0N0N0N0";

/// A block that is the pickle of `bytes` has so many bytes before the data.
pub(crate) const HEAD_BYTES: usize = block::BUFFER_ALIGN_BYTES;
/// And so many after them.
pub(crate) const TAIL: &[u8] = &[STOP];

/// What comes before the data in the block of a `bytes` of this length.
pub(crate) fn bytes_head(len: u64) -> [u8; HEAD_BYTES] {
    let mut pickle = vec![PROTO, PROTOCOL];
    pickle.extend_from_slice(PADDING);
    pickle.push(BINBYTES8);
    pickle.extend_from_slice(&len.to_le_bytes());
    let mut head = [0; HEAD_BYTES];
    let header = HEAD_BYTES - pickle.len();
    head[..4].copy_from_slice(&block::MAGIC.to_le_bytes());
    let pickle_len = pickle.len() as u64 + len + TAIL.len() as u64;
    head[8..header].copy_from_slice(&pickle_len.to_le_bytes());
    head[header..].copy_from_slice(&pickle);
    head
}

/// The block of a whole number.
pub(crate) fn number(number: u64) -> Vec<u8> {
    // Eight bytes with a sign.
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let mut pickle = vec![PROTO, PROTOCOL, LONG1, 8];
    pickle.extend_from_slice(&number.to_le_bytes());
    pickle.push(STOP);
    block::encode(&pickle, &[])
}

/// Where in a block the bytes of its value lie, if that can be told.
pub(crate) fn raw_bytes(bytes: &[u8]) -> Option<Range<usize>> {
    let block = block::parse(bytes)?;
    match &*block.buffers {
        [] => {
            let start = block.pickle.as_ptr() as usize - bytes.as_ptr() as usize;
            let Range { start: from, end } = in_band(block.pickle)?;
            Some(start + from..start + end)
        }
        [buffer] => is_raw(block.pickle).then(|| buffer.clone()),
        _ => None,
    }
}

/// Reads a pickle from the front.
struct Reader<'a> {
    pickle: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn skip(&mut self, part: &[u8]) -> bool {
        let found = self.pickle[self.at..].starts_with(part);
        self.at += if found { part.len() } else { 0 };
        found
    }

    /// Frames are optional, and may begin between any two codes.
    fn skip_frame(&mut self) {
        if self.skip(&[FRAME]) {
            self.at = (self.at + FRAME_BYTES).min(self.pickle.len());
        }
    }

    fn is_at_end(&self) -> bool {
        self.at == self.pickle.len()
    }

    /// A length of so many bytes, and as many bytes of data.
    fn data(&mut self, bytes: usize) -> Option<Range<usize>> {
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(self.pickle.get(self.at..self.at + bytes)?);
        let start = self.at + bytes;
        let end = start.checked_add(usize::try_from(u64::from_le_bytes(wide)).ok()?)?;
        self.at = end;
        (end <= self.pickle.len()).then_some(start..end)
    }
}

fn begun(pickle: &[u8]) -> Option<Reader<'_>> {
    let mut reader = Reader { pickle, at: 0 };
    if !reader.skip(&[PROTO, PROTOCOL]) {
        return None;
    }
    reader.skip_frame();
    Some(reader)
}

/// The data of a pickle that is one `bytes` or `bytearray`.
fn in_band(pickle: &[u8]) -> Option<Range<usize>> {
    let mut reader = begun(pickle)?;
    reader.skip(PADDING);
    let code = *pickle.get(reader.at)?;
    reader.at += 1;
    let data = match code {
        SHORT_BINBYTES => reader.data(1),
        BINBYTES => reader.data(4),
        BINBYTES8 | BYTEARRAY8 => reader.data(8),
        _ => None,
    }?;
    reader.skip_frame();
    reader.skip(&[MEMOIZE]);
    (reader.skip(&[STOP]) && reader.is_at_end()).then_some(data)
}

/// Whether a pickle with one buffer is that buffer alone, or an array in C order around it.
fn is_raw(pickle: &[u8]) -> bool {
    let Some(mut reader) = begun(pickle) else { return false };
    if FROM_BUFFER.iter().any(|start| reader.skip(start)) {
        return pickle[reader.at..].ends_with(C_ORDER);
    }
    let buffer = reader.skip(&[NEXT_BUFFER]);
    reader.skip(&[READONLY_BUFFER]);
    buffer && reader.skip(&[STOP]) && reader.is_at_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// As Python 3.13 and NumPy 2.4 pickle `numpy.zeros((2, 3), order=...)` with buffers.
    fn array(order: u8) -> Vec<u8> {
        let mut pickle = b"\x80\x05\x95m\0\0\0\0\0\0\0".to_vec();
        pickle.extend_from_slice(FROM_BUFFER[1]);
        pickle.extend_from_slice(b"\x8c\x05numpy\x94\x8c\x05dtype\x94\x93\x94\x8c\x02f8\x94\x89");
        pickle.extend_from_slice(b"\x88\x87\x94R\x94(K\x03\x8c\x01<\x94NNNJ\xff\xff\xff\xffJ\xff");
        pickle.extend_from_slice(b"\xff\xff\xffK\x00t\x94bK\x02K\x03\x86\x94\x8c\x01");
        pickle.push(order);
        pickle.extend_from_slice(b"\x94t\x94R\x94.");
        pickle
    }

    fn raw(block: &[u8]) -> Option<&[u8]> {
        raw_bytes(block).map(|range| &block[range])
    }

    #[test]
    fn bytes_and_bytearrays_are_found_in_their_pickles() {
        for pickle in [
            &b"\x80\x05\x95\x07\0\0\0\0\0\0\0C\x03abc\x94."[..],
            b"\x80\x05B\x03\0\0\0abc\x94.",
            b"\x80\x05B\x03\0\0\0abc\x95\x02\0\0\0\0\0\0\0\x94.",
            b"\x80\x05\x95\x0e\0\0\0\0\0\0\0\x96\x03\0\0\0\0\0\0\0abc\x94.",
            b"\x80\x05\x8e\x03\0\0\0\0\0\0\0abc.",
        ] {
            assert_eq!(raw(&block::encode(pickle, &[])), Some(&b"abc"[..]), "{pickle:?}");
        }
    }

    #[test]
    fn buffers_are_found_alone_and_under_arrays_in_c_order() {
        let raw_of = |pickle: &[u8]| raw(&block::encode(pickle, &[b"buffer"])).map(<[u8]>::to_vec);
        let found = Some(b"buffer".to_vec());
        assert_eq!(raw_of(&array(b'C')), found);
        assert_eq!(raw_of(&array(b'F')), None, "Python would give them in another order");
        assert_eq!(raw_of(b"\x80\x05\x97."), found);
        assert_eq!(raw_of(b"\x80\x05\x97\x98."), found);
        assert_eq!(raw_of(b"\x80\x05]\x97a."), None, "a list of a buffer");
        assert_eq!(raw(&block::encode(&array(b'C'), &[b"one", b"two"])), None);
    }

    #[test]
    fn other_values_are_not() {
        for pickle in [
            &b"\x80\x05N."[..],
            b"\x80\x05\x8c\x03abc\x94.",
            b"\x80\x05]C\x03abca.",
            b"\x80\x05C\x03abc\x94C\x01x\x86.",
            b"\x80\x05C\xffabc.",
            b"",
        ] {
            assert_eq!(raw(&block::encode(pickle, &[])), None, "{pickle:?}");
        }
        assert_eq!(raw(b"no block"), None);
    }

    proptest! {
        #[test]
        fn what_was_read_from_a_file_can_be_written_to_one(data in vec(any::<u8>(), 0..300)) {
            let bytes = [&bytes_head(data.len() as u64)[..], &data, TAIL].concat();
            prop_assert_eq!(raw_bytes(&bytes), Some(HEAD_BYTES..HEAD_BYTES + data.len()));
            let block = block::parse(&bytes).unwrap();
            prop_assert_eq!(block.pickle.len(), bytes.len() - block::encode(b"", &[]).len());
        }

        #[test]
        fn anything_may_come(pickle in vec(any::<u8>(), 0..40), buffers in 0usize..3) {
            let buffers = vec![&b"buffer"[..]; buffers];
            if let Some(range) = raw_bytes(&block::encode(&pickle, &buffers)) {
                prop_assert!(range.start <= range.end);
            }
        }
    }
}
