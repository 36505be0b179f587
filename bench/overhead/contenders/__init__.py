"""One file a contender: the same operations, each in the form that its own users would write.

A contender's module has `session(workers)`, a context manager that yields an object with the
methods of `Operations`. Run as a script it is an empty program: start, one no-op, stop.
"""

from __future__ import annotations

from typing import Any, Protocol


class Operations(Protocol):
    """What the rows ask of a contender; every method returns when its results are in hand."""

    def noop(self, count: int) -> None:
        """Run `count` no-op tasks, all handed over before the first result is taken."""

    def hop(self, count: int) -> int:
        """A chain of `count` tasks, each of which needs the result of the one before."""

    def argument(self, array: Any) -> float:
        """One task with a large argument, which is `bodies.ends`."""

    def result(self, mark: float) -> Any:
        """One task with a large result, which is `bodies.produce`."""

    def fan(self, width: int) -> int:
        """`width` tasks, then one task that takes all their results."""

    def transform(self, arrays: list[Any]) -> list[Any]:
        """One task an array, `bodies.double`, all results held at the end."""
