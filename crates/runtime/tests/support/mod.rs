//! What the tests of a whole session share: a session with workers that need no Python.

#![allow(dead_code)]

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runtime::{
    block, Call, Cause, Constraint, Fault, FunctionSpec, Handle, Input, Kind, OnFailure, Options,
    Overrides, Session, Spawned, Tuning, Value, WaitEnd, WaitFor,
};

/// No wait in a test takes longer, unless something hangs.
pub const LONG: Option<Duration> = Some(Duration::from_secs(60));

/// A folder that goes away.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("alongside-runtime-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a new folder");
        Folder(path)
    }

    /// A named pipe in the folder.
    pub fn pipe(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        let c = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: `c` is a C string.
        assert_eq!(unsafe { libc::mkfifo(c.as_ptr(), 0o600) }, 0);
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Opens the writing end of a pipe: comes back when the body has opened the other end. The
/// body goes on when what this gives is dropped.
pub fn entered(path: &Path) -> File {
    let mut pipe = File::options().write(true).open(path).expect("a named pipe");
    pipe.write_all(b"go").expect("somebody reads");
    pipe
}

/// A block with a text as its pickle.
pub fn text_block(text: &str) -> Vec<u8> {
    let layout = block::Layout::new(text.len(), std::iter::empty());
    let mut bytes = vec![0; layout.total()];
    layout.write(&mut bytes, text.as_bytes(), &[]);
    bytes
}

pub fn value(text: &str) -> Value {
    Value::inline(text_block(text))
}

pub fn text_of(value: &Value) -> String {
    let block = block::parse(value.as_bytes()).expect("a block");
    String::from_utf8(block.pickle.to_vec()).expect("text")
}

/// A session and its functions by name.
pub struct Rig {
    pub session: Session,
    functions: Mutex<HashMap<String, u64>>,
}

pub fn options(workers: usize) -> Options {
    Options {
        workers,
        io_executors: 4,
        worker_command: vec![env!("CARGO_BIN_EXE_runtime-test-worker").into()],
        none_block: text_block("none").into(),
        store_bytes_max: Some(256 << 20),
        ..Options::default()
    }
}

pub fn spec(name: &str) -> FunctionSpec {
    FunctionSpec {
        name: Arc::from(name),
        blob: value(name),
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
    }
}

impl Rig {
    pub fn new(workers: usize) -> Rig {
        Rig::with(options(workers))
    }

    pub fn with(options: Options) -> Rig {
        let session = Session::start(options).expect("a session");
        Rig { session, functions: Mutex::default() }
    }

    /// The function of that name; "io:..." is an I/O task.
    pub fn function(&self, name: &str) -> u64 {
        let mut functions = self.functions.lock().unwrap();
        *functions.entry(name.to_string()).or_insert_with(|| {
            let mut spec = spec(name.strip_prefix("io:").unwrap_or(name));
            if name.starts_with("io:") {
                (spec.kind, spec.cpus) = (Kind::Io, 0);
            }
            self.session.function(spec).expect("alive")
        })
    }

    pub fn call(&self, name: &str, arguments: &str, inputs: Vec<Input>) -> Call {
        Call {
            function: self.function(name),
            arguments: value(arguments),
            inputs,
            files: Vec::new(),
            overrides: Overrides::default(),
            builtin: None,
        }
    }

    pub fn submit(&self, call: Call) -> Spawned {
        self.session.spawn(call).expect("a good call")
    }

    /// Calls a function with futures; its one future.
    pub fn run(&self, name: &str, arguments: &str, inputs: &[&Handle]) -> Handle {
        let inputs = inputs.iter().map(|handle| Input::Handle((*handle).clone())).collect();
        let mut spawned = self.submit(self.call(name, arguments, inputs));
        spawned.returns.pop().expect("one value")
    }

    pub fn with_overrides(&self, name: &str, arguments: &str, overrides: Overrides) -> Handle {
        let call = Call { overrides, ..self.call(name, arguments, vec![]) };
        self.submit(call).returns.pop().expect("one value")
    }

    /// Waits for a value that is there in the end.
    pub fn text(&self, handle: &Handle) -> String {
        match self.outcome(handle) {
            Ok(value) => text_of(&value),
            Err(fault) => panic!("{fault} ({fault:?})"),
        }
    }

    pub fn outcome(&self, handle: &Handle) -> Result<Value, Fault> {
        assert_eq!(handle.wait(LONG, &mut || false), WaitEnd::Ready);
        handle.outcome().expect("waited for")
    }

    /// Waits for a failure; its root's cause.
    pub fn cause(&self, handle: &Handle) -> Cause {
        match self.outcome(handle) {
            Err(Fault::Failed(failure)) => failure.cause.clone(),
            other => panic!("a failure was to come, not {other:?}"),
        }
    }

    /// Waits for what a body raised.
    pub fn raised(&self, handle: &Handle) -> String {
        match self.cause(handle) {
            Cause::Raised(payload) => match block::parse(&payload) {
                Some(block) => String::from_utf8(block.pickle.to_vec()).unwrap(),
                None => String::from_utf8_lossy(&payload).into_owned(),
            },
            other => panic!("the body was to raise, not {other:?}"),
        }
    }

    pub fn drain(&self) {
        assert_eq!(self.session.drain(LONG, &mut || false), WaitEnd::Ready);
    }

    pub fn wait_all(&self, handles: &[Handle]) {
        let end = self.session.wait(handles, WaitFor::All, LONG, &mut || false);
        assert_eq!(end, WaitEnd::Ready);
    }
}
