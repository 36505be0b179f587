"""The command: runs the program in each mode on each layer, checks it, draws the end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from apps.common import arrays, command
from apps.common.checkpoints import Checkpoints

from . import app, model, picture


class GrayScott:
    """The application, for one size."""

    name = "grayscott"

    def __init__(self, shape: app.Shape) -> None:
        self.shape = shape

    @cached_property
    def expected(self) -> list[model.State]:
        """The whole cube at every checkpoint, by the plain program."""
        states = [model.first_state(self.shape.side)]
        for _ in range(self.shape.rounds):
            cube = model.wrapped(states[-1], self.shape.every)
            states.append(model.advance(cube, self.shape.every))
        return states[1:]

    def about(self) -> str:
        """Return what is computed and written."""
        shape = self.shape
        slab_bytes = 8 * shape.planes * shape.side**2
        return (
            f"a cube of {shape.side}^3 cells in {shape.slabs} slabs, {shape.steps} steps; "
            f"{shape.rounds * shape.slabs} checkpoints of {slab_bytes / 1e6:.2f} MB, one of each "
            f"slab every {shape.every} steps"
        )

    def run(self, checkpoints: Checkpoints, folder: Path) -> command.Outcome:
        """Run the program."""
        return app.run(self.shape, checkpoints, folder)

    def check(self, answer: Any, folder: Path) -> str:
        """Compare the end, and every checkpoint, with the plain program's."""
        planes = self.shape.planes
        for round_, cube in enumerate(self.expected, 1):
            for slab in range(self.shape.slabs):
                path = app.file_of(folder, round_ * self.shape.every, slab)
                own = np.s_[slab * planes : (slab + 1) * planes]
                if difference := arrays.difference(path, (("", field[own]) for field in cube)):
                    return difference
        equal = all(map(np.array_equal, answer, self.expected[-1]))
        return "" if equal else "the field at the end"

    def finish(self, answer: Any, out: Path) -> list[Path]:
        """Draw the field at the end, if matplotlib is there."""
        return picture.draw(answer, self.shape.steps, out / "grayscott.png")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; ends the program with a message if it makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m apps.grayscott",
        description="Follow two substances that react and spread in a cube, checkpoint every few "
        "steps, and compare ways to run it.",
    )
    command.add_common(parser, "grayscott")
    add = parser.add_argument
    add("--side", type=command.positive, metavar="N", help="of the cube; default 96 (--quick: 64)")
    add("--slabs", type=command.positive, default=4, metavar="N", help="default 4")
    add("--steps", type=command.positive, metavar="N", help="default 480 (--quick: 96)")
    add(
        "--every",
        type=command.positive,
        default=16,
        metavar="N",
        help="steps between checkpoints; default 16",
    )
    return parser.parse_args(arguments)


def shape_of(options: argparse.Namespace) -> app.Shape:
    """Return the size that the options ask for; ValueError if it cannot be cut so."""
    side, steps = (64, 96) if options.quick else (96, 480)
    return app.Shape(options.side or side, options.slabs, options.steps or steps, options.every)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 if an answer differs, 2 if it cannot run."""
    options = parse(arguments)
    try:
        shape = shape_of(options)
    except ValueError as error:
        print(f"grayscott: {error}", file=sys.stderr)
        return 2
    return command.main(GrayScott(shape), options)
