//! Files that sessions left away from their own paths.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use runtime::ops::catalog::Fate;
use runtime::tiers::recovery::{self, Left};

use crate::errors::StorageError;

/// Own path, place, bytes, whether it is scratch, whether it is whole.
type Listed = (PathBuf, PathBuf, u64, bool, bool);
/// A session's folder, whether it runs, its files.
type Session = (PathBuf, bool, Vec<Listed>);

/// Own path, where it was, what was to be done, why it could not be.
type Recovered = (PathBuf, PathBuf, &'static str, Option<String>);

fn session(left: Left) -> Session {
    let files = left.files.into_iter();
    let files = files.map(|file| (file.home, file.place, file.bytes, file.scratch, file.whole));
    (left.folder, left.alive, files.collect())
}

fn refused(error: &std::io::Error) -> PyErr {
    StorageError::new_err(error.to_string())
}

/// The sessions with folders below a working directory, oldest first.
#[pyfunction]
pub(crate) fn sessions_left(py: Python<'_>, working: PathBuf) -> PyResult<Vec<Session>> {
    let left = py.detach(|| recovery::sessions(&working)).map_err(|error| refused(&error))?;
    Ok(left.into_iter().map(session).collect())
}

/// The files of the session that has this folder.
#[pyfunction]
pub(crate) fn session_files(py: Python<'_>, folder: PathBuf) -> PyResult<Session> {
    let left = py.detach(|| recovery::list(&folder));
    left.map(session).map_err(|error| refused(&error))
}

/// Finishes or undoes what a session left: by file its own path, where it was, what was to be done,
/// and why it could not be.
#[pyfunction]
pub(crate) fn recover(
    py: Python<'_>,
    folder: PathBuf,
    discard: bool,
    tell: &Bound<'_, PyAny>,
) -> PyResult<Vec<Recovered>> {
    let (tell, mut wrong) = (tell.clone().unbind(), None);
    let mut half_changed = |home: &Path| {
        let told = Python::attach(|py| tell.call1(py, (home,)));
        wrong = wrong.take().or(told.err());
    };
    let recovered = py.detach(|| recovery::recover(&folder, discard, &mut half_changed));
    if let Some(error) = wrong {
        return Err(error);
    }
    let recovered = recovered.map_err(|error| refused(&error))?;
    let words = |fate| match fate {
        Fate::BringHome | Fate::AtHome => "home",
        Fate::HalfChanged => "half_changed",
        Fate::Delete => "deleted",
        Fate::Damaged => "damaged",
        Fate::Lost => "lost",
    };
    let told = recovered.into_iter().map(|one| (one.home, one.place, words(one.fate), one.error));
    Ok(told.collect())
}
