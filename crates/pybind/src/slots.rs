//! The inputs of the call whose arguments this thread is pickling.
//!
//! `slots_open` begins a list, every future that the pickler meets puts itself there and pickles as
//! its position, `Session.spawn` takes the list, `slots_close` ends it. Lists nest, because
//! pickling may run code of the program that calls a task itself.

use std::cell::RefCell;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use runtime::{DatumId, Direction, Input};

thread_local! {
    static LISTS: RefCell<Vec<Vec<Input>>> = const { RefCell::new(Vec::new()) };
}

/// Adds an input; `None`: no call is being pickled.
pub(crate) fn note(input: Input) -> Option<usize> {
    LISTS.with_borrow_mut(|lists| {
        let list = lists.last_mut()?;
        list.push(input);
        Some(list.len() - 1)
    })
}

/// Takes what was noted for this call.
pub(crate) fn take() -> Vec<Input> {
    LISTS.with_borrow_mut(|lists| lists.last_mut().map(std::mem::take).unwrap_or_default())
}

/// The direction that `alongside.directions` means by a number.
pub(crate) fn direction(number: u8) -> PyResult<Direction> {
    Ok(match number {
        0 => Direction::In,
        1 => Direction::Out,
        2 => Direction::InOut,
        3 => Direction::Concurrent,
        4 => Direction::Commutative,
        _ => return Err(PyValueError::new_err(format!("{number} is no direction"))),
    })
}

/// Begins the list of inputs of a call.
#[pyfunction]
pub(crate) fn slots_open() {
    LISTS.with_borrow_mut(|lists| lists.push(Vec::new()));
}

/// Ends it.
#[pyfunction]
pub(crate) fn slots_close() {
    let ended = LISTS.with_borrow_mut(Vec::pop);
    drop(ended);
}

/// How many inputs were noted.
#[pyfunction]
pub(crate) fn slots_count() -> usize {
    LISTS.with_borrow(|lists| lists.last().map_or(0, Vec::len))
}

/// Forgets the inputs from this one on: the arguments are pickled again.
#[pyfunction]
pub(crate) fn slots_truncate(count: usize) {
    let dropped = LISTS.with_borrow_mut(|lists| {
        let list = lists.last_mut()?;
        Some(list.split_off(count.min(list.len())))
    });
    drop(dropped);
}

/// Notes a tracked object with its direction. Gives its position.
#[pyfunction]
pub(crate) fn slots_note_object(datum: u64, direction: u8) -> PyResult<usize> {
    let input =
        Input::Object { datum: DatumId::from_bits(datum), direction: self::direction(direction)? };
    note(input).ok_or_else(|| PyRuntimeError::new_err("no call is being pickled"))
}
