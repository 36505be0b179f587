"""How an application's checkpoints are run: as I/O tasks, as compute tasks, or here and now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import alongside as al
from alongside.task import Task


@dataclass(frozen=True)
class Checkpoints:
    """What checkpoints are to the runtime.

    `as_io`: I/O tasks, which take no processor, under the constraint `bandwidth`; else compute
    tasks. `inline`: every call simply runs, although there is a session, which is then only there
    for its storage layers (whose bandwidth `al.open` emulates).
    """

    as_io: bool = True
    bandwidth: str | float | None = None
    inline: bool = False

    def task(
        self, body: Callable[..., Any], name: str, size: int | None = None, share: float = 1.0
    ) -> Task[Any]:
        """Return the task of a body that writes a checkpoint of at most `size` bytes.

        `share`: of the constraint, if that is a number; for checkpoints smaller than others.
        """
        bandwidth = self.bandwidth
        if not isinstance(bandwidth, str) and bandwidth is not None:
            bandwidth = bandwidth * share
        return _task(body, name, self.as_io, bandwidth, size)

    def reader(self, body: Callable[..., Any], name: str) -> Task[Any]:
        """Return the task of a body that reads: like a checkpoint, but it asks for nothing."""
        return _task(body, name, self.as_io, None, None)

    def call(self, task: Task[Any], *arguments: Any) -> Any:
        """Call a task: a future under a session, else (or inline) its value."""
        return task.inline(arguments, {}) if self.inline else task(*arguments)


@cache
def _task(
    body: Callable[..., Any],
    name: str,
    as_io: bool,
    bandwidth: str | float | None,
    size: int | None,
) -> Task[Any]:
    if not as_io:
        return al.task(name=name)(body)
    return al.io(name=name, bandwidth=bandwidth, size=size)(body)
