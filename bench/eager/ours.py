"""The overheads on this runtime: values at the end of a task, released one by one, or streamed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import alongside as al
from bench.eager import bodies
from bench.eager.cases import LAZY, OURS, STREAM, Overhead

RELEASES = 400
"""How often a list is released."""


def all_values(returns: int, integers: int) -> list[object]:
    """Return all values at the end."""
    return list(bodies.values(returns, integers))


take: Any = al.task(bodies.take)


@cache
def producer(contender: str, returns: int) -> Any:
    """Return the task of a contender that gives so many values."""
    assert contender in (LAZY, OURS, STREAM)
    count: Any = al.Stream if contender == STREAM else returns
    body: Any = all_values if contender == LAZY else bodies.values
    task: Any = al.task
    return task(returns=count, name="produce")(body)


def once(contender: str, case: Overhead) -> float:
    """Call the producers, and a consumer of each value; seconds until all have ended."""
    started = time.perf_counter()
    produce = producer(contender, case.returns)
    sources = [produce(case.returns, case.integers) for _ in range(case.producers)]
    ends: Iterable[Any]
    if contender == STREAM:
        ends = in_turns([source.map(take) for source in sources])
    else:
        ends = [take(value) for value in in_turns(sources)]
    for end in ends:
        end.result()
    return time.perf_counter() - started


def in_turns(sources: list[Iterable[Any]]) -> Iterator[Any]:
    """Yield a value of each source, then the next of each: they have equally many."""
    for values in zip(*sources, strict=True):
        yield from values


def release_cost(integers: int) -> tuple[float, float]:
    """What releasing a list takes the task, and serialising it; seconds."""
    values = al.task(returns=RELEASES + 2, name="release")(bodies.release_cost)
    *_, taken, serialising = values(al.release, RELEASES, integers)
    return taken.result(), serialising.result()


@contextmanager
def session(workers: int) -> Iterator[None]:
    """A session whose workers have started."""
    with al.Session(workers):
        al.wait([take(number) for number in range(4 * workers)])
        yield
