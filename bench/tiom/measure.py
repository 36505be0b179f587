"""The programs: building them, filling the file, and running all ways of a cell in turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.common.interleave import ROOT, Outcome, Run, run_rounds
from bench.common.native import (
    PRELOADED,
    WITH_LIBRARY,
    compile_program,
    execute,
    with_environment,
)
from bench.common.sample import Sample
from bench.tiom import plan
from bench.tiom.plan import Cell, Setup, Work

FOLDER = ROOT / "target" / "tiom"
SOURCES = Path(__file__).parent
ROWS = ("wall_s", "cpu_s", "bytes", "computed")
TIMEOUT_MIN_S = 60.0
TIMEOUT_FACTOR = 20.0
FILL_BYTES = 4 * plan.MIB

STANDALONE = ("standalone", "standalone2")
OURS = ("blocking", "nonblocking")
OPENMP = ("omp-standalone", "omp-nonblocking")
PARTS = ("io", "compute")
WAYS = ("standalone", "blocking", "nonblocking", "standalone2", *OPENMP, *PARTS)
LIMITED_WAYS = (*STANDALONE, *OURS, *PARTS)

Samples = dict[str, dict[str, Sample]]
Execute = Callable[[Run], Outcome]


class MeterError(Exception):
    """A step without which nothing can be measured went wrong."""


@dataclass(frozen=True)
class Programs:
    """The built programs."""

    tasks: Path
    openmp: Path
    alone: Path

    def of(self, way: str) -> Path:
        """Which one runs that way."""
        if way in OPENMP:
            return self.openmp
        return self.alone if way in PARTS else self.tasks


def build() -> Programs:
    """Compile the three programs."""
    shared = [SOURCES / "common.c", SOURCES / "blocks.c"]
    alone = compile_program(FOLDER / "tiom_alone", [SOURCES / "alone.c", *shared], ["-pthread"])
    tasks = compile_program(FOLDER / "tiom", [SOURCES / "tiom.c", *shared], WITH_LIBRARY)
    flags = [*WITH_LIBRARY, "-fopenmp"]
    openmp = compile_program(FOLDER / "tiom_omp", [SOURCES / "tiom_omp.c", *shared], flags)
    return Programs(tasks, openmp, alone)


def ask(programs: Programs, version: str, setup: Setup, row: str, *more: str) -> float:
    """Run a part on its own; a figure of it."""
    arguments = (str(programs.alone), f"--version={version}", *setup.arguments(), *more)
    outcome = execute(Run(version, arguments, (row,), timeout_s=600.0))[row]
    if isinstance(outcome, str):
        raise MeterError(f"{version}: {outcome}")
    return outcome


def calibrate(programs: Programs, setup: Setup) -> float:
    """Loops that take one millisecond of a processor while all of them compute."""
    return ask(programs, "calibrate", setup, "loops_per_ms")


def fill(programs: Programs, setup: Setup) -> None:
    """Write the whole file, so that every later write is an overwrite."""
    size = f"--block-bytes={FILL_BYTES}"
    arguments = (str(programs.alone), "--version=prepare", *setup.arguments(), size)
    outcome = execute(Run("prepare", arguments, ("filled",), timeout_s=600.0))["filled"]
    if isinstance(outcome, str):
        raise MeterError(f"filling the file: {outcome}")


def transfer_s(programs: Programs, setup: Setup, cell: Cell) -> float:
    """The wall time of a transfer of this cell when all series are at it."""
    work = plan.trial(cell, setup.series)
    return ask(programs, "io", setup, "wall_s", *work.arguments()) / work.transfers


def run_of(programs: Programs, way: str, setup: Setup, work: Work, prefix: tuple[str, ...]) -> Run:
    """The process that runs the cell in that way; `prefix` comes before its command."""
    done = plan.compute_alone(work, setup.workers) if way == "compute" else work
    version = "standalone" if way in STANDALONE else way
    command: tuple[str, ...] = (
        str(programs.of(way)),
        f"--version={version}",
        *setup.arguments(),
        *done.arguments(),
    )
    if way == "blocking":
        command = with_environment(command, LD_PRELOAD=str(PRELOADED))
    expected_s = work.computations * work.cell.compute_ms / 1e3
    timeout_s = TIMEOUT_MIN_S + TIMEOUT_FACTOR * expected_s
    return Run(way, (*prefix, *command), ROWS, timeout_s)


def measure(
    programs: Programs,
    ways: tuple[str, ...],
    setup: Setup,
    work: Work,
    repetitions: int,
    tell: Callable[[str], None],
    execute_run: Execute = execute,
    prefix: tuple[str, ...] = (),
) -> Samples:
    """All ways of a cell in turns; the samples as `[way][row]`."""
    group = [run_of(programs, way, setup, work, prefix) for way in ways]
    samples = run_rounds(
        [group],
        repetitions,
        lambda run, number: tell(f"{work.cell.name} {run.contender} {number + 1}"),
        execute_run,
    )
    return {way: {row: samples[row][way] for row in ROWS} for way in ways}
