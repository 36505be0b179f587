//! Which transfers may be noted: those of which nothing but time can tell that HDF5 did them later.
//!
//! - HDF5 is thread-safe, and the file is written through our driver by this process alone;
//! - numbers to and from numbers: variable lengths have pointers in the program's memory, and
//!   functions of the program convert other types;
//! - filters of HDF5's own and registered ones, not those that somebody tries out;
//! - the default transfer properties: others hold functions and pointers of the program;
//! - everything that HDF5 would refuse at once (selections, sizes, files that are only read) is
//!   looked at here: such a call is passed on, and refused by HDF5;
//! - of writes, those that HDF5 filters or converts: the driver takes the others as they are; and
//!   of these, what is large enough to go behind, or has others of its dataset to go behind.

use std::ffi::{c_int, c_uint, c_ulong};
use std::ops::Range;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use runtime::behind;

use super::thread::serves;
use super::transfer::{Held, Memory, Transfer};
use super::{add, noted, queue};
use crate::abi::{
    DatasetGetArgs, Id, Location, ObjectInfo, ObjectInfoArgs, ObjectInfoAsked, Ptr, Req, Status,
    DATASET_GET_CREATION_LIST, DATASET_GET_SPACE, DEFAULT, LOCATION_SELF, MEMORY_DATA,
    OBJECT_GET_INFO, SPACE_ALL, SPACE_MIN,
};
use crate::lend::is_lending;
use crate::object::Object;
use crate::symbols::Threads;
use crate::{python, scope};

/// `H5I_DATATYPE`, `H5I_DATASPACE`.
const ID_OF_A_TYPE: c_int = 3;
const ID_OF_A_SPACE: c_int = 4;
/// `H5T_INTEGER`, `H5T_FLOAT`.
const NUMBERS: [c_int; 2] = [0, 1];
/// `H5D_CONTIGUOUS`, `H5D_CHUNKED`, `H5D_VIRTUAL`.
const CONTIGUOUS: c_int = 1;
const CHUNKED: c_int = 2;
const VIRTUAL: c_int = 3;
/// `H5Z_FILTER_RESERVED` and what follows it up to the registered ones.
const ON_TRIAL: Range<c_int> = 256..512;
/// `H5S_SEL_HYPERSLABS`, `H5S_SEL_ALL`.
const SELECTED_SLABS: c_int = 2;
const SELECTED_ALL: c_int = 3;
/// `H5S_MAX_RANK`.
const RANK_MAX: usize = 32;

/// Which dataset it is, however it was opened: `fileno` and `token` of its `H5O_info2_t`.
pub type Identity = (c_ulong, [u8; 16]);

/// What a dataset is, as far as transfers go.
#[derive(Clone, Copy)]
pub struct Nature {
    pub identity: Identity,
    layout: c_int,
    is_filtered: bool,
    /// In the file's own storage.
    is_own: bool,
}

/// What elements a dataset has, once a call of the program has told. It is not asked for: HDF5
/// then has a committed type follow the file through which it was asked, and keeps that when the
/// file is closed and the dataset still open elsewhere (1.14.6, `H5T_patch_file`).
pub struct Elements {
    class: c_int,
    encoded: Box<[u8]>,
}

impl Nature {
    /// Whether its values are in no other dataset, and nowhere else.
    pub fn is_alone(&self) -> bool {
        self.layout != VIRTUAL
    }
}

/// Closes an id when it is no longer needed.
struct Lease(Id, unsafe extern "C" fn(Id) -> Status);

impl Drop for Lease {
    fn drop(&mut self) {
        // SAFETY: an id that HDF5 gave us.
        unsafe { (self.1)(self.0) };
    }
}

/// Asks the connector below about a dataset: what it gives is an id.
fn ask(object: &Object, operation: c_int) -> Option<Id> {
    let mut args = DatasetGetArgs { operation, id: -1 };
    let (below, null) = (object.container.below, std::ptr::null_mut());
    let get = object.container.hdf5.symbols.dataset_get;
    // SAFETY: an object of ours, and a block of what is asked.
    let status = unsafe { get(object.below, below, (&raw mut args).cast(), DEFAULT, null) };
    (status >= 0 && args.id >= 0).then_some(args.id)
}

