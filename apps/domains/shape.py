"""The region, its coarse mesh, and how that is divided: a turbine disc with a bore and bolt holes.

A lattice of equilateral triangles inside, points at equal distances on the edges, and Delaunay's
triangles between them. Lengths are in units of the disc's mean radius.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pymetis
from scipy.spatial import Delaunay  # type: ignore[import-untyped]
from skfem import MeshTri  # type: ignore[import-untyped]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

TEETH, TOOTH = 9, 0.07
"""How many lobes the rim has, and how high they are."""

HOLES = ((0.0, 0.0, 0.3), *((0.62 * math.cos(a), 0.62 * math.sin(a), 0.1)
                            for a in np.arange(6) * math.pi / 3))  # fmt: skip
"""The bore and the bolt holes: centre and radius."""

CLEARANCE = 0.6
"""How near to an edge a point of the lattice may be, in sides of its triangles."""

SIDES_MIN = 12
"""Into how many sides the smallest hole is cut at least."""


class Mesh(NamedTuple):
    """Triangles between points.

    `points`: (P, 2). `triangles`: (T, 3), points of each, ascending. `cooled`: (P,), 1 for the
    points on the edges of holes, else 0.
    """

    points: Floats
    triangles: Integers
    cooled: Integers


def rim(angle: Floats) -> Floats:
    """Return the radius of the disc at some angles."""
    return 1 + TOOTH * np.cos(TEETH * angle)


def _inside(points: Floats, distance: float) -> npt.NDArray[np.bool_]:
    """Whether points are in the region, so far from its edges (about so, where the rim bends)."""
    radius = np.hypot(points[:, 0], points[:, 1])
    found = radius < rim(np.arctan2(points[:, 1], points[:, 0])) - distance
    for x, y, hole in HOLES:
        found &= np.hypot(points[:, 0] - x, points[:, 1] - y) > hole + distance
    return found


def _lattice(side: float) -> Floats:
    reach = 1 + TOOTH + side
    x, y = np.meshgrid(np.arange(-reach, reach, side), np.arange(-reach, reach, side * 0.75**0.5))
    x[::2] += side / 2
    return np.column_stack([x.ravel(), y.ravel()])


def _edges(side: float) -> tuple[Floats, int]:
    """Return points on the rim and then on the holes, about `side` apart; how many on the rim."""
    fine = np.linspace(0, 2 * math.pi, 20_000)
    curve = np.column_stack([rim(fine) * np.cos(fine), rim(fine) * np.sin(fine)])
    steps = np.hypot(*np.diff(curve, axis=0).T)
    length = np.concatenate([[0.0], np.cumsum(steps)])
    count = math.ceil(length[-1] / side)
    at = np.interp(np.arange(count) * length[-1] / count, length, fine)
    listed = [np.column_stack([rim(at) * np.cos(at), rim(at) * np.sin(at)])]
    for x, y, radius in HOLES:
        sides = max(SIDES_MIN, math.ceil(2 * math.pi * radius / side))
        turn = 2 * math.pi * np.arange(sides) / sides
        listed.append(np.column_stack([x + radius * np.cos(turn), y + radius * np.sin(turn)]))
    return np.concatenate(listed), count


def area() -> float:
    """Return the area of the region."""
    disc = math.pi * (1 + TOOTH**2 / 2)
    return disc - sum(math.pi * radius**2 for _, _, radius in HOLES)


def mesh(triangles: int) -> Mesh:
    """Return a mesh of about so many triangles."""
    side = math.sqrt(area() / triangles * 4 / math.sqrt(3))
    edges, on_rim = _edges(side)
    lattice = _lattice(side)
    points = np.concatenate([edges, lattice[_inside(lattice, CLEARANCE * side)]])
    found = np.sort(Delaunay(points).simplices, axis=1).astype(np.int64)
    found = found[_inside(points[found].mean(axis=1), 0.0)]
    cooled = np.zeros(len(points), dtype=np.int64)
    cooled[on_rim : len(edges)] = 1
    return Mesh(points, found[np.lexsort(found.T[::-1])], cooled)


def topology(of: Mesh) -> MeshTri:
    """Return the same mesh with its edges, for what asks for them."""
    return MeshTri(np.ascontiguousarray(of.points.T), np.ascontiguousarray(of.triangles.T))


def divide(known: MeshTri, parts: int) -> Integers:
    """Return the part of each triangle, (T,): METIS, by bisection, so that neighbours are near.

    Parts 0 and 1 were one before the last cut, 0 to 3 before the one before it, and so on, where
    `parts` is a power of two.
    """
    if parts == 1:
        return np.zeros(known.nelements, dtype=np.int64)
    between = known.f2t[:, known.f2t[1] >= 0]
    pairs = np.concatenate([between.T, between[::-1].T])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    starts = np.searchsorted(pairs[:, 0], np.arange(known.nelements + 1))
    graph = pymetis.CSRAdjacency(starts.astype(np.int32), pairs[:, 1].astype(np.int32))
    found = pymetis.part_graph(parts, graph, recursive=True)
    return np.asarray(found.vertex_part, dtype=np.int64)
