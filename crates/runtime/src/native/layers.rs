//! The storage layers as the native driver knows them.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;

use exec::limiter::{Limiters, Writer};
use sched::LayerId;

use crate::storage::Storage;

/// A layer, for the program.
#[derive(Debug)]
pub struct Layer {
    name: CString,
    path: CString,
    is_limited: bool,
}

impl Layer {
    /// Its name.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// Its folder.
    pub fn path(&self) -> &CStr {
        &self.path
    }
}

/// All of them.
#[derive(Debug)]
pub(super) struct Layers {
    layers: Vec<Layer>,
    limiters: Limiters,
}

impl Layers {
    pub(super) fn new(storage: &Storage) -> Layers {
        let text = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
        let layer = |spec: &crate::storage::LayerSpec| Layer {
            name: text(spec.name.as_bytes()),
            path: text(spec.path.as_os_str().as_bytes()),
            is_limited: spec.limit.is_some(),
        };
        let limits = storage.layers.iter().map(|spec| spec.limit.as_ref());
        let limiters = Limiters::own(limits);
        Layers { layers: storage.layers.iter().map(layer).collect(), limiters }
    }

    pub(super) fn get(&self, layer: LayerId) -> &Layer {
        &self.layers[layer.0 as usize]
    }

    /// The emulated bandwidths.
    pub(super) fn limiters(&self) -> Limiters {
        self.limiters.clone()
    }

    /// The layer of a name; else which there are.
    pub(super) fn named(&self, name: &CStr) -> Result<LayerId, String> {
        let at = self.layers.iter().position(|layer| *layer.name == *name);
        at.map(|at| LayerId(at as u32)).ok_or_else(|| {
            let names = self.layers.iter().map(|layer| format!("{:?}", layer.name));
            let names = names.collect::<Vec<_>>().join(", ");
            format!("there is no layer {name:?}; the storage has {names}")
        })
    }

    /// Somebody who reads and writes on a layer whose bandwidth is emulated.
    pub(super) fn writer(&self, layer: LayerId) -> Option<Writer> {
        self.get(layer).is_limited.then(|| self.limiters.writer(layer.0))
    }
}
