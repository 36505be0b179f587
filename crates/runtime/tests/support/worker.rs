//! A worker without Python: its functions are chosen by the name in their blob.
//!
//! The pickle of an argument block is text, words separated by spaces; `{0}` and so on stand for
//! the pickles of the inputs. Results are blocks whose pickle is text too.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;

use exec::process::Kind;
use exec::wire::{Blob, InputMode};
use exec::worker::{Assignment, Moved, Next, Output, View, Worker};
use runtime::{block, exec};

static HELD: Mutex<Vec<View>> = Mutex::new(Vec::new());

/// An input as this run sees it.
enum Seen {
    Here(Vec<u8>),
    There(View),
}

impl Seen {
    fn bytes(&self) -> &[u8] {
        match self {
            Seen::Here(bytes) => bytes,
            Seen::There(view) => view,
        }
    }

    fn text(&self) -> String {
        let block = block::parse(self.bytes()).expect("every value here is a block");
        String::from_utf8_lossy(block.pickle).into_owned()
    }
}

fn see(worker: &Worker, blob: &Blob<'_>) -> Seen {
    match *blob {
        Blob::Inline(bytes) => Seen::Here(bytes.to_vec()),
        Blob::Placed { offset, len } => Seen::There(worker.view(offset, len)),
    }
}

fn output(worker: &Worker, pickle: &[u8], buffer: &[u8]) -> Result<Output, String> {
    let buffers: &[&[u8]] = if buffer.is_empty() { &[] } else { &[buffer] };
    let layout = block::Layout::new(pickle.len(), buffers.iter().map(|b| b.len()));
    let mut output = worker.output(layout.total() as u64).map_err(|full| full.to_string())?;
    layout.write(output.bytes_mut(), pickle, buffers);
    Ok(output)
}

/// What a body gives: the pickles of its outputs (and one large buffer), or what it raises.
struct Made {
    pickles: Vec<String>,
    buffer: Vec<u8>,
    moved: Moved,
}

fn text(pickle: impl Into<String>) -> Result<Made, String> {
    Ok(Made { pickles: vec![pickle.into()], buffer: Vec::new(), moved: Moved::default() })
}

/// Opening a named pipe waits for the other side: the test knows that the body runs.
fn gate(path: &str) {
    let mut told = String::new();
    File::open(path).and_then(|mut pipe| pipe.read_to_string(&mut told)).expect("a named pipe");
}

fn die(how: &str) -> ! {
    match how.strip_prefix("signal:") {
        // SAFETY: the process is to end here; the default action of the signal does it.
        Some(signal) => unsafe {
            let signal = signal.parse().expect("a number");
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
            libc::_exit(99)
        },
        // SAFETY: ends the process at once.
        None => unsafe { libc::_exit(how.parse().expect("an exit code")) },
    }
}

fn sum_of(inputs: &[Seen]) -> u64 {
    let of = |seen: &Seen| -> u64 {
        let block = block::parse(seen.bytes()).expect("a block");
        match block.buffers.first() {
            None => seen.text().trim().parse().expect("a number"),
            Some(range) => seen.bytes()[range.clone()].iter().map(|b| u64::from(*b)).sum(),
        }
    };
    inputs.iter().map(of).sum()
}

fn body(
    worker: &Worker,
    name: &str,
    words: &[&str],
    inputs: &[Seen],
    run: &exec::wire::Run<'_>,
) -> Result<Made, String> {
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let number = |at: usize| word(at).parse::<u64>().unwrap_or_default();
    match name {
        "echo" => text(words.join(" ")),
        "join" => text(inputs.iter().map(Seen::text).collect::<Vec<_>>().join("+")),
        "add" => text((sum_of(inputs) + number(0)).to_string()),
        "fail" => Err(words.join(" ")),
        "fail_times" if u64::from(run.attempt) <= number(0) => Err(format!("try {}", run.attempt)),
        "die_times" if u64::from(run.attempt) <= number(0) => die(word(1)),
        "fail_times" | "die_times" => text(format!("at try {}", run.attempt)),
        "die" => die(word(0)),
        "die_with_memory" => {
            let _made = output(worker, b"lost", &vec![1; 1 << 20])?;
            die(word(0))
        }
        "gate" => {
            gate(word(0));
            text("through")
        }
        "big" => Ok(Made {
            pickles: vec![String::new()],
            buffer: vec![word(1).parse().unwrap_or(1); number(0) as usize],
            moved: Moved::default(),
        }),
        "many" => Ok(Made {
            pickles: (0..run.returns).map(|at| format!("{at}:{}", "x".repeat(1000))).collect(),
            buffer: Vec::new(),
            moved: Moved::default(),
        }),
        "slow_append" => {
            if run.attempt == 1 {
                gate(word(1));
            }
            text(format!("{}{}", inputs[0].text(), word(0)))
        }
        "append" => text(format!("{}{}", inputs[0].text(), word(0))),
        "blocked_signals" => text(std::fs::read_to_string("/proc/self/status").unwrap_or_default()),
        other => memory_or_file(other, words, inputs, run),
    }
}

