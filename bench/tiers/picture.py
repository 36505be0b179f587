"""Total time and I/O time of every way, a column an application."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.common import style
from bench.common.style import Axes

if TYPE_CHECKING:
    from .__main__ import Case
    from .cases import Way
    from .measure import Results

CHARS_AN_INCH = 18
HOME_COLOUR = "#e3e3e3"
LAYER_COLOURS = {"memory": "#edae49", "disk": "#66a182", "slow": "#7d9bb5"}


def draw(cases: Sequence[Case], path: Path, note: str) -> None:
    """A column an application: total time, I/O time, where the files were at the end."""
    width = 5.2 * len(cases)
    made, panels = style.figure(3, len(cases), width=width, height=8.4)
    for column, case in enumerate(cases):
        listed = [one for one in case.results if one.runs]
        labels = [_label(one.way) for one in listed]
        _bars(panels[0][column], listed, "total_s", "home_s")
        panels[0][column].set_title(
            f"{case.name}: total, s (grey: until all files are home)", loc="left"
        )
        _bars(panels[1][column], listed, "io_s", None)
        panels[1][column].set_title("time in I/O tasks, s (added up)", loc="left")
        _placed(panels[2][column], listed)
        panels[2][column].set_title("files in the end", loc="left")
        for line in panels:
            line[column].set_yticks(range(len(labels)), labels)
            line[column].invert_yaxis()
    panels[2][0].legend(fontsize=7.5, loc="lower right", bbox_to_anchor=(1, 0.97), ncols=3)
    wrapped = textwrap.fill(note, round(width * CHARS_AN_INCH))
    style.finish(made, path, "Files on storage layers", wrapped)


def _label(way: Way) -> str:
    return f"{way.policy}, {way.name}" if way.flush or way.prefetch else way.name


def _bars(panel: Axes, listed: Sequence[Results], figure: str, beyond: str | None) -> None:
    base = listed[0].sample(figure).median or 1.0
    for at, one in enumerate(listed):
        value = one.sample(figure).median or 0.0
        if beyond:
            panel.barh(at, one.sample(beyond).median or 0.0, color=HOME_COLOUR)
        colour = style.PEER_COLOUR if at == 0 else style.OURS_COLOUR
        panel.barh(at, value, color=colour)
        panel.text(value, at, f" {value:.1f} s, x {value / base:.2f}", va="center", fontsize=7.5)
    panel.set_xlim(right=panel.get_xlim()[1] * 1.25)


def _placed(panel: Axes, listed: Sequence[Results]) -> None:
    for at, one in enumerate(listed):
        left = 0.0
        for layer, share in one.placed().items():
            label = layer if at == 0 else None
            panel.barh(at, share, left=left, color=LAYER_COLOURS[layer], label=label)
            left += share
    panel.set_xlim(0, 1)
    panel.set_xlabel("share of the bytes")
