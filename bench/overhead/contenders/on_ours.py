"""Alongside, with compute worker processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import alongside as al
from bench.overhead import bodies


class Ours:
    """Alongside's idiom: calls are tasks, futures are arguments."""

    def __init__(self) -> None:
        """Make the tasks."""
        self.do_noop = al.task(bodies.noop)
        self.do_increment = al.task(bodies.increment)
        self.do_total = al.task(bodies.total)
        self.do_ends = al.task(bodies.ends)
        self.do_produce = al.task(bodies.produce)
        self.do_double = al.task(bodies.double)

    def noop(self, count: int) -> None:
        """Call all, wait for all."""
        al.wait_all([self.do_noop() for _ in range(count)])

    def hop(self, count: int) -> int:
        """A chain of futures."""
        value: Any = 0
        for _ in range(count):
            value = self.do_increment(value)
        return int(al.wait(value))

    def argument(self, array: Any) -> float:
        """One copy into the object store; the task sees it there."""
        return float(al.wait(self.do_ends(array)))

    def result(self, mark: float) -> Any:
        """One copy into the object store; the program sees it there."""
        return al.wait(self.do_produce(mark))

    def fan(self, width: int) -> int:
        """The last task takes the list of futures."""
        return int(al.wait(self.do_total([self.do_increment(i) for i in range(width)])))

    def transform(self, arrays: list[Any]) -> list[Any]:
        """Call all, wait for all."""
        return [al.wait(future) for future in [self.do_double(array) for array in arrays]]


@contextmanager
def session(workers: int) -> Iterator[Ours]:
    """A session."""
    with al.Session(workers=workers):
        yield Ours()


if __name__ == "__main__":
    noop = al.task(bodies.noop)
    with al.Session(workers=int(os.environ["BENCH_WORKERS"])):
        al.wait(noop())
