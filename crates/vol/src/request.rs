//! Requests: what an event set holds for a call that has returned before it is done.

use std::ffi::c_int;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use runtime::behind::{Failed, Name, Ticket};

use crate::abi::{
    Notify, OptionalArgs, Ptr, RequestSpecificArgs, Status, DONE, FAILED, REQUEST_CANNOT_CANCEL,
    REQUEST_ERROR_STACK, REQUEST_EXECUTION_TIME, REQUEST_FAILED, REQUEST_IN_PROGRESS,
    REQUEST_SUCCEEDED,
};
use crate::object::{Container, Object};
use crate::postponed::{self, Postponed, Standing};
use crate::{opened, stack};

/// The time that means "as long as it takes".
const FOREVER_NS: u64 = u64::MAX;

/// A call that goes on. HDF5 takes a request for an object, too: it asks for its wrap context
/// before it waits for it. So an object is what it begins with.
#[repr(C)]
pub struct Request {
    /// The request of the connector below; null: there is none, and the ticket is followed.
    object: Object,
    what: What,
    /// When the call returned.
    made: SystemTime,
}

enum What {
    /// The connector below has it.
    Below(Ptr),
    /// Its bytes are being written.
    Ticket(Ticket),
    /// It is to be done, or was, and its bytes are being written.
    Postponed(Arc<Postponed>),
}

impl Request {
    pub fn below(container: &Arc<Container>, request: Ptr) -> Ptr {
        Request::make(container, request, What::Below(request))
    }

    pub fn ticket(container: &Arc<Container>, ticket: Ticket) -> Ptr {
        Request::make(container, std::ptr::null_mut(), What::Ticket(ticket))
    }

    pub fn postponed(container: &Arc<Container>, one: Arc<Postponed>) -> Ptr {
        Request::make(container, std::ptr::null_mut(), What::Postponed(one))
    }

    fn make(container: &Arc<Container>, below: Ptr, what: What) -> Ptr {
        let object = Object::new(container, below, Name::default());
        Box::into_raw(Box::new(Request { object, what, made: SystemTime::now() })).cast()
    }

    /// # Safety
    ///
    /// A request that was made here and is not freed.
    unsafe fn of<'a>(request: Ptr) -> (&'a Arc<Container>, &'a What) {
        // SAFETY: the caller promised.
        let Request { object, what, .. } = unsafe { &*request.cast() };
        (&object.container, what)
    }

    /// When it was made, and how long ago that is, in nanoseconds since 1970 and of time.
    fn times_ns(&self) -> [u64; 2] {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let begun = self.made.duration_since(UNIX_EPOCH).unwrap_or_default();
        [ns(begun), ns(self.made.elapsed().unwrap_or_default())]
    }
}

/// How a ticket stands, after at most so long (`None`: as long as it takes).
fn ticket_standing(ticket: &Ticket, timeout: Option<Duration>) -> c_int {
    match opened::wait_for(ticket, timeout) {
        false => REQUEST_IN_PROGRESS,
        true if ticket.failed().is_some() => REQUEST_FAILED,
        true => REQUEST_SUCCEEDED,
    }
}

/// How a call stands that is not the connector's below, after at most so long. Who waits does it
/// himself if it is not done: he has HDF5's lock, and nobody else can.
fn standing(container: &Container, what: &What, timeout_ns: u64) -> c_int {
    let timeout = (timeout_ns != FOREVER_NS).then(|| Duration::from_nanos(timeout_ns));
    let one = match what {
        What::Below(_) => return REQUEST_IN_PROGRESS,
        What::Ticket(ticket) => return noted(container, ticket_standing(ticket, timeout)),
        What::Postponed(one) => one,
    };
    let began = Instant::now();
    postponed::run_until(container.hdf5, one, timeout);
    let standing = match one.standing() {
        Standing::Noted => REQUEST_IN_PROGRESS,
        Standing::Failed(_) => REQUEST_FAILED,
        Standing::Done(None) => REQUEST_SUCCEEDED,
        Standing::Done(Some(ticket)) => {
            let left = timeout.map(|timeout| timeout.saturating_sub(began.elapsed()));
            ticket_standing(&ticket, left)
        }
    };
    noted(container, standing)
}

/// What an event set is about to be told.
fn noted(container: &Container, standing: c_int) -> c_int {
    if standing == REQUEST_FAILED {
        postponed::fails_a_set(container.hdf5);
    }
    standing
}

