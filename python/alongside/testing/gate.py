"""`Gate`: task bodies stop at it until the test opens it."""

from __future__ import annotations

import fcntl
import functools
import os


class Gate:
    """Closed when it is made; whoever calls `pass_through` waits until it is `open`ed.

    It is a lock on a file, so it also opens when the process that closed it dies.
    """

    def __init__(self, path: str | os.PathLike[str], *, closed: bool = True) -> None:
        self.path = os.path.abspath(path)
        self._held: int | None = None
        if closed:
            self._held = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._held, fcntl.LOCK_EX)

    def __reduce__(self) -> tuple[object, ...]:
        return (functools.partial(Gate, closed=False), (self.path,))

    def open(self) -> None:
        """Lets everybody through, now and later. Only where it was made."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def pass_through(self) -> None:
        """Waits until it is open."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)
