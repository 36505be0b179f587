"""`Mailbox`: task bodies tell the test that they have come to a point."""

from __future__ import annotations

import functools
import os
import select
import time

LINE_BYTES_MAX = 512
"""What a pipe takes as a whole on every system."""


class Mailbox:
    """Lines of text from any process to the one that made it, by way of a named pipe."""

    def __init__(self, path: str | os.PathLike[str], *, receives: bool = True) -> None:
        self.path = os.path.abspath(path)
        self._reader: int | None = None
        self._rest = b""
        if receives:
            os.mkfifo(self.path, 0o600)
            self._reader = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def __reduce__(self) -> tuple[object, ...]:
        return (functools.partial(Mailbox, receives=False), (self.path,))

    def send(self, text: object) -> None:
        """Sends a line, short and without line breaks."""
        line = f"{text}\n".encode()
        if len(line) > LINE_BYTES_MAX or line.count(b"\n") > 1:
            raise ValueError("one short line at a time")
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def receive(self, timeout: float = 30.0) -> str:
        """The next line. Raises TimeoutError after `timeout` seconds."""
        if self._reader is None:
            raise RuntimeError("lines are received where the mailbox was made")
        end = time.monotonic() + timeout
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._reader], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError(f"no line came within {timeout:g} s")
            self._rest += os.read(self._reader, 65536)
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode()

    def empty(self) -> bool:
        """Whether no line is there now."""
        if self._reader is None:
            raise RuntimeError("lines are received where the mailbox was made")
        return not self._rest and not select.select([self._reader], [], [], 0)[0]

    def close(self) -> None:
        """Gives the pipe back."""
        if self._reader is not None:
            os.close(self._reader)
            self._reader = None
