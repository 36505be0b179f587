"""How many bytes a task reads and writes.

Of a body that has a thread to itself the system counts them, whatever it uses for its I/O; what
this process did meanwhile for itself on that thread is taken off. A coroutine shares its thread
with others: there `alongside.aio` counts.
"""

from __future__ import annotations

import os
import threading
from contextvars import ContextVar
from dataclasses import dataclass

from alongside import _native

_COUNTERS = "/proc/thread-self/io"
_COUNTERS_BYTES_MAX = 256


@dataclass
class Counts:
    """Bytes that were read and written."""

    read: int = 0
    written: int = 0


current: ContextVar[Counts | None] = ContextVar("counts", default=None)
"""Of the coroutine that runs."""


def add(read: int = 0, written: int = 0) -> None:
    """The coroutine that runs has read or written so many bytes."""
    counts = current.get()
    if counts is not None:
        counts.read += read
        counts.written += written


class Moved:
    """Bytes that this thread reads and writes from now on, as the system counts them."""

    def __init__(self, is_counted: bool) -> None:
        self._before = _counts() if is_counted else None

    def bytes(self) -> tuple[int, int]:
        """Read and written until now; zeros where nothing is counted."""
        if self._before is None:
            return (0, 0)
        now = _counts()
        return (max(0, now.read - self._before.read), max(0, now.written - self._before.written))


class _Counters:
    """What the system counts of one thread, without its looks at it and what it told the driver."""

    def __init__(self) -> None:
        self.looked_bytes = 0
        try:
            self.descriptor = os.open(_COUNTERS, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.descriptor = -1

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)

    def look(self) -> Counts:
        """What it has read and written; zeros where the system does not count."""
        if self.descriptor < 0:
            return Counts()
        text = os.pread(self.descriptor, _COUNTERS_BYTES_MAX, 0)
        words = text.split()
        counts = Counts(int(words[1]) - self.looked_bytes, int(words[3]) - _native.rung_bytes())
        self.looked_bytes += len(text)
        return counts


_local = threading.local()


def _counts() -> Counts:
    """Of this thread."""
    try:
        counters: _Counters = _local.counters
    except AttributeError:
        counters = _local.counters = _Counters()
    return counters.look()
