"""`python -m bench.hdf5 --out FOLDER [--quick]`: table, hdf5.json and hdf5.png.

The same h5py program (the wheel's HDF5) without and with the connector, in turns and in fresh
processes. The computation of a step is calibrated from a run without the connector.
"""

from __future__ import annotations

import argparse
import functools
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from bench.common import machine, report
from bench.common.interleave import Run, run_once, run_rounds
from bench.common.progress import steps
from bench.common.report import Row
from bench.common.sample import Sample
from bench.common.slow_disk import SlowDiskUnavailableError, kernel_disk
from bench.hdf5.cases import (
    CALLS,
    NATIVE,
    OURS,
    SHORT_TIMES,
    SLOW,
    UNSURE_TIMES,
    Case,
    cases,
    contenders,
)
from bench.hdf5.picture import draw
from bench.hdf5.rows import Samples, hidden, of_case, sample, summary

TIMEOUT_S = 300.0
FIGURES = ("io_s", "last_s", "total_s")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="bench.hdf5", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), metavar="FOLDER")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller programs")
    parser.add_argument("--repetitions", type=int, metavar="N", help="default 3; quick: 2")
    parser.add_argument(
        "--scale", type=float, default=0.25, help="of 8 Mi particles a process; %(default)s"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="cases that begin with this")
    parser.add_argument("--folder", type=Path, default=Path("out"), help="on the disk to write to")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a target is missed")
    options = parser.parse_args(arguments)
    options.repetitions = options.repetitions or (2 if options.quick else 3)
    if options.repetitions < 1 or options.scale <= 0:
        parser.error("--repetitions and --scale must be positive")
    return options


def run_of(contender: str, case: Case, folder: Path) -> Run:
    """The process that runs a case for a contender."""
    arguments = ("-m", "bench.hdf5.program", contender, str(folder), case.to_json())
    rows = tuple(f"{case.name}:{figure}" for figure in FIGURES)
    return Run(contender, arguments, rows, TIMEOUT_S)


def calibrated(case: Case, folder: Path) -> Case:
    """The case with its computation, by the longest of some runs without the connector.

    What one quick run takes would not be enough computation for the others.
    """
    if case.share == 0:
        return case
    longest_s = 0.0
    for _ in range(case.calibrations):
        io_s = run_once(run_of(NATIVE, case, folder))[f"{case.name}:io_s"]
        if isinstance(io_s, str):
            raise SystemExit(f"bench.hdf5: {case.name} without the connector {io_s}")
        longest_s = max(longest_s, io_s)
    return case.with_compute(longest_s)


@contextmanager
def places(chosen: Sequence[Case], folder: Path, console: Console) -> Iterator[dict[int, Path]]:
    """Folders by the bandwidth of their disk; the emulated one is not there where it cannot be."""
    room = 2 * max((case.total_bytes for case in chosen if case.bandwidth), default=0)
    with ExitStack() as stack:
        found = {0: folder}
        if room:
            try:
                found[SLOW] = stack.enter_context(kernel_disk(folder, SLOW, room)).folder
            except SlowDiskUnavailableError as reason:
                console.print(f"no emulated disk, so no case of it: {reason}")
        yield found


def print_table(console: Console, chosen: Sequence[Case], samples: Samples) -> None:
    """Observed I/O for people."""
    columns = ["", "base", OURS, "lent", "ratio", "hidden", "observed over last", "lent"]
    table = report.new_table("I/O time that the program sees, s", columns)
    for case in chosen:
        base, *rest = (who for who in contenders(case) if who != CALLS)
        row = of_case(case, samples)
        ratio = row.ratio
        cells = [sample(samples, case, who, "io_s") for who in (base, *rest)]
        shown = [report.cell(one) for one in cells] + [""] * (3 - len(cells))
        lasts = [hidden(case, samples, who) if case.share else None for who in (OURS, "lent")]
        table.add_row(
            case.name,
            *shown,
            "" if ratio is None else f"{ratio:.3f}",
            "" if ratio is None or not case.share else f"{100 * (1 - ratio):.0f} %",
            *("" if last is None else f"{last:.3f}" for last in lasts),
        )
    console.print(table)


def tell_summary(console: Console, rows: Sequence[Row]) -> list[str]:
    """The rows over all cases; which targets were missed."""
    missed = []
    for row in rows:
        is_share = row.unit == "share"
        if row.ratio is None or row.target is None:
            console.print(f"{row.row}: no figure")
            continue
        reached = row.ratio >= row.target if is_share else row.ratio <= row.target
        sign = ">=" if is_share else "<="
        case = f" ({row.against['case']})" if "case" in row.against else ""
        verdict = "yes" if reached else "NO"
        console.print(f"{row.row}: {row.ratio:.3f}, target {sign} {row.target:g}: {verdict}{case}")
        if not reached:
            missed.append(row.row)
    return missed


def measure(
    chosen: Sequence[Case], folders: Mapping[int, Path], repetitions: int, console: Console
) -> Samples:
    """Runs all cases, each one's contenders in turns, another first each time.

    A virtual machine whose host takes back free memory met every second read, and so always the
    same of two contenders.
    """
    times = {case: repetitions * case.times for case in chosen}
    samples: dict[str, Mapping[str, Sample]] = {}
    with steps(console, sum(len(contenders(case)) * times[case] + 1 for case in chosen)) as tell:
        for case in chosen:
            tell(f"calibration {case.name}")
            folder = folders[case.bandwidth]
            now = calibrated(case, folder)
            runs = [run_of(who, now, folder) for who in contenders(case)]
            told = functools.partial(tell_run, tell, case)
            samples |= run_rounds([runs], times[case], told, rotates=True)
    return samples


def tell_run(tell: Callable[[str], None], case: Case, run: Run, number: int) -> None:
    """What is running."""
    tell(f"{case.name} {run.contender} {number}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, tell, write; the exit code."""
    options = parse(arguments)
    console, started = report.console(), time.perf_counter()
    disturbance = machine.Disturbance()
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="hdf5-", dir=options.folder.resolve()))
    chosen = [c for c in cases(options.quick, options.scale) if c.name.startswith(options.only)]
    try:
        with places(chosen, folder, console) as folders:
            chosen = [case for case in chosen if case.bandwidth in folders]
            samples = measure(chosen, folders, options.repetitions, console)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rows = summary(chosen, samples)
    print_table(console, chosen, samples)
    missed = tell_summary(console, rows)
    console.print(f"{machine.describe()}. {disturbance.text()}")
    report.write_json(options.out / "hdf5.json", [*(of_case(c, samples) for c in chosen), *rows])
    note = (
        f"{machine.describe()}; medians of {options.repetitions}, on the machine's disk and of "
        f"once_ {options.repetitions * UNSURE_TIMES}, of short programs "
        f"{options.repetitions * SHORT_TIMES}. A step is flushed and synced "
        "after its computation; of once_, only the last one. cN: computation of N % of the I/O "
        "time between the steps."
    )
    draw(chosen, samples, options.out / "hdf5.png", note)
    seconds = time.perf_counter() - started
    console.print(f"{seconds:.0f} s. Written: {options.out}/hdf5.json, .png")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
