//! Cases about files as such: open, close, stat, lengths, names.

use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use super::bench::{bytes, errno, result, write, Bench};
use super::Case;
use crate::{Answer, Engine, Errno, Op};

pub(super) const CASES: &[Case] = &[
    Case { name: "opens, writes and closes", run: opens_and_closes },
    Case { name: "tells what is known of a file", run: stats },
    Case { name: "makes files longer and shorter", run: truncates },
    Case { name: "reserves space", run: fallocates },
    Case { name: "renames over what was there", run: renames },
    Case { name: "removes names", run: unlinks },
];

fn done(engine: &mut dyn Engine, op: Op) {
    let name = op.name();
    let result = result(engine, op);
    assert!(matches!(result, Ok(Answer::Nothing)), "{name}: {result:?}");
}

fn opens_and_closes(bench: &mut Bench) {
    use std::os::fd::IntoRawFd;
    let mut engine = bench.engine();
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC;
    let op = Op::Open { path: bench.c_path("new"), flags, mode: 0o640 };
    let file = match result(&mut *engine, op) {
        Ok(Answer::Fd(file)) => file,
        other => panic!("open gave {other:?}"),
    };
    assert_eq!(bytes(&mut *engine, write(&file, b"hello", 0)), 5);
    let fd = file.into_raw_fd();
    done(&mut *engine, Op::Close { fd });
    assert_eq!(bench.content("new"), b"hello");
    let mode = std::fs::metadata(bench.path("new")).expect("the file").mode();
    assert_eq!(mode & 0o137, 0, "mode {mode:o} of a file made with 640");
}

fn stats(bench: &mut Bench) {
    let mut engine = bench.engine();
    bench.file("f", &[7; 5000]);
    std::os::unix::fs::symlink("f", bench.path("link")).expect("a link");
    let known = std::fs::metadata(bench.path("f")).expect("the file");
    for name in ["f", "link"] {
        let stat = match result(&mut *engine, Op::Stat { path: bench.c_path(name) }) {
            Ok(Answer::Stat(stat)) => stat,
            other => panic!("stat gave {other:?}"),
        };
        assert!(stat.is_file() && !stat.is_folder());
        assert_eq!((stat.size_bytes, stat.inode), (5000, known.ino()));
        assert_eq!((stat.mode, stat.uid, stat.links), (known.mode(), known.uid(), 1));
        assert_eq!(stat.allocated_bytes, known.blocks() * 512);
        let modified = (stat.modified.seconds, i64::from(stat.modified.nanoseconds));
        assert_eq!(modified, (known.mtime(), known.mtime_nsec()));
    }
}

fn truncates(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"0123456789");
    let fd = file.as_raw_fd();
    done(&mut *engine, Op::Truncate { fd, len: 4 });
    assert_eq!(bench.content("f"), b"0123");
    done(&mut *engine, Op::Truncate { fd, len: 6 });
    assert_eq!(bench.content("f"), b"0123\0\0");
}

fn fallocates(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"ab");
    let op = Op::Fallocate { fd: file.as_raw_fd(), mode: 0, offset: 0, len: 1 << 20 };
    match result(&mut *engine, op) {
        // Some file systems have none, and say so.
        Err(errno) => assert_eq!(errno, Errno(libc::EOPNOTSUPP)),
        Ok(_) => {
            let known = std::fs::metadata(bench.path("f")).expect("the file");
            assert!(known.len() == 1 << 20 && known.blocks() * 512 >= 1 << 20, "{known:?}");
            assert_eq!(bench.content("f")[..3], *b"ab\0");
        }
    }
}

fn renames(bench: &mut Bench) {
    let mut engine = bench.engine();
    bench.file("old", b"new content");
    bench.file("name", b"old content");
    done(&mut *engine, Op::Rename { from: bench.c_path("old"), to: bench.c_path("name") });
    assert_eq!(bench.content("name"), b"new content");
    assert!(!bench.path("old").exists());
}

fn unlinks(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"");
    done(&mut *engine, Op::Unlink { path: bench.c_path("f") });
    assert!(!bench.path("f").exists());
    assert_eq!(bytes(&mut *engine, write(&file, b"still there", 0)), 11);
    assert_eq!(errno(&mut *engine, Op::Unlink { path: bench.c_path("f") }), Errno(libc::ENOENT));
}
