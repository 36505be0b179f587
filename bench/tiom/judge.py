"""How fast each way of a cell was, beside standalone and beside the bound; the rows over the grid.

Ways are compared within a repetition, so that a disk that is slow for a while is slow for both; the
median over the repetitions counts. The bound of a cell is max(I/O alone, processor time of its
computation and of its I/O / processors). The noise of a cell is how far a second standalone was
from the first.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.common.report import Goal, Row, Value
from bench.common.sample import Sample, significant
from bench.tiom.measure import OPENMP, OURS, Samples
from bench.tiom.plan import MIB, Work

NO_HARM = Goal(("standalone",), 0.98, higher=True)
NEAR_BOUND = Goal(("bound",), 1.05)
LIMITED = Goal(("standalone",), 1.9, higher=True)
NO_TARGET = Goal((), None, higher=True)

ROOM = 1.2
"""Standalone has to take so many times the bound before a cell is judged against it."""

LIMITED_ROW = "limited_equal"
UNIT = "MiB/s"
NOTHING = "no cell"


@dataclass(frozen=True)
class Judged:
    """A cell with everything that was measured for it."""

    work: Work
    workers: int
    samples: Samples

    @property
    def name(self) -> str:
        """The cell, for people."""
        return self.work.cell.name

    @property
    def failures(self) -> list[str]:
        """Which ways went wrong, and how."""
        return [
            f"{self.name}, {way}: {of_way['wall_s'].note}"
            for way, of_way in self.samples.items()
            if of_way["wall_s"].note
        ]

    @property
    def is_disturbed(self) -> bool:
        """Whether the computation alone did not get the processors that it wanted."""
        compute = self.samples["compute"]
        wall_s, cpu_s = compute["wall_s"].median, compute["cpu_s"].median
        return wall_s is not None and cpu_s is not None and wall_s * self.workers > 1.1 * cpu_s

    def rates(self, way: str) -> Sample:
        """MiB/s of every repetition."""
        of_way = self.samples.get(way)
        if of_way is None:
            return Sample(note="not run")
        if of_way["wall_s"].note:
            return Sample(note=of_way["wall_s"].note)
        pairs = zip(of_way["bytes"].values, of_way["wall_s"].values, strict=True)
        return Sample(tuple(count / MIB / wall_s for count, wall_s in pairs))

    def speed(self, way: str) -> float | None:
        """How fast this way was relative to standalone: 1.5 is half as fast again.

        The reference of the ways on OpenMP is standalone there.
        """
        if way in OPENMP:
            return paired(self.rates(way).values, self.rates(OPENMP[0]).values)
        first, second = self.rates("standalone").values, self.rates("standalone2").values
        if way == "standalone2":
            return paired(second, first)
        middles = [(one + two) / 2 for one, two in zip(first, second, strict=False)]
        return paired(self.rates(way).values, middles)

    @property
    def noise(self) -> float:
        """How far standalone was from itself, a share of its speed."""
        first, second = self.rates("standalone").values, self.rates("standalone2").values
        return statistics.median(
            [abs(two / one - 1) for one, two in zip(first, second, strict=False)] or [0.0]
        )

    @property
    def processors_s(self) -> float | None:
        """Processor time of computation and I/O, over the processors."""
        compute, io = self.samples["compute"], self.samples["io"]
        compute_s, count = compute["cpu_s"].median, compute["computed"].median
        io_s = io["cpu_s"].median
        if compute_s is None or io_s is None or not count:
            return None
        return (compute_s / count * self.work.computations + io_s) / self.workers

    @property
    def bound_rates(self) -> tuple[float, ...]:
        """MiB/s at the bound, with the I/O alone of each repetition."""
        processors_s, io = self.processors_s, self.samples["io"]["wall_s"]
        if processors_s is None:
            return ()
        return tuple(self.work.total_bytes / MIB / max(processors_s, io_s) for io_s in io.values)

    def over_bound(self, way: str) -> float | None:
        """Time over the bound; from the speeds, so that a run that was cut short counts as well."""
        return paired(self.bound_rates, self.rates(way).values)

    @property
    def allowed(self) -> float | None:
        """The speed relative to standalone that the bound would allow."""
        return self.over_bound("standalone")

    def json_row(self, name: str = "", goal: Goal = NO_HARM) -> Row:
        """The row of this cell: non-blocking beside the others."""
        peers = [way for way in (*self.samples,) if way not in ("nonblocking", "io", "compute")]
        against: dict[str, Value] = {way: self.rates(way).shown() for way in peers}
        bounds = self.bound_rates
        against["bound"] = significant(statistics.median(bounds)) if bounds else None
        speed = self.speed("nonblocking")
        ours = self.rates("nonblocking").shown()
        ratio = None if speed is None else significant(speed)
        return Row(name or self.name, UNIT, ours, against, ratio, goal.target)


def paired(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """The median of ours over theirs, repetition by repetition; None without any."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=False)]
    return statistics.median(ratios) if ratios else None


