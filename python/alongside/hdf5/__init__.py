"""HDF5 programs that do not wait for their writes, unchanged.

The work is done by a plugin that HDF5 loads (a VOL connector); this module tells HDF5 where it is.
Four ways, from the least to the most that a program says of it::

    alongside run --hdf5 app.py             # h5py, PyTables, netCDF4: whatever brings an HDF5
    eval "$(alongside hdf5)"; ./program     # any program with a shared HDF5 of 1.14 or 2.x
    with alongside.hdf5.enabled(): ...      # files that h5py opens in here
    alongside.hdf5.prefetch(dataset)        # read ahead, while the program computes
    alongside.hdf5.wait(file)               # until what was written is with the system
"""

from __future__ import annotations

import ctypes
from typing import Any

from alongside.hdf5.enable import enabled
from alongside.hdf5.fetch import prefetch
from alongside.hdf5.plugin import (
    CONNECTOR,
    FOLDER,
    PLUGIN,
    connector,
    environment,
    identity,
    loaded,
)

__all__ = [
    "CONNECTOR",
    "FOLDER",
    "PLUGIN",
    "connector",
    "enabled",
    "environment",
    "prefetch",
    "wait",
]

_TEXT_BYTES_MAX = 4096


def wait(target: Any = None) -> None:
    """Waits until what was written to a file is with the system; None: to all files.

    What HDF5 itself still holds (its chunk and metadata caches) is written by ``flush`` and
    ``close``, which wait as well; this is for who wants neither, but memory back, or errors.

    Args:
        target: a path, or an h5py file, group or dataset: its file.

    Raises:
        OSError: something could not be written. It is raised once; which file, object, operation
            and cause are in the message.

    """
    device, inode = (0, 0) if target is None else identity(target)
    text = ctypes.create_string_buffer(_TEXT_BYTES_MAX)
    if loaded().alongside_hdf5_wait(device, inode, text, _TEXT_BYTES_MAX):
        raise OSError(text.value.decode(errors="replace"))
