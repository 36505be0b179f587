"""`@task`: a function whose calls take a processor."""

from __future__ import annotations

import contextvars
import functools
import inspect
import pickle
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from alongside import _context, _native, calls, releasing, tracking
from alongside.directions import OUT
from alongside.options import Options, checked
from alongside.signature import Table

if TYPE_CHECKING:
    from alongside.future import Future
    from alongside.stream import Stream

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_dumps = pickle.dumps
_open = _native.slots_open
_close = _native.slots_close


class Task(Generic[R_co]):
    """A decorated function. Calling it under a session makes a task and returns at once.

    Under a session a call gives a `Future` (a tuple of `returns=` futures if that is more than
    one); without a session it runs the function here and now, and gives what it returns.
    """

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.options = options
        self.name = str(options.name or getattr(function, "__qualname__", repr(function)))
        self.asynchronous = inspect.iscoroutinefunction(function)
        self.generates = inspect.isgeneratorfunction(function)
        _refuse(function, options, self.name, self.asynchronous)
        self.table = Table(function, self.name)
        self._plain = self.table.plain and options.buffer is None
        self._least, self._most = self.table.least, self.table.most
        self._known = (0, 0)  # the number of the last session, and our number in it

    def __call__(self, *args: Any, **kwargs: Any) -> R_co:  # noqa: D102, the class says it
        session = _context.current or _context.session()
        if session is None:
            return self.inline(args, kwargs)  # type: ignore[no-any-return]
        known, number = self._known
        if known != session.number:
            number = self.number_in(session)
        if (
            not self._plain
            or kwargs
            or not self._least <= len(args) <= self._most
            or tracking.is_used()
        ):
            return calls.spawn(session, self, number, args, kwargs)  # type: ignore[no-any-return]
        buffers: list[Any] = []
        _open()
        try:
            data = _dumps((args, kwargs), 5, buffer_callback=buffers.append)
            if b"__main__" not in data:
                return session.native.spawn(number, data, buffers)  # type: ignore[no-any-return]
        except Exception as error:
            if isinstance(error, _native.Refused):
                raise calls.refusal(error, self, args, kwargs) from None
        finally:
            _close()
        return calls.spawn(session, self, number, args, kwargs)  # type: ignore[no-any-return]

    def number_in(self, session: Any) -> int:
        """The function's number in a session, which is told of it at the first call."""
        number: int = session.number_of(self)
        self._known = (session.number, number)
        return number

    def inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The sequential program: the function, here and now."""
        if self.options.buffer is not None:
            from alongside.stream import InlineStream

            return InlineStream(self, args, kwargs)
        written = self.begin_inline(args, kwargs)
        running = releasing.Inline(self.name, self.options.returns, written)
        token = releasing.current.set(running)
        try:
            value = self.function(*args, **kwargs)
            if self.asynchronous:
                value = _awaited(value)
            elif self.generates:
                releasing.drive(running, value)
                value = None
        finally:
            releasing.current.reset(token)
        value = running.finish(value)
        self.flush_inline(written)
        return value

    def begin_inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        """What a call of the sequential program is to write. Directories are there, and empty."""
        written = calls.written_paths(self.table, args, kwargs) if self.table.directed else []
        for parameter, path in written:
            if parameter.direction.directory and parameter.direction.number == OUT:
                from alongside import files

                files.make_anew(path, self.name)
        return [path for _, path in written]

    def flush_inline(self, written: list[str]) -> None:
        """The files that the sequential program wrote in a call, down to the device."""
        if self.options.durable:
            from alongside import files

            files.make_durable(written)

    @overload
    def __get__(self, instance: None, owner: type) -> Task[R_co]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., R_co]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<{self.options.kind} {self.name}>"

    def is_found_by_name(self) -> bool:
        """Whether its module, which a worker can import, has it under its own name."""
        module, name = getattr(self, "__module__", None), getattr(self, "__qualname__", "")
        found: Any = sys.modules.get(module) if module and module != "__main__" else None
        for part in name.split(".") if found is not None else ():
            found = getattr(found, part, None)
        return found is self and not _sent_by_value(module)

    def __reduce__(self) -> Any:
        """By name where that leads back here, else whole."""
        if self.is_found_by_name():
            return (_by_name, (self.__module__, self.__qualname__))  # type: ignore[attr-defined]
        return (Task, (self.function, self.options))


def _sent_by_value(module: str | None) -> bool:
    cloudpickle = sys.modules.get("cloudpickle")
    return cloudpickle is not None and module in cloudpickle.list_registry_pickle_by_value()


def _by_name(module: str, name: str) -> Any:
    """The task of that name in a module that is imported here."""
    import importlib

    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _refuse(function: Any, options: Options, name: str, asynchronous: bool) -> None:
    """Functions that cannot be tasks."""
    where = f"@alongside.{'io' if options.kind == 'io' else 'task'}"
    if isinstance(function, (staticmethod, classmethod)):
        raise TypeError(f"{where} has to stand below @{type(function).__name__}, not above it")
    if isinstance(function, Task):
        raise TypeError(f"{name} is a task already; decorate it once")
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"{where} is for functions, not for {function!r}")
    if inspect.isasyncgenfunction(function):
        raise TypeError(f"{where}: {name} is an asynchronous generator; make it a plain one")
    generates = inspect.isgeneratorfunction(function)
    if options.buffer is not None and not generates:
        raise TypeError(f"{where}: {name} has returns=Stream, so it has to be a generator: `yield`")
    if generates and options.buffer is None and options.returns == 1:
        raise TypeError(
            f"{where}: {name} is a generator: say how many values it yields, with returns=2 or "
            "more (each yield then hands over the next output), or returns=alongside.Stream if "
            "nobody knows; or return a list"
        )
    if asynchronous and options.kind != "io":
        raise TypeError(f"{where}: {name} is async, which is for I/O tasks; use @alongside.io")


def unbound(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A call in which what the callable holds is an argument, like any other.

    Workers keep the functions that they were sent; an object that one of them is bound to is to be
    sent as it is at each call.
    """
    holder = getattr(function, "__self__", None)
    if type(function) is functools.partial and not any(
        value is _PLACEHOLDER for value in function.args
    ):
        inner, given = function.func, {**function.keywords, **kwargs}
        return unbound(inner, (*function.args, *args), given)
    if isinstance(function, MethodType) and not isinstance(function.__func__, Task):
        return function.__func__, (holder, *args), kwargs
    if isinstance(function, BuiltinMethodType) and not isinstance(
        holder, (ModuleType, type, type(None))
    ):
        return getattr(type(holder), function.__name__, function), (holder, *args), kwargs
    if isinstance(function, type):
        return make, (function, *args), kwargs
    call = inspect.getattr_static(type(function), "__call__", None)
    if isinstance(call, FunctionType) and not isinstance(function, Task):
        return call, (function, *args), kwargs
    return function, args, kwargs


