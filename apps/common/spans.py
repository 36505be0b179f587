"""When task bodies ran: spans on the machine's monotonic clock, the same in all processes."""

from __future__ import annotations

import time
from types import TracebackType
from typing import NamedTuple, Self


class Span(NamedTuple):
    """When a task body ran, in nanoseconds of the machine's monotonic clock.

    For the bodies that compute also the processor time that they got, for those that write the
    bytes written.
    """

    kind: str
    start_ns: int
    end_ns: int
    cpu_ns: int = 0
    bytes: int = 0


def now_ns() -> int:
    """Return the machine's monotonic clock, the same in all processes, in nanoseconds."""
    return time.monotonic_ns()


class Stopwatch:
    """Measures a body that computes: `with Stopwatch("kind") as watch: ...`, then `watch.span`."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.span = Span(kind, 0, 0)

    def __enter__(self) -> Self:
        self._start_ns, self._cpu_ns = now_ns(), time.thread_time_ns()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        cpu_ns = time.thread_time_ns() - self._cpu_ns
        self.span = Span(self.kind, self._start_ns, now_ns(), cpu_ns)
