"""Finds two genomes and reads, which come with a wheel, and makes sequence files of the reads.

The wheel `sequana` carries reads that an Illumina HiSeq read from a measles virus, 1,499 pairs,
and two genomes that they lie on: K01711, the strain Edmonston (15,894 bases), and JB409847, a
genome from a patent for measles viruses made as vaccines (19,795 bases; a gene is inserted, and
the ends are those of a plasmid). There is one set of reads, so a sequence file is a resample of
it: so many pairs, drawn with replacement, as a bootstrap does. (The published runs replicate
sequence files.)
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from apps.common import wheels
from apps.variants import data
from apps.variants.data import Genome, Pair, Read

REFERENCES = ("data/measles.fa", "doc/JB409847.fasta")
FOLDER = "resources/"
COMPRESSION = 6


class Input(NamedTuple):
    """The files: two references, and the first and the second reads of all pairs."""

    references: tuple[Path, Path]
    reads: tuple[Path, Path]

    def genome(self, reference: int) -> Genome:
        """Return a reference, 0 or 1."""
        return data.read_genome(self.references[reference])


def find_input() -> Input:
    """Find the files; DataMissingError with the pip command if the wheel is not installed."""

    def file(name: str) -> Path:
        return wheels.files_of(
            data.WHEEL, lambda path: path == FOLDER + name, "the references", data.REMEDY
        )[0]

    first, second = (file(name) for name in REFERENCES)
    return Input((first, second), data.find_input().reads)


def name_of(sample: int) -> str:
    """Return the name of a sample."""
    return f"sample-{sample:03}"


def sequence_file(folder: Path, sample: int) -> Path:
    """Return where the reads of a sample are."""
    return folder / f"{name_of(sample)}.fastq.gz"


def draw(pairs: Sequence[Pair], sample: int, count: int) -> list[Pair]:
    """Draw the pairs of a sample, with replacement; each draw has a name of its own."""
    chosen = np.random.default_rng([5, sample]).integers(len(pairs), size=count)
    return [_named(pairs[at], draw) for draw, at in enumerate(chosen.tolist())]


def _named(pair: Pair, draw: int) -> Pair:
    first, second = (read._replace(name=f"{read.name}:{draw}") for read in pair)
    return Pair(first, second)


def compressed(given: Input, sample: int, count: int) -> bytes:
    """Return the sequence file of a sample: gzipped FASTQ, both reads of a pair in a row."""
    text = data.fastq(draw(data.read_pairs(given.reads), sample, count))
    return gzip.compress(text.encode("ascii"), COMPRESSION, mtime=0)


def prepare(given: Input, folder: Path, samples: int, count: int) -> None:
    """Write the sequence files."""
    folder.mkdir(parents=True, exist_ok=True)
    for sample in range(samples):
        sequence_file(folder, sample).write_bytes(compressed(given, sample, count))


def pairs_of(content: bytes) -> list[Pair]:
    """Return the pairs of a sequence file."""
    return data.pairs_of(gzip.decompress(content).decode("ascii"))


__all__ = [
    "Genome",
    "Input",
    "Pair",
    "Read",
    "compressed",
    "draw",
    "find_input",
    "name_of",
    "pairs_of",
    "prepare",
    "sequence_file",
]
