//! Cases about the flow: limits, tokens, waiting, readiness, closing, dropping, threads.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::time::{Duration, Instant};

use super::bench::{all, bytes, c_path, content, one, pattern, read, wait_some, write};
use super::bench::{high, Bench, WAIT_MAX};
use super::Case;
use crate::{Answer, Completion, Engine, Errno, Full, Op};

pub(super) const CASES: &[Case] = &[
    Case { name: "gives back what it cannot take", run: full },
    Case { name: "brings tokens back as they were", run: tokens },
    Case { name: "waits for nothing when nothing is in flight", run: nothing_to_wait_for },
    Case { name: "waits no longer than it may, and never in poll", run: time_limits },
    Case { name: "becomes readable with each end", run: becomes_readable },
    Case { name: "is found ready when the end came before anybody looked", run: ready_before },
    Case { name: "closes after what was submitted before", run: closes_last },
    Case { name: "bears files that others close", run: closed_by_others },
    Case { name: "finishes everything before it is gone", run: drop_waits },
    Case { name: "outlives the threads that submitted", run: goes_from_thread_to_thread },
    Case { name: "sleeps while it waits", run: sleeps },
];

fn full(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"abc");
    let capacity = engine.capacity();
    assert!(capacity > 0);
    for token in 0..capacity {
        engine.submit(token as u64, read(&file, 3, 0)).expect("there is room");
    }
    assert_eq!(engine.in_flight(), capacity);
    let op = write(&file, b"xyz", 0);
    let Err(Full(op)) = engine.submit(0, op) else { panic!("more than {capacity} in flight") };
    assert_eq!(engine.in_flight(), capacity);
    let mut done = Vec::new();
    wait_some(&mut *engine, &mut done, Instant::now() + WAIT_MAX);
    assert_eq!(engine.in_flight(), capacity - done.len());
    engine.submit(u64::MAX, op).expect("there is room again");
    while engine.in_flight() > 0 {
        wait_some(&mut *engine, &mut done, Instant::now() + WAIT_MAX);
    }
    assert_eq!(done.len(), capacity + 1);
    assert_eq!(bench.content("f"), b"xyz");
}

fn tokens(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"abc");
    let tokens = [0, u64::MAX, 1 << 63, 7, 7];
    for token in tokens {
        engine.submit(token, read(&file, 1, 0)).expect("there is room");
    }
    let mut done = Vec::new();
    while done.len() < tokens.len() {
        wait_some(&mut *engine, &mut done, Instant::now() + WAIT_MAX);
    }
    let mut came: Vec<_> = done.iter().map(|completion| completion.token).collect();
    came.sort_unstable();
    assert_eq!(came, [0, 7, 7, 1 << 63, u64::MAX]);
}

fn nothing_to_wait_for(bench: &mut Bench) {
    let mut engine = bench.engine();
    let mut done = Vec::new();
    engine.flush();
    assert_eq!(engine.poll(&mut done), 0);
    assert_eq!(engine.wait(&mut done, Some(Duration::from_secs(3600))), 0);
    assert_eq!(engine.wait(&mut done, None), 0);
}

/// An operation that does not end before somebody reads the pipe: opening it for writing.
struct Stuck {
    path: std::path::PathBuf,
}

impl Stuck {
    fn new(bench: &Bench) -> Self {
        let path = bench.path("fifo");
        let name = c_path(&path);
        // SAFETY: the path is ended by a zero and lives through the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0, "a named pipe");
        Self { path }
    }

    fn op(&self) -> Op {
        Op::Open { path: c_path(&self.path), flags: libc::O_WRONLY | libc::O_CLOEXEC, mode: 0 }
    }

    /// Lets it end, after a while.
    fn release(&self, after: Duration) -> std::thread::JoinHandle<std::fs::File> {
        let path = self.path.clone();
        std::thread::spawn(move || {
            std::thread::park_timeout(after);
            std::fs::File::open(path).expect("the named pipe")
        })
    }
}

