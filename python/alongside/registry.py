"""What `bandwidth="auto"` has learned, as a file: read by one session, written by another.

A JSON object: `{"format": 1, "learned": [{"function", "size_class", "layer", "registry"}]}`, each
registry a list of `{"constraint", "most", "tasks", "mean_ns", "bytes"}`: a constraint in bytes a
second, the most tasks that it let run at once, how many tasks the mean time is of, and the bytes
that they moved. `size_class` is the number of binary digits of the declared size.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from alongside import errors

FORMAT = 1
FIELDS = ("constraint", "most", "tasks", "mean_ns", "bytes")

Line = tuple[int, int, int, int, int]
Registry = tuple[str, int, str, list[Line]]


def read(path: str) -> list[Registry]:
    """The registries in a file; none where there is no file. StorageError if it makes no sense."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise errors.StorageError(f"{path}: cannot be read as what was learned: {error}") from error
    try:
        if content["format"] != FORMAT:
            raise ValueError(f"it has format {content['format']}; this version reads {FORMAT}")
        return [_registry(one) for one in content["learned"]]
    except (KeyError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        raise errors.StorageError(
            f"{path}: is not what a session learned ({why}); remove it to learn anew"
        ) from error


def _registry(one: dict[str, Any]) -> Registry:
    lines = [[line[field] for field in FIELDS] for line in one["registry"]]
    numbers = [one["size_class"], *(number for line in lines for number in line)]
    if any(isinstance(number, bool) or not isinstance(number, int) for number in numbers):
        raise ValueError("its numbers have to be whole")
    if any(not 0 <= number < 2**63 for number in numbers) or one["size_class"] > 64:
        raise ValueError("a number is out of range")
    if any(not line[0] or not line[1] or not line[2] or line[1] >= 2**32 for line in lines):
        raise ValueError("a constraint, or a number of tasks, makes no sense")
    of: list[Line] = [(line[0], line[1], line[2], line[3], line[4]) for line in lines]
    return str(one["function"]), one["size_class"], str(one["layer"]), of


def write(path: str, registries: list[Registry]) -> None:
    """Write a file, whole or not at all; what it had of other functions and layers stays."""
    kept = {registry[:3]: registry for registry in _kept(path)}
    kept |= {registry[:3]: registry for registry in registries}
    learned = [
        {
            "function": function,
            "size_class": size_class,
            "layer": layer,
            "registry": [dict(zip(FIELDS, line, strict=True)) for line in lines],
        }
        for function, size_class, layer, lines in kept.values()
    ]
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, "learned": learned}, file, indent=1)
            file.write("\n")
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):  # it may not be there; the first error counts
            os.unlink(temporary)
        raise errors.StorageError(f"{path}: what was learned cannot be written: {error}") from error


def _kept(path: str) -> list[Registry]:
    try:
        return read(path)
    except errors.StorageError:
        return []  # it was there and whole at the start, or the session would not have begun
