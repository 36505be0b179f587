"""HDF5 programs that do not wait for their writes, unchanged.

The work is done by a plugin that HDF5 loads (a VOL connector); this module tells HDF5 where it is.
Some ways, from the least to the most that a program says of it::

    alongside run --hdf5 app.py             # h5py, PyTables, netCDF4: whatever brings an HDF5
    eval "$(alongside hdf5)"; ./program     # any program with a shared HDF5 of 1.14 or 2.x
    with alongside.hdf5.enabled(): ...      # files that h5py opens in here
    alongside.hdf5.prefetch(dataset)        # read ahead, while the program computes
    alongside.hdf5.wait(file)               # until what was written is with the system
    alongside.hdf5.test(dataset)            # whether it is
"""

from __future__ import annotations

from alongside.hdf5.enable import enabled
from alongside.hdf5.fetch import prefetch
from alongside.hdf5.plugin import (
    CONNECTOR,
    FOLDER,
    PLUGIN,
    connector,
    environment,
)
from alongside.hdf5.waiting import test, wait

__all__ = [
    "CONNECTOR",
    "FOLDER",
    "PLUGIN",
    "connector",
    "enabled",
    "environment",
    "prefetch",
    "test",
    "wait",
]
