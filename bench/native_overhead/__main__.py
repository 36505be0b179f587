"""`python -m bench.native_overhead --out FOLDER [--quick]`: native-overhead.json and .png.

Empty tasks in three shapes, spawned by a task: 200,000 independent ones, 200,000 in a chain, and a
4-point stencil of 32 x 32 cells and 100 steps (five accesses a task). The contenders run in turns
and in fresh processes; OpenMP is gcc's, with each of its ways to wait. Every process also runs the
shape once with tasks that check their order.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.common import machine, report, style
from bench.common.interleave import ROOT, Patience, Run, run_rounds
from bench.common.native import (
    LIBRARY,
    WITH_LIBRARY,
    BuildError,
    compile_program,
    execute,
    with_environment,
)
from bench.common.progress import steps
from bench.common.report import Goal, number
from bench.common.sample import Sample

OURS = "alongside"
OPENMP = {"openmp": "", "openmp_active": "active", "openmp_passive": "passive"}
TASKFLOW = "taskflow"
NO_TASKFLOW = "not installed: Debian has no package of it"
CONTENDERS = (OURS, *OPENMP)
TIMEOUT_S = 120.0
ROW = "ns"
SOURCES = Path(__file__).parent
FOLDER = ROOT / "target" / "native-overhead"
PATIENCE = "have S seconds to wait for a free machine and to repeat disturbed runs; default 0"

Samples = dict[str, dict[str, Sample]]


@dataclass(frozen=True)
class Shape:
    """A graph of empty tasks, and what is to be reached there."""

    name: str
    words: str
    goal: Goal


SHAPES = (
    Shape("independent", "no accesses", Goal(tuple(OPENMP), None)),
    Shape("chain", "one datum", Goal(tuple(OPENMP), 1.0)),
    Shape("stencil", "five accesses", Goal(tuple(OPENMP), 1.0)),
)
"""gcc runs an independent task at once when many wait, so that one is no task there: no target."""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; impossible ones are refused before anything starts."""
    parser = argparse.ArgumentParser(prog="bench.native_overhead", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), metavar="FOLDER")
    parser.add_argument("--quick", action="store_true", help="3 repetitions")
    parser.add_argument("--repetitions", type=int, metavar="N", help="default 7; quick: 3")
    parser.add_argument("--rounds", type=int, default=3, help="of a process; default 3")
    parser.add_argument("--workers", type=int, default=machine.cores(), help="default: processors")
    parser.add_argument("--patience", type=float, default=0.0, metavar="S", help=PATIENCE)
    parser.add_argument("--check", action="store_true", help="exit code 1 if a target is missed")
    options = parser.parse_args(arguments)
    options.repetitions = options.repetitions or (3 if options.quick else 7)
    if min(options.repetitions, options.rounds, options.workers) < 1:
        parser.error("--repetitions, --rounds and --workers must be positive")
    return options


def build() -> dict[str, Path]:
    """The program of each contender."""
    shared = SOURCES / "shapes.c"
    ours = compile_program(FOLDER / "tasks", [SOURCES / "tasks.c", shared], WITH_LIBRARY)
    openmp = compile_program(FOLDER / "openmp", [SOURCES / "openmp.c", shared], ["-fopenmp"])
    return {OURS: ours} | dict.fromkeys(OPENMP, openmp)


def run_of(programs: dict[str, Path], contender: str, shape: Shape, workers: int, n: int) -> Run:
    """The process that measures this contender on this shape, in `n` rounds."""
    command: tuple[str, ...] = (str(programs[contender]), shape.name, str(workers), str(n))
    if policy := OPENMP.get(contender):
        command = with_environment(command, OMP_WAIT_POLICY=policy)
    return Run(contender, command, (ROW,), TIMEOUT_S)


def measure(options: argparse.Namespace, console: Console) -> Samples:
    """All contenders in turns, shape by shape; the samples as `[shape][contender]`."""
    programs, patience = build(), Patience(options.patience, execute)
    samples: Samples = {}
    with steps(console, len(SHAPES) * len(CONTENDERS) * options.repetitions) as tell:
        for shape in SHAPES:
            group = [
                run_of(programs, contender, shape, options.workers, options.rounds)
                for contender in CONTENDERS
            ]
            measured = run_rounds(
                [group],
                options.repetitions,
                lambda run, number: tell(f"{run.contender} {number + 1}"),
                patience,
            )
            samples[shape.name] = measured[ROW] | {TASKFLOW: Sample(note=NO_TASKFLOW)}
    return samples


