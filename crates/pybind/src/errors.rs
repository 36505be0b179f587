//! Refusals and errors of the runtime as Python exceptions.

use pyo3::exceptions::{PyException, PyIsADirectoryError, PyNotADirectoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::{create_exception, import_exception};
use runtime::{FileError, PathKind, Refusal, SpawnError};

import_exception!(alongside.errors, ConstraintError);
import_exception!(alongside.errors, DirectionError);
import_exception!(alongside.errors, SessionError);
import_exception!(alongside.errors, StorageError);
import_exception!(alongside.errors, StoreFullError);

create_exception!(
    alongside._native,
    Refused,
    PyException,
    "A call that the scheduler refused: a kind, and details for the message."
);

/// Why a call was not submitted.
pub(crate) fn refused(error: SpawnError) -> PyErr {
    match error {
        SpawnError::Refused(refusal) => match refusal {
            Refusal::TooManyProcessors { asked, most } => {
                Refused::new_err(("processors", asked, most))
            }
            Refusal::NoLayer { asked, nearest } => {
                Refused::new_err(("layer", asked.bandwidth, asked.size, nearest))
            }
            Refusal::SelfConflict { accesses } => {
                Refused::new_err(("conflict", accesses.0, accesses.1))
            }
            Refusal::BadRegion { access } => Refused::new_err(("region", access)),
            Refusal::Stale { access } => Refused::new_err(("stale", access)),
            Refusal::BadDirection { access } => Refused::new_err(("direction", access)),
        },
        SpawnError::OtherSession { input } => Refused::new_err(("other_session", input)),
        SpawnError::UnknownFunction(id) => {
            Refused::new_err(("session", format!("function {id} was forgotten")))
        }
        SpawnError::NotAFile { file } => {
            Refused::new_err(("session", format!("use {file} of a file names something else")))
        }
        SpawnError::Session(error) => SessionError::new_err(error.to_string()),
    }
}

/// Why a path cannot be used.
pub(crate) fn file(error: FileError) -> PyErr {
    let text = error.to_string();
    match error {
        FileError::Empty { .. } => PyValueError::new_err("the path of a file is empty"),
        FileError::Kind { path, is: PathKind::Directory } => {
            PyIsADirectoryError::new_err((libc::EISDIR, text, path))
        }
        FileError::Kind { path, is: PathKind::File } => {
            PyNotADirectoryError::new_err((libc::ENOTDIR, text, path))
        }
        FileError::Overlaps { .. } => DirectionError::new_err(text),
        FileError::Staging(text) => StorageError::new_err(text),
        FileError::Session(error) => session(error),
    }
}

/// The session cannot do it.
pub(crate) fn session(error: impl ToString) -> PyErr {
    SessionError::new_err(error.to_string())
}
