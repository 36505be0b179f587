"""The fine mesh: each coarse triangle is cut into `side` x `side` equal ones.

A fine node has a number that is the same from whichever triangle it is seen: coarse points first,
then those inside of coarse edges (from the lower point on), then those inside of triangles.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .shape import Floats, Integers, Mesh

BETWEEN = ((0, 1), (1, 2), (0, 2))
"""Corners of a triangle between which its edges are, in the order of `MeshTri.t2f`."""


class Lattice(NamedTuple):
    """How one coarse triangle is cut.

    `weights`: (N, 3), of its corners in each node. `triangles`: (side**2, 3), the nodes of each.
    """

    weights: Floats
    triangles: Integers


@cache
def lattice(side: int) -> Lattice:
    """Return how a triangle is cut."""
    at = [(i, j) for j in range(side + 1) for i in range(side + 1 - j)]
    node = {position: number for number, position in enumerate(at)}
    cut = []
    for i, j in at:
        if i + j < side:
            cut.append((node[i, j], node[i + 1, j], node[i, j + 1]))
        if i + j < side - 1:
            cut.append((node[i + 1, j], node[i + 1, j + 1], node[i, j + 1]))
    weights = np.array([(side - i - j, i, j) for i, j in at]) / side
    return Lattice(weights, np.array(cut, dtype=np.int64))


class Numbers(NamedTuple):
    """What is needed to number fine nodes: a mesh, its `topology`, the parts of an edge."""

    mesh: Mesh
    known: Any
    side: int

    @property
    def nodes(self) -> int:
        """How many fine nodes there are."""
        inside = (self.side - 1) * (self.side - 2) // 2
        edges = int(self.known.nfacets) * (self.side - 1)
        return len(self.mesh.points) + edges + len(self.mesh.triangles) * inside

    def of(self, triangles: Integers) -> Integers:
        """Return the fine nodes of some coarse triangles, (len(triangles), N)."""
        side = self.side
        weights = np.rint(lattice(side).weights * side).astype(np.int64)
        found = np.empty((len(triangles), len(weights)), dtype=np.int64)
        first = len(self.mesh.points)
        for edge, (low, high) in enumerate(BETWEEN):
            third = 3 - low - high
            own = np.flatnonzero((weights[:, third] == 0) & (weights[:, [low, high]] > 0).all(1))
            begin = first + self.known.t2f[edge, triangles] * (side - 1)
            found[:, own] = begin[:, None] + weights[own, high] - 1
        first += self.known.nfacets * (side - 1)
        own = np.flatnonzero((weights > 0).all(axis=1))
        found[:, own] = first + triangles[:, None] * len(own) + np.arange(len(own))
        for corner in range(3):
            own = np.flatnonzero(weights[:, corner] == side)
            found[:, own] = self.mesh.triangles[triangles, corner, None]
        return found

    def edge_nodes(self, edges: Integers) -> Integers:
        """Return the fine nodes inside of some coarse edges, (len(edges), side - 1)."""
        begin = len(self.mesh.points) + edges * (self.side - 1)
        return begin[:, None] + np.arange(self.side - 1)

    def cooled(self) -> Integers:
        """Return the fine nodes on the edges of holes."""
        outer = self.known.boundary_facets()
        outer = outer[self.mesh.cooled[self.known.facets[:, outer]].all(axis=0)]
        return np.concatenate([np.flatnonzero(self.mesh.cooled), self.edge_nodes(outer).ravel()])


class Fine(NamedTuple):
    """The fine mesh of some coarse triangles.

    `nodes`: (P,) the number of each in the whole, ascending; `points`: (P, 2); `triangles`: (M, 3)
    positions in `nodes`, those of a coarse triangle one after the other.
    """

    nodes: Integers
    points: Floats
    triangles: Integers


def refine(numbers: Numbers, triangles: Integers) -> Fine:
    """Return the fine mesh of some coarse triangles."""
    how = lattice(numbers.side)
    all_nodes = numbers.of(triangles)
    nodes, first, position = np.unique(all_nodes, return_index=True, return_inverse=True)
    corners = numbers.mesh.points[numbers.mesh.triangles[triangles]]
    points = np.einsum("nc,tcd->tnd", how.weights, corners).reshape(-1, 2)[first]
    cut = position.reshape(all_nodes.shape)[:, how.triangles]
    return Fine(nodes, points, cut.reshape(-1, 3))
