"""`@io`: a function that does storage I/O. Its calls take no processor; they take bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

from alongside.options import checked
from alongside.task import Task

if TYPE_CHECKING:
    from alongside.future import Future
    from alongside.stream import Stream

R = TypeVar("R")


@overload
def io(function: Callable[..., Coroutine[Any, Any, R]], /) -> Task[Future[R]]: ...
@overload
def io(function: Callable[..., R], /) -> Task[Future[R]]: ...
@overload
def io(
    *,
    bandwidth: float | str | None = None,
    size: float | str | None = None,
    durable: bool = False,
    priority: int = 0,
    retries: int = 0,
    timeout: float | None = None,
    on_failure: str = "fail",
    name: str | None = None,
) -> Callable[[Callable[..., R]], Task[Future[R]]]: ...
@overload
def io(
    *,
    returns: type[Stream[Any]],
    buffer: int | None = None,
    bandwidth: float | str | None = None,
    size: float | str | None = None,
    durable: bool = False,
    priority: int = 0,
    retries: int = 0,
    timeout: float | None = None,
    on_failure: str = "fail",
    name: str | None = None,
) -> Callable[[Callable[..., Iterator[R]]], Task[Stream[R]]]: ...
@overload
def io(
    *,
    returns: int,
    bandwidth: float | str | None = None,
    size: float | str | None = None,
    durable: bool = False,
    priority: int = 0,
    retries: int = 0,
    timeout: float | None = None,
    on_failure: str = "fail",
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Task[Any]]: ...
def io(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function an I/O task; it may be `async def`. Used bare, or with options:

    `bandwidth`: bytes a second that it is granted on its layer while it runs, a number or a
    text such as `"20MB/s"`; None asks for nothing and is never held back. `"auto"` learns it in
    epochs, `"auto(min,max,delta)"` tries min, min*delta, ... up to max (Elshazly, thesis, section
    4.4); `"adaptive"` follows continuously what the layer serves best.
    `size`: bytes that it needs on the layer, a number or a text such as `"200MB"`.
    `durable`: its future is done only when the files that it wrote (`FileOut`, `FileInOut`) and
    their folders were flushed to the device.
    The others (`returns, buffer, priority, retries, timeout, on_failure, name`) are as for `task`.

    Raises `ConstraintError` for an option that makes no sense; the call raises it for a
    constraint that no layer can ever satisfy.
    """
    if function is None:
        return lambda function: Task(function, checked("io", function, options))
    return Task(function, checked("io", function, options))
