"""Both references as a picture: where reads lie on each, and how much they differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .alignment import Summary
from .data import Genome

COLOURS = ("#7d9bb5", "#d1495b")
WINDOW = 50


def draw(
    genomes: Sequence[Genome], summaries: Sequence[tuple[Summary, Summary]], path: Path
) -> list[Path]:
    """Write the picture; nothing where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return []
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(3.2, 1))
    longest = max(len(genome.sequence) for genome in genomes)
    for at, genome in enumerate(genomes):
        panel = figure.add_subplot(grid[at, 0])
        depth = np.mean([both[at].depth for both in summaries], axis=0)
        smooth = np.convolve(depth, np.ones(WINDOW) / WINDOW, "same")
        panel.fill_between(np.arange(len(smooth)), smooth, color=COLOURS[at], linewidth=0)
        panel.set_xlim(0, longest)
        panel.set_ylim(bottom=0)
        panel.set_ylabel("reads that cover it")
        panel.set_title(f"{genome.name}, {len(genome.sequence):,} bases", loc="left", fontsize=9)
        panel.spines[["top", "right"]].set_visible(False)
    panel.set_xlabel(f"position on the reference (means of {WINDOW} bases and of all samples)")
    beside = figure.add_subplot(grid[:, 1])
    rates = [[1000 * b[at].differences / max(1, b[at].bases) for b in summaries] for at in (0, 1)]
    for at, values in enumerate(rates):
        shift = np.linspace(-0.2, 0.2, len(values)) if len(values) > 1 else np.zeros(1)
        beside.plot(at + shift, values, ".", color=COLOURS[at], markersize=5)
    beside.set_xticks((0, 1), [genome.name.split("|")[-1] for genome in genomes])
    beside.set_xlim(-0.5, 1.5)
    beside.set_ylim(bottom=0)
    beside.set_ylabel("differences in 1,000 aligned bases, a point a sample")
    beside.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"Reads of {len(summaries)} samples against two references")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return [path]
