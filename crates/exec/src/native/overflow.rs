//! What happens when a task overflows its stack: a text that names it, and the usual death.
//!
//! The guard page makes the overflow a segmentation fault. The handler runs on a stack of its own
//! (each worker thread has one), writes one line with plain system calls and hands the signal to
//! whoever had it before.

use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Once;

/// Bytes of the stack of the handler.
const HANDLER_STACK_BYTES: usize = 64 << 10;

/// Writes what there is to say of a fault at this address, if it is an overflow of ours. Called in
/// a signal handler: it must not allocate and not wait.
pub type Explain = fn(address: usize);

static EXPLAIN: AtomicPtr<()> = AtomicPtr::new(null_mut());
static mut BEFORE: libc::sigaction = unsafe_zeroed();

const fn unsafe_zeroed() -> libc::sigaction {
    // SAFETY: all fields are integers, an optional function and a set of bits.
    unsafe { std::mem::zeroed() }
}

/// Has faults explained from now on, in the whole process. The first caller's text is used.
pub fn install(explain: Explain) -> io::Result<()> {
    static INSTALLED: Once = Once::new();
    let mut result = Ok(());
    INSTALLED.call_once(|| {
        EXPLAIN.store(explain as *mut (), Ordering::Release);
        let mut action = unsafe_zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: both places are valid; nobody else writes `BEFORE`, and only once.
        if unsafe { libc::sigaction(libc::SIGSEGV, &action, &raw mut BEFORE) } != 0 {
            result = Err(io::Error::last_os_error());
        }
    });
    result
}

extern "C" fn handler(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid `info` for a segmentation fault.
    let address = unsafe { (*info).si_addr() } as usize;
    let explain = EXPLAIN.load(Ordering::Acquire);
    if !explain.is_null() {
        // SAFETY: only `install` writes it, from a function of this type.
        let explain = unsafe { std::mem::transmute::<*mut (), Explain>(explain) };
        explain(address);
    }
    // SAFETY: `BEFORE` was written before this handler was put in place. Its action is either a
    // function of the form that its flags tell, or one of the two constants.
    unsafe {
        let before = &raw const BEFORE;
        let action = (*before).sa_sigaction;
        if action == libc::SIG_DFL || action == libc::SIG_IGN {
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
        } else if (*before).sa_flags & libc::SA_SIGINFO != 0 {
            type Long = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
            std::mem::transmute::<usize, Long>(action)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(i32)>(action)(signal);
        }
    }
}

/// Gives the calling thread a stack for the handler. It stays for the life of the process, as a
/// signal may come until the very end of the thread.
pub fn prepare_thread() {
    // SAFETY: asks only.
    let mut now: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: `now` is a valid place for the answer.
    unsafe { libc::sigaltstack(null_mut(), &mut now) };
    if now.ss_flags & libc::SS_DISABLE == 0 {
        return;
    }
    let memory = Box::leak(vec![0u8; HANDLER_STACK_BYTES].into_boxed_slice());
    let stack =
        libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
    // SAFETY: the memory was leaked: it stays.
    unsafe { libc::sigaltstack(&stack, null_mut()) };
}