def worst_speed(judged: Sequence[Judged], way: str) -> Row:
    """The lowest speed of a way over the grid.

    `ours` is the lowest as measured. `ratio`, which is judged, is the lowest when each cell is
    allowed its own noise; `standalone2` is how low standalone itself came over the same grid.
    """
    name = f"worst_{way}"
    known = [(speed, cell) for cell in judged if (speed := cell.speed(way)) is not None]
    if not known:
        return Row(name, "x", NOTHING, {}, None, NO_HARM.target)
    lowest, where = min(known, key=lambda pair: pair[0])
    itself = [speed for cell in judged if (speed := cell.speed("standalone2")) is not None]
    against: dict[str, Value] = {
        "standalone": 1.0,
        "standalone2": significant(min(itself)),
        "cell": where.name,
        "noise": significant(where.noise),
    }
    beyond = min(speed + cell.noise for speed, cell in known)
    return Row(name, "x", significant(lowest), against, significant(beyond), NO_HARM.target)


def best_write(judged: Sequence[Judged]) -> Row:
    """The highest speed of the non-blocking way in a cell that writes."""
    known = [
        (speed, cell)
        for cell in judged
        if cell.work.cell.direction == "write" and (speed := cell.speed("nonblocking")) is not None
    ]
    if not known:
        return Row("best_write", "x", NOTHING, {}, None, None)
    highest, where = max(known, key=lambda pair: pair[0])
    against: dict[str, Value] = {
        "standalone": 1.0,
        "bound": None if where.allowed is None else significant(where.allowed),
        "cell": where.name,
    }
    return Row("best_write", "x", significant(highest), against, significant(highest), None)


def worst_vs_bound(judged: Sequence[Judged]) -> Row:
    """The longest time over the bound, of both ways, where standalone leaves room."""
    name, unit = "worst_vs_bound", "x bound"
    with_room = [cell for cell in judged if cell.allowed is not None and cell.allowed >= ROOM]
    known = [
        (over, way, cell)
        for cell in with_room
        for way in OURS
        if (over := cell.over_bound(way)) is not None
    ]
    if not known:
        return Row(name, unit, f"{NOTHING} leaves room", {}, None, NEAR_BOUND.target)
    longest, way, where = max(known, key=lambda entry: entry[0])
    against: dict[str, Value] = {"bound": 1.0, "standalone": significant(where.allowed or 0.0)}
    for each in OURS:
        against[each] = significant(max((o for o, w, _ in known if w == each), default=0.0))
    against |= {"cell": f"{where.name}, {way}", "cells": float(len(with_room))}
    ratio = significant(longest)
    return Row(name, unit, ratio, against, ratio, NEAR_BOUND.target)


def limited_row(judged: Judged | None, note: str) -> Row:
    """The cell under a limit, with what limits; or why there is none."""
    if judged is None:
        return Row(LIMITED_ROW, UNIT, note, {}, None, LIMITED.target)
    row = judged.json_row(LIMITED_ROW, LIMITED)
    return replace(row, against={**row.against, "limit": note})


def summary(judged: Sequence[Judged]) -> list[tuple[Row, Goal]]:
    """The rows over the grid, with how they are judged."""
    return [
        (worst_speed(judged, "nonblocking"), NO_HARM),
        (worst_speed(judged, "blocking"), NO_HARM),
        (best_write(judged), NO_TARGET),
        (worst_vs_bound(judged), NEAR_BOUND),
    ]
