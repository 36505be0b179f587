"""`python -m bench.eager --out FOLDER [--quick]`: table, eager.json, eager.png and timelines.

Overheads: producers whose values do nothing, handed over at the end (`lazy`), one by one with
`returns=N` (`eager`), and as a stream (`stream`), in turns in one session. Applications: lazy and
eager from one source, each run compared with the plain program. Each run of these is a process of
its own, in turns. `--quick` has smaller values and inputs, and leaves ray out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from bench.common import machine, report
from bench.common.interleave import Patience, Run, run_once, run_rounds
from bench.common.optional import NOT_INSTALLED, installed
from bench.common.progress import steps
from bench.common.sample import Sample
from bench.eager import applications, measure, picture, rows
from bench.eager.cases import (
    LAZY,
    OURS,
    RAY,
    RELEASED,
    STREAM,
    Overhead,
    Work,
    overheads,
    works,
)

TIMEOUT_S = 300.0
SHORT = 63
"""Repetitions of what is short: a process is off by 5 to 10 % for its whole life, 2 % count."""
DISK_MAX = 21
"""Repetitions of applications on the disk as it is, where they gain little, and of releases."""
WORK_MAX = 15
"""Repetitions of applications at their largest size on a limited layer: steadier, seconds each."""
LONG_MAX = 3
"""Repetitions where nothing is close, or a run takes a minute."""
LEFT_OUT = "left out by --quick"
PATIENCE = "have S seconds to wait for a free machine and to repeat disturbed runs; default 0"
TRACED = (LAZY, OURS)
LAYERS = ("hpc-node", "disk")
ON_OURS = (LAZY, OURS, STREAM)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; impossible ones are refused before anything starts."""
    known = list(applications.SIZES)
    parser = argparse.ArgumentParser(prog="bench.eager", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, default=Path("out/bench"), metavar="FOLDER")
    add("--quick", action="store_true", help="small inputs, 2 repetitions, without ray")
    often = (
        f"default {SHORT}, of applications {DISK_MAX}, on a limited layer {WORK_MAX}, of what "
        f"takes long {LONG_MAX}; quick: 2"
    )
    add("--repetitions", type=int, metavar="N", help=often)
    add("--seconds", type=float, help="a small case is repeated so long; default 0.5, quick 0.05")
    add("--workers", type=int, default=machine.cores(), help="default: processors")
    add("--applications", default=",".join(known), help="some of: %(default)s; or none")
    add("--no-overheads", action="store_true", help="the applications only")
    add("--patience", type=float, default=0.0, metavar="S", help=PATIENCE)
    add("--check", action="store_true", help="exit code 1 if a target is missed")
    options = parser.parse_args(arguments)
    named = [] if options.applications == "none" else options.applications.split(",")
    unknown = [name for name in named if name not in known]
    if unknown:
        parser.error(f"--applications: {unknown[0]!r} is none of {', '.join(known)}, none")
    options.applications = named
    options.repetitions = options.repetitions or (2 if options.quick else SHORT)
    if options.seconds is None:
        options.seconds = 0.05 if options.quick else 0.5
    if options.repetitions < 1 or options.workers < 1 or options.seconds <= 0:
        parser.error("--repetitions, --workers and --seconds must be positive")
    return options


