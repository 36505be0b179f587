"""`open` and `fsync`: the files of tasks, where they really are.

On a layer with an emulated `limit` reads and writes pass through the limiter that all processes
share. Such a file has no `fileno()`, so that no library can go around it.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
import stat
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, Any

from alongside import _context, _native

if TYPE_CHECKING:
    from alongside.session import Session

limiters: ContextVar[dict[str, _native.Limiter]] = ContextVar("limiters")
"""In a task: the limiters of its files, by real place."""

_synced: weakref.WeakSet[IO[Any]] = weakref.WeakSet()
"""Open files whose folder was flushed."""

_settled: set[str] = set()
"""Folders whose names were flushed, by this process."""


def open(file: str | os.PathLike[str], mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:
    """Open a file of a task, with the arguments of the built-in `open`.

    In a task `file` is what the parameter (`FileIn`, `FileOut`, ...) holds. In the main program
    it is the name that was given to the task: this waits for the task that writes it, and opens
    the file on the layer where it is. (Opening for writing does not wait for readers.)

    Raises what the built-in raises, and what `Future.result` raises for the writing task.
    """
    name = os.fspath(file)
    if _context.in_worker:
        return _opened(name, limiter_of(name), mode, *args, **kwargs)
    session = _context.current
    if session is None:
        return builtins.open(name, mode, *args, **kwargs)
    datum, _, place, inside, _ = session.native.file(name, False, None)
    session.native.current(datum).result()
    whole = session.native.place_of(datum) or place
    while True:
        real = os.path.join(whole, inside) if inside else os.fspath(whole)
        try:
            return _opened(real, session.native.limiter_of(real), mode, *args, **kwargs)
        except FileNotFoundError:
            before, whole = whole, session.native.place_of(datum) or whole
            if whole == before:
                raise
            # it was moved meanwhile


def limiter_of(name: str) -> _native.Limiter | None:
    """In a task: what the reads and writes of a file pass through; that of its directory, too."""
    known = limiters.get({})
    found = known.get(name)
    while known and found is None and (above := os.path.dirname(name)) != name:
        name = above
        found = known.get(name)
    return found


def fsync(file: IO[Any] | str | os.PathLike[str]) -> None:
    """Flush a file, and its folder if it may be new, down to the device.

    When this returns the file survives the loss of every process, and of power where the device
    keeps its promises. Takes an open file or a name. Raises OSError as `os.fsync` does.
    """
    if isinstance(file, (str, os.PathLike)):
        _fsync_path(os.fspath(file))
        return
    file.flush()
    raw = getattr(getattr(file, "buffer", file), "raw", file)
    if isinstance(raw, _Limited):
        descriptor, name = raw.file.fileno(), raw.file.name
    else:
        descriptor, name = file.fileno(), getattr(file, "name", None)
    _fsync(descriptor, name)
    if file not in _synced and isinstance(name, (str, bytes)):
        fsync_folder(os.fsdecode(name))
        _synced.add(file)


def make_durable(paths: Iterable[str]) -> None:
    """Flush what a task wrote, as `fsync`; what does not exist is left out."""
    for path in paths:
        for folder, _, names in os.walk(path, topdown=False):
            for name in names:
                if not os.path.islink(below := os.path.join(folder, name)):
                    _fsync_file(below)
            _fsync_one_folder(folder)
        if os.path.isdir(path):
            fsync_folder(path)
        elif os.path.exists(path):
            _fsync_path(path)


class Scratch(os.PathLike[str]):
    """The name of a file or directory that only tasks use.

    Give it to parameters with a direction (`FileOut`, `DirIn`, ...) and to `open`. What tasks write
    there is on the layer of their grant, as for every file, and never comes home: it is deleted
    when this object is gone and no task uses it, at the latest with the session. `name` is a part
    of the file's name, for programs that look at its ending.
    """

    def __init__(self, name: str = "scratch") -> None:
        if not name or os.path.basename(name) != name or name in (".", ".."):
            raise ValueError(f"name={name!r}: a name without folders is needed, such as 'part.csv'")
        session = _context.session()
        if session is None:
            import tempfile  # slow to import, and rarely needed

            folder = tempfile.mkdtemp(prefix="alongside-")
            self._path = os.path.join(folder, name)
            weakref.finalize(self, _remove_folder, folder)
        else:
            self._path = session.native.scratch(name)
            weakref.finalize(self, _forget, weakref.ref(session), self._path).atexit = False

    def __fspath__(self) -> str:
        return self._path

    def __repr__(self) -> str:
        return f"<scratch {self._path}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "a scratch file is given to parameters with a direction, such as FileIn, where the "
            "task gets its real place"
        )


def _forget(reference: weakref.ref[Session], path: str) -> None:
    if (session := reference()) is not None:
        session.native.forget_path(path)


def _remove_folder(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


LAYER_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS}
"""What a storage layer fails of, that another may not."""


def layer_errno(error: BaseException, job: _native.Assignment) -> int:
    """Why the layer that a task writes to may be to blame for its failure; 0: it is not."""
    if not job.uses_files:
        return 0
    places = {place for place, _, written in job.places() if written}
    if not places:
        return 0
    for one in _with_causes(error):
        if isinstance(one, OSError):
            if one.errno in LAYER_ERRORS and _is_below(one.filename, places):
                return one.errno
            # NumPy tells of a short write without its reason.
            if one.errno is None and any(_is_full(place) for place in places):
                return errno.ENOSPC
    return 0


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """An error, what it came of, and so on, each once: `raise error from error` is allowed."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


