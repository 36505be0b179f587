"""An implicit step of heat conduction, solved by substructuring (static condensation).

One backward Euler step of  c u' = div(K grad u) + f, with linear elements: a symmetric positive
definite system. A subdomain gives up the nodes that are its own: what is left is a dense system
(the Schur complement) of those that it shares. Two neighbours are added up and give up those that
only they share, and so on; the last two share nothing with others. Then the way back: each gives
the nodes that it gave up, from those that it kept. It is a direct method (multifrontal, with the
subdomains as its leaves), so the result is that of the whole system but for rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse  # type: ignore[import-untyped]
from scipy.linalg import cho_factor, cho_solve  # type: ignore[import-untyped]
from scipy.sparse.linalg import splu  # type: ignore[import-untyped]
from skfem import (  # type: ignore[import-untyped]
    Basis,
    BilinearForm,
    ElementTriP1,
    LinearForm,
    MeshTri,
)

from . import cutting, lattice
from .shape import Floats, Integers

QUADRATURE = 2
"""Polynomials of this degree are integrated exactly."""


class Front(NamedTuple):
    """What is left of some subdomains: a system of the nodes that they share with others.

    `parts`: the first and the last of them. `nodes`: (N,) ascending; `bounds`: (N, 2), the lowest
    and the highest part that has each. `matrix`: (N, N), `load`: (N,).
    """

    parts: tuple[int, int]
    nodes: Integers
    bounds: Integers
    matrix: Floats
    load: Floats


class Given(NamedTuple):
    """Nodes that were given up: `start - operator @ (the temperatures of `outer`)`.

    `nodes`: (I,), `outer`: (N,), `operator`: (I, N), `start`: (I,).
    """

    nodes: Integers
    outer: Integers
    operator: Floats
    start: Floats


@BilinearForm  # type: ignore[untyped-decorator]
def _stiffness(u: Any, v: Any, w: Any) -> Any:
    xx, xy, yy, capacity = w.known
    along_x = xx * u.grad[0] + xy * u.grad[1]
    along_y = xy * u.grad[0] + yy * u.grad[1]
    return along_x * v.grad[0] + along_y * v.grad[1] + capacity * u * v


@LinearForm  # type: ignore[untyped-decorator]
def _load(v: Any, w: Any) -> Any:
    return w.heat * v


def assemble(fine: lattice.Fine, values: Floats) -> tuple[sparse.csr_matrix, Floats]:
    """Return the system of a mesh: a matrix (P, P) and a load (P,), nothing given up."""
    mesh = MeshTri(
        np.ascontiguousarray(fine.points.T), np.ascontiguousarray(fine.triangles.T), sort_t=False
    )
    basis = Basis(mesh, ElementTriP1(), intorder=QUADRATURE)
    x, y = basis.X
    corners = np.stack([1 - x - y, x, y])
    heat = values[:, 4:7] @ corners + values[:, 3:4] * (values[:, 7:10] @ corners)
    known = np.broadcast_to(values[:, :4].T[:, :, None], (4, *heat.shape))
    matrix = _stiffness.assemble(basis, known=known).tocsr()
    return matrix, _load.assemble(basis, heat=heat)


def _factor(matrix: sparse.csr_matrix) -> Any:
    """Factorise a matrix that is symmetric and positive definite: it needs no pivots."""
    options = {"SymmetricMode": True}
    how: Any = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": options}
    return splu(matrix.tocsc(), **how)


def leaf(of: cutting.Subdomain) -> tuple[Front, Given]:
    """Assemble a subdomain and give up the nodes that are its own. Cooled nodes have 0."""
    matrix, load = assemble(of.fine, of.values)
    free = np.ones(len(load), dtype=bool)
    free[of.cooled] = False
    kept = free[of.shared]
    outer = of.shared[kept]
    free[of.shared] = False
    inner = np.flatnonzero(free)
    rows = matrix[inner]
    factor = _factor(rows[:, inner])
    across = rows[:, outer].toarray()
    operator, start = factor.solve(across), factor.solve(load[inner])
    front = Front(
        (of.number, of.number),
        of.fine.nodes[outer],
        of.parts[kept],
        matrix[outer][:, outer].toarray() - across.T @ operator,
        load[outer] - across.T @ start,
    )
    return front, Given(of.fine.nodes[inner], front.nodes, operator, start)


def fold(first: Front, second: Front) -> tuple[Front, Given]:
    """Add up two fronts with neighbouring parts, and give up what only they share."""
    parts = (first.parts[0], second.parts[1])
    assert first.parts[1] + 1 == second.parts[0]
    nodes = np.union1d(first.nodes, second.nodes)
    bounds = np.empty((len(nodes), 2), dtype=np.int64)
    matrix = np.zeros((len(nodes), len(nodes)))
    load = np.zeros(len(nodes))
    for front in (first, second):
        at = np.searchsorted(nodes, front.nodes)
        bounds[at] = front.bounds
        matrix[np.ix_(at, at)] += front.matrix
        load[at] += front.load
    is_inner = (bounds[:, 0] >= parts[0]) & (bounds[:, 1] <= parts[1])
    inner, outer = np.flatnonzero(is_inner), np.flatnonzero(~is_inner)
    factor = cho_factor(matrix[np.ix_(inner, inner)])
    across = matrix[np.ix_(inner, outer)]
    operator, start = cho_solve(factor, across), cho_solve(factor, load[inner])
    front = Front(
        parts,
        nodes[outer],
        bounds[outer],
        matrix[np.ix_(outer, outer)] - across.T @ operator,
        load[outer] - across.T @ start,
    )
    return front, Given(nodes[inner], front.nodes, operator, start)


def back(given: Given, temperatures: Floats) -> None:
    """Write the temperatures of nodes that were given up beside those of the others."""
    found = given.start - given.operator @ temperatures[given.outer]
    temperatures[given.nodes] = found


def residual(fine: lattice.Fine, values: Floats, cooled: Integers, temperatures: Floats) -> float:
    """Return how far temperatures are from solving one system for all nodes of a mesh.

    The norm of what is left of the load, over that of the load; and at least the highest
    temperature of the `cooled` nodes, which is 0.
    """
    matrix, load = assemble(fine, values)
    free = np.setdiff1d(np.arange(len(load)), cooled)
    left = (load - matrix @ temperatures)[free]
    of_cooled = np.abs(temperatures[cooled]).max(initial=0.0)
    return float(max(np.linalg.norm(left) / np.linalg.norm(load[free]), of_cooled))
