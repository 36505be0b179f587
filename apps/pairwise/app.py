"""The program: a compressed file of reads is read in groups, and each group is aligned.

    get_reads ──> align (one a group) ──> total

It is the published program (Elshazly's thesis, section 7.6.3.2, figure 7.17).

`eager`: one `get_reads` streams the file; a group is aligned when it was read.
`lazy`: out of core. `get_reads` reads a part that fits in memory and returns its groups when it
ends; they are aligned, and then the next part is read. It opens the file anew for each part, and
has to unpack what stands before it, as a compressed file has no other beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import alongside as al
from apps.align import alignment
from apps.common.release import PRODUCER, Ran, each, producer
from apps.common.spans import Span, Stopwatch, now_ns
from apps.variants import data as variants

from . import data

AHEAD = 32
"""How many groups the reader may be ahead of those that are aligned."""


class Job(NamedTuple):
    """A file of reads, and the genome that they are aligned to.

    `group`: reads a task; `groups`: of the file; `part`: groups that fit in memory.
    """

    reads: Path
    genome: Path
    group: int
    groups: int
    part: int


class Group(NamedTuple):
    """Reads as FASTQ, and when they were read."""

    text: bytes
    span: Span


class Fit(NamedTuple):
    """How well reads fit the genome: counts, and by position how many reads cover it."""

    reads: int
    aligned: int
    bases: int
    differences: int
    depth: npt.NDArray[np.int64]


class Aligned(NamedTuple):
    """Where the reads of a group lie, and when they were read and aligned."""

    places: alignment.Places
    spans: list[Span]


class Total(NamedTuple):
    """How well all reads fit, and when everything was done."""

    fit: Fit
    spans: list[Span]


def places_of(genome: Path, text: bytes) -> alignment.Places:
    """Align the reads of a FASTQ text."""
    known = variants.read_genome(genome)
    return alignment.places(alignment.align(known, variants.pairs_of(text.decode("ascii"))))


def fit_of(genome: Path, groups: Sequence[alignment.Places]) -> Fit:
    """Add up how well the reads of all groups fit."""
    return Fit(*alignment.added(variants.read_genome(genome), groups))


def get_reads(path: al.FileIn, group: int, first: int, count: int) -> Iterator[Group]:
    """Read `count` groups of a file, from group `first` on."""
    with al.open(path, "rb") as file:
        rest = islice(data.groups(file, group), first + count)
        for _ in islice(rest, first):
            pass  # what stands before a part is unpacked, and is not what a producer has to do
        while True:
            with Stopwatch(PRODUCER) as watch:
                text = next(rest, None)
            if text is None:
                return
            yield Group(text, watch.span)


@al.task
def align(genome: Path, group: Group) -> Aligned:
    """Align the reads of a group."""
    with Stopwatch("align") as watch:
        places = places_of(genome, group.text)
    return Aligned(places, [group.span, watch.span])


@al.task
def total(genome: Path, aligned: Sequence[Aligned]) -> Total:
    """Add up how well the reads of all groups fit."""
    with Stopwatch("total") as watch:
        fit = fit_of(genome, [one.places for one in aligned])
    return Total(fit, [*(span for one in aligned for span in one.spans), watch.span])


def run(job: Job, way: str) -> Ran:
    """Run the program under a session, `lazy` or `eager`."""
    start_ns = now_ns()
    path, aligned = str(job.reads), []
    part = job.groups if way == "eager" else job.part
    for first in range(0, job.groups, part):
        count = min(part, job.groups - first)
        groups = each(producer(get_reads, way, count, AHEAD)(path, job.group, first, count))
        of_part = [align(job.genome, group) for group in groups]
        del groups
        if way == "lazy":
            al.wait(of_part)  # the memory of this part is needed for the next
        aligned += of_part
    found = al.wait(total(job.genome, aligned))
    return Ran(found.fit, found.spans, start_ns, now_ns())
