"""concurrent.futures.ThreadPoolExecutor: one process, nothing is copied, one lock (the GIL)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from bench.overhead.contenders.pools import Pool


@contextmanager
def session(workers: int) -> Iterator[object]:
    """A thread pool."""
    with ThreadPoolExecutor(workers) as executor:
        yield Pool(executor)


def noop() -> None:
    """Do nothing."""


if __name__ == "__main__":
    with ThreadPoolExecutor(int(os.environ["BENCH_WORKERS"])) as pool:
        pool.submit(noop).result()
