"""The same algorithm without tasks, for the check: a loop over iterations and fragments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from . import app


class Iteration(NamedTuple):
    """The centres before and after, and by fragment the sums, counts and labels."""

    centres: app.Floats
    parts: list[tuple[app.Floats, Any, app.Labels]]
    next_centres: app.Floats


def iterations(shape: app.Shape) -> Iterator[Iteration]:
    """Yield every iteration."""
    centres = app.first_centres(shape)
    for _ in range(shape.iterations):
        parts = []
        sums = np.zeros_like(centres)
        counts = np.zeros(shape.centres, np.int64)
        for at in range(shape.fragments):
            points = app.points_of(shape, at)
            labels = app.nearest(points, centres)
            fragment_sums, fragment_counts = app.sum_by_label(points, labels, shape.centres)
            parts.append((fragment_sums, fragment_counts, labels))
            sums += fragment_sums
            counts += fragment_counts
        next_centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
        yield Iteration(centres, parts, next_centres)
        centres = next_centres


def checkpoint(iteration: Iteration, fragment: int) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of a checkpoint by name."""
    sums, counts, labels = iteration.parts[fragment]
    yield "the centres", iteration.centres
    yield "the sums", sums
    yield "the counts", counts
    yield "the labels", labels
