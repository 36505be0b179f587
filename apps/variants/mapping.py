"""Trimming reads, and mapping them to the reference with minimap2 (mappy)."""

from __future__ import annotations

from functools import cache

import mappy  # type: ignore[import-not-found]

from . import sam
from .data import Genome, Pair, Read

QUALITY_MIN = 20
LENGTH_MIN = 35


def trimmed(read: Read) -> Read:
    """Cut the bad end of a read off, as `bwa -q` does: where most is gained over QUALITY_MIN."""
    gained, most, keep = 0, 0, len(read.sequence)
    for at in range(len(read.quality) - 1, LENGTH_MIN - 1, -1):
        gained += QUALITY_MIN - (ord(read.quality[at]) - 33)
        if gained < 0:
            break
        if gained > most:
            most, keep = gained, at
    return Read(read.name, read.sequence[:keep], read.quality[:keep])


@cache
def aligner_of(genome: Genome) -> mappy.Aligner:
    """Return the aligner of short reads to a genome, one a process."""
    return mappy.Aligner(seq=genome.sequence, preset="sr")


def map_pair(genome: Genome, pair: Pair) -> tuple[sam.Record, sam.Record]:
    """Return where both reads are; nothing of a record says yet where the other one is."""
    best: dict[int, mappy.Alignment] = {}
    for hit in aligner_of(genome).map(pair.first.sequence, pair.second.sequence):
        if hit.is_primary:
            best.setdefault(hit.read_num, hit)
    first = record_of(genome, pair.first, sam.PAIRED | sam.FIRST, best.get(1))
    return first, record_of(genome, pair.second, sam.PAIRED | sam.SECOND, best.get(2))


def record_of(genome: Genome, read: Read, flag: int, hit: mappy.Alignment | None) -> sam.Record:
    """Return the record of a read that lies where a hit says, or nowhere."""
    if hit is None:
        nowhere = ("*", 0, 0, "*", "*", 0, 0)
        return sam.Record(read.name, flag | sam.UNMAPPED, *nowhere, *read[1:], ())
    sequence, quality = read[1:]
    # Where a hit of a second read begins is counted from the other end: minimap2 turns these reads
    # round, and mappy turns back the strand alone.
    if (hit.read_num == 1) == (hit.strand > 0):
        clips = (hit.q_st, len(sequence) - hit.q_en)
    else:
        clips = (len(sequence) - hit.q_en, hit.q_st)
    if hit.strand < 0:
        flag |= sam.REVERSE
        sequence, quality = mappy.revcomp(sequence), quality[::-1]
    left, right = (f"{clip}S" if clip else "" for clip in clips)
    place = (genome.name, hit.r_st + 1, hit.mapq, f"{left}{hit.cigar_str}{right}", "*", 0, 0)
    return sam.Record(read.name, flag, *place, sequence, quality, (f"NM:i:{hit.NM}",))
