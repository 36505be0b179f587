//! Memory that the program lends: with a limit of 0 it keeps its buffers until writes are over.
//!
//! The limit is that of the connector string or the environment, or a property `alongside_limit`
//! (a `size_t`) of the transfer list. How far a buffer reaches is what its memory space says: the
//! extent, not the selection. Only bytes that HDF5 hands to the file driver straight from such a
//! buffer are used in place; what it converts or caches has memory of its own and is copied.

use crate::abi::{DatasetGetArgs, Id, Ptr, DATASET_GET_SPACE, DEFAULT, SPACE_ALL, SPACE_MIN};
use crate::object::{Container, Object};
use crate::scope::Lent;

/// What of the buffers of a write is lent.
///
/// # Safety
///
/// As of the write: so many ids and buffers as datasets, which are ours.
pub unsafe fn lent(
    datasets: &[Ptr],
    kinds: *const Id,
    memory: *const Id,
    spaces: *const Id,
    list: Id,
    buffers: *const Ptr,
) -> Vec<Lent> {
    let mut lent = Vec::new();
    for (at, dataset) in datasets.iter().enumerate() {
        // SAFETY: the caller promised.
        unsafe {
            let dataset = Object::of(*dataset);
            if !is_lending(&dataset.container, list) {
                continue;
            }
            let points = points(dataset, *memory.add(at), *spaces.add(at));
            let size = (dataset.container.hdf5.symbols.type_size)(*kinds.add(at));
            let start = *buffers.add(at) as usize;
            let bytes = points.and_then(|points| points.checked_mul(size));
            if let Some(end) = bytes.and_then(|bytes| start.checked_add(bytes)) {
                lent.push(Lent { start, end });
            }
        }
    }
    lent
}

/// Whether a write with this transfer list lends its buffer.
///
/// # Safety
///
/// `list` is one, or the default.
pub unsafe fn is_lending(container: &Container, list: Id) -> bool {
    let by_default = container.settings.limit_bytes() == 0;
    let (symbols, name) = (&container.hdf5.symbols, c"alongside_limit".as_ptr());
    if list == DEFAULT {
        return by_default;
    }
    // SAFETY: a transfer list of the program; the property is a `size_t`.
    unsafe {
        if (symbols.list_exists)(list, name) <= 0 {
            return by_default;
        }
        let mut limit = usize::MAX;
        (symbols.list_get)(list, name, (&raw mut limit).cast()) >= 0 && limit == 0
    }
}

/// How many elements a buffer has.
unsafe fn points(dataset: &Object, memory: Id, space: Id) -> Option<usize> {
    let symbols = &dataset.container.hdf5.symbols;
    // SAFETY: spaces of the program, or one that is closed here.
    unsafe {
        let count = match (memory, space) {
            (memory, _) if memory >= SPACE_MIN => (symbols.space_points)(memory),
            (SPACE_ALL, space) if space >= SPACE_MIN => (symbols.space_points)(space),
            (SPACE_ALL, SPACE_ALL) => {
                let mut args = DatasetGetArgs { operation: DATASET_GET_SPACE, id: -1 };
                let below = dataset.container.below;
                let null = std::ptr::null_mut();
                let block = (&raw mut args).cast();
                if (symbols.dataset_get)(dataset.below, below, block, DEFAULT, null) < 0 {
                    return None;
                }
                let count = (symbols.space_points)(args.id);
                (symbols.space_close)(args.id);
                count
            }
            _ => return None,
        };
        usize::try_from(count).ok()
    }
}
