"""The bases of aligned reads as arrays, and which position of the reference each one lies on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from . import sam

Ints = npt.NDArray[np.int32]

LETTERS = "ACGT"
_CODES = np.full(256, len(LETTERS), np.int32)
_CODES[list(LETTERS.encode())] = range(len(LETTERS))

MAPPING_QUALITY_MIN = 20


class Bases(NamedTuple):
    """The bases of all reads, one after the other.

    `code` is the place in LETTERS (4 for N), `quality` that of the sequencer, `cycle` how many
    bases of its read were sequenced before it.
    """

    code: Ints
    quality: Ints
    cycle: Ints


class Pileup(NamedTuple):
    """The aligned bases: by base its place in `Bases`, on the reference (from 0), its fragment."""

    base: Ints
    position: Ints
    fragment: Ints


def codes(sequence: str) -> Ints:
    """Return a sequence as places in LETTERS."""
    return _CODES[np.frombuffer(sequence.encode("ascii"), np.uint8)]


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """Return start, start + 1, ... for each start and length, one after the other."""
    before = np.cumsum(lengths) - lengths
    counted = np.arange(lengths.sum()) - np.repeat(before, lengths)
    return (counted + np.repeat(starts, lengths)).astype(np.int32)


def bases_of(records: Sequence[sam.Record]) -> Bases:
    """Return the bases of these reads."""
    quality = np.frombuffer("".join(one.quality for one in records).encode("ascii"), np.uint8)
    lengths = np.array([len(one.sequence) for one in records], np.int32)
    forward = _ranges(np.zeros_like(lengths), lengths)
    is_reverse = np.repeat([one.is_reverse for one in records], lengths)
    cycle = np.where(is_reverse, np.repeat(lengths, lengths) - 1 - forward, forward)
    return Bases(codes("".join(one.sequence for one in records)), quality.astype(np.int32) - 33,
                 cycle.astype(np.int32))  # fmt: skip


def pile(records: Sequence[sam.Record]) -> Pileup:
    """Return the aligned bases of the reads that can be trusted: mapped well, no duplicates."""
    fragments: dict[str, int] = {}
    runs: list[tuple[int, int, int, int]] = []
    offset = 0
    for record in records:
        if not record.flag & (sam.UNMAPPED | sam.DUPLICATE) and (
            record.mapping_quality >= MAPPING_QUALITY_MIN
        ):
            fragment = fragments.setdefault(record.name, len(fragments))
            base, position = offset, record.position - 1
            for length, operation in sam.operations(record.cigar):
                if operation in "M=X":
                    runs.append((base, position, length, fragment))
                base += length if operation in sam.ON_READ else 0
                position += length if operation in sam.ON_REFERENCE else 0
        offset += len(record.sequence)
    base_at, position_at, lengths, fragment_at = np.array(runs, np.int32).reshape(-1, 4).T
    return Pileup(
        _ranges(base_at, lengths), _ranges(position_at, lengths), np.repeat(fragment_at, lengths)
    )


def once_a_fragment(pileup: Pileup, bases: Bases) -> Pileup:
    """Return the pileup with one base a fragment and position: where its reads overlap, the better.

    Both reads saw the same molecule, so the second one is no further evidence.
    """
    worst_last = np.lexsort((pileup.base, -bases.quality[pileup.base], pileup.position,
                             pileup.fragment))  # fmt: skip
    sorted_ = Pileup(*(column[worst_last] for column in pileup))
    is_first = np.ones(len(sorted_.base), bool)
    is_first[1:] = (np.diff(sorted_.position) != 0) | (np.diff(sorted_.fragment) != 0)
    return Pileup(*(column[is_first] for column in sorted_))
