"""`Future`: the value that a task will return.

It is a `concurrent.futures.Future` (`wait`, `as_completed`, `asyncio.wrap_future` take it) and
awaitable. Only the runtime fills it.
"""

from __future__ import annotations

import concurrent.futures
import pickle
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from alongside import _context, _native, errors

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_loads = pickle.loads
_STATES = ("PENDING", "RUNNING", "FINISHED", "FINISHED", "CANCELLED_AND_NOTIFIED")
_PENDING, _SENT, DONE, _FAILED, _CANCELLED = range(5)


class Future(_native.Handle, concurrent.futures.Future[T]):
    """What a call of a task gives. Passing it to another task makes that one wait for it.

    Its value is read-only where it lies in shared memory (NumPy arrays): copy it to change it.
    """

    __init__ = object.__init__  # the native base does it all

    def result(self, timeout: float | None = None) -> T:
        """The value. Waits for it, at most `timeout` seconds.

        Raises what the task raised (as a `TaskError` that is also of the exception's own
        class), `WorkerLostError`, `TaskTimeoutError`, `CancelledError`, `SessionError`; and
        `TimeoutError` when the time is over.
        """
        known = self.__dict__
        if "_value" in known:
            return known["_value"]  # type: ignore[no-any-return]
        if not self.wait(timeout):
            raise self.late(timeout)
        self._load()
        if "_value" in known:
            return known["_value"]  # type: ignore[no-any-return]
        error = known["_error"]
        try:
            raise error
        finally:
            del self, error, known  # the traceback would keep them, and they keep it

    def exception(self, timeout: float | None = None) -> Exception | None:
        """What `result` would raise, or None. Waits, at most `timeout` seconds.

        Raises `TimeoutError` when the time is over, and `CancelledError` as `result` does.
        """
        if not self.wait(timeout):
            raise self.late(timeout)
        self._load()
        error = self.__dict__.get("_error")
        if isinstance(error, errors.CancelledError):
            raise error
        return error

    def late(self, timeout: float | None) -> Exception:
        """Why a wait ended before what it waited for."""
        if timeout is None:
            return errors.SessionError(
                f"{self._described()} cannot be waited for here: its session belongs to the "
                "process that this one was forked from, or no descriptor is left to wait with"
            )
        return errors.TimeoutError(f"{self._described()} is not done after {timeout:g} s")

    def cancel(self) -> bool:
        """Cancel the task if its body has not begun. Whether it will not run."""
        session = _context.live.get(self.session)
        if self.cancelled():
            return True
        return session is not None and session.native.cancel(self)

    def cancelled(self) -> bool:
        """Whether the task was cancelled, or one whose output it needs."""
        return self.state() == _CANCELLED

    def running(self) -> bool:
        """Whether it was handed to a worker and is not over."""
        return self.state() == _SENT

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        """Call `fn(self)` once it is done: here and now if it is, else in a thread of the session.

        An exception of `fn` is logged and goes no further.
        """
        session = None if self.done() else _context.live.get(self.session)
        if session is None:
            _call_back(fn, self)
        else:
            session.notify(self, lambda: _call_back(fn, self))

    def __await__(self) -> Generator[Any, None, T]:
        """Wait in an event loop, without holding it up."""
        yield from self.settled().__await__()
        return self.result()

    async def settled(self) -> None:
        """Wait in an event loop until it is done, whether well or not."""
        if not self.done():
            import asyncio

            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()

            def done(_: object) -> None:
                try:
                    loop.call_soon_threadsafe(_wake, waiter)
                except RuntimeError:  # the loop is closed: nobody waits any more
                    return

            self.add_done_callback(done)
            await waiter

    def _load(self) -> None:
        known = self.__dict__
        if "_value" in known or "_error" in known:
            return
        outcome = self.outcome()
        if isinstance(outcome, tuple):
            data, buffers = outcome
            known["_value"] = _loads(data, buffers=buffers) if buffers else _loads(data)
        elif outcome is not None:
            known["_error"] = errors.of(outcome)

    def _described(self) -> str:
        return f"the result of task {self.name!r}" if self.name else "the future"

    def __repr__(self) -> str:
        word = ("waiting", "sent", "done", "failed", "cancelled")[self.state()]
        return f"<Future {self.name or ''} {word}>"

    # What `concurrent.futures.wait` and `as_completed` look at; for type checkers, as they know it.
    if not TYPE_CHECKING:

        @property
        def _state(self) -> str:
            return _STATES[self.state()]

        @property
        def _condition(self) -> threading.Condition:
            with _making:
                condition: threading.Condition | None = self.__dict__.get("_lazy_condition")
                if condition is None:
                    condition = self.__dict__["_lazy_condition"] = threading.Condition()
            return condition

        @property
        def _waiters(self) -> list[Any]:
            waiters: list[Any] | None = self.__dict__.get("_lazy_waiters")
            if waiters is None:
                waiters = self.__dict__["_lazy_waiters"] = []
                session = _context.live.get(self.session)
                if session is not None:
                    session.notify(self, self._tell_waiters)
            return waiters

    def _tell_waiters(self) -> None:
        with self._condition:
            state = self.state()
            for waiter in self._waiters:
                if state == _CANCELLED:
                    waiter.add_cancelled(self)
                elif state == _FAILED:
                    waiter.add_exception(self)
                else:
                    waiter.add_result(self)

    def set_running_or_notify_cancel(self) -> bool:
        """Refused: only the runtime fills a future."""
        raise errors.SessionError("only the runtime fills a future of a task")

    def set_result(self, result: Any) -> None:
        """Refused: only the runtime fills a future."""
        raise errors.SessionError("only the runtime fills a future of a task")

    def set_exception(self, exception: BaseException | None) -> None:
        """Refused: only the runtime fills a future."""
        raise errors.SessionError("only the runtime fills a future of a task")


_making = threading.Lock()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _call_back(fn: Callable[[Any], object], future: Any) -> None:
    try:
        fn(future)
    except Exception:
        import logging

        logging.getLogger("alongside").exception("a callback of %r raised", future)