/// What went wrong with it, if it is over.
fn failure(what: &What) -> Option<Failed> {
    match what {
        What::Below(_) => None,
        What::Ticket(ticket) => ticket.failed(),
        What::Postponed(one) => match one.standing() {
            Standing::Failed(failed) => Some(failed),
            Standing::Done(ticket) => ticket.and_then(|ticket| ticket.failed()),
            Standing::Noted => None,
        },
    }
}

pub unsafe extern "C" fn wait(request: Ptr, timeout_ns: u64, status: *mut c_int) -> Status {
    // SAFETY: HDF5 passes what we made.
    let (container, what) = unsafe { Request::of(request) };
    match what {
        // SAFETY: a request of the connector below.
        What::Below(below) => unsafe {
            (container.hdf5.symbols.request_wait)(*below, container.below, timeout_ns, status)
        },
        what => {
            // SAFETY: HDF5 wants the standing there.
            unsafe { *status = standing(container, what, timeout_ns) };
            DONE
        }
    }
}

/// Tells when it is over: here, before this returns, because a library that is not thread-safe must
/// not be called from elsewhere.
pub unsafe extern "C" fn notify(request: Ptr, tell: Notify, context: Ptr) -> Status {
    // SAFETY: HDF5 passes what we made.
    let (container, what) = unsafe { Request::of(request) };
    match what {
        // SAFETY: a request of the connector below.
        What::Below(below) => unsafe {
            (container.hdf5.symbols.request_notify)(*below, container.below, tell, context)
        },
        // SAFETY: the program's function, with its argument.
        what => unsafe { tell(context, standing(container, what, FOREVER_NS)) },
    }
}

/// What is written cannot be called back: it is under way, or over.
pub unsafe extern "C" fn cancel(request: Ptr, status: *mut c_int) -> Status {
    // SAFETY: HDF5 passes what we made.
    let (container, what) = unsafe { Request::of(request) };
    match what {
        // SAFETY: a request of the connector below.
        What::Below(below) => unsafe {
            (container.hdf5.symbols.request_cancel)(*below, container.below, status)
        },
        what => {
            let standing = match standing(container, what, 0) {
                REQUEST_IN_PROGRESS => REQUEST_CANNOT_CANCEL,
                over => over,
            };
            // SAFETY: HDF5 wants the standing there.
            unsafe { *status = standing };
            DONE
        }
    }
}

pub unsafe extern "C" fn specific(request: Ptr, args: *mut RequestSpecificArgs) -> Status {
    // SAFETY: HDF5 passes what we made.
    let (container, what) = unsafe { Request::of(request) };
    let symbols = &container.hdf5.symbols;
    if let What::Below(below) = what {
        // SAFETY: a request of the connector below.
        return unsafe { (symbols.request_specific)(*below, container.below, args) };
    }
    // SAFETY: an argument block of HDF5.
    let args = unsafe { &mut *args };
    if args.operation == REQUEST_EXECUTION_TIME {
        // SAFETY: what we made, and two numbers that HDF5 wants there.
        unsafe {
            let times = (*request.cast::<Request>()).times_ns();
            args.words.iter().zip(times).for_each(|(word, ns)| word.cast::<u64>().write(ns));
        }
        return DONE;
    }
    if args.operation != REQUEST_ERROR_STACK {
        return FAILED;
    }
    // SAFETY: no arguments; the id is the program's.
    let stack = unsafe { (symbols.stack_create)() };
    if let Some(failed) = failure(what) {
        stack::push(container.hdf5, stack, &failed.to_string());
        opened::told(&failed);
        postponed::told(container.hdf5, &failed);
    }
    args.words[0] = stack as usize as Ptr;
    DONE
}

pub unsafe extern "C" fn optional(request: Ptr, args: *mut OptionalArgs) -> Status {
    // SAFETY: HDF5 passes what we made.
    let (container, what) = unsafe { Request::of(request) };
    match what {
        // SAFETY: a request of the connector below.
        What::Below(below) => unsafe {
            (container.hdf5.symbols.request_optional)(*below, container.below, args)
        },
        What::Ticket(_) | What::Postponed(_) => FAILED,
    }
}

pub unsafe extern "C" fn free(request: Ptr) -> Status {
    // SAFETY: HDF5 passes what we made, and forgets it.
    let request = unsafe { Box::from_raw(request.cast::<Request>()) };
    let container = &request.object.container;
    match &request.what {
        // SAFETY: a request of the connector below.
        What::Below(below) => unsafe {
            (container.hdf5.symbols.request_free)(*below, container.below)
        },
        What::Ticket(_) | What::Postponed(_) => DONE,
    }
}
