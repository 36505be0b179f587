//! The connector as HDF5 sees it: one class a slot.

use std::sync::OnceLock;

use crate::abi::{
    Class, Id, InfoClass, IntrospectClass, OptionalArgs, RequestClass, Status, WrapClass,
    CAPABILITY_ASYNC, DONE, VOL_VERSION,
};
use crate::forward::act;
use crate::library::{self, Library, LIBRARIES_MAX};
use crate::{
    attribute, blob, dataset, datatype, driver, file, group, info, introspect, link, objects,
    request, token, wrap,
};

/// What the connector is called by number; HDF5 leaves 256 to 511 to be chosen.
const VALUE: i32 = 493;

static CLASSES: [OnceLock<Class>; LIBRARIES_MAX] = [const { OnceLock::new() }; LIBRARIES_MAX];

/// The connector of a library.
pub fn of(library: &Library) -> *const Class {
    CLASSES[library.slot].get_or_init(|| match library.slot {
        0 => class::<0>(),
        1 => class::<1>(),
        2 => class::<2>(),
        _ => class::<3>(),
    })
}

fn class<const SLOT: usize>() -> Class {
    Class {
        version: VOL_VERSION,
        value: VALUE,
        name: c"alongside".as_ptr(),
        connector_version: 0,
        capabilities: CAPABILITY_ASYNC,
        initialize,
        terminate: terminate::<SLOT>,
        info: InfoClass {
            size: size_of::<info::Info>(),
            copy: info::copy::<SLOT>,
            compare: info::compare::<SLOT>,
            free: info::free::<SLOT>,
            to_text: info::to_text::<SLOT>,
            from_text: info::from_text::<SLOT>,
        },
        wrap: WrapClass {
            get_object: wrap::get_object,
            get_context: wrap::get_context,
            wrap: wrap::wrap,
            unwrap: wrap::unwrap,
            free_context: wrap::free_context,
        },
        attribute: attribute::CLASS,
        dataset: dataset::CLASS,
        datatype: datatype::CLASS,
        file: file::class::<SLOT>(),
        group: group::CLASS,
        link: link::CLASS,
        object: objects::CLASS,
        introspect: IntrospectClass {
            class: introspect::class,
            capabilities: introspect::capabilities::<SLOT>,
            optional: introspect::optional,
        },
        request: RequestClass {
            wait: request::wait,
            notify: request::notify,
            cancel: request::cancel,
            specific: request::specific,
            optional: request::optional,
            free: request::free,
        },
        blob: blob::CLASS,
        token: token::CLASS,
        optional,
    }
}

unsafe extern "C" fn initialize(_list: Id) -> Status {
    DONE
}

/// HDF5 goes, or nobody uses the connector: what it knows of the driver is stale after that.
unsafe extern "C" fn terminate<const SLOT: usize>() -> Status {
    driver::forget(library::get::<SLOT>());
    DONE
}

act! { optional = optional, "call for a connector", (; args: *mut OptionalArgs) }
