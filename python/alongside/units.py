"""Sizes, rates and times as people read them."""

from __future__ import annotations

_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")


def size(count: float) -> str:
    """Bytes, three digits, in powers of ten: `290 MB`."""
    for unit in _SIZES:
        if abs(count) < 999.5 or unit == _SIZES[-1]:
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError("unreachable: the last unit takes all")


def rate(bandwidth: float) -> str:
    """Bytes a second: `9.4 MB/s`."""
    return size(bandwidth) + "/s"


def seconds(ns: float) -> str:
    """A duration given in nanoseconds: `24 s`, `3.1 ms`, `850 us`."""
    if ns >= 1e9:
        return f"{ns / 1e9:.3g} s" if ns < 1e12 else f"{ns / 1e9:.0f} s"
    return f"{ns / 1e6:.3g} ms" if ns >= 1e6 else f"{ns / 1e3:.3g} us"
