"""The options of the decorators, read and checked where they are written."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from alongside import _native
from alongside.errors import ConstraintError

ON_FAILURE = ("fail", "ignore", "cancel_dependents")
PRIORITY_MAX = 2**31 - 1
RETRIES_MAX = 1_000_000
RETURNS_MAX = 100_000
BUFFER_MAX = 1_000
TIMEOUT_S_MAX = 1e9


class Options(NamedTuple):
    """What all calls of a function have in common. Times in seconds, sizes in bytes."""

    kind: str
    cpus: int = 1
    returns: int = 1
    priority: int = 0
    retries: int = 0
    timeout: float | None = None
    on_failure: str = "fail"
    name: str | None = None
    bandwidth: int = 0
    tuning: str | None = None
    size: int = 0
    durable: bool = False
    buffer: int | None = None
    """Of a stream (`returns=Stream`): by how many values its producer may be ahead; 0: some."""


def checked(kind: str, function: Any, given: dict[str, Any]) -> Options:
    """The options as given to a decorator, or a `ConstraintError` that names the function."""
    name = getattr(function, "__qualname__", None) or repr(function)
    allowed = _IO if kind == "io" else _COMPUTE
    values: dict[str, Any] = {}
    for option, value in given.items():
        if option not in allowed:
            decorator = "io" if kind == "io" else "task"
            hint = "; it is an option of @alongside.io" if option in _IO else ""
            hint = "; an I/O task takes no processor" if option == "cpus" else hint
            raise ConstraintError(
                f"{name}: @alongside.{decorator} has no option {option!r}{hint} "
                f"(options: {', '.join(allowed)})"
            )
        try:
            values[option] = allowed[option](value)
        except (ValueError, TypeError) as error:
            raise ConstraintError(f"{name}: {option}={value!r} {error}") from None
    if values.get("returns", 1) is None:
        values.update(returns=1, buffer=values.get("buffer", 0))
    elif "buffer" in values:
        raise ConstraintError(
            f"{name}: buffer={values['buffer']} is for streams: add returns=alongside.Stream"
        )
    if isinstance(values.get("bandwidth"), str):
        values["tuning"] = values.pop("bandwidth")
    return Options(kind, **({"cpus": 0} | values if kind == "io" else values))


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError("has to be a whole number")
        if not least <= value <= most:
            raise ValueError(f"has to be from {least} to {most}")
        return value

    return check


def _returns(value: Any) -> int | None:
    """How many values; None: a stream of them."""
    from alongside.stream import Stream

    return None if value is Stream else _whole(1, RETURNS_MAX)(value)


def _timeout(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError("has to be a number of seconds, or None")
    if not 0 < value <= TIMEOUT_S_MAX or math.isnan(value):
        raise ValueError("has to be more than 0 seconds")
    return float(value)


def _on_failure(value: Any) -> str:
    if value not in ON_FAILURE:
        raise ValueError(f"has to be one of {', '.join(map(repr, ON_FAILURE))}")
    return str(value)


def _name(value: Any) -> str | None:
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise TypeError("has to be a text that is not empty")
    return value


def _amount(read: Callable[[str], int], example: str) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if value is None:
            return 0
        if isinstance(value, str):
            return read(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"has to be a number, or a text such as {example!r}")
        if not 0 <= value < 2**63:
            raise ValueError("cannot be negative" if value < 0 else "is too large")
        return int(value)

    return check


def _bandwidth(value: Any) -> int | str:
    """A number of bytes a second, or the text that says how it is to be found."""
    if not isinstance(value, str):
        return _amount(_native.parse_bytes, "20MB/s")(value)
    asked = _native.parse_ask(value)
    return value.strip() if asked is None else asked


def _buffer(value: Any) -> int:
    return 0 if value is None else _whole(1, BUFFER_MAX)(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("has to be True or False")
    return value


_SHARED: dict[str, Callable[[Any], Any]] = {
    "returns": _returns,
    "buffer": _buffer,
    "priority": _whole(-PRIORITY_MAX, PRIORITY_MAX),
    "retries": _whole(0, RETRIES_MAX),
    "timeout": _timeout,
    "on_failure": _on_failure,
    "name": _name,
}
_COMPUTE = {"cpus": _whole(1, 65_536), **_SHARED}
_IO = {
    **_SHARED,
    "bandwidth": _bandwidth,
    "size": _amount(_native.parse_bytes, "200MB"),
    "durable": _flag,
}
