"""The program: generate fragments, sum partially, merge the centres, checkpoint; again.

K-means after Lloyd, cut as in Elshazly's thesis (section 4.5.3.3, figure 4.20): the points are
random (they are in the original), so a fragment is made by a task from its seed. Every iteration
sums the points of each fragment by their nearest centre, and merges the sums into new centres. A
checkpoint of a fragment holds what a restart of it needs, its points but for their seed: the
centres that it used, the sums and counts that came of them, and which centre each point belongs to.

    generate_fragment ─> partial_sum ──> checkpoint_centers       (writes and fsyncs a file)
                             ^    └────> merge ──┐
                             └───────────────────┘  the next iteration's centres

The sums of a fragment do not depend on where or when they are made, and they are merged in the
order of the fragments: every run gives the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import alongside as al
from apps.common import arrays
from apps.common.checkpoints import Checkpoints
from apps.common.command import Outcome
from apps.common.spans import Span, Stopwatch

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int32]

POINTS_AT_ONCE = 2048
"""How many points are compared with the centres at once: their distances fit a cache."""


@dataclass(frozen=True)
class Shape:
    """How much there is: points of so many dimensions in fragments, centres, iterations."""

    fragments: int = 24
    points: int = 12_000  # of each fragment
    dimensions: int = 64
    centres: int = 1024
    iterations: int = 3

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of a checkpoint, without the headers of its arrays."""
        return 8 * self.centres * (2 * self.dimensions + 1) + 4 * self.points


class Fragment(NamedTuple):
    """Points, one a line, and when they were made."""

    points: Floats
    span: Span


class Partial(NamedTuple):
    """Of a fragment: by centre the sum and the count of its points; by point its centre."""

    sums: Floats
    counts: npt.NDArray[np.int64]
    labels: Labels
    span: Span


class Centres(NamedTuple):
    """The centres, one a line, and when they were merged."""

    points: Floats
    span: Span


def points_of(shape: Shape, fragment: int) -> Floats:
    """Return the points of a fragment: around as many places as there are centres."""
    places = np.random.default_rng(0).uniform(-10, 10, (shape.centres, shape.dimensions))
    random = np.random.default_rng([1, fragment])
    chosen = random.integers(shape.centres, size=shape.points)
    return places[chosen] + random.normal(0, 2.5, (shape.points, shape.dimensions))


def first_centres(shape: Shape) -> Floats:
    """Return the centres of the first iteration: random places."""
    return np.random.default_rng(2).uniform(-10, 10, (shape.centres, shape.dimensions))


def nearest(points: Floats, centres: Floats) -> Labels:
    """Return by point the number of its nearest centre; of equals the lowest."""
    squares = (centres * centres).sum(axis=1)
    labels = np.empty(len(points), np.int32)
    for at in range(0, len(points), POINTS_AT_ONCE):
        part = points[at : at + POINTS_AT_ONCE]
        # |p - c|^2 without |p|^2, which is the same for all centres.
        labels[at : at + len(part)] = (squares - 2.0 * (part @ centres.T)).argmin(axis=1)
    return labels


def sum_by_label(points: Floats, labels: Labels, centres: int) -> tuple[Floats, Any]:
    """Return by centre the sum of its points, added in their order, and how many there are."""
    columns = (np.bincount(labels, column, centres) for column in points.T)
    return np.stack(list(columns), axis=1), np.bincount(labels, minlength=centres)


@al.task
def generate_fragment(shape: Shape, fragment: int) -> Fragment:
    """Make the points of a fragment from its seed."""
    with Stopwatch("generate") as watch:
        points = points_of(shape, fragment)
    return Fragment(points, watch.span)


@al.task
def partial_sum(fragment: Fragment, centres: Centres) -> Partial:
    """Sum up the points of a fragment by their nearest centre."""
    with Stopwatch("partial_sum") as watch:
        labels = nearest(fragment.points, centres.points)
        sums, counts = sum_by_label(fragment.points, labels, len(centres.points))
    return Partial(sums, counts, labels, watch.span)


@al.task
def merge(parts: list[Partial], before: Centres) -> Centres:
    """Make the next centres; one without points stays where it was."""
    with Stopwatch("merge") as watch:
        sums, counts = parts[0].sums.copy(), parts[0].counts.copy()
        for part in parts[1:]:
            sums += part.sums
            counts += part.counts
        filled = counts > 0
        centres = before.points.copy()
        centres[filled] = sums[filled] / counts[filled, None]
    return Centres(centres, watch.span)


def checkpoint_centers(path: al.FileOut, centres: Centres, part: Partial) -> Span:
    """Write the checkpoint of a fragment; it is durable when this returns."""
    return arrays.write(path, (centres.points, part.sums, part.counts, part.labels))


def file_of(folder: Path, iteration: int, fragment: int) -> Path:
    """Return where a checkpoint is."""
    return folder / f"iteration-{iteration:02}-fragment-{fragment:03}.npys"


def run(shape: Shape, checkpoints: Checkpoints, folder: Path) -> Outcome:
    """Run the program; the answer is the final centres. Under a session its calls are tasks."""
    call = checkpoints.call
    write = checkpoints.task(checkpoint_centers, "checkpoint_centers")
    fragments = [call(generate_fragment, shape, at) for at in range(shape.fragments)]
    centres: Any = Centres(first_centres(shape), Span("first", 0, 0))
    made: list[Any] = list(fragments)
    written: list[Any] = []
    for iteration in range(shape.iterations):
        parts = [call(partial_sum, fragment, centres) for fragment in fragments]
        for at, part in enumerate(parts):
            path = file_of(folder, iteration, at)
            written.append(call(write, str(path), centres, part))
        centres = call(merge, parts, centres)
        made += [*parts, centres]
    answer = al.wait(centres).points
    spans = [al.wait(future).span for future in made] + [al.wait(future) for future in written]
    return Outcome(answer, spans)
