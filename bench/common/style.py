"""How pictures look, and the few lines of matplotlib that every benchmark would repeat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter, FuncFormatter, NullFormatter

__all__ = ["Axes", "Figure", "colour", "figure", "finish", "no_numbers", "plain_numbers"]

OURS_COLOUR = "#d1495b"
PEER_COLOUR = "#7d9bb5"
FLOOR_COLOUR = "#b9b9b9"
FLOORS = ("memcpy", "side_by_side")

LABEL_BOX = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}

SETTINGS: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "figure.dpi": 130,
}


def colour(name: str, ours: str) -> str:
    """Ours stands out; a floor that is no contender is grey."""
    if name == ours:
        return OURS_COLOUR
    return FLOOR_COLOUR if name in FLOORS else PEER_COLOUR


Panels = list[list[Axes]]


def figure(lines: int, columns: int, width: float, height: float) -> tuple[Figure, Panels]:
    """A figure (inches) of `lines` x `columns` panels, drawn without a display."""
    mpl.rcParams.update(SETTINGS)
    made = Figure(figsize=(width, height), layout="constrained")
    panels = made.subplots(lines, columns, squeeze=False)
    for panel in panels.flat:
        panel.grid(visible=True, axis="x")
        panel.grid(visible=False, axis="y")
    return made, [list(line) for line in panels]


def plain_numbers() -> Formatter:
    """Ticks as 0.01, 1, 1,000."""
    return FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")


def no_numbers() -> Formatter:
    """Ticks without a label."""
    return NullFormatter()


def finish(made: Figure, path: Path, title: str, note: str) -> None:
    """Title, a note in small print below, and the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    made.supxlabel(note, x=0.01, ha="left", fontsize=7.5, color="dimgray")
    made.savefig(path, dpi=130)
