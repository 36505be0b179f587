"""`python -m bench.hdf5.filtered --out FOLDER`: compressed writes, with a thread-safe HDF5.

A C program writes ten steps of shuffled and deflated datasets, without and with the connector, in
turns and in fresh processes, without computation between the steps and with 1.5 times as much as
the I/O takes. HDF5 is built by `tests.hdf5.builds` (Debian; some minutes, once): h5py's wheels are
not thread-safe, and compress in the call. Writes hdf5-filtered.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.common import machine, report
from bench.common.report import Row, Value
from bench.common.sample import significant
from bench.hdf5.cases import NATIVE, OURS
from tests.hdf5.builds import VERSIONS, Build, MissingError, build
from tests.hdf5.suites import environment
from tests.hdf5.traps import USUAL

SOURCE = Path(__file__).with_suffix(".c")
STEPS, DATASETS, COUNT = 10, 5, 2 << 20
SHARE = 1.5
TIMEOUT_S = 300.0
Figures = dict[str, float]


def compiled(built: Build, folder: Path) -> Path:
    """The program, against this library."""
    program, where = folder / "filtered", built.programs
    libraries = [f"-L{where}", f"-Wl,-rpath,{where}", "-lhdf5"]
    command = ["cc", "-O2", *built.compile_flags(), str(SOURCE), "-o", str(program), *libraries]
    subprocess.run(command, check=True)
    return program


def run(program: Path, folder: Path, contender: str, compute_s: float) -> Figures:
    """Runs it once, to its figures in seconds."""
    path = folder / "filtered.h5"
    words = [str(program), str(path), str(STEPS), str(DATASETS), str(COUNT), str(compute_s)]
    variables = environment(USUAL if contender == OURS else None)
    ended = subprocess.run(
        words, env=variables, stdout=subprocess.PIPE, text=True, check=True, timeout=TIMEOUT_S
    )
    path.unlink()
    figures: Figures = json.loads(ended.stdout)
    return figures


def measured(program: Path, folder: Path, repetitions: int, compute_s: float) -> dict[str, Figures]:
    """Medians by contender, in turns, another first each time."""
    found: dict[str, list[Figures]] = {NATIVE: [], OURS: []}
    for number in range(repetitions):
        for contender in sorted(found, reverse=number % 2 == 1):
            found[contender].append(run(program, folder, contender, compute_s))
    return {
        contender: {name: statistics.median(one[name] for one in runs) for name in runs[0]}
        for contender, runs in found.items()
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure, tell, write; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.hdf5.filtered", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), metavar="FOLDER")
    parser.add_argument("--folder", type=Path, default=Path("out"), help="on the disk to write to")
    parser.add_argument("--repetitions", type=int, default=3, metavar="N")
    options = parser.parse_args(arguments)
    console = report.console()
    options.folder.mkdir(parents=True, exist_ok=True)
    try:
        built = build(VERSIONS[0], "threadsafe")
    except MissingError as why:
        console.print(f"bench.hdf5.filtered: {why}")
        return 2
    rows, table = [], report.new_table("I/O time that the program sees, s", ["", NATIVE, OURS, ""])
    with tempfile.TemporaryDirectory(prefix="hdf5-", dir=options.folder.resolve()) as name:
        folder = Path(name)
        program = compiled(built, folder)
        alone_s = max(run(program, folder, NATIVE, 0)["io_s"] for _ in range(3))
        for share in (0.0, SHARE):
            compute_s = share * alone_s / STEPS
            by = measured(program, folder, options.repetitions, compute_s)
            figure = "io_s" if share else "total_s"
            mine, theirs = by[OURS][figure], by[NATIVE][figure]
            title = f"filtered{'_c150' if share else ''}"
            ratio = significant(mine / theirs)
            last_s = significant(by[OURS]["last_s"])
            against: dict[str, Value] = {NATIVE: significant(theirs), "last": last_s}
            rows.append(Row(title, "s", significant(mine), against, ratio, None))
            table.add_row(title, f"{theirs:.3f}", f"{mine:.3f}", f"{ratio:.3f}")
    console.print(table)
    console.print(machine.describe())
    report.write_json(options.out / "hdf5-filtered.json", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
