"""The variants as a picture: where they are, how sure, and which sample has which."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

UNKNOWN, REFERENCE, VARIANT = range(3)
COLOURS = ("#dddddd", "#7d9bb5", "#d1495b")
LABELS = ("too few reads", "as the reference", "variant")


class Site(NamedTuple):
    """A line of the variants' file: its position, and by sample what is there."""

    position: int
    state: list[int]


def sites(text: str) -> list[Site]:
    """Return the lines of a VCF file."""
    found = []
    for line in text.splitlines():
        if not line.startswith("#"):
            _, position, *_, samples = line.split("\t", 9)
            genotypes = (sample.split(":")[0] for sample in samples.split("\t"))
            states = [{".": UNKNOWN, "0": REFERENCE}.get(one, VARIANT) for one in genotypes]
            found.append(Site(int(position), states))
    return found


def draw(text: str, path: Path) -> list[Path]:
    """Write the picture; nothing where matplotlib is not installed."""
    try:
        from matplotlib.colors import ListedColormap
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError:
        return []
    found = sites(text)
    states = np.array([site.state for site in found]).reshape(len(found), -1)
    shares = (states == VARIANT).mean(axis=1)
    figure = Figure(figsize=(9, 6), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(1, 1.6))
    above.vlines([site.position for site in found], 0, shares, color=COLOURS[VARIANT], linewidth=1)
    above.set_ylim(0, 1.02)
    above.set_xlabel("position on the genome")
    above.set_ylabel("share of the samples\nthat have the variant")
    below.imshow(states.T, cmap=ListedColormap(COLOURS), vmin=UNKNOWN, vmax=VARIANT,
                 aspect="auto", interpolation="nearest")  # fmt: skip
    below.set_xlabel("variant, in the order of the genome")
    below.set_ylabel("sample")
    handles = [Patch(color=colour, label=label) for colour, label in zip(COLOURS, LABELS,
                                                                         strict=True)]  # fmt: skip
    below.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3,
                 frameon=False, fontsize=9)  # fmt: skip
    figure.suptitle(f"{len(found)} variants in {states.shape[1]} samples of one set of reads")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return [path]
