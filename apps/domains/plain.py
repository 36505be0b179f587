"""The same program without tasks, for the check: a loop over the subdomains. And one system."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from . import app, cutting, data, heat, lattice
from .shape import Floats, Integers


def run(job: app.Job) -> Floats:
    """Return the temperature of each fine node.

    On one processor, as in a task: sums over several are rounded in another order.
    """
    with threadpool_limits(1):
        return _run(job)


def _run(job: app.Job) -> Floats:
    condensed = []
    folder = app.Folder(heat.fold, job.parts)
    with job.mesh.open("rb") as file:
        for subdomain in cutting.subdomains(file, job.parts):
            left, given = heat.leaf(subdomain)
            condensed.append(given)
            folder.add(left)
    temperatures = np.zeros(job.nodes)
    last = heat.fold(*folder.rest)[1]
    for given in (last, *reversed(folder.folded), *condensed):
        heat.back(given, temperatures)
    return temperatures


def fine_mesh(job: app.Job) -> tuple[lattice.Fine, Floats, Integers]:
    """Return the whole fine mesh, what is known in it, and which nodes are cooled."""
    with job.mesh.open("rb") as file:
        cutter = cutting.Cutter(data.read_head(file), 1)
        subdomain = cutter.cut(0, file)
    return subdomain.fine, subdomain.values, subdomain.cooled


def residual(job: app.Job, temperatures: Floats) -> float:
    """Return how far temperatures are from solving one system for all fine nodes."""
    return heat.residual(*fine_mesh(job), temperatures)
