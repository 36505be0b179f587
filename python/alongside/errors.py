"""Every error that the package raises, and how a failed task becomes one.

An error names what failed, where, why, and what to do. The exceptions of task bodies arrive as
`TaskError`: it is also an instance of the exception's own class, so `except ValueError` works
as it does in the sequential program. (Not of `StopIteration`, which would end a loop unseen.)
"""

from __future__ import annotations

import builtins
import concurrent.futures
import os
import pickle
import re
from typing import Any

from alongside import _native

__all__ = [
    "CancelledError",
    "ConstraintError",
    "DirectionError",
    "Error",
    "ReleaseError",
    "RemoteTraceback",
    "SerializationError",
    "SessionError",
    "StorageError",
    "StoreFullError",
    "TaskError",
    "TaskTimeoutError",
    "TimeoutError",
    "WorkerLostError",
]


class Error(Exception):
    """Everything that this package raises is one."""


class SessionError(Error, RuntimeError):
    """The session is closed, broke down, or belongs to another process; or a future of another."""


class DirectionError(Error, TypeError):
    """A parameter's direction (`In`, `FileOut`, ...) does not fit the function or the argument."""


class ConstraintError(Error, ValueError):
    """An option that can never be satisfied: unknown units, too many processors, no such layer."""


class ReleaseError(Error, RuntimeError):
    """`release` outside of a task, of an output that the task does not have, or a second time."""


class StorageError(Error, ValueError):
    """A storage description is wrong; the message begins with `file:line:column`."""


class StoreFullError(Error, MemoryError):
    """The object store has no room for a value."""


class SerializationError(Error, TypeError):
    """An argument, a result or a function cannot be sent between processes; names which."""


class TimeoutError(Error, builtins.TimeoutError):
    """A wait ended before what it waited for."""


class CancelledError(Error, concurrent.futures.CancelledError):
    """The task was cancelled, or needs the output of one that was.

    `chain` has the names of the tasks from the cancelled one to this one.
    """

    def __init__(self, message: str = "", chain: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.chain = chain


class TaskError(Error):
    """A task failed, or needs the output of one that did.

    `chain` has the names of the tasks from the one that failed to this one; `cause` is the
    exception of the task's body, if there was one (also `__cause__`, with the remote traceback).
    """

    def __init__(
        self, message: str, chain: tuple[str, ...] = (), cause: BaseException | None = None
    ) -> None:
        Exception.__init__(self, message)
        self.chain = chain
        self.cause = cause
        self.message = message

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self.message, self.chain, self.cause))


class TaskTimeoutError(TaskError, TimeoutError):
    """A task ran longer than its `timeout=`."""


class WorkerLostError(TaskError):
    """The process that ran a task died. `signal` is the signal that killed it, or None."""

    def __init__(self, message: str, chain: tuple[str, ...] = (), reason: str = "") -> None:
        super().__init__(message, chain)
        self.reason = reason
        self.signal = _signal_in(reason)

    def __reduce__(self) -> tuple[Any, ...]:
        return (WorkerLostError, (self.message, self.chain, self.reason))


class RemoteTraceback(Exception):  # noqa: N818, it is the text of one
    """Carries the text of a traceback from a worker; shown above the exception it caused."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return "\n" + self.text.rstrip("\n")


_both: dict[type[BaseException], type[TaskError]] = {}

ENDS_OF_LOOPS = (StopIteration, StopAsyncIteration)
"""What a loop over futures would take for its own end, so that the failure would be lost."""


def _rebuild(message: str, chain: tuple[str, ...], cause: BaseException | None) -> TaskError:
    """A `TaskError` that is also an instance of the class of its cause, where Python allows it."""
    if not isinstance(cause, Exception) or isinstance(cause, ENDS_OF_LOOPS):
        return TaskError(message, chain, cause)
    kind = type(cause)
    both = _both.get(kind)
    if both is None:
        try:
            both = type(kind.__name__, (TaskError, kind), {"__module__": kind.__module__})
            both(message, chain, cause)
        except Exception:  # another layout, or a class that will not be derived from
            both = TaskError
        _both[kind] = both
    error = both(message, chain, cause)
    for name in ("errno", "strerror", "filename", "filename2", "name", "path", "obj"):
        if name in kind.__dict__ or (isinstance(cause, OSError) and name in OSError.__dict__):
            try:
                setattr(error, name, getattr(cause, name))
            except (AttributeError, TypeError):  # read-only there: the cause still has it
                continue
    for name, value in getattr(cause, "__dict__", {}).items():
        error.__dict__.setdefault(name, value)
    return error


def _signal_in(reason: str) -> int | None:
    found = re.search(r"\bsignal (\d+)", reason)
    return int(found[1]) if found else None


def of(fault: _native.Fault) -> Exception:
    """The exception for a version that will never come."""
    chain = tuple(fault.chain)
    if fault.kind == "session":
        return SessionError(fault.text)
    root = repr(chain[0]) if chain else "the task"
    if len(chain) > 1:
        start = f"task {chain[-1]!r} was not run: task {root} "
        way = f" (the way here: {' -> '.join(chain)})"
    else:
        start, way = f"task {root} ", ""
    if fault.kind == "cancelled":
        return CancelledError(f"{start}was cancelled{way}", chain)
    if fault.kind == "timed_out":
        seconds = fault.timeout_ns / 1e9
        return TaskTimeoutError(f"{start}ran longer than its timeout of {seconds:g} s{way}", chain)
    if fault.kind == "worker_lost":
        text = f"{start}failed: its worker was lost, {fault.text}{way}"
        return WorkerLostError(text, chain, fault.text)
    if fault.kind == "system":
        cause = OSError(fault.errno, fault.text or os.strerror(fault.errno), fault.path)
        text = f"{start}failed: {type(cause).__name__}: {cause}{way}"
        error = _rebuild(text, chain, cause)
        error.__cause__ = cause
        return error
    if fault.kind in ("runtime", "no_layer"):
        return TaskError(f"{start}failed: {fault.text}{way}", chain)
    return _raised(fault, f"{start}failed: ", way, chain)


def _raised(fault: _native.Fault, start: str, way: str, chain: tuple[str, ...]) -> Exception:
    try:
        data, buffers = fault.payload
        blob, kind, text, trace = pickle.loads(data, buffers=buffers)
    except Exception as damage:
        return TaskError(f"{start}its exception could not be read back: {damage!r}{way}", chain)
    cause: BaseException
    try:
        if blob is None:
            raise ValueError("not sent")
        cause = pickle.loads(blob)
    except Exception:  # a class that only the worker knows, or one that cannot be pickled
        cause = Exception(f"{kind}: {text}")
    cause.__cause__ = RemoteTraceback(trace)
    error = _rebuild(f"{start}{kind}: {text}{way}", chain, cause)
    error.__cause__ = cause
    return error
