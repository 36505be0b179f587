"""The picture: observed I/O time of each case, over that without the connector."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from bench.common import style
from bench.hdf5.cases import CALLS, LENT, NATIVE, OURS, PASS_THROUGH, Case, contenders
from bench.hdf5.rows import Samples, sample

WIDTH, BAR_HEIGHT = 9.0, 0.22
NOTE_CHARS = 150
COLOURS = {
    NATIVE: style.PEER_COLOUR,
    PASS_THROUGH: style.PEER_COLOUR,
    CALLS: "#bbbbbb",
    OURS: style.OURS_COLOUR,
    LENT: "#edae49",
}
LABELS = {
    NATIVE: "without",
    PASS_THROUGH: "only passed on",
    CALLS: "without, datasets made but not written",
    OURS: "alongside",
    LENT: "alongside, buffers kept by the program",
}


def draw(cases: Sequence[Case], samples: Samples, path: Path, note: str) -> None:
    """Bars for each case, in a panel each for data and for metadata."""
    kinds = [[case for case in cases if case.is_data], [c for c in cases if not c.is_data]]
    heights = [max(len(kind), 1) for kind in kinds]
    figure, panels = style.figure(1, 2, width=WIDTH * 1.4, height=1.6 + 0.55 * max(heights))
    for panel, kind in zip(panels[0], kinds, strict=True):
        draw_kind(panel, kind, samples)
    panels[0][0].set_title("data", loc="left")
    panels[0][1].set_title("100 groups with attributes", loc="left")
    wrapped = textwrap.fill(note, NOTE_CHARS)
    style.finish(figure, path, "I/O time that an HDF5 program sees", wrapped)


def draw_kind(panel: style.Axes, cases: Sequence[Case], samples: Samples) -> None:
    """One panel: seconds, in the order of the cases, the first on top."""
    named: set[str] = set()
    for place, case in enumerate(cases):
        for line, contender in enumerate(contenders(case)):
            middle = sample(samples, case, contender, "io_s").median
            if middle is None:
                continue
            label = LABELS[contender] if contender not in named else None
            named.add(contender)
            at = place + (line - 1) * BAR_HEIGHT
            panel.barh(at, middle, BAR_HEIGHT * 0.9, color=COLOURS[contender], label=label)
            panel.text(middle, at, f" {middle:.2g} s", va="center", fontsize=7)
    panel.set_yticks(range(len(cases)), [case.name for case in cases])
    panel.set_ylim(len(cases) - 0.4, -0.6)
    panel.margins(x=0.12)
    panel.set_xlabel("seconds (lower is better)")
    if named:
        panel.legend(fontsize=7, loc="lower right")
