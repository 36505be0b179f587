"""The file of a mesh: its coarse triangles, and what is known in each fine one.

It is what a simulation of heat conduction leaves to go on from: the material, the heat that is
made, and the temperature now. Everything is made here, from waves of random directions and lengths
in a frame that turns with the angle, as in a material that was wound.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from . import lattice, shape
from .shape import Floats, Integers

VALUES = 10
"""Per fine triangle: conductivity xx, xy, yy; heat capacity over the length of the step; heat that
is made, and temperature, in each corner."""

WAVES = 6
AT_ONCE = 256
"""How many coarse triangles are worked on at once while a file is made."""


class Source(Protocol):
    """What a mesh is read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Read at most so many bytes; none at the end."""

    def seek(self, offset: int, /) -> object:
        """Go to a position, bytes from the beginning."""


class Head(NamedTuple):
    """The coarse mesh, into how much its edges are cut, and where the values begin, in bytes."""

    mesh: shape.Mesh
    side: int
    begin: int


def _waves(points: Floats, seed: int, length: float) -> Floats:
    """Return a smooth field at points (..., 2), between -1 and 1."""
    random = np.random.default_rng(seed)
    turn = random.uniform(0, 2 * np.pi, WAVES)
    lengths = length * random.uniform(0.7, 1.4, WAVES)
    ways = 2 * np.pi / lengths * np.array([np.cos(turn), np.sin(turn)])
    phases = random.uniform(0, 2 * np.pi, WAVES)
    found: Floats = np.cos(points @ ways + phases).mean(axis=-1)
    return found


def values(corners: Floats) -> Floats:
    """Return what is known in fine triangles, (M, VALUES), whose corners are (M, 3, 2)."""
    centre = corners.mean(axis=1)
    angle = np.arctan2(centre[:, 1], centre[:, 0])
    along = 4 ** (1 + _waves(centre, 1, 0.5))
    across = along / (2 + 1.5 * _waves(centre, 2, 0.3))
    sine, cosine = np.sin(angle), np.cos(angle)
    capacity = 6 + 2 * _waves(centre, 3, 0.4)
    radius = np.hypot(corners[..., 0], corners[..., 1])
    heat = 60 * np.exp(-(((radius - 0.95) / 0.08) ** 2)) * (1 + _waves(corners, 4, 0.6))
    before = radius + 0.2 * _waves(corners, 5, 0.25)
    tensor = (
        across * cosine**2 + along * sine**2,
        (across - along) * sine * cosine,
        across * sine**2 + along * cosine**2,
    )
    return np.column_stack([*tensor, capacity, heat, before])


def write(path: Path, triangles: int, side: int) -> None:
    """Write the file of a mesh of about so many coarse triangles, whole or not at all.

    Its layout: how many points and triangles there are and `side`, 8 bytes each; the arrays of the
    mesh; the values of all fine triangles, those of a coarse one together, as `refine` has them.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    mesh = shape.mesh(triangles)
    numbers = lattice.Numbers(mesh, shape.topology(mesh), side)
    temporary = path.with_suffix(".part")
    with temporary.open("wb") as file:
        file.write(np.array([len(mesh.points), len(mesh.triangles), side]).tobytes())
        for array in mesh:
            file.write(array.tobytes())
        for first in range(0, len(mesh.triangles), AT_ONCE):
            some = np.arange(first, min(first + AT_ONCE, len(mesh.triangles)))
            fine = lattice.refine(numbers, some)
            file.write(values(fine.points[fine.triangles]).tobytes())
    temporary.rename(path)


def read_head(file: Source) -> Head:
    """Read the coarse mesh from the beginning of a file."""
    points, triangles, side = (int(n) for n in np.frombuffer(file.read(24), np.int64))
    mesh = shape.Mesh(
        np.frombuffer(file.read(16 * points), np.float64).reshape(points, 2),
        np.frombuffer(file.read(24 * triangles), np.int64).reshape(triangles, 3),
        np.frombuffer(file.read(8 * points), np.int64),
    )
    return Head(mesh, side, 24 + 24 * points + 24 * triangles)


def read_values(file: Source, head: Head, triangles: Integers) -> Floats:
    """Read what is known in some coarse triangles, ascending: (fine triangles, VALUES)."""
    each = 8 * VALUES * head.side**2
    pieces = []
    for run in np.split(triangles, np.flatnonzero(np.diff(triangles) > 1) + 1):
        file.seek(head.begin + int(run[0]) * each)
        pieces.append(file.read(len(run) * each))
    return np.frombuffer(b"".join(pieces), np.float64).reshape(-1, VALUES)
