"""The picture: for each row the parts one after the other, the bound, and what was reached."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.common import style
from bench.common.sample import Sample
from bench.overlap.judge import BY_HAND, OURS, SIDE_BY_SIDE, Judged

COMPUTE_COLOUR = "#7d9bb5"
IO_COLOUR = "#e0b05c"
BAR_HEIGHT = 0.68
PARTS = "one after\nthe other"


def draw(judged: Sequence[Judged], path: Path, note: str) -> None:
    """Write the picture of all rows that were measured."""
    figure, panels = style.figure(1, len(judged), width=4.1 * len(judged), height=4.2)
    for panel, row in zip(panels[0], judged, strict=True):
        draw_row(panel, row)
    note = f"{note}. Dotted: the bound. Dashed: the target, {judged[0].goal.target:g} x the bound."
    style.finish(figure, path, "How much of the I/O is hidden", note)


def draw_row(panel: style.Axes, row: Judged) -> None:
    """Stacked: the parts; below: the ways to run the whole program."""
    compute_s = row.samples["compute_alone"]["wall_s"].median or 0.0
    io_s = row.samples["io_alone"]["wall_s"].median or 0.0
    panel.barh(0, compute_s, height=BAR_HEIGHT, color=COMPUTE_COLOUR)
    panel.barh(0, io_s, left=compute_s, height=BAR_HEIGHT, color=IO_COLOUR)
    middles = ((compute_s / 2, "compute"), (compute_s + io_s / 2, "I/O"))
    for middle, words in middles:
        panel.text(middle, 0, words, ha="center", va="center", fontsize=8)
    bars = [
        (way.replace("_", " "), row.samples[way]["wall_s"], style.colour(way, OURS))
        for way in ("blocking", BY_HAND, OURS, SIDE_BY_SIDE)
    ]
    for place, (_, sample, colour) in enumerate(bars, start=1):
        draw_bar(panel, place, sample, colour, row)
    names = [PARTS, *(name for name, _, _ in bars)]
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.4, -0.6)
    if row.bound_s is not None and row.goal.target is not None:
        panel.axvline(row.bound_s, color="black", linewidth=1.1, linestyle=":")
        panel.axvline(
            row.bound_s * row.goal.target, color=style.OURS_COLOUR, linewidth=1, linestyle="--"
        )
    panel.set_xlim(0, 1.12 * max([compute_s + io_s, *(s.high or 0.0 for _, s, _ in bars)]))
    panel.set_title(f"{row.name} ({row.words})", loc="left")
    panel.set_xlabel("seconds (lower is better)")


def draw_bar(panel: style.Axes, place: int, sample: Sample, colour: str, row: Judged) -> None:
    """One way to run the program, with its ratio to the bound."""
    middle = sample.median
    if middle is None:
        panel.text(0, place, f" {sample.note}", va="center", fontsize=8, color="gray")
        return
    low, high = min(sample.values), max(sample.values)
    panel.barh(place, middle, height=BAR_HEIGHT, color=colour)
    panel.plot([low, high], [place, place], color="black", linewidth=1.1)
    text = f"{middle:.2f}" + (f"\n{middle / row.bound_s:.2f} x" if row.bound_s else "")
    panel.annotate(
        text,
        (max(high, middle), place),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        bbox=style.LABEL_BOX,
    )
