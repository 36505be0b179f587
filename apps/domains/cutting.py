"""Cuts subdomains out of a mesh: their triangles, the nodes shared with others, the values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from . import data, lattice, shape
from .shape import Floats, Integers


class Subdomain(NamedTuple):
    """A part of the fine mesh, and what is known in it.

    `shared`: positions (in `fine.nodes`) of nodes that are in other parts too; `parts`: (S, 2), the
    lowest and the highest number of those parts, its own among them. `cooled`: positions of nodes
    whose temperature is given. `values`: (M, data.VALUES).
    """

    number: int
    fine: lattice.Fine
    shared: Integers
    parts: Integers
    cooled: Integers
    values: Floats


class Cutter:
    """A divided mesh: it knows which fine nodes are between its parts."""

    def __init__(self, head: data.Head, parts: int) -> None:
        known = shape.topology(head.mesh)
        self.head = head
        self.numbers = lattice.Numbers(head.mesh, known, head.side)
        self.part = shape.divide(known, parts)
        self.parts = parts
        low, high = self._between()
        between = np.flatnonzero(low < high)
        self._shared, self._bounds = between, np.column_stack([low[between], high[between]])
        self._cooled = np.sort(self.numbers.cooled())

    def _between(self) -> tuple[Integers, Integers]:
        """Return the lowest and the highest part of each fine node on a coarse edge."""
        known = self.numbers.known
        points = len(self.head.mesh.points)
        inside = self.head.side - 1
        found = []
        for combine, none in ((np.minimum, self.parts), (np.maximum, -1)):
            of_points = np.full(points, none, dtype=np.int64)
            for corner in range(3):
                combine.at(of_points, self.head.mesh.triangles[:, corner], self.part)
            of_edges = np.full(known.nfacets, none, dtype=np.int64)
            for edge in range(3):
                combine.at(of_edges, known.t2f[edge], self.part)
            found.append(np.concatenate([of_points, np.repeat(of_edges, inside)]))
        return found[0], found[1]

    def cut(self, number: int, file: data.Source) -> Subdomain:
        """Return a subdomain, its values read from the file of the mesh."""
        triangles = np.flatnonzero(self.part == number)
        values = data.read_values(file, self.head, triangles)
        fine = lattice.refine(self.numbers, triangles)
        shared, at, _ = np.intersect1d(fine.nodes, self._shared, True, return_indices=True)
        bounds = self._bounds[np.searchsorted(self._shared, shared)]
        cooled = np.flatnonzero(np.isin(fine.nodes, self._cooled, assume_unique=True))
        return Subdomain(number, fine, at, bounds, cooled, values)


def subdomains(file: data.Source, parts: int) -> Iterator[Subdomain]:
    """Divide a mesh, and cut one subdomain after the other."""
    cutter = Cutter(data.read_head(file), parts)
    for number in range(parts):
        yield cutter.cut(number, file)
