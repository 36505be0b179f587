"""Telling the reads of a pair of each other, sorting them, and marking duplicates.

Two pairs are duplicates if both their ends lie at the same places in the same directions: they are
copies of one fragment. The pair with the best bases stays, as in Picard's MarkDuplicates.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import sam

TEMPLATE_MAX = 1000
"""How long a fragment may be for its pair to count as proper."""

SCORED_QUALITY_MIN = 15

Pair = tuple[sam.Record, sam.Record]


def mated(first: sam.Record, second: sam.Record, group: str) -> Pair:
    """Return a pair whose records tell of each other and of their read group."""
    length = _template_length(first, second)
    proper = 0 < abs(length) <= TEMPLATE_MAX and first.is_reverse != second.is_reverse
    return (
        _told(first, second, length, proper, group),
        _told(second, first, -length, proper, group),
    )


def _template_length(first: sam.Record, second: sam.Record) -> int:
    if not (first.is_mapped and second.is_mapped):
        return 0
    low = min(first.position, second.position)
    length = max(sam.end(first), sam.end(second)) - low + 1
    return length if first.position == low else -length


def _told(own: sam.Record, mate: sam.Record, length: int, proper: bool, group: str) -> sam.Record:
    flag = own.flag
    flag |= sam.PROPER if proper else 0
    flag |= sam.MATE_REVERSE if mate.is_reverse else 0
    flag |= 0 if mate.is_mapped else sam.MATE_UNMAPPED
    place = own if own.is_mapped else mate  # an unmapped read stands beside its mate
    at = mate if mate.is_mapped else own
    of_mate = (f"MC:Z:{mate.cigar}", f"MQ:i:{mate.mapping_quality}") if mate.is_mapped else ()
    return own._replace(
        flag=flag,
        contig=place.contig,
        position=place.position,
        mate_contig="=" if at.is_mapped else "*",
        mate_position=at.position,
        template_length=length,
        tags=(*own.tags, *of_mate, f"RG:Z:{group}"),
    )


def marked(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the pairs with the flag DUPLICATE on those that repeat a better one."""
    best: dict[tuple[tuple[int, bool], ...], int] = {}
    result = list(pairs)
    scores = [sum(map(_score, pair)) for pair in result]
    for at, pair in enumerate(result):
        if not all(record.is_mapped for record in pair):
            continue
        key = tuple(sorted((sam.unclipped_start(one), one.is_reverse) for one in pair))
        other = best.setdefault(key, at)
        if other != at:
            worse = at if scores[at] <= scores[other] else other
            best[key] = at + other - worse
            first, second = result[worse]
            result[worse] = (_duplicate(first), _duplicate(second))
    return result


def _score(record: sam.Record) -> int:
    qualities = (ord(character) - 33 for character in record.quality)
    return sum(quality for quality in qualities if quality >= SCORED_QUALITY_MIN)


def _duplicate(record: sam.Record) -> sam.Record:
    return record._replace(flag=record.flag | sam.DUPLICATE)


def by_coordinate(pairs: Iterable[Pair]) -> list[sam.Record]:
    """Return all records by position; those without one last."""
    records = [record for pair in pairs for record in pair]
    return sorted(records, key=lambda record: (record.contig == "*", record.position))