/// What a dataset is; `None`: HDF5 does not say, or is not thread-safe.
pub fn nature(object: &Object) -> Option<Nature> {
    let threads = object.container.hdf5.threads.as_ref()?;
    *object.nature.get_or_init(|| look(object, threads))
}

fn look(object: &Object, threads: &Threads) -> Option<Nature> {
    let symbols = &object.container.hdf5.symbols;
    let identity = identity(object)?;
    let list = Lease(ask(object, DATASET_GET_CREATION_LIST)?, symbols.list_close);
    // SAFETY: an id that HDF5 gave us.
    unsafe {
        let layout = (threads.list_layout)(list.0);
        let filters = u32::try_from((threads.list_filters)(list.0)).unwrap_or(0);
        let is_filtered = filters > 0;
        if (0..filters).any(|number| is_on_trial(threads, list.0, number)) {
            return None;
        }
        let is_own =
            layout == CHUNKED || layout == CONTIGUOUS && (threads.list_external_files)(list.0) == 0;
        Some(Nature { identity, layout, is_filtered, is_own })
    }
}

/// Whether a filter has a number of those that HDF5 keeps for trying filters out (256 to 511): who
/// does that wants to be told by the call.
unsafe fn is_on_trial(threads: &Threads, list: Id, number: c_uint) -> bool {
    let (mut flags, mut configuration, mut values) = (0, 0, 0);
    let null: Ptr = std::ptr::null_mut();
    // SAFETY: a list of HDF5's, a filter that it has, and room for what is asked.
    let filter = unsafe {
        (threads.list_filter)(
            list,
            number,
            &raw mut flags,
            &raw mut values,
            null.cast(),
            0,
            null.cast(),
            &raw mut configuration,
        )
    };
    filter < 0 || ON_TRIAL.contains(&filter)
}

/// The program makes a dataset of this type, or has asked for it.
///
/// # Safety
///
/// `kind` is a type.
pub unsafe fn learn(object: &Object, kind: Id) {
    if let Some(threads) = &object.container.hdf5.threads {
        // SAFETY: the caller promised.
        object.elements.get_or_init(|| unsafe { elements_of(threads, kind) });
    }
}

/// What a type is: its class, and the bytes that describe it.
unsafe fn elements_of(threads: &Threads, kind: Id) -> Option<Elements> {
    // SAFETY: an id that may be anything, and then of a type; room for what is asked.
    unsafe {
        if (threads.kind_of)(kind) != ID_OF_A_TYPE {
            return None;
        }
        let class = (threads.type_class)(kind);
        if !NUMBERS.contains(&class) {
            return Some(Elements { class, encoded: Box::default() });
        }
        let copy = Lease((threads.type_copy)(kind), threads.type_close);
        let mut size = 0;
        (threads.type_encode)(copy.0, std::ptr::null_mut(), &raw mut size);
        let mut encoded = vec![0_u8; size];
        let status = (threads.type_encode)(copy.0, encoded.as_mut_ptr().cast(), &raw mut size);
        (status >= 0).then(|| Elements { class, encoded: encoded.into() })
    }
}

fn identity(object: &Object) -> Option<Identity> {
    const BASIC: c_uint = 1;
    // SAFETY: numbers, for which zero is a value.
    let mut info: ObjectInfo = unsafe { std::mem::zeroed() };
    let asked = ObjectInfoAsked { fields: BASIC, info: &raw mut info };
    let mut args = ObjectInfoArgs { operation: OBJECT_GET_INFO, asked };
    let location =
        Location { object_type: 5, kind: LOCATION_SELF, name: std::ptr::null(), access: DEFAULT };
    let container = &object.container;
    let (get, null) = (container.hdf5.symbols.object_get, std::ptr::null_mut());
    // SAFETY: an object of ours, where it is, and a block of what is asked.
    let status = unsafe {
        let block = (&raw mut args).cast();
        get(object.below, &raw const location, container.below, block, DEFAULT, null)
    };
    (status >= 0).then_some((info.file, info.token))
}

