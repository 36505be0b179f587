//! Cases about bytes: reads, writes, copies, syncs.

use std::os::fd::AsRawFd;

use super::bench::{all, bytes, content, one, pattern, read, result, write, Bench};
use super::Case;
use crate::{Answer, Buffer, Op};

pub(super) const CASES: &[Case] = &[
    Case { name: "reads what it wrote", run: reads_what_it_wrote },
    Case { name: "reads up to the end of the file", run: reads_up_to_the_end },
    Case { name: "fills a hole with zeros", run: fills_holes },
    Case { name: "scatters and gathers", run: scatters_and_gathers },
    Case { name: "does many at once, each in its place", run: many_at_once },
    Case { name: "gives buffers back where they were", run: buffers_come_back },
    Case { name: "lends and borrows memory", run: lent_memory },
    Case { name: "appends where the file says so", run: appends },
    Case { name: "copies", run: copies },
    Case { name: "syncs", run: syncs },
    Case { name: "reads files that are made up on the fly", run: reads_proc },
    Case { name: "moves large transfers whole", run: large_transfers },
];

fn reads_what_it_wrote(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"");
    let mut offset = 0;
    for len in [0, 1, 511, 512, 4095, 4096, 4097, (1 << 20) + 3] {
        let wanted = pattern(len, len as u64);
        assert_eq!(bytes(&mut *engine, write(&file, &wanted, offset)), len as u64);
        let back = one(&mut *engine, read(&file, len, offset));
        assert!(matches!(back.result, Ok(Answer::Bytes(count)) if count == len as u64));
        assert!(content(back.op) == wanted, "{len} bytes at {offset} are not what was written");
        offset += len as u64;
    }
    assert_eq!(bench.content("f").len() as u64, offset);
}

fn reads_up_to_the_end(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", &pattern(5000, 1));
    for (offset, len, expected) in
        [(0, 8192, 5000), (4096, 4096, 904), (4999, 9, 1), (5000, 1, 0), (1 << 40, 4096, 0)]
    {
        let got = bytes(&mut *engine, read(&file, len, offset));
        assert_eq!(got, expected, "{len} bytes at {offset} of 5000");
    }
}

fn fills_holes(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"a");
    assert_eq!(bytes(&mut *engine, write(&file, b"z", 9000)), 1);
    let mut expected = vec![0; 9001];
    (expected[0], expected[9000]) = (b'a', b'z');
    let back = one(&mut *engine, read(&file, 10_000, 0));
    assert!(matches!(back.result, Ok(Answer::Bytes(9001))), "{:?}", back.result);
    assert_eq!(content(back.op)[..9001], expected);
}

fn scatters_and_gathers(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"");
    let fd = file.as_raw_fd();
    let wanted = pattern(10_000, 7);
    let parts = [&wanted[..1], &wanted[1..1], &wanted[1..5000], &wanted[5000..]];
    let buffers = parts.iter().map(|part| Buffer::from(part.to_vec())).collect();
    assert_eq!(bytes(&mut *engine, Op::WriteVectored { fd, buffers, offset: 3 }), 10_000);
    assert_eq!(bench.content("f")[3..], wanted);
    let buffers = [4096, 0, 4096, 4096].map(Buffer::new).into();
    let back = one(&mut *engine, Op::ReadVectored { fd, buffers, offset: 3 });
    assert!(matches!(back.result, Ok(Answer::Bytes(10_000))), "{:?}", back.result);
    let joined: Vec<u8> = back.op.into_buffers().iter().flat_map(|part| part.to_vec()).collect();
    assert_eq!(joined[..10_000], wanted);
    let none = Op::ReadVectored { fd, buffers: Vec::new(), offset: 0 };
    assert_eq!(bytes(&mut *engine, none), 0);
}

fn many_at_once(bench: &mut Bench) {
    const PIECES: u64 = 700;
    const PIECE_BYTES: usize = 1111;
    let mut engine = bench.engine();
    let file = bench.file("f", b"");
    let at = |piece: u64| piece * 389 % PIECES * PIECE_BYTES as u64;
    let writes = (0..PIECES).map(|piece| write(&file, &pattern(PIECE_BYTES, piece), at(piece)));
    for written in all(&mut *engine, writes.collect()) {
        let result = written.result.expect("a write");
        assert_eq!(result.bytes(), PIECE_BYTES as u64);
    }
    let reads = (0..PIECES).map(|piece| read(&file, PIECE_BYTES, at(piece)));
    for back in all(&mut *engine, reads.collect()) {
        let piece = back.token;
        assert!(content(back.op) == pattern(PIECE_BYTES, piece), "piece {piece} is another");
    }
}

