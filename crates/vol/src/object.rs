//! What the program holds for an object: the object below, and the file that it is in.

use std::ffi::{c_ulong, c_void, CStr};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use runtime::behind::Name;

use crate::abi::{Id, Location, Ptr, Req, Status, LOCATION_BY_NAME};
use crate::info::Settings;
use crate::library::Library;
use crate::opened::Key;
use crate::postponed::plan::{Elements, Nature};
use crate::request::Request;
use crate::scope::{Scope, Wanted};
use crate::{driver, postponed};

/// What all objects of a file share: the connector below. Its id is held while one of them lives.
pub struct Container {
    /// Whose objects they are.
    pub hdf5: &'static Library,
    /// The connector below.
    pub below: Id,
    /// The files on disk that were opened or written through it: device and inode. Beside its own
    /// these are the sources of virtual datasets.
    pub files: Mutex<Vec<Key>>,
    /// How it is written.
    pub settings: Settings,
    /// The file, as it was opened.
    pub name: OnceLock<Box<str>>,
    /// Transfers may be done later: the file is our driver's, and no other process looks at it.
    pub postpones: AtomicBool,
    /// HDF5's number of the file, if it was opened for writing.
    pub writable_file: OnceLock<c_ulong>,
    /// Bytes that are copied for such transfers.
    pub postponed_bytes: AtomicUsize,
}

impl Container {
    /// Of a file that is not open yet.
    pub fn new(hdf5: &'static Library, below: Id, settings: Settings, postpones: bool) -> Self {
        Container {
            hdf5,
            below,
            files: Mutex::default(),
            settings,
            name: OnceLock::new(),
            postpones: AtomicBool::new(postpones),
            writable_file: OnceLock::new(),
            postponed_bytes: AtomicUsize::new(0),
        }
    }

    /// Whether it is one of these files.
    pub fn has_any(&self, keys: &[Key]) -> bool {
        self.files.lock().iter().any(|key| keys.contains(key))
    }

    /// Files were opened or written through it.
    pub fn note_use(&self, used: Vec<Key>) {
        if used.is_empty() {
            return;
        }
        let mut files = self.files.lock();
        let new = used.into_iter().filter(|key| !files.contains(key)).collect::<Vec<_>>();
        files.extend(new);
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // SAFETY: the id that was kept when this was made.
        unsafe { (self.hdf5.symbols.drop_id)(self.below) };
    }
}

/// An object of ours: what HDF5 passes to our callbacks.
pub struct Object {
    /// Shared by all of its file.
    pub container: Arc<Container>,
    /// The object of the connector below.
    pub below: Ptr,
    /// Its path in the file, once it is known.
    pub path: Name,
    /// What a dataset is, once that was asked for.
    pub nature: OnceLock<Option<Nature>>,
    /// What elements it has, once that was told.
    pub elements: OnceLock<Option<Elements>>,
}

impl Object {
    /// Puts an object below into one of ours; null stays null.
    pub fn wrap(container: &Arc<Container>, below: Ptr, path: Name) -> Ptr {
        if below.is_null() {
            return below;
        }
        Box::into_raw(Box::new(Object::new(container, below, path))).cast()
    }

    /// An object of a container.
    pub fn new(container: &Arc<Container>, below: Ptr, path: Name) -> Object {
        let container = container.clone();
        Object { container, below, path, nature: OnceLock::new(), elements: OnceLock::new() }
    }

    /// What HDF5 gave us back.
    ///
    /// # Safety
    ///
    /// It is a pointer that [`Object::wrap`] made and nobody has freed.
    pub unsafe fn of<'a>(object: *const c_void) -> &'a Object {
        // SAFETY: the caller promised.
        unsafe { &*object.cast() }
    }

    /// The object below; of null, null.
    ///
    /// # Safety
    ///
    /// As of [`Object::of`], or null.
    pub unsafe fn below_of(object: *const c_void) -> Ptr {
        if object.is_null() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller promised.
        unsafe { Object::of(object) }.below
    }

    /// Frees an object whose object below is closed. The container may go with it, which calls
    /// HDF5: errors that are there stay.
    ///
    /// # Safety
    ///
    /// As of [`Object::of`], and nobody uses it any more.
    pub unsafe fn free(object: Ptr) {
        // SAFETY: the caller promised.
        drop(unsafe { Box::from_raw(object.cast::<Object>()) });
    }

