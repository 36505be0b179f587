"""Finds the genome and the reads, which come with a wheel, and draws samples of the reads.

The wheel `sequana` carries the genome of a measles virus (strain Edmonston, K01711) and 1,499
pairs of reads that an Illumina HiSeq read from another strain: 16 times the genome. There is one
set of reads, so a sample is a part of its pairs, drawn without replacement. The samples then tell
which variants stand on few reads: those that are found in some samples only.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from apps.common import wheels

WHEEL, FOLDER = "sequana", "resources/data/"
GENOME = "measles.fa"
READS = ("Hm2_GTGAAA_L005_R1_001.fastq.gz", "Hm2_GTGAAA_L005_R2_001.fastq.gz")
REMEDY = "python -m pip install --no-deps sequana"

SHARE = 0.8
"""How much of the pairs a sample has, if nobody says."""


class Input(NamedTuple):
    """The files: the genome, and the first and the second reads; how much of them a sample has."""

    genome: Path
    reads: tuple[Path, Path]
    share: float = SHARE


class Genome(NamedTuple):
    """The reference: one contig."""

    name: str
    sequence: str


class Read(NamedTuple):
    """A read as it was sequenced; `quality` has a character a base, 33 above its quality."""

    name: str
    sequence: str
    quality: str


class Pair(NamedTuple):
    """Both ends of a fragment."""

    first: Read
    second: Read


def find_input(share: float = SHARE) -> Input:
    """Find the files; DataMissingError with the pip command if the wheel is not installed."""

    def file(name: str, what: str) -> Path:
        return wheels.files_of(WHEEL, lambda path: path == FOLDER + name, what, REMEDY)[0]

    first, second = (file(name, "the reads") for name in READS)
    return Input(file(GENOME, "the genome"), (first, second), share)


@cache
def read_genome(path: Path) -> Genome:
    """Read a FASTA file of one sequence of A, C, G and T."""
    head, *lines = path.read_text(encoding="ascii").splitlines()
    sequence = "".join(lines).upper()
    assert head.startswith(">") and set(sequence) == set("ACGT"), f"{path} is no single genome"
    return Genome(head[1:].split()[0], sequence)


@cache
def read_pairs(paths: tuple[Path, Path]) -> tuple[Pair, ...]:
    """Read two gzipped FASTQ files whose reads are pairs."""
    first, second = (gzip.decompress(path.read_bytes()).decode("ascii") for path in paths)
    return tuple(
        Pair(*both)
        for both in zip(parse(first.split("\n")), parse(second.split("\n")), strict=True)
    )


def parse(lines: Iterable[str]) -> Iterator[Read]:
    """Yield the reads of a FASTQ file; of their names what both reads of a pair share."""
    rest = iter(lines)
    while len(four := list(islice(rest, 4))) == 4:
        head, sequence, _, quality = four
        yield Read(head[1:].split()[0].removesuffix("/1").removesuffix("/2"), sequence, quality)


def pairs_of(text: str) -> list[Pair]:
    """Return the pairs of a FASTQ file in which both reads of a pair follow each other."""
    reads = list(parse(text.split("\n")))
    return [Pair(*both) for both in zip(reads[::2], reads[1::2], strict=True)]


def fastq(pairs: Iterable[Pair]) -> str:
    """Return pairs as a FASTQ file."""
    return "".join(
        f"@{read.name}/{end}\n{read.sequence}\n+\n{read.quality}\n"
        for pair in pairs
        for end, read in enumerate(pair, 1)
    )


def draw(pairs: tuple[Pair, ...], sample: int, share: float = SHARE) -> list[Pair]:
    """Return the pairs of a sample, in their order."""
    random = np.random.default_rng([3, sample])
    chosen = random.choice(len(pairs), round(share * len(pairs)), replace=False)
    return [pairs[at] for at in np.sort(chosen)]
