"""`python -m bench.overhead --out FOLDER [--quick]`: table, overhead.json and overhead.png.

Each contender runs in a fresh process for each row and repetition, in turns. With `--quick` the
timing rows of one contender and repetition share a process, and dask and ray have one repetition
except at starting: their start takes longer than what is measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.common import machine, report
from bench.common.interleave import Patience, Run, run_rounds
from bench.common.optional import NOT_INSTALLED, installed
from bench.common.progress import steps
from bench.common.sample import Sample
from bench.overhead.picture import draw
from bench.overhead.rows import (
    CONTENDERS,
    MEMCPY,
    MODULES,
    OURS,
    PACKAGES,
    QUESTIONS,
    RUNTIMES,
    Question,
)

Samples = dict[str, dict[str, Sample]]

TIMEOUT_S = 120.0
OUTSIDE = "startup"
MEMORY = "peak_memory"
SLOW = ("dask", "ray")
PATIENCE = "have S seconds to wait for a free machine and to repeat disturbed runs; default 0"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; impossible ones are refused before anything starts."""
    names = [question.name for question in QUESTIONS]
    parser = argparse.ArgumentParser(prog="bench.overhead", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), metavar="FOLDER")
    parser.add_argument("--quick", action="store_true", help="3 repetitions, shorter measurements")
    parser.add_argument("--repetitions", type=int, metavar="N", help="default 5; quick: 3")
    parser.add_argument(
        "--seconds", type=float, help="a row takes about this; default 1, quick 0.4"
    )
    parser.add_argument("--workers", type=int, default=machine.cores(), help="default: processors")
    parser.add_argument("--rows", default=",".join(names), help="some of: %(default)s")
    parser.add_argument("--patience", type=float, default=0.0, metavar="S", help=PATIENCE)
    parser.add_argument("--check", action="store_true", help="exit code 1 if a target is missed")
    options = parser.parse_args(arguments)
    options.rows = options.rows.split(",")
    unknown = [row for row in options.rows if row not in names]
    if unknown:
        parser.error(f"--rows: no row is called {unknown[0]!r}; the rows are {', '.join(names)}")
    options.repetitions = options.repetitions or (3 if options.quick else 5)
    options.seconds = options.seconds or (0.4 if options.quick else 1.0)
    if options.repetitions < 1 or options.workers < 1 or options.seconds <= 0:
        parser.error("--repetitions, --workers and --seconds must be positive")
    return options


def available(contender: str) -> bool:
    """Whether what the contender needs is installed."""
    package = PACKAGES.get(contender)
    return package is None or installed(package)


def make_run(contender: str, rows: Sequence[str], options: argparse.Namespace) -> Run:
    """The process that measures these rows of that contender."""
    module = f"on_{MODULES.get(contender, contender)}"
    if rows == [OUTSIDE]:
        script = Path(__file__).parent / "contenders" / f"{module}.py"
        return Run(contender, (str(script),), (OUTSIDE,), TIMEOUT_S, outside=True)
    slow = options.quick and contender in SLOW
    arguments = (
        "-m",
        "bench.overhead.measure",
        module.removeprefix("on_"),
        ",".join(rows),
        f"--workers={options.workers}",
        f"--seconds={options.seconds}",
        f"--calls={1 if options.quick else 3}",
    )
    return Run(
        contender,
        arguments,
        tuple(rows),
        TIMEOUT_S,
        memory=rows == [MEMORY],
        repetitions_max=1 if slow else None,
    )


def plan(options: argparse.Namespace) -> list[list[Run]]:
    """Groups of runs, each group the contenders of one round."""
    asked = [question for question in QUESTIONS if question.name in options.rows]
    apart = [question for question in asked if question.name in (OUTSIDE, MEMORY)]
    together = [question for question in asked if question not in apart]
    bundles = [together] if options.quick else [[question] for question in together]
    groups = []
    for bundle in [*filter(None, bundles), *([question] for question in apart)]:
        contenders = list(dict.fromkeys(c for question in bundle for c in question.contenders))
        groups.append(
            [
                make_run(contender, [q.name for q in bundle if contender in q.contenders], options)
                for contender in contenders
                if available(contender)
            ]
        )
    return groups


def complete(samples: Samples, rows: Sequence[str]) -> Samples:
    """The samples in the rows' and the contenders' order, with those not installed named so."""
    missing = Sample(note=NOT_INSTALLED)
    return {
        question.name: {
            contender: samples.get(question.name, {}).get(contender, missing)
            for contender in question.contenders
        }
        for question in QUESTIONS
        if question.name in rows
    }


