//! The words of the graph: identifiers, directions, regions and accesses.

use alloc::boxed::Box;

use crate::slab::Key;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Key);

        impl $name {
            /// The identifier as one number, to carry it through a wire or another language.
            pub fn to_bits(self) -> u64 {
                self.0.to_bits()
            }

            /// The identifier that [`Self::to_bits`] gave.
            pub fn from_bits(bits: u64) -> Self {
                Self(Key::from_bits(bits))
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, concat!($letter, "{}.{}"), self.0.index, self.0.generation)
            }
        }
    };
}

id! {
    /// One call. Never reused: a later task in the same place has another generation.
    TaskId, "t"
}
id! {
    /// What one write made of a datum, or one output of a task. Edges name versions.
    VersionId, "v"
}
id! {
    /// Something that tasks use: an object, a file, a memory region.
    DatumId, "d"
}

/// What a task does with a datum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Reads it.
    In,
    /// Writes it whole (within the region) without looking at what was there.
    Out,
    /// Reads and writes it.
    InOut,
    /// Updates it together with its neighbours of the same direction, at the same time.
    Concurrent,
    /// Updates it in any order among its neighbours of the same direction, one at a time.
    Commutative,
}

impl Direction {
    /// Whether the task leaves a new version behind.
    pub fn writes(self) -> bool {
        self != Direction::In
    }

    /// Whether the task needs what was there.
    pub fn reads(self) -> bool {
        self != Direction::Out
    }

    /// Whether neighbouring tasks of this direction share one version.
    pub fn grouped(self) -> bool {
        matches!(self, Direction::Concurrent | Direction::Commutative)
    }
}

/// A half-open interval `start..end` in one dimension, in elements or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First position.
    pub start: u64,
    /// One past the last position.
    pub end: u64,
}

/// The part of a datum that an access touches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Region {
    /// All of it.
    Whole,
    /// A byte range.
    Range(Span),
    /// An n-dimensional box, one span a dimension, slowest dimension first.
    Box(Box<[Span]>),
}

/// Whether writes replace a value or change data in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatumKind {
    /// Every version is a value of its own in the object store; readers of an old one are
    /// undisturbed by a new one, so no write-after-read or write-after-write edges.
    Value,
    /// One place, changed by each write (a file, a memory region): later writes wait for
    /// earlier readers and writers of an overlapping region.
    InPlace,
}

/// What an access is to: one version by name (a future), or a datum as it stands now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A version that the program holds. Only `In` makes sense.
    Version(VersionId),
    /// The latest version of a datum.
    Datum(DatumId),
}

/// One use of a datum by a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Of what.
    pub target: Target,
    /// Which part.
    pub region: Region,
    /// To do what.
    pub direction: Direction,
}

/// The versions that one access of a submitted task was bound to.
///
/// For data in place a region may overlap many versions; the data are in place, so only the
/// written version is named here. A grouped access reads and writes the same version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// Whose value is the input (value data only).
    pub read: Option<VersionId>,
    /// Which version the task makes.
    pub write: Option<VersionId>,
}
