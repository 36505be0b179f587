"""What is measured: cells of a grid, how much work a cell is, and the command line of a program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import ceil

KIB = 1 << 10
MIB = 1 << 20

MODES = ("mix", "1to1", "fjio", "fjc")
DIRECTIONS = ("write", "read")

QUICK_COMPUTES_MS = (1.0, 4.0, 16.0)
QUICK_BLOCKS_BYTES = (4 * KIB, 64 * KIB, 512 * KIB, 4 * MIB)
COMPUTES_MS = tuple(float(1 << power) for power in range(8))
BLOCKS_BYTES = tuple(4 * KIB << power for power in range(12))
MODES_DEFAULT = ("mix", "fjio")

STEPS_MIN = 12
STEPS_MAX = 4000
EDGE_SHARE_MAX = 0.02
"""Of a run: the first computation has no I/O beside it, nor the last I/O a computation."""
COMPUTE_ALONE_S = 0.15
TRIAL_BYTES_MAX = 128 * MIB
TRIAL_STEPS_MAX = 50

LANES = {"mix": 1, "1to1": 1, "fjio": 4, "fjc": 1}
"""Transfers of a step."""
COMPUTES = {"mix": 1, "1to1": 1, "fjio": 1, "fjc": 4}
"""Computations of a step."""


@dataclass(frozen=True)
class Cell:
    """A point of the grid."""

    mode: str
    direction: str
    compute_ms: float
    block_bytes: int

    @property
    def name(self) -> str:
        """For tables and rows: `mix write 1 ms 64 KiB`."""
        return f"{self.mode} {self.direction} {self.compute_ms:g} ms {size(self.block_bytes)}"


@dataclass(frozen=True)
class Setup:
    """What all cells have in common."""

    file: str
    file_bytes: int
    workers: int
    series: int
    loops_per_ms: float
    is_random: bool = True
    is_direct: bool = True
    seconds_max: float = 0.0

    def arguments(self) -> tuple[str, ...]:
        """As the programs want them."""
        return (
            f"--file={self.file}",
            f"--file-bytes={self.file_bytes}",
            f"--workers={self.workers}",
            f"--series={self.series}",
            f"--loops-per-ms={self.loops_per_ms:.1f}",
            f"--seconds-max={self.seconds_max:g}",
            "--random" if self.is_random else "--sequential",
            "--direct" if self.is_direct else "--buffered",
        )


@dataclass(frozen=True)
class Work:
    """A cell with so many steps of each series."""

    cell: Cell
    series: int
    steps: int

    @property
    def transfers(self) -> int:
        """Of all series."""
        return self.series * self.steps * LANES[self.cell.mode]

    @property
    def computations(self) -> int:
        """Of all series."""
        return self.series * self.steps * COMPUTES[self.cell.mode]

    @property
    def total_bytes(self) -> int:
        """Of all transfers."""
        return self.transfers * self.cell.block_bytes

    def arguments(self) -> tuple[str, ...]:
        """As the programs want them."""
        return (
            f"--mode={self.cell.mode}",
            f"--{self.cell.direction}",
            f"--compute-ms={self.cell.compute_ms:g}",
            f"--block-bytes={self.cell.block_bytes}",
            f"--total-bytes={self.total_bytes}",
        )


def size(count: int) -> str:
    """Bytes as a person writes them: 64 KiB."""
    return f"{count // MIB} MiB" if count >= MIB else f"{count // KIB} KiB"


def cells(
    modes: tuple[str, ...],
    directions: tuple[str, ...],
    computes_ms: tuple[float, ...],
    blocks_bytes: tuple[int, ...],
) -> list[Cell]:
    """The whole grid."""
    return [Cell(*point) for point in product(modes, directions, computes_ms, blocks_bytes)]


def trial(cell: Cell, series: int) -> Work:
    """A little I/O, to find out how long a transfer of this cell takes."""
    step_bytes = series * LANES[cell.mode] * cell.block_bytes
    steps = min(TRIAL_STEPS_MAX, max(1, TRIAL_BYTES_MAX // step_bytes))
    return Work(cell, series, steps)


def sized(cell: Cell, setup: Setup, transfer_s: float, seconds: float) -> Work:
    """So many steps that the cell takes about `seconds` without overlap.

    `transfer_s` is the wall time of a transfer when all series are at it. There are more steps
    where few would measure how a run begins and ends.
    """
    computing_s = setup.series * COMPUTES[cell.mode] * cell.compute_ms / 1e3 / setup.workers
    transferring_s = setup.series * LANES[cell.mode] * transfer_s
    shorter_s, longer_s = sorted((computing_s, transferring_s))
    enough = ceil(shorter_s / longer_s / EDGE_SHARE_MAX)
    steps = round(seconds / (computing_s + transferring_s))
    return Work(cell, setup.series, min(STEPS_MAX, max(STEPS_MIN, enough, steps)))


def compute_alone(work: Work, workers: int) -> Work:
    """As many of the computations as tell what one costs."""
    one_s = work.cell.compute_ms / 1e3
    wanted = max(2 * workers, round(COMPUTE_ALONE_S * workers / one_s))
    steps = -(-wanted // (work.series * COMPUTES[work.cell.mode]))
    return replace(work, steps=min(work.steps, steps))


def limit_bytes_s(cell: Cell, workers: int) -> int:
    """The bandwidth at which the I/O of the cell takes as long as its computation."""
    bytes_a_step = LANES[cell.mode] * cell.block_bytes
    computing_s = COMPUTES[cell.mode] * cell.compute_ms / 1e3 / workers
    return round(bytes_a_step / computing_s)
