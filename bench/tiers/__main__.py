"""`python -m bench.tiers --out FOLDER [--quick]`: tiers.json and .png.

Applications that write files, on three layers: memory, the disk, and a slow shared disk, where
their files belong. All I/O on the slow layer alone (the baseline); each policy; the best of them
with flush, and with prefetch as well. The bandwidth of the slow layer is set so that writing
everything to it takes `--balance` times as long as computing everything; memory and the disk have
room for a part of it. The ways take turns; after every run every file is compared.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

import alongside as al
from apps.common.checkpoints import Checkpoints
from apps.common.command import Application, some_of
from bench.common import machine, report
from bench.common.progress import Tell, steps
from bench.common.slow_disk import SlowDisk, slow_disk

from . import cases, picture
from .cases import APPLICATIONS, BASELINE
from .measure import Bench, Results
from .rows import is_missed, rows_of

MEMORY = Path("/dev/shm")
SLOW_ROOM = 1.5
"""Of what is written: room on the slow disk, for files and copies of them under way."""


@dataclass
class Case:
    """An application, and what each way came to; the baseline is the first."""

    name: str
    words: list[str]
    results: list[Results]

    @property
    def best(self) -> str:
        """The way that the rows without a suffix stand for."""
        flushed = [one.way.name for one in self.results if one.way.name == "flush" and one.runs]
        return flushed[0] if flushed else best_of(self.results[1:]).way.name


def best_of(results: Sequence[Results]) -> Results:
    """The way with the shortest median total; the first, if there is none."""
    return min(results, key=lambda one: one.sample("total_s").median or float("inf"))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; impossible ones are refused before anything starts."""
    parser = argparse.ArgumentParser(prog="bench.tiers", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, default=Path("out/bench"), metavar="FOLDER")
    add("--quick", action="store_true", help="small, once")
    add("--repetitions", type=int, metavar="N", help="default 3; quick: 1")
    add("--workers", type=int, default=machine.cores(), help="default: the processors")
    add("--applications", type=lambda text: some_of(tuple(APPLICATIONS), text),
        default=tuple(APPLICATIONS), metavar="LIST", help="default: all")  # fmt: skip
    add("--balance", type=float, default=2.5, metavar="X",
        help="writing all to the slow layer, over computing all; default 2.5")  # fmt: skip
    add("--memory", type=float, default=0.42, metavar="SHARE",
        help="room in memory, of all that is written; default 0.42")  # fmt: skip
    add("--disk", type=float, default=0.35, metavar="SHARE",
        help="room on the disk, of all that is written; default 0.35")  # fmt: skip
    add("--policies", type=lambda text: some_of(cases.POLICIES, text), default=cases.POLICIES,
        metavar="LIST", help="default: all")  # fmt: skip
    add("--trace", type=Path, metavar="FOLDER", help="write a timeline a way: its last run")
    add("--check", action="store_true", help="exit code 1 if a target is missed")
    options = parser.parse_args(arguments)
    options.repetitions = options.repetitions or (1 if options.quick else 3)
    if options.trace:
        options.trace.mkdir(parents=True, exist_ok=True)
    if min(options.repetitions, options.workers) < 1:
        parser.error("--repetitions and --workers must be positive")
    if min(options.balance, options.memory, options.disk) <= 0:
        parser.error("--balance, --memory and --disk must be positive")
    return options


def calibrated(application: Application, workers: int, folder: Path) -> tuple[int, float]:
    """The bytes that it writes, and the seconds that the processors need for its computation."""
    folder.mkdir(parents=True)
    with al.Session(workers):
        outcome = application.run(Checkpoints(), folder)
    shutil.rmtree(folder)
    written = sum(span.bytes for span in outcome.spans if span.kind == "checkpoint")
    return written, sum(span.cpu_ns for span in outcome.spans) / 1e9 / workers


def rounds(bench: Bench, results: Sequence[Results], repetitions: int, tell: Tell) -> None:
    """Run all ways in turns."""
    for repetition in range(repetitions):
        for one in results:
            tell(f"{bench.application.name}: {one.way.name} {repetition + 1}")
            one.add(bench)


def prepared(
    options: argparse.Namespace,
    make: Callable[[Path], Application],
    slow: SlowDisk,
    memory: Path,
    written: int,
) -> tuple[Bench, list[str]]:
    """The application on its layers, and these in words."""
    folder, inputs = options.out.absolute() / "tiers", slow.folder / "inputs"
    shares = (options.memory, options.disk)
    made = cases.tiers((memory / "layer", folder / "disk"), slow, written, shares)
    with slow.at_full_speed():
        application = make(inputs)
    return Bench(
        application,
        options.workers,
        slow,
        made,
        cases.write(made.layers, folder / "all.toml"),
        cases.write([made.slow], folder / "slow.toml"),
        inputs,
        options.trace,
    ), cases.describe(made, slow)


