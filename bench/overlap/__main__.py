"""`python -m bench.overlap --out FOLDER [--quick]`: table, overlap.json and overlap.png.

In each repetition, in turns and in fresh processes: the I/O alone, the computation alone, both at
once without dependencies (side by side: with what they cost each other on this machine), the
program as Alongside tasks, the same overlap written by hand, and without overlap.
The bound is max(I/O alone, processor time of computation and I/O / processors), of medians.

The I/O alone runs directly before ours, and both parts side by side directly after it: what is
divided by each other is then of the same moments of a disk whose speed drifts, and each follows a
run with I/O. Shorter runs would be closer still, but their ends count for more. Every second round
backwards would put two runs of a way next to each other, which tell less than two moments do.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from bench.common import machine, report
from bench.common.interleave import Outcome, Patience, Run, run_rounds
from bench.common.optional import NOT_INSTALLED, installed
from bench.common.progress import steps
from bench.common.sample import Sample
from bench.overlap import plan
from bench.overlap.judge import (
    BOUND,
    BY_HAND,
    OURS,
    PROCESSORS,
    SIDE_BY_SIDE,
    WAYS,
    Judged,
    judge,
)
from bench.overlap.picture import draw
from bench.overlap.plan import PIECE_BYTES, Program

TIMEOUT_S = 300.0
TRIALS = 3
CALIBRATIONS = 3
DISTURBANCE_MAX = 1.05
PATIENCE = "have S seconds to wait for a free machine and to repeat disturbed runs; default 0"
TURNS = ("io_alone", OURS, SIDE_BY_SIDE, BY_HAND, "compute_alone", "blocking")
"""All ways as they run in a round: the disk rests before none that a ratio is made of."""
WITHOUT_LIMIT = (SIDE_BY_SIDE, BY_HAND, "blocking")
"""What writes without a session, where no limit is emulated."""
MEASURES = ("wall_s", "cpu_s", "unseen_s")
STORAGE = """\
[[layer]]
name = "limited"
path = "{folder}"
limit = "{limit}"
"""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; impossible ones are refused before anything starts."""
    parser = argparse.ArgumentParser(prog="bench.overlap", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), metavar="FOLDER")
    parser.add_argument("--quick", action="store_true", help="3 repetitions, shorter runs")
    parser.add_argument("--repetitions", type=int, metavar="N", help="default 5; quick: 3")
    parser.add_argument("--seconds", type=float, help="I/O of a run; default 6, quick 2")
    parser.add_argument("--bytes-max", type=float, default=2e9, help="of all files; default 2e9")
    parser.add_argument("--files", type=int, default=8, help="of a chain, in turn; default 8")
    parser.add_argument("--writers", type=int, default=4, help="I/O executors; default 4")
    parser.add_argument("--rows", default=",".join(plan.SHARES), help="some of: %(default)s")
    parser.add_argument("--folder", type=Path, default=Path("out"), help="on the disk to write to")
    parser.add_argument("--buffered", action="store_true", help="through the page cache")
    parser.add_argument("--layer", choices=("disk", "limited"), default="disk")
    parser.add_argument("--limit", default="200MB/s", help="emulated, with --layer limited")
    parser.add_argument("--patience", type=float, default=0.0, metavar="S", help=PATIENCE)
    parser.add_argument("--check", action="store_true", help="exit code 1 if a target is missed")
    options = parser.parse_args(arguments)
    options.rows = options.rows.split(",")
    unknown = [row for row in options.rows if row not in plan.SHARES]
    if unknown:
        parser.error(f"--rows: no row is called {unknown[0]!r}; rows: {', '.join(plan.SHARES)}")
    options.repetitions = options.repetitions or (3 if options.quick else 5)
    options.seconds = options.seconds or (2.0 if options.quick else 6.0)
    if min(options.repetitions, options.files, options.writers) < 1 or options.seconds <= 0:
        parser.error("--repetitions, --files, --writers and --seconds must be positive")
    return options


