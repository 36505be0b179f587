"""Files that a command is going to write: refused before it begins its work."""

from __future__ import annotations

import os


def refusal(name: str) -> str | None:
    """Why a file cannot be written, or None."""
    folder = os.path.dirname(os.path.abspath(name))
    if os.path.isdir(name):
        return f"{name}: this is a folder; name a file"
    if not os.path.isdir(folder):
        return f"{name}: its folder does not exist"
    if not os.access(name if os.path.exists(name) else folder, os.W_OK):
        return f"{name}: cannot be written there: Permission denied"
    return None


def numbered(name: str, number: int) -> str:
    """The file of the first, second, ... of many: `t.json`, `t-2.json`."""
    stem, end = os.path.splitext(name)
    return name if number == 1 else f"{stem}-{number}{end}"
