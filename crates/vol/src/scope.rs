//! For whom bytes are written just now: what a callback is about, while it calls HDF5.
//!
//! HDF5 calls our file driver on the thread that called our connector, from inside that call. What
//! the driver is given is an address and bytes; whose they are is found here.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use runtime::behind::{Label, Name, Ticket};

/// Whether the program wants to follow what is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// It does not.
    No,
    /// It wants a request.
    Ticket,
}

/// Memory that the program keeps alive and unchanged until the write is over.
#[derive(Clone, Copy)]
pub struct Lent {
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Copy)]
struct Now {
    operation: &'static str,
    /// Of the object; it lives as long as the call.
    path: Option<*const Name>,
    wanted: Wanted,
}

// HDF5 closes what is open when the process exits, on a thread whose own values are gone by then:
// what has a destructor is asked for with care. Nothing is lent, and nobody follows, at that time.
thread_local! {
    static NOW: Cell<Option<Now>> = const { Cell::new(None) };
    static TICKET: RefCell<Option<Ticket>> = const { RefCell::new(None) };
    static LENT: RefCell<Vec<Lent>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, what is written is for this operation.
pub struct Scope {
    before: Option<Now>,
    ticket: Option<Ticket>,
}

impl Scope {
    /// Begins an operation. Within another one (HDF5 opens what it needs) it is the inner.
    pub fn enter(operation: &'static str, path: Option<&Name>, wanted: Wanted) -> Scope {
        let path = path.map(std::ptr::from_ref);
        let before = NOW.replace(Some(Now { operation, path, wanted }));
        let ticket = match wanted {
            Wanted::Ticket => exchange(None),
            Wanted::No => None,
        };
        Scope { before, ticket }
    }

    /// Ends it; what follows the bytes that were left to be written, if there are any and somebody
    /// wants to know.
    pub fn leave(self) -> Option<Ticket> {
        let now = NOW.replace(self.before).expect("a scope was entered");
        match now.wanted {
            Wanted::No => None,
            Wanted::Ticket => exchange(self.ticket),
        }
    }
}

/// Puts a ticket into its place, and gives what was there.
fn exchange(ticket: Option<Ticket>) -> Option<Ticket> {
    TICKET.try_with(|slot| slot.replace(ticket)).ok().flatten()
}

/// Says that memory is the program's to keep while `call` runs.
pub fn lend<T>(lent: &[Lent], call: impl FnOnce() -> T) -> T {
    if lent.is_empty() {
        return call();
    }
    let is_noted = LENT.try_with(|all| all.borrow_mut().extend_from_slice(lent)).is_ok();
    let result = call();
    if is_noted {
        let _ = LENT.try_with(|all| {
            let mut all = all.borrow_mut();
            let rest = all.len() - lent.len();
            all.truncate(rest);
        });
    }
    result
}

/// Whether bytes lie in memory that was lent.
pub fn is_lent(bytes: &[u8]) -> bool {
    let (start, end) = (bytes.as_ptr() as usize, bytes.as_ptr() as usize + bytes.len());
    let is_in = |lent: &Lent| lent.start <= start && end <= lent.end;
    LENT.try_with(|all| all.borrow().iter().any(is_in)).unwrap_or(false)
}

/// The label of what is written now.
pub fn label() -> Arc<Label> {
    let Some(Now { operation, path, .. }) = NOW.get() else {
        return Arc::new(Label { operation: "HDF5", object: None });
    };
    // SAFETY: the callback that put it there has not returned, and the object is its argument.
    let object = path.map(|path| unsafe { (*path).clone() });
    Arc::new(Label { operation, object })
}

/// Whether this thread is in a call below, and so has HDF5's lock.
pub fn is_inside() -> bool {
    NOW.get().is_some()
}

/// Whether somebody wants to follow what is written now.
pub fn is_followed() -> bool {
    NOW.get().is_some_and(|now| now.wanted == Wanted::Ticket)
}

/// What is to follow a write of now, if somebody wants to.
pub fn ticket() -> Option<Ticket> {
    let get = |slot: &RefCell<Option<Ticket>>| slot.borrow_mut().get_or_insert_default().clone();
    is_followed().then(|| TICKET.try_with(get).ok()).flatten()
}
