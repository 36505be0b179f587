"""The picture: a line of panels a workload (IOPS, processor time), a bar a contender."""

from __future__ import annotations

from pathlib import Path

from bench.common import style
from bench.common.report import number
from bench.common.sample import Sample
from bench.engine.rows import OURS, WORKLOADS, question

Samples = dict[str, dict[str, Sample]]
SUFFIXES = ("", "_cpu")


def draw(samples: Samples, path: Path, note: str) -> None:
    """Write the picture of all rows that were measured."""
    workloads = [workload for workload in WORKLOADS if workload.name in samples]
    lines = len(workloads)
    figure, panels = style.figure(lines, len(SUFFIXES), width=11.0, height=1.7 * lines + 0.8)
    for line, workload in zip(panels, workloads, strict=True):
        for panel, suffix in zip(line, SUFFIXES, strict=True):
            draw_row(panel, f"{workload.name}{suffix}", samples[f"{workload.name}{suffix}"])
    note = f"{note}. Line: lowest to highest. Dotted: where alongside reaches its target."
    style.finish(figure, path, "What the engine makes of a disk", note)


def draw_row(panel: style.Axes, name: str, samples: dict[str, Sample]) -> None:
    """One panel: the contenders in their order, those without a figure with the reason."""
    asked = question(name)
    for place, (contender, sample) in enumerate(samples.items()):
        middle = sample.median
        if middle is None:
            panel.text(0, place, f" {sample.note}", va="center", fontsize=8, color="gray")
            continue
        low, high = min(sample.values), max(sample.values)
        panel.barh(place, middle, height=0.68, color=style.colour(contender, OURS))
        panel.plot([low, high], [place, place], color="black", linewidth=1.1)
        panel.annotate(
            number(middle),
            (max(high, middle), place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            bbox=style.LABEL_BOX,
        )
    figures = [m for peer in asked.goal.peers if (m := samples[peer].median) is not None]
    if asked.goal.target is not None and figures:
        bound = figures[0] * asked.goal.target
        panel.axvline(bound, color=style.OURS_COLOUR, linewidth=1, linestyle=":")
    panel.set_yticks(range(len(samples)), list(samples))
    panel.set_ylim(len(samples) - 0.5, -0.5)
    panel.margins(x=0.12)
    panel.xaxis.set_major_formatter(style.plain_numbers())
    better = "higher is better" if asked.goal.higher else "lower is better"
    panel.set_title(f"{name} ({asked.unit}; {better})", loc="left")
