"""What the runs took, as one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .spans import Span

IO = frozenset({"checkpoint", "restore", "read"})
"""The kinds of spans that do I/O; all others compute."""

SHARE_MIN = 0.9


class Row(NamedTuple):
    """One run: seconds, and the hidden share, 0 to 1.

    `timed_s` is how long those computing bodies took that measured their processor time, `cpu_s`.
    """

    layer: str
    mode: str
    total_s: float
    compute_s: float
    io_s: float
    timed_s: float
    cpu_s: float
    hidden: float
    written: int
    checkpoints: int


LEGEND = """\
compute s, I/O s: time inside the task bodies, added up over all of them (checkpoints that
run side by side on one layer share its bandwidth, and each counts its own time).
hidden: how much of the machine was computing while I/O was going on: the processors busy with a
task, as a share of those the mode has, averaged over the time in which any checkpoint ran.
speed-up: over the sequential run on the same layer."""


def hidden_share(spans: Sequence[Span], processors: int) -> float:
    """Return the mean share of `processors` that computed while any I/O was going on."""
    steps: list[tuple[int, int, int]] = []
    for span in spans:
        compute = span.kind not in IO
        steps.append((span.start_ns, int(compute), int(not compute)))
        steps.append((span.end_ns, -int(compute), -int(not compute)))
    steps.sort()
    io_ns, busy_ns, computing, doing_io, before = 0, 0.0, 0, 0, 0
    for at, compute_step, io_step in steps:
        if doing_io:
            io_ns += at - before
            busy_ns += (at - before) * min(computing, processors) / processors
        computing, doing_io, before = computing + compute_step, doing_io + io_step, at
    return busy_ns / io_ns if io_ns else 0.0


def row(layer: str, mode: str, total_s: float, spans: Sequence[Span], processors: int) -> Row:
    """Sum up one run."""

    def seconds(spans: Iterable[Span]) -> float:
        return sum(s.end_ns - s.start_ns for s in spans) / 1e9

    written = [s.bytes for s in spans if s.kind == "checkpoint"]
    hidden = hidden_share(spans, processors)
    times = (
        seconds(s for s in spans if s.kind not in IO),
        seconds(s for s in spans if s.kind in IO),
        seconds(s for s in spans if s.cpu_ns),
    )
    cpu_s = sum(s.cpu_ns for s in spans) / 1e9
    return Row(layer, mode, total_s, *times, cpu_s, hidden, sum(written), len(written))


def table(rows: Sequence[Row]) -> str:
    """Return the table of all runs."""
    base = {r.layer: r.total_s for r in rows if r.mode == "sequential"}
    head = ("layer", "mode", "total s", "compute s", "I/O s", "hidden", "speed-up")
    lines: list[tuple[str, ...]] = [head]
    for r in rows:
        speed = f"{base[r.layer] / r.total_s:.2f} x" if r.layer in base else "-"
        times = (f"{value:.2f}" for value in (r.total_s, r.compute_s, r.io_s))
        lines.append((r.layer, r.mode, *times, f"{r.hidden:.0%}", speed))
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    texts = []
    for line in lines:
        left = (cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True))
        right = (cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True))
        texts.append("  ".join((*left, *right)))
    texts.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(texts)


def disturbed(rows: Sequence[Row]) -> list[str]:
    """Return a warning if computing tasks had to share their processors, else nothing."""
    least = min((r.cpu_s / r.timed_s for r in rows if r.timed_s), default=1.0)
    if least >= SHARE_MIN:
        return []
    return [
        f"NOTE: in one run computing tasks got only {least:.0%} of a processor: this machine is",
        "busy with other work, so the times above cannot be compared, and no gain is stated.",
    ]


def gains(rows: Sequence[Row]) -> list[str]:
    """Return a line a layer: what I/O tasks gain over checkpoints as compute tasks."""
    by = {(r.layer, r.mode): r.total_s for r in rows}
    lines = []
    for layer in dict.fromkeys(r.layer for r in rows):
        if (layer, "io") in by and (layer, "tasks") in by:
            gain = 1 - by[layer, "io"] / by[layer, "tasks"]
            lines.append(
                f"{layer}: checkpoints as I/O tasks take {abs(gain):.0%} "
                f"{'less' if gain >= 0 else 'more'} time than as compute tasks"
            )
    return lines
