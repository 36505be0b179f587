//! The HDF5 VOL connector `alongside`: a plugin that HDF5 1.14 or 2.x loads, whoever brought it.
//!
//! ```text
//! H5Dwrite ──> HDF5 ──> dataset.rs ──> connector below ──> HDF5 ──> driver.rs ──> write-behind
//!              (its VOL layer)         (native)  formats, converts  (file driver) (runtime)
//! ```
//!
//! Two parts meet in one operation. The *connector* (one file per object class) passes every call
//! on, and knows for whom bytes are about to be written ([`scope`]). The *file driver* is what HDF5
//! itself writes the file's bytes through, data and metadata: it hands them to the runtime and
//! returns. So everything that HDF5 caches stays coherent, every layout and filter works, and
//! nothing of HDF5 is called from another thread than the program's: that also serves libraries
//! that are not thread-safe. A thread-safe one does what it filters or converts, and reads with an
//! event set, on a thread of ours ([`postponed`]). Decision 0022 has the alternatives.
//!
//! In flow order: [`library`] (the HDF5 that loaded us), [`class`] (what it is given), [`info`]
//! (the connector string), the object classes, [`driver`].

mod abi;
mod attribute;
mod blob;
mod class;
mod dataset;
mod datatype;
mod driver;
mod elink;
mod errors;
mod file;
mod forward;
mod group;
mod info;
mod introspect;
mod later;
mod lend;
mod library;
mod link;
mod object;
mod objects;
mod opened;
mod postponed;
mod python;
mod request;
mod scope;
mod stack;
mod symbols;
mod token;
mod wait;
mod wrap;

use std::ffi::{c_int, c_void};

/// Tells HDF5's plugin loader that this is a VOL connector.
#[no_mangle]
pub extern "C" fn H5PLget_plugin_type() -> c_int {
    abi::PLUGIN_TYPE_VOL
}

/// Gives HDF5's plugin loader the connector: one for each HDF5 library in the process. Null, and a
/// line on standard error, if that library lacks what we need.
#[no_mangle]
pub extern "C" fn H5PLget_plugin_info() -> *const c_void {
    match library::of_the_caller() {
        Ok(library) => class::of(library).cast(),
        Err(why) => {
            errors::say(&format!("the HDF5 library that asked cannot be served: {why}"));
            std::ptr::null()
        }
    }
}
