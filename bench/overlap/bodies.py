"""The two task bodies: a computation of known length, and a write that is flushed."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import threading

import alongside as al
from bench.overlap.plan import PIECE_BYTES

BLOCK = bytes(range(256)) * 256
START = b"alongside"
_local = threading.local()


def compute(state: bytes, rounds: int) -> bytes:
    """Hash a block that stays in the cache, `rounds` times: processor time and nothing else."""
    digest = hashlib.sha256(state)
    for _ in range(rounds):
        digest.update(BLOCK)
    return digest.digest()


def write(path: al.FileOut, state: bytes, file_bytes: int, direct: bool) -> None:
    """Overwrite a file with pieces that carry the state, and flush it to the device.

    With `direct` the page cache is left out (O_DIRECT), so that hardly any processor time is used.
    """
    piece = _piece()
    piece[: len(state)] = state

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | (os.O_DIRECT if direct else 0))

    with al.open(path, "r+b", buffering=0, opener=opener) as file:
        for _ in range(file_bytes // PIECE_BYTES):
            rest = memoryview(piece)
            while rest:  # a layer with a limit takes less at once
                rest = rest[file.write(rest) :]
        al.fsync(file)


def _piece() -> mmap.mmap:
    """A piece of memory of this thread, aligned to a page as O_DIRECT wants it.

    In large pages where the system has them, as NumPy asks for its arrays: a disk takes so many
    pages in one request, and every page of a request costs processor time.
    """
    if not hasattr(_local, "piece"):
        _local.piece = mmap.mmap(-1, PIECE_BYTES, flags=mmap.MAP_PRIVATE)
        with contextlib.suppress(OSError):
            _local.piece.madvise(mmap.MADV_HUGEPAGE)
        _local.piece.write(bytes(255 - i for i in range(256)) * (PIECE_BYTES // 256))
    piece: mmap.mmap = _local.piece
    return piece
