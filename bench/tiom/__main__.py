"""`python -m bench.tiom --out FOLDER [--quick]`: table, tiom.json and a picture of maps a mode.

Chains of tasks that compute and transfer, over compute time and block size. In each repetition of a
cell, in turns and in fresh processes: plain calls (standalone), the same preloaded (blocking), the
calls that do not wait (nonblocking), plain calls again (the noise), both on OpenMP tasks, the I/O
alone, the computation alone. The quick grid is 1, 4, 16 ms x 4, 64, 512 KiB, 4 MiB; random writes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.common import machine, report
from bench.common.interleave import Patience
from bench.common.native import LIBRARY, BuildError, execute, orderly_end
from bench.common.progress import Tell, steps
from bench.tiom import maps, measure, plan
from bench.tiom.judge import LIMITED, Judged, limited_row, summary
from bench.tiom.limit import LimitUnavailableError, limited
from bench.tiom.measure import LIMITED_WAYS, WAYS, MeterError, Programs
from bench.tiom.options import parse
from bench.tiom.plan import Cell, Setup

LIMITED_CELL = Cell("1to1", "write", 1.0, 64 * plan.KIB)
LIMITED_SECONDS = 1.6


def prepare(options: argparse.Namespace, programs: Programs, folder: Path) -> Setup:
    """The file, filled, and how fast a processor is."""
    setup = Setup(
        file=str(folder / "blocks"),
        file_bytes=options.file_bytes,
        workers=options.workers,
        series=options.series,
        loops_per_ms=0.0,
        is_random=not options.sequential,
        is_direct=not options.buffered,
        seconds_max=options.seconds_max,
    )
    measure.fill(programs, setup)
    loops = measure.calibrate(programs, setup)
    return Setup(**{**vars(setup), "loops_per_ms": loops})


def measure_grid(
    options: argparse.Namespace, programs: Programs, setup: Setup, patience: Patience, tell: Tell
) -> list[Judged]:
    """All cells of the grid, one after the other."""
    grid = plan.cells(options.modes, options.directions, options.computes, options.blocks)
    judged = []
    for cell in grid:
        transfer_s = measure.transfer_s(programs, setup, cell)
        work = plan.sized(cell, setup, transfer_s, options.seconds)
        samples = measure.measure(programs, WAYS, setup, work, options.repetitions, tell, patience)
        judged.append(Judged(work, setup.workers, samples))
    return judged


def measure_limited(
    options: argparse.Namespace, programs: Programs, setup: Setup, patience: Patience, tell: Tell
) -> tuple[Judged | None, str]:
    """The 1:1 cell on a disk so slow that its I/O is as long as its computation; or why not.

    The text says what made the disk slow, or why nothing did.
    """
    transfer_s = LIMITED_CELL.block_bytes / plan.limit_bytes_s(LIMITED_CELL, setup.workers)
    work = plan.sized(LIMITED_CELL, setup, transfer_s, LIMITED_SECONDS)
    program = measure.FOLDER / "slow_disk"
    try:
        with limited(program, Path(setup.file), LIMITED_CELL, setup.workers) as limit:
            samples = measure.measure(
                programs,
                LIMITED_WAYS,
                setup,
                work,
                options.repetitions,
                tell,
                patience,
                limit.prefix,
            )
    except LimitUnavailableError as reason:
        return None, f"no limit here: {reason}"
    return Judged(work, setup.workers, samples), limit.words


def gain(speed: float | None) -> str:
    """A relative speed as people write a gain."""
    return "" if speed is None else f"{(speed - 1) * 100:+.1f}"


def print_cells(console: Console, judged: Sequence[Judged]) -> None:
    """The table of the grid."""
    title = "Speed over standalone, per cent (medians); time over the bound"
    columns = ["", "standalone\nMiB/s", "blocking", "nonblocking", "standalone\nagain"]
    columns += ["OpenMP\nnonblocking", "the bound\nwould allow", "nonblocking\n/ bound"]
    table = report.new_table(title, columns)
    for cell in judged:
        over = cell.over_bound("nonblocking")
        table.add_row(
            cell.name + (" *" if cell.is_disturbed else ""),
            report.cell(cell.rates("standalone")),
            gain(cell.speed("blocking")),
            gain(cell.speed("nonblocking")),
            gain(cell.speed("standalone2")),
            gain(cell.speed("omp-nonblocking")),
            gain(cell.allowed),
            "" if over is None else f"{over:.3f}",
        )
    console.print(table)
    if any(cell.is_disturbed for cell in judged):
        console.print("* THE MACHINE WAS NOT FREE: the computation alone had to share processors.")


def print_summary(console: Console, entries: Sequence[tuple[report.Row, report.Goal]]) -> list[str]:
    """The table of the rows over the grid; which were missed."""
    table = report.new_table("What was to be reached", ["", "found", "ratio", "target", "reached"])
    missed = []
    for row, goal in entries:
        verdict = goal.verdict(row.ratio)
        if verdict == "NO":
            missed.append(row.row)
        found = row.ours if isinstance(row.ours, str) else f"{row.ours:g} {row.unit}"
        where = row.against.get("cell") or row.against.get("limit", "")
        table.add_row(
            row.row,
            f"{found}\n{where}" if where else found,
            "" if row.ratio is None else f"{row.ratio:g}",
            goal.text(),
            verdict,
        )
    console.print(table)
    console.print(
        "worst_*: the lowest speed over the grid; its ratio allows each cell the noise of the cell "
        "(standalone against itself). worst_vs_bound: where standalone takes 20 % more than the "
        "bound."
    )
    return missed


def run(options: argparse.Namespace, console: Console, folder: Path) -> int:
    """Measure, tell, write; the exit code."""
    started, disturbance = time.perf_counter(), machine.Disturbance()
    patience = Patience(options.patience, execute)
    programs = measure.build()
    cells = len(options.modes) * len(options.directions) * len(options.computes)
    cells = 0 if options.only_limit else cells * len(options.blocks)
    count = (cells * len(WAYS) + len(LIMITED_WAYS)) * options.repetitions
    under_limit, note = None, "left out"
    with steps(console, count + 1) as tell:
        tell("filling the file")
        setup = prepare(options, programs, folder)
        judged = [] if not cells else measure_grid(options, programs, setup, patience, tell)
        if not options.without_limit:
            under_limit, note = measure_limited(options, programs, setup, patience, tell)
    measured = [*judged, *([under_limit] if under_limit else [])]
    print_cells(console, measured)
    entries = [*summary(judged), (limited_row(under_limit, note), LIMITED)]
    missed = print_summary(console, entries)
    rows = [cell.json_row() for cell in judged] + [row for row, _ in entries]
    report.write_json(options.out / "tiom.json", rows)
    order = "sequential" if options.sequential else "random"
    how = "page cache" if options.buffered else "O_DIRECT"
    conditions = (
        f"{machine.describe()}; {setup.workers} workers, {setup.series} series, {order}, {how}, "
        f"a file of {plan.size(setup.file_bytes)}; medians of {options.repetitions}"
    )
    pictures = maps.draw(judged, options.out, conditions)
    console.print(f"{conditions}. {disturbance.text()}")
    written = ", ".join(["tiom.json", *(path.name for path in pictures)])
    console.print(f"{time.perf_counter() - started:.0f} s. Written to {options.out}: {written}")
    failures = [failure for cell in measured for failure in cell.failures]
    for failure in failures:
        console.print(f"FAILED: {failure}", style="bold")
    if missed:
        console.print(f"Targets not reached: {', '.join(missed)}", style="bold")
    return 1 if failures or (options.check and missed) else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The meter, with a folder on the disk to measure that is gone afterwards."""
    options = parse(arguments, __doc__)
    if not LIBRARY.exists():
        print(f"bench.tiom: {LIBRARY.name} is not built: make native", file=sys.stderr)
        return 2
    options.folder.mkdir(parents=True, exist_ok=True)
    where = options.folder.resolve()
    with orderly_end(), tempfile.TemporaryDirectory(prefix="tiom-", dir=where) as folder:
        try:
            return run(options, report.console(), Path(folder))
        except (BuildError, MeterError) as error:
            print(f"bench.tiom: {error}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
