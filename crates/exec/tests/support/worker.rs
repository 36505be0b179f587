//! A worker (and a driver) for tests and measurements: the function's number says what to do.

use std::io::Write;
use std::sync::Mutex;

use exec::process::{Kind, Pool, Spec};
use exec::wire::{Blob, FromWorker};
use exec::worker::{Assignment, Moved, Next, Output, View, Worker};

fn main() {
    if std::env::args().nth(1).as_deref() == Some("driver") {
        return drive();
    }
    let worker = Worker::from_env().expect("started by a driver");
    worker.ready();
    let threads = worker.slots();
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| work(&worker));
        }
        work(&worker);
    });
}

fn work(worker: &Worker) {
    loop {
        match worker.next() {
            Next::Run(mut assignment) => run(worker, &mut assignment),
            Next::ForgetFunction(_) | Next::Granted(_) => {}
            Next::Stop => break,
        }
    }
}

static KEPT: Mutex<Vec<View>> = Mutex::new(Vec::new());

fn output(worker: &Worker, bytes: &[u8]) -> Output {
    let mut output = worker.output(bytes.len() as u64).expect("room");
    output.bytes_mut().copy_from_slice(bytes);
    output
}

fn argument(worker: &Worker, assignment: &Assignment) -> Vec<u8> {
    match assignment.run().arguments {
        Blob::Inline(bytes) => bytes.to_vec(),
        Blob::Placed { offset, len } => worker.view(offset, len).to_vec(),
    }
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

/// Asks for memory for as many bytes as the first number says; values of the lengths that follow.
fn asked_for(worker: &Worker, lengths: &[u8]) -> Vec<Output> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let mut numbers = lengths.chunks_exact(8).map(number);
    let mut asked = worker.ask(numbers.next().expect("the length to ask for"));
    let value = |len| {
        let output = asked.take().map_or_else(|| worker.output(len), |asked| asked.output(len));
        let mut output = output.expect("room");
        output.bytes_mut().fill(9);
        output
    };
    numbers.map(value).collect()
}

fn wait_for_consumers(worker: &Worker, assignment: &mut Assignment) -> Vec<Output> {
    assert!(worker.stall(assignment), "it may make no more");
    while !matches!(worker.next(), Next::Granted(_)) {}
    worker.credit(assignment).expect("the producer of a stream");
    Vec::new()
}

/// The child comes back with so many bytes; its parent with how it ended.
fn fork(worker: &Worker, len: &[u8]) -> Output {
    // SAFETY: the child does what a body does that comes back in it.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let len = u64::from_le_bytes(len.try_into().expect("eight bytes"));
        return worker.output(len).expect("room");
    }
    let mut status = 0;
    // SAFETY: waits for our own child and writes into `status`.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    output(worker, &[libc::WEXITSTATUS(status) as u8])
}

fn run(worker: &Worker, assignment: &mut Assignment) {
    let nothing = Moved::default();
    let function = assignment.run().function;
    let outputs = match function {
        0 => Vec::new(),
        1 => vec![output(worker, &argument(worker, assignment))],
        2 => {
            worker.release(assignment, 0, Output::Inline(Vec::new()));
            hang()
        }
        3 => {
            let inputs = assignment.run().inputs;
            let views = inputs.iter().filter_map(|(_, blob)| match *blob {
                Blob::Placed { offset, len } => Some(worker.view(offset, len)),
                Blob::Inline(_) => None,
            });
            KEPT.lock().expect("no panics").extend(views);
            Vec::new()
        }
        4 => {
            KEPT.lock().expect("no panics").clear();
            Vec::new()
        }
        5 => {
            let bytes = argument(worker, assignment);
            let exception = output(worker, &bytes);
            return worker.raised(assignment, exception, nothing).expect("room");
        }
        6 => {
            let len = argument(worker, assignment);
            let len = u64::from_le_bytes(len.try_into().expect("eight bytes"));
            return match worker.output(len) {
                Ok(mut value) => {
                    value.bytes_mut().fill(7);
                    worker.done(assignment, vec![value], nothing).expect("room")
                }
                Err(full) => {
                    let exception = output(worker, full.to_string().as_bytes());
                    worker.raised(assignment, exception, nothing).expect("room")
                }
            };
        }
        7 => std::process::abort(),
        8 => {
            // SAFETY: takes the kernel's own way to end this process away.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0) };
            Vec::new()
        }
        9 => return, // dropped without an end
        10 => (0..assignment.run().returns).map(|_| output(worker, &[1; 1000])).collect(),
        11 => {
            let function = worker.function(11).expect("the driver sent it");
            vec![output(worker, function.bytes())]
        }
        12 => {
            let inputs = assignment.run().inputs;
            let sum: u64 = inputs.iter().map(|(_, blob)| blob.bytes()).sum();
            vec![output(worker, &sum.to_le_bytes())]
        }
        13 => {
            let credit = worker.credit(assignment).expect("the producer of a stream");
            vec![output(worker, &credit.granted.to_le_bytes())]
        }
        14 => wait_for_consumers(worker, assignment),
        15 => vec![fork(worker, &argument(worker, assignment))],
        16 => asked_for(worker, &argument(worker, assignment)),
        other => unreachable!("no test has function {other}"),
    };
    worker.done(assignment, outputs, nothing).expect("room");
}

/// A driver with one worker: tells the worker's number, then waits for ever. The second argument
/// says what the worker does meanwhile: a list of functions to run.
fn drive() {
    let pool = Pool::new(1 << 20).expect("shared memory");
    let command = vec![std::env::current_exe().expect("a path").into()];
    let spec = Spec { kind: Kind::Compute, slots: 1, command, environment: Vec::new() };
    let mut process = pool.spawn(&spec, 1).expect("a worker");
    let functions = std::env::args().nth(2).unwrap_or_default();
    let functions = functions.split_terminator(',').map(|it| it.parse().expect("a number"));
    let mut left = 1;
    for function in functions {
        let arguments = Blob::Inline(&[]);
        let mut run = exec::wire::Run {
            task: 0,
            attempt: 1,
            claim: 0,
            function,
            arguments,
            inputs: Default::default(),
            paths: Default::default(),
            returns: 0,
            writes: Default::default(),
            durable: false,
            processors: Default::default(),
            stream: None,
        };
        process.send_run(&mut run).expect("sent");
        left += 1;
    }
    let (mut buffer, mut ended) = (Vec::new(), Vec::new());
    loop {
        while let Some(record) = process.receive(&mut buffer).expect("sound records") {
            use FromWorker::{Ended, Ready, Released};
            left -= i32::from(matches!(record, Ready | Ended(_) | Released { .. }));
        }
        if left == 0 {
            println!("{}", process.pid());
            std::io::stdout().flush().expect("a reader");
            left = -1;
        }
        if pool.poller().prepare_sleep() {
            pool.poller().wait(None, &mut ended).expect("a wait");
        }
    }
}
