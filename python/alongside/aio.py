"""`await aio.open(...)`: files for `async def` tasks, with no thread for an operation.

Reads and writes go to the engine (io_uring where it is to be had) and wait in the event loop. A
file belongs to the loop that opened it. On a layer with an emulated `limit` its bytes pass the
limiter that all tasks share.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import pickle
import stat
import weakref
from collections.abc import Callable
from typing import Any, Self

from alongside import _native, counting, files

CHUNK_BYTES = 256 << 10
OFFSET_MAX = 2**63 - 1
PERMISSIONS = 0o666

_MODES = {
    "r": os.O_RDONLY,
    "r+": os.O_RDWR,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "w+": os.O_RDWR | os.O_CREAT | os.O_TRUNC,
    "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    "x+": os.O_RDWR | os.O_CREAT | os.O_EXCL,
}

_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = weakref.WeakKeyDictionary()


def flat(data: Any) -> memoryview:
    """The bytes of anything with a buffer, where they lie.

    Raises TypeError if it has none, or not in one piece in C order.
    """
    view = memoryview(data)
    if not view.c_contiguous:
        raise TypeError("the memory has to be in one piece and in C order; make a copy of it first")
    return pickle.PickleBuffer(view).raw()


class _Loop:
    """The engine of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.ring = _native.Ring()
        self.waiting: dict[int, tuple[asyncio.Future[int], str]] = {}
        self.loop = weakref.ref(loop)
        loop.add_reader(self.ring.fileno(), self.completed)

    def completed(self) -> None:
        """Something is complete."""
        for number, result, error in self.ring.poll():
            future, name = self.waiting.pop(number)
            if future.cancelled():
                continue
            if error:
                future.set_exception(OSError(error, os.strerror(error), name))
            else:
                future.set_result(result)

    async def result(
        self, number: int, name: str, undo: Callable[[int], None] | None = None
    ) -> int:
        """What an operation gives. A cancelled wait ends when the operation does, and undoes it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        self.waiting[number] = future, name
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # The memory belongs to the operation until it is complete, however often this is
            # cancelled.
            while not future.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([future])
            # An error is looked at, and no more: the cancellation is what counts.
            if not future.cancelled() and future.exception() is None and undo is not None:
                undo(future.result())
            raise


def _here() -> _Loop:
    loop = asyncio.get_running_loop()
    found = _loops.get(loop)
    if found is None:
        found = _loops[loop] = _Loop(loop)
    return found


async def open(file: str | os.PathLike[str], mode: str = "rb", *, direct: bool = False) -> File:
    """Open a file for bytes; `mode` is one of rb, r+b, wb, w+b, xb, x+b.

    In a task `file` is what the parameter (`FileIn`, `FileOut`, ...) holds. With `direct` the page
    cache is left out (O_DIRECT); any size and offset will do, multiples of 4096 bytes in aligned
    memory are quick.

    Raises what the built-in `open` raises: OSError, ValueError for a mode that is not there.
    """
    plain = mode.replace("b", "")
    if "b" not in mode or plain not in _MODES:
        raise ValueError(f"mode {mode!r}: aio opens files for bytes: rb, r+b, wb, w+b, xb or x+b")
    return await _open(file, mode, _MODES[plain] | (os.O_DIRECT if direct else 0))


async def open_kept(file: str | os.PathLike[str]) -> File:
    """Open a file for writing, made if it is missing, with what it has still in it."""
    return await _open(file, "wb", _MODES["w"] & ~os.O_TRUNC)


async def _open(file: str | os.PathLike[str], mode: str, flags: int) -> File:
    name = os.fspath(file)
    loop = _here()
    number = loop.ring.open(name, flags | os.O_CLOEXEC, PERMISSIONS)
    descriptor = await loop.result(number, name, os.close)
    return File(loop, descriptor, name, mode, files.limiter_of(name))


async def untold(file: File, offset: int, count: int) -> bytes:
    """At most `count` bytes of a file that does not tell its size: empty, a device, of /proc."""
    parts = []
    while count > 0 and (part := await file.pread(min(count, CHUNK_BYTES), offset)):
        parts.append(part)
        offset, count = offset + len(part), count - len(part)
    return b"".join(parts)


class File:
    """An open file: the methods of a file object, to be awaited; leave it by `async with`."""

    def __init__(
        self,
        loop: _Loop,
        descriptor: int,
        name: str,
        mode: str,
        limiter: _native.Limiter | None,
    ) -> None:
        self.name = name
        self.mode = mode
        self.position = 0
        self._loop = loop
        self._descriptor = descriptor
        self.limiter = limiter

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._descriptor < 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        if not self.closed:
            os.close(self._descriptor)

    def fileno(self) -> int:
        """The descriptor; ValueError once the file is closed."""
        if self.closed:
            raise ValueError(f"{self.name}: I/O operation on a closed file")
        return self._descriptor

    async def wait_for_bandwidth(self, count: int) -> None:
        """Wait until the emulated limit of its layer, if any, lets so many bytes pass."""
        if self.limiter is not None:
            wait_ns = self.limiter.acquire(count)
            if wait_ns:
                await asyncio.sleep(wait_ns / 1e9)

    def _part(self, view: memoryview, done: int) -> memoryview:
        """What goes in one operation: all that is left, or what passes a limiter at once."""
        end = len(view) if self.limiter is None else done + self.limiter.piece
        return view[done:end]

    async def pread_into(self, buffer: Any, offset: int) -> int:
        """Read at `offset` into a writable buffer (an array, a bytearray); bytes that were read."""
        done = 0
        with flat(buffer) as view:
            while done < len(view):
                with self._part(view, done) as part:
                    number = self._loop.ring.read(self.fileno(), part, offset + done)
                    count = await self._loop.result(number, self.name)
                    short = count < len(part)
                counting.add(read=count)
                await self.wait_for_bandwidth(count)
                done += count
                if short:
                    break
        return done

    async def pread(self, count: int, offset: int) -> bytes:
        """Read at most `count` bytes at `offset`; fewer where the file ends."""
        buffer = bytearray(count)
        got = await self.pread_into(buffer, offset)
        return bytes(memoryview(buffer)[:got])

    async def pwrite(self, data: Any, offset: int) -> int:
        """Write all of `data` (anything with a buffer) at `offset`; how many bytes that are."""
        done = 0
        with flat(data) as view:
            while done < len(view):
                with self._part(view, done) as part:
                    await self.wait_for_bandwidth(len(part))
                    number = self._loop.ring.write(self.fileno(), part, offset + done)
                    count = await self._loop.result(number, self.name)
                counting.add(written=count)
                if count == 0:
                    raise OSError(errno.EIO, "nothing could be written", self.name)
                done += count
        return done

    async def read(self, count: int = -1) -> bytes:
        """Read from the position on; all that is left with -1."""
        status = os.fstat(self.fileno())
        if count < 0 and status.st_size == 0 and stat.S_ISREG(status.st_mode):
            data = await untold(self, self.position, OFFSET_MAX - self.position)
        else:
            left = max(0, status.st_size - self.position)
            data = await self.pread(left if count < 0 else count, self.position)
        self.position += len(data)
        return data

    async def readinto(self, buffer: Any) -> int:
        """Read from the position on into a writable buffer; bytes that were read."""
        count = await self.pread_into(buffer, self.position)
        self.position += count
        return count

    async def write(self, data: Any) -> int:
        """Write all of `data` from the position on; how many bytes that are."""
        count = await self.pwrite(data, self.position)
        self.position += count
        return count

    async def copy_to(self, target: File, count: int, offset: int = 0, to: int = 0) -> int:
        """Copy bytes of this file to another open one, inside the kernel where that is possible.

        From `offset` here to `to` there; how many bytes, fewer where this file ends.
        """
        done = 0
        limits = [one.limiter.piece for one in (self, target) if one.limiter is not None]
        while done < count:
            part = min(count - done, *limits) if limits else count - done
            await target.wait_for_bandwidth(part)
            await self.wait_for_bandwidth(part)
            ends = self.fileno(), offset + done, target.fileno(), to + done
            got = await self._loop.result(self._loop.ring.copy(*ends, part), target.name)
            counting.add(got, got)
            done += got
            if got < part:
                break
        return done

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move the position; from the end only where it is known: use `size()` for that."""
        if whence == os.SEEK_CUR:
            offset += self.position
        elif whence != os.SEEK_SET:
            raise ValueError("seek: only from the start or the position; see size()")
        if offset < 0:
            raise ValueError(f"negative seek position {offset}")
        self.position = offset
        return offset

    def tell(self) -> int:
        """The position."""
        return self.position

    async def size(self) -> int:
        """Bytes of the file."""
        return os.fstat(self.fileno()).st_size

    async def truncate(self, size: int) -> None:
        """Make the file `size` bytes long."""
        await self._loop.result(self._loop.ring.truncate(self.fileno(), size), self.name)

    async def fsync(self) -> None:
        """Flush the file, and its folder, down to the device; see `alongside.fsync`."""
        await self._loop.result(self._loop.ring.fsync(self.fileno()), self.name)
        await asyncio.to_thread(files.fsync_folder, self.name)

    async def close(self) -> None:
        """Close it; again is no error."""
        if not self.closed:
            descriptor, self._descriptor = self._descriptor, -1
            await self._loop.result(self._loop.ring.close(descriptor), self.name)
