"""Lists of hits: found by a plain search, compared, and written as a table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from . import data, records, search

SAMPLE_EVERY = 12  # profiles, to estimate how long a pair computes


class Reference(NamedTuple):
    """The plain search: its hits and seconds of processor time; or these, estimated, alone."""

    hits: list[records.Hit] | None
    seconds: float


def search_plainly(given: data.Input, whole: bool) -> Reference:
    """Search everything plainly, or a sample of the profiles to estimate the time it takes."""
    files = given.hmm_files if whole else given.hmm_files[::SAMPLE_EVERY]
    hmms, sequences = data.read_hmms(files), data.read_sequences(given.sequence_file)
    start = time.process_time()
    hits = search.plain_search(hmms, sequences)
    seconds = time.process_time() - start
    if whole:
        return Reference(hits, seconds)
    share = sum(f.stat().st_size for f in files) / sum(f.stat().st_size for f in given.hmm_files)
    return Reference(None, seconds / share)


def first_difference(expected: list[records.Hit], found: list[records.Hit]) -> str:
    """Return where two lists of hits differ first, or an empty text."""
    for a, b in zip(expected, found, strict=False):
        for name, x, y in zip(a._fields, a, b, strict=True):
            if x != y:
                return f"{a.query_name} in {a.target}: {name} is {y!r}, expected {x!r}"
    if len(expected) != len(found):
        return f"{len(found)} hits, expected {len(expected)}"
    return ""


def write_hits(hits: Sequence[records.Hit], file: Path) -> None:
    """Write the gathered hits as a table, one line a hit."""
    lines = ["query\ttarget\tE-value\tscore\tbias\tdomains\tdescription"]
    for h in hits:
        domains = sum(d.reported for d in h.domains)
        lines.append(
            f"{h.query_name}\t{h.target}\t{h.evalue:.3g}\t{h.score:.1f}\t{h.bias:.1f}"
            f"\t{domains}\t{h.description}"
        )
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