def run_of(way: str, program: Program) -> Run:
    """The process that runs the program in that way."""
    module = ("io_alone_limited" if program.limit else way) if way == "io_alone" else way
    arguments = ("-m", "bench.overlap.measure", module, program.to_json())
    return Run(way, arguments, MEASURES, TIMEOUT_S)


def value(outcome: Outcome, name: str) -> float:
    """A figure of a calibration, without which nothing can go on."""
    found = outcome[name]
    if isinstance(found, str):
        raise SystemExit(f"bench.overlap: the calibration of this machine {found}")
    return found


def prepare(program: Program) -> None:
    """Make the files, whole and on the device."""
    for chain in range(program.chains):
        for step in range(program.files):
            path = Path(program.path(chain, step))
            if not path.exists() or path.stat().st_size < program.file_bytes:
                with path.open("wb") as file:
                    file.write(bytes(program.file_bytes))
                    os.fsync(file.fileno())
    if program.limit:
        text = STORAGE.format(folder=program.folder, limit=program.limit)
        Path(program.folder, "storage.toml").write_text(text)


def calibrate(
    options: argparse.Namespace, folder: Path, patience: Patience
) -> tuple[Program, float, float]:
    """The program without its balance; the time of its I/O; the processor time of a round."""
    program = Program(
        folder=str(folder),
        processors=machine.cores(),
        chains=machine.cores() * plan.CHAINS_PER_PROCESSOR,
        steps=options.files,
        files=options.files,
        rounds=plan.TRIAL_ROUNDS,
        file_bytes=plan.TRIAL_FILE_BYTES,
        writers=options.writers,
        direct=not options.buffered,
        limit=options.limit if options.layer == "limited" else "",
    )
    prepare(program)
    for _ in range(TRIALS):
        trial_s = value(patience(run_of("io_alone", program)), "wall_s")
        program = plan.sized(program, trial_s, options.seconds, int(options.bytes_max))
        prepare(program)
    io_s, cpu_s = [], []
    for _ in range(CALIBRATIONS):
        io_s.append(value(patience(run_of("io_alone", program)), "wall_s"))
        cpu_s.append(value(patience(run_of("compute_alone", program)), "cpu_s"))
    round_s = statistics.median(cpu_s) / (program.tasks * program.rounds)
    return program, statistics.median(io_s), round_s


def turns(program: Program) -> list[str]:
    """The ways that this program can be run in, in their order within a round."""
    return [way for way in TURNS if not (program.limit and way in WITHOUT_LIMIT)]


def measure(
    program: Program, repetitions: int, tell: Callable[[str], None], patience: Patience
) -> dict[str, dict[str, Sample]]:
    """All ways in turns; the samples as `[way][measure]`."""
    group = [run_of(way, program) for way in turns(program) if installed("alongside")]
    samples = run_rounds(
        [group], repetitions, lambda run, number: tell(f"{run.contender} {number + 1}"), patience
    )
    missing = Sample(note=NOT_INSTALLED if not installed("alongside") else "without a limit only")
    return {way: {m: samples.get(m, {}).get(way, missing) for m in MEASURES} for way in WAYS}


def print_table(console: Console, judged: Sequence[Judged]) -> None:
    """The table for people."""
    title = "Total time over the bound: medians, lowest..highest below; seconds"
    over = (SIDE_BY_SIDE, BY_HAND)
    ratios = ("ratio", "target", "reached", *(f"over_{way}" for way in over))
    columns = ["", *WAYS, PROCESSORS, BOUND, *ratios]
    table = report.new_table(title, [column.replace("_", "\n") for column in columns])
    for row in judged:
        low, high = row.ratios or (None, None)
        ratio = "" if row.ratio is None else f"{row.ratio:.3f}\n{low:.3f}..{high:.3f}"
        table.add_row(
            f"{row.name}\n{row.words}",
            *(report.cell(row.samples[way]["wall_s"]) for way in WAYS),
            report.cell(row.processors),
            "" if row.bound_s is None else f"{row.bound_s:.3f}\n{row.bound_is}",
            ratio,
            row.goal.text(),
            row.goal.verdict(row.ratio),
            *("" if (by := row.over(way)) is None else f"{by:.3f}" for way in over),
        )
    console.print(table)


