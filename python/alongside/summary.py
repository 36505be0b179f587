"""What a session did, as a few lines of text."""

from __future__ import annotations

from typing import TextIO

from alongside import units
from alongside._native import Tuned
from alongside.session import Statistics

COLUMNS = ("function", "kind", "tasks", "failed", "mean", "total", "read", "written")


def write(statistics: Statistics, out: TextIO) -> None:
    """Writes the summary; nothing for a session without tasks."""
    if statistics.submitted:
        print("\n".join(lines(statistics)), file=out)


def lines(statistics: Statistics) -> list[str]:
    """The lines of the summary."""
    head = f"alongside: {_count(statistics.submitted, 'task')} in "
    head += units.seconds(statistics.elapsed_ns)
    bad = [f"{statistics.failed} failed"] if statistics.failed else []
    bad += [f"{statistics.cancelled} cancelled"] if statistics.cancelled else []
    bad += [f"{_count(statistics.workers_lost, 'worker')} lost"] if statistics.workers_lost else []
    text = [head + (f" ({', '.join(bad)})" if bad else "")]
    compute = f"  compute {units.seconds(statistics.compute_ns)}"
    if statistics.io_ns:
        compute += f", I/O {units.seconds(statistics.io_ns)}"
        if statistics.hidden_share is not None:
            compute += f" ({statistics.hidden_share:.0%} of the I/O time hidden behind compute)"
    text.append(compute)
    moved = f"  read {units.size(statistics.bytes_read)}"
    moved += f", written {units.size(statistics.bytes_written)}"
    text.append(moved + f", values at most {units.size(statistics.store_bytes_peak)}")
    text += _layers(statistics)
    known = {f.name for f in statistics.functions if f.bytes_read + f.bytes_written}
    return text + _table(statistics) + [f"  {_tuned(one, known)}" for one in statistics.tuned]


def _layers(statistics: Statistics) -> list[str]:
    """What the runtime did between layers, if anything."""
    words = []
    if statistics.files_moved:
        count, size = _count(statistics.files_moved, "file"), units.size(statistics.bytes_moved)
        words.append(f"{count} ({size}) moved between layers")
    if statistics.moves_failed:
        words.append(f"{_count(statistics.moves_failed, 'move')} failed")
    if statistics.displaced:
        words.append(f"{_count(statistics.displaced, 'run')} sent on by layers that failed")
    return [f"  {', '.join(words)}"] if words else []


def _table(statistics: Statistics) -> list[str]:
    rows = [COLUMNS]
    for one in sorted(statistics.functions, key=lambda function: -function.run_ns):
        if not one.submitted:
            continue
        rows.append(
            (
                one.name,
                "I/O" if one.io else "compute",
                f"{one.submitted:,}",
                f"{one.failed:,}",
                "-" if one.mean_ns is None else units.seconds(one.mean_ns),
                units.seconds(one.run_ns),
                units.size(one.bytes_read),
                units.size(one.bytes_written),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return ["  " + _row(row, widths) for row in rows]


def _tuned(one: Tuned, moved: set[str]) -> str:
    """What tuning came to for a function on a layer; `moved`: functions whose bytes are known."""
    text = f"{one.function} on {one.layer}: {one.mode}, "
    if one.state == "window":
        text += f"{one.tasks} at once"
        if one.rate and one.function in moved:
            text += f", {units.rate(one.rate)} achieved"
    else:
        chosen = units.rate(one.constraint or 0)
        text += "still learning" if one.state == "learning" else chosen
        text += f" after {_count(len(one.epochs), 'epoch')}"
        text += f", {one.abandoned} given up" if one.abandoned else ""
    if one.varies:
        text += ' (its tasks move very different amounts: bandwidth="adaptive" fits them better)'
    return text


def _row(row: tuple[str, ...], widths: list[int]) -> str:
    left = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
    right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
    return "  ".join(left + right).rstrip()


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
