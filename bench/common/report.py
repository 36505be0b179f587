"""What a benchmark leaves behind: JSON rows in one fixed format, and a table for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.common.sample import Sample, significant

PIPE_COLUMNS = 180

Value = float | str | None


@dataclass(frozen=True)
class Row:
    """One row of a benchmark's JSON file; the fields and their order are the format.

    `ours` and the values of `against` are numbers in `unit`, or a text that says why there is none.
    """

    row: str
    unit: str
    ours: Value
    against: dict[str, Value]
    ratio: float | None
    target: float | None


@dataclass(frozen=True)
class Goal:
    """How a row is judged: ours over which peer, and the bound of that ratio.

    With several peers the best of those that have a figure counts. `higher` says whether a larger
    value is better, of the row and so of the ratio.
    """

    peers: tuple[str, ...]
    target: float | None
    higher: bool = False

    def ratio(self, ours: Sample, peers: dict[str, Sample]) -> float | None:
        """Ours over the best of the named peers; None when either has no figure."""
        figures = [
            middle
            for name in self.peers
            if name in peers and (middle := peers[name].median) is not None
        ]
        mine = ours.median
        if mine is None or not figures:
            return None
        return mine / (max(figures) if self.higher else min(figures))

    def verdict(self, ratio: float | None) -> str:
        """Whether the ratio reaches the target, in a word."""
        if ratio is None or self.target is None:
            return ""
        reached = ratio >= self.target if self.higher else ratio <= self.target
        return "yes" if reached else "NO"

    def text(self) -> str:
        """The target as a reader writes it: `>= 4`."""
        if self.target is None:
            return ""
        return f"{'>=' if self.higher else '<='} {self.target:g}"


def make_row(name: str, unit: str, ours: Sample, peers: dict[str, Sample], goal: Goal) -> Row:
    """The JSON row of these samples."""
    ratio = goal.ratio(ours, peers)
    return Row(
        row=name,
        unit=unit,
        ours=ours.shown(),
        against={peer: sample.shown() for peer, sample in peers.items()},
        ratio=None if ratio is None else significant(ratio),
        target=goal.target,
    )


def write_json(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows as an array, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    temporary.replace(path)


def console() -> Console:
    """Where people read: the terminal's width there, a fixed width in a pipe."""
    if sys.stdout.isatty():
        return Console()
    return Console(width=PIPE_COLUMNS)


def number(value: float) -> str:
    """A figure with three significant digits, as a person writes it."""
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    if value >= 1:
        return f"{value:.2f}"
    return f"{value:.3g}"


def cell(sample: Sample) -> Text:
    """A table cell: the median, and below it the lowest and the highest value."""
    middle = sample.median
    if middle is None:
        return Text(sample.note, style="dim")
    text = Text(number(middle))
    if len(sample.values) > 1:
        text.append(f"\n{number(min(sample.values))}..{number(max(sample.values))}", style="dim")
    return text


def new_table(title: str, columns: Sequence[str]) -> Table:
    """A table whose first column is text and whose others are figures."""
    table = Table(title=title, title_justify="left", show_lines=False, pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right")
    return table