fn time_limits(bench: &mut Bench) {
    let mut engine = bench.engine();
    let stuck = Stuck::new(bench);
    engine.submit(1, stuck.op()).expect("there is room");
    let mut done = Vec::new();
    let started = Instant::now();
    assert_eq!(engine.poll(&mut done), 0, "{done:?}");
    assert_eq!(engine.wait(&mut done, Some(Duration::ZERO)), 0, "{done:?}");
    let limit = Duration::from_millis(20);
    assert_eq!(engine.wait(&mut done, Some(limit)), 0, "{done:?}");
    assert!(started.elapsed() >= limit, "{:?} is before the time", started.elapsed());
    assert_eq!(engine.in_flight(), 1);
    let reader = stuck.release(Duration::ZERO);
    wait_some(&mut *engine, &mut done, Instant::now() + WAIT_MAX);
    assert!(matches!(done[0].result, Ok(Answer::Fd(_))), "{:?}", done[0].result);
    drop(reader.join());
}

fn sleeps(bench: &mut Bench) {
    let mut engine = bench.engine();
    let stuck = Stuck::new(bench);
    engine.submit(1, stuck.op()).expect("there is room");
    let reader = stuck.release(Duration::from_millis(300));
    let (mut done, started) = (Vec::new(), cpu_of_thread());
    while engine.wait(&mut done, Some(WAIT_MAX)) == 0 {}
    let used = cpu_of_thread() - started;
    assert!(used < Duration::from_millis(100), "waiting for 300 ms took {used:?} of a processor");
    drop(reader.join());
}

fn cpu_of_thread() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is writable and lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// An edge-triggered epoll on one descriptor.
struct Edge(OwnedFd);

impl Edge {
    fn new(of: BorrowedFd<'_>) -> Self {
        // SAFETY: takes no memory.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        assert!(fd != -1, "an epoll");
        let events = (libc::EPOLLIN | libc::EPOLLET) as u32;
        let mut event = libc::epoll_event { events, u64: 0 };
        // SAFETY: one event, which lives through the call.
        let added = unsafe { libc::epoll_ctl(fd, libc::EPOLL_CTL_ADD, of.as_raw_fd(), &mut event) };
        assert_eq!(added, 0, "the engine's descriptor can be watched");
        // SAFETY: the kernel just made this descriptor for us.
        Self(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Sleeps until there was an edge.
    fn wait(&self) {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        let limit = WAIT_MAX.as_millis() as i32;
        let count = loop {
            // SAFETY: one event, which lives through the call.
            let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), &mut event, 1, limit) };
            if count != -1 || Errno::last() != Errno(libc::EINTR) {
                break count;
            }
        };
        assert_eq!(count, 1, "something has completed, and the descriptor did not say so");
    }
}

fn becomes_readable(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", &pattern(1 << 16, 1));
    let target = bench.file("g", b"");
    let edge = Edge::new(engine.fd());
    let (from, to) = (file.as_raw_fd(), target.as_raw_fd());
    let mut done: Vec<Completion> = Vec::new();
    for round in 0..300_u64 {
        let ops = match round % 4 {
            0 => vec![read(&file, 4096, 0)],
            1 => vec![Op::Copy { from, from_offset: 0, to, to_offset: 0, len: 4096 }],
            2 => vec![read(&file, 1, u64::MAX)],
            _ => vec![
                read(&file, 512, 9),
                Op::Copy { from, from_offset: 0, to, to_offset: 9, len: 9 },
                Op::Fsync { fd: to },
            ],
        };
        let expected = done.len() + ops.len();
        for op in ops {
            engine.submit(round, op).expect("there is room");
        }
        engine.flush();
        while done.len() < expected {
            edge.wait();
            while engine.poll(&mut done) > 0 {}
        }
    }
}

fn ready_before(bench: &mut Bench) {
    let mut engine = bench.engine();
    let file = bench.file("f", b"abc");
    engine.submit(1, read(&file, 3, 0)).expect("there is room");
    engine
        .submit(
            2,
            Op::Copy {
                from: file.as_raw_fd(),
                from_offset: 0,
                to: file.as_raw_fd(),
                to_offset: 10,
                len: 3,
            },
        )
        .expect("there is room");
    let mut done = Vec::new();
    wait_some(&mut *engine, &mut done, Instant::now() + WAIT_MAX);
    engine.submit(3, read(&file, 3, 0)).expect("there is room");
    engine.flush();
    let edge = Edge::new(engine.fd());
    while done.len() < 3 {
        edge.wait();
        while engine.poll(&mut done) > 0 {}
    }
}

