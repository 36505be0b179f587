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

    def task(self, body: Callable[..., Any], name: str) -> Task[Any]:
        """Return the task of a body that writes a checkpoint."""
        return _task(body, name, self.as_io, self.bandwidth)

    def call(self, task: Task[Any], *arguments: Any) -> Any:
        """Call a task: a future under a session, else (or inline) its value."""
        return task.inline(arguments, {}) if self.inline else task(*arguments)


@cache
def _task(
    body: Callable[..., Any], name: str, as_io: bool, bandwidth: str | float | None
) -> Task[Any]:
    if not as_io:
        return al.task(name=name)(body)
    return al.io(name=name, bandwidth=bandwidth)(body)
