"""`Stream`: the values of a task that come one by one, in a number that nobody knew."""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

from alongside import _native, errors, releasing
from alongside.future import DONE, Future

if TYPE_CHECKING:
    from alongside.task import Task

T = TypeVar("T")
MAP_AHEAD = 16
"""Calls by which `map` is ahead where `buffer=` is not given."""


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
        self._lock = threading.Lock()
        self.buffer = buffer or MAP_AHEAD

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
        """Call `task(value, *args, **kwargs)` for each value, while the results are iterated over.

        Gives an iterator (also for `async for`) over the futures of the results, which are done:
        in the order of the values, or with `ordered=False` in the order in which they are done.
        While it waits it calls the task for further values, for at most `buffer=` of them (16 by
        default) that it has not given back. Use a stream by `map` or by itself, not both.
        """
        return Results(self, lambda value: task(value, *args, **kwargs), ordered)

    def cancel(self) -> None:
        """Want no more: the producer ends at its next `yield`, or does not begin."""
        self._cancelled = True
        self._native.close()

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._cancelled

    def awaited(self) -> Future[T]:
        """The future of the next value. The program is done with the last one."""
        if self._next is None:
            self._over()
        if not self._next.done():
            self._native.come()
        return self._next

    def _take(self, future: Future[T]) -> Future[T]:
        """The value of this future, which is done, or the end."""
        if self._cancelled:
            self._over()
        self._next = self._native.take(future)
        if self._next is None:
            if future.state() != DONE:
                future.result()
            self._cut = self._native.closed()
            self._over()
        return future

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


class Events:
    """What happened since the last look, and somebody to wake. Knows nobody who looks."""

    def __init__(self) -> None:
        self.done: deque[Future[Any]] = deque()
        self.happened = threading.Event()
        self.wake: Callable[[], object] | None = None

    def add(self, future: Future[Any]) -> None:
        """A future is done."""
        self.done.append(future)
        self.tell(future)

    def tell(self, _: object) -> None:
        """Something happened."""
        self.happened.set()
        wake = self.wake
        if wake is not None:
            wake()


class Results:
    """The results of a task that is called for each value of a stream; see `Stream.map`."""

    def __init__(self, source: Stream[Any], call: Callable[[Any], Any], ordered: bool) -> None:
        self._source = source
        self._call = call
        self._ordered = ordered
        self._events = Events()
        self._pending: dict[int, Future[Any]] = {}
        self._announced: Future[Any] | None = None
        self._end: Exception | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Future[Any]:
        while True:
            self._events.happened.clear()
            future = self._step()
            if future is not None:
                return future
            self._events.happened.wait()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Future[Any]:
        import asyncio

        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        self._events.wake = lambda: loop.call_soon_threadsafe(woken.set)
        try:
            while True:
                woken.clear()
                try:
                    future = self._step()
                except StopIteration:
                    raise StopAsyncIteration from None
                if future is not None:
                    return future
                await woken.wait()
        finally:
            self._events.wake = None

    def cancel(self) -> None:
        """Cancel the stream, and the calls whose bodies have not begun."""
        self._source.cancel()
        for future in self._pending.values():
            future.cancel()

    def _step(self) -> Future[Any] | None:
        """Calls the task for what has come. The next result, or None: nothing is there yet."""
        while self._end is None and len(self._pending) < self._source.buffer:
            try:
                if not self._has_come():
                    break
                result = self._call(self._source.next())
            except Exception as error:  # raised after the results that are under way
                self._end = error
                break
            self._pending[result.key] = result
            result.add_done_callback(self._events.tell if self._ordered else self._events.add)
        future = next(iter(self._pending.values()), None)
        if not self._ordered:
            future = self._events.done.popleft() if self._events.done else None
        if future is not None and future.done():
            return self._pending.pop(future.key)
        if self._end is not None and not self._pending:
            raise self._end
        return None

    def _has_come(self) -> bool:
        """Whether the stream has a value, or is over; else it is told when it has."""
        awaited = self._source.awaited()
        if not awaited.done() and awaited is not self._announced:
            self._announced = awaited
            awaited.add_done_callback(self._events.tell)
        return awaited.done()


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
