"""Checkpoints that are arrays, one after the other in a file, as `numpy.save` writes one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import alongside as al

from .spans import Span, now_ns


def write(path: str, arrays: Iterable[Any]) -> Span:
    """Write a checkpoint of these arrays; it is durable when this returns."""
    start_ns = now_ns()
    with al.open(path, "wb") as file:
        for array in arrays:
            np.lib.format.write_array(file, array, allow_pickle=False)
        written = file.tell()
        al.fsync(file)
    return Span("checkpoint", start_ns, now_ns(), bytes=written)


def difference(path: Path, expected: Iterable[tuple[str, Any]]) -> str:
    """Compare a checkpoint with arrays and their names (may be empty); empty: all equal."""
    with path.open("rb") as file:
        for name, array in expected:
            if not np.array_equal(np.lib.format.read_array(file), array):
                return f"{name} in {path.name}" if name else path.name
        if file.read(1):
            return f"bytes after the end of {path.name}"
    return ""