def explain(console: Console, program: Program) -> None:
    """What the columns are, and what was done to the disk."""
    where = f"a layer with an emulated limit of {program.limit}" if program.limit else "the disk"
    how = "O_DIRECT" if program.direct else "the page cache"
    console.print(
        f"{program.tasks} compute and {program.tasks} I/O tasks: {program.chains} chains of "
        f"{program.steps} steps; each I/O task overwrites {program.file_bytes / 1e6:.0f} MB, one "
        f"of {program.files} files a chain in turn, in pieces of {PIECE_BYTES >> 20} MiB by way of "
        f"{how} and flushes them to {where}; "
        f"{program.writers} at a time."
    )
    console.print(
        f"io_alone, compute_alone: nothing else runs. {PROCESSORS}: processor time (rusage) of "
        f"those two together over {program.processors} processors. side_by_side: those two at "
        "once, without dependencies, until both have ended; what they cost each other is not in "
        "the bound. by_hand: the same overlap with a process pool and a thread pool. blocking: "
        "every process waits for its own file. "
        "Below a ratio: that of each repetition by itself, lowest..highest."
    )


def warn(console: Console, judged: Sequence[Judged]) -> None:
    """What the bound does not know of: interrupts, the hypervisor, others on the machine."""
    for row in judged:
        parts, unseen = row.parts_cpu_s, row.samples["io_alone"]["unseen_s"].median
        ours = row.samples[OURS]["cpu_s"].median
        if parts is None or unseen is None or ours is None:
            continue
        beside = row.samples[SIDE_BY_SIDE]["cpu_s"].median
        at_once = "" if beside is None else f", side by side {beside:.2f} s"
        line = (
            f"{row.name}: alongside used {ours:.2f} s of processors, the two parts {parts:.2f} s"
            f"{at_once}. "
            f"Interrupt handlers and the hypervisor had another {unseen:.2f} s while the I/O ran "
            "alone, which is not in the bound"
        )
        over = "" if row.ratio_seen is None else f" (with it the ratio is {row.ratio_seen:.3f})"
        console.print(f"{line}{over}.")
    if any(row.disturbance > DISTURBANCE_MAX for row in judged):
        worst = max(row.disturbance for row in judged)
        console.print(
            f"THE MACHINE WAS NOT FREE: the computation alone took x {worst:.2f} of its processor "
            "time. The bound supposes that all processors are there; measure again when they are.",
            style="bold",
        )


def tell_of(tell: Callable[[str], None], row: str, words: str) -> None:
    """Tell of a step of that row."""
    tell(f"{row} {words}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, tell, write; the exit code."""
    options = parse(arguments)
    console = report.console()
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="overlap-", dir=options.folder.resolve()))
    started, disturbance = time.perf_counter(), machine.Disturbance()
    judged, patience = [], Patience(options.patience)
    try:
        with steps(console, len(options.rows) * options.repetitions * len(WAYS) + 1) as tell:
            tell("calibration")
            program, io_s, round_s = calibrate(options, folder, patience)
            for name in options.rows:
                balanced = plan.balanced(program, io_s, round_s, plan.SHARES[name])
                samples = measure(
                    balanced, options.repetitions, partial(tell_of, tell, name), patience
                )
                judged.append(judge(name, samples, program.processors))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print_table(console, judged)
    explain(console, program)
    warn(console, judged)
    console.print(f"{machine.describe()}. {disturbance.text()}")
    console.print(f"Runs thrown away because of others: {patience.thrown_away}.")
    report.write_json(options.out / "overlap.json", [row.json_row() for row in judged])
    note = f"{machine.describe()}; medians of {options.repetitions}"
    draw(judged, options.out / "overlap.png", note)
    console.print(
        f"{time.perf_counter() - started:.0f} s. Written: {options.out}/overlap.json, .png"
    )
    missed = [row.name for row in judged if row.goal.verdict(row.ratio) != "yes"]
    if missed:
        console.print(f"Targets not reached: {', '.join(missed)}", style="bold")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
