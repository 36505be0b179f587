"""Measures one contender in a process of its own: `python -m bench.eager.measure ... ANSWER`.

What is measured stands in the first argument as JSON; the answer is a JSON object `{row: value}`.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from apps.common import layers, release
from apps.common.spans import Span
from bench.common.optional import load
from bench.eager import applications
from bench.eager.cases import LAZY, RAY, Overhead, Work, short

ROUNDS_MAX = 1000
ROUNDS_MIN = 10
"""Medians of fewer differ by more than what is asked for: runs take that time if they can ..."""
LONG = 10
"""... within so many times the seconds of a case."""
ORDERS_SEED = 7

SERIALISING = "serialising"

PARTS = ("producer", "final", "ideal")
"""What a lazy run of an application tells besides its total."""


class WrongAnswerError(Exception):
    """An application did not find what the plain program finds."""


def overhead_arguments(
    contenders: Sequence[str], cases: list[Overhead], workers: int, seconds: float
) -> tuple[str, ...]:
    """Return the arguments of the process that measures overheads, a row a case and contender."""
    listed = [asdict(case) for case in cases]
    return _arguments(workers, {"contenders": contenders, "cases": listed, "seconds": seconds})


def cost_arguments(workers: int, integers: Sequence[int]) -> tuple[str, ...]:
    """Return the arguments of the process that measures what a release takes its task."""
    return _arguments(workers, {"costs": integers})


def cost_row(integers: int) -> str:
    """Return the name of the row of releases of a list of so many integers."""
    return f"release_{short(integers)}"


def overhead_row(case: Overhead, contender: str) -> str:
    """Return the name of what a contender takes for a case."""
    return f"{case.name}:{contender}"


def work_arguments(
    contender: str, work: Work, workers: int, folder: Path, expected: str, *, quick: bool,
    timeline: Path | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """Return the arguments of the process that runs an application once."""
    asked = {"work": asdict(work), "folder": str(folder), "expected": expected, "quick": quick}
    asked |= {"contender": contender, "timeline": timeline and str(timeline)}
    return _arguments(workers, asked)


def _arguments(workers: int, asked: dict[str, Any]) -> tuple[str, ...]:
    given = json.dumps({"workers": workers} | asked)
    return ("-m", "bench.eager.measure", given)


def repeated(runs: Mapping[str, Callable[[], float]], seconds: float) -> dict[str, float]:
    """Return the median of each of these, run in turns for about `seconds` each, at least once.

    What takes too long for `ROUNDS_MIN` rounds in that time gets more of it. Each round has an
    order of its own: what a run leaves to be tidied falls on the one after it.
    """
    values: dict[str, list[float]] = {name: [] for name in runs}
    order, orders = list(runs), random.Random(ORDERS_SEED)
    spent, rounds, usual = 0.0, 0, seconds * len(runs)
    while rounds < ROUNDS_MAX and (spent < usual or (rounds < ROUNDS_MIN and spent < usual * LONG)):
        rounds += 1
        orders.shuffle(order)
        for name in order:
            values[name].append(runs[name]())
            spent += values[name][-1]
    return {name: statistics.median(of) for name, of in values.items()}


def overheads(workers: int, asked: dict[str, Any]) -> dict[str, float]:
    """Measure overheads in one session, the contenders in turns; seconds by row."""
    contenders = asked["contenders"]
    module = load("bench.eager.on_ray" if contenders == [RAY] else "bench.eager.ours")
    found: dict[str, float] = {}
    with module.session(workers):
        for contender in contenders:
            module.once(contender, Overhead("warm", 1, 100))
        for fields in asked["cases"]:
            case = Overhead(**fields)
            runs = {
                overhead_row(case, contender): partial(module.once, contender, case)
                for contender in contenders
            }
            found |= repeated(runs, asked["seconds"])
    return found


def costs(workers: int, asked: dict[str, Any]) -> dict[str, float]:
    """Measure what releases take their task; seconds by row."""
    ours = load("bench.eager.ours")
    found: dict[str, float] = {}
    with ours.session(workers):
        for integers in asked["costs"]:
            name = cost_row(integers)
            found[name], found[f"{name}:{SERIALISING}"] = ours.release_cost(integers)
    return found


def work(workers: int, asked: dict[str, Any]) -> dict[str, float]:
    """Run an application once; seconds by row, of a lazy run its parts too."""
    contender = asked["contender"]
    one = Work(**asked["work"])
    folder = Path(asked["folder"])
    application = applications.make(one.application, one.size, folder, quick=asked["quick"])
    layer = layers.layers_of(workers)[one.layer]
    if contender == RAY:
        ran = load("bench.eager.on_ray").run(application, layer.limit, workers)
    else:
        name = f"{contender}-{one.name}"
        storage = release.write_storage(application, layer, folder / "storage" / name)
        trace = Path(asked["timeline"]) if asked["timeline"] else None
        ran = release.run(application, contender, workers, storage, trace)
        if trace:
            trace.with_suffix(".spans").write_text(json.dumps(spans_of(ran)))
    if application.fingerprint(ran.answer) != asked["expected"]:
        raise WrongAnswerError(f"{one.name}, {contender}: not what the plain program finds")
    found = {one.name: ran.total_s}
    if contender == LAZY:
        parts = release.parts(application, ran, workers)
        values = (parts.producer_s, parts.final_s, parts.ideal_s)
        found |= {f"{one.name}:{p}": value for p, value in zip(PARTS, values, strict=True)}
    return found


def spans_of(ran: release.Ran) -> list[tuple[str, float, float]]:
    """Return when bodies ran, in seconds from the beginning of the run: kind, start, end."""

    def seconds(at_ns: int) -> float:
        return (at_ns - ran.start_ns) / 1e9

    def row(span: Span) -> tuple[str, float, float]:
        return span.kind, seconds(span.start_ns), seconds(span.end_ns)

    return sorted((row(span) for span in ran.spans), key=lambda one: one[1])


MEASURES = {"work": work, "costs": costs, "cases": overheads}


def main(arguments: list[str]) -> int:
    """Measure what is asked for, and write the answer."""
    asked = json.loads(arguments[0])
    measure = next(of for name, of in MEASURES.items() if name in asked)
    found = measure(asked["workers"], asked)
    Path(arguments[1]).write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
