"""SAM: the format of aligned reads, as values and as text (SAMv1, sections 1.3 to 1.5)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from .data import Genome

PAIRED, PROPER, UNMAPPED, MATE_UNMAPPED = 0x1, 0x2, 0x4, 0x8
REVERSE, MATE_REVERSE, FIRST, SECOND, DUPLICATE = 0x10, 0x20, 0x40, 0x80, 0x400

_CIGAR = re.compile(r"(\d+)([MIDNSHP=X])")
ON_REFERENCE, ON_READ = frozenset("MDN=X"), frozenset("MIS=X")


class Record(NamedTuple):
    """A line: a read and where it is on the reference, from `position` on (1 is the first base).

    The sequence and its qualities are in the direction of the reference.
    """

    name: str
    flag: int
    contig: str
    position: int
    mapping_quality: int
    cigar: str
    mate_contig: str
    mate_position: int
    template_length: int
    sequence: str
    quality: str
    tags: tuple[str, ...]

    @property
    def is_mapped(self) -> bool:
        """Whether there is a place for it on the reference."""
        return not self.flag & UNMAPPED

    @property
    def is_reverse(self) -> bool:
        """Whether the other strand was read."""
        return bool(self.flag & REVERSE)


def operations(cigar: str) -> list[tuple[int, str]]:
    """Return the lengths and operations of a CIGAR string."""
    return [(int(length), operation) for length, operation in _CIGAR.findall(cigar)]


def end(record: Record) -> int:
    """Return the position of the last base that a mapped read covers."""
    covered = sum(n for n, operation in operations(record.cigar) if operation in ON_REFERENCE)
    return record.position + covered - 1


def unclipped_start(record: Record) -> int:
    """Return where the first base that was sequenced lies, had the whole read been aligned."""
    clips = operations(record.cigar)
    if record.is_reverse:
        return end(record) + (clips[-1][0] if clips[-1][1] == "S" else 0)
    return record.position - (clips[0][0] if clips[0][1] == "S" else 0)


def text(genome: Genome, order: str, sample: str, records: Iterable[Record]) -> str:
    """Return a SAM file; `order` is what it is sorted by."""
    head = (
        f"@HD\tVN:1.6\tSO:{order}\n"
        f"@SQ\tSN:{genome.name}\tLN:{len(genome.sequence)}\n"
        f"@RG\tID:{sample}\tSM:{sample}\tPL:ILLUMINA\n"
    )
    lines = ("\t".join((*map(str, record[:11]), *record.tags)) for record in records)
    return head + "".join(f"{line}\n" for line in lines)


def parse(content: str) -> list[Record]:
    """Return the records of a SAM file."""
    return [_record(line) for line in content.splitlines() if not line.startswith("@")]


def _record(line: str) -> Record:
    name, flag, contig, position, quality, cigar, mate, mate_at, length, *rest = line.split("\t")
    numbers = (int(flag), contig, int(position), int(quality), cigar, mate, int(mate_at))
    return Record(name, *numbers, int(length), rest[0], rest[1], tuple(rest[2:]))
