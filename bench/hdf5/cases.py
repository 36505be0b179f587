"""The programs that are measured: how much they write, in what, and what they compute between.

Source: Tang et al., section IV-A (the serial benchmark: steps of a group with datasets or
attributes, written and read) and IV-B (VPIC-IO, which writes eight variables of 8 Mi particles a
process and step, and BD-CATS-IO, which reads them).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

#: Without the connector; with it; with it, and buffers that the program keeps; HDF5's own
#: connector that only passes on; without the connector, datasets that are made and not written.
NATIVE, OURS, LENT, PASS_THROUGH = "native", "alongside", "lent", "pass_through"
CALLS = "calls"

STEPS = 10
#: Enough computation to hide all I/O: more than it takes.
ENOUGH = 1.0
#: Of the longer run: the last step, which nothing hides, is then a thirtieth of its I/O.
STEPS_LONG = 30
VARIABLES = 8
PARTICLES = 8 << 20
FLOAT_BYTES = 4
MB = 1 << 20
#: Written without computation only: overheads show there, and it takes long.
LARGEST_MB = 128
#: Bytes/s of the emulated disk: what a process may have of a parallel file system. It is the same
#: every time, which a disk that is shared with others is not.
SLOW = 200_000_000
SLOW_MB = 16
#: Programs that write or read less are over within a second.
SHORT_BYTES_MAX = 500_000_000
SHORT_TIMES, UNSURE_TIMES = 4, 2
#: Runs that say how long I/O takes on a disk whose speed moves.
CALIBRATIONS = 3


@dataclass(frozen=True)
class Case:
    """A program: in each step a group with datasets and attributes, then computation.

    A read is the same the other way round: steps that are there and not cached are read, and with
    the connector each is asked for while the one before it is computed with.

    `share` is the time of a step's computation over that of its I/O without the connector; there
    is none after the last step. Every process writes a file of its own. Where `lends` is false
    only the unchanged program is the question, not one that keeps its buffers. A `bandwidth`
    (bytes/s) is that of an emulated disk; 0: the disk that is there. Steps that are written end
    with a flush and an fsync each (`is_synced`), or only the last one does, as in the paper's
    programs.
    """

    name: str
    steps: int
    datasets: int
    dataset_bytes: int
    attributes: int = 0
    share: float = 0.0
    processes: int = 1
    compute_s: float = 0.0
    is_read: bool = False
    lends: bool = True
    bandwidth: int = 0
    is_synced: bool = True

    @property
    def total_bytes(self) -> int:
        """Of all datasets."""
        return self.steps * self.datasets * self.dataset_bytes * self.processes

    @property
    def times(self) -> int:
        """How many times as often it is run as the longest.

        A median of three says little of a second, nor, on the machine's own disk, of a few, nor
        of a hundredth of the whole, which is the question where only the end is synced.
        """
        if self.total_bytes < SHORT_BYTES_MAX:
            return SHORT_TIMES
        is_unsure = not self.bandwidth or not self.is_synced
        return UNSURE_TIMES if is_unsure else 1

    @property
    def calibrations(self) -> int:
        """How many runs say how long its I/O takes without computation."""
        return 1 if self.bandwidth else CALIBRATIONS

    @property
    def is_data(self) -> bool:
        """Whether it writes datasets."""
        return self.datasets > 0

    def with_compute(self, io_s: float) -> Case:
        """The same, with the computation of a step, as its I/O takes so long natively."""
        return replace(self, compute_s=self.share * io_s / self.steps)

    def to_json(self) -> str:
        """As an argument of the program."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Case:
        """Back from it."""
        return Case(**json.loads(text))


def cases(quick: bool, scale: float) -> list[Case]:
    """All that are measured, without computation and with."""
    steps = STEPS // 2 if quick else STEPS
    sizes = (1, 16) if quick else (1, 8, 64, 128)
    shares = (0.0, 1.5)
    result = [
        Case(f"write_5x{size}{_suffix(share)}", steps, 5, size * MB, share=share)
        for size in sizes
        for share in shares
        if share == 0 or size < LARGEST_MB
    ]
    if not quick:
        result.append(Case("long_5x64_c150", STEPS_LONG, 5, 64 * MB, share=1.5, lends=False))
    result += [
        Case(f"read_5x{size}{_suffix(share)}", steps, 5, size * MB, share=share, is_read=True)
        for size in ((16,) if quick else (8, 64))
        for share in shares
    ]
    large = SLOW_MB if quick else 64
    for kind, size in (("read", SLOW_MB), ("write", large)):
        name, is_read = f"slow_{kind}_5x{size}_c150", kind == "read"
        case = Case(name, steps, 5, size * MB, share=1.5, is_read=is_read, bandwidth=SLOW)
        result.append(case)
    once = Case(f"once_5x{large}_c150", steps, 5, large * MB, share=1.5, is_synced=False)
    result += [once, replace(once, name=f"slow_{once.name}", bandwidth=SLOW)]
    counts = (16,) if quick else (0, 16, 128)
    result += [Case(f"metadata_{count}", 100, 0, 0, attributes=count) for count in counts]
    for share in (0.0, 1.0) if quick else (0.0, 0.5, 1.0):
        variable_bytes = int(PARTICLES * FLOAT_BYTES * scale)
        vpic = Case(
            f"vpic{_suffix(share)}", steps, VARIABLES, variable_bytes, share=share, processes=2
        )
        result += [vpic, replace(vpic, name=f"bdcats{_suffix(share)}", is_read=True)]
    return result


def _suffix(share: float) -> str:
    return f"_c{round(share * 100)}" if share else ""


def contenders(case: Case) -> tuple[str, ...]:
    """Who runs it: data is compared with none at all, metadata with passing on.

    Buffers are lent where an unchanged program is not the question.
    """
    if not case.is_data:
        return (PASS_THROUGH, OURS)
    if case.is_read or not case.lends:
        return (NATIVE, OURS)
    return (NATIVE, OURS, LENT, CALLS) if case.share > ENOUGH else (NATIVE, OURS, LENT)
