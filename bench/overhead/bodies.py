"""The task bodies that every contender runs, importable by its workers; NumPy only when needed."""

from __future__ import annotations

from typing import Any

from bench.common.optional import load

ARRAY_BYTES = 100_000_000
_kept: list[Any] = []


def noop() -> None:
    """Do nothing."""


def noop_of(_: object) -> None:
    """Do nothing with an argument, for contenders whose best form is a map."""


def increment(value: int) -> int:
    """One hop of a chain."""
    return value + 1


def total(values: list[int]) -> int:
    """The fan-in: one task that takes all results of the fan-out."""
    return sum(values)


def total_of(*values: int) -> int:
    """The fan-in, for contenders that resolve only arguments at the top level."""
    return sum(values)


def ends(array: Any) -> float:
    """Look at both ends of a large argument, so that it has to be there."""
    return float(array[0]) + float(array[-1])


def produce(mark: float) -> Any:
    """A large result: 100 MB kept by the worker (touched once), with a new mark in it."""
    if not _kept:
        _kept.append(load("numpy").ones(ARRAY_BYTES // 8))
    _kept[0][0] = mark
    return _kept[0]


def double(array: Any) -> Any:
    """A new array of the same size, for the job whose memory is measured."""
    return array * 2.0
