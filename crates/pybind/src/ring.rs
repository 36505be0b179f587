//! File operations for an event loop: conversion between Python buffers and the runtime's ring.

use std::ffi::CString;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyOSError, PyValueError};
use pyo3::prelude::*;
use runtime::ops::{Answer, Buffer, Op};
use runtime::ring::{Done, Ring as Inner};

/// The memory of an operation, held until it is complete.
type Kept = Option<PyUntypedBuffer>;

/// What an operation gave: its number, its result, the errno if it failed.
type Result3 = (u64, i64, i32);

/// An engine for one event loop.
#[pyclass(frozen, module = "alongside._native")]
pub(crate) struct Ring(Mutex<Inner<Kept>>);

fn c_path(path: &Path) -> PyResult<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| PyValueError::new_err("embedded null byte in a path"))
}

/// Memory of a Python object as an operation's buffer. The object has to be kept.
fn lent(held: &PyUntypedBuffer, writable: bool) -> PyResult<Buffer> {
    if !(held.is_c_contiguous() || held.is_fortran_contiguous()) {
        return Err(PyBufferError::new_err("a buffer is not contiguous"));
    }
    if writable && held.readonly() {
        return Err(PyBufferError::new_err("cannot read into a buffer that is read-only"));
    }
    if held.len_bytes() == 0 {
        return Ok(Buffer::new(0));
    }
    // SAFETY: the exporter keeps the memory while the buffer is held, which is until the operation
    // is complete; that nobody else writes it meanwhile is the program's to see to.
    Ok(unsafe { Buffer::lent(held.buf_ptr().cast(), held.len_bytes()) })
}

fn told(done: Done<Kept>) -> Result3 {
    match done.result {
        Ok(Answer::Fd(fd)) => (done.number, i64::from(fd.into_raw_fd()), 0),
        Ok(answer) => (done.number, answer.bytes() as i64, 0),
        Err(errno) => (done.number, -1, errno.0),
    }
}

impl Ring {
    fn submit(&self, op: Op, kept: Kept) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).submit(op, kept)
    }
}

#[pymethods]
impl Ring {
    #[new]
    fn new() -> PyResult<Ring> {
        let inner = Inner::new().map_err(PyOSError::new_err)?;
        Ok(Ring(Mutex::new(inner)))
    }

    /// Readable when something is complete.
    fn fileno(&self) -> RawFd {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fd().as_raw_fd()
    }

    /// What is complete: number, result, errno (0: none).
    fn poll(&self) -> Vec<Result3> {
        let done = self.0.lock().unwrap_or_else(PoisonError::into_inner).poll();
        // Without the lock: whoever owned the memory that is let go of may run Python code.
        done.into_iter().map(told).collect()
    }

    fn open(&self, path: PathBuf, flags: i32, mode: u32) -> PyResult<u64> {
        Ok(self.submit(Op::Open { path: c_path(&path)?, flags, mode }, None))
    }

    fn close(&self, fd: RawFd) -> u64 {
        self.submit(Op::Close { fd }, None)
    }

    fn read(&self, fd: RawFd, into: &Bound<'_, PyAny>, offset: u64) -> PyResult<u64> {
        let held = PyUntypedBuffer::get(into)?;
        let buffer = lent(&held, true)?;
        Ok(self.submit(Op::Read { fd, buffer, offset }, Some(held)))
    }

    fn write(&self, fd: RawFd, data: &Bound<'_, PyAny>, offset: u64) -> PyResult<u64> {
        let held = PyUntypedBuffer::get(data)?;
        let buffer = lent(&held, false)?;
        Ok(self.submit(Op::Write { fd, buffer, offset }, Some(held)))
    }

    fn fsync(&self, fd: RawFd) -> u64 {
        self.submit(Op::Fsync { fd }, None)
    }

    fn truncate(&self, fd: RawFd, bytes: u64) -> u64 {
        self.submit(Op::Truncate { fd, len: bytes }, None)
    }

    #[pyo3(signature = (from_, from_offset, to, to_offset, bytes))]
    fn copy(&self, from_: RawFd, from_offset: u64, to: RawFd, to_offset: u64, bytes: u64) -> u64 {
        self.submit(Op::Copy { from: from_, from_offset, to, to_offset, len: bytes }, None)
    }
}
