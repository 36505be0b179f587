"""ray on this machine: loopback, no dashboard, no usage report."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.common.optional import load
from bench.overhead import bodies

STORE_BYTES = 1_000_000_000


class Ray:
    """Ray's idiom: remote functions, references as arguments, get."""

    def __init__(self, ray: Any) -> None:
        """Make the remote functions."""
        self.ray = ray
        self.do_noop = ray.remote(bodies.noop)
        self.do_increment = ray.remote(bodies.increment)
        self.do_total = ray.remote(bodies.total_of)
        self.do_ends = ray.remote(bodies.ends)
        self.do_produce = ray.remote(bodies.produce)
        self.do_double = ray.remote(bodies.double)

    def touch_store(self) -> None:
        """Fill the object store once: its pages cost much more the first time they are used."""
        block = load("numpy").ones(bodies.ARRAY_BYTES // 8)
        kept = [self.ray.put(block) for _ in range(STORE_BYTES // bodies.ARRAY_BYTES - 1)]
        del kept

    def noop(self, count: int) -> None:
        """Submit all, get all."""
        self.ray.get([self.do_noop.remote() for _ in range(count)])

    def hop(self, count: int) -> int:
        """A chain of references."""
        value: Any = 0
        for _ in range(count):
            value = self.do_increment.remote(value)
        return int(self.ray.get(value))

    def argument(self, array: Any) -> float:
        """Put into the object store, seen by the task without a copy."""
        return float(self.ray.get(self.do_ends.remote(self.ray.put(array))))

    def result(self, mark: float) -> Any:
        """A view of the object store."""
        return self.ray.get(self.do_produce.remote(mark))

    def fan(self, width: int) -> int:
        """References at the top level, the ones that ray resolves."""
        values = [self.do_increment.remote(i) for i in range(width)]
        return int(self.ray.get(self.do_total.remote(*values)))

    def transform(self, arrays: list[Any]) -> list[Any]:
        """Submit all, get all."""
        return list(self.ray.get([self.do_double.remote(array) for array in arrays]))


@contextmanager
def started(workers: int) -> Iterator[Any]:
    """Ray, started with its files in a temporary folder."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray = load("ray")
    folder = tempfile.mkdtemp(prefix="ray-")  # short: ray puts sockets below it
    ray.init(
        num_cpus=workers,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        _temp_dir=folder,
        object_store_memory=STORE_BYTES,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    try:
        yield ray
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def session(workers: int) -> Iterator[Ray]:
    """The operations on ray."""
    with started(workers) as ray:
        yield Ray(ray)


if __name__ == "__main__":
    with started(int(os.environ["BENCH_WORKERS"])) as local:
        local.get(local.remote(bodies.noop).remote())
