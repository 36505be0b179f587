//! Which engine is chosen where io_uring is forbidden, missing or failing, and what it says.
//!
//! Each case is a process of its own (this program again, with arguments), because a filter of
//! system calls cannot be taken off and the environment is everyone's.

use std::path::Path;
use std::process::{Command, ExitCode};

use engine::{about, conformance, open, Options, Prefer, ENVIRONMENT};

/// What a case finds, and does.
struct Case {
    name: &'static str,
    /// A system call and the errno that a filter answers it with.
    filter: Option<(i64, i32)>,
    environment: Option<&'static str>,
    check: fn(),
}

const CASES: [Case; 9] = [
    Case {
        name: "a forbidden setup gives threads, which conform",
        filter: Some((libc::SYS_io_uring_setup, libc::EPERM)),
        environment: None,
        check: || {
            gives_threads(&["io_uring is not available", "io_uring_setup", "EPERM", "seccomp"]);
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
            conformance::run(&mut || open(&Options::default()).expect("threads"), folder);
        },
    },
    Case {
        name: "a kernel without io_uring gives threads",
        filter: Some((libc::SYS_io_uring_setup, libc::ENOSYS)),
        environment: None,
        check: || gives_threads(&["ENOSYS"]),
    },
    Case {
        name: "a security module that forbids it gives threads",
        filter: Some((libc::SYS_io_uring_setup, libc::EACCES)),
        environment: None,
        check: || gives_threads(&["EACCES"]),
    },
    Case {
        name: "a ring that may be made and not used gives threads",
        filter: Some((libc::SYS_io_uring_enter, libc::EPERM)),
        environment: None,
        check: || gives_threads(&["io_uring_enter", "EPERM"]),
    },
    Case {
        name: "a ring that may not be asked what it can gives threads",
        filter: Some((libc::SYS_io_uring_register, libc::EPERM)),
        environment: None,
        check: || gives_threads(&["io_uring_register", "EPERM"]),
    },
    Case {
        name: "a lack of memory is an error",
        filter: Some((libc::SYS_io_uring_setup, libc::ENOMEM)),
        environment: None,
        check: || {
            let error = open(&Options::default()).err().expect("an error").to_string();
            assert!(error.contains("io_uring_setup"), "{error}");
            let about = about();
            assert!(about.name == "none" && about.reason == error, "{about:?}");
        },
    },
    Case {
        name: "asking for a forbidden ring is an error that says so",
        filter: Some((libc::SYS_io_uring_setup, libc::EPERM)),
        environment: Some("io_uring"),
        check: || {
            let error = open(&Options::default()).err().expect("an error").to_string();
            assert!(error.contains("was asked for") && error.contains("EPERM"), "{error}");
        },
    },
    Case {
        name: "the environment may ask for threads, and what asks itself is not overruled",
        filter: None,
        environment: Some("threads"),
        check: || {
            gives_threads(&["as ALONGSIDE_ENGINE says"]);
            let options = Options { prefer: Prefer::Uring, ..Options::default() };
            let name = open(&options).map_or("none", |engine| engine.about().name);
            assert_ne!(name, "threads");
        },
    },
    Case {
        name: "an unknown word in the environment is refused",
        filter: None,
        environment: Some("aio"),
        check: || {
            let error = open(&Options::default()).err().expect("an error").to_string();
            assert!(error.contains("ALONGSIDE_ENGINE=\"aio\""), "{error}");
        },
    },
];

fn gives_threads(words: &[&str]) {
    let about = about();
    assert_eq!(about.name, "threads", "{}", about.reason);
    for word in words {
        assert!(about.reason.contains(word), "{word:?} is not in {:?}", about.reason);
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("--case") {
        let number: usize = arguments.next().expect("a number").parse().expect("a number");
        let case = &CASES[number];
        if let Some((call, errno)) = case.filter {
            forbid(call, errno);
        }
        (case.check)();
        return ExitCode::SUCCESS;
    }
    let program = std::env::current_exe().expect("this program");
    let failed = (0..).zip(&CASES).filter(|(number, case)| {
        let mut child = Command::new(&program);
        child.args(["--case", &number.to_string()]).env_remove(ENVIRONMENT);
        child.envs(case.environment.map(|value| (ENVIRONMENT, value)));
        let passed = child.status().expect("this program again").success();
        println!("{} ... {}", case.name, if passed { "ok" } else { "FAILED" });
        !passed
    });
    match failed.count() {
        0 => ExitCode::SUCCESS,
        count => {
            println!("{count} of {} failed", CASES.len());
            ExitCode::FAILURE
        }
    }
}

/// Has the kernel answer a system call with an errno, in this process and for good.
fn forbid(call: i64, errno: i32) {
    let step = |code: u32, jump_true, jump_false, k| libc::sock_filter {
        code: code as u16,
        jt: jump_true,
        jf: jump_false,
        k,
    };
    let answer = libc::SECCOMP_RET_ERRNO | errno as u32;
    let mut steps = [
        // The number of the system call is the first word.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, answer),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: takes numbers only.
    let private = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(private, 0, "a filter without privileges");
    // SAFETY: the program and its steps live through the call.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) };
    assert_eq!(set, 0, "a filter: {}", std::io::Error::last_os_error());
}
