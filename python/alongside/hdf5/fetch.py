"""Reading ahead."""

from __future__ import annotations

from typing import Any

from alongside.hdf5 import plugin


def prefetch(dataset: Any) -> int:
    """Reads a dataset ahead, behind the program: reading it later copies from memory.

    Its bytes are read once and handed over once, in one read or in several from the first to the
    last. They count in the limit of the file (:func:`alongside.hdf5.connector`), and what does not
    fit is not read ahead. What is written in the meantime is seen, as always. A dataset with
    filters is read as it is stored; it is unpacked by the read itself.

    Args:
        dataset: an h5py dataset of a file under the connector. Of one without the connector, or
            without bytes in the file (compact, virtual, external, never written), nothing is read.

    Returns:
        How many bytes are on their way.

    """
    identity = plugin.identity(dataset)
    if identity is None:
        return 0
    device, inode = identity
    library = plugin.loaded()
    fetched = 0
    for offset, length in plugin.ranges(dataset):
        taken = library.alongside_hdf5_fetch(device, inode, offset, length)
        fetched += taken
        if taken < length:
            break
    return fetched
