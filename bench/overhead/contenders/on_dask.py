"""dask.distributed: a local cluster of one-thread worker processes, on loopback, no dashboard."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.common.optional import load
from bench.overhead import bodies


class Dask:
    """The client's idiom: futures as arguments, map for many, scatter for large data."""

    def __init__(self, client: Any) -> None:
        """Run through that client."""
        self.client = client

    def noop(self, count: int) -> None:
        """One map call, which sends one graph, and one gather."""
        self.client.gather(self.client.map(bodies.noop_of, range(count), pure=False))

    def hop(self, count: int) -> int:
        """A chain of futures; only the last result comes back."""
        value: Any = 0
        for _ in range(count):
            value = self.client.submit(bodies.increment, value, pure=False)
        return int(value.result())

    def argument(self, array: Any) -> float:
        """Scattered straight to a worker, without hashing."""
        data = self.client.scatter(array, hash=False, direct=True)
        return float(self.client.submit(bodies.ends, data, pure=False).result())

    def result(self, mark: float) -> Any:
        """Gathered straight from the worker."""
        future = self.client.submit(bodies.produce, mark, pure=False)
        return self.client.gather(future, direct=True)

    def fan(self, width: int) -> int:
        """A map, and a task that takes the list of its futures."""
        futures = self.client.map(bodies.increment, range(width), pure=False)
        return int(self.client.submit(bodies.total, futures, pure=False).result())

    def transform(self, arrays: list[Any]) -> list[Any]:
        """Scattered, mapped, gathered."""
        data = self.client.scatter(arrays, hash=False, direct=True)
        futures = self.client.map(bodies.double, data, pure=False)
        return list(self.client.gather(futures, direct=True))


@contextmanager
def client(workers: int) -> Iterator[Any]:
    """A client of a local cluster."""
    distributed = load("distributed")
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


@contextmanager
def session(workers: int) -> Iterator[Dask]:
    """The operations on a local cluster."""
    with client(workers) as connected:
        yield Dask(connected)


if __name__ == "__main__":
    with client(int(os.environ["BENCH_WORKERS"])) as local:
        local.submit(bodies.noop).result()