fn closes_last(bench: &mut Bench) {
    let mut engine = bench.engine();
    for round in 0..20 {
        let file = bench.file("f", &pattern(1 << 18, round));
        let fd = high(file).into_raw_fd();
        let buffer = || crate::Buffer::new(1 << 14);
        let mut ops: Vec<_> = (0..16_u64)
            .map(|piece| Op::Read { fd, buffer: buffer(), offset: piece << 14 })
            .collect();
        ops.push(Op::Copy { from: fd, from_offset: 0, to: fd, to_offset: 1 << 18, len: 9 });
        ops.push(Op::Close { fd });
        ops.push(Op::Close { fd });
        let mut done = all(&mut *engine, ops);
        let second = done.pop().expect("19 completions").result;
        assert!(matches!(second, Err(Errno(libc::EBADF))), "{second:?}");
        let close = done.pop().expect("18 completions").result;
        assert!(matches!(close, Ok(Answer::Nothing)), "{close:?}");
        for completion in done {
            let result = completion.result.as_ref();
            assert!(result.is_ok_and(|answer| answer.bytes() > 0), "{completion:?}");
        }
    }
}

fn closed_by_others(bench: &mut Bench) {
    let mut engine = bench.engine();
    let wanted = pattern(1 << 16, 3);
    for _ in 0..20 {
        let file = high(bench.file("f", &wanted));
        for token in 0..16 {
            engine.submit(token, read(&file, 4096, token * 4096)).expect("there is room");
        }
        engine.flush();
        drop(file);
        let mut done = Vec::new();
        while done.len() < 16 {
            wait_some(&mut *engine, &mut done, Instant::now() + WAIT_MAX);
        }
        for completion in done {
            let at = completion.token as usize * 4096;
            match completion.result {
                Ok(_) => assert!(content(completion.op) == wanted[at..at + 4096], "other bytes"),
                Err(errno) => assert_eq!(errno, Errno(libc::EBADF)),
            }
        }
    }
}

fn drop_waits(bench: &mut Bench) {
    let wanted = pattern(64 << 14, 9);
    let file = bench.file("f", b"");
    let source = bench.file("source", &wanted[..1 << 14]);
    let mut engine = bench.engine();
    let (from, to) = (source.as_raw_fd(), file.as_raw_fd());
    let copy = Op::Copy { from, from_offset: 0, to, to_offset: 0, len: 1 << 14 };
    engine.submit(0, copy).expect("there is room");
    for piece in 1..64_usize {
        let (at, end) = (piece << 14, (piece + 1) << 14);
        let mut op = write(&file, &wanted[at..end], at as u64);
        while let Err(Full(back)) = engine.submit(1, op) {
            op = back;
            wait_some(&mut *engine, &mut Vec::new(), Instant::now() + WAIT_MAX);
        }
    }
    drop(engine);
    assert!(bench.content("f") == wanted, "something submitted was not done");
}

fn goes_from_thread_to_thread(bench: &mut Bench) {
    const ROUNDS: u64 = 30;
    let mut engine = bench.engine();
    let file = bench.file("f", b"");
    for round in 0..ROUNDS {
        let wanted = pattern(1 << 16, round);
        // A thread submits and is gone; the operations are finished by this one.
        engine = std::thread::scope(|scope| {
            let submit = || {
                for piece in 0..8_usize {
                    let at = piece << 13;
                    let op = write(&file, &wanted[at..at + (1 << 13)], at as u64);
                    engine.submit(piece as u64, op).expect("there is room");
                }
                engine.submit(8, Op::Fsync { fd: file.as_raw_fd() }).expect("there is room");
                engine.flush();
                engine
            };
            scope.spawn(submit).join().expect("the thread that submits")
        });
        let mut done = Vec::new();
        while done.len() < 9 {
            wait_some(&mut *engine, &mut done, Instant::now() + WAIT_MAX);
        }
        for completion in done {
            assert!(completion.result.is_ok(), "{completion:?}");
        }
        let back = one(&mut *engine, read(&file, 1 << 16, 0));
        assert!(content(back.op) == wanted, "round {round}: other bytes");
    }
    assert_eq!(bytes(&mut *engine, read(&file, 1, 1 << 16)), 0);
}