def make(kind: type, *args: Any, **kwargs: Any) -> Any:
    """An object of a class, which is no function."""
    return kind(*args, **kwargs)


_PLACEHOLDER = getattr(functools, "Placeholder", object())
"""Python 3.14: stands in a partial for an argument to come."""


def _awaited(value: Coroutine[Any, Any, R] | Awaitable[R]) -> R:
    """The result of a coroutine, also when this thread runs an event loop already."""
    import asyncio

    async def body() -> R:
        return await value

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(body())
    result: list[R] = []
    error: list[BaseException] = []

    def run() -> None:
        try:
            result.append(asyncio.run(body()))
        except BaseException as raised:
            error.append(raised)

    thread = threading.Thread(target=contextvars.copy_context().run, args=[run])
    thread.start()
    thread.join()
    if error:
        raise error[0]
    return result[0]


@overload
def task(function: Callable[..., R], /) -> Task[Future[R]]: ...
@overload
def task(
    *,
    cpus: int = 1,
    priority: int = 0,
    retries: int = 0,
    timeout: float | None = None,
    on_failure: str = "fail",
    name: str | None = None,
) -> Callable[[Callable[..., R]], Task[Future[R]]]: ...
@overload
def task(
    *,
    returns: type[Stream[Any]],
    buffer: int | None = None,
    cpus: int = 1,
    priority: int = 0,
    retries: int = 0,
    timeout: float | None = None,
    on_failure: str = "fail",
    name: str | None = None,
) -> Callable[[Callable[..., Iterator[R]]], Task[Stream[R]]]: ...
@overload
def task(
    *,
    returns: int,
    cpus: int = 1,
    priority: int = 0,
    retries: int = 0,
    timeout: float | None = None,
    on_failure: str = "fail",
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Task[Any]]: ...
def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a compute task. Used bare, or with options:

    `cpus`: processors that it takes while it runs (at least 1).
    `returns`: how many values it returns; 2 or more give a tuple of futures. A generator function
    hands over the next one with each `yield`, any other function may do so with `release`.
    `returns=alongside.Stream` of a generator function gives a `Stream` of as many as it yields.
    `buffer`: by how many values the producer of a stream may be ahead of its consumers. None: by
    16, and by more while they are small, up to 1,024 of together 16 MiB.
    `priority`: higher runs first.
    `retries`: how often it is run again after a failure or the loss of its worker.
    `timeout`: seconds from its start to the moment it is given up.
    `on_failure`: `"fail"` cancels what needs it, and leaving the session raises;
    `"cancel_dependents"` only cancels; `"ignore"` gives None to what needs it.
    `name`: for messages, the timeline and the statistics.

    Raises `ConstraintError` for an option that makes no sense, `DirectionError` for a parameter
    whose direction does not, and TypeError for a function that cannot be a task.
    """
    if function is None:
        return lambda function: Task(function, checked("compute", function, options))
    return Task(function, checked("compute", function, options))
