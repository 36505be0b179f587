"""Checkpoints that are arrays, one after the other in a file, as `numpy.save` writes one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from . import files
from .spans import Span


def write(path: str, arrays: Iterable[Any]) -> Span:
    """Write a checkpoint of these arrays; it is durable when this returns."""

    def fill(file: IO[bytes]) -> None:
        for array in arrays:
            np.lib.format.write_array(file, array, allow_pickle=False)

    return files.write(path, fill)


def difference(path: Path, expected: Iterable[tuple[str, Any]]) -> str:
    """Compare a checkpoint with arrays and their names (may be empty); empty: all equal."""
    with path.open("rb") as file:
        for name, array in expected:
            if not np.array_equal(np.lib.format.read_array(file), array):
                return f"{name} in {path.name}" if name else path.name
        if file.read(1):
            return f"bytes after the end of {path.name}"
    return ""