/// A transfer of one dataset, as the program asked for it.
pub struct Asked {
    pub is_write: bool,
    pub kind: Id,
    pub memory: Id,
    pub space: Id,
    pub list: Id,
    pub buffer: Ptr,
}

/// Notes a transfer, if it may be. `false`: it is to be done here and now.
///
/// # Safety
///
/// What HDF5 passes of a transfer of one dataset.
pub unsafe fn note(object: &Object, asked: &Asked, req: Req) -> bool {
    // SAFETY: the caller promised.
    unsafe { planned(object, asked, req) }.map(|transfer| add(transfer, req)).is_some()
}

unsafe fn planned(object: &Object, asked: &Asked, req: Req) -> Option<Transfer> {
    let container = &object.container;
    let library = container.hdf5;
    let threads = library.threads.as_ref()?;
    let is_possible = container.postpones.load(Ordering::Relaxed)
        && asked.list == threads.transfer_list()
        && !asked.buffer.is_null()
        && !scope::is_inside()
        && !behind::is_child()
        && match asked.is_write {
            true => container.writable_file.get().is_some(),
            false => !req.is_null(),
        };
    if !is_possible || !serves(library) {
        return None;
    }
    let nature = nature(object).filter(|nature| nature.is_own)?;
    if asked.is_write && container.writable_file.get() != Some(&nature.identity.0) {
        return None; // It may be of a file that is linked, and that HDF5 opened for reading.
    }
    // SAFETY: the caller promised.
    unsafe {
        let is_changed = converts(object, threads, asked)? || nature.is_filtered;
        if asked.is_write && !is_changed {
            return None;
        }
        let span = span(object, threads, asked)?;
        let is_followed = !req.is_null();
        if asked.is_write && !is_wanted(object, &nature, span.len(), is_followed) {
            return None;
        }
        transfer(object, threads, asked, nature.identity, span, is_followed)
    }
}

/// Whether a write is large enough, there is room for a copy, and that buys something.
fn is_wanted(object: &Object, nature: &Nature, bytes: usize, is_followed: bool) -> bool {
    let container = &object.container;
    let is_behind_others = || noted(container.hdf5).is_some_and(|its| its.has(nature.identity));
    let limit = container.settings.limit_bytes();
    let used = container.postponed_bytes.load(Ordering::Relaxed);
    let has_room = limit == 0 || used + bytes <= limit;
    has_room
        && (bytes >= container.settings.behind_bytes(MEMORY_DATA) || is_behind_others())
        && (is_followed || !queue(container.hdf5).is_hasty())
}

/// Whether HDF5 converts elements; `None`: some are no numbers, or that is not known. What reads
/// numbers, other than Python's libraries with conversions of their own, reads them from numbers.
unsafe fn converts(object: &Object, threads: &Threads, asked: &Asked) -> Option<bool> {
    // SAFETY: the caller promised.
    let memory = unsafe { elements_of(threads, asked.kind)? };
    let is_number = |elements: &Elements| NUMBERS.contains(&elements.class);
    let file = object.elements.get().and_then(Option::as_ref);
    if !is_number(&memory) || !file.is_none_or(is_number) {
        return None;
    }
    match file {
        Some(file) => Some(file.encoded != memory.encoded),
        None if asked.is_write || python::is_running() => None,
        None => Some(false),
    }
}

/// Which bytes of the program's buffer a transfer touches; `None`: HDF5 would not take the
/// selections, or they are too scattered to be copied.
unsafe fn span(object: &Object, threads: &Threads, asked: &Asked) -> Option<Range<usize>> {
    let symbols = &object.container.hdf5.symbols;
    let whole = Lease(ask(object, DATASET_GET_SPACE)?, symbols.space_close);
    // SAFETY: a question about an id, which may be anything.
    let is_space = |id: Id| unsafe { id >= SPACE_MIN && (threads.kind_of)(id) == ID_OF_A_SPACE };
    let is_known = |space: Id| space == SPACE_ALL || is_space(space);
    if !is_known(asked.memory) || !is_known(asked.space) {
        return None;
    }
    let file = if asked.space == SPACE_ALL { whole.0 } else { asked.space };
    let memory = if asked.memory == SPACE_ALL { file } else { asked.memory };
    // SAFETY: ids of HDF5's and the program's.
    unsafe {
        let selected = (threads.space_selected)(file);
        let is_taken = dims(threads, file) == dims(threads, whole.0)
            && (threads.space_is_valid)(file) > 0
            && (threads.space_is_valid)(memory) > 0
            && (threads.space_selected)(memory) == selected;
        let selected = usize::try_from(selected).ok().filter(|count| is_taken && *count > 0)?;
        let elements = elements(threads, memory)?;
        let size = (symbols.type_size)(asked.kind);
        let is_dense = selected >= elements.len() / 2;
        (is_dense && size > 0)
            .then(|| Some(elements.start.checked_mul(size)?..elements.end.checked_mul(size)?))
            .flatten()
    }
}

