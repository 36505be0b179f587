"""Checkpoints that are files of bytes, durable when they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO

import alongside as al

from .spans import Span, now_ns


def write(path: str, fill: Callable[[IO[bytes]], object]) -> Span:
    """Have `fill` write a checkpoint; it is durable when this returns."""
    start_ns = now_ns()
    with al.open(path, "wb") as file:
        fill(file)
        written = file.tell()
        al.fsync(file)
    return Span("checkpoint", start_ns, now_ns(), bytes=written)


def difference(path: Path, expected: bytes) -> str:
    """Compare a checkpoint with what it has to hold; empty: every byte is equal."""
    content = path.read_bytes()
    if content == expected:
        return ""
    lines = zip(content.splitlines(), expected.splitlines(), strict=False)
    differing = (number for number, (ours, theirs) in enumerate(lines, 1) if ours != theirs)
    if number := next(differing, 0):
        return f"line {number} of {path.name}"
    return f"{path.name}: {len(content)} bytes, not {len(expected)}"
