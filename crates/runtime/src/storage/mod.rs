//! The storage of a machine as the user describes it: layers, from a TOML file, or from the files
//! that describe a machine to COMPSs.

mod compss;
mod describe;
mod parse;
mod units;
mod values;

use std::ffi::CString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sched::{Layer, NodeId, Watermarks, Way};

pub(crate) use describe::amount;
pub use ops::{Curve, Point};
pub use units::{parse_bandwidth, parse_bytes};

/// The keys that a `[[layer]]` may have, for messages and completion.
pub const LAYER_KEYS: [&str; 12] = [
    "name",
    "path",
    "bandwidth",
    "read_bandwidth",
    "write_bandwidth",
    "capacity",
    "high_watermark",
    "low_watermark",
    "scope",
    "processors",
    "limit",
    "measured",
];

/// Who reaches a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The node that it is attached to.
    #[default]
    Node,
    /// Every node.
    Shared,
}

/// One storage device or file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerSpec {
    /// Its name, for messages and traces.
    pub name: String,
    /// The folder under which its files are.
    pub path: PathBuf,
    /// Bytes a second that it takes, reading and writing together, if known.
    pub bandwidth: Option<u64>,
    /// Bytes a second that it can be read with, if known.
    pub read_bandwidth: Option<u64>,
    /// Bytes a second that it can be written with, if known.
    pub write_bandwidth: Option<u64>,
    /// Bytes that it may hold, if limited.
    pub capacity: Option<u64>,
    /// When files leave it although I/O goes on.
    pub watermarks: Option<Watermarks>,
    /// Who reaches it.
    pub scope: Scope,
    /// The processors that it is attached to, ascending; empty: all are as near.
    pub processors: Vec<usize>,
    /// Emulated bandwidth: reads and writes of tasks are slowed down to it.
    pub limit: Option<Curve>,
    /// What it took from so many writers at once when somebody measured it.
    pub measured: Option<Curve>,
}

impl LayerSpec {
    /// The bandwidth that can be granted to a task that reads and writes: the least of what is
    /// known.
    pub fn least_bandwidth(&self) -> Option<u64> {
        self.layer().limit(Way::Both)
    }

    /// The bandwidth that can be granted to all tasks together. Of a curve, its best.
    pub fn together(&self) -> Option<u64> {
        let limit = self.limit.as_ref().map(|curve| curve.best().bandwidth);
        [self.bandwidth, limit].into_iter().flatten().min()
    }

    /// The layer as the scheduler of one node sees it.
    pub(crate) fn layer(&self) -> Layer {
        Layer {
            name: self.name.clone(),
            bandwidth: self.together(),
            read_bandwidth: self.read_bandwidth,
            write_bandwidth: self.write_bandwidth,
            capacity: self.capacity,
            node: (self.scope == Scope::Node).then_some(NodeId(0)),
            watermarks: self.watermarks,
            measured: self.measured.as_ref().map_or_else(Vec::new, Curve::pairs),
        }
    }

    /// The `[[layer]]` table that describes it.
    pub fn to_toml(&self) -> String {
        describe::describe(self)
    }
}

/// The layers of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// At least one; the position is the layer's number.
    pub layers: Vec<LayerSpec>,
    /// The file that they were read from.
    pub source: Option<PathBuf>,
}

/// The name of the layer that there is if nobody described one.
const ASSUMED: &str = "default";

impl Default for Storage {
    /// One layer "default": the working directory, without limits until it is measured.
    fn default() -> Self {
        let path = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let layer =
            LayerSpec { name: ASSUMED.into(), path, scope: Scope::Shared, ..Default::default() };
        Storage { layers: vec![layer], source: None }
    }
}

impl Storage {
    /// Whether nobody described it: its bandwidth is measured when somebody needs it.
    pub(crate) fn is_assumed(&self) -> bool {
        let alone = self.layers.len() == 1 && self.layers[0].least_bandwidth().is_none();
        self.source.is_none() && alone && self.layers[0].name == ASSUMED
    }

    /// What is allowed, and probably not meant: layers that share a device and both claim its
    /// bandwidth, and folders in which nothing can be written.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        for (at, layer) in self.layers.iter().enumerate() {
            let (name, path) = (&layer.name, layer.path.display());
            if !is_writable(&layer.path) {
                doubts.push(format!(
                    "layer \"{name}\": nothing can be written in {path}; tasks write their files \
                     at their own paths instead"
                ));
            }
            let same = |other: &&LayerSpec| {
                let claims =
                    [layer.least_bandwidth(), other.least_bandwidth()].iter().all(Option::is_some);
                claims && crate::tiers::same_device(&layer.path, &other.path)
            };
            if let Some(other) = self.layers[..at].iter().find(same) {
                doubts.push(format!(
                    "layers \"{}\" and \"{name}\" are on one device, and both claim its \
                     bandwidth: together they may be granted more than it has",
                    other.name
                ));
            }
        }
        doubts
    }

    /// Reads a description from its text; `file` is for messages, and relative paths in the
    /// text start at its folder.
    ///
    /// # Errors
    /// What is wrong, with its place in the text.
    pub fn parse(text: &str, file: &Path) -> Result<Storage, StorageError> {
        parse::parse(text, file, false)
    }

    /// Reads a description from a file; the folders of the layers must be there. A file whose name
    /// ends in `.xml` is one of the two that describe a machine to COMPSs; the other is looked for
    /// beside it.
    ///
    /// # Errors
    /// What is wrong, with its place in the file.
    pub fn read(file: &Path) -> Result<Storage, StorageError> {
        if file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xml")) {
            return compss::read(file);
        }
        parse::parse(&read_text(file)?, file, true)
    }
}

fn is_writable(folder: &Path) -> bool {
    let Ok(path) = CString::new(folder.as_os_str().as_bytes()) else { return false };
    // SAFETY: the path ends in a zero.
    unsafe { libc::access(path.as_ptr(), libc::W_OK) == 0 }
}

fn read_text(file: &Path) -> Result<String, StorageError> {
    std::fs::read_to_string(file).map_err(|error| StorageError {
        file: file.to_path_buf(),
        line: 0,
        column: 0,
        message: format!("the storage description cannot be read: {error}"),
    })
}

/// Why a storage description was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageError {
    /// In which file.
    pub file: PathBuf,
    /// In which line, from 1; 0: the file as a whole.
    pub line: usize,
    /// At which character of the line, from 1.
    pub column: usize,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return write!(f, "{}: {}", self.file.display(), self.message);
        }
        write!(f, "{}:{}:{}: {}", self.file.display(), self.line, self.column, self.message)
    }
}

impl std::error::Error for StorageError {}