def json_row(question: Question, samples: dict[str, Sample]) -> report.Row:
    """The row of the JSON file."""
    peers = {name: sample for name, sample in samples.items() if name != OURS}
    return report.make_row(question.name, question.unit, samples[OURS], peers, question.goal)


def ahead(question: Question, samples: dict[str, Sample]) -> str:
    """Whether ours is ahead of loky, dask and ray, and if not, behind whom and by how much."""
    ours = samples[OURS].median
    if ours is None:
        return ""
    behind = []
    for name in RUNTIMES:
        theirs = samples[name].median
        if theirs is None:
            continue
        factor = theirs / ours if question.goal.higher else ours / theirs
        if factor >= 1:
            behind.append(f"{name} x{factor:.2f}")
    return "behind " + ", ".join(behind) if behind else "yes"


def print_figures(console: Console, samples: Samples, repetitions: int) -> None:
    """The table of figures: a line a contender, a column a row of the JSON file."""
    asked = [question for question in QUESTIONS if question.name in samples]
    title = f"What a task costs: medians of {repetitions} runs, lowest..highest below"
    table = report.new_table(title, ["", *map(heading, asked)])
    for contender in (*CONTENDERS, MEMCPY):
        cells = [
            report.cell(samples[question.name][contender])
            if contender in samples[question.name]
            else ""
            for question in asked
        ]
        if any(cells):
            table.add_row(contender, *cells, style="bold" if contender == OURS else None)
    console.print(table)


def heading(question: Question) -> str:
    """The head of a row's column: name, unit, what is better."""
    better = "higher" if question.goal.higher else "lower"
    return f"{question.name}\n{question.words}\n{question.unit}, {better} is better"


def print_verdicts(console: Console, samples: Samples) -> None:
    """The table of ratios: a line a row of the JSON file."""
    columns = ["", "ratio of ours over", "ratio", "target", "reached", "ahead of loky, dask, ray"]
    table = report.new_table("What was to be reached", columns)
    for question in QUESTIONS:
        if question.name not in samples:
            continue
        row = samples[question.name]
        ratio = question.goal.ratio(row[OURS], row)
        peers = question.goal.peers
        table.add_row(
            question.name,
            peers[0] if len(peers) == 1 else f"the best of {', '.join(peers)}",
            "" if ratio is None else f"{ratio:.3g}",
            question.goal.text(),
            question.goal.verdict(ratio),
            ahead(question, row),
        )
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, tell, write; the exit code."""
    options = parse(arguments)
    os.environ["BENCH_WORKERS"] = str(options.workers)
    console = report.console()
    groups, patience = plan(options), Patience(options.patience)
    started, disturbance = time.perf_counter(), machine.Disturbance()
    with steps(console, sum(map(len, groups)) * options.repetitions) as tell:
        measured = run_rounds(
            groups,
            options.repetitions,
            lambda run, repetition: tell(f"{','.join(run.rows)} {run.contender} {repetition + 1}"),
            patience,
        )
    samples = complete(measured, options.rows)
    print_figures(console, samples, options.repetitions)
    print_verdicts(console, samples)
    rows = [
        json_row(question, samples[question.name])
        for question in QUESTIONS
        if question.name in samples
    ]
    report.write_json(options.out / "overhead.json", rows)
    note = f"{options.workers} workers each; {machine.describe()}; medians of {options.repetitions}"
    draw(samples, options.out / "overhead.png", note)
    console.print(f"{machine.describe()}; {options.workers} workers each. {disturbance.text()}")
    console.print(f"Runs thrown away because of others: {patience.thrown_away}.")
    console.print(
        f"{time.perf_counter() - started:.0f} s. Written: {options.out}/overhead.json, .png"
    )
    missed = [q.name for q, row in zip_rows(rows) if q.goal.verdict(row.ratio) != "yes"]
    if missed:
        console.print(f"Targets not reached: {', '.join(missed)}", style="bold")
    return 1 if options.check and missed else 0


def zip_rows(rows: Sequence[report.Row]) -> list[tuple[Question, report.Row]]:
    """Each JSON row with its question."""
    by_name = {question.name: question for question in QUESTIONS}
    return [(by_name[row.row], row) for row in rows]


if __name__ == "__main__":
    sys.exit(main())
