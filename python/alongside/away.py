"""Files that a session keeps away from their own paths: how they come home when it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

PROGRESS_AFTER_S = 1.0
"""A session that needs longer to bring its files home says how far it is, on a terminal."""

SHOWN_MAX = 5
"""Files that a message names one by one."""


def progress() -> Callable[[int, int], None] | None:
    """What is told how many files are home, of how many; None where nobody looks."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    began = time.monotonic()

    def tell(done: int, wanted: int) -> None:
        if time.monotonic() - began > PROGRESS_AFTER_S:
            end = "\n" if done == wanted else ""
            text = f"\ralongside: {done} of {wanted} files are at their own paths{end}"
            print(text, end="", file=sys.stderr, flush=True)

    return tell


def message(left: list[tuple[str, str, str]]) -> str:
    """Why files are not at their own paths, and what to do: own path, where it is, why."""
    lines = [f"  {home} is still at {place}: {why}" for home, place, why in left[:SHOWN_MAX]]
    if len(left) > SHOWN_MAX:
        lines.append(f"  and {len(left) - SHOWN_MAX} more")
    return (
        f"{len(left)} files could not be brought to their own paths. Nothing of them is lost:\n"
        + "\n".join(lines)
        + "\nRemove the cause, then `alongside files` lists them and `alongside recover` with the "
        "folder that it names brings them home"
    )
