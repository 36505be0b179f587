"""`Stream`: the values of a task that come one by one, in a number that nobody knew."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Generator, Iterator
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

from alongside import _native, calls, errors, releasing
from alongside.future import DONE, Future
from alongside.results import ByEvents, InOrder, Program, Results, Scheduler

if TYPE_CHECKING:
    from alongside.task import Task

T = TypeVar("T")


class Stream(Generic[T]):
    """What a call of a generator task with `returns=alongside.Stream` gives.

    Iterate over it, with `for` or `async for`, for a future of each value, in order. The future
    is done. A value is used up when the program has come for the next one and no task is left to
    read it; the producer may be ahead by `buffer=` values that are not used up, and pauses then.
    So memory is bounded, however long the stream is, unless the program keeps the futures.

    Iterating raises what `Future.result` raises when the producer failed, after the values that
    it had handed over. The producer ends at its next `yield` when the stream is cancelled or
    dropped, or when the session's block is left; one that has not begun does not run. A stream
    stays in its process: pass its futures to tasks. Threads that iterate over one take turns.
    """

    def __init__(self, first: Future[T], native: _native.Stream, buffer: int) -> None:
        self._next: Future[T] | None = first
        self._native = native
        self._cancelled = False
        self._cut = False
        self._mapped = False
        self._lock = threading.Lock()
        self.buffer = buffer
        """By how many values the producer may be ahead; 0: as the runtime sees fit."""

    @property
    def name(self) -> str:
        """The name of its task."""
        return self._native.name

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Future[T]:
        with self._lock:
            future = self._next
            if future is not None and not self._cancelled:
                after = self._native.take(future)
                if after is not None:
                    self._next = after
                    return future
        return self.next()

    def next(self, timeout: float | None = None) -> Future[T]:
        """The future of the next value, which is done. Waits for it, at most `timeout` seconds.

        Raises StopIteration at the end, `TimeoutError` when the time is over, `CancelledError`
        for a stream that was cancelled or whose session was left, and what the producer failed of.
        """
        with self._lock:
            future = self.awaited()
            if not future.wait(timeout):
                raise errors.TimeoutError(
                    f"the stream of task {self.name!r} gave nothing for {timeout:g} s"
                )
            return self._take(future)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Future[T]:
        while True:
            with self._lock:
                try:
                    future = self.awaited()
                    if future.done():
                        return self._take(future)
                except StopIteration:
                    raise StopAsyncIteration from None
            await future.settled()

    def map(self, task: Task[Any], /, *args: Any, ordered: bool = True, **kwargs: Any) -> Results:
        """Call `task(value, *args, **kwargs)` for each value, as soon as that is there.

        Gives an iterator (also for `async for`) over the futures of the results, which are done:
        in the order of the values, or with `ordered=False` in the order in which they are done.
        There are at most `buffer=` calls (16 by default) whose results it has not given back. The
        scheduler calls, with the other arguments as they are now; if they contain futures or
        objects that tasks change, or the task has directed parameters, the iterator calls while
        somebody waits for it. Use a stream by `map` or by itself, not both.
        """
        from alongside.task import Task

        with self._lock:
            self._refuse_mapped()
            following = None if self._cancelled or not isinstance(task, Task) else self._next
            if following is not None and calls.mapped(
                self._native, following, task, args, kwargs, self.buffer
            ):
                self._next, self._mapped = None, True
                alone = Scheduler(self, self._native, following, (task, args, kwargs))
                return InOrder(self, alone) if ordered else ByEvents(self, alone, ordered)
        caller = Program(self, lambda value: task(value, *args, **kwargs))
        return ByEvents(self, caller, ordered)

    def cancel(self) -> None:
        """Want no more: the producer ends at its next `yield`, or does not begin."""
        self._cancelled = True
        self._native.close()

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._cancelled

    def awaited(self) -> Future[T]:
        """The future of the next value. The program is done with the last one."""
        self._refuse_mapped()
        if self._next is None:
            self._over()
        if not self._next.done():
            self._native.come()
        return self._next

    def _refuse_mapped(self) -> None:
        if self._mapped and not self._cancelled:
            raise RuntimeError(
                f"the values of the stream of task {self.name!r} go to the task that it was mapped "
                "to: iterate over what map() gave"
            )

    def _take(self, future: Future[T]) -> Future[T]:
        """The value of this future, which is done, or the end."""
        if self._cancelled:
            self._over()
        self._next = self._native.take(future)
        if self._next is None:
            self.ends(future)
        return future

    def ends(self, last: Future[T] | None) -> NoReturn:
        """Raises why there are no more values; `last` is what would have been the next one."""
        if last is not None and last.state() != DONE:
            last.result()
        self._cut = self._native.closed()
        self._over()

    def _over(self) -> NoReturn:
        self._next = None
        if self._cancelled:
            raise errors.CancelledError(f"the stream of task {self.name!r} was cancelled")
        if self._cut:
            raise errors.CancelledError(
                f"the stream of task {self.name!r} was ended before its producer was: its "
                "session was left or shut down"
            )
        raise StopIteration

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a stream stays in the program: pass the futures that it gives, or use its map()"
        )

    def __repr__(self) -> str:
        word = "cancelled" if self._cancelled else "over" if self._next is None else "open"
        return f"<Stream {self.name} {word}>"


class InlineStream(Stream[T]):
    """The stream of the sequential program: gives values, not futures, as they are asked for."""

    def __init__(self, task: Task[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._task = task
        self._arguments = (args, kwargs)
        self._cancelled = False
        self._generator = self._values()
        self.buffer = task.options.buffer or 1

    @property
    def name(self) -> str:
        """The name of its task."""
        return self._task.name

    def _values(self) -> Generator[Any, None, None]:
        args, kwargs = self._arguments
        running = NoRelease(self.name)
        context = copy_context()
        context.run(releasing.current.set, running)
        written = self._task.begin_inline(args, kwargs)
        generator = context.run(self._task.function, *args, **kwargs)
        try:
            while True:
                try:
                    value = context.run(next, generator)
                except StopIteration as stop:
                    releasing.refuse_value(running, stop)
                    break
                yield copy.deepcopy(value)  # the body may go on and change it
            self._task.flush_inline(written)
        finally:
            generator.close()

    def __next__(self) -> Any:
        return self.next()

    def next(self, timeout: float | None = None) -> Any:
        """The next value, computed now: there is nothing to wait for."""
        del timeout
        if self._cancelled:
            raise errors.CancelledError(f"the stream of task {self.name!r} was cancelled")
        return next(self._generator)

    async def __anext__(self) -> Any:
        try:
            return self.next()
        except StopIteration:
            raise StopAsyncIteration from None

    def map(  # type: ignore[override]
        self, task: Task[Any], /, *args: Any, ordered: bool = True, **kwargs: Any
    ) -> InlineResults:
        """The results, each computed as it is asked for, so always in order."""
        del ordered
        return InlineResults(self, lambda value: task(value, *args, **kwargs))

    def cancel(self) -> None:
        """Want no more: the generator is closed."""
        self._cancelled = True
        self._generator.close()

    def __repr__(self) -> str:
        return f"<Stream {self.name} of the sequential program>"


class InlineResults:
    """What `Stream.map` gives in the sequential program."""

    def __init__(self, source: InlineStream[Any], call: Callable[[Any], Any]) -> None:
        self._source = source
        self._call = call

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._call(self._source.next())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    def cancel(self) -> None:
        """Cancel the stream."""
        self._source.cancel()


class NoRelease:
    """A stream's body, as `release` sees it."""

    returns = 1

    def __init__(self, name: str) -> None:
        self.name = name

    def give(self, index: int, value: Any) -> NoReturn:
        """Refuses."""
        del index, value
        refuse_release(self.name)

    def close(self, path: str) -> NoReturn:
        """Refuses."""
        del path
        refuse_release(self.name)


def refuse_release(name: str) -> NoReturn:
    """A stream has no output with a number."""
    raise errors.ReleaseError(
        f"{name}() is a stream, which hands over what it yields; release() is for returns=N"
    )
