"""What a session did, as a few lines of text."""

from __future__ import annotations

from typing import TextIO

from alongside import units
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
    return text + _table(statistics)


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


def _row(row: tuple[str, ...], widths: list[int]) -> str:
    left = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
    right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
    return "  ".join(left + right).rstrip()


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
