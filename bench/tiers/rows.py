"""The rows of the JSON file: each way beside the slow layer alone."""

from __future__ import annotations

from collections.abc import Iterable

from bench.common.report import Row
from bench.common.sample import Sample, significant

from .measure import Results

IO_MIN = 3.0
TOTAL_MAX = 0.6
NO_HARM = 1.0

MEASURES = {"io": "io_s", "io_elapsed": "io_elapsed_s", "total": "total_s", "home": "home_s"}
SPEED_UPS = ("io", "io_elapsed")
"""Rows that are the baseline's time over ours; the others are ours over the baseline's."""


def _ratio(measure: str, ours: Sample, baseline: Sample) -> float | None:
    mine, peer = ours.median, baseline.median
    if not mine or not peer:
        return None
    return significant(peer / mine if measure in SPEED_UPS else mine / peer)


def rows_of(name: str, baseline: Results, ways: Iterable[Results], best: str) -> list[Row]:
    """All rows of an application; those without a suffix are those of the way called `best`."""
    listed, rows = list(ways), []
    named = [("", one) for one in listed if one.way.name == best]
    for suffix, one in [*named, *((f"_{one.way.name}", one) for one in listed)]:
        targets = (
            {"io": NO_HARM, "total": NO_HARM} if suffix else {"io": IO_MIN, "total": TOTAL_MAX}
        )
        for measure, figure in MEASURES.items():
            ours, peer = one.sample(figure), baseline.sample(figure)
            rows.append(
                Row(
                    row=f"{name}_{measure}{suffix}",
                    unit="s",
                    ours=ours.shown(),
                    against={"baseline": peer.shown()},
                    ratio=_ratio(measure, ours, peer),
                    target=targets.get(measure),
                )
            )
    return rows


def is_missed(row: Row) -> bool:
    """Whether the row has a target and a ratio, and does not reach it."""
    if row.ratio is None or row.target is None:
        return False
    higher = any(f"_{measure}_" in f"{row.row}_" for measure in SPEED_UPS)
    return row.ratio < row.target if higher else row.ratio > row.target
