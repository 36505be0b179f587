"""concurrent.futures.ProcessPoolExecutor with its default start method."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from bench.overhead.contenders.pools import Pool


@contextmanager
def session(workers: int) -> Iterator[object]:
    """A process pool."""
    with ProcessPoolExecutor(workers) as executor:
        yield Pool(executor)


def noop() -> None:
    """Do nothing."""


if __name__ == "__main__":
    with ProcessPoolExecutor(int(os.environ["BENCH_WORKERS"])) as pool:
        pool.submit(noop).result()
