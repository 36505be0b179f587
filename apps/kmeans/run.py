"""The command: runs the program in each mode on each layer, checks it, prints the table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from apps.common import arrays, command
from apps.common.checkpoints import Checkpoints

from . import app, plain


class KMeans:
    """The application, for one size."""

    name = "kmeans"

    def __init__(self, shape: app.Shape) -> None:
        self.shape = shape

    @cached_property
    def expected(self) -> list[plain.Iteration]:
        """What the plain program computes."""
        return list(plain.iterations(self.shape))

    def about(self) -> str:
        """Return what is computed and written."""
        shape = self.shape
        files = shape.fragments * shape.iterations
        return (
            f"{shape.fragments} fragments of {shape.points:,} points in {shape.dimensions} "
            f"dimensions, {shape.centres} centres, {shape.iterations} iterations; "
            f"{files} checkpoints of {shape.checkpoint_bytes / 1e6:.2f} MB"
        )

    def run(self, checkpoints: Checkpoints, folder: Path) -> command.Outcome:
        """Run the program."""
        return app.run(self.shape, checkpoints, folder)

    def check(self, answer: Any, folder: Path) -> str:
        """Compare the centres, and every array of every checkpoint, with the plain program's."""
        for number, iteration in enumerate(self.expected):
            for at in range(self.shape.fragments):
                path = app.file_of(folder, number, at)
                if difference := arrays.difference(path, plain.checkpoint(iteration, at)):
                    return difference
        return "" if np.array_equal(answer, self.expected[-1].next_centres) else "the centres"

    def finish(self, answer: Any, out: Path) -> list[Path]:
        """Write the centres."""
        path = out / "centres.npy"
        np.save(path, answer)
        return [path]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; ends the program with a message if it makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m apps.kmeans",
        description="Find centres of random points, fragment by fragment, checkpoint every "
        "fragment in every iteration, and compare ways to run it.",
    )
    command.add_common(parser, "kmeans")
    add = parser.add_argument
    add("--fragments", type=command.positive, metavar="N", help="default 24 (--quick: 6)")
    add(
        "--points",
        type=command.positive,
        metavar="N",
        help="of each; default 12000 (--quick: 2000)",
    )
    add("--iterations", type=command.positive, default=3, metavar="N", help="default 3")
    return parser.parse_args(arguments)


def shape_of(options: argparse.Namespace) -> app.Shape:
    """Return the size that the options ask for."""
    fragments = 6 if options.quick else 24
    return app.Shape(
        fragments=options.fragments or fragments,
        points=options.points or app.Shape.points,
        iterations=options.iterations,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 1 if an answer differs."""
    options = parse(arguments)
    return command.main(KMeans(shape_of(options)), options)
