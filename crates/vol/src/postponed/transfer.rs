//! A transfer with all that HDF5 needs for it.

use std::ffi::{c_int, c_uint, CStr};
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use runtime::behind::{Failed, Label, Name};

use super::plan::Identity;
use super::Standing;
use crate::abi::{ErrorEntry, Id, Ptr, Status, DEFAULT, SPACE_ALL};
use crate::driver;
use crate::library::Library;
use crate::object::Container;
use crate::scope::{self, Lent, Scope, Wanted};

/// The memory of a transfer: from the first byte of the program's buffer that it touches.
pub enum Memory {
    /// A copy.
    Copied(Vec<u8>),
    /// The program's own, which it keeps until the transfer is over.
    Kept(usize),
}

/// What HDF5 is to read or write.
pub struct Transfer {
    pub container: Arc<Container>,
    pub path: Name,
    /// The dataset of the connector below.
    pub below: Ptr,
    pub identity: Identity,
    pub is_write: bool,
    /// How far into the program's buffer the first byte is, and how many there are.
    pub start: usize,
    pub len: usize,
    /// How many of them were copied.
    pub copied: usize,
    /// Somebody follows its bytes.
    pub is_followed: bool,
    /// What is given back when it is done.
    pub held: Mutex<Option<Held>>,
}

/// Memory, and copies of ids: a type and two spaces, which may be "all".
pub struct Held {
    pub hdf5: &'static Library,
    pub memory: Memory,
    pub kind: Id,
    pub spaces: [Id; 2],
}

// SAFETY: the object below is HDF5's, and touched only with its lock; the rest are ids and memory
// that nobody else has, or that the program keeps.
unsafe impl Send for Transfer {}
// SAFETY: as above.
unsafe impl Sync for Transfer {}

/// A call in a state of HDF5's own, which one that is under way on this thread does not share.
struct Apart<'a> {
    hdf5: &'static Library,
    call: &'a mut dyn FnMut() -> Status,
    outcome: Result<(), String>,
}

const NO_REASON: &str = "HDF5 gives no reason";

impl Transfer {
    /// Does it; HDF5's lock is held, and its errors are seen to.
    pub fn run(&self) -> Standing {
        let operation = match self.is_write {
            true => "write of a dataset",
            false => "read of a dataset",
        };
        let wanted = if self.is_followed { Wanted::Ticket } else { Wanted::No };
        let scope = Scope::enter(operation, Some(&self.path), wanted);
        let held = self.held.lock().take().expect("a transfer is done once");
        let settings = self.container.settings;
        let lent = self.lent(&held.memory);
        let call = || scope::lend(&lent, || self.call(&held));
        let (outcome, used) = driver::with(settings, call);
        self.container.note_use(used);
        let ticket = scope.leave();
        let Err(why) = outcome else { return Standing::Done(ticket) };
        let label = Arc::new(Label { operation, object: Some(self.path.clone()) });
        let file = self.container.name.get().map_or("", |name| &**name).into();
        let errno = io::Error::from_raw_os_error(libc::EIO).into();
        let (offset, len, why) = (0, self.len as u64, Some(why.into()));
        Standing::Failed(Failed { file, offset, len, label, errno, why })
    }

    /// What is the program's to keep, of a write.
    fn lent(&self, memory: &Memory) -> Vec<Lent> {
        match *memory {
            Memory::Kept(start) if self.is_write => vec![Lent { start, end: start + self.len }],
            _ => Vec::new(),
        }
    }

    fn call(&self, held: &Held) -> Result<(), String> {
        let hdf5 = self.container.hdf5;
        let symbols = &hdf5.symbols;
        let list = hdf5.threads.as_ref().map_or(DEFAULT, |it| it.transfer_list());
        // Where the program's buffer would begin; HDF5 touches nothing before `start`.
        let begin = match &held.memory {
            Memory::Copied(bytes) => bytes.as_ptr() as usize,
            Memory::Kept(start) => *start,
        }
        .wrapping_sub(self.start);
        let call = if self.is_write { symbols.dataset_write } else { symbols.dataset_read };
        self.apart(&mut || {
            let (mut below, mut buffer) = (self.below, begin as Ptr);
            let (mut kind, [mut memory, mut file]) = (held.kind, held.spaces);
            let null = std::ptr::null_mut();
            // SAFETY: one of each, ids of ours and memory that lives as long as this.
            unsafe {
                call(
                    1,
                    &raw mut below,
                    self.container.below,
                    &raw mut kind,
                    &raw mut memory,
                    &raw mut file,
                    list,
                    &raw mut buffer,
                    null,
                )
            }
        })
    }

    /// Closes its dataset, which the program has closed.
    pub fn close(&self) {
        let scope = Scope::enter("close of a dataset", Some(&self.path), Wanted::No);
        let close = self.container.hdf5.symbols.dataset_close;
        let (_, used) = driver::with(self.container.settings, || {
            // SAFETY: the object below is open, and nobody uses it any more.
            let _ = self.apart(&mut || unsafe {
                close(self.below, self.container.below, DEFAULT, std::ptr::null_mut())
            });
        });
        self.container.note_use(used);
        scope.leave();
    }

    /// Calls HDF5 as a program does: with a state of its own, also inside of another call. Who
    /// looks through the ids of a kind is called back in such a state. `Err`: why it failed.
    fn apart(&self, call: &mut dyn FnMut() -> Status) -> Result<(), String> {
        let hdf5 = self.container.hdf5;
        let Some(threads) = &hdf5.threads else { return Err(NO_REASON.into()) };
        let mut apart = Apart { hdf5, call, outcome: Err(NO_REASON.into()) };
        // SAFETY: an id that is held, and a function for the time of this call.
        unsafe {
            let kind = (threads.kind_of)(self.container.below);
            (threads.each_id)(kind, run_apart, (&raw mut apart).cast());
        }
        apart.outcome
    }
}

unsafe extern "C" fn run_apart(_id: Id, apart: Ptr) -> Status {
    const NO_MORE: Status = 1;
    // SAFETY: what `apart` passed, which lives.
    let apart = unsafe { &mut *apart.cast::<Apart<'_>>() };
    apart.outcome = match (apart.call)() {
        status if status < 0 => Err(why(apart.hdf5)),
        _ => Ok(()),
    };
    NO_MORE
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(threads) = &self.hdf5.threads else { return };
        // SAFETY: ids of ours.
        unsafe {
            (threads.type_close)(self.kind);
            for space in self.spaces.into_iter().filter(|space| *space != SPACE_ALL) {
                (self.hdf5.symbols.space_close)(space);
            }
        }
    }
}

/// What HDF5 says of a call that has just failed: the innermost of its reasons.
fn why(hdf5: &Library) -> String {
    let mut text = String::new();
    if let Some(threads) = &hdf5.threads {
        // SAFETY: a function for the time of this call, and a text for it.
        unsafe { (threads.each_error)(DEFAULT, 0, note_error, (&raw mut text).cast()) };
    }
    match text.is_empty() {
        true => NO_REASON.into(),
        false => text,
    }
}

unsafe extern "C" fn note_error(depth: c_uint, entry: *const ErrorEntry, said: Ptr) -> c_int {
    // SAFETY: HDF5 passes an entry of its stack, and what `why` passed.
    unsafe {
        let text = (*entry).text;
        if depth == 0 && !text.is_null() {
            *said.cast::<String>() = CStr::from_ptr(text).to_string_lossy().into_owned();
        }
    }
    0
}
