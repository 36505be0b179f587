"""Alongside: a task runtime in which storage I/O is a first-class citizen.

Functions become tasks (`task`, `io`), calls under a `Session` give futures, and the runtime
infers what depends on what. Without a session the same program runs sequentially.

Names are imported when they are first used, so that worker processes start quickly.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from alongside import aio, errors, hdf5
    from alongside.builtin import copy, persist, read, write
    from alongside.directions import (
        Commutative,
        Concurrent,
        DirIn,
        DirInOut,
        DirOut,
        FileIn,
        FileInOut,
        FileOut,
        In,
        InOut,
        Out,
    )
    from alongside.errors import (
        CancelledError,
        ConstraintError,
        DirectionError,
        Error,
        ReleaseError,
        SerializationError,
        SessionError,
        StorageError,
        StoreFullError,
        TaskError,
        TaskTimeoutError,
        TimeoutError,
        WorkerLostError,
    )
    from alongside.files import Scratch, fsync, open
    from alongside.future import Future
    from alongside.io import io
    from alongside.releasing import release
    from alongside.session import Session
    from alongside.stream import Stream
    from alongside.task import task
    from alongside.wait import as_completed, put, wait, wait_all

__version__ = "0.1.0"

__all__ = [
    "CancelledError",
    "Commutative",
    "Concurrent",
    "ConstraintError",
    "DirIn",
    "DirInOut",
    "DirOut",
    "DirectionError",
    "Error",
    "FileIn",
    "FileInOut",
    "FileOut",
    "Future",
    "In",
    "InOut",
    "Out",
    "ReleaseError",
    "Scratch",
    "SerializationError",
    "Session",
    "SessionError",
    "StorageError",
    "StoreFullError",
    "Stream",
    "TaskError",
    "TaskTimeoutError",
    "TimeoutError",
    "WorkerLostError",
    "aio",
    "as_completed",
    "copy",
    "errors",
    "fsync",
    "hdf5",
    "io",
    "open",
    "persist",
    "put",
    "read",
    "release",
    "task",
    "wait",
    "wait_all",
    "write",
]

_HOMES = {
    "builtin": "copy persist read write",
    "directions": "Commutative Concurrent DirIn DirInOut DirOut FileIn FileInOut FileOut "
    "In InOut Out",
    "files": "Scratch fsync open",
    "future": "Future",
    "io": "io",
    "releasing": "release",
    "session": "Session",
    "stream": "Stream",
    "task": "task",
    "wait": "as_completed put wait wait_all",
}
_MODULES = {"aio", "errors", "hdf5"}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


class _Package(ModuleType):
    """Some names (`io`, `task`, `wait`) are also those of modules: the function is meant."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return (importlib.import_module, (__name__,))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = name if name in _MODULES else _HOME.get(name, "errors")
    module = importlib.import_module(f"{__name__}.{home}")
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


sys.modules[__name__].__class__ = _Package
