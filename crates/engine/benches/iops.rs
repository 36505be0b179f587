//! Reads or writes a file at random places for some seconds, and prints what that cost as JSON.
//!
//! `iops contender=alongside operation=read block=4096 file=PATH seconds=5 depth=64 jobs=1`
//!
//! Contenders: `alongside` (the engine that the environment gives, `depth` operations in flight
//! from `jobs` threads) and `threads` (`depth` threads in plain blocking calls). The file has to be
//! there; it is opened with `O_DIRECT`, unless `buffered=1`. `bench/engine` calls this.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use engine::{open, Buffer, Completion, Engine, Op, Options};

/// What is to be done.
struct Plan {
    contender: String,
    is_read: bool,
    block_bytes: usize,
    file: File,
    blocks: u64,
    seconds: f64,
    depth: usize,
    jobs: usize,
}

/// What a thread did: how long each operation took, in nanoseconds.
type Latencies = Vec<u32>;

fn plan() -> Plan {
    // Cargo adds `--bench`.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let value = |name: &str, default: &str| -> String {
        let prefix = format!("{name}=");
        let found = arguments.iter().find_map(|argument| argument.strip_prefix(&prefix));
        found.unwrap_or(default).to_owned()
    };
    let number = |name: &str, default: &str| -> f64 {
        let text = value(name, default);
        text.parse().unwrap_or_else(|_| panic!("{name}={text}: must be a number"))
    };
    let block_bytes = number("block", "4096") as usize;
    let mut options = OpenOptions::new();
    let flags = if number("buffered", "0") > 0.0 { 0 } else { libc::O_DIRECT };
    let path = value("file", "iops.data");
    let file = options.read(true).write(true).custom_flags(flags).open(&path);
    let file = file.unwrap_or_else(|error| panic!("file={path}: {error}"));
    let blocks = file.metadata().expect("a file has a length").len() / block_bytes as u64;
    assert!(blocks > 0, "file={path} is shorter than a block");
    Plan {
        contender: value("contender", "alongside"),
        is_read: value("operation", "read") == "read",
        block_bytes,
        file,
        blocks,
        seconds: number("seconds", "2"),
        depth: number("depth", "64") as usize,
        jobs: number("jobs", "1") as usize,
    }
}

/// Places in the file, one after the other.
struct Places {
    state: u64,
    blocks: u64,
    block_bytes: u64,
}

impl Places {
    fn new(plan: &Plan, seed: usize) -> Self {
        let state = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { state, blocks: plan.blocks, block_bytes: plan.block_bytes as u64 }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % self.blocks * self.block_bytes
    }
}

/// Memory for all operations in one piece, as `fio` has it: large pages cost the kernel less. It
/// holds what no device can leave out.
fn memory(plan: &Plan) -> Buffer {
    let mut memory = Buffer::new(plan.block_bytes * plan.depth);
    let mut places = Places { state: 99, blocks: u64::MAX, block_bytes: 1 };
    for word in memory.chunks_mut(8) {
        word.copy_from_slice(&places.next().to_le_bytes()[..word.len()]);
    }
    memory
}

/// The part of an operation.
fn part(plan: &Plan, memory: *mut u8, at: usize) -> Buffer {
    assert!(at < plan.depth, "part {at} of {}", plan.depth);
    // SAFETY: the parts do not overlap, and `main` keeps the memory until all threads have ended.
    unsafe { Buffer::lent(memory.wrapping_add(at * plan.block_bytes), plan.block_bytes) }
}

fn operation(plan: &Plan, fd: RawFd, buffer: Buffer, offset: u64) -> Op {
    if plan.is_read {
        Op::Read { fd, buffer, offset }
    } else {
        Op::Write { fd, buffer, offset }
    }
}

/// What the threads share.
struct Shared {
    plan: Plan,
    /// Where the memory of all operations is, as a number: pointers do not like threads.
    memory: usize,
    start: Barrier,
    stop: AtomicBool,
}

impl Shared {
    fn is_going_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn part(&self, at: usize) -> Buffer {
        part(&self.plan, self.memory as *mut u8, at)
    }
}

