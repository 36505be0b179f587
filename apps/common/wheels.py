"""Finds input data in installed wheels, through their metadata.

A wheel is never imported (its own dependencies need not be there), and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path


class DataMissingError(Exception):
    """The input is not installed; the text says what to do."""


def files_of(wheel: str, matches: Callable[[str], bool], what: str, remedy: str) -> list[Path]:
    """Return the files of an installed wheel whose path below the package `matches`, sorted.

    Raises DataMissingError, which names `what` and the command `remedy`, if there are none.
    """
    try:
        listed = metadata.distribution(wheel).files or []
    except metadata.PackageNotFoundError:
        listed = []
    prefix = f"{wheel}/"
    names = (f for f in listed if str(f).startswith(prefix) and matches(str(f)[len(prefix) :]))
    found = sorted(path for path in (Path(str(f.locate())) for f in names) if path.is_file())
    if not found:
        raise DataMissingError(
            f"{what} not found: they come with the wheel {wheel!r}, which is not installed "
            f"in this Python. Install it with\n    {remedy}"
        )
    return found
