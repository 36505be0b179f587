//! Cases about what goes wrong: the errno of the plain call, and the buffers back.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;

use super::bench::{errno, pipe, read, write, Bench, NOT_OPEN};
use super::Case;
use crate::{Buffer, Errno, Op};

pub(super) const CASES: &[Case] = &[
    Case { name: "says EBADF of what is not open", run: not_open },
    Case { name: "says EBADF of what is open for something else", run: open_otherwise },
    Case { name: "says EISDIR of a folder that is read", run: folders },
    Case { name: "says ESPIPE of a pipe and leaves it alone", run: pipes },
    Case { name: "says EINVAL of numbers that make no sense", run: absurd_numbers },
    Case { name: "says ENOSPC of a full device", run: full_device },
    Case { name: "says why a path cannot be", run: paths },
    Case { name: "says EINVAL of a copy onto itself", run: copy_onto_itself },
];

fn not_open(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"abc");
    let fd = NOT_OPEN;
    let buffers = || vec![Buffer::new(8), Buffer::new(8)];
    for op in [
        Op::Read { fd, buffer: Buffer::new(8), offset: 0 },
        Op::Write { fd, buffer: Buffer::new(8), offset: 0 },
        Op::ReadVectored { fd, buffers: buffers(), offset: 0 },
        Op::WriteVectored { fd, buffers: buffers(), offset: 0 },
        Op::Fsync { fd },
        Op::Fdatasync { fd },
        Op::Close { fd },
        Op::Fallocate { fd, mode: 0, offset: 0, len: 1 },
        Op::Truncate { fd, len: 0 },
        Op::Copy { from: fd, from_offset: 0, to: file.as_raw_fd(), to_offset: 0, len: 1 },
        Op::Copy { from: file.as_raw_fd(), from_offset: 0, to: fd, to_offset: 0, len: 1 },
        Op::Read { fd: -1, buffer: Buffer::new(8), offset: 0 },
    ] {
        let name = op.name();
        assert_eq!(errno(&mut *engine, op), Errno(libc::EBADF), "{name}");
    }
}

fn open_otherwise(bench: &mut Bench) {
    let mut engine = bench.engine();
    bench.file("f", b"abc");
    let reader = File::open(bench.path("f")).expect("the file");
    let writer = OpenOptions::new().write(true).open(bench.path("f")).expect("the file");
    assert_eq!(errno(&mut *engine, write(&reader, b"x", 0)), Errno(libc::EBADF));
    assert_eq!(errno(&mut *engine, read(&writer, 1, 0)), Errno(libc::EBADF));
    assert_eq!(bench.content("f"), b"abc");
}

fn folders(bench: &mut Bench) {
    let mut engine = bench.engine();
    let folder = File::open(bench.path("")).expect("the folder of the case");
    assert_eq!(errno(&mut *engine, read(&folder, 8, 0)), Errno(libc::EISDIR));
    assert_eq!(errno(&mut *engine, write(&folder, b"x", 0)), Errno(libc::EBADF));
}

fn pipes(bench: &mut Bench) {
    let mut engine = bench.engine();
    let (reader, writer) = pipe();
    assert_eq!(errno(&mut *engine, write(&writer, b"lost", 0)), Errno(libc::ESPIPE));
    let (mut reader, mut writer) = (File::from(reader), File::from(writer));
    writer.write_all(b"kept").expect("a pipe with room");
    assert_eq!(errno(&mut *engine, read(&reader, 4, 0)), Errno(libc::ESPIPE));
    drop(writer);
    let mut there = Vec::new();
    reader.read_to_end(&mut there).expect("a pipe");
    assert_eq!(there, b"kept");
}

fn absurd_numbers(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"abc");
    let fd = file.as_raw_fd();
    let many = || (0..1025).map(|_| Buffer::new(1)).collect();
    let too_far = i64::MAX as u64 + 1;
    for op in [
        read(&file, 1, u64::MAX),
        read(&file, 1, too_far),
        write(&file, b"x", u64::MAX),
        write(&file, b"x", too_far),
        Op::ReadVectored { fd, buffers: many(), offset: 0 },
        Op::WriteVectored { fd, buffers: many(), offset: 0 },
        Op::Truncate { fd, len: too_far },
        Op::Fallocate { fd, mode: 0, offset: 0, len: 0 },
        Op::Fallocate { fd, mode: 0, offset: too_far, len: 1 },
        Op::Copy { from: fd, from_offset: too_far, to: fd, to_offset: 0, len: 1 },
    ] {
        let name = op.name();
        assert_eq!(errno(&mut *engine, op), Errno(libc::EINVAL), "{name}");
    }
    assert_eq!(bench.content("f"), b"abc");
}

fn full_device(bench: &mut Bench) {
    let mut engine = bench.engine();
    let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else { return };
    assert_eq!(errno(&mut *engine, write(&full, b"x", 0)), Errno(libc::ENOSPC));
}

fn paths(bench: &mut Bench) {
    let mut engine = bench.engine();
    bench.file("f", b"");
    std::fs::create_dir(bench.path("folder")).expect("a folder");
    bench.file("folder/inside", b"");
    let path = |name| bench.c_path(name);
    let open = |name, flags| Op::Open { path: path(name), flags, mode: 0o600 };
    for (op, expected) in [
        (open("none", libc::O_RDONLY), libc::ENOENT),
        (open("f", libc::O_CREAT | libc::O_EXCL | libc::O_RDWR), libc::EEXIST),
        (open("folder", libc::O_WRONLY), libc::EISDIR),
        (open("f/x", libc::O_RDONLY), libc::ENOTDIR),
        (Op::Stat { path: path("none") }, libc::ENOENT),
        (Op::Stat { path: path(&"x".repeat(300)) }, libc::ENAMETOOLONG),
        (Op::Unlink { path: path("none") }, libc::ENOENT),
        (Op::Unlink { path: path("folder") }, libc::EISDIR),
        (Op::Rename { from: path("none"), to: path("g") }, libc::ENOENT),
        (Op::Rename { from: path("f"), to: path("folder") }, libc::EISDIR),
        (Op::Rename { from: path("folder"), to: path("f") }, libc::ENOTDIR),
    ] {
        let text = format!("{op:?}");
        assert_eq!(errno(&mut *engine, op), Errno(expected), "{text}");
    }
}

fn copy_onto_itself(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"0123456789");
    let fd = file.as_raw_fd();
    let op = Op::Copy { from: fd, from_offset: 0, to: fd, to_offset: 2, len: 5 };
    assert_eq!(errno(&mut *engine, op), Errno(libc::EINVAL));
    assert_eq!(bench.content("f"), b"0123456789");
}
