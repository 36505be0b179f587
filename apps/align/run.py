"""The command: runs the program in each mode on each layer, checks it, compares the references."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from apps.common import command, files, wheels
from apps.common.checkpoints import Checkpoints

from . import alignment, app, data, picture, plain

SAMPLES, PAIRS = 48, 2400
QUICK_SAMPLES = 8


class Align:
    """The application: so many sequence files of so many pairs, which are made in a folder."""

    name = "align"

    def __init__(self, samples: int, pairs: int, detail: str, sequences: Path) -> None:
        self.pairs = pairs
        self.job = app.Job(data.find_input(), sequences, samples, detail)
        data.prepare(self.job.given, sequences, samples, pairs)

    @cached_property
    def expected(self) -> list[plain.Sample]:
        """What the plain program computes."""
        return list(plain.run(self.job))

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """How many bytes the results have at most."""
        first, second = (len(content) for content in plain.one(self.job, 0).files)
        return math.ceil(first * app.SIZE_MARGIN), math.ceil(second * app.SIZE_MARGIN)

    def about(self) -> str:
        """Return what is computed and written."""
        genomes = [self.job.given.genome(at) for at in (0, 1)]
        against = " and ".join(f"{one.name} ({len(one.sequence):,} bases)" for one in genomes)
        first, second = (size / app.SIZE_MARGIN / 1e6 for size in self.sizes)
        return (
            f"{self.job.samples} sequence files of {self.pairs:,} pairs of reads against "
            f"{against}; {2 * self.job.samples} results ({self.job.detail}), MB: PAF {first:.2f}, "
            f"SAM {second:.2f}"
        )

    def run(self, checkpoints: Checkpoints, folder: Path) -> command.Outcome:
        """Run the program."""
        return app.run(self.job, self.sizes, checkpoints, folder)

    def check(self, answer: Any, folder: Path) -> str:
        """Compare every result, and the summaries, with the plain program's."""
        for sample, made in enumerate(self.expected):
            for reference, content in enumerate(made.files):
                path = app.file_of(folder, reference, sample)
                if not path.exists():
                    return f"{path.name} is not there"
                if difference := files.difference(path, content):
                    return difference
            for ours, theirs in zip(answer[sample], made.summaries, strict=True):
                if ours[:-1] != theirs[:-1] or not np.array_equal(ours.depth, theirs.depth):
                    return f"the summaries of {data.name_of(sample)}"
        return "" if len(answer) == len(self.expected) else "the number of samples"

    def finish(self, answer: Any, out: Path) -> list[Path]:
        """Write the summaries, and draw them if matplotlib is there."""
        genomes = [self.job.given.genome(at) for at in (0, 1)]
        path = out / "references.tsv"
        path.write_text(table(genomes, answer), encoding="ascii")
        return [path, *picture.draw(genomes, answer, out / "references.png")]


def table(
    genomes: Sequence[data.Genome],
    summaries: Sequence[tuple[alignment.Summary, alignment.Summary]],
) -> str:
    """Return the summaries as text, a line a sample and reference."""
    lines = ["sample\treference\treads\taligned\tdifferences_per_1000_bases\tcovered"]
    for sample, both in enumerate(summaries):
        for genome, one in zip(genomes, both, strict=True):
            rate = 1000 * one.differences / max(1, one.bases)
            covered = np.count_nonzero(one.depth) / len(one.depth)
            lines.append(
                f"{data.name_of(sample)}\t{genome.name}\t{one.reads}\t{one.aligned}\t"
                f"{rate:.3f}\t{covered:.4f}"
            )
    return "\n".join(lines) + "\n"


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; ends the program with a message if it makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m apps.align",
        description="Align files of reads to two reference genomes, write both results, and "
        "compare ways to run it.",
    )
    command.add_common(parser, "align")
    add = parser.add_argument
    add("--samples", type=command.positive, metavar="N",
        help=f"sequence files; default {SAMPLES} (--quick: {QUICK_SAMPLES})")  # fmt: skip
    add("--pairs", type=command.positive, default=PAIRS, metavar="N",
        help=f"pairs of reads a sequence file; default {PAIRS}")  # fmt: skip
    add("--detail", choices=alignment.DETAILS, default="full",
        help="how much is written of an alignment; default full")  # fmt: skip
    options = parser.parse_args(arguments)
    options.samples = options.samples or (QUICK_SAMPLES if options.quick else SAMPLES)
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 if an answer differs, 2 if it cannot run."""
    options = parse(arguments)
    try:
        application = Align(
            options.samples, options.pairs, options.detail, options.out / "sequences"
        )
    except wheels.DataMissingError as error:
        print(f"align: {error}", file=sys.stderr)
        return 2
    return command.main(application, options)
