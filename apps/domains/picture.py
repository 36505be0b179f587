"""The disc at the end as a picture: the temperature, and the subdomains."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from . import app, cutting, data, plain
from .shape import Floats

COLOURS = 20


def draw(job: app.Job, temperatures: Floats, path: Path) -> list[Path]:
    """Write the picture; nothing where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return []
    fine = plain.fine_mesh(job)[0]
    with job.mesh.open("rb") as file:
        head = data.read_head(file)
    part = cutting.Cutter(head, job.parts).part
    figure = Figure(figsize=(10, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    where = (fine.points[:, 0], fine.points[:, 1], fine.triangles)
    drawn = left.tripcolor(*where, temperatures[fine.nodes], cmap="inferno", shading="gouraud")
    left.set_title("temperature", fontsize=10)
    figure.colorbar(drawn, ax=left, shrink=0.8)
    mixed = np.random.default_rng(0).permutation(job.parts)
    coarse = (head.mesh.points[:, 0], head.mesh.points[:, 1], head.mesh.triangles)
    right.tripcolor(*coarse, facecolors=mixed[part] % COLOURS, cmap="tab20")
    right.set_title(f"{job.parts} subdomains", fontsize=10)
    for panel in (left, right):
        panel.set_aspect("equal")
        panel.set_axis_off()
    figure.suptitle(f"A cooled turbine disc, {job.nodes:,} nodes, after a step in time")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return [path]
