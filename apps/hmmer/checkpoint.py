"""The checkpoint of a pair: everything that a restart of that pair needs, in one file.

It holds the hits with their alignments, so that the search need not be repeated, and both
digitised fragments, so that the search could be repeated without the input.

    magic "ALHMMER1" | header | CRC-32 of these | body | CRC-32 of all before | magic "ALHMMEND"

All numbers are little-endian. The header gives the length of the file and of every section.
The body is the payload (hits, packed profiles, packed sequences), repeated as often as it takes
to fill the wanted size; the last repetition may be cut short. Repetition is how the
application is brought to a published balance of I/O and computation; a restart reads
the first payload, but the checksum covers all of it. A file that is torn, truncated or changed
anywhere is refused with the reason.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import chain, pairwise, repeat
from typing import NamedTuple, Protocol

from . import records
from .data import Fragment

MAGIC, END_MAGIC = b"ALHMMER1", b"ALHMMEND"
VERSION = 1
CHUNK_BYTES_MAX = 1 << 20
CRC = struct.Struct("<I")


class Pair(NamedTuple):
    """Which pair of fragments of which database a checkpoint belongs to."""

    hmm_index: int
    sequence_index: int
    database_size: float


class Header(NamedTuple):
    """The numbers at the start of a checkpoint; sizes and positions in bytes."""

    version: int
    file_bytes: int
    hmm_index: int
    sequence_index: int
    database_size: float
    hmm_first: int
    hmm_count: int
    sequence_first: int
    sequence_count: int
    hits_bytes: int
    hmms_bytes: int
    sequences_bytes: int
    hmms_crc: int
    sequences_crc: int


class Checkpoint(NamedTuple):
    """A checkpoint that was read and found whole."""

    header: Header
    hits: list[records.Hit]
    hmms: bytes
    sequences: bytes


class CheckpointError(Exception):
    """The file is not a whole checkpoint of this pair; the text says why."""


class Writable(Protocol):
    """A file open for writing bytes."""

    def write(self, data: bytes | memoryview, /) -> object:
        """Write all of `data`."""


HEADER_BYTES = len(MAGIC) + 8 * len(Header._fields) + CRC.size
END_BYTES = CRC.size + len(END_MAGIC)


def _encode(header: Header) -> bytes:
    counted = records.pack([header])
    head = MAGIC + counted[records.COUNT.size :]
    return head + CRC.pack(zlib.crc32(head))


def natural_bytes(hits: bytes, hmms: Fragment, sequences: Fragment) -> int:
    """Return the size of the checkpoint without repetition."""
    return HEADER_BYTES + len(hits) + hmms.packed.nbytes + sequences.packed.nbytes + END_BYTES


def _chunks(payload: list[memoryview], body_bytes: int) -> Iterator[memoryview]:
    """Yield the payload, repeated up to `body_bytes`, in pieces of bounded size."""
    left = body_bytes
    for piece in chain.from_iterable(repeat(payload)):
        for at in range(0, len(piece), CHUNK_BYTES_MAX):
            chunk = piece[at : min(at + CHUNK_BYTES_MAX, at + left)]
            yield chunk
            left -= len(chunk)
            if not left:
                return


def write(
    file: Writable,
    pair: Pair,
    hits: bytes,
    hmms: Fragment,
    sequences: Fragment,
    size: int = 0,
) -> int:
    """Write a checkpoint of `size` bytes (its natural size if that is more); return the size."""
    file_bytes = max(size, natural_bytes(hits, hmms, sequences))
    payload = [memoryview(hits), hmms.packed.data, sequences.packed.data]
    header = Header(
        VERSION,
        file_bytes,
        *pair,
        hmms.first,
        hmms.items,
        sequences.first,
        sequences.items,
        *(len(part) for part in payload),
        *(zlib.crc32(part) for part in payload[1:]),
    )
    head = _encode(header)
    file.write(head)
    crc = zlib.crc32(head)
    for chunk in _chunks(payload, file_bytes - HEADER_BYTES - END_BYTES):
        file.write(chunk)
        crc = zlib.crc32(chunk, crc)
    file.write(CRC.pack(crc) + END_MAGIC)
    return file_bytes


def _header(data: memoryview) -> Header:
    head = data[: HEADER_BYTES - CRC.size]
    if len(data) < HEADER_BYTES + END_BYTES:
        raise CheckpointError(f"it has only {len(data)} bytes, less than a header and an end")
    if bytes(head[: len(MAGIC)]) != MAGIC:
        raise CheckpointError("it does not begin like a checkpoint of this application")
    if CRC.pack(zlib.crc32(head)) != data[HEADER_BYTES - CRC.size : HEADER_BYTES]:
        raise CheckpointError("its header does not match the header's checksum")
    listed = records.COUNT.pack(1) + bytes(head[len(MAGIC) :])
    (header,), _ = records.unpack(Header, listed)
    if header.version != VERSION:
        raise CheckpointError(
            f"it has format version {header.version}; this program reads version {VERSION}"
        )
    return header


def read(data: bytes | memoryview) -> Checkpoint:
    """Return what the bytes of a checkpoint say; raise CheckpointError if it is not whole."""
    view = memoryview(data)
    header = _header(view)
    if len(view) != header.file_bytes:
        raise CheckpointError(f"it has {len(view)} bytes of {header.file_bytes}")
    if bytes(view[-len(END_MAGIC) :]) != END_MAGIC:
        raise CheckpointError("its end mark is missing")
    if CRC.pack(zlib.crc32(view[:-END_BYTES])) != view[-END_BYTES : -len(END_MAGIC)]:
        raise CheckpointError("its content does not match its checksum")
    ends = [HEADER_BYTES]
    for size in (header.hits_bytes, header.hmms_bytes, header.sequences_bytes):
        ends.append(ends[-1] + size)
    try:
        hits, taken = records.unpack(records.Hit, view[ends[0] : ends[1]])
    except records.BadRecordError as error:
        raise CheckpointError(f"its hits cannot be read: {error}") from error
    if taken != header.hits_bytes:
        raise CheckpointError(f"its hits take {taken} bytes of {header.hits_bytes}")
    packed = (bytes(view[a:b]) for a, b in pairwise(ends[1:]))
    hmms, sequences = (zlib.decompress(part) for part in packed)
    return Checkpoint(header, hits, hmms, sequences)


def read_for(
    data: bytes | memoryview, pair: Pair, hmms: Fragment, sequences: Fragment
) -> list[records.Hit]:
    """Return the hits of a whole checkpoint that belongs to exactly this pair and this input.

    Raises CheckpointError if it is not whole, or was written for other fragments.
    """
    found = read(data)
    header = found.header
    if header[2:5] != pair:
        raise CheckpointError(f"it belongs to another pair: {header[2:5]}, not {tuple(pair)}")
    expected = tuple(zlib.crc32(part.packed.data) for part in (hmms, sequences))
    if (header.hmms_crc, header.sequences_crc) != expected:
        raise CheckpointError("it was written for other fragments of the input")
    return found.hits