@dataclass
class Bench:
    """What is measured, with what, and why something is not."""

    options: argparse.Namespace
    folder: Path
    cases: list[Overhead] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    expected: dict[Work, str] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def no_ray(self) -> str:
        """Why ray is not run; empty: it is."""
        if self.options.quick:
            return LEFT_OUT
        return "" if installed(RAY) else NOT_INSTALLED

    def prepare(self) -> None:
        """Choose the cases, make the inputs, and run the plain programs."""
        options = self.options
        self.cases = [] if options.no_overheads else overheads(quick=options.quick)
        sizes = applications.QUICK_SIZES if options.quick else applications.SIZES
        layers = LAYERS[:1] if options.quick else LAYERS
        self.works = works({name: sizes[name] for name in options.applications}, layers)
        found: dict[tuple[str, int], str] = {}
        for work in self.works:
            key = (work.application, work.size)
            if work.application in self.missing:
                continue
            try:
                made = applications.make(*key, self.folder, quick=options.quick)
                if key not in found:
                    found[key] = made.fingerprint(made.plain())
            except Exception as error:  # whatever is missing, it is said in the rows
                self.missing[work.application] = f"{type(error).__name__}: {error}"[:200]
                continue
            self.expected[work] = found[key]
            self.about[work.application] = made.about()

    def groups(self) -> list[list[Run]]:
        """Groups of runs, each group the contenders in turns."""
        options = self.options
        ray = [] if self.no_ray else [RAY]
        together = [ON_OURS, (RAY,)] if ray else [ON_OURS]
        bundles = [self.cases] if options.quick and self.cases else [[one] for one in self.cases]
        made = [[self.overhead_run(names, bundle) for names in together] for bundle in bundles]
        made += [[self.cost_run()]] if self.cases else []
        runnable = [LAZY, OURS, *ray]
        made += [[self.work_run(one, work) for one in runnable] for work in self.expected]
        return made

    def overhead_run(self, contenders: Sequence[str], cases: list[Overhead]) -> Run:
        """The process that runs some cases, these contenders in turns in one session."""
        arguments = measure.overhead_arguments(
            contenders, cases, self.options.workers, self.options.seconds
        )
        names = tuple(measure.overhead_row(case, one) for case in cases for one in contenders)
        long = RAY in contenders or any(case.integers > 1 for case in cases)
        most = LONG_MAX if long else None
        return Run(contenders[0], arguments, names, TIMEOUT_S, repetitions_max=most)

    def cost_run(self) -> Run:
        """The process that measures what releases take their task."""
        named = [measure.cost_row(integers) for integers in RELEASED]
        names = [f"{name}{part}" for name in named for part in ("", f":{measure.SERIALISING}")]
        arguments = measure.cost_arguments(self.options.workers, RELEASED)
        return Run(OURS, arguments, tuple(names), TIMEOUT_S, repetitions_max=DISK_MAX)

    def work_run(self, contender: str, work: Work, timeline: Path | None = None) -> Run:
        """The process that runs an application once."""
        arguments = measure.work_arguments(
            contender, work, self.options.workers, self.folder, self.expected[work],
            quick=self.options.quick, timeline=timeline,
        )  # fmt: skip
        parts = measure.PARTS if contender == LAZY else ()
        names = (work.name, *(f"{work.name}:{part}" for part in parts))
        most = LONG_MAX
        if work.is_largest and contender != RAY:
            most = WORK_MAX if work.layer == LAYERS[0] else DISK_MAX
        return Run(contender, arguments, names, TIMEOUT_S, repetitions_max=most)

    def timelines(self) -> list[Path]:
        """Run the first application once more, each way, for its timelines; their files."""
        first = next((w for w in self.expected if w.is_largest), None)
        if first is None:
            return []
        folder = self.options.out / "eager-timelines"
        folder.mkdir(parents=True, exist_ok=True)
        paths = [(folder / f"{first.name}-{way}.json").absolute() for way in TRACED]
        for way, path in zip(TRACED, paths, strict=True):
            run_once(self.work_run(way, first, path))
        return [path for path in paths if path.exists()]

    def complete(self, samples: rows.Samples) -> rows.Samples:
        """The samples, and why some are not there."""
        made = {name: dict(of) for name, of in samples.items()}
        for case in self.cases:
            for contender in (*ON_OURS, RAY):
                for sample in made.pop(measure.overhead_row(case, contender), {}).values():
                    made.setdefault(case.name, {})[contender] = sample
        why = {case.name: "" for case in self.cases}
        why |= {work.name: self.missing.get(work.application, "") for work in self.works}
        for name, missing in why.items():
            of_row = made.setdefault(name, {})
            for contender in (*ON_OURS, RAY):
                if missing:
                    of_row[contender] = Sample(note=missing)
                elif contender == RAY and self.no_ray:
                    of_row[RAY] = Sample(note=self.no_ray)
        return made


def print_table(console: Console, found: Sequence[report.Row]) -> None:
    """A line a row of the JSON file."""
    columns = ["", "unit", "ours", "lazy", "ideal", "ray", "ratio", "target", "reached"]
    title = "Consumers that start before their producer has ended"
    table = report.new_table(title, columns)
    for row in found:
        cells = [shown(row.against.get(name)) for name in (LAZY, "ideal", RAY)]
        if measure.SERIALISING in row.against:
            cells[1] = shown(row.against[measure.SERIALISING])
        target = "" if row.target is None else f"<= {row.target:g}"
        reached = "" if row.ratio is None or row.target is None else "yes"
        over = "" if row.ratio is None else f"{row.ratio:.3f}"
        table.add_row(
            row.row, row.unit, shown(row.ours), *cells, over, target,
            "NO" if rows.is_missed(row) else reached,
        )  # fmt: skip
    console.print(table)
    for row in found:
        if "row" in row.against:
            console.print(f"{row.row}: that of {row.against['row']}")


def shown(value: report.Value) -> str:
    """A cell of the table."""
    if isinstance(value, str):
        return value if len(value) < 24 else f"{value[:20]}..."
    return "" if value is None else report.number(value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, tell, write; the exit code."""
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    console, began = report.console(), time.perf_counter()
    disturbance, patience = machine.Disturbance(), Patience(options.patience)
    with tempfile.TemporaryDirectory(prefix="bench-eager-") as folder:
        bench = Bench(options, Path(folder))
        bench.prepare()
        groups = bench.groups()
        with steps(console, sum(map(len, groups)) * options.repetitions) as tell:
            measured = run_rounds(
                groups,
                options.repetitions,
                lambda run, number: tell(f"{run.rows[0]} {run.contender} {number + 1}"),
                patience,
            )
        timelines = bench.timelines()
    samples = bench.complete(measured)
    found = rows.all_rows(bench.cases, bench.works, samples)
    print_table(console, found)
    report.write_json(options.out / "eager.json", found)
    note = (
        f"{options.workers} workers; {machine.describe()}; medians of at most "
        f"{options.repetitions}, of what takes long of {min(LONG_MAX, options.repetitions)}. Input "
        "at the bandwidth that an HPC node has for so many cores, where it does not say disk."
    )
    picture.draw(bench.cases, bench.works, samples, timelines, options.out / "eager.png", note)
    for name, about in bench.about.items():
        console.print(f"{name}: {about}")
    for name, why in bench.missing.items():
        console.print(f"{name} was not run: {why}", style="bold")
    console.print(f"{machine.describe()}; {disturbance.text()}")
    console.print(f"Runs thrown away because of others: {patience.thrown_away}.")
    for path in (options.out / "eager.json", options.out / "eager.png", *timelines):
        console.print(f"wrote {path}")
    console.print(f"{time.perf_counter() - began:.0f} s")
    missed = [row.row for row in found if rows.is_missed(row)]
    if missed:
        console.print(f"Targets not reached: {', '.join(missed)}", style="bold")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