    /// The path of something that is found from here.
    ///
    /// # Safety
    ///
    /// `name` is null or a C string.
    pub unsafe fn path_to(&self, name: *const std::ffi::c_char) -> Name {
        // SAFETY: the caller promised.
        let text = unsafe { self.text_to(name) };
        Arc::new(text.map_or_else(OnceLock::new, OnceLock::from))
    }

    /// As [`Object::path_to`], as a text.
    ///
    /// # Safety
    ///
    /// As of [`Object::path_to`].
    pub unsafe fn text_to(&self, name: *const std::ffi::c_char) -> Option<Box<str>> {
        if name.is_null() {
            return None;
        }
        // SAFETY: the caller promised.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        if name.starts_with('/') {
            return Some(Box::from(&*name));
        }
        let base = self.path.get()?.trim_end_matches('/');
        Some(format!("{base}/{name}").into())
    }

    /// Runs a call of the connector below for this object: `call` gets the object below, its
    /// connector, and where to put a request. Bytes that it leaves to be written are this object's.
    /// Transfers that were noted are done first.
    pub fn act<T: Outcome>(
        &self,
        operation: &'static str,
        request: Req,
        call: impl FnOnce(Ptr, Id, Req) -> T,
    ) -> T {
        postponed::before(self.container.hdf5);
        self.act_beside(operation, request, call)
    }

    /// As [`Object::act`], of a call that neither sees nor changes what a dataset holds.
    pub fn act_beside<T: Outcome>(
        &self,
        operation: &'static str,
        request: Req,
        call: impl FnOnce(Ptr, Id, Req) -> T,
    ) -> T {
        // A refresh closes the object and opens it anew: what is used after the call is kept.
        let (container, path) = (self.container.clone(), self.path.clone());
        act_beside(&container, operation, Some(&path), request, |req| {
            call(self.below, container.below, req)
        })
    }
}

/// What a call gives: a status, or an object.
pub trait Outcome {
    /// Whether it went well.
    fn is_good(&self) -> bool;
}

impl Outcome for Status {
    fn is_good(&self) -> bool {
        *self >= 0
    }
}

impl Outcome for Ptr {
    fn is_good(&self) -> bool {
        !self.is_null()
    }
}

/// As [`act_beside`], after all transfers that were noted.
pub fn act<T: Outcome>(
    container: &Arc<Container>,
    operation: &'static str,
    path: Option<&Name>,
    request: Req,
    call: impl FnOnce(Req) -> T,
) -> T {
    postponed::before(container.hdf5);
    act_beside(container, operation, path, request, call)
}

/// Runs a call below for an object of a container, and makes the request that the program wants of
/// it: that of the connector below, or one that follows what is written behind.
pub fn act_beside<T: Outcome>(
    container: &Arc<Container>,
    operation: &'static str,
    path: Option<&Name>,
    request: Req,
    call: impl FnOnce(Req) -> T,
) -> T {
    let wanted = if request.is_null() { Wanted::No } else { Wanted::Ticket };
    let scope = Scope::enter(operation, path, wanted);
    let (outcome, used) = driver::with(container.settings, || call(request));
    container.note_use(used);
    let ticket = scope.leave();
    postponed::beside(container.hdf5);
    if !request.is_null() && outcome.is_good() {
        // SAFETY: the caller wants a request there; it began as null.
        unsafe {
            if !(*request).is_null() {
                *request = Request::below(container, *request);
            } else if let Some(ticket) = ticket {
                *request = Request::ticket(container, ticket);
            }
        }
    }
    outcome
}

/// The name that a location gives, if it gives one.
///
/// # Safety
///
/// `location` is null or what HDF5 gave.
pub unsafe fn name_of(location: *const Location) -> *const std::ffi::c_char {
    // SAFETY: the caller promised.
    match unsafe { location.as_ref() } {
        Some(location) if location.kind == LOCATION_BY_NAME => location.name,
        _ => std::ptr::null(),
    }
}

/// The container of the first of two objects that is there.
///
/// # Safety
///
/// As of [`Object::of`], or null.
pub unsafe fn container_of<'a>(one: Ptr, other: Ptr) -> Option<&'a Arc<Container>> {
    let object = if one.is_null() { other } else { one };
    // SAFETY: the caller promised.
    (!object.is_null()).then(|| unsafe { &Object::of(object).container })
}
