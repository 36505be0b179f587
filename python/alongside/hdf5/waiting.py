"""Waiting for what was written, and asking whether it is there."""

from __future__ import annotations

import ctypes
from typing import Any

from alongside.hdf5 import plugin

#: Room for what went wrong: some thousand lines. More are counted.
TEXT_BYTES_MAX = 1 << 18


def wait(target: Any = None) -> None:
    """Waits until what was written to a file or a dataset is with the system; None: to all files.

    What HDF5 itself still holds (its chunk and metadata caches) is written by ``flush`` and
    ``close``, which wait as well; this is for who wants neither, but memory back, or errors.

    Args:
        target: an h5py dataset: what lies where its data are in the file (of a chunked one HDF5
            writes what it has cached of it first). A path, or an h5py file or group: its file.

    Raises:
        OSError: something could not be written. It is raised once; which file, object, operation
            and cause are in the message, and ``errno`` is that of the first.

    """
    place = _place(target)
    if place is None:
        return
    text = ctypes.create_string_buffer(TEXT_BYTES_MAX)
    errno = plugin.loaded().alongside_hdf5_wait(*place, text, TEXT_BYTES_MAX)
    if errno:
        raise OSError(errno, text.value.decode(errors="replace"))


def test(target: Any = None) -> bool:
    """Whether :func:`alongside.hdf5.wait` would return, or raise, at once; its own arguments."""
    place = _place(target)
    return place is None or bool(plugin.loaded().alongside_hdf5_test(*place))


def _place(target: Any) -> tuple[Any, ...] | None:
    """Device, inode, ranges and their number, as the plugin takes them; None: it is not ours."""
    if target is None:
        return 0, 0, None, 0
    identity = plugin.identity(target)
    if identity is None:
        return None
    device, inode = identity
    if not hasattr(target, "chunks"):
        return device, inode, None, 0
    flat = [number for pair in plugin.ranges(target) for number in pair]
    # One more, so that there is something to point at.
    listed = (ctypes.c_uint64 * (len(flat) + 1))(*flat)
    return device, inode, listed, len(flat) // 2
