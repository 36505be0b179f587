//! Cases about `O_DIRECT`: whatever is not aligned is served, and gives the same bytes.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use super::bench::{all, bytes, content, one, pattern, Bench};
use super::Case;
use crate::{Answer, Buffer, Op};

pub(super) const CASES: &[Case] = &[
    Case { name: "reads directly whatever the alignment", run: reads },
    Case { name: "writes directly whatever the alignment", run: writes },
    Case { name: "scatters and gathers directly", run: vectored },
    Case { name: "keeps neighbours of direct writes", run: neighbours },
];

const FILE_BYTES: usize = (3 << 20) + 777;

/// Offset, length, and how far the memory is from a page.
const REQUESTS: [(usize, usize, usize); 10] = [
    (0, 4096, 0),
    (0, 4096, 1),
    (4096, 8192, 8),
    (1, 4096, 0),
    (4096, 4095, 0),
    (8191, 3, 5),
    (1000, 2_500_000, 3),
    (FILE_BYTES - 777, 4096, 0),
    (FILE_BYTES - 10, 100, 2),
    (FILE_BYTES + 5000, 512, 0),
];

/// The file again, past the page cache; `None` where that cannot be.
fn directly(bench: &Bench) -> Option<File> {
    let path = bench.path("f");
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path).ok()
}

/// Memory so far from a page, in a page of its own.
struct Shifted {
    pages: Buffer,
    shift: usize,
}

impl Shifted {
    fn new(len: usize, shift: usize) -> Self {
        Self { pages: Buffer::new(len + shift), shift }
    }

    fn lend(&mut self) -> Buffer {
        let len = self.pages.len() - self.shift;
        // SAFETY: `self` outlives the operations that the cases do with this, each to its end.
        unsafe { Buffer::lent(self.pages.as_mut_ptr().wrapping_add(self.shift), len) }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.pages[self.shift..]
    }
}

fn reads(bench: &mut Bench) {
    let mut engine = bench.engine();
    let wanted = pattern(FILE_BYTES, 11);
    bench.file("f", &wanted);
    let Some(file) = directly(bench) else { return };
    for (offset, len, shift) in REQUESTS {
        let mut memory = Shifted::new(len, shift);
        let op = Op::Read { fd: file.as_raw_fd(), buffer: memory.lend(), offset: offset as u64 };
        let expected = len.min(FILE_BYTES.saturating_sub(offset));
        assert_eq!(bytes(&mut *engine, op), expected as u64, "{len} at {offset}, {shift}");
        let end = FILE_BYTES.min(offset + expected);
        let there = &wanted[end - expected..end];
        assert!(&memory.bytes()[..expected] == there, "{len} at {offset}, {shift}: other bytes");
    }
}

fn writes(bench: &mut Bench) {
    let mut engine = bench.engine();
    let mut wanted = pattern(FILE_BYTES, 12);
    bench.file("f", &wanted);
    let Some(file) = directly(bench) else { return };
    for (offset, len, shift) in REQUESTS {
        let mut memory = Shifted::new(len, shift);
        memory.bytes().copy_from_slice(&pattern(len, offset as u64));
        let op = Op::Write { fd: file.as_raw_fd(), buffer: memory.lend(), offset: offset as u64 };
        assert_eq!(bytes(&mut *engine, op), len as u64, "{len} at {offset}, {shift}");
        wanted.resize(wanted.len().max(offset + len), 0);
        wanted[offset..offset + len].copy_from_slice(memory.bytes());
        assert!(bench.content("f") == wanted, "{len} at {offset}, {shift}: other bytes");
    }
}

fn vectored(bench: &mut Bench) {
    let mut engine = bench.engine();
    bench.file("f", &[]);
    let Some(file) = directly(bench) else { return };
    let fd = file.as_raw_fd();
    let wanted = pattern(20_000, 13);
    for cuts in [[0, 4096, 12_288, 20_000], [0, 1, 5001, 20_000]] {
        let parts = cuts.windows(2).map(|cut| Buffer::from(wanted[cut[0]..cut[1]].to_vec()));
        let write = Op::WriteVectored { fd, buffers: parts.collect(), offset: 4096 };
        assert_eq!(bytes(&mut *engine, write), 20_000);
        assert!(bench.content("f")[4096..] == wanted, "{cuts:?}");
        let parts = cuts.windows(2).map(|cut| Buffer::new(cut[1] - cut[0]));
        let op = Op::ReadVectored { fd, buffers: parts.collect(), offset: 4096 };
        let back = one(&mut *engine, op);
        assert!(matches!(back.result, Ok(Answer::Bytes(20_000))), "{:?}", back.result);
        let joined: Vec<u8> = back.op.into_buffers().iter().flat_map(|b| b.to_vec()).collect();
        assert!(joined == wanted, "{cuts:?}");
    }
}

/// Many writes of odd lengths side by side, at once: none may undo another.
fn neighbours(bench: &mut Bench) {
    const PIECES: usize = 200;
    const PIECE_BYTES: usize = 333;
    let mut engine = bench.engine();
    bench.file("f", &[]);
    let Some(file) = directly(bench) else { return };
    let fd = file.as_raw_fd();
    let piece = |at: usize| pattern(PIECE_BYTES, at as u64);
    let writes = (0..PIECES).map(|at| {
        let (buffer, offset) = (Buffer::from(piece(at)), (at * PIECE_BYTES) as u64);
        Op::Write { fd, buffer, offset }
    });
    for written in all(&mut *engine, writes.collect()) {
        assert!(matches!(written.result, Ok(Answer::Bytes(count)) if count == PIECE_BYTES as u64));
    }
    let wanted: Vec<u8> = (0..PIECES).flat_map(piece).collect();
    assert!(bench.content("f") == wanted, "a write undid its neighbour");
    let whole = Op::Read { fd, buffer: Buffer::new(wanted.len()), offset: 0 };
    assert!(content(one(&mut *engine, whole).op) == wanted, "a direct read sees other bytes");
}
