"""The same work on ray's streaming generators, on this machine alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from apps.common import release
from apps.common.spans import Span, now_ns
from apps.domains import app as domains
from apps.domains import cutting
from apps.pairwise import app as pairwise
from apps.pairwise import data as reads
from apps.warc import app as warc
from bench.common.optional import load
from bench.eager import bodies
from bench.eager.cases import Overhead
from bench.overhead.contenders.on_ray import started

PIECES_A_S = 1000
"""A paced file is never ahead of its limit by more than this part of a second."""


@contextmanager
def session(workers: int) -> Iterator[None]:
    """Ray, whose workers have started."""
    with started(workers) as ray:
        take = ray.remote(bodies.take)
        ray.get([take.remote(number) for number in range(4 * workers)])
        yield


def once(contender: str, case: Overhead) -> float:
    """Call the producers, and a consumer of each value; seconds until all have ended."""
    del contender
    ray = load("ray")
    begun = time.perf_counter()
    produce = ray.remote(num_returns="streaming")(bodies.values)
    take = ray.remote(bodies.take)
    sources = [produce.remote(case.returns, case.integers) for _ in range(case.producers)]
    ray.get([take.remote(value) for values in zip(*sources, strict=True) for value in values])
    return time.perf_counter() - begun


class Paced:
    """A file that is read at a limited bandwidth, bytes/s; None: as fast as it goes."""

    def __init__(self, file: IO[bytes], limit: int | None) -> None:
        self._file = file
        self._limit = limit
        self._due_s = time.monotonic()

    def read(self, size: int = -1) -> bytes:
        """Read, no sooner than the limit allows. Time in which nobody read is not made up for."""
        begun_s = time.monotonic()
        data = self._file.read(size)
        if self._limit:
            self._due_s = max(self._due_s, begun_s - 1 / PIECES_A_S) + len(data) / self._limit
            time.sleep(max(0.0, self._due_s - time.monotonic()))
        return data

    def seek(self, offset: int) -> None:
        """Go to a position, bytes from the beginning."""
        self._file.seek(offset)


def run(application: Any, limit: int | None, workers: int) -> release.Ran:
    """Run an application, its input read at a limited bandwidth."""
    with session(workers):
        return RUNS[application.name](load("ray"), application.job, limit)


def _reader(ray: Any, body: Callable[..., Iterator[Any]]) -> Any:
    """A reader takes no processor, as an I/O task does not."""
    return ray.remote(num_cpus=0, num_returns="streaming")(body)


def _records(path: Path, pages: int, limit: int | None) -> Iterator[warc.Record]:
    with path.open("rb") as file:
        for page in warc.pages_of(Paced(file, limit), pages):
            yield warc.Record(page, Span(release.PRODUCER, 0, 0))


def _fold(*found: warc.Found) -> warc.Found:
    return _body(warc.fold)(found)  # type: ignore[no-any-return]


def _weigh(pages: int, total: warc.Found, *counted: warc.Counted) -> warc.Weighed:
    return _body(warc.weigh)(counted, pages, total.documents)  # type: ignore[no-any-return]


def _body(task: Any) -> Any:
    """The function of a task."""
    return task.function


def _warc(ray: Any, job: warc.Job, limit: int | None) -> release.Ran:
    count, find = (ray.remote(_body(task)) for task in (warc.term_frequencies, warc.document_terms))
    fold, weigh = ray.remote(_fold), ray.remote(_weigh)
    start_ns = now_ns()
    counted: list[Any] = []
    found: list[Any] = []
    folded: list[Any] = []
    for record in _reader(ray, _records).remote(job.archive, job.pages, limit):
        counted.append(count.remote(record))
        found.append(find.remote(record))
        if len(found) == warc.GROUP:
            folded.append(fold.remote(*found))
            found = []
    total = fold.remote(*folded, *found)
    groups = in_groups(counted, warc.WEIGHED)
    parts = ray.get([weigh.remote(job.pages, total, *group) for group in groups])
    pages = [page for part in parts for page in part.pages]
    answer = warc.Answer(pages, ray.get(total).documents)
    return release.Ran(answer, [], start_ns, now_ns())


def in_groups(listed: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    """Yield so many at a time."""
    for at in range(0, len(listed), size):
        yield listed[at : at + size]


def _groups(job: pairwise.Job, limit: int | None) -> Iterator[pairwise.Group]:
    with job.reads.open("rb") as file:
        for text in reads.groups(Paced(file, limit), job.group):
            yield pairwise.Group(text, Span(release.PRODUCER, 0, 0))


def _total(genome: Path, *aligned: pairwise.Aligned) -> pairwise.Total:
    return _body(pairwise.total)(genome, aligned)  # type: ignore[no-any-return]


def _pairwise(ray: Any, job: pairwise.Job, limit: int | None) -> release.Ran:
    align, total = ray.remote(_body(pairwise.align)), ray.remote(_total)
    start_ns = now_ns()
    groups = _reader(ray, _groups).remote(job, limit)
    aligned = [align.remote(job.genome, group) for group in groups]
    return release.Ran(ray.get(total.remote(job.genome, *aligned)).fit, [], start_ns, now_ns())


def _cuts(job: domains.Job, limit: int | None) -> Iterator[domains.Cut]:
    with job.mesh.open("rb") as file:
        for subdomain in cutting.subdomains(Paced(file, limit), job.parts):
            yield domains.Cut(subdomain, Span(release.PRODUCER, 0, 0))


def _root(nodes: int, one: Any, other: Any, *folded: Any) -> domains.Recovered:
    return _body(domains.root)(one, other, folded, nodes)  # type: ignore[no-any-return]


def _recover(between: domains.Recovered, *given: Any) -> domains.Recovered:
    return _body(domains.recover)(between, given)  # type: ignore[no-any-return]


def _domains(ray: Any, job: domains.Job, limit: int | None) -> release.Ran:
    condense, fold = (
        ray.remote(num_returns=2)(_body(task)) for task in (domains.condense, domains.fold)
    )
    root, recover = ray.remote(_root), ray.remote(_recover)
    start_ns = now_ns()
    folder, condensed = domains.Folder(fold.remote, job.parts), []
    for cut in _reader(ray, _cuts).remote(job, limit):
        left, given = condense.remote(cut)
        condensed.append(given)
        folder.add(left)
    between = root.remote(job.nodes, *folder.rest, *folder.folded)
    groups = in_groups(condensed, domains.GROUP)
    parts = ray.get([recover.remote(between, *group) for group in groups])
    temperatures = ray.get(between).temperatures.copy()
    for part in parts:
        temperatures[part.nodes] = part.temperatures
    return release.Ran(temperatures, [], start_ns, now_ns())


RUNS: dict[str, Callable[[Any, Any, int | None], release.Ran]] = {
    "warc": _warc,
    "pairwise": _pairwise,
    "domains": _domains,
}
