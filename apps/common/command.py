"""The command of an application: each mode on each layer, the answer checked, one table."""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import alongside as al

from . import layers, report
from .checkpoints import Checkpoints
from .spans import Span

MODES = ("sequential", "tasks", "io")

T = TypeVar("T")


class Outcome(NamedTuple):
    """What a run found, and when its tasks ran."""

    answer: Any
    spans: list[Span]


class Application(Protocol):
    """A program with checkpoints, and its input."""

    name: str

    def about(self) -> str:
        """Return what is computed and written, for people."""

    def run(self, checkpoints: Checkpoints, folder: Path) -> Outcome:
        """Compute, and write checkpoints into `folder`; under a session the calls are tasks."""

    def check(self, answer: Any, folder: Path) -> str:
        """Compare an answer and its checkpoints with the plain program's; empty: all equal."""

    def finish(self, answer: Any, out: Path) -> list[Path]:
        """Write what a user wants of the answer (a table, a picture) and return the files."""


def some_of(known: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the names of a comma list, in the order of `known`."""
    named = tuple(part.strip() for part in text.split(","))
    for name in named:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
    return tuple(name for name in known if name in named)


def positive(text: str) -> int:
    """Return a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def folder(text: str) -> Path:
    """Return a folder as an absolute path."""
    return Path(text).absolute()


def add_common(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the options that every application has."""
    add = parser.add_argument
    modes, known = ", ".join(MODES), ", ".join(layers.NAMES)
    add("--modes", type=lambda text: some_of(MODES, text), default=MODES, metavar="LIST",
        help=f"comma list of {modes}")  # fmt: skip
    add("--layers", type=lambda text: some_of(layers.NAMES, text), default=layers.NAMES,
        metavar="LIST", help=f"comma list of {known}")  # fmt: skip
    add("--bandwidth", default=None, metavar="B", help="what a checkpoint asks of its layer in "
        "mode io, such as 20MB/s or auto (default: nothing)")  # fmt: skip
    add("--workers", type=positive, default=len(os.sched_getaffinity(0)), metavar="N",
        help="compute workers (default: the processors)")  # fmt: skip
    add("--out", type=folder, default=folder(f"out/{name}"), metavar="FOLDER", help="all output")
    add("--trace", type=folder, metavar="FOLDER", help="write a timeline a run under a session")
    add("--check", action="store_true", help="compare everything with a plain run")
    add("--quick", action="store_true", help="a smaller input")


def timed(
    mode: str,
    limited: bool,
    run: Callable[[Checkpoints], T],
    checkpoints: Checkpoints,
    session: Callable[[], al.Session],
) -> tuple[T, float]:
    """Run the program as the mode says; what it found, and its seconds.

    Sequential: no session; on an emulated layer one that is there before the clock starts and
    does nothing but hold the layer's limiter. Otherwise the time is that of the whole session,
    from the start of its processes to its end, when every checkpoint is durable.
    """
    if mode != "sequential":
        start = time.perf_counter()
        with session():
            outcome = run(replace(checkpoints, as_io=mode == "io"))
        return outcome, time.perf_counter() - start
    with session() if limited else nullcontext():
        start = time.perf_counter()
        outcome = run(replace(checkpoints, inline=True))
        return outcome, time.perf_counter() - start


def prepared(
    options: argparse.Namespace, layer: layers.Layer, mode: str
) -> tuple[Path, Path | None]:
    """Return the storage description of a run, written, and the file of its timeline."""
    storage = options.out / f"storage-{layer.name}.toml"
    folder = options.out / "checkpoints"
    layers.write_storage(layer.name, folder, storage, layer.limit, layer.limit)
    if not options.trace or mode == "sequential":
        return storage, None
    options.trace.mkdir(parents=True, exist_ok=True)
    return storage, options.trace / f"{layer.name}-{mode}.json"


class Runs:
    """All runs of one command."""

    def __init__(self, application: Application, options: argparse.Namespace) -> None:
        self.application = application
        self.options = options
        self.layers = layers.layers_of(options.workers)
        self.rows: list[report.Row] = []
        self.files: list[Path] = []
        self.wrong = 0

    def one(self, layer: layers.Layer, mode: str) -> None:
        """Run the program in one mode on one layer, and check what it left."""
        options, application = self.options, self.application
        written = options.out / "checkpoints" / f"{layer.name}-{mode}"
        shutil.rmtree(written, ignore_errors=True)
        written.mkdir(parents=True)
        storage, trace = prepared(options, layer, mode)
        self.files += [trace] if trace else []
        outcome, total_s = timed(
            mode,
            layer.limit is not None,
            lambda checkpoints: application.run(checkpoints, written),
            Checkpoints(bandwidth=options.bandwidth),
            lambda: al.Session(options.workers, storage=storage, trace=trace),
        )
        processors = 1 if mode == "sequential" else options.workers
        self.rows.append(report.row(layer.name, mode, total_s, outcome.spans, processors))
        text = f"{layer.name}, {mode}: {total_s:.2f} s"
        if options.check:
            difference = application.check(outcome.answer, written)
            self.wrong += bool(difference)
            text += f": NOT as the plain run: {difference}" if difference else ", all equal"
        print(text, flush=True)
        if len(self.rows) == 1:
            self.files += application.finish(outcome.answer, options.out)
        shutil.rmtree(written)

    def conclude(self) -> int:
        """Print the table and what belongs to it; 1 if something was not equal."""
        print(f"\n{report.table(self.rows)}\n\n{report.LEGEND}")
        for name in dict.fromkeys(row.layer for row in self.rows):
            print(f"layer {name}: {self.layers[name].text}")
        for line in report.disturbed(self.rows) or report.gains(self.rows):
            print(line)
        if self.options.check:
            equal = len(self.rows) - self.wrong
            print(f"check: {equal} of {len(self.rows)} runs equal the plain run in every byte")
        for path in self.files:
            print(f"wrote {path}")
        return 1 if self.wrong else 0


def main(application: Application, options: argparse.Namespace) -> int:
    """Run every mode on every layer; 0, or 1 if an answer differs."""
    options.out.mkdir(parents=True, exist_ok=True)
    print(application.about(), flush=True)
    runs = Runs(application, options)
    for name in options.layers:
        for mode in options.modes:
            runs.one(runs.layers[name], mode)
    return runs.conclude()
