"""The rows of the JSON file: eager over lazy, over the ideal overlap, and beside ray."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.common.report import Row, Value
from bench.common.sample import Sample, significant
from bench.eager import applications, measure
from bench.eager.cases import LAZY, OURS, RAY, RELEASED, STREAM, Overhead, Work

Samples = Mapping[str, Mapping[str, Sample]]

OVERHEAD_MAX = 1.02
AHEAD_MAX = 1.0
RELEASE_MAX_S = 30e-6
"""What a release may take its task beside serialising the value."""
NOT_RUN = Sample(note="not run")

WORST = "worst_overhead"
WORST_RELEASE = "worst_release_overhead"
BEHIND = "worst_vs_ray"


def sample(samples: Samples, row: str, contender: str) -> Sample:
    """Return what a contender had on a row, or why it has nothing."""
    return samples.get(row, {}).get(contender, NOT_RUN)


def ratio(ours: Sample, theirs: Sample) -> float | None:
    """Return the median of ours over theirs, of each repetition: what slows one slows both.

    The ratio of their medians where one was repeated more often.
    """
    if not ours.values or not theirs.values:
        return None
    if len(ours.values) != len(theirs.values):
        return significant(statistics.median(ours.values) / statistics.median(theirs.values))
    pairs = zip(ours.values, theirs.values, strict=True)
    return significant(statistics.median(mine / peer for mine, peer in pairs))


def _row(
    name: str, samples: Samples, of: str, peers: Sequence[str], target: float | None, ours: str
) -> Row:
    mine = sample(samples, of, ours)
    against = {peer: sample(samples, of, peer) for peer in peers}
    return Row(
        row=name,
        unit="s",
        ours=mine.shown(),
        against={peer: one.shown() for peer, one in against.items()},
        ratio=ratio(mine, against[LAZY]),
        target=target,
    )


def of_overhead(case: Overhead, samples: Samples) -> list[Row]:
    """Return the rows of an overhead: values released one by one, and streamed."""
    released = _row(case.name, samples, case.name, (LAZY, RAY), OVERHEAD_MAX, OURS)
    streamed = _row(f"{case.name}_stream", samples, case.name, (LAZY, RAY), OVERHEAD_MAX, STREAM)
    return [released, streamed]


def of_release(integers: int, samples: Samples) -> Row:
    """Return the row of what a release takes its task, over serialising the value and 30 us."""
    name = measure.cost_row(integers)
    taken = sample(samples, name, OURS)
    serialising = sample(samples, f"{name}:{measure.SERIALISING}", OURS)
    allowed = replace(serialising, values=tuple(v + RELEASE_MAX_S for v in serialising.values))
    against: dict[str, Value] = {measure.SERIALISING: serialising.shown()}
    return Row(name, "s", taken.shown(), against, ratio(taken, allowed), AHEAD_MAX)


def of_work(work: Work, samples: Samples) -> list[Row]:
    """Return the rows of an application: total, percentage gained, and over the ideal overlap."""
    eager, lazy = (sample(samples, work.name, way) for way in (OURS, LAZY))
    ideal = sample(samples, f"{work.name}:ideal", LAZY)
    goal = work.is_largest and work.layer == "hpc-node"
    total_max = applications.TOTAL_MAX[work.application] if goal else OVERHEAD_MAX
    total = _row(work.name, samples, work.name, (LAZY, RAY), total_max, OURS)
    over = ratio(eager, lazy)
    gained = "no figure" if over is None else significant(100 * (1 - over))
    gain = Row(f"{work.name}_gain", "%", gained, {}, None, None)
    shown: dict[str, Value] = {"ideal": ideal.shown()}
    for part in ("producer", "final"):
        shown[part] = sample(samples, f"{work.name}:{part}", LAZY).shown()
    target = applications.IDEAL_MAX if goal else None
    over_ideal = ratio(eager, ideal)
    return [
        total,
        gain,
        Row(f"{work.name}_vs_ideal", "s", eager.shown(), shown, over_ideal, target),
    ]


def worst(name: str, unit: str, ratios: Mapping[str, float | None], target: float) -> Row:
    """Return the row of the highest of some ratios, with the name of the row that has it."""
    figures = {row: value for row, value in ratios.items() if value is not None}
    if not figures:
        return Row(name, unit, "no figure", {}, None, target)
    row = max(figures, key=lambda one: figures[one])
    return Row(name, unit, figures[row], {"row": row}, figures[row], target)


def vs_ray(row: Row) -> float | None:
    """Return ours over ray's."""
    peer = row.against.get(RAY)
    if isinstance(row.ours, float) and isinstance(peer, float):
        return significant(row.ours / peer)
    return None


def all_rows(cases: Sequence[Overhead], works: Sequence[Work], samples: Samples) -> list[Row]:
    """Return every row: overheads, applications, the worst of all."""
    released, streamed = [], []
    for case in cases:
        one, other = of_overhead(case, samples)
        released.append(one)
        streamed.append(other)
    totals = released + streamed
    others: list[Row] = []
    for work in works:
        total, *rest = of_work(work, samples)
        totals.append(total)
        others += rest
    taken = [of_release(integers, samples) for integers in RELEASED] if cases else []
    release = worst(WORST_RELEASE, "ratio", {row.row: row.ratio for row in released}, OVERHEAD_MAX)
    lazy = worst(WORST, "ratio", {row.row: row.ratio for row in totals}, OVERHEAD_MAX)
    ray = worst(BEHIND, "ratio", {row.row: vs_ray(row) for row in totals}, AHEAD_MAX)
    return [*totals, *others, *taken, release, lazy, ray]


def is_missed(row: Row) -> bool:
    """Whether a row has a target and a ratio, and does not reach it."""
    return row.ratio is not None and row.target is not None and row.ratio > row.target
