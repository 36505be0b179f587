"""The rows of the JSON file: observed I/O, what of it is hidden, and what the connector costs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from bench.common.report import Row, Value
from bench.common.sample import Sample, significant
from bench.hdf5.cases import (
    CALLS,
    ENOUGH,
    LENT,
    MB,
    NATIVE,
    OURS,
    PASS_THROUGH,
    Case,
    contenders,
)

Samples = Mapping[str, Mapping[str, Sample]]

OVERHEAD_DATA_MAX = 1.02
OVERHEAD_METADATA_MAX = 1.2
HIDDEN_WRITE_MAX = 1.01
HIDDEN_READ_MAX = 1.01
H5PY_HIDDEN_MIN = 0.9
NOT_RUN = Sample(note="not run")
#: Each step flushed and synced or only the end, on the machine's disk or the emulated one.
SUFFIXES = ("", "_slow", "_once", "_once_slow")
#: Ten steps, of which the last, which nothing hides, is 10 % alone; thirty; the emulated disk.
H5PY = {
    "h5py_hidden": "write_5x64_c150",
    "h5py_hidden_long": "long_5x64_c150",
    "h5py_hidden_slow": "slow_write_5x64_c150",
}


def sample(samples: Samples, case: Case, contender: str, figure: str) -> Sample:
    """What a contender had."""
    return samples.get(f"{case.name}:{figure}", {}).get(contender, NOT_RUN)


def over(ours: Sample, theirs: Sample) -> float | None:
    """Median over median."""
    mine, peer = ours.median, theirs.median
    return significant(mine / peer) if mine is not None and peer else None


def of_case(case: Case, samples: Samples) -> Row:
    """Observed I/O time, beside the others'."""
    peers = [peer for peer in contenders(case) if peer != OURS]
    ours = sample(samples, case, OURS, "io_s")
    against = {peer: sample(samples, case, peer, "io_s") for peer in peers}
    base = against[NATIVE if case.is_data else PASS_THROUGH]
    shown: dict[str, Value] = {peer: one.shown() for peer, one in against.items()}
    return Row(case.name, "s", ours.shown(), shown, over(ours, base), target_of(case))


def target_of(case: Case) -> float | None:
    """What the ratio of a case should be."""
    if not case.is_data:
        return OVERHEAD_METADATA_MAX
    return OVERHEAD_DATA_MAX if case.share == 0 and not case.is_read else None


def _worst(name: str, ratios: Mapping[str, float | None], target: float, peer: str = NATIVE) -> Row:
    figures = {case: ratio for case, ratio in ratios.items() if ratio is not None}
    if not figures:
        return Row(name, "ratio", "no figure", {}, None, target)
    case = max(figures, key=lambda one: figures[one])
    shown: dict[str, Value] = {"case": case, "over": peer, **figures}
    return Row(name, "ratio", figures[case], shown, figures[case], target)


def hidden(case: Case, samples: Samples, contender: str) -> float | None:
    """Observed I/O time over that of the step which nothing can hide: the median over the runs.

    Both are of one run, since how long a step takes differs more from run to run.
    """
    ours = sample(samples, case, contender, "io_s").values
    last = sample(samples, case, contender, "last_s").values
    ratios = tuple(io_s / last_s for io_s, last_s in zip(ours, last, strict=False))
    return significant(statistics.median(ratios)) if ratios else None


def hidden_data(case: Case, samples: Samples) -> float | None:
    """The same of what is written: less what the calls of the other steps cost without any data.

    That is seen without the connector as well: making objects, flushing them, and an fsync.
    """
    ratio = hidden(case, samples, LENT)
    last = sample(samples, case, LENT, "last_s").median
    calls = sample(samples, case, CALLS, "io_s").median
    last_calls = sample(samples, case, CALLS, "last_s").median
    if ratio is None or not last or calls is None or last_calls is None:
        return None
    return significant(ratio - (calls - last_calls) / last)


def summary(cases: Sequence[Case], samples: Samples) -> list[Row]:
    """The rows over all cases."""
    data = [case for case in cases if case.dataset_bytes >= MB]
    plain = [case for case in data if case.share == 0 and not case.is_read]
    metadata = [case for case in cases if not case.is_data]
    totals = {
        case.name: over(
            sample(samples, case, OURS, "total_s"), sample(samples, case, NATIVE, "total_s")
        )
        for case in plain
    }
    metadatas = {
        case.name: over(
            sample(samples, case, OURS, "io_s"), sample(samples, case, PASS_THROUGH, "io_s")
        )
        for case in metadata
    }
    enough = [case for case in data if case.share > ENOUGH]
    return [
        *(row for suffix in SUFFIXES for row in _hidden(enough, samples, suffix)),
        _worst("overhead_data", totals, OVERHEAD_DATA_MAX),
        _worst("overhead_metadata", metadatas, OVERHEAD_METADATA_MAX, peer=PASS_THROUGH),
        *_h5py(cases, samples),
    ]


def _suffix(case: Case) -> str:
    """Which of the rows over several cases a case is in."""
    return ("" if case.is_synced else "_once") + ("_slow" if case.bandwidth else "")


def _hidden(enough: Sequence[Case], samples: Samples, suffix: str) -> list[Row]:
    """What is seen with enough computation, over the step that nothing can hide."""
    chosen = [case for case in enough if _suffix(case) == suffix]
    writes = [case for case in chosen if not case.is_read]
    reads = {case.name: hidden(case, samples, OURS) for case in chosen if case.is_read}
    found = [
        ("hidden_write", {case.name: hidden(case, samples, LENT) for case in writes}),
        ("hidden_write_copied", {case.name: hidden(case, samples, OURS) for case in writes}),
        ("hidden_write_data", {case.name: hidden_data(case, samples) for case in writes}),
    ]
    rows = [_worst(name + suffix, ratios, HIDDEN_WRITE_MAX) for name, ratios in found]
    rows.append(_worst("hidden_read" + suffix, reads, HIDDEN_READ_MAX))
    return [row for row in rows if row.ratio is not None]


def _h5py(cases: Sequence[Case], samples: Samples) -> list[Row]:
    """Of an unchanged h5py program: the share of its I/O time that is hidden."""
    rows = []
    for name, measured in H5PY.items():
        for case in (case for case in cases if case.name == measured):
            ratio = over(sample(samples, case, OURS, "io_s"), sample(samples, case, NATIVE, "io_s"))
            share = None if ratio is None else significant(1 - ratio)
            shown: dict[str, Value] = {NATIVE: sample(samples, case, NATIVE, "io_s").shown()}
            rows.append(Row(name, "share", share, shown, share, H5PY_HIDDEN_MIN))
    return rows
