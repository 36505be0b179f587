"""Aligning reads to a reference with minimap2 (mappy), and what is written of it.

Two results, of two sizes: the first reference's is a PAF file (where each read lies, as minimap2
writes it), the second's a SAM file (that, and the reads themselves). How much of either is a
matter of detail:

| detail | PAF, first reference | SAM, second reference |
|---|---|---|
| minimal | the 12 columns | the 11 columns, NM |
| tags | and NM, cg, cs | and MD, cs, mates, read group |
| full | and cs in its long form | and cs in its long form, the mate's bases and qualities |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from apps.variants import duplicates, mapping, sam

from .data import Genome, Pair, Read

DETAILS = ("minimal", "tags", "full")

_DIFFERENCE = re.compile(r":(\d+)|\*[a-z]([a-z])|([+-])([a-z]+)")


class Placed(NamedTuple):
    """A read, and the places (mappy.Alignment) where it lies on a reference."""

    read: Read
    places: tuple[Any, ...]

    @property
    def best(self) -> Any:
        """The place that it belongs to; None if it has none."""
        return next((place for place in self.places if place.is_primary), None)


class Summary(NamedTuple):
    """How well reads fit a reference: counts, and by position how many reads cover it."""

    reads: int
    aligned: int
    bases: int
    differences: int
    depth: npt.NDArray[np.int64]


class Places(NamedTuple):
    """How well some reads fit: counts, and where each begins and ends on the genome.

    Not their depth: that is as long as the genome, however few they are.
    """

    reads: int
    bases: int
    differences: int
    begins: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]


def align(genome: Genome, pairs: Sequence[Pair]) -> list[tuple[Placed, Placed]]:
    """Find where the reads lie, each by itself."""
    aligner = mapping.aligner_of(genome)

    def place(read: Read) -> Placed:
        return Placed(read, tuple(aligner.map(read.sequence, cs=True, MD=True)))

    return [(place(pair.first), place(pair.second)) for pair in pairs]


def long_form(genome: Genome, place: Any) -> str:
    """Return the differences with the bases that are equal, not only their number."""
    parts, at = [], place.r_st
    for match in _DIFFERENCE.finditer(place.cs):
        equal, changed, sign, moved = match.groups()
        if equal:
            parts.append("=" + genome.sequence[at : at + int(equal)])
            at += int(equal)
        else:
            parts.append(match[0])
            at += 1 if changed else len(moved) * (sign == "-")
    return "".join(parts)


def paf(genome: Genome, found: Iterable[tuple[Placed, Placed]], detail: str) -> str:
    """Return the file of the first reference: a line a place."""
    return "".join(
        f"{line}\n"
        for pair in found
        for end, placed in enumerate(pair, 1)
        for line in _lines(genome, placed, end, detail)
    )


def _lines(genome: Genome, placed: Placed, end: int, detail: str) -> Iterator[str]:
    name, length = f"{placed.read.name}/{end}", len(placed.read.sequence)
    for p in placed.places:
        strand = "+" if p.strand > 0 else "-"
        line = (
            f"{name}\t{length}\t{p.q_st}\t{p.q_en}\t{strand}\t{genome.name}\t{p.ctg_len}\t"
            f"{p.r_st}\t{p.r_en}\t{p.mlen}\t{p.blen}\t{p.mapq}"
        )
        if detail != "minimal":
            differences = long_form(genome, p) if detail == "full" else p.cs
            line += f"\tNM:i:{p.NM}\tcg:Z:{p.cigar_str}\tcs:Z:{differences}"
        yield line


def records(
    genome: Genome, found: Iterable[tuple[Placed, Placed]], sample: str, detail: str
) -> Iterator[sam.Record]:
    """Yield the lines of the second reference's file: one a read."""
    for first, second in found:
        pair = (
            _record(genome, first, sam.PAIRED | sam.FIRST, detail),
            _record(genome, second, sam.PAIRED | sam.SECOND, detail),
        )
        if detail != "minimal":
            pair = duplicates.mated(*pair, sample)
        if detail == "full":
            pair = (_with_mate(pair[0], second.read), _with_mate(pair[1], first.read))
        yield from pair


def _record(genome: Genome, placed: Placed, flag: int, detail: str) -> sam.Record:
    best = placed.best
    record = mapping.record_of(genome, placed.read, flag, best)
    if best is None or detail == "minimal":
        return record
    differences = long_form(genome, best) if detail == "full" else best.cs
    tags = (f"MD:Z:{best.MD}", f"cs:Z:{differences}")
    return record._replace(tags=record.tags + tags)


def _with_mate(record: sam.Record, mate: Read) -> sam.Record:
    return record._replace(tags=(*record.tags, f"R2:Z:{mate.sequence}", f"Q2:Z:{mate.quality}"))


def sam_text(
    genome: Genome, found: Iterable[tuple[Placed, Placed]], sample: str, detail: str
) -> str:
    """Return the file of the second reference."""
    return sam.text(genome, "unsorted", sample, records(genome, found, sample, detail))


def places(found: Sequence[tuple[Placed, Placed]]) -> Places:
    """Sum up how well the reads fit, and where they lie."""
    best = [placed.best for pair in found for placed in pair if placed.best is not None]
    return Places(
        2 * len(found),
        sum(place.blen for place in best),
        sum(place.NM for place in best),
        np.array([place.r_st for place in best], np.int32),
        np.array([place.r_en for place in best], np.int32),
    )


def added(genome: Genome, parts: Sequence[Places]) -> Summary:
    """Add up how well reads fit that were placed in parts."""
    begins = np.concatenate([part.begins for part in parts])
    ends = np.concatenate([part.ends for part in parts])
    size = len(genome.sequence) + 1
    steps = np.bincount(begins, minlength=size) - np.bincount(ends, minlength=size)
    return Summary(
        sum(part.reads for part in parts),
        len(begins),
        sum(part.bases for part in parts),
        sum(part.differences for part in parts),
        np.cumsum(steps)[:-1],
    )


def summary(genome: Genome, found: Sequence[tuple[Placed, Placed]]) -> Summary:
    """Sum up how well the reads fit."""
    return added(genome, [places(found)])
