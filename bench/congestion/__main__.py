"""`python -m bench.congestion --out FOLDER [--quick]`: congestion.json and .png.

Applications that checkpoint, on a layer that is slow for too many writers at once: checkpoints as
compute tasks (the baseline), as I/O tasks without a constraint, under static constraints, and with
`auto`, `auto(min,max,delta)` and `adaptive`. The layer's best bandwidth is set so that writing
everything at it takes as long as computing everything. The ways take turns; the first run of each
is compared byte by byte with the plain program.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

import alongside as al
from apps.common.checkpoints import Checkpoints
from apps.common.command import Application, some_of
from bench.common import machine, report
from bench.common.progress import steps
from bench.common.report import Goal
from bench.common.sample import Sample

from . import picture
from .cases import APPLICATIONS, IO_EXECUTORS, LAYERS, contenders, describe

WAYS = tuple(one.name for one in contenders(1))
TUNED = ("auto", "bounded", "adaptive")
WITHIN = 1.05
WITHIN_OF = {"variants": 1.08}
NO_HARM = 1.03


@dataclass
class Way:
    """What a way to run the checkpoints came to, one value a repetition."""

    at_once: int | None
    total_s: list[float] = field(default_factory=list)
    write_s: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    found: str = ""

    @property
    def sample(self) -> Sample:
        """The totals."""
        return Sample(tuple(self.total_s))


@dataclass
class Case:
    """An application on a layer."""

    name: str
    layer: str
    words: str
    ways: dict[str, Way]

    @property
    def best_static(self) -> str:
        """The static constraint with the shortest median."""
        fixed = [name for name, way in self.ways.items() if way.at_once is not None]
        fixed = fixed or list(self.ways)
        return min(fixed, key=lambda name: self.ways[name].sample.median or float("inf"))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; impossible ones are refused before anything starts."""
    parser = argparse.ArgumentParser(prog="bench.congestion", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, default=Path("out/bench"), metavar="FOLDER")
    add("--quick", action="store_true", help="kmeans3 alone, small, once")
    add("--repetitions", type=int, metavar="N", help="default 3; quick: 1")
    add("--workers", type=int, default=machine.cores(), help="default: the processors")
    add("--applications", type=lambda text: some_of(tuple(APPLICATIONS), text), metavar="LIST")
    add("--layers", type=lambda text: some_of(LAYERS, text), default=("congested",),
        metavar="LIST", help=f"comma list of {', '.join(LAYERS)}; default congested")  # fmt: skip
    add("--ways", type=lambda text: some_of(WAYS, text), default=WAYS, metavar="LIST",
        help="comma list; default all. Rows are for those that ran")  # fmt: skip
    add("--check", action="store_true", help="exit code 1 if a target is missed")
    options = parser.parse_args(arguments)
    options.repetitions = options.repetitions or (1 if options.quick else 3)
    if options.applications is None:
        options.applications = ("kmeans3",) if options.quick else tuple(APPLICATIONS)
    if min(options.repetitions, options.workers) < 1:
        parser.error("--repetitions and --workers must be positive")
    return options


def best_bandwidth(application: Application, workers: int, folder: Path) -> int:
    """Bytes a second at which writing takes as long as computing, by a run on the bare disk."""
    folder.mkdir(parents=True, exist_ok=True)
    with al.Session(workers):
        outcome = application.run(Checkpoints(), folder)
    shutil.rmtree(folder)
    cpu_s = sum(span.cpu_ns for span in outcome.spans) / 1e9
    return round(sum(span.bytes for span in outcome.spans) / (cpu_s / workers))


def found(session: al.Session) -> str:
    """What tuning chose, in words."""
    words = []
    for one in session.statistics().tuned:
        if one.state == "window":
            words.append(f"{one.tasks} at once")
        else:
            constraint = (one.constraint or 0) / 1e6
            words.append(f"{constraint:.2f} MB/s, {len(one.epochs)} epochs")
    return "; ".join(words)