def run_case(options: argparse.Namespace, name: str, console: Console) -> Case:
    """All ways of one application."""

    def make(inputs: Path) -> Application:
        return APPLICATIONS[name](options.quick, inputs)

    with ExitStack() as stack:
        folder = options.out.absolute() / "tiers"
        folder.mkdir(parents=True, exist_ok=True)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        memory = Path(tempfile.mkdtemp(prefix="alongside-tiers-", dir=MEMORY))
        stack.callback(shutil.rmtree, memory, ignore_errors=True)
        first = make(memory / "inputs")
        written, compute_s = calibrated(first, options.workers, memory / "first")
        shutil.rmtree(memory / "inputs", ignore_errors=True)
        bandwidth = round(written / (options.balance * compute_s))
        console.print(
            f"{name}: {first.about()}. It writes {written / 1e6:.1f} MB and computes for "
            f"{compute_s:.1f} s on {options.workers} processors; writing all of it to the slow "
            f"layer takes {options.balance:g} times as long."
        )
        slow = stack.enter_context(slow_disk(folder, bandwidth, round(written * SLOW_ROOM)))
        bench, words = prepared(options, make, slow, memory, written)
        baseline, tried = (
            Results(BASELINE),
            [Results(way) for way in cases.policies(options.policies)],
        )
        count = options.repetitions * (1 + len(tried))
        with steps(console, count) as tell:
            rounds(bench, [baseline, *tried], options.repetitions, tell)
        moved = [Results(way) for way in cases.moving(best_of(tried).way)]
        with steps(console, options.repetitions * (1 + len(moved))) as tell:
            rounds(bench, [baseline, *moved], options.repetitions, tell)
        return Case(name, words, [baseline, *tried, *moved])


def print_table(console: Console, case: Case) -> None:
    """The table for people."""
    columns = ["", "total s", "of baseline", "all at home s", "I/O s", "speed-up", "I/O elapsed s"]
    columns += ["memory", "disk", "slow"]
    table = report.new_table(f"{case.name}: medians", columns)
    base_total = case.results[0].sample("total_s").median
    base_io = case.results[0].sample("io_s").median
    notes = []
    for one in case.results:
        total, io = one.sample("total_s").median, one.sample("io_s").median
        if total is None or io is None:
            table.add_row(one.way.words, "-")
            notes.append(f"{one.way.words}: {one.note}")
            continue
        table.add_row(
            one.way.words,
            report.cell(one.sample("total_s")),
            f"{total / base_total:.3f}" if base_total else "-",
            report.cell(one.sample("home_s")),
            report.cell(one.sample("io_s")),
            f"{base_io / io:.2f}" if base_io else "-",
            report.cell(one.sample("io_elapsed_s")),
            *(f"{share:.0%}" for share in one.placed().values()),
        )
    console.print(table)
    for line in (*case.words, *dict.fromkeys(notes)):
        console.print(line)


LEGEND = """\
total: from before the session starts until its last task has ended; all at home: until the session
has ended and every file stands at its own path, on the slow layer. I/O: time inside the bodies of
I/O tasks, added up; elapsed: the time in which any of them ran. memory, disk, slow: the share of
the bytes that were there when the last task ended. The ratios of the rows are of total and I/O."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, tell, write; the exit code."""
    options = parse(arguments)
    console, disturbance = report.console(), machine.Disturbance()
    begun, measured = time.perf_counter(), []
    for name in options.applications:
        measured.append(run_case(options, name, console))
        print_table(console, measured[-1])
    console.print(LEGEND)
    rows = []
    for case in measured:
        rows += rows_of(case.name, case.results[0], case.results[1:], case.best)
    report.write_json(options.out / "tiers.json", rows)
    note = (
        f"{options.workers} workers, {cases.IO_EXECUTORS} I/O executors, balance "
        f"{options.balance:g}; {machine.describe()}; medians of {options.repetitions}"
    )
    if drawn := [case for case in measured if case.results[0].runs]:
        picture.draw(drawn, options.out / "tiers.png", note)
    console.print(f"{note}. {disturbance.text()}")
    console.print(f"{time.perf_counter() - begun:.0f} s. Written: {options.out}/tiers.json, .png")
    missed = [f"{row.row} {row.ratio}" for row in rows if is_missed(row)]
    if missed:
        console.print(f"Targets not reached: {', '.join(missed)}", style="bold")
    failed = [one for case in measured for one in case.results if one.is_failed]
    return 1 if failed or (options.check and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
