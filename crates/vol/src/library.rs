//! The HDF5 libraries of this process, each with its own connector.
//!
//! The plugin is linked to no HDF5: one that was would pull in a second copy beside the one in use
//! (the wheels of h5py and netCDF4 bring theirs, under hashed names, visible to nobody else). So
//! the functions are looked up in the library that asks for the plugin, which is found by the
//! return address of its call. Its handle is opened as it stands (`RTLD_NOLOAD`), not promoted to
//! global scope.
//!
//! One plugin file is loaded once however many libraries ask: each gets one of [`LIBRARIES_MAX`]
//! slots, and callbacks that are given no object are compiled once a slot ([`get`]).

use std::ffi::{c_int, c_uint, c_void, CStr};
use std::sync::OnceLock;

use parking_lot::Mutex;

use crate::abi::{Id, Ptr, Status, Text, NO_ID};
use crate::symbols::{Symbols, Threads};

/// HDF5 libraries in one process, at most.
pub const LIBRARIES_MAX: usize = 4;

const FRAMES_MAX: usize = 16;

/// `H5Epush2`, whose message is a format.
type Push = unsafe extern "C" fn(Id, Text, Text, c_uint, Id, Id, Id, Text, ...) -> Status;

/// `H5Eget_auto1`.
pub(crate) type GetPrinting = unsafe extern "C" fn(*mut Ptr, *mut Ptr) -> Status;
/// `H5Eset_auto1`.
pub(crate) type SetPrinting = unsafe extern "C" fn(Ptr, Ptr) -> Status;

/// One HDF5 library.
pub struct Library {
    /// Which slot it has.
    pub slot: usize,
    base: usize,
    /// Its functions.
    pub symbols: Symbols,
    pub(crate) push: Push,
    is_terminating: Option<unsafe extern "C" fn(*mut bool) -> Status>,
    /// `H5Eget_auto1` and `H5Eset_auto1`, in libraries that have the deprecated functions.
    pub(crate) old_printing: Option<(GetPrinting, SetPrinting)>,
    /// What it has for calls from other threads, if it is thread-safe.
    pub threads: Option<Threads>,
    /// Its file drivers: ours and the plain one.
    pub drivers: Mutex<Drivers>,
    /// The class of our errors and its two messages, once they were needed.
    pub(crate) error_classes: Mutex<Option<[Id; 3]>>,
}

/// What HDF5 calls file drivers.
pub struct Drivers {
    /// Ours; `NO_ID`: not registered.
    pub ours: Id,
    /// The plain one (`sec2`), once it was asked for.
    pub plain: Id,
}

impl Library {
    /// Whether HDF5 is on its way out: nobody sees what calls return.
    pub fn is_terminating(&self) -> bool {
        let mut is_terminating = false;
        if let Some(ask) = self.is_terminating {
            // SAFETY: it only sets the flag.
            unsafe { ask(&raw mut is_terminating) };
        }
        is_terminating
    }
}

static LIBRARIES: [OnceLock<Library>; LIBRARIES_MAX] = [const { OnceLock::new() }; LIBRARIES_MAX];
static ADDING: Mutex<()> = Mutex::new(());

/// The library of a slot. Callbacks of a slot exist only once it is taken.
pub fn get<const SLOT: usize>() -> &'static Library {
    LIBRARIES[SLOT].get().expect("a connector is given out after its library is known")
}

/// The library of a slot, if it is taken.
pub fn of_slot(slot: usize) -> Option<&'static Library> {
    LIBRARIES.get(slot)?.get()
}

/// The library that called into this plugin.
pub fn of_the_caller() -> Result<&'static Library, String> {
    let (base, path) = caller().ok_or("it is not known where it is loaded")?;
    stay()?;
    let _one_at_a_time = ADDING.lock();
    for (slot, place) in LIBRARIES.iter().enumerate() {
        match place.get() {
            Some(library) if library.base == base => return Ok(library),
            Some(_) => {}
            None => {
                let library = load(slot, base, path)?;
                return Ok(place.get_or_init(|| library));
            }
        }
    }
    Err(format!("there are more than {LIBRARIES_MAX} of them in this process"))
}

