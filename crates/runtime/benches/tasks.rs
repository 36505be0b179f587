//! What the runtime itself costs a task: `cargo bench -p alongside-runtime`.
//!
//! Workers that do nothing, without Python. One line a question: start, independent, hops,
//! large, flat (all, or those that are named); `TASKS` says how many tasks.

use std::sync::Arc;
use std::time::Instant;

use runtime::{
    block, Call, Constraint, FunctionSpec, Handle, Input, Kind, OnFailure, Options, Overrides,
    Session, Tuning, Value, WaitEnd, WaitFor,
};

fn text_block(text: &str) -> Vec<u8> {
    let layout = block::Layout::new(text.len(), std::iter::empty());
    let mut bytes = vec![0; layout.total()];
    layout.write(&mut bytes, text.as_bytes(), &[]);
    bytes
}

fn start(workers: usize) -> (Session, u64, u64) {
    let session = Session::start(Options {
        workers,
        worker_command: vec![env!("CARGO_BIN_EXE_runtime-test-worker").into()],
        none_block: text_block("none").into(),
        ..Options::default()
    })
    .expect("a session");
    let function = |name: &str| {
        let spec = FunctionSpec {
            name: Arc::from(name),
            blob: Value::inline(text_block(name)),
            kind: Kind::Compute,
            cpus: 1,
            priority: 0,
            retries: 0,
            timeout_ns: None,
            on_failure: OnFailure::Fail,
            constraint: Constraint::default(),
            tuning: Tuning::Static,
            durable: false,
            asynchronous: false,
            returns: 1,
            buffer: None,
        };
        session.function(spec).expect("alive")
    };
    let (echo, add) = (function("echo"), function("add"));
    (session, echo, add)
}

fn call(session: &Session, function: u64, arguments: &Value, inputs: Vec<Input>) -> Handle {
    let (arguments, overrides) = (arguments.clone(), Overrides::default());
    let call = Call { function, arguments, inputs, files: Vec::new(), builtin: None, overrides };
    session.spawn(call).expect("a good call").returns.pop().expect("one value")
}

fn wait(session: &Session, handles: &[Handle]) {
    let end = session.wait(handles, WaitFor::All, None, &mut || false);
    assert_eq!(end, WaitEnd::Ready);
}

/// Processor time of this process, without its workers.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * 4096
}

fn independent(count: usize, workers: usize) {
    let (session, echo, _) = start(workers);
    let arguments = Value::inline(text_block("x"));
    wait(&session, &[call(&session, echo, &arguments, vec![])]);
    let (began, cpu) = (Instant::now(), cpu_seconds());
    let all: Vec<Handle> = (0..count).map(|_| call(&session, echo, &arguments, vec![])).collect();
    let submitted = began.elapsed();
    wait(&session, &all);
    let seconds = began.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - cpu;
    println!(
        "{count} independent tasks, {workers} worker(s): {:.0} tasks/s \
         ({:.2} us to submit one, {:.2} us of processor time here for all of it)",
        count as f64 / seconds,
        submitted.as_secs_f64() * 1e6 / count as f64,
        cpu * 1e6 / count as f64
    );
}

fn hops(count: usize) {
    let (session, _, add) = start(1);
    let one = Value::inline(text_block("1"));
    let mut last = session.put(Value::inline(text_block("0"))).expect("alive");
    let began = Instant::now();
    for _ in 0..count {
        last = call(&session, add, &one, vec![Input::Handle(last)]);
        wait(&session, std::slice::from_ref(&last));
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("submit and wait, one after the other: {:.1} us", seconds * 1e6 / count as f64);
    let began = Instant::now();
    for _ in 0..count {
        last = call(&session, add, &one, vec![Input::Handle(last)]);
    }
    wait(&session, &[last]);
    let seconds = began.elapsed().as_secs_f64();
    println!("a hop in a chain: {:.1} us", seconds * 1e6 / count as f64);
}

fn flat(count: usize) {
    let (session, echo, _) = start(2);
    let arguments = Value::inline(text_block("x"));
    let mut window = std::collections::VecDeque::new();
    let (mut early, began) = (0, Instant::now());
    for number in 0..count {
        window.push_back(call(&session, echo, &arguments, vec![]));
        if window.len() == 1000 {
            let oldest = window.pop_front().expect("full");
            wait(&session, &[oldest]);
        }
        if number == count / 10 {
            early = resident_bytes();
        }
    }
    wait(&session, window.make_contiguous());
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{count} tasks, 1000 at a time: {:.0} tasks/s; {:.1} MB after a tenth, {:.1} MB at the end",
        count as f64 / seconds,
        early as f64 / 1e6,
        resident_bytes() as f64 / 1e6
    );
}

fn large(bytes: usize) {
    let (session, _, _) = start(1);
    let buffer = vec![7u8; bytes];
    let mut other = vec![1u8; bytes];
    drop(session.encode(b"", &[&buffer]));
    let rounds = 10;
    let began = Instant::now();
    for _ in 0..rounds {
        drop(session.encode(b"", &[&buffer]).expect("room"));
    }
    let ours = began.elapsed().as_secs_f64() / f64::from(rounds);
    let began = Instant::now();
    for round in 0..rounds {
        other.copy_from_slice(&buffer);
        std::hint::black_box(&mut other)[round as usize] = 1;
    }
    let copy = began.elapsed().as_secs_f64() / f64::from(rounds);
    println!(
        "encode {} MB: {:.1} ms, one copy {:.1} ms, ratio {:.2}",
        bytes / 1_000_000,
        ours * 1e3,
        copy * 1e3,
        ours / copy
    );
}

fn first_result() {
    let began = Instant::now();
    let (session, echo, _) = start(2);
    wait(&session, &[call(&session, echo, &Value::inline(text_block("x")), vec![])]);
    println!("start to first result: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    let began = Instant::now();
    session.stop(true);
    println!("stop: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
}

fn main() {
    let count = std::env::var("TASKS").ok().and_then(|text| text.parse().ok()).unwrap_or(200_000);
    let wanted: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let question = |name: &str, answer: &dyn Fn()| {
        if wanted.is_empty() || wanted.iter().any(|it| it == name) {
            answer();
        }
    };
    question("start", &first_result);
    question("independent", &|| (1..=2).for_each(|workers| independent(count, workers)));
    question("hops", &|| hops(5_000));
    question("large", &|| large(100_000_000));
    question("flat", &|| flat(count));
}