def _is_below(name: Any, places: set[str]) -> bool:
    """Whether a file may be one of these, or in one of them: reads and writes give no name."""
    if not isinstance(name, (str, bytes)):
        return name is None
    text = os.fsdecode(name)
    return any(text == place or text.startswith(f"{place}/") for place in places)


def _is_full(place: str) -> bool:
    try:
        return os.statvfs(os.path.dirname(place)).f_bavail == 0
    except OSError:
        return False


def make_folders(folder: str) -> None:
    """Make the folders of a file that a task is to write, where they are missing."""
    missing = []
    while folder and not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for new in reversed(missing):
        _settled.discard(new)
        with contextlib.suppress(FileExistsError):  # another task was quicker
            os.mkdir(new)


_anew: set[str] = set()
"""Directories that tasks without a session made, in this process."""


def make_anew(folder: str, task: str) -> None:
    """Make the directory that a task without a session is to fill.

    Raises FileExistsError if it has something in it that no such task made.
    """
    real = os.path.realpath(folder)
    if real not in _anew and os.path.isdir(real) and os.listdir(real):
        text = (
            f"{task}() makes this directory anew (DirOut), but it has something in it; delete it "
            "first, or use DirInOut"
        )
        raise FileExistsError(errno.EEXIST, text, folder)
    make_folders(os.path.dirname(real))
    make_empty(real)
    _anew.add(real)


def make_empty(folder: str) -> None:
    """Make a directory that a task is to fill, or empty the one that a task of the session made."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
        return
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            import shutil  # which few workers need

            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def stamp(path: str) -> tuple[int, ...] | None:
    """What changes when somebody writes to a file, or to one in a directory."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return status.st_size, status.st_mtime_ns, status.st_ino
    count = latest = size = 0
    for folder, folders, names in os.walk(path):
        for name in (*folders, *names):
            found = os.lstat(os.path.join(folder, name))
            count += 1
            size += found.st_size
            latest = max(latest, found.st_mtime_ns)
    return count, size, max(latest, status.st_mtime_ns), status.st_ino


def _fsync(descriptor: int, name: Any) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        error.filename = name
        raise


def _fsync_file(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _fsync(descriptor, path)
    finally:
        os.close(descriptor)


def _fsync_path(path: str) -> None:
    _fsync_file(path)
    fsync_folder(path)


def fsync_folder(path: str) -> None:
    """A new file's name is in its folder, and a new folder's name in the one above.

    Those above are flushed once a process: up to the top, or to where this user may not look.
    """
    folder = os.path.dirname(os.path.abspath(path))
    _fsync_one_folder(folder)
    while folder not in _settled:
        above = os.path.dirname(folder)
        try:
            _fsync_one_folder(above)
        except PermissionError:
            above = folder
        _settled.add(folder)
        folder = above


def _fsync_one_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _fsync(descriptor, folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EROFS):  # nothing to flush there
            raise
    finally:
        os.close(descriptor)


def _opened(
    name: str, limiter: _native.Limiter | None, mode: str, *args: Any, **kwargs: Any
) -> IO[Any]:
    if limiter is None:
        return builtins.open(name, mode, *args, **kwargs)
    limited: IO[Any] = _limited(name, limiter, mode, *args, **kwargs)
    return limited


def _limited(
    name: str,
    limiter: _native.Limiter,
    mode: str,
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Callable[[str, int], int] | None = None,
) -> Any:
    """The layers of the built-in `open`, over a file whose bytes pass a limiter."""
    text = "b" not in mode
    plain = mode.replace("b", "").replace("t", "")
    raw = _Limited(io.FileIO(name, plain, closefd, opener), limiter)
    if buffering == 0:
        if text:
            raise ValueError("can't have unbuffered text I/O")
        return raw
    size = io.DEFAULT_BUFFER_SIZE if buffering < 2 else buffering
    buffered: io.BufferedRandom | io.BufferedReader | io.BufferedWriter
    if "+" in plain:
        buffered = io.BufferedRandom(raw, size)
    else:
        buffered = io.BufferedReader(raw, size) if "r" in plain else io.BufferedWriter(raw, size)
    if not text:
        return buffered
    wrapper = io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)
    wrapper.mode = mode  # type: ignore[misc]
    return wrapper


class _Limited(io.RawIOBase):
    """A file whose reads and writes wait for the bandwidth of its layer."""

    def __init__(self, file: io.FileIO, limiter: _native.Limiter) -> None:
        self.file = file
        self.limiter = limiter
        self.piece = limiter.piece
        self.mode = file.mode
        self.name = file.name

    def _pass(self, count: int) -> None:
        wait_ns = self.limiter.acquire(count)
        if wait_ns:
            time.sleep(wait_ns / 1e9)

    def readinto(self, buffer: Any) -> int | None:
        count = self.file.readinto(memoryview(buffer)[: self.piece])
        self._pass(count or 0)
        return count

    def write(self, data: Any) -> int | None:
        view = memoryview(data).cast("B")[: self.piece]
        self._pass(len(view))
        return self.file.write(view)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def truncate(self, size: int | None = None) -> int:
        return self.file.truncate(size)

    def readable(self) -> bool:
        return self.file.readable()

    def writable(self) -> bool:
        return self.file.writable()

    def seekable(self) -> bool:
        return self.file.seekable()

    def fileno(self) -> int:
        raise io.UnsupportedOperation(
            f"{self.name}: this layer's bandwidth is emulated, so reads and writes have to pass "
            "through this file object; alongside.fsync takes it as it is"
        )

    def isatty(self) -> bool:
        return False

    def close(self) -> None:
        if not self.closed:
            super().close()
            self.file.close()
