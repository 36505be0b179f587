"""`read`, `write` and `copy`: built-in I/O tasks, between shared memory and the engine.

They are I/O tasks like those of `@io`: they give futures, wait for what they need, and get a grant
on their layer. The engine runs them in the driver: no Python runs for one, no worker and no thread
waits for it, and the bytes of a value go from where they lie in shared memory to the file.

The coroutines here are the same tasks in Python: what runs without a session, and in an I/O worker
for the few calls that only Python understands (see `docs/api.md`).
"""

from __future__ import annotations

import errno
import os
import pickle
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from alongside import _context, aio, calls
from alongside.directions import FileIn, FileOut, PathIn
from alongside.files import Scratch
from alongside.future import Future
from alongside.options import checked
from alongside.task import Task

if TYPE_CHECKING:
    from alongside.session import Session


async def _read(path: FileIn, offset: int, size: int | None) -> bytes:
    async with await aio.open(path, "rb") as file:
        if size is None:
            file.seek(offset)
            return await file.read()
        whole = await file.size()
        if whole == 0:
            return await aio.untold(file, offset, size)
        return await file.pread(min(size, max(0, whole - offset)), offset)


async def _write(path: FileOut, data: Any) -> int:
    async with await aio.open(path, "wb") as file:
        return await file.write(data)


async def _copy(source: FileIn, target: FileOut) -> int:
    async with await aio.open(source, "rb") as start, await aio.open_kept(target) as end:
        status = os.fstat(end.fileno())
        if os.path.samestat(os.fstat(start.fileno()), status):
            raise OSError(errno.EINVAL, "source and target are the same file", end.name)
        if stat.S_ISREG(status.st_mode):
            await end.truncate(0)
        size = await start.size()
        return await (start.copy_to(end, size) if size > 0 else end.write(await start.read()))


async def _persist(path: PathIn) -> int:
    """Without a session every file is at its own path."""
    os.stat(path)
    return 0


_tasks: dict[tuple[Any, ...], Task[Any]] = {}


def _task(body: Callable[..., Any], name: str, options: dict[str, Any]) -> Task[Any]:
    """The I/O task of a body with these options, made once."""
    key = (name, *sorted(options.items()))
    if key not in _tasks:
        _tasks[key] = Task(body, checked("io", body, {"name": name, **options}))
    return _tasks[key]


def _call(
    task: Task[Any], args: tuple[Any, ...], session: Session | None, builtin: calls.Builtin | None
) -> Any:
    """A call of a task: by the engine, if it can; by its coroutine without a session."""
    if session is None:
        return task.inline(args, {})
    if task.options.returns != 1 or not isinstance(args[0], (str, os.PathLike)):
        builtin = None  # the coroutine says what is wrong
    return calls.spawn(session, task, session.number_of(task), args, {}, builtin)


def _is_whole(number: Any) -> bool:
    return type(number) is int and 0 <= number <= aio.OFFSET_MAX


def read(
    path: str | os.PathLike[str],
    offset: int = 0,
    size: int | None = None,
    **options: Any,
) -> Future[bytes]:
    """Read a file, or `size` bytes of it from `offset` on; fewer where it ends.

    `options` are those of `@io`, such as `bandwidth="100MB/s"` (but not its `size`).
    """
    plain = _is_whole(offset) and (size is None or _is_whole(size))
    builtin = ("read", offset, size) if plain else None
    session = _context.session()
    task = _task(_read, "read", options)
    result: Future[bytes] = _call(task, (path, offset, size), session, builtin)
    return result


def write(path: str | os.PathLike[str], data: Any, **options: Any) -> Future[int]:
    """Write a file anew with the bytes of `data`: bytes, an array, or a future of one.

    Gives the number of bytes. `options` are those of `@io`, such as `durable=True`.
    """
    session = _context.session()
    builtin: calls.Builtin | None = ("write", 0, None)
    if session is not None and not isinstance(data, Future) and not session.objects.find(data):
        try:
            data = pickle.PickleBuffer(aio.flat(data))
        except (TypeError, ValueError):
            builtin = None  # the coroutine says what is wrong
    task = _task(_write, "write", options)
    result: Future[int] = _call(task, (path, data), session, builtin)
    return result


def copy(
    source: str | os.PathLike[str], target: str | os.PathLike[str], **options: Any
) -> Future[int]:
    """Copy a file, inside the kernel where that is possible. Gives the number of bytes.

    `options` are those of `@io`, such as `bandwidth="100MB/s"`.
    """
    session = _context.session()
    builtin = ("copy", 0, None) if isinstance(target, (str, os.PathLike)) else None
    task = _task(_copy, "copy", options)
    result: Future[int] = _call(task, (source, target), session, builtin)
    return result


def persist(path: str | os.PathLike[str], **options: Any) -> Future[int]:
    """Bring a file or directory to its own path now, after the tasks before this one that write it.

    A task like `copy`: its future is done when the file stands at its own path, whole and on the
    device. Gives how many bytes were moved; 0 if it was there. Files that nobody asks for come home
    when the session ends.
    """
    if isinstance(path, Scratch):
        raise ValueError(f"{path!r} has no path of its own; al.copy(scratch, path) keeps it")
    result: Future[int] = _call(
        _task(_persist, "persist", options), (path,), _context.session(), ("persist", 0, None)
    )
    return result
