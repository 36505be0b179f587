"""The command: makes a mesh, solves on it lazily and eagerly, checks what it found."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from apps.common import command, release, release_command

from . import app, data, lattice, picture, plain, shape
from .shape import Floats

PARTS, QUICK_PARTS = 256, 32
COARSE = 32
"""Coarse triangles of a subdomain, about."""

SIDE = 8
RESIDUAL_MAX = 1e-9
"""What may be left of the load in one system for all nodes."""


class Domains:
    """The application: so many subdomains of a mesh, which is made in a folder."""

    name = "domains"
    consumers: Collection[str] = ("condense",)
    final: Collection[str] = ("root", "recover")

    def __init__(self, folder: Path, parts: int, coarse: int = COARSE, side: int = SIDE) -> None:
        self.folder = folder
        path = folder / f"disc-{parts * coarse}-{side}.mesh"
        if not path.exists():
            data.write(path, parts * coarse, side)
        with path.open("rb") as file:
            head = data.read_head(file)
        known = shape.topology(head.mesh)
        self.triangles = known.nelements * side**2
        nodes = lattice.Numbers(head.mesh, known, side).nodes
        self.job = app.Job(path, nodes, parts)

    @cached_property
    def expected(self) -> Floats:
        """What the plain program finds."""
        return plain.run(self.job)

    def plain(self) -> Floats:
        """Return what the plain program finds."""
        return self.expected

    def about(self) -> str:
        """Return what is computed."""
        job = self.job
        return (
            f"a turbine disc of {self.triangles:,} triangles and {job.nodes:,} nodes, "
            f"{job.mesh.stat().st_size / 1e6:.1f} MB, in {job.parts} subdomains: heat conduction"
        )

    def run(self, way: str) -> release.Ran:
        """Run the program."""
        return app.run(self.job, way)

    def fingerprint(self, answer: Any) -> str:
        """Return a hash of an answer."""
        return hashlib.sha256(answer.tobytes()).hexdigest()

    def check(self, answer: Any) -> str:
        """Compare with the plain program's, exactly, and with one system for all; empty: equal."""
        if not np.array_equal(answer, self.expected):
            unequal = np.count_nonzero(answer != self.expected)
            return f"the temperatures of {unequal:,} nodes"
        left = plain.residual(self.job, answer)
        if not left <= RESIDUAL_MAX:
            return f"no solution of one system for all nodes: {left:.1e} of the load is left"
        return ""

    def finish(self, answer: Any, out: Path) -> list[Path]:
        """Write the temperatures, and draw them."""
        path = out / "temperatures.npy"
        np.save(path, answer)
        return [path, *picture.draw(self.job, answer, out / "domains.png")]


def parts_of(text: str) -> int:
    """Return a number of subdomains of at least 2."""
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 2")
    return int(text)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; ends the program with a message if it makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m apps.domains",
        description="Cut a mesh into subdomains and solve a heat equation on them: while it is "
        "being cut (eager), and when all was cut (lazy).",
    )
    release_command.add_common(parser, "domains")
    add = parser.add_argument
    add("--parts", type=parts_of, metavar="N",
        help=f"subdomains; default {PARTS} (--quick: {QUICK_PARTS})")  # fmt: skip
    add("--coarse", type=command.positive, default=COARSE, metavar="N",
        help="coarse triangles of a subdomain, about; default %(default)s")  # fmt: skip
    add("--side", type=command.positive, default=SIDE, metavar="N",
        help="into how much each of their edges is cut; default %(default)s")  # fmt: skip
    options = parser.parse_args(arguments)
    options.parts = options.parts or (QUICK_PARTS if options.quick else PARTS)
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 1 if an answer differs."""
    options = parse(arguments)
    application = Domains(options.out / "input", options.parts, options.coarse, options.side)
    return release_command.main(application, options)
