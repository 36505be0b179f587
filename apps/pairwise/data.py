"""Makes a large file of reads, and reads it in groups.

The genome and the reads are those of `apps/variants`; the file is a resample of the reads, with
replacement, compressed as sequencers' files are. A group of its reads is a text of FASTQ.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Protocol

from apps.align import data as reads
from apps.variants import data

LINES = 4
"""Lines a read."""

PIECE = 2000
"""Pairs of which the file is made at a time."""


class Source(Protocol):
    """What a compressed file is read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Read at most so many bytes; none at the end."""


def make(given: data.Input, path: Path, pairs: int) -> None:
    """Write a compressed file of so many pairs, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = data.read_pairs(given.reads)
    temporary = path.with_suffix(".part")
    with temporary.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
        for number, begin in enumerate(range(0, pairs, PIECE)):
            drawn = reads.draw(known, number, min(PIECE, pairs - begin))
            file.write(data.fastq(drawn).encode("ascii"))
    temporary.rename(path)


def groups(file: Source | IO[bytes], size: int) -> Iterator[bytes]:
    """Yield the reads of a compressed file as texts of `size` reads, the last one of the rest."""
    with gzip.GzipFile(fileobj=file) as plain:  # type: ignore[arg-type]
        while text := b"".join(islice(plain, LINES * size)):
            yield text
