"""The command: makes a file of reads, aligns it lazily and eagerly, checks what it found."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from apps.common import command, release, release_command, wheels
from apps.variants import data as variants

from . import app, data, plain

PAIRS, QUICK_PAIRS = 48_000, 6000
GROUP = 2000
PART = 4


class Pairwise:
    """The application: so many pairs of reads in one file, which is made in a folder."""

    name = "pairwise"
    consumers: Collection[str] = ("align",)
    final: Collection[str] = ("total",)

    def __init__(self, folder: Path, pairs: int, group: int = GROUP, part: int = PART) -> None:
        given = variants.find_input()
        self.folder = folder
        self.pairs = pairs
        path = folder / f"{pairs}-pairs.fastq.gz"
        if not path.exists():
            data.make(given, path, pairs)
        group += group % 2  # both reads of a pair are in one group
        self.job = app.Job(path, given.genome, group, -(-2 * pairs // group), part)

    @cached_property
    def expected(self) -> app.Fit:
        """What the plain program finds."""
        return plain.run(self.job)

    def plain(self) -> app.Fit:
        """Return what the plain program finds."""
        return self.expected

    def about(self) -> str:
        """Return what is computed."""
        job, size = self.job, self.job.reads.stat().st_size
        return (
            f"{2 * self.pairs:,} reads in {job.groups} groups, {size / 1e6:.1f} MB compressed, "
            f"against {variants.read_genome(job.genome).name}; parts of {job.part} groups"
        )

    def run(self, way: str) -> release.Ran:
        """Run the program."""
        return app.run(self.job, way)

    def fingerprint(self, answer: Any) -> str:
        """Return a hash of an answer."""
        listed = repr(tuple(answer[:-1])).encode() + answer.depth.tobytes()
        return hashlib.sha256(listed).hexdigest()

    def check(self, answer: Any) -> str:
        """Compare an answer with the plain program's, exactly; empty: equal."""
        if answer[:-1] != self.expected[:-1]:
            return f"counts {answer[:-1]}, not {self.expected[:-1]}"
        return "" if np.array_equal(answer.depth, self.expected.depth) else "the depth"

    def finish(self, answer: Any, out: Path) -> list[Path]:
        """Write how many reads cover each position."""
        path = out / "depth.txt"
        np.savetxt(path, answer.depth, fmt="%d")
        return [path]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; ends the program with a message if it makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m apps.pairwise",
        description="Align the reads of a large compressed file, group by group: as a stream "
        "(eager), and in parts that fit in memory (lazy).",
    )
    release_command.add_common(parser, "pairwise")
    add = parser.add_argument
    add("--pairs", type=command.positive, metavar="N",
        help=f"pairs of reads; default {PAIRS} (--quick: {QUICK_PAIRS})")  # fmt: skip
    add("--group", type=command.positive, default=GROUP, metavar="N",
        help=f"reads that a task aligns; default {GROUP}")  # fmt: skip
    add("--part", type=command.positive, default=PART, metavar="N",
        help=f"groups that fit in memory; default {PART}")  # fmt: skip
    options = parser.parse_args(arguments)
    options.pairs = options.pairs or (QUICK_PAIRS if options.quick else PAIRS)
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 if an answer differs, 2 if it cannot run."""
    options = parse(arguments)
    try:
        application = Pairwise(options.out / "input", options.pairs, options.group, options.part)
    except wheels.DataMissingError as error:
        print(f"pairwise: {error}", file=sys.stderr)
        return 2
    return release_command.main(application, options)
