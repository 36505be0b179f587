//! The storage of a machine as the user describes it: layers, from a TOML file.

mod parse;
mod units;

use std::fmt;
use std::path::{Path, PathBuf};

pub use units::{parse_bandwidth, parse_bytes};

/// The keys that a `[[layer]]` may have, for messages and completion.
pub const LAYER_KEYS: [&str; 8] = [
    "name",
    "path",
    "bandwidth",
    "read_bandwidth",
    "write_bandwidth",
    "capacity",
    "scope",
    "limit",
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerSpec {
    /// Its name, for messages and traces.
    pub name: String,
    /// The folder under which its files are.
    pub path: PathBuf,
    /// Bytes a second that it can be read with, if known.
    pub read_bandwidth: Option<u64>,
    /// Bytes a second that it can be written with, if known.
    pub write_bandwidth: Option<u64>,
    /// Bytes that it may hold, if limited.
    pub capacity: Option<u64>,
    /// Who reaches it.
    pub scope: Scope,
    /// Emulated bandwidth: reads and writes of tasks are slowed down to it.
    pub limit: Option<u64>,
}

impl LayerSpec {
    /// The bandwidth that can be granted: the least of what is known.
    pub fn bandwidth(&self) -> Option<u64> {
        [self.read_bandwidth, self.write_bandwidth, self.limit].into_iter().flatten().min()
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

impl Default for Storage {
    /// One layer "default": the working directory, without limits.
    fn default() -> Self {
        let path = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let layer = LayerSpec {
            name: "default".into(),
            path,
            read_bandwidth: None,
            write_bandwidth: None,
            capacity: None,
            scope: Scope::Shared,
            limit: None,
        };
        Storage { layers: vec![layer], source: None }
    }
}

impl Storage {
    /// Reads a description from its text; `file` is for messages, and relative paths in the
    /// text start at its folder.
    ///
    /// # Errors
    /// What is wrong, with its place in the text.
    pub fn parse(text: &str, file: &Path) -> Result<Storage, StorageError> {
        parse::parse(text, file, false)
    }

    /// Reads a description from a file; the folders of the layers must be there.
    ///
    /// # Errors
    /// What is wrong, with its place in the file.
    pub fn read(file: &Path) -> Result<Storage, StorageError> {
        let text = std::fs::read_to_string(file).map_err(|error| StorageError {
            file: file.to_path_buf(),
            line: 0,
            column: 0,
            message: format!("the storage description cannot be read: {error}"),
        })?;
        parse::parse(&text, file, true)
    }
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
