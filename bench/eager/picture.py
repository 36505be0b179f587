"""Overheads over lazy, the applications' totals, and a timeline of either way."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path

from apps.common.release import PRODUCER
from bench.common import style
from bench.common.style import Axes
from bench.eager import rows
from bench.eager.cases import LAZY, OURS, RAY, STREAM, Overhead, Work

WIDTH, HEIGHT = 13.0, 11.0
CHARS_AN_INCH = 18
NEAR = 1.15
"""A bar whose label would lie under a line that is so many times as far."""
LAZY_COLOUR = "#7d9bb5"
RAY_COLOUR = "#edae49"
STREAM_COLOUR = "#66a182"
COLOURS = {OURS: style.OURS_COLOUR, STREAM: STREAM_COLOUR, RAY: RAY_COLOUR, LAZY: LAZY_COLOUR}
KIND_COLOURS = ("#66a182", "#edae49", "#7d9bb5", "#8d6a9f", "#b9b9b9")
PRODUCER_COLOUR = style.OURS_COLOUR
SERIES = ("returns", "integers", "producers")
TITLES = {
    "returns": "values of one producer",
    "integers": "200 lists of so many integers",
    "producers": "producers at once, 100 integers each",
}

Bar = tuple[str, float, float]
"""A body: its kind, when it began, when it ended, seconds."""


def draw(
    cases: Sequence[Overhead],
    works: Sequence[Work],
    samples: rows.Samples,
    timelines: Sequence[Path],
    path: Path,
    note: str,
) -> None:
    """Three panels of overheads; the totals, and two timelines."""
    made, panels = style.figure(2, 3, width=WIDTH, height=HEIGHT)
    for panel, series in zip(panels[0], SERIES, strict=True):
        listed = [case for case in cases if case.name.startswith(series)]
        _overheads(panel, listed, samples)
        panel.set_title(f"total over lazy: {TITLES[series]}", loc="left")
    _totals(panels[1][0], works, samples)
    bars = [_taken(file) for file in timelines]
    end_s = max((bar[2] for listed in bars for bar in listed), default=1.0)
    for at, (panel, way) in enumerate(zip(panels[1][1:], (LAZY, OURS), strict=True)):
        _timeline(panel, bars[at] if at < len(bars) else [], end_s)
        panel.set_title(f"{works[0].application if works else ''}, {way}: s", loc="left")
    wrapped = textwrap.fill(note, round(WIDTH * CHARS_AN_INCH))
    style.finish(made, path, "Eager release", wrapped)


def _overheads(panel: Axes, cases: Sequence[Overhead], samples: rows.Samples) -> None:
    panel.grid(visible=False, axis="x")
    panel.grid(visible=True, axis="y")
    panel.axhline(1.0, color="dimgray", linewidth=0.8)
    for contender in (OURS, STREAM, RAY):
        found = [
            rows.ratio(rows.sample(samples, c.name, contender), rows.sample(samples, c.name, LAZY))
            for c in cases
        ]
        points = [(at, value) for at, value in enumerate(found) if value is not None]
        if points:
            colour = COLOURS[contender]
            panel.plot(*zip(*points, strict=True), marker="o", color=colour, label=contender)
    panel.set_xticks(range(len(cases)), [case.name.partition("_")[2] for case in cases])
    highest = panel.get_ylim()[1]
    if highest > 4:
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(style.plain_numbers())
    else:
        panel.set_ylim(0, max(1.3, highest))
    if panel.lines[1:]:
        panel.legend(fontsize=7.5)


def _totals(panel: Axes, works: Sequence[Work], samples: rows.Samples) -> None:
    panel.set_title("applications: total, s (a line: the ideal overlap)", loc="left")
    height, labels = 0.26, []
    for at, work in enumerate(works):
        labels.append(work.name)
        ideal = rows.sample(samples, f"{work.name}:ideal", LAZY).median
        for place, contender in enumerate((LAZY, OURS, RAY)):
            value = rows.sample(samples, work.name, contender).median
            if value is None:
                continue
            y = at + (place - 1) * height
            label = contender if contender not in panel.get_legend_handles_labels()[1] else None
            panel.barh(y, value, height, color=COLOURS[contender], label=label)
            # Not under the line of the ideal.
            beside = ideal if ideal is not None and value <= ideal <= NEAR * value else value
            panel.text(beside, y, f" {value:.2f}", va="center", fontsize=6.5)
        if ideal is not None:
            panel.plot([ideal, ideal], [at - 0.42, at + 0.42], color="black", linewidth=1.2)
    panel.set_yticks(range(len(labels)), labels)
    panel.set_ylim(len(labels) + 0.4, -0.6)  # room for the legend
    if panel.get_legend_handles_labels()[1]:
        panel.legend(fontsize=7.5, loc="lower right", ncols=3)


def _taken(timeline: Path) -> list[Bar]:
    """Read the bodies that were written beside a timeline, and remove that file."""
    file = timeline.with_suffix(".spans")
    if not file.exists():
        return []
    listed = json.loads(file.read_text())
    file.unlink()
    return [(str(kind), float(start), float(end)) for kind, start, end in listed]


def lanes(bars: Sequence[Bar]) -> list[list[Bar]]:
    """Put bodies on lanes on which none overlaps another, in the order in which they began."""
    made: list[list[Bar]] = []
    for bar in sorted(bars, key=lambda one: one[1]):
        free = next((lane for lane in made if lane[-1][2] <= bar[1]), None)
        if free is None:
            made.append([bar])
        else:
            free.append(bar)
    return made


def _timeline(panel: Axes, bars: Sequence[Bar], end_s: float) -> None:
    kinds = sorted({bar[0] for bar in bars} - {PRODUCER})
    colours = dict(zip(kinds, KIND_COLOURS * (1 + len(kinds) // len(KIND_COLOURS)), strict=False))
    colours[PRODUCER] = PRODUCER_COLOUR
    reading = lanes([bar for bar in bars if bar[0] == PRODUCER])
    working = lanes([bar for bar in bars if bar[0] != PRODUCER])
    listed = [*reading, *working]
    for at, lane in enumerate(listed):
        for kind in dict.fromkeys(bar[0] for bar in lane):
            own = [(start, end - start) for name, start, end in lane if name == kind]
            panel.broken_barh(own, (at - 0.4, 0.8), facecolors=colours[kind])
    for kind, colour in colours.items():
        panel.barh(0, 0, color=colour, label=kind)
    names = ["reader"] * len(reading) + [f"task {at + 1}" for at in range(len(working))]
    panel.set_yticks(range(len(listed)), names)
    panel.set_xlim(0, end_s)
    panel.set_ylim(len(listed) + 0.9, -0.6)
    if bars:
        panel.legend(fontsize=7, loc="lower center", ncols=3, frameon=False)
