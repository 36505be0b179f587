"""`python -m bench.engine --out FOLDER [--quick]`: table, engine.json and engine.png.

Random direct requests on one file, 64 in flight: our engine from one thread, fio with io_uring from
one thread, fio with 64 threads in blocking calls, and 64 threads of ours in blocking calls. Each
contender runs in a fresh process for each workload and repetition, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from bench.common import machine, report
from bench.common.interleave import ROOT, Patience, Run, run_rounds
from bench.common.optional import NOT_INSTALLED
from bench.common.progress import steps
from bench.common.sample import Sample
from bench.engine.measure import Plan
from bench.engine.picture import draw
from bench.engine.rows import CONTENDERS, OURS, WORKLOADS, Question, question

Samples = dict[str, dict[str, Sample]]

TIMEOUT_S = 120.0
PIECE_BYTES = 8 << 20
PATIENCE = "have S seconds to wait for a free machine and to repeat disturbed runs; default 0"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; impossible ones are refused before anything starts."""
    names = [workload.name for workload in WORKLOADS]
    parser = argparse.ArgumentParser(prog="bench.engine", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), metavar="FOLDER")
    parser.add_argument("--quick", action="store_true", help="3 repetitions, shorter runs")
    parser.add_argument("--repetitions", type=int, metavar="N", help="default 7; quick: 3")
    parser.add_argument("--seconds", type=float, help="of a run; default 3, quick 0.7")
    parser.add_argument("--file-bytes", type=float, help="default 2e9, quick 5e8")
    parser.add_argument("--depth", type=int, default=64, help="requests in flight; default 64")
    parser.add_argument("--jobs", type=int, default=1, help="threads of ours and fio; default 1")
    parser.add_argument("--rows", default=",".join(names), help="some of: %(default)s")
    parser.add_argument("--folder", type=Path, default=Path("out"), help="on the disk to measure")
    parser.add_argument("--patience", type=float, default=0.0, metavar="S", help=PATIENCE)
    parser.add_argument("--check", action="store_true", help="exit code 1 if a target is missed")
    options = parser.parse_args(arguments)
    options.rows = options.rows.split(",")
    unknown = [row for row in options.rows if row not in names]
    if unknown:
        parser.error(f"--rows: no row is called {unknown[0]!r}; the rows are {', '.join(names)}")
    options.repetitions = options.repetitions or (3 if options.quick else 7)
    options.seconds = options.seconds or (0.7 if options.quick else 3.0)
    options.file_bytes = int(options.file_bytes or (5e8 if options.quick else 2e9))
    if min(options.repetitions, options.depth, options.jobs) < 1 or options.seconds <= 0:
        parser.error("--repetitions, --depth, --jobs and --seconds must be positive")
    if options.file_bytes < PIECE_BYTES:
        parser.error(f"--file-bytes must be {PIECE_BYTES} or more")
    return options


def build() -> str:
    """Build the program in Rust; where it is."""
    command = "cargo bench --no-run --locked --package alongside-engine --bench iops"
    built = subprocess.run(
        [*command.split(), "--message-format=json"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    programs = [
        message["executable"]
        for message in messages
        if message.get("executable") and message["target"]["name"] == "iops"
    ]
    if not programs:
        raise SystemExit("bench.engine: cargo built no program called iops")
    return str(programs[-1])


def make_file(folder: Path, size_bytes: int) -> Path:
    """A file without holes, of bytes that no device can leave out."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"engine-{os.getpid()}.data"
    with path.open("wb") as file:
        for _ in range(size_bytes // PIECE_BYTES):
            file.write(os.urandom(PIECE_BYTES))
        os.fsync(file.fileno())
    return path


def make_groups(rows: Sequence[str], plan: Plan) -> list[list[Run]]:
    """A group of runs for each workload: its contenders, as far as they are here."""
    has_fio = shutil.which("fio") is not None
    contenders = [name for name in CONTENDERS if has_fio or not name.startswith("fio")]
    return [
        [
            Run(
                contender,
                ("-m", "bench.engine.measure", contender, workload.name, json.dumps(asdict(plan))),
                workload.rows,
                TIMEOUT_S,
            )
            for contender in contenders
        ]
        for workload in WORKLOADS
        if workload.name in rows
    ]


def complete(samples: Samples) -> Samples:
    """All contenders in their order, with those not installed named so."""
    missing = Sample(note=NOT_INSTALLED)
    return {
        row: {name: of_row.get(name, missing) for name in CONTENDERS}
        for row, of_row in samples.items()
    }


def json_row(asked: Question, samples: dict[str, Sample]) -> report.Row:
    """The row of the JSON file."""
    peers = {name: sample for name, sample in samples.items() if name != OURS}
    return report.make_row(asked.name, asked.unit, samples[OURS], peers, asked.goal)


def print_figures(console: Console, samples: Samples, repetitions: int) -> None:
    """The table: a line a row, a column a contender, the ratio and its target."""
    title = f"What the engine makes of a disk: medians of {repetitions}, lowest..highest below"
    columns = ["", "unit", *CONTENDERS, "ours over fio", "target", "reached"]
    table = report.new_table(title, columns)
    for row, of_row in samples.items():
        asked = question(row)
        ratio = asked.goal.ratio(of_row[OURS], of_row)
        cells = [report.cell(of_row[name]) for name in CONTENDERS]
        verdict = asked.goal.verdict(ratio)
        shown = "" if ratio is None else f"{ratio:.3g}"
        table.add_row(row, asked.unit, *cells, shown, asked.goal.text(), verdict)
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, tell, write; the exit code."""
    options = parse(arguments)
    console = report.console()
    binary = build()
    started, disturbance = time.perf_counter(), machine.Disturbance()
    path = make_file(options.folder, options.file_bytes)
    try:
        plan = Plan(str(path.resolve()), binary, options.seconds, options.depth, options.jobs)
        groups, patience = make_groups(options.rows, plan), Patience(options.patience)
        with steps(console, sum(map(len, groups)) * options.repetitions) as tell:
            measured = run_rounds(
                groups,
                options.repetitions,
                lambda run, number: tell(f"{run.rows[0]} {run.contender} {number + 1}"),
                patience,
            )
    finally:
        path.unlink()
    samples = complete(measured)
    print_figures(console, samples, options.repetitions)
    rows = [json_row(question(row), of_row) for row, of_row in samples.items()]
    judged = [row for row in rows if row.target is not None]
    report.write_json(options.out / "engine.json", judged)
    note = f"{options.depth} requests in flight; {machine.describe()}"
    draw(samples, options.out / "engine.png", note)
    console.print(f"{note}. {disturbance.text()}")
    console.print(f"Runs thrown away because of others: {patience.thrown_away}.")
    console.print(
        f"{time.perf_counter() - started:.0f} s. Written: {options.out}/engine.json, .png"
    )
    missed = [row.row for row in judged if question(row.row).goal.verdict(row.ratio) != "yes"]
    if missed:
        console.print(f"Targets not reached: {', '.join(missed)}", style="bold")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
