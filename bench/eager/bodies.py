"""What the tasks of the overheads do: make lists of integers, and nothing with them."""

from __future__ import annotations

from collections.abc import Iterator


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


def take(value: object) -> None:
    """A consumer that does nothing with its value."""
    del value
