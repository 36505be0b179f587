"""What a task gives that is called for each value of a stream (`Stream.map`)."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from alongside import _native, calls

if TYPE_CHECKING:
    from alongside.future import Future
    from alongside.stream import Stream
    from alongside.task import Task

AHEAD = 16
"""By so many calls the program is ahead where `buffer=` is not given."""
TELL_AFTER = 8
"""The scheduler is told of so many results that were given back, if the program does not wait."""


class Caller(ABC):
    """Who calls the task."""

    alone = False
    """Whether it calls without the program."""
    end: Exception | None = None
    """Why there are no further calls; raised after the results that are under way."""

    @abstractmethod
    def is_due(self, given_back: int) -> bool:
        """Whether to look for further calls though the program has something to do.

        So many results were given back since the last look.
        """

    @abstractmethod
    def more(self, pending: int, given_back: int) -> list[Future[Any]]:
        """The futures of further calls, in the order of the values.

        So many results are pending, and so many were given back since the last look.
        """

    @abstractmethod
    def awaited(self) -> Future[Any]:
        """When this is done there may be more."""


class Program(Caller):
    """The thread that iterates over the results calls the task, as values come."""

    def __init__(self, stream: Stream[Any], call: Callable[[Any], Any]) -> None:
        self._stream = stream
        self._call = call
        self._ahead = stream.buffer or AHEAD

    def is_due(self, given_back: int) -> bool:  # noqa: D102, as in Caller
        del given_back
        return True

    def more(self, pending: int, given_back: int) -> list[Future[Any]]:  # noqa: D102
        del given_back
        made: list[Future[Any]] = []
        try:
            while pending + len(made) < self._ahead and self._stream.awaited().done():
                made.append(self._call(self._stream.next()))
        except Exception as error:
            self.end = error
        return made

    def awaited(self) -> Future[Any]:  # noqa: D102
        return self._stream.awaited()


class Scheduler(Caller):
    """The scheduler calls the task, as soon as a value is there. It counts for itself."""

    alone = True

    def __init__(
        self,
        stream: Stream[Any],
        native: _native.Stream,
        following: Future[Any],
        call: tuple[Task[Any], tuple[Any, ...], dict[str, Any]],
    ) -> None:
        self._stream = stream
        self._native = native
        self._following = following
        self._call = call  # the session forgets a function whose task is gone
        self._enough = min(stream.buffer // 2, TELL_AFTER) if stream.buffer else TELL_AFTER

    def is_due(self, given_back: int) -> bool:  # noqa: D102
        return given_back >= self._enough

    def more(self, pending: int, given_back: int) -> list[Future[Any]]:  # noqa: D102
        del pending
        try:
            results, self._following, is_over = self._native.mapped(given_back)
            if is_over:
                self._stream.ends(self._following)
        except _native.Refused as error:
            self.end = calls.refusal(error, *self._call)
            return []
        except Exception as error:
            self.end = error
            return []
        return results

    def awaited(self) -> Future[Any]:  # noqa: D102
        return self._following


class Results(ABC):
    """The futures of the results, which are done, with `for` or `async for`; see `Stream.map`."""

    def __init__(self, stream: Stream[Any], caller: Caller) -> None:
        self._stream = stream
        self._caller = caller
        self._given_back = 0

    def __iter__(self) -> Self:
        return self

    @abstractmethod
    def __next__(self) -> Future[Any]: ...

    def __aiter__(self) -> Self:
        return self

    @abstractmethod
    async def __anext__(self) -> Future[Any]: ...

    def cancel(self) -> None:
        """Cancel the stream, and the calls whose bodies have not begun."""
        if self._caller.alone:
            self._look()  # who was called without us
        self._stream.cancel()
        for future in self._open():
            future.cancel()

    @abstractmethod
    def _look(self) -> None:
        """Sees to further calls."""

    @abstractmethod
    def _open(self) -> list[Future[Any]]:
        """Those that were not given back."""

    def _more(self, pending: int) -> list[Future[Any]]:
        if self._caller.end is not None:
            return []
        results = self._caller.more(pending, self._given_back)
        self._given_back = 0
        return results


class InOrder(Results):
    """In the order of the values, while the scheduler calls: there is one thing to wait for."""

    def __init__(self, stream: Stream[Any], caller: Caller) -> None:
        super().__init__(stream, caller)
        self._pending: deque[Future[Any]] = deque()

    def __next__(self) -> Future[Any]:
        future = self._step()
        while future is None:
            awaited = self._awaited()
            if not awaited.wait():
                raise awaited.late(None)
            future = self._step()
        return future

    async def __anext__(self) -> Future[Any]:
        try:
            future = self._step()
            while future is None:
                await self._awaited().settled()
                future = self._step()
            return future
        except StopIteration:
            raise StopAsyncIteration from None

    def _step(self) -> Future[Any] | None:
        """The next result, or None: it is not there yet."""
        pending = self._pending
        if not pending or not pending[0].done() or self._caller.is_due(self._given_back):
            self._look()
            if not pending and self._caller.end is not None:
                raise self._caller.end
            if not pending or not pending[0].done():
                return None
        self._given_back += 1
        return pending.popleft()

    def _awaited(self) -> Future[Any]:
        return self._pending[0] if self._pending else self._caller.awaited()

    def _look(self) -> None:
        self._pending.extend(self._more(len(self._pending)))

    def _open(self) -> list[Future[Any]]:
        return list(self._pending)


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


class ByEvents(Results):
    """In any order, or while the program calls, too: whatever happens first is heard of."""

    def __init__(self, stream: Stream[Any], caller: Caller, ordered: bool) -> None:
        super().__init__(stream, caller)
        self._ordered = ordered
        self._events = Events()
        self._pending: dict[int, Future[Any]] = {}
        self._announced: int | None = None

    def __next__(self) -> Future[Any]:
        while True:
            self._events.happened.clear()
            future = self._step()
            if future is not None:
                return future
            self._events.happened.wait()

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

    def _step(self) -> Future[Any] | None:
        """The next result, or None: nothing is there yet."""
        future = self._done()
        if future is None or self._caller.is_due(self._given_back):
            self._look()
            future = future or self._done()
        if future is not None:
            if not self._ordered:
                self._events.done.popleft()
            self._given_back += 1
            return self._pending.pop(future.key)
        if self._caller.end is not None and not self._pending:
            raise self._caller.end
        self._announce()
        return None

    def _done(self) -> Future[Any] | None:
        """The result that is to be given next, if it is there."""
        if not self._ordered:
            return self._events.done[0] if self._events.done else None
        first = next(iter(self._pending.values()), None)
        return first if first is not None and first.done() else None

    def _look(self) -> None:
        for result in self._more(len(self._pending)):
            self._pending[result.key] = result
            result.add_done_callback(self._events.tell if self._ordered else self._events.add)

    def _announce(self) -> None:
        """Is told when there may be further calls, once for each thing that this waits for."""
        awaited = None if self._caller.end is not None else self._caller.awaited()
        if awaited is not None and awaited.key != self._announced:
            self._announced = awaited.key
            awaited.add_done_callback(self._events.tell)

    def _open(self) -> list[Future[Any]]:
        return list(self._pending.values())