/// The dimensions of a space as they are now; one may become larger, which does not matter here.
unsafe fn dims(threads: &Threads, space: Id) -> Option<Vec<u64>> {
    let mut dims = [0; RANK_MAX];
    // SAFETY: an id, and room for so many dimensions as a space can have.
    let rank = unsafe { (threads.space_dims)(space, dims.as_mut_ptr(), std::ptr::null_mut()) };
    usize::try_from(rank).ok().map(|rank| dims[..rank].to_vec())
}

/// The elements of a buffer from the first that is selected to the last. Of what is no block the
/// corners need not be the program's memory.
unsafe fn elements(threads: &Threads, space: Id) -> Option<Range<usize>> {
    let (mut first, mut last) = ([0; RANK_MAX], [0; RANK_MAX]);
    // SAFETY: an id, and room for so many dimensions as a space can have.
    let dims = unsafe {
        let kind = (threads.space_selection)(space);
        let is_block =
            kind == SELECTED_ALL || kind == SELECTED_SLABS && (threads.space_is_regular)(space) > 0;
        if !is_block {
            return None;
        }
        let bounds = (threads.space_bounds)(space, first.as_mut_ptr(), last.as_mut_ptr());
        dims(threads, space).filter(|_| bounds >= 0)?
    };
    let rank = dims.len();
    let place = |corner: &[u64]| {
        let dims = dims.iter().zip(corner);
        dims.into_iter()
            .try_fold(0_u64, |at, (dim, index)| at.checked_mul(*dim)?.checked_add(*index))
    };
    let (start, end) = (place(&first[..rank])?, place(&last[..rank])?.checked_add(1)?);
    Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

/// Puts all of it together: copies of the ids and, of a write, of the bytes, unless they are lent.
unsafe fn transfer(
    object: &Object,
    threads: &Threads,
    asked: &Asked,
    identity: Identity,
    span: Range<usize>,
    is_followed: bool,
) -> Option<Transfer> {
    let container = object.container.clone();
    let (start, len) = (span.start, span.len());
    let first = asked.buffer.cast::<u8>().wrapping_add(start);
    // SAFETY: the caller promised.
    let is_kept = !asked.is_write || unsafe { is_lending(&container, asked.list) };
    if is_kept && queue(container.hdf5).has_failed_set.load(Ordering::Relaxed) {
        return None;
    }
    let memory = match is_kept {
        true => Memory::Kept(first as usize),
        false => {
            let mut copy = Vec::new();
            copy.try_reserve_exact(len).ok()?;
            // SAFETY: the buffer has these bytes, as its type and its space say.
            copy.extend_from_slice(unsafe { std::slice::from_raw_parts(first, len) });
            Memory::Copied(copy)
        }
    };
    // SAFETY: ids of the program's.
    let copied = |space: Id| unsafe {
        if space == SPACE_ALL {
            space
        } else {
            (threads.space_copy)(space)
        }
    };
    let spaces = [copied(asked.memory), copied(asked.space)];
    // SAFETY: as above.
    let kind = unsafe { (threads.type_copy)(asked.kind) };
    Some(Transfer {
        path: object.path.clone(),
        below: object.below,
        identity,
        is_write: asked.is_write,
        start,
        len,
        copied: if is_kept { 0 } else { len },
        is_followed,
        held: Mutex::new(Some(Held { hdf5: container.hdf5, memory, kind, spaces })),
        container,
    })
}