/// One thread of ours, with its share of the depth.
fn with_engine(shared: &Shared, job: usize) -> Latencies {
    let plan = &shared.plan;
    let depth = (plan.depth / plan.jobs).max(1);
    let mut engine = open(&Options { depth: depth as u32, ..Options::default() }).expect("engine");
    let (fd, mut places) = (plan.file.as_raw_fd(), Places::new(plan, job));
    let mut latencies = Vec::with_capacity(1 << 22);
    let mut begun = vec![Instant::now(); depth];
    let mut done: Vec<Completion> = Vec::with_capacity(depth);
    shared.start.wait();
    let submit = |engine: &mut dyn Engine, token: usize, buffer, offset| {
        let taken = engine.submit(token as u64, operation(plan, fd, buffer, offset));
        assert!(taken.is_ok(), "no more than the depth is in flight");
    };
    for (token, begun) in begun.iter_mut().enumerate() {
        *begun = Instant::now();
        submit(&mut *engine, token, shared.part(job * depth + token), places.next());
    }
    while shared.is_going_on() {
        engine.wait(&mut done, None);
        let now = Instant::now();
        for Completion { token, op, result } in done.drain(..) {
            let count = result.expect("the device works").bytes();
            assert!(count == plan.block_bytes as u64, "{count} of {}", plan.block_bytes);
            let token = token as usize;
            latencies.push((now - begun[token]).as_nanos() as u32);
            begun[token] = now;
            let (Op::Read { buffer, .. } | Op::Write { buffer, .. }) = op else {
                panic!("another operation came back: {op:?}")
            };
            submit(&mut *engine, token, buffer, places.next());
        }
    }
    latencies
}

/// One of many threads in plain blocking calls.
fn with_calls(shared: &Shared, job: usize) -> Latencies {
    let plan = &shared.plan;
    let (mut buffer, mut places) = (shared.part(job), Places::new(plan, job));
    let mut latencies = Vec::with_capacity(1 << 18);
    shared.start.wait();
    while shared.is_going_on() {
        let (offset, begun) = (places.next(), Instant::now());
        if plan.is_read {
            plan.file.read_exact_at(&mut buffer, offset).expect("the device works");
        } else {
            plan.file.write_all_at(&buffer, offset).expect("the device works");
        }
        latencies.push(begun.elapsed().as_nanos() as u32);
    }
    latencies
}

/// Processor time of this process, its threads in the kernel too.
fn cpu() -> Duration {
    // SAFETY: zeros are a valid rusage, and it lives through the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let time = |part: libc::timeval| {
        Duration::from_secs(part.tv_sec as u64) + Duration::from_micros(part.tv_usec as u64)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Runs all threads for the time; what they did, in what time, at what cost.
fn measure(shared: &Shared, threads: usize, work: Work) -> (Latencies, Duration, Duration) {
    std::thread::scope(|scope| {
        let running: Vec<_> =
            (0..threads).map(|job| scope.spawn(move || work(shared, job))).collect();
        shared.start.wait();
        let (began, cpu_before) = (Instant::now(), cpu());
        let end = began + Duration::from_secs_f64(shared.plan.seconds);
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|l| !l.is_zero()) {
            std::thread::park_timeout(left);
        }
        shared.stop.store(true, Ordering::Relaxed);
        let (elapsed, used) = (began.elapsed(), cpu() - cpu_before);
        let join = |thread: std::thread::ScopedJoinHandle<Latencies>| thread.join().expect("work");
        (running.into_iter().flat_map(join).collect(), elapsed, used)
    })
}

/// What a thread does; its number comes with it.
type Work = fn(&Shared, usize) -> Latencies;

fn main() {
    let plan = plan();
    let (threads, work): (usize, Work) = match plan.contender.as_str() {
        "alongside" => (plan.jobs, with_engine),
        "threads" => (plan.depth, with_calls),
        other => panic!("contender={other}: must be alongside or threads"),
    };
    let mut memory = memory(&plan);
    let (start, stop) = (Barrier::new(threads + 1), AtomicBool::new(false));
    let shared = Shared { plan, memory: memory.as_mut_ptr() as usize, start, stop };
    let (mut latencies, elapsed, used) = measure(&shared, threads, work);
    latencies.sort_unstable();
    let count = latencies.len();
    assert!(count > 0, "nothing was done in {elapsed:?}");
    let at = |share: f64| f64::from(latencies[((count - 1) as f64 * share) as usize]) / 1e3;
    println!(
        "{{\"iops\": {:.1}, \"cpu\": {:.4}, \"p50\": {:.2}, \"p99\": {:.2}}}",
        count as f64 / elapsed.as_secs_f64(),
        used.as_secs_f64() * 1e6 / count as f64,
        at(0.5),
        at(0.99)
    );
}