/// Keeps this plugin in memory to the end of the process. HDF5 unloads plugins when it goes, and
/// threads of ours may be about to begin.
fn stay() -> Result<(), &'static str> {
    let (_, path) = place_of(stay as *mut c_void).ok_or("it is not known where the plugin is")?;
    let flags = libc::RTLD_NOLOAD | libc::RTLD_NODELETE | libc::RTLD_LAZY;
    // SAFETY: nothing is loaded: what is there is marked.
    match unsafe { libc::dlopen(path.as_ptr(), flags) }.is_null() {
        true => Err("the plugin cannot be kept in memory"),
        false => Ok(()),
    }
}

/// Where an address is loaded: the base of its file, and the file's name.
fn place_of(address: *mut c_void) -> Option<(usize, &'static CStr)> {
    // SAFETY: plain numbers and pointers, for which zero is a value.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is only compared with what is mapped.
    if unsafe { libc::dladdr(address, &raw mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's own text, which stays while the file is loaded; a library that has
    // called us is not unloaded before it has terminated the connector.
    Some((info.dli_fbase as usize, unsafe { CStr::from_ptr(info.dli_fname) }))
}

/// The first file on the way up the stack from this plugin that is another. (Below it may be one
/// that stands in for `backtrace`, as the sanitizers do.)
fn caller() -> Option<(usize, &'static CStr)> {
    let (ours, _) = place_of(caller as *mut c_void)?;
    let mut frames = [std::ptr::null_mut(); FRAMES_MAX];
    // SAFETY: so many addresses fit.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), FRAMES_MAX as c_int) };
    let frames = &frames[..usize::try_from(count).unwrap_or(0)];
    let places = frames.iter().filter_map(|frame| place_of(*frame));
    places.skip_while(|(base, _)| *base != ours).find(|(base, _)| *base != ours)
}

fn load(slot: usize, base: usize, path: &CStr) -> Result<Library, String> {
    // SAFETY: nothing is loaded, only a handle of what is; null is the program itself.
    let handle = unsafe {
        let found = libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if found.is_null() {
            libc::dlopen(std::ptr::null(), libc::RTLD_LAZY)
        } else {
            found
        }
    };
    // SAFETY: a handle of the loader, and names that end with a zero.
    let find = |name: &CStr| unsafe { libc::dlsym(handle, name.as_ptr()) };
    let missing = |name| format!("{} has no {name}", path.to_string_lossy());
    let symbols = Symbols::load(find).map_err(missing)?;
    let push = find(c"H5Epush2");
    if push.is_null() {
        return Err(missing("H5Epush2"));
    }
    let threads = Threads::of(find);
    let is_terminating = find(c"H5is_library_terminating");
    let (get, set) = (find(c"H5Eget_auto1"), find(c"H5Eset_auto1"));
    // SAFETY: functions of HDF5 by these names have these declarations; null is none.
    let (get, set) = unsafe {
        (
            std::mem::transmute::<*mut c_void, Option<GetPrinting>>(get),
            std::mem::transmute::<*mut c_void, Option<SetPrinting>>(set),
        )
    };
    let old_printing = get.zip(set);
    // SAFETY: functions of HDF5 by these names have these declarations.
    let (push, is_terminating) = unsafe {
        (
            std::mem::transmute::<*mut c_void, Push>(push),
            std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn(*mut bool) -> Status>>(
                is_terminating,
            ),
        )
    };
    let drivers = Mutex::new(Drivers { ours: NO_ID, plain: NO_ID });
    let error_classes = Mutex::new(None);
    Ok(Library {
        slot,
        base,
        symbols,
        push,
        is_terminating,
        old_printing,
        threads,
        drivers,
        error_classes,
    })
}