fn buffers_come_back(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"abc");
    for fd in [file.as_raw_fd(), super::bench::NOT_OPEN] {
        let buffer = Buffer::new(4096);
        let at = buffer.as_ptr();
        let back = one(&mut *engine, Op::Read { fd, buffer, offset: 0 });
        assert_eq!(back.op.into_buffers()[0].as_ptr(), at, "{:?}", back.result);
        let buffers: Vec<_> = [10, 20].map(Buffer::new).into();
        let places: Vec<_> = buffers.iter().map(|buffer| buffer.as_ptr()).collect();
        let back = one(&mut *engine, Op::WriteVectored { fd, buffers, offset: 0 });
        let came: Vec<_> = back.op.into_buffers().iter().map(|buffer| buffer.as_ptr()).collect();
        assert_eq!(came, places, "{:?}", back.result);
    }
}

fn lent_memory(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"0123456789");
    let mut memory = [b'-'; 8];
    // SAFETY: the memory lives longer than the engine's use of it, which ends with `one`.
    let buffer = unsafe { Buffer::lent(memory.as_mut_ptr().wrapping_add(2), 4) };
    let back = one(&mut *engine, Op::Read { fd: file.as_raw_fd(), buffer, offset: 5 });
    drop(back);
    assert_eq!(&memory, b"--5678--");
}

fn appends(bench: &mut Bench) {
    let mut engine = bench.engine();
    bench.file("f", b"abc");
    let file = std::fs::OpenOptions::new().append(true).open(bench.path("f")).expect("the file");
    assert_eq!(bytes(&mut *engine, write(&file, b"def", 0)), 3);
    assert_eq!(bench.content("f"), b"abcdef");
}

fn copies(bench: &mut Bench) {
    let mut engine = bench.engine();
    let source = pattern(3 << 20, 5);
    let from = bench.file("from", &source);
    let to = bench.file("to", b"0123456789");
    for (from_offset, to_offset, len, expected) in [
        (0, 4, 2 << 20, 2 << 20),
        (100, 0, 3, 3),
        ((3 << 20) - 5, 100, 1000, 5),
        (3 << 20, 0, 10, 0),
        (0, 0, 0, 0),
    ] {
        let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
        let op = Op::Copy { from, from_offset, to, to_offset, len };
        assert_eq!(bytes(&mut *engine, op), expected, "{len} bytes at {from_offset}");
    }
    let mut wanted = b"0123456789".to_vec();
    wanted.resize((2 << 20) + 4, 0);
    wanted[4..].copy_from_slice(&source[..2 << 20]);
    wanted[..3].copy_from_slice(&source[100..103]);
    wanted[100..105].copy_from_slice(&source[(3 << 20) - 5..]);
    assert!(bench.content("to") == wanted, "the copy is another");
}

fn syncs(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"");
    assert_eq!(bytes(&mut *engine, write(&file, b"durable", 0)), 7);
    let fd = file.as_raw_fd();
    for op in [Op::Fsync { fd }, Op::Fdatasync { fd }] {
        let synced = result(&mut *engine, op);
        assert!(matches!(synced, Ok(Answer::Nothing)), "{synced:?}");
    }
}

fn reads_proc(bench: &mut Bench) {
    let mut engine = bench.engine();
    let Ok(wanted) = std::fs::read("/proc/version") else { return };
    let file = std::fs::File::open("/proc/version").expect("what was just read");
    let back = one(&mut *engine, read(&file, 4096, 0));
    let count = back.result.expect("a read").bytes() as usize;
    assert_eq!(content(back.op)[..count], wanted);
}

fn large_transfers(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"");
    let wanted = pattern(24 << 20, 3);
    assert_eq!(bytes(&mut *engine, write(&file, &wanted, 1)), wanted.len() as u64);
    let back = one(&mut *engine, read(&file, wanted.len(), 1));
    assert!(content(back.op) == wanted, "what came back is another");
}
