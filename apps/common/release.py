"""Programs in which one task makes many things for others, run lazily and eagerly.

Lazily the others start when it has ended, eagerly when what they need is there. What that can gain
has a limit: a run cannot end before its producer has, nor before the processors have done all work.
"""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import alongside as al

from . import layers
from .spans import Span

WAYS = ("lazy", "eager")

PRODUCER = "read"
"""The kind of a producer's spans: one for each thing that it makes, pauses left out."""


class Ran(NamedTuple):
    """The answer of a run, when its bodies ran, and when all of it began and ended."""

    answer: Any
    spans: list[Span]
    start_ns: int
    end_ns: int

    @property
    def total_s(self) -> float:
        """Seconds from the first call of a task to the answer."""
        return (self.end_ns - self.start_ns) / 1e9


class Application(Protocol):
    """A program with a producer and consumers, and its input."""

    name: str
    consumers: Collection[str]
    """The kinds of the spans of those tasks that take one thing each."""
    final: Collection[str]
    """The kinds of the spans of those tasks that need all consumers."""
    folder: Path
    """Where its input is: the storage layer that it is read from."""

    def about(self) -> str:
        """Return what is computed, for people."""

    def run(self, way: str) -> Ran:
        """Compute under a session, `lazy` or `eager`."""

    def plain(self) -> Any:
        """Return what the plain program finds."""

    def check(self, answer: Any) -> str:
        """Compare an answer with the plain program's; empty: all equal."""

    def fingerprint(self, answer: Any) -> str:
        """Return a text that is the same for equal answers, and for no others."""

    def finish(self, answer: Any, out: Path) -> list[Path]:
        """Write what a user wants of the answer and return the files."""


class Parts(NamedTuple):
    """What a lazy run is made of, in seconds, and its workers.

    `producer_s`: until the first consumer could start, or all bodies of the producer if that is
    longer, as it is where one after the other makes a part. `producer_cpu_s`, `consumers_s`:
    processor time of the bodies. `last_s`: a consumer of one thing, the median. `final_s`: what
    needs all of them, to the end.
    """

    producer_s: float
    producer_cpu_s: float
    consumers_s: float
    last_s: float
    final_s: float
    workers: int

    @property
    def ideal_s(self) -> float:
        """The ideal overlap: the time of the producer, then its last consumer, then the rest.

        Where the processors do not keep up with the producer: all work over the workers instead.
        """
        work_s = (self.producer_cpu_s + self.consumers_s) / self.workers
        return max(self.producer_s + self.last_s, work_s) + self.final_s


def parts(application: Application, lazy: Ran, workers: int) -> Parts:
    """Take a lazy run of a program apart."""
    own = [span for span in lazy.spans if span.kind in application.consumers]
    starts = [span.start_ns for span in lazy.spans if span.kind in application.final]
    final_ns = min(starts, default=max(span.end_ns for span in own))
    before = [s for s in lazy.spans if s.kind not in (PRODUCER, *application.final)]
    first_ns = min(span.start_ns for span in own) - lazy.start_ns
    made_ns = sum(s.end_ns - s.start_ns for s in lazy.spans if s.kind == PRODUCER)
    return Parts(
        producer_s=max(first_ns, made_ns) / 1e9,
        producer_cpu_s=sum(s.cpu_ns for s in lazy.spans if s.kind == PRODUCER) / 1e9,
        consumers_s=sum(span.cpu_ns for span in before) / 1e9,
        last_s=statistics.median(span.end_ns - span.start_ns for span in own) / 1e9,
        final_s=(lazy.end_ns - final_ns) / 1e9,
        workers=workers,
    )


def at_end(values: list[Any]) -> Any:
    """Return what a task with `returns=N` has to: N values, or the value if there is one."""
    return values if len(values) != 1 else values[0]


@cache
def producer(body: Callable[..., Iterator[Any]], way: str, count: int, ahead: int) -> Any:
    """Return the I/O task of a generator function that makes `count` things.

    `eager`: a stream, whose producer may be so many things ahead. `lazy`: all at its end.
    """
    if way == "eager":
        return al.io(returns=al.Stream, buffer=ahead)(body)

    @wraps(body)
    def all_at_end(*args: Any) -> Any:
        return at_end(list(body(*args)))

    return al.io(returns=count)(all_at_end)


def each(source: Any) -> Iterable[Any]:
    """Return the futures that a call gave: of a stream, of several values, or of one."""
    return [source] if isinstance(source, al.Future) else source


def _load(number: int, module: str) -> int:
    """Import a program, so that its first tasks do not."""
    importlib.import_module(module)
    return number


_load_in_worker, _load_in_io = al.task(_load), al.io(_load)


def run(
    application: Application, way: str, workers: int, storage: Path, trace: Path | None = None
) -> Ran:
    """Run a program in a session whose workers have started and loaded it; see `write_storage`."""
    with al.Session(workers, storage=storage, trace=trace):
        module = type(application).__module__
        al.wait([_load_in_worker(number, module) for number in range(4 * workers)])
        al.wait(_load_in_io(0, module))
        return application.run(way)


def write_storage(application: Application, layer: layers.Layer, folder: Path) -> Path:
    """Write the description of the layer that a program's input is on, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"storage-{layer.name}.toml"
    layers.write_storage(layer.name, application.folder, file, layer.limit, layer.limit)
    return file
