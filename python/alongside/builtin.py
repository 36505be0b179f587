"""`read`, `write` and `copy`: built-in I/O tasks, between shared memory and the engine.

They are I/O tasks like those of `@io`: they give futures, wait for what they need, and get a grant
on their layer. Each is a coroutine of the I/O worker: no thread waits for an operation, and the
bytes of a value go from where they lie in shared memory to the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from alongside import aio
from alongside.directions import FileIn, FileOut
from alongside.options import checked
from alongside.task import Task

if TYPE_CHECKING:
    from alongside.future import Future


async def _read(path: FileIn, offset: int, size: int | None) -> bytes:
    async with await aio.open(path, "rb") as file:
        if size is None:
            size = max(0, await file.size() - offset)
        return await file.pread(size, offset)


async def _write(path: FileOut, data: Any) -> int:
    async with await aio.open(path, "wb") as file:
        return await file.write(data)


async def _copy(source: FileIn, target: FileOut) -> int:
    async with await aio.open(source, "rb") as start, await aio.open(target, "wb") as end:
        return await start.copy_to(end, await start.size())


_tasks: dict[tuple[Any, ...], Task[Any]] = {}


def _task(body: Callable[..., Any], name: str, options: dict[str, Any]) -> Task[Any]:
    """The I/O task of a body with these options, made once."""
    key = (name, *sorted(options.items()))
    if key not in _tasks:
        _tasks[key] = Task(body, checked("io", body, {"name": name, **options}))
    return _tasks[key]


def read(
    path: str | os.PathLike[str],
    offset: int = 0,
    size: int | None = None,
    **options: Any,
) -> Future[bytes]:
    """Read a file, or `size` bytes of it from `offset` on; fewer where it ends.

    `options` are those of `@io`, such as `bandwidth="100MB/s"` (but not its `size`).
    """
    result: Future[bytes] = _task(_read, "read", options)(path, offset, size)
    return result


def write(path: str | os.PathLike[str], data: Any, **options: Any) -> Future[int]:
    """Write a file anew with the bytes of `data`: bytes, an array, or a future of one.

    Gives the number of bytes. `options` are those of `@io`, such as `durable=True`.
    """
    result: Future[int] = _task(_write, "write", options)(path, data)
    return result


def copy(
    source: str | os.PathLike[str], target: str | os.PathLike[str], **options: Any
) -> Future[int]:
    """Copy a file, inside the kernel where that is possible. Gives the number of bytes.

    `options` are those of `@io`, such as `bandwidth="100MB/s"`.
    """
    result: Future[int] = _task(_copy, "copy", options)(source, target)
    return result
