"""The U-shaped curve: total time over how many writers a static constraint lets run at once."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from bench.common import style

if TYPE_CHECKING:
    from .__main__ import Case

CHARS_AN_INCH = 18
COLUMNS_MAX = 3

LINES = {
    "baseline": ("#7d9bb5", "--", "checkpoints as compute tasks"),
    "unconstrained": ("#b9b9b9", "--", "no constraint"),
    "auto": ("#edae49", ":", "auto"),
    "bounded": ("#66a182", ":", "auto(min,max,delta)"),
    "adaptive": (style.OURS_COLOUR, "-", "adaptive"),
}


def draw(cases: list[Case], path: Path, note: str) -> None:
    """A panel a case: the sweep as points, the others as levels."""
    columns = min(len(cases), COLUMNS_MAX)
    rows = -(-len(cases) // columns)
    width = max(6.0, 4.4 * columns)
    made, panels = style.figure(rows, columns, width=width, height=0.4 + 3.4 * rows)
    places = [panel for row in panels for panel in row]
    for empty in places[len(cases) :]:
        empty.set_axis_off()
    for panel, case in zip(places, cases, strict=False):
        panel.grid(visible=True, axis="y")
        fixed = [(way.at_once or 0, way.sample.median or 0.0) for way in case.ways.values()]
        fixed = [point for point in fixed if point[0]]
        at_once, totals = [point[0] for point in fixed], [point[1] for point in fixed]
        panel.plot(at_once, totals, "o-", color="black", label="static constraints")
        for name, (colour, line, label) in LINES.items():
            if name not in case.ways:
                continue
            level = case.ways[name].sample.median or 0.0
            panel.axhline(level, color=colour, linestyle=line, linewidth=1.8, label=label)
        panel.set_xscale("log", base=2)
        panel.set_xticks(at_once, [str(count) for count in at_once])
        panel.set_ylim(bottom=0)
        panel.set_xlabel("writers at once that the constraint allows")
        panel.set_ylabel("total time, s (lower is better)")
        panel.set_title(f"{case.name}, {case.layer}", loc="left")
    panels[0][0].legend(fontsize=7.5, loc="lower right", framealpha=0.9)
    wrapped = textwrap.fill(note, round(width * CHARS_AN_INCH))
    style.finish(made, path, "How many checkpoints at once", wrapped)
