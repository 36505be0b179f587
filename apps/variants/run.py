"""The command: runs the program in each mode on each layer, checks it, draws the variants."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from apps.common import command, files, wheels
from apps.common.checkpoints import Checkpoints

from . import app, data, picture, plain


class Variants:
    """The application, for so many samples, each of such a share of the reads."""

    name = "variants"

    def __init__(self, samples: int, share: float = data.SHARE) -> None:
        self.samples = samples
        self.input = data.find_input(share)

    @cached_property
    def expected(self) -> plain.Result:
        """What the plain program computes."""
        return plain.run(self.input, self.samples)

    def about(self) -> str:
        """Return what is computed and written."""
        pairs = round(self.input.share * len(data.read_pairs(self.input.reads)))
        genome = data.read_genome(self.input.genome)
        sizes = plain.sizes(self.input)
        listed = ", ".join(f"{kind} {size / 1e6:.2f}" for kind, size in sizes.items())
        return (
            f"{self.samples} samples of {pairs:,} pairs of reads, a genome of "
            f"{len(genome.sequence):,} bases; {self.samples * len(sizes)} checkpoints of five "
            f"kinds, MB: {listed}"
        )

    def run(self, checkpoints: Checkpoints, folder: Path) -> command.Outcome:
        """Run the program."""
        return app.run(self.input, self.samples, checkpoints, folder)

    def check(self, answer: Any, folder: Path) -> str:
        """Compare the variants, and every checkpoint, with the plain program's."""
        for sample, made in enumerate(self.expected.files):
            for kind, content in made.items():
                path = app.file_of(folder, kind, sample)
                if difference := files.difference(path, content):
                    return difference
        return "" if answer == self.expected.variants else "the variants of all samples"

    def finish(self, answer: Any, out: Path) -> list[Path]:
        """Write the variants, and draw them if matplotlib is there."""
        path = out / "variants.vcf"
        path.write_text(answer, encoding="ascii")
        return [path, *picture.draw(answer, out / "variants.png")]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; ends the program with a message if it makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m apps.variants",
        description="Find the variants of many samples against a reference genome, checkpoint "
        "after each of five phases, and compare ways to run it.",
    )
    command.add_common(parser, "variants")
    add = parser.add_argument
    add("--samples", type=command.positive, metavar="N", help="default 48 (--quick: 8)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 if an answer differs, 2 if it cannot run."""
    options = parse(arguments)
    try:
        application = Variants(options.samples or (8 if options.quick else 48))
    except wheels.DataMissingError as error:
        print(f"variants: {error}", file=sys.stderr)
        return 2
    return command.main(application, options)
