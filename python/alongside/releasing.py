"""`release`: outputs that a task hands over before it ends.

A consumer waits for the version that it reads, not for the task that makes it. So an output that
is released frees its consumers while the body runs on (Elshazly's thesis, section 7.4).
"""

from __future__ import annotations

import copy
import operator
import os
import threading
from collections.abc import Callable, Generator
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from typing import Any, NoReturn, Protocol, SupportsIndex, overload


class Running(Protocol):
    """A task whose body runs, as `release` sees it."""

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def returns(self) -> int:
        """How many values the task returns."""

    def give(self, index: int, value: Any) -> bool:
        """Hands an output over. False: it was handed over before."""

    def close(self, path: str) -> bool | None:
        """Hands a file over. False: it was handed over before. None: the task writes no such."""


class Driven(Running, Protocol):
    """A generator task whose body runs."""

    @property
    def give_each(self) -> Callable[[Generator[Any, None, Any], int], tuple[int, int, Any]]:
        """Hands over what a generator yields, from an output on, as far as it can.

        How many outputs were handed over, and `ALL`; or `LEFT` and a value that `give` is to be
        asked about; or `ENDED` and what the generator returned.
        """


ALL, LEFT, ENDED = range(3)

current: ContextVar[Running | None] = ContextVar("running", default=None)
"""The task of this thread or coroutine."""

alone: Running | None = None
"""In a process that runs one task at a time: that task, also for threads that its body started."""


class _Nothing:
    """No value was given: it is a file."""


_NOTHING = _Nothing()


@overload
def release(index: SupportsIndex, value: Any, /) -> None: ...
@overload
def release(path: str | os.PathLike[str], /) -> None: ...
def release(what: Any, value: Any = _NOTHING, /) -> None:
    """Hand over output `index` (from 0) of the task whose body this is, before it ends; or a file.

    The value is copied at once, so the body may go on and change it; what waits for it runs, and
    the task runs on. Its return values are then those of a task with `returns=N` as ever, except
    that nobody looks at what stands in place of a released one: None will do, and when all were
    released the function need not return anything. If the task fails later, what it released
    stays good. If it is run again (`retries=`), the first value that was released for an output
    is the one that counts.

    `release(path)` hands over a file that the task writes (`FileOut`, `FileInOut`), by the path
    that its parameter holds: tasks that read it run. The body has closed it, and does not write
    it again; those that write it wait for the end of the task. A task that has released a file is
    not run again.

    Without a session, in the sequential program, the value is copied and kept for the end.

    Raises `ReleaseError` outside of a task, for an output or a file that the task does not have,
    and for one that was released before; `SerializationError` for a value that cannot be sent;
    FileNotFoundError for a file that was not written.
    """
    running = _running()
    if running is None:
        _refuse(
            "release() was called outside of a task: it hands over an output of the task whose "
            "body calls it"
        )
    if value is _NOTHING:
        _release_file(running, what)
        return
    try:
        number = operator.index(what)
    except TypeError:
        kind = type(what).__name__
        _refuse(
            f"{running.name}(): release() takes the number of an output and its value, not a {kind}"
        )
    if not 0 <= number < running.returns:
        last = running.returns - 1
        outputs = f"0 to {last}" if last else "0"
        _refuse(
            f"{running.name}() has returns={running.returns}, so it can release {outputs}, not "
            f"{number}"
        )
    if not running.give(number, value):
        _refuse_again(running, number)


def _refuse_again(running: Running, number: int) -> NoReturn:
    _refuse(
        f"{running.name}() released output {number} twice; the first value counts, and "
        "consumers may have seen it"
    )


def _release_file(running: Running, what: Any) -> None:
    if not isinstance(what, (str, os.PathLike)):
        _refuse(
            f"{running.name}(): release() takes the number of an output and its value, or the path "
            f"of a file, not only a {type(what).__name__}"
        )
    path = os.fspath(what)
    is_first = running.close(path)
    if is_first is None:
        _refuse(
            f'{running.name}() writes no file "{path}": release() takes what a parameter holds '
            "that is FileOut or FileInOut"
        )
    if not is_first:
        _refuse(f'{running.name}() released the file "{path}" twice')


def _refuse(text: str) -> NoReturn:
    from alongside.errors import ReleaseError  # workers start without it

    raise ReleaseError(text) from None


def _running() -> Running | None:
    return current.get() or alone


def results(running: Running, result: Any, released: AbstractSet[int]) -> list[Any]:
    """The values that a body returned, one for each output; None for those it released before."""
    count = running.returns
    if count == 1:
        return [None] if released else [result]
    if result is None and len(released) == count:
        return [None] * count
    try:
        values = list(result)
    except TypeError:
        got = type(result).__name__
    else:
        if len(values) == count:
            return [None if at in released else value for at, value in enumerate(values)]
        got = f"{len(values)} values"
    text = f"{running.name}() has returns={count}, but it returned {got}"
    if released:
        missing = ", ".join(str(at) for at in range(count) if at not in released)
        text += (
            f"; return {count} values (None will do for the {len(released)} that it released)"
            + (f", or release {missing} too" if missing else ", or nothing")
        )
    raise TypeError(text)


def drive(running: Driven, generator: Generator[Any, None, Any]) -> None:
    """Runs a generator task to its end: each yield releases the next output."""
    count, number = running.returns, 0
    try:
        while number < count:
            number, how, value = running.give_each(generator, number)
            if how == ENDED:
                refuse_value(running, StopIteration(value))
                raise TypeError(
                    f"{running.name}() has returns={count}, but it yielded {number} values"
                )
            if how == LEFT:
                if not running.give(number, value):
                    _refuse_again(running, number)
                number += 1
            del value
        try:
            next(generator)
        except StopIteration as stop:
            refuse_value(running, stop)
            return
        raise TypeError(f"{running.name}() has returns={count}, but it yielded one value more")
    finally:
        generator.close()


def refuse_value(running: Running, stop: StopIteration) -> None:
    """A generator task hands over what it yields, and nothing else."""
    if stop.value is not None:
        raise TypeError(
            f"{running.name}() is a generator task, so what it returns "
            f"(a {type(stop.value).__name__}) would be lost; yield it"
        ) from None


class Inline:
    """A task that runs here and now, in the sequential program."""

    def __init__(self, name: str, returns: int, written: list[str]) -> None:
        self.name = name
        self.returns = returns
        self.written = written
        self.closed: set[str] = set()
        self.values: dict[int, Any] = {}
        self.lock = threading.Lock()

    def give(self, index: int, value: Any) -> bool:
        """Notes the value of an output."""
        with self.lock:
            is_first = index not in self.values
            if is_first:
                self.values[index] = copy.deepcopy(value)  # the body may go on and change it
            return is_first

    def give_each(self, generator: Generator[Any, None, Any], first: int) -> tuple[int, int, Any]:
        """Notes what a generator yields."""
        for number in range(first, self.returns):
            try:
                value = next(generator)
            except StopIteration as stop:
                return number, ENDED, stop.value
            if not self.give(number, value):
                return number, LEFT, value
        return self.returns, ALL, None

    def close(self, path: str) -> bool | None:
        """Notes that a file is whole."""
        if path not in self.written:
            return None
        is_first = path not in self.closed
        self.closed.add(path)
        return is_first

    def finish(self, result: Any) -> Any:
        """What the call gives."""
        if not self.values:
            return result
        values = results(self, result, self.values.keys())
        for index, value in self.values.items():
            values[index] = value
        return values[0] if self.returns == 1 else tuple(values)
