//! Values as Python sees them: a pickle, and buffers that lie where they are.
//!
//! A [`Buffer`] holds the memory that it shows, so an array made on top of it can be kept for as
//! long as the program likes. Only inputs in mode `Shared` can be written through it.

use std::ffi::c_int;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use runtime::exec::worker::View;
use runtime::{block, Value};

/// From this many bytes on, copies are made without the GIL.
pub(crate) const COPY_BYTES_DETACHED_MIN: usize = 128 << 10;

/// Who keeps the memory.
#[derive(Clone)]
pub(crate) enum Owner {
    /// A value in the driver.
    Value(Value),
    /// A placed input in a worker.
    View(Arc<View>),
    /// A short input in a worker.
    Bytes(Arc<[u8]>),
}

impl Owner {
    /// All of its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Owner::Value(value) => value.as_bytes(),
            Owner::View(view) => view,
            Owner::Bytes(bytes) => bytes,
        }
    }
}

/// A part of a value, through the buffer protocol.
#[pyclass(frozen, module = "alongside._native")]
pub(crate) struct Buffer {
    owner: Owner,
    start: NonNull<u8>,
    len: usize,
    writable: bool,
}

// SAFETY: `start` points into memory that `owner` keeps and that may be read from any thread.
unsafe impl Send for Buffer {}
// SAFETY: as above; Python code that writes through it is the program's to synchronise.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A part that can only be read.
    pub(crate) fn new(owner: &Owner, range: Range<usize>) -> Buffer {
        let part = &owner.bytes()[range];
        let (start, len) = (NonNull::from(part).cast(), part.len());
        Buffer { owner: owner.clone(), start, len, writable: false }
    }

    /// A part that can be written where it lies.
    pub(crate) fn shared(view: &Arc<View>, range: Range<usize>) -> Buffer {
        assert!(range.start <= range.end && range.end <= view.len(), "a part of the view");
        // SAFETY: the range is inside of the view, which begins at `writer()`.
        let start = unsafe { view.writer().add(range.start) };
        Buffer { owner: Owner::View(view.clone()), start, len: range.len(), writable: true }
    }
}

#[pymethods]
impl Buffer {
    /// Bytes.
    fn __len__(&self) -> usize {
        debug_assert!(self.len <= self.owner.bytes().len());
        self.len
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view was given"));
        }
        let this = slf.get();
        // SAFETY: Python gives a view to fill in; the memory lives as long as `slf`, which
        // `PyBuffer_FillInfo` makes the view hold.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                this.start.as_ptr().cast(),
                this.len as ffi::Py_ssize_t,
                c_int::from(!this.writable),
                flags,
            )
        };
        if filled == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }
}

/// A value's pickle and buffers, to be read only.
pub(crate) fn parts<'py>(py: Python<'py>, owner: &Owner) -> PyResult<Bound<'py, PyTuple>> {
    let bytes = owner.bytes();
    let block = parsed(bytes)?;
    let buffers = PyList::empty(py);
    for range in block.buffers {
        buffers.append(Buffer::new(owner, range))?;
    }
    (pickle(py, owner, bytes, block.pickle)?, buffers).into_pyobject(py)
}

/// The pickle: short ones as `bytes`, others where they are.
pub(crate) fn pickle<'py>(
    py: Python<'py>,
    owner: &Owner,
    bytes: &[u8],
    pickle: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    if pickle.len() < COPY_BYTES_DETACHED_MIN {
        return Ok(PyBytes::new(py, pickle).into_any());
    }
    let start = pickle.as_ptr() as usize - bytes.as_ptr() as usize;
    let part = Buffer::new(owner, start..start + pickle.len());
    Ok(Bound::new(py, part)?.into_any())
}

/// The parts of a block.
pub(crate) fn parsed(bytes: &[u8]) -> PyResult<block::Block<'_>> {
    block::parse(bytes).ok_or_else(|| {
        PyRuntimeError::new_err("a value is damaged: something wrote over the object store")
    })
}

/// The buffers of a pickle (`pickle.PickleBuffer`), held so that their memory stays.
pub(crate) struct Given(Vec<PyUntypedBuffer>);

impl Given {
    /// Takes hold of them.
    pub(crate) fn new(buffers: &Bound<'_, PyList>) -> PyResult<Given> {
        let mut given = Vec::with_capacity(buffers.len());
        for buffer in buffers.iter() {
            // A buffer without dimensions is only understood as raw bytes.
            let held = PyUntypedBuffer::get(&buffer)
                .or_else(|_| PyUntypedBuffer::get(&buffer.call_method0("raw")?))?;
            if !(held.is_c_contiguous() || held.is_fortran_contiguous()) {
                return Err(PyBufferError::new_err("a buffer is not contiguous"));
            }
            given.push(held);
        }
        Ok(Given(given))
    }

    /// Their bytes. Nobody may write them meanwhile, which is the program's to see to.
    pub(crate) fn slices(&self) -> Vec<&[u8]> {
        self.0.iter().map(slice).collect()
    }
}

fn slice(buffer: &PyUntypedBuffer) -> &[u8] {
    if buffer.len_bytes() == 0 {
        return &[];
    }
    // SAFETY: the buffer is contiguous and its exporter keeps the memory while it is held. The
    // program could write it at the same time from another thread; it then gets a mixture
    // of old and new bytes, as with any copy that Python makes without the GIL.
    unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) }
}