/// Bodies that look at the heap or at files.
fn memory_or_file(
    name: &str,
    words: &[&str],
    inputs: &[Seen],
    run: &exec::wire::Run<'_>,
) -> Result<Made, String> {
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let number = |at: usize| word(at).parse::<u64>().unwrap_or_default();
    match name {
        "poke" => {
            let Seen::There(view) = &inputs[0] else { return Err("not in the heap".into()) };
            assert_eq!(run.inputs[0].0, InputMode::Shared);
            let range = block::parse(view).expect("a block").buffers[0].clone();
            // SAFETY: within the view; every member of the group writes a byte of its own.
            unsafe {
                view.writer().add(range.start + number(0) as usize).write(word(1).parse().unwrap())
            };
            Ok(Made { pickles: Vec::new(), buffer: Vec::new(), moved: Moved::default() })
        }
        "hold" => {
            let Seen::There(view) = &inputs[0] else { return Err("not in the heap".into()) };
            HELD.lock().unwrap().push(view.clone());
            text("held")
        }
        "let_go" => {
            HELD.lock().unwrap().clear();
            text("let go")
        }
        "write" => {
            let path = OsStr::from_bytes(run.paths[0].bytes);
            std::fs::write(path, word(0)).map_err(|error| format!("{path:?}: {error}"))?;
            let moved =
                Moved { bytes_read: 0, bytes_written: word(0).len() as u64, layer_errno: 0 };
            let place = path.to_string_lossy().into_owned();
            Ok(Made { pickles: vec![place], buffer: Vec::new(), moved })
        }
        "read" => {
            let path = OsStr::from_bytes(run.paths[0].bytes);
            text(std::fs::read_to_string(path).map_err(|error| format!("{path:?}: {error}"))?)
        }
        other => Err(format!("there is no function {other}")),
    }
}

fn perform(worker: &Worker, assignment: &mut Assignment) {
    let (mut name, words) = {
        let run = assignment.run();
        let function = worker.function(run.function).expect("sent before the run");
        (Seen::Here(function.bytes().to_vec()).text(), see(worker, &run.arguments).text())
    };
    let list: Vec<&str> = words.split(' ').collect();
    if name == "release" {
        let early = || output(worker, b"early", &[]).expect("short");
        assert!(worker.release(assignment, 0, early()));
        assert!(!worker.release(assignment, 0, early()), "an output is handed over once");
        gate(list[0]);
        name = "echo".to_string();
    }
    let result = {
        let run = assignment.run();
        let inputs: Vec<Seen> = run.inputs.iter().map(|(_, blob)| see(worker, blob)).collect();
        body(worker, &name, &list, &inputs, &run)
    };
    let outputs = result.and_then(|made| {
        let outputs: Result<Vec<Output>, String> =
            made.pickles.iter().map(|it| output(worker, it.as_bytes(), &made.buffer)).collect();
        outputs.map(|outputs| (outputs, made.moved))
    });
    match outputs {
        Ok((outputs, moved)) => {
            if let Err(full) = worker.done(assignment, outputs, moved) {
                raise(worker, assignment, &full.to_string());
            }
        }
        Err(error) => raise(worker, assignment, &error),
    }
    if name == "echo" && words == "and die" {
        die("signal:9");
    }
}

fn raise(worker: &Worker, assignment: &mut Assignment, text: &str) {
    let raised = output(worker, text.as_bytes(), &[]).expect("a short text");
    worker.raised(assignment, raised, Moved::default()).expect("a short record");
}

fn serve(worker: &Worker) {
    loop {
        match worker.next() {
            Next::Run(mut assignment) => perform(worker, &mut assignment),
            Next::ForgetFunction(_) | Next::Granted(_) => {}
            Next::Stop => return,
        }
    }
}

/// Dies if the file is there (and takes it away), or always if so asked.
fn die_if_asked(stage: &str) {
    if std::env::var(format!("TEST_DIE_{stage}")).is_ok() {
        die("3");
    }
    if let Ok(path) = std::env::var(format!("TEST_DIE_ONCE_{stage}")) {
        if std::fs::remove_file(path).is_ok() {
            die("signal:9");
        }
    }
}

fn main() {
    let worker = Worker::from_env().unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "{error}");
        std::process::exit(2)
    });
    die_if_asked("UNREADY");
    worker.ready();
    die_if_asked("READY");
    let threads = if worker.kind() == Kind::Io { worker.slots() } else { 1 };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| serve(&worker));
        }
        serve(&worker);
    });
}
