"""Reading ahead: where a dataset's bytes are, and asking for them."""

from __future__ import annotations

from collections.abc import Iterator
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
    device, inode = plugin.identity(dataset)
    library = plugin.loaded()
    fetched = 0
    for offset, length in _ranges(dataset):
        taken = library.alongside_hdf5_fetch(device, inode, offset, length)
        fetched += taken
        if taken < length:
            break
    return fetched


def _ranges(dataset: Any) -> Iterator[tuple[int, int]]:
    """Offset and length in the file of what a dataset has there, in the order of its chunks."""
    if dataset.chunks is None:
        offset = dataset.id.get_offset()
        if offset is not None and not dataset.is_virtual and not dataset.external:
            yield offset, dataset.id.get_storage_size()
        return
    for number in range(dataset.id.get_num_chunks()):
        chunk = dataset.id.get_chunk_info(number)
        if chunk.byte_offset is not None:
            yield chunk.byte_offset, chunk.size