def run_case(
    options: argparse.Namespace, name: str, layer: str, best: int, console: Console
) -> Case:
    """All ways of one application on one layer, in turns."""
    application = APPLICATIONS[name](options.quick)
    files, storage = options.out / "congestion-files", options.out / "congestion-storage.toml"
    shutil.rmtree(files, ignore_errors=True)  # of a run that was stopped
    files.mkdir(parents=True)
    words = describe(layer, best, files.absolute(), storage)
    listed = [one for one in contenders(best) if one.name in options.ways]
    case = Case(name, layer, words, {one.name: Way(one.at_once) for one in listed})
    with steps(console, options.repetitions * len(listed)) as tell:
        for repetition in range(options.repetitions):
            for one in listed:
                tell(f"{name}, {layer}: {one.name} {repetition + 1}")
                folder = (files / "run").absolute()
                folder.mkdir()
                start = time.perf_counter()
                with al.Session(options.workers, IO_EXECUTORS, storage) as session:
                    outcome = application.run(one.checkpoints, folder)
                total_s = time.perf_counter() - start
                if repetition == 0 and (wrong := application.check(outcome.answer, folder)):
                    raise RuntimeError(f"{name}, {one.name}: not as the plain run: {wrong}")
                shutil.rmtree(folder)
                writes = [span for span in outcome.spans if span.kind == "checkpoint"]
                active = max(s.end_ns for s in writes) - min(s.start_ns for s in writes)
                way = case.ways[one.name]
                way.total_s.append(total_s)
                way.write_s.append(sum(s.end_ns - s.start_ns for s in writes) / len(writes) / 1e9)
                way.rate.append(sum(s.bytes for s in writes) / active * 1e3)
                way.found = found(session)
    shutil.rmtree(files)
    storage.unlink()
    return case


def rows_of(case: Case) -> list[report.Row]:
    """The rows of the JSON file."""
    samples = {name: way.sample for name, way in case.ways.items()}
    suffix = "" if case.layer == "congested" else f"_{case.layer}"
    best, rows = case.best_static, []
    within = WITHIN_OF.get(case.name, WITHIN)

    def add(row: str, ours: str, peer: str, target: float | None) -> None:
        if ours not in samples or peer not in samples:
            return
        peers = {peer: samples[peer]}
        rows.append(report.make_row(f"{case.name}_{row}{suffix}", "s", samples[ours], peers,
                                    Goal((peer,), target)))  # fmt: skip

    for tuned in TUNED:
        if case.layer == "congested":
            add(tuned, tuned, best, within)
        else:
            add(tuned, tuned, "unconstrained", NO_HARM)
    add("best_static", best, "baseline", 1.0)
    add("unconstrained", "unconstrained", "baseline", None)
    if case.layer == "congested":
        add("best_static_over_unconstrained", best, "unconstrained", 1.0)
    return rows


def print_table(console: Console, case: Case) -> None:
    """The table for people."""
    columns = ["", "total s", "of baseline", "of best static", "mean write s", "MB/s", "found"]
    table = report.new_table(f"{case.name} on {case.layer}: {case.words}", columns)
    middle = {name: way.sample.median or 0.0 for name, way in case.ways.items()}
    for name, way in case.ways.items():
        table.add_row(
            name.replace("_", ", ") + (" at once" if way.at_once else ""),
            report.cell(way.sample),
            f"{middle[name] / middle['baseline']:.3f}" if "baseline" in middle else "",
            f"{middle[name] / middle[case.best_static]:.3f}",
            report.cell(Sample(tuple(way.write_s))),
            f"{Sample(tuple(way.rate)).median:.1f}",
            way.found,
        )
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, tell, write; the exit code."""
    options = parse(arguments)
    console, disturbance = report.console(), machine.Disturbance()
    cases = []
    for name in options.applications:
        application = APPLICATIONS[name](options.quick)
        console.print(f"{name}: {application.about()}")
        best = best_bandwidth(application, options.workers, options.out / "congestion-first")
        for layer in options.layers:
            cases.append(run_case(options, name, layer, best, console))
            print_table(console, cases[-1])
    rows = [row for case in cases for row in rows_of(case)]
    report.write_json(options.out / "congestion.json", rows)
    note = (
        f"{options.workers} workers, {IO_EXECUTORS} I/O executors; {machine.describe()}; "
        f"medians of {options.repetitions}"
    )
    picture.draw(cases, options.out / "congestion.png", note)
    console.print(f"{note}. {disturbance.text()}")
    console.print(f"Written: {options.out}/congestion.json, .png")
    missed = [
        f"{row.row} {row.ratio}"
        for row in rows
        if row.ratio is not None and row.target is not None and row.ratio > row.target
    ]
    if missed:
        console.print(f"Targets not reached: {', '.join(missed)}", style="bold")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
