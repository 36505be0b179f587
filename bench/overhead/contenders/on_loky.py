"""loky's ProcessPoolExecutor, the pool behind joblib."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from bench.common.optional import load
from bench.overhead.contenders.pools import Pool


@contextmanager
def session(workers: int) -> Iterator[object]:
    """A loky pool of its own (not the reusable one, which would outlive the run)."""
    with load("loky").ProcessPoolExecutor(max_workers=workers) as executor:
        yield Pool(executor)


def noop() -> None:
    """Do nothing."""


if __name__ == "__main__":
    with load("loky").ProcessPoolExecutor(max_workers=int(os.environ["BENCH_WORKERS"])) as pool:
        pool.submit(noop).result()
