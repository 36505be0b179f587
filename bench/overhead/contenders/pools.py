"""The operations on a `concurrent.futures.Executor`, shared by the pools that are one."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

from bench.overhead import bodies


class Pool:
    """A pool's own idiom: submit, then result; the program carries values from task to task."""

    def __init__(self, executor: Executor) -> None:
        """Run on that executor."""
        self.executor = executor

    def noop(self, count: int) -> None:
        """Submit all, take all."""
        futures = [self.executor.submit(bodies.noop) for _ in range(count)]
        for future in futures:
            future.result()

    def hop(self, count: int) -> int:
        """Submit and result in turns: a pool knows no dependencies."""
        value = 0
        for _ in range(count):
            value = self.executor.submit(bodies.increment, value).result()
        return value

    def argument(self, array: Any) -> float:
        """The array goes by the pool's own transport."""
        return self.executor.submit(bodies.ends, array).result()

    def result(self, mark: float) -> Any:
        """The array comes by the pool's own transport."""
        return self.executor.submit(bodies.produce, mark).result()

    def fan(self, width: int) -> int:
        """The results pass through the program on their way to the last task."""
        futures = [self.executor.submit(bodies.increment, i) for i in range(width)]
        values = [future.result() for future in futures]
        return self.executor.submit(bodies.total, values).result()

    def transform(self, arrays: list[Any]) -> list[Any]:
        """Submit all, take all."""
        futures = [self.executor.submit(bodies.double, array) for array in arrays]
        return [future.result() for future in futures]
