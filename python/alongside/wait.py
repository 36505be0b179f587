"""`wait`, `wait_all`, `as_completed` and `put`: from futures to values."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, overload

from alongside import _context, errors, tracking
from alongside.future import Future

T = TypeVar("T")


@overload
def wait(value: Future[T], timeout: float | None = None) -> T: ...
@overload
def wait(value: T, timeout: float | None = None) -> T: ...
def wait(value: Any, timeout: float | None = None) -> Any:
    """The value behind `value`, once it is there.

    A future gives its result; an object that tasks changed (`InOut`, ...) gives its newest
    value; a list, tuple or dict with any of these gives a new one with their values; everything
    else, and everything without a session, is given back as it is. `timeout` is in seconds, for
    all together.

    Raises what `Future.result` raises.
    """
    found: list[Future[Any]] = []
    latest = _latest(value, found, tracking.holders())
    if not found:
        return value
    _all(found, timeout)
    return _values(latest)


def wait_all(futures: Iterable[Any], timeout: float | None = None) -> list[Any]:
    """The values of many futures (or of what `wait` takes), in order, waiting once for all.

    Raises what `Future.result` raises, for the first of them that failed, and `TimeoutError`
    after `timeout` seconds.
    """
    many = list(futures)
    if not tracking.is_used() and all(map(_is_future, many)):
        _all(many, timeout)
        return [one.result() for one in many]
    found: list[Future[Any]] = []
    objects = tracking.holders()
    latest = [_latest(one, found, objects) for one in many]
    if found:
        _all(found, timeout)
    return [_values(one) for one in latest]


def as_completed(futures: Iterable[Any], timeout: float | None = None) -> Iterator[Any]:
    """The futures in the order in which they are done. `timeout` in seconds, for all together.

    Raises `TimeoutError` when the time is over. What is not a future comes first.
    """
    end = None if timeout is None else time.monotonic() + timeout
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    waiting = 0
    for future in futures:
        if isinstance(future, Future) and not future.done():
            waiting += 1
            future.add_done_callback(done.put)
        else:
            yield future
    while waiting:
        left = None if end is None else max(0.0, end - time.monotonic())
        try:
            future = done.get(timeout=left)
        except queue.Empty:
            text = f"{waiting} futures are not done after {timeout:g} s"
            raise errors.TimeoutError(text) from None
        waiting -= 1
        yield future


def put(value: T) -> Future[T] | T:
    """Store a value once, to pass it to many tasks. Without a session, the value itself."""
    session = _context.session()
    return value if session is None else session.put(value)


def _is_future(value: Any) -> bool:
    return type(value) is Future


def _all(futures: list[Future[Any]], timeout: float | None) -> None:
    """Waits for all, with one wait a session."""
    end = None if timeout is None else time.monotonic() + timeout
    by_session: dict[int, list[Future[Any]]] = {}
    for future in futures:
        if not future.done():
            by_session.setdefault(future.session, []).append(future)
    for number, group in by_session.items():
        session = _context.live.get(number)
        left = None if end is None else max(0.0, end - time.monotonic())
        if session is not None and not session.native.wait(group, left):
            if timeout is None:
                raise group[0].late(None)
            late = sum(not future.done() for future in group)
            raise errors.TimeoutError(f"{late} of {len(futures)} are not done after {timeout:g} s")


def _latest(value: Any, found: list[Future[Any]], objects: list[tracking.Objects]) -> Any:
    """The value with the newest future for each object that has one; notes them in `found`."""
    future = tracking.newest(value, objects)
    if future is not None:
        found.append(future)
        return future
    if isinstance(value, Future):
        found.append(value)
        return value
    kind = type(value)
    if kind is list or kind is tuple:
        return kind(_latest(one, found, objects) for one in value)
    if kind is dict:
        return {key: _latest(one, found, objects) for key, one in value.items()}
    return value


def _values(value: Any) -> Any:
    if isinstance(value, Future):
        return value.result()
    kind = type(value)
    if kind is list or kind is tuple:
        return kind(_values(one) for one in value)
    if kind is dict:
        return {key: _values(one) for key, one in value.items()}
    return value
