"""The picture: a panel a row, a bar a contender, logarithmic."""

from __future__ import annotations

from pathlib import Path

from bench.common import style
from bench.common.report import number
from bench.common.sample import Sample
from bench.overhead.rows import OURS, QUESTIONS, Question

Samples = dict[str, dict[str, Sample]]
COLUMNS = 2


def draw(samples: Samples, path: Path, note: str) -> None:
    """Write the picture of all rows that were measured."""
    questions = [question for question in QUESTIONS if question.name in samples]
    lines = -(-(len(questions)) // COLUMNS)
    figure, panels = style.figure(lines, COLUMNS, width=11.0, height=2.2 * lines + 0.7)
    places = [panel for line in panels for panel in line]
    for panel, question in zip(places, questions, strict=False):
        draw_row(panel, question, samples[question.name])
    for panel in places[len(questions) :]:
        panel.set_axis_off()
    note = f"{note}. Line: lowest to highest. Dotted: where alongside reaches its target."
    style.finish(figure, path, "What a task costs", note)


def draw_row(panel: style.Axes, question: Question, samples: dict[str, Sample]) -> None:
    """One panel: bars from the best to the worst, contenders without a figure below."""
    known = [(name, sample.median) for name, sample in samples.items() if sample.median is not None]
    known.sort(key=lambda pair: pair[1], reverse=question.goal.higher)
    missing = [name for name, sample in samples.items() if sample.median is None]
    names = [name for name, _ in known] + missing
    smallest = min((value for _, value in known), default=1.0)
    largest = max((value for _, value in known), default=1.0)
    left = smallest / 2.5
    panel.set_xscale("log")
    panel.set_xlim(left, largest * (largest / left) ** 0.28)
    for place, name in enumerate(names):
        middle = samples[name].median
        if middle is None:
            note = samples[name].note
            panel.text(left * 1.05, place, note, va="center", fontsize=8, color="gray")
            continue
        low, high = min(samples[name].values), max(samples[name].values)
        panel.barh(place, middle - left, left=left, height=0.68, color=style.colour(name, OURS))
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
    draw_target(panel, question, samples)
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.xaxis.set_major_formatter(style.plain_numbers())
    panel.xaxis.set_minor_formatter(style.no_numbers())
    better = "higher is better" if question.goal.higher else "lower is better"
    panel.set_title(f"{question.name}: {question.words} ({question.unit}; {better})", loc="left")


def draw_target(panel: style.Axes, question: Question, samples: dict[str, Sample]) -> None:
    """A dotted line where ours would just reach its target."""
    figures = [m for name in question.goal.peers if (m := samples[name].median) is not None]
    if question.goal.target is None or not figures:
        return
    best = max(figures) if question.goal.higher else min(figures)
    panel.axvline(best * question.goal.target, color=style.OURS_COLOUR, linewidth=1, linestyle=":")