def rows_of(samples: Samples) -> list[report.Row]:
    """The rows of the JSON file."""
    return [
        report.make_row(
            shape.name,
            ROW,
            samples[shape.name][OURS],
            {name: s for name, s in samples[shape.name].items() if name != OURS},
            shape.goal,
        )
        for shape in SHAPES
    ]


def print_table(console: Console, samples: Samples, rows: Sequence[report.Row]) -> None:
    """The table for people."""
    columns = ["", *CONTENDERS, TASKFLOW, "ratio", "target", "reached"]
    table = report.new_table("An empty task, ns: medians, lowest..highest below", columns)
    for shape, row in zip(SHAPES, rows, strict=True):
        table.add_row(
            f"{shape.name}\n{shape.words}",
            *(report.cell(samples[shape.name][name]) for name in (*CONTENDERS, TASKFLOW)),
            "" if row.ratio is None else f"{row.ratio:.3g}",
            shape.goal.text(),
            shape.goal.verdict(row.ratio),
        )
    console.print(table)
    console.print(
        "The ratio is to the best of OpenMP's three. An independent task of gcc is run at once by "
        "its spawner when 64 a thread wait, so it is hardly a task: no target there."
    )


def draw(samples: Samples, path: Path, note: str) -> None:
    """A panel a shape, a bar a contender."""
    made, panels = style.figure(1, len(SHAPES), width=4.0 * len(SHAPES), height=2.6)
    for panel, shape in zip(panels[0], SHAPES, strict=True):
        highest = max([s.high or 0.0 for s in samples[shape.name].values()])
        for place, name in enumerate(CONTENDERS):
            sample = samples[shape.name][name]
            if sample.median is None or sample.low is None or sample.high is None:
                panel.text(0, place, f" {sample.note}", va="center", fontsize=8, color="gray")
                continue
            panel.barh(place, sample.median, height=0.68, color=style.colour(name, OURS))
            panel.plot([sample.low, sample.high], [place] * 2, color="black", linewidth=1.1)
            where = (max(sample.high, sample.median), place)
            words = f" {number(sample.median)}"
            panel.annotate(words, where, va="center", fontsize=8, bbox=style.LABEL_BOX)
        panel.set_yticks(range(len(CONTENDERS)), [name.replace("_", " ") for name in CONTENDERS])
        panel.set_ylim(len(CONTENDERS) - 0.5, -0.5)
        panel.set_xlim(0, 1.2 * highest if highest else 1.0)
        panel.set_title(f"{shape.name} ({shape.words})", loc="left")
        panel.set_xlabel("ns a task (lower is better)")
    style.finish(made, path, "What an empty native task costs", note)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, tell, write; the exit code."""
    options = parse(arguments)
    if not LIBRARY.exists():
        print(f"bench.native_overhead: {LIBRARY.name} is not built: make native", file=sys.stderr)
        return 2
    console, disturbance = report.console(), machine.Disturbance()
    try:
        samples = measure(options, console)
    except BuildError as error:
        print(f"bench.native_overhead: {error}", file=sys.stderr)
        return 2
    rows = rows_of(samples)
    print_table(console, samples, rows)
    report.write_json(options.out / "native-overhead.json", rows)
    note = f"{options.workers} threads each; {machine.describe()}; medians of {options.repetitions}"
    draw(samples, options.out / "native-overhead.png", note)
    console.print(f"{note}. {disturbance.text()}")
    console.print(f"Written: {options.out}/native-overhead.json, .png")
    failures = [f"{row.row}: {row.ours}" for row in rows if isinstance(row.ours, str)]
    verdicts = [shape.goal.verdict(row.ratio) for shape, row in zip(SHAPES, rows, strict=True)]
    missed = [
        shape.name for shape, verdict in zip(SHAPES, verdicts, strict=True) if verdict == "NO"
    ]
    for failure in failures:
        console.print(f"FAILED: {failure}", style="bold")
    if missed:
        console.print(f"Targets not reached: {', '.join(missed)}", style="bold")
    return 1 if failures or (options.check and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
