"""The program: pages are read from an archive, and two tasks work on each.

                      ┌─> term_frequencies ────────────────────┐
    read_records ─────┤                                        ├──> weigh
      (one a page)    └─> document_terms ──> fold ──> total ───┘

It is the published program (Elshazly's thesis, section 7.6.3.1, figure 7.12): two consuming tasks
a record. Here they end in the weights, which need all pages, so `weigh` cannot overlap the reader.

`eager`: the reader is a generator task with `returns=Stream`; a page is there when it was read.
`lazy`: the same reader, as a task that returns the list of all pages when it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

import alongside as al
from apps.common.release import PRODUCER, Ran, each, producer
from apps.common.spans import Span, Stopwatch, now_ns

from . import terms

AHEAD = 64
"""How many pages the reader may be ahead of the tasks that work on them."""

GROUP = 64
"""How many pages one task of `fold` takes."""

WEIGHED = 256
"""How many pages one task of `weigh` takes: each loads the terms of all pages first."""

BLOCK_BYTES = 128 * 1024


class Job(NamedTuple):
    """An archive, and how many of its pages are read, from its beginning."""

    archive: Path
    pages: int


class Record(NamedTuple):
    """A page, and when it was read."""

    page: terms.Page
    span: Span


class Counted(NamedTuple):
    """The frequencies of a page, and when it was read and counted."""

    frequencies: terms.Frequencies
    spans: tuple[Span, Span]


class Found(NamedTuple):
    """The terms of a page or of several, in how many each is, and when they were found."""

    documents: Counter[str]
    spans: list[Span]


class Weighed(NamedTuple):
    """Pages with their heaviest terms, and when all was done for them."""

    pages: list[terms.Weighed]
    spans: list[Span]


class Answer(NamedTuple):
    """The heaviest terms of each page, in the order of the archive; in how many pages a term is."""

    pages: list[terms.Weighed]
    documents: Counter[str]


class Source(Protocol):
    """What an archive is read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Read at most so many bytes; none at the end."""


def pages_of(file: Source, most: int) -> Iterator[terms.Page]:
    """Yield the first pages of an archive, at most so many."""
    left = most
    for record in ArchiveIterator(file, block_size=BLOCK_BYTES):
        if left and record.rec_type == "response":
            left -= 1
            address = record.rec_headers.get_header("WARC-Target-URI")
            yield terms.Page(address, record.content_stream().read())
        if not left:
            return


def read_records(path: al.FileIn, pages: int) -> Iterator[Record]:
    """Read the pages of an archive."""
    with al.open(path, "rb") as file:
        rest = pages_of(file, pages)
        while True:
            with Stopwatch(PRODUCER) as watch:
                page = next(rest, None)
            if page is None:
                return
            yield Record(page, watch.span)


@al.task
def term_frequencies(record: Record) -> Counted:
    """Count the terms of a page."""
    with Stopwatch("term_frequencies") as watch:
        frequencies = terms.frequencies(record.page)
    return Counted(frequencies, (record.span, watch.span))


@al.task
def document_terms(record: Record) -> Found:
    """Find the terms of a page, each once."""
    with Stopwatch("document_terms") as watch:
        found = Counter(terms.distinct(record.page))
    return Found(found, [watch.span])


def together(found: Sequence[Found], kind: str) -> Found:
    """Count in how many pages of some each term is; `kind`: of which task."""
    with Stopwatch(kind) as watch:
        documents: Counter[str] = Counter()
        for one in found:
            documents.update(one.documents)
    return Found(documents, [*(span for one in found for span in one.spans), watch.span])


@al.task
def fold(found: Sequence[Found]) -> Found:
    """Count in how many pages of some each term is."""
    return together(found, "fold")


@al.task(returns=2)
def total(found: Sequence[Found]) -> tuple[Counter[str], list[Span]]:
    """Count in how many of all pages each term is: that, which `weigh` needs, and the times."""
    return together(found, "total")


@al.task
def weigh(counted: Sequence[Counted], pages: int, documents: Counter[str]) -> Weighed:
    """Weigh the terms of some pages."""
    with Stopwatch("weigh") as watch:
        weighed = [terms.weigh(one.frequencies, pages, documents) for one in counted]
    return Weighed(weighed, [*(span for one in counted for span in one.spans), watch.span])


def run(job: Job, way: str) -> Ran:
    """Run the program under a session, `lazy` or `eager`."""
    start_ns = now_ns()
    counted: list[Any] = []
    found: list[Any] = []
    folded: list[Any] = []
    read = producer(read_records, way, job.pages, AHEAD)
    for record in each(read(str(job.archive), job.pages)):
        counted.append(term_frequencies(record))
        found.append(document_terms(record))
        if len(found) == GROUP:
            folded.append(fold(found))
            found = []
    documents, when = total([*folded, *found])
    weighed = [
        weigh(counted[at : at + WEIGHED], job.pages, documents)
        for at in range(0, len(counted), WEIGHED)
    ]
    parts = [al.wait(future) for future in weighed]
    answer = Answer([page for part in parts for page in part.pages], al.wait(documents))
    end_ns = now_ns()
    spans = [span for part in parts for span in part.spans]
    return Ran(answer, [*spans, *al.wait(when)], start_ns, end_ns)
