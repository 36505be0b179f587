"""The command of a program with a producer and consumers: lazy and eager, on each layer."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from . import command, layers, release

LEGEND = """\
total: from the first call of a task to the answer, in a session whose workers have started.
producer: until the first consumer could start, in the lazy run. ideal: the producer's time, then
its last consumer, then what needs all of them; or all work over the workers, if that is longer.
gain: of the lazy total."""


class Row(NamedTuple):
    """One run: seconds. `ideal_s` is that of the lazy run on the same layer."""

    layer: str
    way: str
    total_s: float
    producer_s: float | None
    ideal_s: float | None


def add_common(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the options that these programs have in common."""
    add = parser.add_argument
    ways, known = ", ".join(release.WAYS), ", ".join(layers.NAMES)
    add("--ways", type=lambda text: command.some_of(release.WAYS, text), default=release.WAYS,
        metavar="LIST", help=f"comma list of {ways}")  # fmt: skip
    add("--layers", type=lambda text: command.some_of(layers.NAMES, text), default=layers.NAMES,
        metavar="LIST", help=f"comma list of {known}, where the input is")  # fmt: skip
    add("--workers", type=command.positive, default=len(os.sched_getaffinity(0)), metavar="N",
        help="compute workers (default: the processors)")  # fmt: skip
    add("--out", type=command.folder, default=command.folder(f"out/{name}"), metavar="FOLDER",
        help="all output")  # fmt: skip
    add("--trace", type=command.folder, metavar="FOLDER", help="write a timeline of each run")
    add("--check", action="store_true", help="compare the answers with a plain run")
    add("--quick", action="store_true", help="a smaller input")


def table(rows: Sequence[Row]) -> str:
    """Return the table of all runs."""
    lazy = {row.layer: row.total_s for row in rows if row.way == "lazy"}
    lines: list[tuple[str, ...]] = [
        ("layer", "way", "total s", "producer s", "ideal s", "over ideal", "gain")
    ]
    for row in rows:
        base = lazy.get(row.layer)
        lines.append(
            (
                row.layer,
                row.way,
                f"{row.total_s:.2f}",
                f"{row.producer_s:.2f}" if row.producer_s is not None else "-",
                f"{row.ideal_s:.2f}" if row.ideal_s is not None else "-",
                f"{row.total_s / row.ideal_s:.2f}" if row.ideal_s else "-",
                f"{1 - row.total_s / base:.0%}" if base and row.way == "eager" else "-",
            )
        )
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


class Runs:
    """All runs of one command."""

    def __init__(self, application: release.Application, options: argparse.Namespace) -> None:
        self.application = application
        self.options = options
        self.layers = layers.layers_of(options.workers)
        self.rows: list[Row] = []
        self.files: list[Path] = []
        self.parts: dict[str, release.Parts] = {}
        self.wrong = 0

    def one(self, layer: str, way: str) -> None:
        """Run the program one way on one layer, and check its answer."""
        options, application = self.options, self.application
        trace = None
        if options.trace:
            options.trace.mkdir(parents=True, exist_ok=True)
            trace = options.trace / f"{layer}-{way}.json"
            self.files.append(trace)
        storage = release.write_storage(application, self.layers[layer], options.out)
        ran = release.run(application, way, options.workers, storage, trace)
        if way == "lazy":
            self.parts[layer] = release.parts(application, ran, options.workers)
        parts = self.parts.get(layer)
        times = (parts.producer_s, parts.ideal_s) if parts else (None, None)
        self.rows.append(Row(layer, way, ran.total_s, *times))
        text = f"{layer}, {way}: {ran.total_s:.2f} s"
        if options.check:
            difference = application.check(ran.answer)
            self.wrong += bool(difference)
            text += f": NOT as the plain run: {difference}" if difference else ", all equal"
        print(text, flush=True)
        if len(self.rows) == 1:
            self.files += application.finish(ran.answer, options.out)

    def conclude(self) -> int:
        """Print the table and what belongs to it; 1 if something was not equal."""
        print(f"\n{table(self.rows)}\n\n{LEGEND}")
        for name in self.options.layers:
            print(f"layer {name}: {self.layers[name].text}")
        if self.options.check:
            equal = len(self.rows) - self.wrong
            print(f"check: {equal} of {len(self.rows)} runs equal the plain run")
        for path in self.files:
            print(f"wrote {path}")
        return 1 if self.wrong else 0


def main(application: release.Application, options: argparse.Namespace) -> int:
    """Run both ways on every layer; 0, or 1 if an answer differs."""
    options.out.mkdir(parents=True, exist_ok=True)
    print(application.about(), flush=True)
    runs = Runs(application, options)
    for layer in options.layers:
        for way in options.ways:
            runs.one(layer, way)
    return runs.conclude()
