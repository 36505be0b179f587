"""What the tasks of the overheads do: make lists of integers, and nothing with them."""

from __future__ import annotations

import mmap
import pickle
import statistics
import time
from collections.abc import Callable, Iterator


def values(returns: int, integers: int) -> Iterator[object]:
    """Yield numbers, or one list of so many integers again and again: each is serialised anew."""
    if integers == 1:
        # Not `yield from`: ray takes the iterator of that for a generator.
        for number in range(returns):  # noqa: UP028
            yield number
        return
    large = list(range(integers))
    for _ in range(returns):
        yield large


def release_cost(
    release: Callable[[int, object], None], releases: int, integers: int
) -> list[object]:
    """Release a list of so many integers so often; return what one took, and what it may not.

    Both are medians, in seconds: of a release, and of serialising the same list into new memory
    that other processes can see, without this runtime.
    """
    large = list(range(integers))
    each = len(pickle.dumps(large, pickle.HIGHEST_PROTOCOL))
    shared = mmap.mmap(-1, releases * each)

    def serialise(number: int, value: object) -> None:
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        shared[number * each : (number + 1) * each] = data

    def median(does: Callable[[int, object], None]) -> float:
        times = []
        for number in range(releases):
            began = time.perf_counter()
            does(number, large)
            times.append(time.perf_counter() - began)
        return statistics.median(times)

    serialising = median(serialise)
    shared.close()
    return [*[None] * releases, median(release), serialising]


def take(value: object) -> None:
    """A consumer that does nothing with its value."""
    del value
